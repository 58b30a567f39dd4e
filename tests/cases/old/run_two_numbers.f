define file name=f,path=$dir,size=1m,prealloc
define process name=p { thread name=t,memsize=8k { flowop read name=r,filename=f,iosize=4k } }
run 1 60
