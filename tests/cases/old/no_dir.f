define file name=f1,path=/tmp/old,size=100k,prealloc
define process name=p { thread name=t { flowop read name=r,filename=f1,iosize=64k,iters=4 flowop delay name=d,value=1 } }
psrun -2 5
