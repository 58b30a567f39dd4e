//! Flowops and attributes that models of recorded programs use: processor time between calls, executions that threads
//! share, directories and unnamed files in slots.

use crate::flowops::{done, named, once};
use crate::support::{self, Outcome};
use std::fs;
use std::path::Path;

fn all_done(text: &str, dir: &Path) -> Outcome {
    let outcome = support::run("test.wml", text, support::real(60_000, dir));
    assert_eq!(outcome.run().ended_by, "all threads done", "{}", outcome.said);
    outcome
}

/// Threads that come while one flushes are covered by one flush.
#[test]
fn a_group_executes_once_for_all_who_wait() {
    let dir = tempfile::tempdir().unwrap();
    let text = "# dialect: fsl\nset mode quit alldone\ndefine file name=log,path=$dir,size=64k,prealloc\n\
        define flowop name=flush,group,measure=commit {\n\
        flowop fsync name=fs,filename=log\nflowop delay name=d,value=0.02\n}\n\
        define process name=p { thread name=t,instances=8 {\n\
        flowop appendfile name=ap,filename=log,iosize=4k\nflowop flush name=f,iters=5\n\
        flowop finishoncount name=end,value=1\n} }\n";
    let outcome = all_done(text, dir.path());
    let (commits, flushes) = (named(&outcome, "commit"), named(&outcome, "f.fs"));
    assert_eq!(commits.ops, 8 * 5);
    // Of one thread each commit needs a flush of its own. Of all eight not all flush alone.
    assert!((5..40).contains(&flushes.ops), "{} flushes", flushes.ops);
}

/// A group whose leader ends within it is left to the others.
#[test]
fn a_thread_that_ends_in_a_group_leaves_it() {
    let dir = tempfile::tempdir().unwrap();
    let text = "# dialect: fsl\nset mode quit alldone\n\
        define flowop name=once,group { flowop nothing name=n\nflowop finishoncount name=end,value=1 }\n\
        define fileset name=s,path=$dir\n\
        define process name=p { thread name=t,instances=4 { flowop once name=o } }\n";
    assert_eq!(named(&all_done(text, dir.path()), "o.n").ops, 4);
}

#[test]
fn a_flowop_that_waits_for_others_is_refused_in_a_group() {
    for flowop in ["semblock name=x,value=1", "block name=x", "lock name=x,filesetname=s", "aiowait name=x"] {
        let text = format!(
            "define fileset name=s,path=/nowhere,entries=1,prealloc\ndefine flowop name=flush,group {{ flowop {flowop} }}\n\
             define process name=p {{ thread name=t {{ flowop flush name=f }} }}\n"
        );
        let outcome = support::run("test.wml", &text, support::null(1000));
        assert!(outcome.said.contains("which has `group`"), "{}", outcome.said);
    }
}

/// The processor time of a thread is at least what it was asked for, however often it lost its processor.
#[test]
fn compute_uses_processor_time() {
    let dir = tempfile::tempdir().unwrap();
    let used = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let before = used();
    let outcome = done(
        &once(
            "define fileset name=s,path=$dir",
            "flowop compute name=long,value=0.03,iters=3\nflowop compute name=short,value=0.000004,iters=1000",
        ),
        dir.path(),
    );
    assert_eq!((named(&outcome, "long").ops, named(&outcome, "short").ops), (3, 1000));
    let used = used() - before;
    assert!(used >= 90_000_000, "{used} ns");
}

#[test]
fn a_directory_in_a_slot_is_listed_again_from_its_start() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define fileset name=s,path=$dir,entries=4,dirwidth=10,size=0,prealloc";
    let outcome = done(
        &once(
            set,
            "flowop opendir name=od,filesetname=s,fd=1\nflowop listdir name=ls,fd=1,iters=3\nflowop closedir name=cd,fd=1",
        ),
        dir.path(),
    );
    let listed = named(&outcome, "ls");
    // getdents twice each time; the second and third time lseek before.
    assert_eq!((listed.ops, listed.calls), (3, 3 + 2));
}

#[test]
fn a_file_without_a_name_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define fileset name=s,path=$dir,entries=1,size=0,prealloc";
    let flowops = "flowop createfile name=cr,filesetname=s,fd=1,tmpfile\nflowop write name=wr,fd=1,iosize=4k,iters=3\n\
        flowop lseek name=to,fd=1\nflowop read name=rd,fd=1,iosize=12k\nflowop closefile name=cl,fd=1";
    let outcome = done(&once(set, flowops), dir.path());
    assert_eq!((named(&outcome, "wr").bytes, named(&outcome, "rd").bytes), (12 << 10, 12 << 10));
    let names = fs::read_dir(dir.path().join("s")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.filter(|name| name.to_str().unwrap().starts_with('0')).count() <= 1);
}

/// What several buffers carry is what one would: written by one flowop, read by another.
#[test]
fn several_buffers_are_one_transfer() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define file name=f,path=$dir,size=0,prealloc";
    let flowops = "flowop writevec name=wr,filename=f,iosize=10000,segments=7,iters=3\nflowop closefile name=c\n\
        flowop readvec name=rd,filename=f,iosize=10000,segments=64,iters=4";
    let outcome = done(&once(set, flowops), dir.path());
    assert_eq!(fs::metadata(dir.path().join("f/00000001/00000001")).unwrap().len(), 30_000);
    assert_eq!((named(&outcome, "wr").bytes, named(&outcome, "rd").bytes), (30_000, 40_000));
}

/// The time that a thread waits for the one which flushes is not the program's own.
#[test]
fn a_wait_for_a_group_is_no_time_of_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let text = "# dialect: fsl\nset mode quit alldone\ndefine file name=log,path=$dir,size=64k,prealloc\n\
        define flowop name=flush,group { flowop delay name=d,value=0.02 }\n\
        define process name=p { thread name=t,instances=8 {\n\
        flowop flush name=f\nflowop statfile name=st,filesetname=log\n\
        flowop finishoncount name=end,value=5,target=st\n} }\n";
    let outcome = all_done(text, dir.path());
    // Each waits for 20 ms or more before it.
    let own = named(&outcome, "st").tool_ns_mean.unwrap();
    assert!(own < 10e6, "{own} ns");
}

/// At a place of its own each lock is free; the whole file would be one lock.
#[test]
fn locks_are_taken_where_they_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define file name=f,path=$dir,size=64k,prealloc";
    let flowops = "flowop openfile name=o1,filename=f,fd=1\nflowop openfile name=o2,filename=f,fd=2\n\
        flowop lock name=l1,filename=f,fd=1,at=1g\nflowop lock name=l2,filename=f,fd=2,at=0,iosize=4k\n\
        flowop mmapread name=m,filename=f,fd=1,at=1g,iosize=4k\nflowop closefile name=c1,fd=1\nflowop closefile name=c2,fd=2";
    let outcome = done(&once(set, flowops), dir.path());
    assert_eq!((named(&outcome, "l2").ops, named(&outcome, "m").ops, named(&outcome, "m").bytes), (1, 1, 0));
}

/// A program that reads a short file into a large buffer makes one call.
#[test]
fn a_read_at_a_place_is_one_call() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define file name=f,path=$dir,size=64k,prealloc";
    let flowops = "flowop truncate name=tr,filename=f,fd=1,value=100\nflowop read name=r,filename=f,fd=1,at=0,iosize=4k\n\
        flowop readvec name=v,filename=f,fd=1,at=50,iosize=4k";
    let outcome = done(&once(set, flowops), dir.path());
    for (name, bytes) in [("r", 100), ("v", 50)] {
        let found = named(&outcome, name);
        assert_eq!((found.ops, found.bytes, found.calls), (1, bytes, 0), "{name}");
    }
}

#[test]
fn what_the_words_do_not_mean_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (flowops, says) in [
        ("flowop appendfile name=a,filename=f,iosize=4k,onecall,wrap=1m", "both `onecall` and `wrap`"),
        ("flowop openfile name=o,filename=f,fd=1\nflowop closedir name=c,fd=1", "slot 1 has a file"),
        ("flowop readvec name=r,filename=f,iosize=4k,segments=65", "`segments` of flowop `r` is 65"),
        ("flowop read name=r,filename=f,iosize=4k,at=0,random", "both `random` and `at`"),
        ("flowop opendir name=o,filename=f", "has no `fd=`"),
    ] {
        let text = once("define file name=f,path=$dir,size=64k,prealloc", flowops);
        let outcome = support::run("test.wml", &text, support::real(60_000, dir.path()));
        let failure = outcome.document.runs.last().map(|run| format!("{:?}", run.failure)).unwrap_or_default();
        assert!(outcome.said.contains(says) || failure.contains(says), "{flowops}: {}{failure}", outcome.said);
    }
}
