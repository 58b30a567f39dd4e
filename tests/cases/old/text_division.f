# A text that is a number is divided; a path goes on.
set $a="10"
set $b=2
set $c=$a/$b
set $top=/tmp/none
set $d=$top/$b
echo "$c $d"
define file name=f,path=$top/$b,size=1m,prealloc
define process name=p { thread name=t,memsize=8k { flowop read name=r,filename=f,iosize=4k } }
run 1
