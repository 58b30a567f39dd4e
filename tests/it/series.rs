//! Tests verdicts with long series of real experiments: equal sides, planted losses, a machine that becomes slower, and
//! planted causes. They need an idle machine for about two hours and run only with `WMLRUN_LONG=1`.
//!
//! Each series prints one line for each experiment. A series of one's own length is measured with
//! `WMLRUN_LONG=1 WMLRUN_SERIES=5 cargo test --test it -- --nocapture series::`. `WMLRUN_PLANT=fsync` plants only this
//! cause.

use crate::cmd::{has, long, memory, skip, tool};
use crate::experiments::{Lab, valid};
use crate::hold::{Hold, Share};
use crate::mounts::{self, Fs, Mount};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The mail server of the comparisons: small enough that a run of a second has thousands of iterations.
const MAIL: &str = "varmail --set nfiles=500 --runtime 1 --quiet";

/// The number of experiments of a series.
fn length(usual: usize) -> usize {
    std::env::var("WMLRUN_SERIES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Prints a line at once: a series takes long.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The document of a comparison, whatever its verdict.
#[track_caller]
fn document(output: &Output) -> Value {
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 10 | 11 | 12)), "{}\n{shown}", output.status);
    let found = serde_json::from_slice(&output.stdout).unwrap();
    valid(&found);
    found
}

/// Compares, in a folder of results of its own.
#[track_caller]
fn ab(lab: &Lab, words: &str, more: &[&str]) -> Value {
    let _ = fs::remove_dir_all(lab.path("results"));
    let mut command = lab.command(&format!("ab {words} --results results --format json"));
    document(&command.args(more).output().unwrap())
}

/// A line about a comparison.
fn line(found: &Value) -> String {
    let ratio = |key: &str| found["ratio"][key].as_f64().unwrap_or(f64::NAN);
    let causes: Vec<&str> =
        found["causes"].as_array().unwrap().iter().map(|cause| cause["name"].as_str().unwrap()).collect();
    format!(
        "{:<9} B/A {:.3} [{:.3}, {:.3}], could have seen {:.1} %, {}",
        found["verdict"].as_str().unwrap(),
        ratio("value"),
        ratio("low"),
        ratio("high"),
        100.0 * found["could_have_seen"].as_f64().unwrap_or(f64::NAN),
        causes.join(", ")
    )
}

fn is(found: &Value, verdict: &str) -> bool {
    found["verdict"] == verdict
}

/// Equal sides are called worse as seldom as the confidence of the interval says.
#[test]
fn equal_sides_are_seldom_called_worse() {
    if !long() {
        return;
    }
    let (_alone, lab, n) = (Hold::take(Share::Alone), Lab::below(&memory()), length(60));
    let mut worse = 0;
    for experiment in 1..=n {
        let found = ab(&lab, &format!("{MAIL} --dir . --blocks 4"), &[]);
        worse += usize::from(is(&found, "worse"));
        tell(&format!("equal {experiment}: {}", line(&found)));
    }
    tell(&format!("equal: {worse} of {n} are worse"));
    assert!(worse * 12 <= n, "{worse} of {n}");
}

/// A thread whose iterations take a fixed time and a time in proportion to `$work`.
const WORK: &str = "set $work=2000\n\
    define fileset name=data,path=$dir,entries=100,dirwidth=10,size=4k,prealloc\n\
    define process name=p { thread name=t,instances=2 {\n\
      flowop openfile name=o,filesetname=data,fd=1\n\
      flowop read name=r,fd=1,iosize=4k\n\
      flowop closefile name=c,fd=1\n\
      flowop hog name=h,value=$work\n\
    } }\n";

/// A loss of three times what an experiment could have seen is found.
#[test]
fn a_planted_loss_is_found() {
    if !long() {
        return;
    }
    let (_alone, lab, n) = (Hold::take(Share::Alone), Lab::below(&memory()), length(20));
    fs::write(lab.path("work.wml"), WORK).unwrap();
    let words = "work.wml --runtime 1 --quiet --dir . --blocks 4";
    // The time of an iteration without and with twice the work, in units of that with the usual work.
    let time = |work: u32| {
        let found = ab(&lab, words, &["--b", &format!("--set work={work}")]);
        1.0 / found["ratio"]["value"].as_f64().unwrap()
    };
    let per_work = (time(4000) - time(1000)) / 3000.0;
    let mut seen: Vec<f64> = (0..3).map(|_| ab(&lab, words, &[])["could_have_seen"].as_f64().unwrap()).collect();
    seen.sort_by(f64::total_cmp);
    let loss = 3.0 * seen[1];
    assert!(loss < 0.9, "the machine is not idle: a loss of {loss} is wanted");
    let work = 2000.0 + (1.0 / (1.0 - loss) - 1.0) / per_work;
    let mut found_worse = 0;
    for experiment in 1..=n {
        let found = ab(&lab, words, &["--b", &format!("--set work={work:.0}")]);
        found_worse += usize::from(is(&found, "worse"));
        tell(&format!("loss of {:.1} % {experiment}: {}", 100.0 * loss, line(&found)));
    }
    tell(&format!("loss: {found_worse} of {n} are worse"));
    assert!(found_worse * 10 >= n * 9, "{found_worse} of {n}");
}

/// Sets a flag when it is dropped.
struct StoreOnDrop<'a>(&'a AtomicBool);

impl Drop for StoreOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs something on a machine of which other programs take more and more time, none at first and nearly all after `span`.
fn on_a_slowing_machine<T>(span: Duration, run: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let burn = || {
        let began = Instant::now();
        while !done.load(Ordering::Relaxed) {
            let part = (began.elapsed().as_secs_f64() / span.as_secs_f64()).min(0.95);
            let slice = Instant::now();
            while slice.elapsed().as_secs_f64() < 0.01 * part {
                std::hint::spin_loop();
            }
            std::thread::sleep(Duration::from_secs_f64(0.01 * (1.0 - part)));
        }
    };
    std::thread::scope(|scope| {
        // As many as the workload has threads, so that both get an equal part of the processors.
        for _ in 0..8 * processors {
            scope.spawn(burn);
        }
        // Also if a check fails: the scope waits for its threads.
        let _end = StoreOnDrop(&done);
        run()
    })
}

/// Runs that alternate are compared rightly while the machine becomes slower; of runs that follow one another, a drift may be
/// the whole difference.
#[test]
fn a_machine_that_becomes_slower_makes_no_equal_side_worse() {
    if !long() {
        return;
    }
    let (_alone, lab, n) = (Hold::take(Share::Alone), Lab::below(&memory()), length(10));
    let mut worse = 0;
    for experiment in 1..=n {
        let found =
            on_a_slowing_machine(Duration::from_secs(40), || ab(&lab, &format!("{MAIL} --dir . --blocks 4"), &[]));
        worse += usize::from(is(&found, "worse"));
        tell(&format!("slowing {experiment}: {}", line(&found)));
    }
    let one_after_the_other = on_a_slowing_machine(Duration::from_secs(80), || {
        for side in ["first", "second"] {
            let words = format!("repeat {MAIL} --dir . --runs 16 --results {side}");
            let output = lab.command(&words).output().unwrap();
            assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        document(&lab.command("compare first second --format json").output().unwrap())
    });
    tell(&format!("slowing: {worse} of {n} are worse; one after the other: {}", line(&one_after_the_other)));
    assert!(worse == 0 && !is(&one_after_the_other, "worse"), "{worse} of {n}");
}

/// Random reads of a file, and synced appends to small files, as many syncs as `$syncs`.
const SYNCS: &str = "set $syncs=1\n\
    define fileset name=synced,path=$dir,entries=100,dirwidth=10,size=16k,prealloc\n\
    define process name=p { thread name=t,instances=2 {\n\
      flowop openfile name=o,filesetname=synced,fd=1\n\
      flowop write name=w,fd=1,iosize=4k\n\
      flowop fsync name=s,fd=1,iters=$syncs\n\
      flowop closefile name=c,fd=1\n\
    } }\n";

/// Whole reads of many small files, which change their access times.
const READS: &str = "define fileset name=many,path=$dir,entries=20000,dirwidth=100,size=1k,prealloc,reuse\n\
    define process name=p { thread name=t,instances=2 {\n\
      flowop openfile name=o,filesetname=many,fd=1\n\
      flowop readwholefile name=r,fd=1,iosize=4k\n\
      flowop closefile name=c,fd=1\n\
    } }\n";

/// A control group with a limit on memory, which also counts the page cache.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn new() -> Option<Self> {
        let parent = PathBuf::from("/sys/fs/cgroup/memory");
        let group = parent.join(format!("wmlrun-{}", std::process::id()));
        (parent.join("memory.limit_in_bytes").exists() && fs::create_dir(&group).is_ok()).then_some(Self(group))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Each planted cause is the first in the list of its comparison, as the table of docs/compare.md says.
#[test]
fn planted_causes_are_found() {
    needs!(long() && mounts::available(&[Fs::Ext4]));
    let (_alone, lab, n) = (Hold::take(Share::Alone), Lab::new(), length(20));
    let mount = Mount::on_disk(Fs::Ext4, 1 << 30, true);
    let at = mount.dir().display().to_string();
    fs::write(lab.path("syncs.wml"), SYNCS).unwrap();
    fs::write(lab.path("reads.wml"), READS).unwrap();
    let mut wrong = Vec::new();
    let only = std::env::var("WMLRUN_PLANT").ok();
    let mut series = |plant: &str, expected: &str, words: &str, more: &[&str]| {
        if only.as_ref().is_some_and(|only| only != plant) {
            return;
        }
        let mut right = 0;
        for experiment in 1..=n {
            let found = ab(&lab, &format!("{words} --dir {at} --blocks 3 --quiet"), more);
            right += usize::from(found["causes"][0]["name"] == expected);
            tell(&format!("{plant} {experiment}: {}", line(&found)));
        }
        tell(&format!("{plant}: {expected} is first in {right} of {n}"));
        if right * 10 < n * 9 {
            wrong.push(format!("{plant}: {right} of {n}"));
        }
    };
    let random = "randomread --set filesize=256m --set nthreads=2 --set iosize=4k --runtime 1";
    // A run after one with an empty cache would find only a part of the file there.
    let warm = format!("find {at} -type f -exec cat {{}} + > /dev/null");
    series("cold", "hit_ratio", random, &["--before-a", &warm, "--b", "--cold"]);
    series("direct I/O", "hit_ratio", random, &["--before-a", &warm, "--b", "--set directio=1"]);
    series("fsync", "syncs_per_op", "syncs.wml --runtime 1", &["--b", "--set syncs=2"]);
    let remount = |option: &str| format!("mount -o remount,commit=1,{option} {at}");
    let (none, strict) = (remount("noatime"), remount("strictatime"));
    let hooks = ["--before-a", none.as_str(), "--before-b", strict.as_str()];
    series("strictatime", "device_written_bytes_per_op", "reads.wml --runtime 3", &hooks);
    tool("mount", &["-o", "remount,noatime", &at]);
    match MemoryGroup::new().filter(|_| has("sh")) {
        Some(group) => {
            // Pages count for the group that has read them first: they are evicted, and read again in the group.
            let evict = format!(
                "find {at} -type f -size +1M -exec dd of={{}} oflag=nocache conv=notrunc count=0 status=none \\;"
            );
            let group = group.0.display();
            let join = format!("sh -c 'echo $$ > {group}/cgroup.procs; {evict}; {warm}; exec \"$@\"' sh");
            let limit = |mib: u32| format!("echo {mib}M > {group}/memory.limit_in_bytes");
            let (whole, half) = (limit(512), limit(192));
            let hooks = ["--launch", &join, "--before-a", &whole, "--before-b", &half];
            series("half the memory", "hit_ratio", random, &hooks);
        }
        None => skip("the memory of a group of processes cannot be limited"),
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
