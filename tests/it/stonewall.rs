//! Tests `stonewall=` and `iterationsof=` of threads in one process: all threads of a definition make as many
//! iterations as the fastest.

use std::fs;
use std::path::Path;

use crate::cmd::{Wml, flowop};

/// Two processes append to files of their own, each with work of random length between.
const SCRIPT: &str = "# dialect: fsl\nset mode quit alldone\nset $stonewall=1\nset $most=1000000\n\
    set $work=randvar(type=uniform,min=0,mean=1000000)\n\
    define fileset name=own,path=$dir,entries=1,dirwidth=10,size=0,prealloc,perinstance\n\
    define process name=writes,instances=2 { thread name=writer,stonewall=$stonewall {\n\
    flowop appendfile name=append,filesetname=own,iosize=1k\n\
    flowop hog name=work,value=$work\n\
    flowop finishoncount name=end,value=$most,target=append } }\n\
    define process name=reads,instances=2,phase=2 { thread name=reader,iterationsof=writer {\n\
    flowop statfile name=stat,filesetname=own } }\n";

/// The sizes of the files below a directory.
fn sizes(dir: &Path) -> Vec<u64> {
    let mut sizes = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let meta = entry.metadata().unwrap();
        if meta.is_dir() {
            sizes.extend(sizes_of_files(&entry.path()));
        }
    }
    sizes
}

/// The same for one tree, without wmlrun's own files.
fn sizes_of_files(tree: &Path) -> Vec<u64> {
    let mut found = Vec::new();
    for entry in fs::read_dir(tree).unwrap().map(Result::unwrap) {
        let meta = entry.metadata().unwrap();
        if meta.is_dir() {
            found.extend(sizes_of_files(&entry.path()));
        } else if entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()) {
            found.push(meta.len());
        }
    }
    found
}

fn run(values: &[(&str, &str)]) -> (u64, u64, Vec<u64>) {
    let call = Wml::new().file("x.wml", SCRIPT).folder("d").sets(values);
    let output = call.args(["x.wml", "--dir", "d", "--runtime", "120", "--no-quiesce"]).result().run().exits(0);
    let run = output.only_run();
    assert_eq!(run["ended_by"], "all threads done", "{}", output.shown());
    let ops = |name: &str| flowop(&run, name)["ops"].as_u64().unwrap();
    (ops("append"), ops("stat"), sizes(&output.dir().join("d")))
}

#[test]
fn all_threads_make_as_many_iterations_as_the_fastest_at_the_stonewall() {
    let (appends, stats, sizes) = run(&[]);
    assert!(appends > 2, "{appends}");
    assert_eq!(sizes, [appends / 2 * 1024; 2], "{appends} appends");
    assert_eq!(stats, appends);
}

/// A thread that ends at a count before the stonewall does not wait for it.
#[test]
fn a_count_may_end_a_thread_before_the_stonewall() {
    for stonewall in ["0", "3600"] {
        let (appends, stats, sizes) = run(&[("most", "5"), ("stonewall", stonewall)]);
        assert_eq!((appends, stats, sizes), (10, 10, vec![5 * 1024; 2]), "{stonewall}");
    }
}
