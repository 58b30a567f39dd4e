eventgen rate=$r
set $r=5000
define fileset name=data,path=/tmp/old,entries=5,dirwidth=5,size=4k,prealloc
define process name=p { thread name=t { flowop statfile name=s,filesetname=data flowop finishoncount name=f,value=10 } }
run 60
