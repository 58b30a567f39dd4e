set $dir=/tmp/old
set $a=5
set $b=$a
set $c=$a * 4
set $d = 100 / $a
set $e=$c - 3
set $f=$c + $d
define fileset name=fs,path=$dir,size=$d,entries=$c,dirwidth=$a,prealloc=100,filesizegamma=0
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
echo "$a $b $c $d $e $f"
create fileset
create processes
stats clear
sleep 1
stats snap
shutdown processes
