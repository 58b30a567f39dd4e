set $dir=/tmp/old
set $tab=randvar(type=tabular,randsrc=rand48,min=1k,round=1k,randtable={{50,1k,1k},{50,3k,5k}})
set $uni=randvar(type=uniform,seed=17,min=1k,mean=4k,randsrc=urandom)
set $gam=randvar(type=gamma,mean=8k,min=512,gamma=1500,round=512)
define fileset name=fs,path=$dir,entries=20,dirwidth=5,dirgamma=0,size=$gam,prealloc=100
define process name=p { thread name=t,memsize=2m {
 flowop writewholefile name=w,filesetname=fs,iosize=$tab
 flowop read name=r,filesetname=fs,iosize=$uni
 flowop closefile name=c } }
echo "$tab $uni $gam"
run 1
