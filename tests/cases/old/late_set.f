define fileset name=fs,path=$dir,size=$fsz,entries=$ne,dirwidth=$dw,prealloc=$pa
define process name=p,instances=$np { thread name=t,instances=$nt { flowop read name=r,filesetname=fs,iosize=$ios } }
set $dir=/tmp/old
set $fsz=4k
set $ne=10
set $dw=5
set $pa=100
set $np=1
set $nt=1
set $ios=1k
run 1
