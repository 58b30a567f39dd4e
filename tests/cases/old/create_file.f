define fileset name=data,path=/tmp/old,entries=5,dirwidth=5,size=4k,prealloc
define process name=p { thread name=t { flowop statfile name=s,filesetname=data flowop finishoncount name=f,value=10 } }
create file
run 60
