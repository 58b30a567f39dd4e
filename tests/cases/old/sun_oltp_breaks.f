set $dir=/tmp/old
set $runtime=30
set $iosize=2k
set $cached=0
define fileset name=datafiles,path=$dir,size=10k,filesizegamma=0,entries=4,dirwidth=1024,prealloc=100,cached
=$cached,reuse
define process name=shadow,instances=2
{
  thread name=shadow,memsize=1m,useism
  {
    flowop read name=shadowread,filesetname=datafiles,
      iosize=$iosize,workingset=0,random,opennext,
      directio=0
    flowop hog name=shadowhog,value=2000
    flowop eventlimit name=random-rate
  }
}
echo "OLTP loaded"
usage "Usage: set \$runtime=<n>  defaults to $runtime"
