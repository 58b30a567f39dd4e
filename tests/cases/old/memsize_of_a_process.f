define file name=ff,path=$dir,size=4k,prealloc
define process name=p,memsize=1m { thread name=t { flowop statfile name=s,filename=ff } }
run 1
