set $dir=/tmp/old
set $run=1
define fileset name=file,path=$dir,size=4k,entries=10,dirwidth=5,prealloc
define process name=thread { thread name=process { flowop read name=read,filesetname=file,iosize=1k flowop statfile name=flowop,filesetname=file } }
echo "file"
run $run
