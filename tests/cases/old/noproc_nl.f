set $dir=/tmp/old
define fileset name=fs,path=$dir,size=4k,entries=30,dirwidth=5,prealloc=100
create files