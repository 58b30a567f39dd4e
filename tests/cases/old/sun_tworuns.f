set $dir=/tmp/old
define fileset name=fs,path=$dir,size=4k,entries=20,dirwidth=5,prealloc=100
define process name=p,instances=1 { thread name=t,procname=zz,memsize=1m { flowop statfile name=s,filesetname=fs } }
run 1
set $dir=/tmp/old
run 1
