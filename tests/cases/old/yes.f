set $dir=/tmp/old
define fileset name=fs,path=$dir,entries=500,size=4k,dirwidth=5,prealloc=1,reuse=0,paralloc=1
define process name=p { thread name=t,useism=1 { flowop read name=s,filesetname=fs,iosize=1k,random=0,directio=0,dsync=1,opennext=0 } }
run 1
