set $dir=/tmp/old
set $dd=randvar(type=uniform,min=1,mean=3)
set $dw=randvar(type=uniform,min=2,mean=5)
define fileset name=fs,path=$dir,entries=100,dirwidth=$dw,dirdepthrv=$dd,size=1k,prealloc
define process name=p { thread name=t { flowop readwholefile name=r,filesetname=fs flowop closefile name=c } }
run 1
