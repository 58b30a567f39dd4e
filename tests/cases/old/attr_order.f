set $dir=/tmp/old
set $slot=3
set $rnd=1
set $tgt=wr
define fileset entries=10,size=4k,dirwidth=5,path=$dir,name="fs",prealloc
define process instances=1,name="p" { thread memsize=1m,instances=1,name="t" {
 flowop openfile filesetname="fs",fd=$slot,name="openfile1"
 flowop write iosize=1k,fd=$slot,name="wr",random=$rnd,workingset=2k
 flowop closefile fd=$slot,name="close"
 flowop finishoncount value=100,target=$tgt,name="fin" } }
run 10
