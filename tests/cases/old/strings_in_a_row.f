set $nfiles=10
echo "files: " "$nfiles" ", and
more"
echo "a"
  "b"
log "c" "d $nfiles"
usage "set \$nfiles=<value>" " defaults to $nfiles"
define fileset name=fs,path=$dir,entries=$nfiles,size=4k,dirwidth=5,prealloc
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
help
run 1
