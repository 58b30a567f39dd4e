set $dir=/tmp/old
foreach $n in 1,2,3 { echo "n is $n" }
foreach $w in "a b","c" { echo "w is $w"
  log "logged $w" }
define fileset name=fs,path=$dir,size=4k,entries=20,dirwidth=5,prealloc=100
foreach $t in 1,2 {
  define process name=p,instances=1 { thread name=t,instances=$t { flowop statfile name=s,filesetname=fs } }
  run 1
  shutdown processes
}
