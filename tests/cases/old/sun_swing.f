set $dir=/tmp/old
set $nfiles=20
define fileset name=many,path=$dir,entries=$nfiles,size=1k,dirwidth=100,dirgamma=0
define flowop name=create { flowop createfile name=cf,filesetname=many,fd=1 flowop writewholefile name=w,fd=1,iosize=1m flowop closefile name=c,fd=1 flowop eventlimit name=lim }
define process name=cr { thread name=crt { flowop create name=cc,iters=$nfiles flowop wakeup name=wk,target=delblk flowop block name=crblk } }
define process name=del { thread name=delt { flowop block name=delblk flowop deletefile name=d,filesetname=many,iters=$nfiles flowop wakeup name=wk2,target=crblk } }
eventgen rate=0
run 1
