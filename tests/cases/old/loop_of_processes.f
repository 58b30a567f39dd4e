# A loop without a run makes as many processes as it has values.
define fileset name=fs,path=$dir,entries=10,size=4k,dirwidth=5,prealloc
foreach $nn in 1,2 {
  define process name=p$nn { thread name=t { flowop statfile name=s,filesetname=fs } }
}
run 1
run 1
