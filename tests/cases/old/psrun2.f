set $dir=/tmp/old
enable lathist
set mode quit timeout
define file name=f1,path=$dir,size=1m,prealloc,reuse
define process name=p { thread name=t { flowop write name=w,filename=f1,iosize=4k,random,iters=10 flowop fsync name=s } }
create files
psrun
