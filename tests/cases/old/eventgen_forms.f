set $dir=/tmp/old
eventgen
eventgen rate
eventgen rate=10
define fileset name=fs,path=$dir,entries=10,size=4k,dirwidth=5,prealloc
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs flowop iopslimit name=i,target=s flowop eventlimit name=e } }
run 1
