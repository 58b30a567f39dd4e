set $dir=/tmp/old
debug 2
list fileset
list flowop
define fileset name=fs,path=$dir,entries=10,dirwidth=5,size=4k,prealloc
define process name=p { thread name=t { flowop openfile name=o,filesetname=fs,fd=1 flowop closefile name=c,fd=1 } }
create files
list fileset
quit
run 100
