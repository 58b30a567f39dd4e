set $dir=/tmp/old
define fileset name=fs,path=$dir,entries=10,dirwidth=5,size=4k,prealloc
define process name=p { thread name=t { flowop read name=r,filesetname=fs,iosize=1k,iters=4
 flowop finishonbytes name=fb,value=1m,target=r } }
run 60
