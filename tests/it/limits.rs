//! Tests the limits of users, shells and containers: they are checked before anything is created, and a limit that is
//! exceeded during a run ends it cleanly.

use std::time::Duration;

use rustix::process::Signal;

use crate::cmd::{Output, Wml, count, flowop, has, memory, number, skip, tool};
use crate::sums::assert_adds_up;
use crate::undisturbed::undisturbed;

/// Whether limits can be set for a call. If not, says so for `test`.
fn available() -> bool {
    let there = has("prlimit") && has("taskset");
    if !there {
        skip("prlimit or taskset is missing");
    }
    there
}

const READER: &str = "define process name=p { thread name=t { flowop statfile name=s,filesetname=data } }\n";

fn call(set: &str, processes: &str, limit: &str) -> Wml {
    let script = format!("define fileset name=data,path=$dir,dirwidth=20,prealloc=100,{set}\n{processes}");
    let call = Wml::below(&memory()).file("x.wml", &script).args(["x.wml", "--no-quiesce"]).result();
    if limit.is_empty() { call } else { call.under(["prlimit", limit]) }
}

/// It ended as itself says, not by a signal or a panic, and nothing of it is left.
#[track_caller]
fn assert_clean(output: &Output) {
    let shown = output.shown();
    assert!(output.status.code().is_some(), "{} ended it\n{shown}", output.status);
    assert!(!shown.contains("panicked"), "{shown}");
    assert!(output.left().iter().all(|name| name == "x.wml"), "left behind: {:?}\n{shown}", output.left());
}

#[track_caller]
fn assert_refused(output: Output, words: &[&str]) {
    let output = output.exits(3);
    assert_clean(&output);
    for word in words.iter().chain(&["help:"]) {
        assert!(output.stderr.contains(word), "no `{word}` in\n{}", output.stderr);
    }
}

#[test]
fn insufficient_resources_are_refused_before_anything_is_created() {
    let memsize = READER.replace("name=t", "name=t,memsize=60g,instances=9");
    let large =
        "define process name=p { thread name=t,instances=500 { flowop write name=w,filesetname=data,iosize=2g } }\n";
    for processes in [memsize.as_str(), large] {
        assert_refused(call("entries=5,size=4k", processes, "").run(), &["of memory", "is available"]);
    }
    // Each thread has a buffer for a whole file.
    let whole =
        "define process name=p { thread name=t,instances=500 { flowop readwholefile name=r,filesetname=data } }\n";
    let refused = call("entries=5,size=1t", whole, "").args(["--engine", "null"]).run();
    assert_refused(refused, &["TiB of memory", "is available"]);
    // A directory of the user's stays, and nothing is in it.
    let call = call("entries=5,size=4k", &memsize, "").args(["--dir", "d"]);
    std::fs::create_dir(call.dir().join("d")).unwrap();
    let output = call.run().exits(3);
    assert_eq!(std::fs::read_dir(output.dir().join("d")).unwrap().count(), 0, "{}", output.shown());
}

/// What depends on the course of the run is shown in the plan, and no reason to refuse the run.
#[test]
fn the_plan_shows_the_most_memory_that_may_be_needed() {
    let plan = |flowops: &str| {
        let script = format!(
            "# dialect: fsl\ndefine fileset name=data,path=$dir,entries=5,dirwidth=20,size=64k,prealloc=100\n\
             define process name=p {{ thread name=t,instances=200 {{ {flowops} }} }}\n"
        );
        Wml::below(&memory()).file("x.wml", &script).args(["plan", "-v", "x.wml"]).run().exits(0).stdout
    };
    let write = "flowop aiowrite name=w,filesetname=data,iosize=1m";
    for (flowops, shown) in [
        (write.to_owned(), "412.5 MiB of memory (up to 50.2 GiB), "),
        // Half of them are waited for, so that two are in flight at most.
        (format!("{write} flowop aiowait name=wait"), "415.6 MiB of memory (up to 615.6 MiB), "),
        (format!("{write},iodepth=4"), "1012.5 MiB of memory, "),
    ] {
        let out = plan(&flowops);
        assert!(out.contains(shown), "no `{shown}` in\n{out}");
    }
}

/// The runs of a loop do not repeat the note, although the available memory is a little different before each.
#[test]
fn runs_that_may_need_the_same_memory_have_one_note() {
    // One file of the set is larger than any memory. The delay is longer than the run, so that none is read.
    let script = "# dialect: fsl\n\
        define fileset name=data,path=$dir,entries=100,dirwidth=20,sizetable=\"4k:99 64t:1\",prealloc\n\
        define process name=p { thread name=t {\n\
        flowop delay name=d,value=1\nflowop readwholefile name=r,filesetname=data } }\n\
        foreach $n in 1,2 { run 0.1 }\n";
    let output = Wml::below(&memory()).file("x.wml", script).args(["x.wml", "--engine", "null"]).run();
    assert_eq!(output.stderr.matches("the run may need up to").count(), 1, "{}", output.shown());
}

#[test]
fn a_limit_on_file_sizes_is_an_error_of_the_operation_that_exceeds_it() {
    needs!(available());
    assert_refused(call("entries=2,size=4m", READER, "--fsize=1048576").run(), &["4.0 MiB", "1.0 MiB", "ulimit -f"]);
    let writer = "define process name=p { thread name=t { flowop appendfile name=a,filesetname=data,iosize=64k } }\n";
    let output = call("entries=1,size=4k", writer, "--fsize=1048576").args(["--runtime", "20"]).run().exits(1);
    assert_clean(&output);
    let run = output.only_run();
    assert_eq!(run["failure"]["errno"], "EFBIG", "{}", output.shown());
    assert_adds_up(&run);
    // Up to the limit the write goes out, and is counted.
    let a = flowop(&run, "a");
    assert_eq!(count(a, "bytes") + count(a, "late_bytes") + 4096, 1 << 20, "{a}");
}

#[test]
fn a_limit_on_processor_time_ends_the_run_with_its_report() {
    needs!(available());
    let output = call("entries=5,size=4k", READER, "--cpu=1:60").args(["--runtime", "60"]).run();
    let output = output.exits(128 + Signal::XCPU.as_raw());
    assert_clean(&output);
    let run = output.only_run();
    assert_eq!((&run["state"], &run["ended_by"]), (&"interrupted".into(), &"SIGXCPU".into()));
    assert!(count(&run["summary"], "ops") > 0);
    assert_adds_up(&run);
}

#[test]
fn any_limit_on_address_space_is_refused_or_enough() {
    needs!(available());
    let threads = READER.replace("name=t", "name=t,instances=40,memsize=1m");
    let mut codes = Vec::new();
    for mib in [128, 160, 192, 256, 384, 2048] {
        let limit = format!("--as={}", mib << 20);
        let output = call("entries=50,size=4k", &threads, &limit).args(["--runtime", "0.2"]).run();
        assert_clean(&output);
        codes.push(output.code());
        assert!(matches!(output.code(), 0 | 3), "{mib} MiB: {}", output.shown());
        if output.code() == 3 {
            assert!(output.stderr.contains("address space"), "{mib} MiB: {}", output.stderr);
        }
    }
    assert_eq!((codes.first(), codes.last()), (Some(&3), Some(&0)), "{codes:?}");
}

/// If only one of several processors is allowed, threads are bound to it, and its utilisation is reported.
#[test]
fn processors_that_are_not_allowed_are_neither_used_nor_counted() {
    undisturbed(|| {
        needs!(available());
        let all = tool("taskset", &["-cp", &std::process::id().to_string()]);
        let last = all.trim().rsplit([' ', ',', '-']).next().unwrap().to_owned();
        let readers = READER.replace("name=t", "name=t,instances=3");
        let call = call("entries=50,size=4k", &readers, "").under(["taskset", "-c", &last]);
        let output = call.args(["--runtime", "0.6", "--pin", "-v"]).run().exits(0);
        let run = output.only_run();
        assert_eq!(run["pinned_processors"], serde_json::json!([last.parse::<u64>().unwrap()]));
        assert_eq!(output.result()["environment"]["cpu"]["count"], 1);
        assert!(output.stdout.contains(&format!("processors {last}")), "{}", output.stdout);
        let summary = &run["summary"];
        let busy = number(summary, &["cpu_busy"]);
        assert!(busy > 0.0 && busy <= 1.0, "{summary}");
        // One processor gives no more time than there is, and no more than it was busy.
        let each = number(summary, &["system_cpu_us_per_op"]) * number(summary, &["ops"]) / 1e6;
        assert!(each <= number(&run, &["measured_seconds"]) * 1.05 + 0.05, "{each} s on one processor");
        assert!((each / number(&run, &["measured_seconds"]) - busy).abs() < 0.06, "{each} s, {busy} busy");
    });
}

#[test]
fn without_pin_the_result_names_no_processor() {
    let run = call("entries=50,size=4k", READER, "").args(["--runtime", "0.2"]).run().exits(0).only_run();
    assert!(run["pinned_processors"].is_null());
}

/// A processor's time is up while files are made: nothing of them is left.
#[test]
fn a_limit_on_processor_time_ends_population() {
    needs!(available());
    let output = call("entries=500000,size=0", READER, "--cpu=1:60").timeout(Duration::from_mins(5)).run();
    let output = output.exits(128 + Signal::XCPU.as_raw());
    assert_clean(&output);
}

/// Threads that each keep files open, started by one that may not raise its limits.
fn openers(limit: &str) -> Wml {
    let threads = "define process name=p { thread name=t,instances=50 {\n\
        flowop openfile name=o,filesetname=data,fd=1\nflowop openfile name=q,filesetname=data,fd=2\n\
        flowop read name=r,fd=1,iosize=4k\nflowop closefile name=c,fd=1\nflowop closefile name=e,fd=2 } }\n";
    let call = call("entries=200,size=4k", threads, "").args(["--runtime", "0.3"]);
    call.under(["setpriv", "--bounding-set=-sys_resource", "prlimit", limit])
}

#[test]
fn a_limit_on_open_files_is_compared_with_the_plan_before_anything_is_created() {
    needs!(available());
    needs!(has("setpriv") && rustix::process::geteuid().is_root(), "it needs root and setpriv");
    assert_refused(openers("--nofile=64:64").run(), &["descriptors", "64 are allowed", "ulimit -n"]);
    // However low it is: refused before anything is made, or enough.
    let threads = "define process name=p { thread name=t,instances=2 { flowop openfile name=o,filesetname=data,fd=1\n\
        flowop write name=w,fd=1,iosize=4k\nflowop closefile name=c,fd=1 } }\n";
    for most in [7, 10, 12, 14, 20, 28, 31, 32, 40] {
        let call = call("entries=20,size=4k", threads, "").args(["--runtime", "0.3"]);
        let output = call
            .under([
                "prlimit".to_owned(),
                format!("--nofile={most}:{most}"),
                "setpriv".into(),
                "--bounding-set=-sys_resource".into(),
            ])
            .run();
        let code = output.status.code().unwrap();
        assert!(matches!(code, 0 | 3), "{most}: {code}\n{}", output.shown());
        assert!(code == 0 || !output.shown().contains("creating"), "{most}: {}", output.shown());
    }
    // The soft limit is raised to the hard one.
    assert_clean(&openers("--nofile=64:2048").run().exits(0));
    // What makes no calls opens nothing.
    assert_clean(&openers("--nofile=64:64").args(["--engine", "null"]).run().exits(0));
}

/// Blocks and composites are visited by recursion, up to a bound.
#[test]
fn a_small_stack_is_enough_for_deeply_nested_scripts() {
    let small = || ["sh", "-c", "ulimit -s 128 && exec \"$@\"", "sh"];
    let loops =
        |depth: usize| format!("{}echo \"innermost\"\n{}", "foreach $x in 1 {\n".repeat(depth), "}\n".repeat(depth));
    let run = |text: &str, args: &[&str]| Wml::new().file("x.wml", text).args(args).under(small()).run();
    let output = run(&loops(60), &["x.wml"]).exits(0);
    assert!(output.stdout.contains("innermost"), "{}", output.shown());
    for command in ["check", "plan"] {
        run(&loops(1000), &[command, "x.wml"]).exits(2);
    }
    let composites: String =
        (0..31).map(|i| format!("define flowop name=c{i} {{ flowop c{} name=x }}\n", i + 1)).collect();
    let text = format!(
        "{composites}define flowop name=c31 {{ flowop hog name=h,value=1 }}\n\
         define process name=p {{ thread name=t {{ flowop c0 name=x }} }}\n"
    );
    run(&text, &["plan", "x.wml"]).exits(0);
}

/// Where no memory may be locked, a ring has no registered buffers, and works.
#[test]
fn asynchronous_io_works_without_locked_memory() {
    needs!(available());
    needs!(has("setpriv") && rustix::process::geteuid().is_root(), "it needs root and setpriv");
    let threads = "define process name=p { thread name=t { flowop aiowrite name=a,filesetname=data,iosize=4k\n\
        flowop aiowait name=w } }\n";
    let call = call("entries=5,size=64k", threads, "").args(["--runtime", "0.3"]);
    let limits = ["setpriv", "--bounding-set=-ipc_lock", "prlimit", "--memlock=0:0"];
    let output = call.under(limits).run().exits(0);
    assert_clean(&output);
    let run = output.only_run();
    assert!(count(flowop(&run, "a"), "ops") > 0, "{}", output.shown());
    assert_adds_up(&run);
}

/// Each thread takes four memory mappings, of which a process has 65,530 by default.
#[test]
fn more_threads_than_memory_mappings_are_refused_before_anything_is_created() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap().trim().parse::<u64>().unwrap();
    let most = (read("/proc/sys/vm/max_map_count") / 4).min(read("/proc/sys/kernel/threads-max"));
    let threads = READER.replace("name=t", &format!("name=t,instances={},memsize=4k", (most + 1).min(1 << 20)));
    let output = call("entries=5,size=4k", &threads, "").args(["--runtime", "0.2"]).run().exits(3);
    assert!(output.stderr.contains("more are allowed"), "{}", output.stderr);
    assert_clean(&output);
}

/// The threads of another process are ready then. They end without an operation, and nothing is late.
#[test]
fn a_process_that_cannot_be_prepared_ends_the_others() {
    needs!(rustix::process::geteuid().is_root() && has("setpriv"), "it needs root and setpriv");
    let processes = "\
define process name=ready { thread name=t,instances=5 { flowop statfile name=s,filesetname=data } }
define process name=eager,nice=-5 { thread name=t { flowop statfile name=s,filesetname=data } }
";
    for start in ["", "create processes\n"] {
        let call = call("entries=5,size=4k", &format!("{processes}{start}"), "");
        let call = call.under(["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]);
        // A directory of the user's, in which only `--clean` removes the file set.
        let output = call.folder("d").args(["--dir", "d", "--clean", "--runtime", "1"]).run().exits(3);
        let shown = output.shown();
        assert!(shown.contains("niceness of process `eager`"), "{shown}");
        assert!(!shown.contains("system call"), "{shown}");
        assert_eq!(std::fs::read_dir(output.dir().join("d")).unwrap().count(), 0, "{shown}");
        if start.is_empty() {
            let run = output.only_run();
            assert_eq!((&run["state"], &run["late_ops"]), (&"failed".into(), &0.into()), "{run}");
            assert!(run["stragglers"].as_array().is_none_or(Vec::is_empty), "{run}");
        }
    }
}
