set $nm="a-2"
define fileset name=fs,path=$dir,size=4k,entries=10,dirwidth=5,prealloc
define process name=p {
  thread name=a { flowop statfile name=s1,filesetname=fs }
  thread name=a { flowop statfile name=s1,filesetname=fs }
  thread name=$nm { flowop statfile name=s1,filesetname=fs }
}
run 1
