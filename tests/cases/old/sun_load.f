load varmail
set $dir=/tmp/old
set $nfiles=50
set $nthreads=2
run 1
