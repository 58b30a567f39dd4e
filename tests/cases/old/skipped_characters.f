set $dir=/tmp/old;
set $n=2s
define fileset name=“fs”,path=$dir,entries=10,size=4k,dirwidth=5,prealloc=80% ;
define process name='p',instances=1; {
  thread name=‘t’,instances=$n \
  {
    flowop openfile name=o,filesetname=fs,fd=1;
    flowop readwholefile name=r​,fd=1;flowop closefile name=c,fd=1 !
    flowop delay name=d,value=0.001s
  };
}
run 60s;
