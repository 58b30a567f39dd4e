set $dir=/tmp/old
set mode quit alldone
define fileset name=d,path=$dir,leafdirs=30,dirwidth=5
define process name=p,instances=2 { thread name=t,instances=2 { flowop makedir name=m,filesetname=d } }
run
