set $dir=/tmp/old
set mode quit firstdone
define fileset name=src,path=$dir,entries=30,dirwidth=20,size=4k,prealloc=100
define fileset name=dst,path=$dir,entries=30,dirwidth=20,size=4k
define process name=copier { thread name=c {
 flowop openfile name=o,filesetname=src,fd=1
 flowop readwholefile name=r,filesetname=src,fd=1,iosize=1m
 flowop createfile name=cr,filesetname=dst,fd=2
 flowop writewholefile name=w,filesetname=dst,fd=2,srcfd=1,iosize=1m
 flowop closefile name=c1,fd=1
 flowop closefile name=c2,fd=2 } }
run
