# Directories that are called by numbers: nothing is divided.
set $n=5
set $version=1.5
define fileset name=a,path=$dir/$n,size=1k,entries=4,dirwidth=4,prealloc
define fileset name=b,path=$dir/2024,size=1k,entries=4,dirwidth=4,prealloc
define fileset name=c,path=$dir/01,size=1k,entries=4,dirwidth=4,prealloc
define fileset name=d,path=$dir/$version,size=1k,entries=4,dirwidth=4,prealloc
define process name=p,instances=1 {
  thread name=t,memsize=64k,instances=1 {
    flowop statfile name=a,filesetname=a
    flowop statfile name=b,filesetname=b
    flowop statfile name=c,filesetname=c
    flowop statfile name=d,filesetname=d
  }
}
run 1
