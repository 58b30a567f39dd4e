set $dir=/tmp/old
enable multi master=hostname,client=me
domultisync value=1
define fileset name=fs,path=$dir,entries=10,dirwidth=5,size=4k,prealloc
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
run 1
