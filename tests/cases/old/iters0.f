set $dir=/tmp/old
set $n=0
define file name=f,path=$dir,size=64k,prealloc
define process name=p { thread name=t { flowop read name=r0,filename=f,iosize=1k,iters=$n flowop read name=r1,filename=f,iosize=1k,iters=1 flowop bwlimit name=b,target=r1 flowop iopslimit name=i flowop wakeup name=w,target=nobody1 } thread name=u { flowop block name=nobody1 } }
run 1
