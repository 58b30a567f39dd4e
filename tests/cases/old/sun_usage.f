# sun
set $dir=/tmp/old
set $nfiles=20
define fileset name=fs,path=$dir,size=4k,entries=$nfiles,dirwidth=5,prealloc=100,cached=false,filesizegamma=0
define process name=p,instances=1
{
  thread name=t,memsize=10m,instances=2
  {
    flowop openfile name=o,filesetname=fs,fd=1
    flowop readwholefile name=r,fd=1
    flowop closefile name=c,fd=1
  }
}
echo  "Test Version 1.0 personality successfully loaded"
usage "Usage: set \$dir=<dir>"
usage " "
usage "       set \$nfiles=<size>     defaults to $nfiles
       a second line with 'quotes' and \"double\" ones"
usage "       run runtime (e.g. run 60)"
help
vars
