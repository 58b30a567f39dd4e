set $dir=/tmp/old
set $n=2
define fileset name=fs,path=$dir,entries=20,dirwidth=5,size=4k,prealloc
define process name=x,instances=$n { thread name=t { flowop openfile name=o,filesetname=fs,fd=1 flowop readwholefile name=r,fd=1,iosize=1m flowop closefile name=c,fd=1 } }
run 1
