define file name=ff,path=$dir,size=4k,prealloc
define process name=p { thread name=t,nice=5 { flowop statfile name=s,filename=ff } }
run 1
