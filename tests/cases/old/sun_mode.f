set mode quit alldone
set mode nousestats
set $dir=/tmp/old
define fileset name=fs,path=$dir,size=4k,entries=30,dirwidth=5,prealloc=100
define process name=p { thread name=t,instances=2 { flowop deletefile name=d,filesetname=fs,fd=1 } }
run 5
exit
