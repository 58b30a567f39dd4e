# Each pass defines a file and a process of its own.
foreach $ff in "aa","bb" {
  define file name=$ff,path=$dir,size=4k,prealloc
  define process name=$ff { thread name=t { flowop statfile name=s,filename=aa } }
}
define process name=both { thread name=t { flowop statfile name=s,filename=bb } }
run 1
