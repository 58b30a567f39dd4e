set $dir
  =
  /tmp/old
define
 fileset
 name
 =
 fs
 ,
 path = $dir ,
   entries
   = 20 , dirwidth= 5, size =4k ,prealloc

define process name = "proc 1" , instances = 1
{
   thread name="a thread" , memsize = 1m , instances
      = 2
   {
     flowop
       read
         name=rd
         , filename = fs ,
           iosize=2k,random
   }
}
run
 1
