set $dir=/tmp/old
set $rate=50
define fileset name=fs,path=$dir,entries=20,dirwidth=5,size=4k,prealloc
eventgen rate=$rate
define process name=p { thread name=t {
  flowop read name=rd,filesetname=fs,iosize=4k
  flowop eventlimit name=lim } }
run 1