set $dir=/tmp/old
set $runtime=2
set $x=$runtime
set $y=$x + 1
foreach $z in $x, $y { echo "z $z" }
foreach $z in 1 { echo "one" }
define fileset name=fs,path=$dir,size=4k,entries=20,dirwidth=5,prealloc=100,filesizegamma=0,dirgamma=0
define process name=p,instances=$x { thread name=t,instances=$y { flowop openfile name=o,filesetname=fs,fd=1,opennext
 flowop fsyncset name=fy,filesetname=fs
 flowop closefile name=c,fd=1 } }

run $runtime
vars
list
list flowop

