set $dir=/tmp/old
define fileset name=fs,path=$dir,entries=10,size=4k,dirwidth=5,prealloc
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
run 1
usage "this file was made for the new cluster"
