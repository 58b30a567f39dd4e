# Files of 1k, I/O of 4k: the working set is what must hold it.
define fileset name=small,path=$dir,size=1k,entries=5,dirwidth=5,dirgamma=0,prealloc
define process name=p {
  thread name=t,memsize=8k {
    flowop read name=r,filesetname=small,iosize=4k,random,workingset=10m
    flowop write name=w,filesetname=small,iosize=4k,random,workingset=10m
  }
}
run 1
