set $dir=/tmp/old
define file name=log,path=$dir,size=1m
define process name=p {
  thread name=t,memsize=64k {
    flowop createfile name=o,filename=log,fd=1
    flowop write name=w,filename=log,fd=1,iosize=8k
    flowop closefile name=c,fd=1
    flowop deletefile name=d,filename=log
    flowop finishoncount name=end,value=100
  }
}
run 60
