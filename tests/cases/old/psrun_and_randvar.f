# What 1.5 does not read, and a command that 1.4.8 does not have: versions between them had both, and the
# sizes of files may be those of either.
define randvar name=$which,type=uniform,min=0,mean=1
define fileset name=f,path=$dir,size=16k,entries=10,dirwidth=5,prealloc
define process name=p { thread name=t { flowop statfile name=s,filesetname=f,indexed=$which } }
psrun -1 1
