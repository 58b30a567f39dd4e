# As in the scripts of Filebench 1.4.9: `usage` of 1.4, and `cvar` of 1.5.
set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
define fileset name=set,path=$dir,size=$filesize,entries=10,dirwidth=5,prealloc
define process name=p { thread name=t,memsize=8k { flowop readwholefile name=r,filesetname=set,iosize=4k } }
usage "set \$filesize=<value> defaults to $filesize"
