set ${dir}=/tmp/old
set $(n)=10
define fileset name=fs,path=${dir},entries=$(n),size=4k,dirwidth=5,prealloc
define process name=p { thread name=t { flowop statfile name=s,filesetname=fs } }
run 1
echo "ok $(n) ${dir}"
