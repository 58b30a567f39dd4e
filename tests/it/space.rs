//! Tests full file systems: detected before anything is created, filled by others during population, full during a run,
//! and nearly full.
//!
//! Each case ends with an error that names the place and the amount, a valid result, and an image that is as empty
//! after `clean` as before.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cmd::{Output, Wml, count, number, scratch, tool};
use crate::mounts::{self, Fs, Mount};
use crate::undisturbed::undisturbed;

const IMAGE: u64 = 64 << 20;

/// What is free: bytes, inodes, and the names in the image.
#[derive(PartialEq, Debug)]
struct Free {
    blocks: u64,
    inodes: u64,
    names: Vec<String>,
}

fn free(dir: &Path) -> Free {
    tool("sync", &["-f", dir.to_str().unwrap()]);
    let space = rustix::fs::statvfs(dir).unwrap();
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    Free { blocks: space.f_bfree, inodes: space.f_ffree, names }
}

/// A small image, and calls of scripts on it.
struct Small {
    mount: Mount,
    before: Free,
}

impl Small {
    fn new() -> Option<Self> {
        if !mounts::available(&[Fs::Ext4]) {
            return None;
        }
        let mount = Mount::new(Fs::Ext4, IMAGE);
        let before = free(mount.dir());
        Some(Self { mount, before })
    }

    fn call(&self, script: &str) -> Wml {
        let call = Wml::new().file("w.wml", script).args(["w.wml", "--runtime", "60", "--dir"]);
        call.args([self.mount.dir()]).result()
    }

    /// After `clean` all is as it was. Blocks that files have held are given back a little later.
    fn assert_clean(&self) {
        Wml::new().args(["clean"]).args([self.mount.dir()]).run().exits(0);
        let start = Instant::now();
        while free(self.mount.dir()) != self.before && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(free(self.mount.dir()), self.before);
    }
}

/// Checks that the output has these texts.
#[track_caller]
fn assert_says(output: &Output, words: &[&str]) {
    for word in words {
        assert!(output.stderr.contains(word), "no `{word}` in\n{}", output.stderr);
    }
}

fn set(attributes: &str) -> String {
    format!("# dialect: fsl\ndefine fileset name=data,path=$dir,dirwidth=1000,{attributes}\n")
}

#[test]
fn sets_that_do_not_fit_are_refused_before_anything_is_created() {
    let Some(small) = Small::new() else { return };
    let look = "define process name=p { thread name=t { flowop statfile name=look,filesetname=data } }\n";
    for (attributes, words) in [
        ("size=1m,entries=100,prealloc", ["E0509", "100.0 MiB", "is free", "must stay free"]),
        // It would fit, but not leave the twentieth part that is to stay free.
        ("size=1m,entries=52,prealloc", ["E0509", "52", "is free", "must stay free"]),
        ("size=0,entries=100000,prealloc", ["E0510", "100", "inodes", "are free"]),
    ] {
        let output = small.call(&(set(attributes) + look)).run().exits(3);
        assert_says(&output, &words);
        assert_says(&output, &["data", small.mount.dir().to_str().unwrap()]);
        assert_eq!(output.result()["runs"], Value::Array(Vec::new()), "a valid result without a run");
        assert_eq!(free(small.mount.dir()), small.before, "nothing was created");
    }
}

/// Takes all room that is left as soon as the set's root is there.
fn grow(dir: &Path, leave: u64) -> u64 {
    let start = Instant::now();
    while !dir.join("data/00000001").exists() {
        assert!(start.elapsed() < Duration::from_mins(1), "no file set is created");
        std::thread::sleep(Duration::from_micros(100));
    }
    let foreign = fs::File::create(dir.join("foreign")).unwrap();
    let left = rustix::fs::statvfs(dir).unwrap();
    let take = (left.f_bavail * left.f_frsize).saturating_sub(leave);
    rustix::fs::fallocate(&foreign, rustix::fs::FallocateFlags::empty(), 0, take).unwrap();
    take
}

#[test]
fn a_disk_that_others_fill_during_population_is_an_error() {
    let Some(small) = Small::new() else { return };
    let script = set("size=4k,entries=10000,prealloc")
        + "define process name=p { thread name=t { flowop statfile name=look,filesetname=data } }\n";
    let running = small.call(&script).args(["--populate-threads", "1"]).start();
    let taken = grow(small.mount.dir(), 1 << 20);
    let output = running.wait().exits(3);
    assert_says(&output, &["E0514", "data/0", "No space left on device", "free", "wmlrun clean"]);
    assert_eq!(output.result()["runs"], Value::Array(Vec::new()), "a valid result without a run");
    let foreign = small.mount.dir().join("foreign");
    assert_eq!(fs::metadata(&foreign).unwrap().len(), taken, "the file of the other program is kept");
    fs::remove_file(foreign).unwrap();
    small.assert_clean();
}

/// Inodes run out though there is room: the operation itself fails.
#[test]
fn an_operation_without_space_ends_the_run_and_is_named() {
    let Some(small) = Small::new() else { return };
    let script = set("size=0,entries=100000")
        + "define process name=p { thread name=t {\n\
             flowop createfile name=make,filesetname=data,fd=1\n\
             flowop closefile name=close,fd=1\n\
           } }\n";
    let output = small.call(&script).run().exits(1);
    assert_says(&output, &["p/t/make", "line 4", "ENOSPC", "data/0", "0 inodes are free"]);
    let run = output.only_run();
    assert_eq!(run["state"], "failed");
    assert_eq!(run["failure"]["errno"], "ENOSPC");
    assert_eq!(run["failure"]["flowop"], "p/t/make");
    assert!(run["failure"]["path"].as_str().unwrap().contains("/data/0"));
    let make = crate::cmd::flowop(&run, "make");
    assert!(count(make, "ops") > 1000, "earlier operations are counted");
    assert_eq!(make["errors"]["ENOSPC"], 1);
    small.assert_clean();
}

/// Writes 20 MiB a second: seen to come long before it is full.
fn writer() -> String {
    set("size=4k,entries=10,prealloc")
        + "eventgen rate=320\n\
           define process name=p { thread name=t,memsize=64k {\n\
             flowop openfile name=open,filesetname=data,fd=1\n\
             flowop appendfile name=grow,fd=1,iosize=64k\n\
             flowop closefile name=close,fd=1\n\
             flowop eventlimit name=slow\n\
           } }\n"
}

#[test]
fn a_run_stops_before_the_file_system_is_full() {
    // A writer that gets behind its rate catches up faster than the free space is looked at.
    undisturbed(|| {
        let Some(small) = Small::new() else { return };
        let output = small.call(&writer()).run().exits(3);
        let run = output.only_run();
        assert_eq!(run["state"], "low_space", "{}", output.shown());
        let why = run["ended_by"].as_str().unwrap();
        assert!(why.contains("MiB free") && why.contains("stay free") && why.contains("data"), "{why}");
        assert!(number(&run, &["measured_seconds"]) < 60.0 && count(&run["summary"], "ops") > 0);
        assert!(output.stdout.contains("low space"), "{}", output.stdout);
        let left = rustix::fs::statvfs(small.mount.dir()).unwrap();
        assert!(left.f_bavail > 0, "some space is left");
        small.assert_clean();
    });
}

/// Space is also used by operations that transfer no data.
#[test]
fn free_space_is_checked_while_files_are_allocated() {
    let script = set("size=4k,entries=100,prealloc")
        + "eventgen rate=15\n\
           define process name=p { thread name=t {\n\
             flowop openfile name=open,filesetname=data,fd=1\n\
             flowop fallocate name=grow,fd=1,iosize=$size\n\
             flowop closefile name=close,fd=1\n\
             flowop eventlimit name=slow\n\
           } }\n";
    // A thread that gets behind its rate catches up faster than the free space is looked at.
    undisturbed(|| {
        let Some(small) = Small::new() else { return };
        // Forty files of this size would take all space that is free.
        let space = rustix::fs::statvfs(small.mount.dir()).unwrap();
        let size = space.f_bavail * space.f_frsize / 40;
        let output = small.call(&format!("set $size={size}\n{script}")).run().exits(3);
        assert_eq!(output.only_run()["state"], "low_space", "{}", output.shown());
        small.assert_clean();
    });
}

#[test]
fn free_space_is_checked_during_a_warm_up() {
    let Some(small) = Small::new() else { return };
    let output = small.call(&writer()).args(["--warmup", "60"]).run().exits(3);
    assert_eq!(output.only_run()["state"], "low_space", "{}", output.shown());
    small.assert_clean();
}

#[test]
fn free_space_is_checked_while_live_processes_run() {
    let Some(small) = Small::new() else { return };
    let script = writer() + "create processes\nsleep 60\nshutdown processes\n";
    let output = small.call(&script).run().exits(3);
    assert_eq!(output.only_run()["state"], "low_space", "{}", output.shown());
    small.assert_clean();
}

/// A mount that is undone however the test ends.
struct Mounted(tempfile::TempDir);

impl Drop for Mounted {
    fn drop(&mut self) {
        mounts::undo(self.0.path(), None, None);
    }
}

#[test]
fn a_file_system_that_reports_no_size_is_used() {
    needs!(mounts::available(&[Fs::Tmpfs]));
    for (kind, options) in [("ramfs", "mode=755"), ("tmpfs", "size=0")] {
        let at = Mounted(tempfile::tempdir_in(scratch()).unwrap());
        tool("mount", &["-t", kind, "-o", options, "wmlrun-test", at.0.path().to_str().unwrap()]);
        assert_eq!(rustix::fs::statvfs(at.0.path()).unwrap().f_blocks, 0, "{kind}");
        let script = set("size=4k,entries=20,prealloc")
            + "define process name=p { thread name=t { flowop appendfile name=a,filesetname=data,iosize=1k\n\
               flowop finishoncount name=f,value=10,target=a } }\n";
        let call = Wml::new().file("w.wml", &script).args(["w.wml", "--runtime", "10", "--no-quiesce", "--dir"]);
        call.args([at.0.path()]).run().exits(0);
    }
}

/// Neither the roots nor the directories that lead to them.
#[test]
fn a_refused_run_removes_the_directories_that_it_created() {
    let set = |name: &str, path: &str, size: &str| {
        format!("define fileset name={name},path=\"$dir/{path}\",size={size},entries=1000,dirwidth=20,prealloc\n")
    };
    let script = set("first", "x/y", "4k")
        + &set("second", "x/y/z", "4k")
        + &set("large", "x/v", "1t")
        + "define process name=p { thread name=t { flowop statfile name=s,filesetname=first } }\n";
    let call = Wml::new().file("w.wml", &script).folder("here/x").args(["w.wml", "--runtime", "0.2", "--dir", "here"]);
    let output = call.run().exits(3);
    assert!(output.stderr.contains("not enough space"), "{}", output.shown());
    let names: Vec<_> = fs::read_dir(output.dir().join("here/x")).unwrap().collect();
    assert!(names.is_empty(), "{names:?}");
}
