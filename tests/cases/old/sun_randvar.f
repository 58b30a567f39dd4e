set $dir=/tmp/old
define randvar name=$rv, type=gamma, mean=8k, min=1k, gamma=1500
define randvar name=$tab, type=tabular, min=1k, round=1k, randtable =
{{85,   8k,   8k},
 { 8,  17k,  23k},
 { 7,  33k,  39k}
}
define fileset name=fs,path=$dir,size=$rv,entries=20,dirwidth=5,prealloc=100
set $rv.mean=4k
set $rv.type=uniform
define process name=p { thread name=t { flowop readwholefile name=r,filesetname=fs,iosize=$tab flowop closefile name=c } }
echo "rv $rv type $rv.type mean $rv.mean min $rv.min gamma $rv.gamma round $rv.round seed $rv.seed src $rv.randsrc"
run 1
