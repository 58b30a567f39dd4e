//! Tests `perinstance`: each process instance has a separate file set, and no instance works in that of another.

use std::collections::BTreeMap;
use std::fs;

use crate::cmd::{Wml, count, flowop};

#[test]
fn each_process_instance_works_in_its_own_set() {
    let script = "# dialect: fsl\nset mode quit alldone\n\
        define fileset name=pool,path=$dir,entries=40,dirwidth=5,dirgamma=0,size=2k,prealloc=50,perinstance\n\
        define process name=p,instances=4 {\n\
        thread name=makes,instances=2 {\n\
        flowop createfile name=create,filesetname=pool,fd=1\n\
        flowop writewholefile name=write,fd=1,iosize=1k\n\
        flowop closefile name=close,fd=1\n\
        flowop finishoncount name=end,value=100,target=close }\n\
        thread name=removes {\n\
        flowop deletefile name=delete,filesetname=pool\n\
        flowop finishoncount name=end,value=190,target=delete }\n}\n";
    let call = Wml::new().file("x.wml", script).folder("d").sets(&[("dir", "d")]);
    // The plan has one entry for all of them.
    let plan = Wml::new().file("x.wml", script).args(["plan", "-v", "x.wml", "--set", "dir=d"]).run().exits(0).stdout;
    let sets: Vec<&str> = plan.lines().take(4).collect();
    assert!(
        sets[0].starts_with("file set pool × 4, one for each process instance: ")
            && sets[0].ends_with("/pool.1 to pool.4"),
        "{plan}"
    );
    assert!(sets[1].contains(" 160 files in "), "{plan}");
    assert!(sets[3].starts_with("process p × 4"), "{plan}");
    let call = call.args(["x.wml", "--runtime", "60", "--trace", "trace:100000"]).result();
    let output = call.run().exits(0);
    let run = output.only_run();
    assert_eq!(run["ended_by"], "all threads done", "{}", output.shown());
    // One row for all of them.
    assert_eq!(flowop(&run, "delete")["ops"], 4 * 190);
    let written: Vec<u64> =
        run["filesets"].as_array().unwrap().iter().map(|set| count(&set["asked_bytes"], "written")).collect();
    assert_eq!((written.len(), written.iter().sum::<u64>()), (4, count(flowop(&run, "write"), "bytes")), "{written:?}");
    let mut works = BTreeMap::<(String, String), u64>::new();
    for line in fs::read_to_string(output.dir().join("trace")).unwrap().lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        if let Some((_, path)) = fields[5].split_once("/pool.") {
            let set = path.split('/').next().unwrap().to_owned();
            *works.entry((fields[1].to_owned(), set)).or_default() += 1;
        }
    }
    let own: Vec<_> = (1..=4).map(|n| (n.to_string(), n.to_string())).collect();
    assert_eq!(works.keys().cloned().collect::<Vec<_>>(), own, "instances and the sets that they worked in");
    let mut sets: Vec<_> = fs::read_dir(output.dir().join("d")).unwrap().map(|e| e.unwrap().file_name()).collect();
    sets.sort();
    assert_eq!(sets, ["pool.1", "pool.2", "pool.3", "pool.4"]);
}
