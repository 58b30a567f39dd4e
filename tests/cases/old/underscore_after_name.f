# The name of a variable ends in a letter or digit: an underscore behind it is text.
set $nfiles=10
set $size=4k
set ${rest_}=2
echo "$nfiles_$size"
define fileset name=fs_$nfiles_$size,path=$dir,entries=$nfiles,size=$size,dirwidth=5,prealloc
define process name=p { thread name=t,instances=${rest_} { flowop statfile name=s,filesetname="fs_10_4096" } }
run 1
