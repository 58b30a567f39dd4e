set $width=20set $n=2
define fileset name=f,path=$dir,entries=9,dirwidth=$width,prealloc,size=4kset $m=1
define process name=p,instances=$n { thread name=t,memsize=8k {
  flowop openfile name=o,filesetname=f,fd=1flowop closefile name=c,fd=1
} }
run 1
