set $dir=/tmp/old
set $sz=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5,min=512,max=65536)
set $io=cvar(type=cvar-triangular,parameters="lower:512;upper:4096;mode:1024",round=512,min=512)
set $w=cvar(type=cvar-lognormal,parameters=shape:1;scale:8,min=1,max=4096)
define fileset name=fs,path=$dir,entries=20,dirwidth=5,size=$sz,prealloc,paralloc
define process name=p,nice=5 { thread name=t,ioprio=3 {
 flowop openfile name=o,filesetname=fs,fd=7
 flowop read name=rd,fd=7,iosize=$io
 flowop appendfile name=ap,fd=7,iosize=$w
 flowop closefile name=cl,fd=7 } }
run 1
