set $dir=/tmp/old
define fileset name=fs,path=$dir,entries=10,filesize=4k,dirwidth=5,prealloc,readonly
define fileset name=logs,path=$dir,entries=1,filesize=1k,dirwidth=5,prealloc=100,writeonly
define process name=p { thread name=t,instances=3,memsize=10m {
 flowop openfile name=o,filesetname=fs,fd=1,opennext
 flowop readwholefile name=r,fd=1,iosize=1m
 flowop closefile name=c,fd=1
 flowop appendfilerand name=a,filesetname=logs,iosize=16k,fd=2
 flowop opslimit name=l } }
run 1
