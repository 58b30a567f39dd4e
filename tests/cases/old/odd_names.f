set $dir=/tmp/old
define fileset name="big-file_set.1;x",path=$dir,size=4k,entries=20,dirwidth=5,prealloc=100
define process name=p-1.2:3 { thread name=/t/x { flowop statfile name=-s,filesetname="big-file_set.1;x" } }
run 1
