set $dir=/tmp/old
set $lo=1k
set $hi=5k
set $r=randvar(type=tabular,min=$lo,randtable={{50,1k,$lo},{50,3k,$hi}})
set $q=randvar(type=uniform,min=$lo,mean=$hi)
define fileset name=fs,path=${dir},entries=10,size=$r,dirwidth=5,prealloc
define process name=p { thread name=t { flowop readwholefile name=s,filesetname=fs,iosize=$q flowop closefile name=c } }
echo "($dir) {$lo} [$hi] ${dir}"
run 1
