# A quotient of two numbers is arithmetic, which only the older generation has: sizes are means there.
set $total=40
set $nth=4
set $nper=$total/$nth
define fileset name=fs,path=$dir,size=2k,entries=$nper,dirwidth=5,prealloc
define process name=p,instances=1 {
  thread name=t,memsize=64k,instances=1 {
    flowop openfile name=o,filesetname=fs,fd=1
    flowop readwholefile name=r,fd=1
    flowop closefile name=c,fd=1
  }
}
run 1
