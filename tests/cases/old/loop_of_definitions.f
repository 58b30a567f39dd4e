foreach $nn in 1,2,3 {
  define fileset name=fs$nn,path=$dir,entries=10,size=4k,dirwidth=5,prealloc
  define process name=p$nn { thread name=t { flowop statfile name=s$nn,filesetname=fs$nn } }
  run 1
}
