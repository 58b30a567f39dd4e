set $dir=/tmp/old
define fileset name=a,path=$dir,entries=20,dirwidth=5,size=4k,prealloc
define fileset name=b,path=$dir,entries=20,dirwidth=5,size=4k,prealloc
define flowop name=inner, $fs, $n=2 {
  flowop openfile name=o,filesetname=$fs,fd=1
  flowop readwholefile name=r,fd=1,iters=$n
  flowop closefile name=c,fd=1
}
define flowop name=outer, iters=2, $which=a {
  flowop inner name=i1, $fs=$which
  flowop inner name=i2, iters=3, $fs=b, $n=1
}
define process name=p { thread name=t { flowop outer name=x flowop outer name=y, $which=b flowop delay name=d,value=0 } }
run 1
