set $dir=/tmp/old
set $count=3
define fileset name=u1,path=$dir,entries=10,size=4k,dirwidth=5,prealloc=100,filesizegamma=0
define flowop name=readsome,$fileset=u1,$size=1k,$iters=2
{
  flowop openfile name=opf,filesetname=$fileset,fd=1
  flowop read name=rd,fd=1,iosize=$size,iters=$iters
  flowop closefile name=clf,fd=1
}
define flowop name=twice,$size
{
  flowop readsome name=one,$size=$size
  flowop readsome name=two,$size=2k,$iters=$count,iters=2
}
define process name=p,instances=1 { thread name=t,memsize=1m,instances=1 { flowop twice name=tw,$size=512,iters=1,random,fd=1,value=7 } }
run 1
