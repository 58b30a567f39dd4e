set $dir=/tmp/old
define file name=log,path=$dir,size=1m,prealloc=0
define process name=p {
  thread name=t,memsize=64k {
    flowop openfile name=o,filename=log,fd=1
    flowop appendfile name=w,fd=1,iosize=8k
    flowop closefile name=c,fd=1
    flowop finishoncount name=end,value=100
  }
}
run 60
