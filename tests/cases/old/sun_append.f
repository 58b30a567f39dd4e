set $dir=/tmp/old
define file name=log,path=$dir,size=0,prealloc,cached=true,entries=1
define fileset name=fs,path=$dir,size=4k,entries=30,dirwidth=5,prealloc=50
define process name=p { thread name=t {
 flowop createfile name=cf,filesetname=fs,fd=1
 flowop appendfilerand name=a,iosize=8k,fd=1
 flowop fsync name=fy,fd=1
 flowop closefile name=cl,fd=1
 flowop deletefile name=del,filesetname=fs
 flowop appendfilerand name=lg,filesetname=log,iosize=1k,fd=2
 flowop opslimit name=lim,target=a
} }
eventgen rate=1000
run 1
