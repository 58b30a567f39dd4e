set $dir=/tmp/old
foreach $a in 1,2 { foreach $b in "x","y" { echo "$a$b" } }
foreach $d in "/tmp/old/a","/tmp/old/b" {
 define fileset name=fs,path=$d,entries=10,size=4k,dirwidth=5,prealloc
 define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
 create filesets
 create processes
 stats clear
 sleep 1
 stats snap
 shutdown processes
}
