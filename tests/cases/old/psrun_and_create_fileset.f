# Versions between 1.4.8 and 1.5 had both commands, some with sizes drawn from a gamma distribution and some without.
define fileset name=fs,path=$dir,size=16k,entries=10,dirwidth=5,prealloc
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
create fileset
psrun -10 1
