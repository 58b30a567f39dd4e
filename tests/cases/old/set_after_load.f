load varmail
set $nothread=4
set $nthreads=2
set $label=mine
echo "$label"
run 1
