# Who is late finds that the file is gone already: nothing is left to do.
define fileset name=few,path=$dir,size=4k,entries=6,dirwidth=6,prealloc=50
define process name=p {
  thread name=t,instances=8,memsize=8k {
    flowop openfile name=o,filesetname=few,fd=1
    flowop closefile name=c1,fd=1
    flowop deletefile name=d,fd=1
    flowop createfile name=n,filesetname=few,fd=2
    flowop closefile name=c2,fd=2
  }
}
run 1
