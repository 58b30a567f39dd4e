set $dir=/tmp/old
set $yes=true
define fileset name=fs,path=$dir,entries=10,dirwidth=5,size=4k,prealloc=true,reuse=false,paralloc=true,trusttree=false,readonly=true
define process name=p { thread name=t,useism=false,memsize=10m { flowop read name=r,filesetname=fs,iosize=4k,random=true,directio=false,opennext=$yes,noreadahead flowop fsyncset name=fss,filesetname=fs } }
run 1
