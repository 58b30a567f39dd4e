set $dir=/tmp/old
define file name=f,path=$dir,size=1m,prealloc
define process name=p { thread name=t,memsize=1m,useism { flowop aiowrite name=aw,filename=f,iosize=4k,random,dsync,iters=10,workingset=0,directio=0 flowop aiowait name=wait flowop hog name=h,value=1000 flowop print name=pr,value="hello there" flowop delay name=dl,value=1 } }
run 1
