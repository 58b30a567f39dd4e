set $dir=/tmp/old
set $size=cvar(type=cvar-gamma,parameters=mean:4096;gamma:1.5)
define fileset name=fs,path=$dir,entries=10,size=$size,dirwidth=5,prealloc
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
run 1
stats snap
