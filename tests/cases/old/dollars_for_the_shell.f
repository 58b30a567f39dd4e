echo "5$ and $5, $$, $? and ${1}, and $nosuch"
log "a $1"
define file name=f,path=$dir,size=1m,prealloc
define process name=p { thread name=t,memsize=8k { flowop read name=r,filename=f,iosize=4k } }
run 1
