# Both generations, and nothing whose meaning differs between them.
usage "set \$size=<value>"
define file name=big,path=$dir,size=1m,prealloc
define process name=p { thread name=t,memsize=8k { flowop read name=r,filename=big,iosize=4k,random } }
psrun -10 1
