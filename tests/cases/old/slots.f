set $dir=/tmp/old
define fileset name=fs,path=$dir,size=4k,entries=20,dirwidth=5,prealloc=100

define process name=p
{
	thread name=t,memsize=10m,instances=2
	{
		flowop openfile name=open1,filesetname=fs,fd=1
		flowop openfile name=open2,filesetname=fs,fd=2,directio,dsync
		flowop readwholefile name=rd1,fd=1,iosize=1m
		flowop writewholefile name=wr2,fd=2,srcfd=1,iosize=4k
		flowop closefile name=cl1,fd=1
		flowop closefile name=cl2,fd=2
		flowop deletefile name=del,filesetname=fs
		flowop createfile name=cr,filesetname=fs,fd=3
		flowop appendfile name=ap,fd=3,iosize=4k,iters=2
		flowop closefile name=cl3,fd=3
	}
}
create filesets
run 1
