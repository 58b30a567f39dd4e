#
# Ages the trees of the database: its writers alone, at random, on files of
# another size. Each loop ends in an event, for those who want a rate.
#

set $dir=/tmp
set $runtime=30
set $iosize=2k
set $ndbwriters=1
set $filesize=10m
set $memperthread=1m
set $workingset=0
set $cached=0
set $logfilesize=10m
set $nfiles=10
set $nlogfiles=1
set $directio=0

define fileset name=datafiles,path=$dir,size=$filesize,filesizegamma=0,entries=$nfiles,dirwidth=1024,prealloc=100,cached=$cached,reuse
define fileset name=logfile,path=$dir,size=$logfilesize,filesizegamma=0,entries=$nlogfiles,dirwidth=1024,prealloc=100,cached=$cached,reuse

define process name=lgwr,instances=1
{
  thread name=lgwr,memsize=$memperthread,useism
  {
    flowop write name=lg-write,filesetname=logfile,
        iosize=256k,random,directio=$directio,dsync
    flowop eventlimit name=lg-rate
  }
}

define process name=dbwr,instances=$ndbwriters
{
  thread name=dbwr,memsize=$memperthread,useism
  {
    flowop write name=dbwrite-a,filesetname=datafiles,
        iosize=$iosize,workingset=$workingset,random,opennext,directio=$directio,dsync
    flowop eventlimit name=dbwr-rate
  }
}

echo "Random writes to age a database's files: personality successfully loaded"
usage "Usage: set \$dir=<dir>"
usage "       set \$filesize=<size>    defaults to $filesize"
usage "       set \$iosize=<value>     defaults to $iosize"
usage "       run runtime (e.g. run 60)"
