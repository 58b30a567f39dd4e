# What was opened in two slots is deleted once: by the second nothing is left to do.
define fileset name=few,path=$dir,size=4k,entries=3,dirwidth=3,prealloc
define process name=p {
  thread name=t,memsize=8k {
    flowop openfile name=o1,filesetname=few,fd=1,indexed=1
    flowop closefile name=c1,fd=1
    flowop openfile name=o2,filesetname=few,fd=2,indexed=1
    flowop closefile name=c2,fd=2
    flowop deletefile name=d1,fd=1
    flowop deletefile name=d2,fd=2
    flowop createfile name=n,filesetname=few,fd=3
    flowop closefile name=c3,fd=3
    flowop finishoncount name=end,value=1
  }
}
run 1
