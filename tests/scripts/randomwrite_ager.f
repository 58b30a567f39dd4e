#
# Ages two plain files that another benchmark measures.
#

set $dir=/tmp
set $runtime=30
set $iosize=8k
set $filesize=1m
set $memperthread=1m
set $workingset=0
set $cached=0
set $directio=0

define file name=iozonefileset1,path=$dir,size=$filesize,prealloc,reuse,cached=$cached
define file name=iozonefileset2,path=$dir,size=$filesize,prealloc,reuse,cached=$cached

define process name=rand-write,instances=1
{
  thread name=rand-thread1,memsize=$memperthread,useism
  {
    flowop write name=rand-write1,filename=iozonefileset1,
        iosize=$iosize,random,workingset=$workingset,directio=$directio
    flowop eventlimit name=rate1
  }
  thread name=rand-thread2,memsize=$memperthread,useism
  {
    flowop write name=rand-write2,filename=iozonefileset2,
        iosize=$iosize,random,workingset=$workingset,directio=$directio
    flowop eventlimit name=rate2
  }
}

echo "Random writes to age two files: personality successfully loaded"
usage "Usage: set \$dir=<dir>"
usage "       set \$filesize=<size>    defaults to $filesize"
usage "       run runtime (e.g. run 60)"
