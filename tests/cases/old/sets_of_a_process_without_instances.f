set $dir=/tmp/old
set $none=0
define fileset name=fs,path=$dir,entries=10,size=4k,dirwidth=5,prealloc
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
define process name=off,instances=$none {
  thread name=t {
    flowop openfile name=o1,filesetname=one,fd=1
    flowop readwholefile name=r1,filesetname=one,fd=1
    flowop closefile name=c1,fd=1
    flowop openfile name=o2,filesetname=two,fd=1
    flowop closefile name=c2,fd=1
  }
  thread name=u {
    flowop statfile name=s1,filesetname=one
    flowop statfile name=s2,filesetname=two
  }
}
define process name=also_off,instances=$none { thread name=t { flowop statfile name=s,filesetname=one } }
run 1
