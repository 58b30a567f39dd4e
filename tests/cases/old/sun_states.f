set $dir=/tmp/old
shutdown processes
stats clear
stats snap
define fileset name=fs,path=$dir,size=4k,entries=20,dirwidth=5,prealloc=100
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
stats snap
create files
create files
create processes
create processes
sleep 0
stats clear
sleep 1
stats snap
stats snap
shutdown processes
shutdown processes
run 0
run 1
create processes
run 1
shutdown filesets
shutdown filesets
run 1
