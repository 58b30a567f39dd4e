# A path of variables and plain pieces, without quotes.
set $sub=images
define file name=one,path=$dir/files,size=64k,prealloc
define file name=two,path=$dir/$sub,size=64k,prealloc
define fileset name=three,path=$dir/${sub}/all-$sub,size=4k,entries=8,dirwidth=4,prealloc
define process name=p {
  thread name=t,memsize=8k {
    flowop read name=r1,filename=one,iosize=4k,fd=1
    flowop read name=r2,filename=two,iosize=4k,fd=2
    flowop statfile name=s3,filesetname=three
  }
}
run 1
