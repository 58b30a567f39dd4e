//! Tests phases and stonewalls of several processes under `mpirun`, and the personalities that are made for them.
//!
//! Compiled with the feature `mpi` only.

use std::time::Duration;

use serde_json::Value;

use crate::cmd::{Output, Wml, flowop};
use crate::mpi::{counts_agree, mpirun};

/// Runs a script on so many ranks in the folder `d`, to its own end.
fn run(ranks: usize, wml: Wml, script: &str, more: &[&str]) -> (Output, Value) {
    let words = [&[script, "--dir", "d", "--no-quiesce", "--runtime", "120"][..], more].concat();
    let output =
        wml.folder("d").under(mpirun(ranks)).args(words).result().timeout(Duration::from_mins(3)).run().exits(0);
    let run = output.only_run();
    assert_eq!((&run["state"], &run["ended_by"]), (&"complete".into(), &"all threads done".into()), "{run:#}");
    counts_agree(&run, ranks);
    (output, run)
}

fn ops(run: &Value, name: &str) -> u64 {
    flowop(run, name)["ops"].as_u64().unwrap()
}

/// The size of the only file of a set.
fn size_of(output: &Output, set: &str) -> u64 {
    let mut found = Vec::new();
    let mut dirs = vec![output.dir().join("d").join(set)];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                dirs.push(entry.path());
            } else if entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()) {
                found.push(meta.len());
            }
        }
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

/// Rank 0 reads what the last rank has written late.
#[test]
fn a_phase_begins_when_all_ranks_have_ended_the_previous_one() {
    let text = "# dialect: fsl\nset mode quit alldone\nset $iosize=4k\n\
        set $others=$ranks - 1\nset $gap=$others * $iosize\nset $own=$rank * $iosize\n\
        set $opposite=$others - $rank\nset $first=$opposite * $iosize\n\
        define file name=f,path=$dir,size=0,prealloc,share=all\n\
        define process name=writes { thread name=writer {\n\
        flowop delay name=late,value=$rank\n\
        flowop write name=write,filename=f,iosize=$iosize,offset=$own,stride=$gap\n\
        flowop finishoncount name=written,value=1,target=write } }\n\
        define process name=reads,phase=2 { thread name=reader,iterationsof=writer {\n\
        flowop read name=read,filename=f,iosize=$iosize,offset=$first,stride=$gap } }\n";
    let (output, run) = run(3, Wml::new().file("x.wml", text), "x.wml", &[]);
    assert_eq!((ops(&run, "write"), ops(&run, "read")), (3, 3));
    assert_eq!(flowop(&run, "read")["bytes"], 3 * 4096, "{run:#}");
    assert_eq!(size_of(&output, "f"), 3 * 4096);
}

/// Each rank has the threads of one phase only.
#[test]
fn a_phase_of_one_rank_begins_when_another_has_ended_the_previous_one() {
    let text = "# dialect: fsl\nset mode quit alldone\n\
        define fileset name=s,path=$dir,entries=10,size=4k,prealloc\n\
        define process name=first { thread name=t {\n\
        flowop delay name=late,value=0.5\n\
        flowop statfile name=one,filesetname=s,iters=10\n\
        flowop finishoncount name=end,value=10,target=one } }\n\
        define process name=second,phase=2 { thread name=t {\n\
        flowop statfile name=other,filesetname=s,iters=10\n\
        flowop finishoncount name=end,value=10,target=other } }\n";
    let (_, run) = run(2, Wml::new().file("x.wml", text), "x.wml", &["--ranks", "split"]);
    assert_eq!((ops(&run, "one"), ops(&run, "other")), (10, 10));
    let phase = |n: usize, key: &str| run["phases"][n][key].as_f64().unwrap();
    assert!(phase(1, "start_seconds") >= 0.5, "{run:#}");
    assert!(phase(0, "seconds") >= 0.5 && phase(1, "seconds") > 0.0, "{run:#}");
    for name in ["one", "other"] {
        assert!(flowop(&run, name)["ops_per_s"].as_f64().unwrap() > 0.0, "{run:#}");
    }
}

/// The slower a rank, the longer it catches up.
#[test]
fn all_ranks_write_as_much_as_the_fastest_at_the_stonewall() {
    let text = "# dialect: fsl\nset mode quit alldone\nset $iosize=4k\n\
        set $others=$ranks - 1\nset $gap=$others * $iosize\nset $own=$rank * $iosize\n\
        set $slow=$rank * 0.03\nset $pause=$slow + 0.02\n\
        define file name=f,path=$dir,size=0,prealloc,share=all\n\
        define process name=writes { thread name=writer,stonewall=1 {\n\
        flowop write name=write,filename=f,iosize=$iosize,offset=$own,stride=$gap\n\
        flowop delay name=pause,value=$pause } }\n\
        define process name=reads,phase=2 { thread name=reader,iterationsof=writer {\n\
        flowop read name=read,filename=f,iosize=$iosize,offset=$own,stride=$gap } }\n";
    let (output, run) = run(3, Wml::new().file("x.wml", text), "x.wml", &[]);
    let written = ops(&run, "write");
    // Nearly fifty iterations of rank 0, unless the machine is very busy.
    assert!(written > 3 && written.is_multiple_of(3), "{run:#}");
    assert_eq!(ops(&run, "read"), written);
    let of_ranks: Vec<&Value> = run["ranks"].as_array().unwrap().iter().map(|rank| &rank["ops"]).collect();
    assert_eq!(of_ranks, [2 * written / 3; 3]);
    assert_eq!((size_of(&output, "f"), flowop(&run, "read")["bytes"].as_u64()), (written * 4096, Some(written * 4096)));
}

/// A rank whose run ends does not keep the others waiting at the end of a phase.
#[test]
fn the_others_go_on_without_a_rank_that_has_failed() {
    let text = "# dialect: fsl\nset mode quit alldone\nset $second=2 - $rank\n\
        define file name=f,path=\"$dir/$rank\",size=4k,prealloc\n\
        define process name=a { thread name=t {\n\
        flowop openfile name=open,filename=f,fd=1\n\
        flowop openfile name=again,filename=f,fd=$second\n\
        flowop finishoncount name=end,value=1,target=again } }\n\
        define process name=b,phase=2 { thread name=t {\n\
        flowop statfile name=stat,filename=f,iters=10\n\
        flowop finishoncount name=end,value=1 } }\n";
    // The slot is open already on rank 1 only.
    let wml = Wml::new().file("x.wml", text).folder("d").under(mpirun(2));
    let words = ["x.wml", "--dir", "d", "--no-quiesce", "--runtime", "100", "--on-error", "stop"];
    let output = wml.args(words).result().timeout(Duration::from_mins(3)).run();
    let run = output.only_run();
    assert_eq!((output.code(), &run["state"]), (1, &"failed".into()), "{}", output.shown());
    assert_eq!(ops(&run, "stat"), 10, "{run:#}");
}

/// The shapes of parallel file systems, on one host.
#[test]
fn personalities_for_several_ranks_share_their_work() {
    let figures = |run: &Value, name: &str| (ops(run, name), flowop(run, name)["bytes"].as_u64().unwrap());
    let (output, hard) = run(3, Wml::new(), "ior_hard", &["--set", "records=20"]);
    for name in ["write", "read"] {
        assert_eq!(figures(&hard, name), (60, 60 * 47_008), "{name}");
    }
    assert_eq!(size_of(&output, "iorfile"), 60 * 47_008);
    let (_, easy) = run(3, Wml::new(), "ior_easy", &["--set", "filesize=8m"]);
    for name in ["write", "read"] {
        assert_eq!(figures(&easy, name), (12, 24 << 20), "{name}");
    }
    assert_eq!(ops(&easy, "fsync"), 3);
    for script in ["mdtest_easy", "mdtest_hard"] {
        let (_, run) = run(3, Wml::new(), script, &["--set", "nfiles=100"]);
        for name in ["create", "stat", "delete"] {
            assert_eq!(ops(&run, name), 300, "{script}: {name}");
        }
        if script == "mdtest_hard" {
            assert_eq!(figures(&run, "write"), (300, 300 * 3901));
            assert_eq!(figures(&run, "readfile"), (300, 300 * 3901));
        }
    }
}
