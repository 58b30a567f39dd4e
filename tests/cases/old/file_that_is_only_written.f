set $dir=/tmp/old
define file name=log,path=$dir,size=1m
define process name=p {
  thread name=t,memsize=64k {
    flowop write name=w,filename=log,iosize=8k
    flowop finishoncount name=end,value=100
  }
}
run 60
