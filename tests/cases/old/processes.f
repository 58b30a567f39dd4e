set $dir=/tmp/old
define filesets name=fs,path=$dir,entries=10,dirwidth=5,size=4k,prealloc
define processes name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
create files
run 1
