define file name=f,path=$dir,size=1m,prealloc
define process name=p {
  thread name=worker,memsize=8k { flowop read name=r1,filename=f,iosize=4k }
  thread name=worker,memsize=8k { flowop read name=r1,filename=f,iosize=8k }
  thread name=worker,memsize=8k { flowop read name=r1,filename=f,iosize=2k }
}
run 1
