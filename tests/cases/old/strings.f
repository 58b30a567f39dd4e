set $dir="/tmp/old"
set $msg="two words: 50% \$5"
set $word=hello_world-1.2:3;4
set $flag=true
set $flag2=false
set $name="fs 1"
define fileset name=$name,path=$dir,entries=10,dirwidth=5,size=4k,prealloc
define process name=p { thread name=t { flowop read name=rd,filesetname=$name,iosize=1k,random=$flag,dsync=$flag2 } }
echo "msg=$msg word=$word flag=$flag"
run 1
