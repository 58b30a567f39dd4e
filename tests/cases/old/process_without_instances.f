# A process that is switched off may name what does not exist.
set $nquery=0
define fileset name=fs,path=$dir,entries=10,size=4k,dirwidth=5,prealloc
define process name=query,instances=$nquery {
  thread name=q,memsize=1m {
    flowop read name=rd,filesetname=index,iosize=4k,random
    flowop sempost name=post,value=1,target=nobody
    flowop statfile name=qs,filesetname=fs
  }
}
define flowop name=look { flowop statfile name=ls,filesetname=elsewhere }
define process name=off,instances=0 { thread name=o { flowop look name=l flowop statfile name=os,filesetname=nowhere } }
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
run 1
