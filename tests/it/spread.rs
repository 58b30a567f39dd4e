//! Tests file sets that are spread over several directories: each part has its own root and marker, and steps use all
//! parts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::cmd::{Output, Wml, count, flowop, memory};
use crate::signals::wait_for;
use rustix::process::Signal;

/// A set over two directories below `$dir`.
const SET: &str = "define fileset name=data,path=\"$dir/a:$dir/b\",entries=101,dirwidth=10,size=4k,prealloc=80,reuse\n";

fn run(dir: &Path, thread: &str, args: &[&str]) -> Output {
    let script = format!("{SET}define process name=p {{ thread name=t,instances=2 {{\n{thread}\n}} }}\n");
    let call = Wml::below(&memory()).file("x.wml", &script).result();
    call.args(["x.wml", "--runtime", "0.2", "--no-quiesce", "--dir", dir.to_str().unwrap()]).args(args).run()
}

/// The files below a root, the marker left out.
fn files(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(root).unwrap().map(|entry| entry.unwrap()) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()).into_iter().map(|below| format!("{name}/{below}")));
        } else if name != ".wmlrun" {
            found.insert(name);
        }
    }
    found
}

#[test]
fn both_directories_have_their_part_and_steps_use_both() {
    let dir = tempfile::tempdir_in(memory()).unwrap();
    let look = "flowop openfile name=o,filesetname=data,fd=1\nflowop readwholefile name=r,filesetname=data,fd=1\n\
                flowop closefile name=c,fd=1\nflowop statfile name=i,filesetname=data,indexed=7\n\
                flowop listdir name=l,filesetname=data";
    let output = run(dir.path(), look, &["--trace", "trace.txt:1000"]).exits(0);
    let roots = [dir.path().join("a/data"), dir.path().join("b/data")];
    let parts = output.only_run()["filesets"].as_array().unwrap().clone();
    assert_eq!(parts.len(), 2);
    let trace = fs::read_to_string(output.dir().join("trace.txt")).unwrap();
    for (root, part) in roots.iter().zip(&parts) {
        assert!(root.join(".wmlrun").is_file(), "{} has no marker", root.display());
        assert_eq!(part["path"], root.to_str().unwrap());
        assert_eq!(count(part, "files"), files(root).len() as u64);
        assert!((30..=51).contains(&count(part, "files")), "{part}");
        assert!(trace.contains(root.to_str().unwrap()), "no step worked in {}", root.display());
    }
    assert_eq!(count(&parts[0]["layout"], "entries") + count(&parts[1]["layout"], "entries"), 101);
    let read = count(&parts[0]["asked_bytes"], "read") + count(&parts[1]["asked_bytes"], "read");
    assert_eq!(read, count(flowop(&output.only_run(), "r"), "bytes"));
    // A numbered file is one file, wherever it lies: the seventh is the third or fourth of the second directory.
    let seventh: BTreeSet<&str> =
        trace.lines().filter(|l| l.contains("\ti\t")).map(|l| l.split('\t').nth(5).unwrap()).collect();
    assert_eq!(seventh.len(), 1, "{seventh:?}");
    assert!(seventh.first().unwrap().starts_with(roots[1].to_str().unwrap()));
}

#[test]
fn creating_and_removing_keeps_the_parts_balanced() {
    let dir = tempfile::tempdir_in(memory()).unwrap();
    let churn = "flowop deletefile name=d,filesetname=data\nflowop createfile name=cr,filesetname=data,fd=1\n\
                 flowop writewholefile name=w,filesetname=data,fd=1,iosize=4k\nflowop closefile name=c,fd=1\n\
                 flowop rename name=mv,filesetname=data";
    let output = run(dir.path(), churn, &["--seed", "3"]).exits(0);
    let run = output.only_run();
    assert_eq!(run["state"], "complete", "{}", run["ended_by"]);
    assert_eq!(run["ended_by"], "time");
    let (made, removed) = (count(flowop(&run, "cr"), "ops"), count(flowop(&run, "d"), "ops"));
    assert!(made.abs_diff(removed) <= 2 && made > 100, "{made} created, {removed} removed");
}

#[test]
fn a_step_uses_another_part_if_one_has_no_candidate() {
    // A name is changed within its part: that takes a file and a free name there.
    for (entries, possible) in [(8, 2), (5, 1), (2, 0)] {
        let script = format!(
            "define fileset name=data,path=\"$dir/a:$dir/b\",entries={entries},dirwidth=10,size=4k,prealloc=50\n\
             define process name=p {{ thread name=t,instances=2 {{ flowop rename name=mv,filesetname=data }} }}\n"
        );
        let call = Wml::below(&memory()).file("x.wml", &script).result().args(["x.wml", "--runtime", "0.3"]);
        let code = i32::from(possible == 0);
        let output = call.folder("here").args(["--no-quiesce", "--dir", "here"]).run().exits(code);
        let run = output.only_run();
        let parts = run["filesets"].as_array().unwrap().iter();
        let can = |part: &&serde_json::Value| (1..count(&part["layout"], "entries")).contains(&count(part, "files"));
        assert_eq!(parts.filter(can).count(), possible, "{entries} entries");
        let (ended, renamed) = (run["ended_by"].as_str().unwrap(), count(flowop(&run, "mv"), "ops"));
        assert_eq!((ended == "time", renamed > 0), (possible > 0, possible > 0), "{ended}, {renamed} renamed");
    }
}

#[test]
fn parts_are_reused_and_cleaned_like_other_sets() {
    let dir = tempfile::tempdir_in(memory()).unwrap();
    let look = "flowop statfile name=s,filesetname=data";
    let all = || (files(&dir.path().join("a/data")), files(&dir.path().join("b/data")));
    run(dir.path(), look, &[]).exits(0);
    let first = all();
    run(dir.path(), look, &[]).exits(0);
    assert_eq!(all(), first, "the same files in the same places");
    let parts = ["a", "b"].map(|part| dir.path().join(part));
    Wml::new().args(["clean"]).args(&parts).run().exits(0);
    assert!(parts.iter().all(|part| !part.join("data").exists()));
}

/// Runs a script in its own fresh directory, and returns the files that remain.
fn left_by(run: impl FnOnce(Wml) -> Output, script: &str) -> Vec<String> {
    let output = run(Wml::below(&memory()).file("x.wml", script).args(["x.wml", "--no-quiesce"]));
    let entries = fs::read_dir(output.dir()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    entries.filter(|name| name.starts_with("wmlrun-")).collect()
}

/// Whether a directory has a directory with a file.
fn has_files(dir: &Path) -> bool {
    let below = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    below(dir).any(|path| path.is_dir() && below(&path).next().is_some())
}

#[test]
fn directories_of_the_parts_are_removed_with_a_fresh_directory() {
    let script = "define fileset name=data,path=\"$dir/a:$dir/b/c\",entries=ENTRIES,dirwidth=1000,size=0,prealloc=100\n\
                  define fileset name=x/y,path=$dir,entries=3,size=0,prealloc=100\n\
                  define process name=p { thread name=t { flowop statfile name=s,filesetname=data } }\n";
    let none: Vec<String> = Vec::new();
    let small = script.replace("ENTRIES", "10");
    assert_eq!(left_by(|call| call.args(["--runtime", "0.2"]).run().exits(0), &small), none);
    // One whose making ends early.
    // Not so many that two of these at once need more inodes than a tmpfs of a small machine has.
    let large = script.replace("ENTRIES", "2000000");
    let interrupted = |call: Wml| {
        let running = call.args(["--runtime", "100"]).start();
        let fresh = || fs::read_dir(running.dir()).unwrap().map(|e| e.unwrap().path()).find(|path| path.is_dir());
        wait_for("the first files", || fresh().is_some_and(|dir| has_files(&dir.join("a/data"))));
        running.signal(Signal::INT);
        running.wait().exits(130)
    };
    assert_eq!(left_by(interrupted, &large), none);
}

#[test]
fn files_created_before_an_interrupt_are_reported() {
    let script = "define fileset name=data,path=$dir,entries=2000000,dirwidth=1000,size=0,prealloc=100\n\
                  define process name=p { thread name=t { flowop statfile name=s,filesetname=data } }\n";
    let call = Wml::below(&memory()).file("x.wml", script).folder("here");
    let running = call.args(["x.wml", "--no-quiesce", "--dir", "here", "--runtime", "100"]).start();
    wait_for("the first files", || has_files(&running.dir().join("here/data")));
    running.signal(Signal::INT);
    let output = running.wait().exits(130);
    for words in ["interrupted while files were created", "here/data stays", "`wmlrun clean here/data`"] {
        assert!(output.stderr.contains(words), "{words}\n{}", output.stderr);
    }
    Wml::new().args(["clean".into(), output.dir().join("here").into_os_string()]).run().exits(0);
    assert!(!output.dir().join("here/data").exists());
}

/// Of files with gaps between their numbers each is as likely: the next one after a drawn number would be the likelier the larger
/// the gap before it.
#[test]
fn a_uniform_pick_is_uniform_over_all_parts() {
    const PICKS: u32 = 6000;
    let script = format!(
        "# dialect: fsl\nset mode quit alldone\nset $any=cvar(type=cvar-uniform,parameters=\"lower:0;upper:100\")\n\
         define fileset name=data,path=$dir,entries=100,dirwidth=10,size=0,prealloc=30\n\
         define process name=p {{ thread name=t {{\n\
         flowop statfile name=even,filesetname=data,uniform,iters={PICKS}\n\
         flowop statfile name=next,filesetname=data,indexed=$any,iters={PICKS}\n\
         flowop finishoncount name=end,value=1 }} }}\n"
    );
    let call = Wml::below(&memory()).file("x.wml", &script).args(["x.wml", "--runtime", "60", "--no-quiesce"]);
    let output = call.args(["--seed", "5", "--trace", "trace:20000"]).run().exits(0);
    let trace = fs::read_to_string(output.dir().join("trace")).unwrap();
    let counts = |flowop: &str| {
        let mut counts = std::collections::BTreeMap::new();
        for fields in trace.lines().map(|line| line.split('\t').collect::<Vec<_>>()).filter(|f| f[4] == flowop) {
            *counts.entry(fields[5].to_owned()).or_insert(0_u32) += 1;
        }
        counts
    };
    let (even, next) = (counts("even"), counts("next"));
    assert_eq!(even.values().sum::<u32>(), PICKS);
    assert!((20..=40).contains(&even.len()) && even.keys().eq(next.keys()), "{even:?}");
    // About 200 each, with a standard deviation of 14.
    let each = PICKS / even.len() as u32;
    assert!(even.values().all(|n| n.abs_diff(each) <= 75), "{even:?}");
    assert!(next.values().any(|n| n.abs_diff(each) > 150), "{next:?}");
}
