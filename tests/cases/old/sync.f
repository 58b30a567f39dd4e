set $dir=/tmp/old
define file name=f,path=$dir,size=1m,prealloc
define process name=prod { thread name=pr,instances=3 { flowop read name=r,filename=f,iosize=4k,random flowop sempost name=sp,target=sb,value=1,blocking flowop wakeup name=wk,target=bl } }
define process name=cons { thread name=co { flowop semblock name=sb,value=10,highwater=20 flowop write name=w,filename=f,iosize=4k,random,workingset=64k }
 thread name=bl { flowop block name=bl flowop statfile name=st,filename=f } }
run 1
