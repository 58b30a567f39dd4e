//! Tests threads that create and remove files: the number of files stays constant, no thread waits for long, and
//! threads that can only wait end the run at once.

use std::path::Path;

use crate::cmd::{Wml, count, flowop, flowops, memory, number, short_or_long};
use crate::undisturbed::undisturbed;

/// Regular files below a directory, the marker not counted.
fn files(dir: &Path) -> u64 {
    std::fs::read_dir(dir)
        .unwrap()
        .map(Result::unwrap)
        .map(|entry| match entry.file_type().unwrap() {
            kind if kind.is_dir() => files(&entry.path()),
            _ => u64::from(entry.file_name() != ".wmlrun"),
        })
        .sum()
}

/// Each thread has at most one file removed and not yet made again.
fn varmail(nfiles: &str, sets: &[(&str, &str)]) {
    const THREADS: u64 = 16;
    let seconds = short_or_long("1", "60");
    let call = Wml::below(&memory()).args(["varmail", "--runtime", seconds, "--dir", "."]);
    let output = call.sets(&[("nfiles", nfiles)]).sets(sets).result().run().exits(0);
    let run = output.only_run();
    assert_eq!(run["state"], "complete", "{}", run["ended_by"]);
    let (start, end) = (count(&run["filesets"][0], "files"), files(&output.dir().join("bigfileset")));
    assert!(start.abs_diff(end) <= THREADS, "{start} files at the start, {end} at the end");
    let starved: f64 = flowops(&run).iter().map(|f| number(f, &["starved_seconds"])).sum();
    let all = number(&run, &["measured_seconds"]) * THREADS as f64;
    assert!(starved < 0.01 * all, "starved for {starved} s of {all} thread seconds");
}

#[test]
fn a_small_mail_server_keeps_its_population() {
    undisturbed(|| {
        varmail("1000", &[]);
    });
}

#[test]
fn a_large_mail_server_keeps_its_population() {
    undisturbed(|| {
        // 1.6 GB at full size.
        varmail("100000", if crate::cmd::long() { &[] } else { &[("filesize", "1k")] });
    });
}

/// The only thread that could make a file waits for one itself.
#[test]
fn threads_that_can_only_wait_end_the_run_with_a_report() {
    undisturbed(|| {
        let script = "# dialect: fsl\n\
        define fileset name=data,path=$dir,entries=10,dirwidth=5,size=1k,prealloc=0\n\
        define process name=p { thread name=t,instances=4 {\n\
          flowop deletefile name=remove,filesetname=data\n\
          flowop createfile name=make,filesetname=data,fd=1\n\
          flowop closefile name=close,fd=1\n\
        } }\n";
        let output =
            Wml::new().idle().file("w.wml", script).args(["w.wml", "--runtime", "600"]).result().run().exits(1);
        let run = output.only_run();
        assert_eq!(run["state"], "stuck");
        assert!(number(&run, &["measured_seconds"]) < 60.0, "at once, not when the time is up");
        let why = run["ended_by"].as_str().unwrap();
        assert!(why.contains("remove"), "{why}");
        assert!(output.stdout.contains("stuck"), "the report is printed\n{}", output.shown());
        assert_eq!(output.left(), ["w.wml"], "left behind");
    });
}

/// The thread that posts is between two iterations for longer than a run that is stuck needs to be found. Its last
/// flowop, too, is one that threads may wait in.
#[test]
fn a_thread_that_sleeps_until_its_next_iteration_is_not_stuck() {
    let script = "# dialect: fsl\nset mode quit alldone\n\
        define process name=p {\n\
        thread name=posts,rate=0.1 {\n\
          flowop finishoncount name=last,value=2,target=post\n\
          flowop sempost name=post,target=go,value=1 }\n\
        thread name=waits {\n\
          flowop semblock name=go,value=1\n\
          flowop finishoncount name=end,value=1,target=go } }\n";
    let run =
        Wml::new().idle().file("w.wml", script).args(["w.wml", "--no-quiesce"]).result().run().exits(0).only_run();
    assert_eq!(run["state"], "complete", "{}", run["ended_by"]);
}

/// One thread waits for a free name. The other one would make one, but waits for more posts than the first one can
/// give. Without a time limit the run would never end.
#[test]
fn a_thread_that_starves_and_one_that_waits_for_its_posts_are_stuck() {
    let script = "# dialect: fsl\nset mode quit alldone\n\
        define fileset name=data,path=$dir,entries=10,dirwidth=5,size=1k,prealloc=0\n\
        define process name=p {\n\
        thread name=makes {\n\
          flowop createfile name=make,filesetname=data,fd=1\n\
          flowop closefile name=close,fd=1\n\
          flowop sempost name=post,value=1,target=wait }\n\
        thread name=removes {\n\
          flowop semblock name=wait,value=100\n\
          flowop deletefile name=remove,filesetname=data,iters=100 } }\n\
        run\n";
    let output = Wml::new().idle().file("w.wml", script).args(["w.wml"]).result().run().exits(1);
    let run = output.only_run();
    assert_eq!(run["state"], "stuck", "{}", output.shown());
    let why = run["ended_by"].as_str().unwrap();
    assert!(why.starts_with("p/makes/make: ") && why.contains("a file"), "{why}");
    assert_eq!(count(flowop(&run, "make"), "ops"), 10);
}

/// A step that wants a file and a free name holds neither while it waits for the other: taking one and giving it back is a change,
/// and as long as something changes nothing is stuck.
#[test]
fn a_link_without_a_source_file_is_stuck() {
    undisturbed(|| {
        let script = "# dialect: fsl\n\
        define fileset name=data,path=$dir,entries=10,dirwidth=5,size=1k,prealloc=0\n\
        define process name=p { thread name=t,instances=2 { flowop link name=more,filesetname=data } }\n";
        let output = Wml::new().idle().file("w.wml", script).args(["w.wml", "--runtime", "60"]).result().run().exits(1);
        let run = output.only_run();
        assert_eq!(run["state"], "stuck");
        assert!(run["ended_by"].as_str().unwrap().contains("no existing file"), "{}", run["ended_by"]);
    });
}
