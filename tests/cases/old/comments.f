#!/usr/bin/filebench -f
# comment "with quotes" and $vars { }
set $dir=/tmp/old # trailing
define fileset name=fs, # after a comma
  path=$dir,entries=20, #another
  #full line
  dirwidth=5,size=4k,prealloc=80
define process name=p{#glued
  thread name=t{ # x
    flowop statfile name=s,filesetname=fs#glued too
  }#
}
echo "# no comment in here"
run 1#end
