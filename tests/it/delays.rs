//! Tests the accounting of times and errors on a file system with injected delays.
//!
//! The tests check to which account a delay is added, not how fast anything is, so they hold on any machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fuser::Errno;

use crate::cmd::{Wml, count, flowop, number};
use crate::fuse::{self, Act, Kind, Slow};
use crate::undisturbed::undisturbed;

const NO_TIME: Act = Act::After(Duration::ZERO);

/// Latency is the operation's, not that of finding its file: both take as long, and only one is in it.
#[test]
fn a_slow_pick_is_not_part_of_the_latency() {
    undisturbed(|| {
        const DELAY: Duration = Duration::from_millis(2);
        needs!(fuse::available());
        let started = Arc::new(AtomicBool::new(false));
        let begun = Arc::clone(&started);
        let slow = Slow::new(move |kind, _, _| match kind {
            // Nothing is held while the tree is made.
            Kind::Stat => {
                begun.store(true, Ordering::Relaxed);
                Act::After(DELAY)
            }
            Kind::Walk if begun.load(Ordering::Relaxed) => Act::After(DELAY),
            _ => NO_TIME,
        });
        // More directories than a process with so few descriptors keeps open: most are looked for again when a file is picked.
        let script = "# dialect: fsl\nset $any=randvar(type=uniform,min=0,mean=300)\n\
        define fileset name=s,path=$dir,size=0,entries=600,dirwidth=3,dirgamma=0,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=st,filesetname=s,indexed=$any } }\n";
        let call = Wml::below(slow.dir()).idle().file("x.wml", script).under(["prlimit", "--nofile=600:600"]);
        let run = call.args(["x.wml", "--runtime", "3", "--no-quiesce"]).result().run().exits(0).only_run();
        let st = flowop(&run, "st");
        let (ops, tool) = (count(st, "ops") as f64, number(st, &["tool_ns_mean"]));
        let (p50, mean) = (number(st, &["latency_ns", "p50"]), number(st, &["latency_ns", "mean"]));
        let held = |kind| {
            let tally = slow.tally(kind);
            tally.held.as_nanos() as f64 / tally.calls as f64
        };
        let delay = DELAY.as_nanos() as f64;
        assert!(number(st, &["latency_ns", "min"]) >= delay, "{st}");
        // As long as the file system says that it took, and half a delay at most for the way there and back.
        assert!(p50 <= held(Kind::Stat).max(delay) + delay / 2.0, "{p50} ns, held for {}", held(Kind::Stat));
        assert!(tool >= delay, "{tool} ns for finding files, {} for each directory", held(Kind::Walk));
        // And both together are where the time went.
        let spent = ops * (mean + tool) / 1e9;
        assert!((2.4..=3.05).contains(&spent), "{spent} s of 3");
    });
}

/// A drawn delay is no whole number of seconds.
#[test]
fn a_drawn_delay_has_its_fraction() {
    let script = "# dialect: fsl\nset mode quit alldone\n\
        set $think=cvar(type=cvar-uniform,parameters=\"lower:0.05;upper:0.06\")\n\
        define process name=p { thread name=t {\n\
          flowop delay name=d,value=$think,iters=4\n\
          flowop finishoncount name=end,value=1 } }\n";
    let run = Wml::new().file("x.wml", script).args(["x.wml", "--no-quiesce"]).result().run().exits(0).only_run();
    let d = flowop(&run, "d");
    assert!(count(d, "ops") == 4 && number(d, &["latency_ns", "min"]) >= 0.05e9, "{d}");
}

/// Events that no thread has claimed in an earlier phase are no burst in the next one.
#[test]
fn a_phase_begins_without_unclaimed_events() {
    let script = "# dialect: fsl\nset mode quit alldone\neventgen rate=100\n\
        define process name=first { thread name=t {\n\
          flowop delay name=d,value=2\n\
          flowop finishoncount name=end,value=1 } }\n\
        define process name=second,phase=2 { thread name=t {\n\
          flowop hog name=h,value=1\n\
          flowop eventlimit name=e\n\
          flowop finishoncount name=end,value=50,target=h } }\n";
    let run = Wml::new().file("x.wml", script).args(["x.wml", "--no-quiesce"]).result().run().exits(0).only_run();
    // 49 waits of 10 ms follow the two seconds.
    assert!(number(&run, &["measured_seconds"]) >= 2.45, "{}", run["measured_seconds"]);
}

/// An open loop issues requests while one operation stalls: these requests wait, and the stall itself is one operation.
#[test]
fn a_stall_is_in_one_service_time_and_a_quarter_of_the_response_times() {
    undisturbed(|| {
        const STALL: Duration = Duration::from_millis(500);
        needs!(fuse::available());
        let slow = Slow::new(|kind, _, number| match kind {
            Kind::Read if number == 100 => Act::After(STALL),
            _ => NO_TIME,
        });
        let script = "# dialect: fsl\ndefine file name=f,path=$dir,size=1m,prealloc\n\
        define process name=p { thread name=t,rate=200,arrival=constant { flowop read name=rd,filename=f,iosize=4k,random\n\
        flowop finishoncount name=end,value=400,target=rd } }\n";
        let call = Wml::below(slow.dir()).file("x.wml", script).alone();
        // A time limit would end it before the last operations where the machine is busy.
        let run = call.args(["x.wml", "--runtime", "60", "--no-quiesce"]).result().run().exits(0).only_run();
        let rd = flowop(&run, "rd");
        let seconds = |key: &str, figure: &str| number(rd, &[key, figure]) / 1e9;
        assert_eq!(count(rd, "ops"), 400, "{rd}");
        // Of 400 operations one is 0.25 %: the 99th percentile does not see it, the maximum is nothing else.
        assert!(seconds("latency_ns", "max") >= 0.5 && seconds("latency_ns", "p99") < 0.2, "{rd}");
        let total = seconds("latency_ns", "mean") * count(rd, "ops") as f64;
        // The stall once, and a few milliseconds for each of the others on a busy machine. If the operations that waited had
        // it in their service times too, these would be 25 s in all.
        assert!(total < 5.0, "it is counted once: {total} s in all");
        // During the stall a hundred are to start, and wait for what is left of it: a tenth of all wait for 0.3 s or more.
        for (figure, wait) in [("p90", 0.3), ("p95", 0.4), ("p99", 0.48)] {
            let response = seconds("response_ns", figure);
            assert!((response - wait).abs() < 0.1, "{figure} of responses is {response} s, not {wait}");
        }
        assert!(seconds("response_ns", "p50") < 0.15, "{rd}");
        assert_eq!(run["open_loop"]["backlog"], 0);
    });
}

/// The first error ends the run. The message names flowop, file and error, and has help.
#[test]
fn an_error_is_reported_with_flowop_line_path_and_number() {
    needs!(fuse::available());
    for (engine, flowop, what) in [
        ("posix", "read", "read failed"),
        ("posix", "aioread", "asynchronous read failed"),
        ("uring", "aioread", "asynchronous read failed"),
    ] {
        if engine == "uring" && wml::os::uring::available().is_err() {
            continue;
        }
        let slow = Slow::new(|kind, name, _| match kind {
            Kind::Read if name == "00000003" => Act::Fail(Errno::EIO),
            _ => NO_TIME,
        });
        let script = format!(
            "# dialect: fsl\ndefine fileset name=s,path=$dir,size=64k,entries=5,dirwidth=10,prealloc\n\
             define process name=p {{ thread name=t {{\n\
             flowop openfile name=op,filesetname=s,fd=1\n\
             flowop {flowop} name=rd,fd=1,iosize=4k,random\n\
             flowop closefile name=cl,fd=1\n}} }}\n"
        );
        let call =
            Wml::below(slow.dir()).idle().file("x.wml", &script).args(["x.wml", "--runtime", "20", "--no-quiesce"]);
        let output = call.args(["--engine", engine]).result().run().exits(1);
        let run = output.only_run();
        assert_eq!(run["state"], "failed");
        let failure = &run["failure"];
        assert_eq!((failure["flowop"].as_str(), failure["line"].as_u64()), (Some("p/t/rd"), Some(5)));
        assert_eq!(failure["errno"], "EIO");
        assert!(failure["path"].as_str().unwrap().ends_with("/00000003"), "{failure}");
        assert!(failure["what"].as_str().unwrap().starts_with(what), "{failure}");
        assert_eq!(count(&run["summary"], "errors"), 1);
        for word in ["p/t/rd", "00000003", "Input/output error"] {
            assert!(output.shown().contains(word), "{word} is not in\n{}", output.shown());
        }
    }
}

/// All operations in flight at the end are reported, and the report does not wait for them.
#[test]
fn an_operation_that_stalls_at_the_end_is_counted_as_late() {
    undisturbed(|| {
        needs!(fuse::available());
        for engine in ["posix", "uring"] {
            if engine == "uring" && wml::os::uring::available().is_err() {
                continue;
            }
            // The first ten are quick, what comes then takes longer than the run.
            let slow = Slow::new(|kind, _, number| match kind {
                Kind::Read if number > 10 => Act::After(Duration::from_secs(8)),
                _ => NO_TIME,
            });
            let script = "# dialect: fsl\ndefine file name=f,path=$dir,size=1m,prealloc\n\
            define process name=p { thread name=t { flowop aioread name=rd,filename=f,iosize=4k,random,directio,iodepth=3 } }\n";
            let call =
                Wml::below(slow.dir()).idle().file("x.wml", script).args(["x.wml", "--runtime", "1", "--no-quiesce"]);
            let output = call.args(["--engine", engine]).result().run().exits(0);
            let run = output.only_run();
            assert_eq!(run["state"], "complete");
            assert_eq!((count(&run, "late_ops"), count(flowop(&run, "rd"), "ops")), (3, 10), "{engine}");
            assert!(number(&run, &["late_oldest_seconds"]) > 0.1);
            let (told, ended) = (output.reported.unwrap().as_secs_f64(), number(&run, &["finished_seconds"]));
            // Far less than the calls take that are still out, and enough for a busy machine.
            assert!(told - ended <= 4.0, "the report came {:.2} s after the end", told - ended);
        }
    });
}

/// A thread that has nothing left to do is done when what it has out is: that counts, and an error that shows only then fails the
/// run as any other does.
#[test]
fn operations_in_flight_at_the_end_of_a_thread_are_counted() {
    undisturbed(|| {
        const HELD: Duration = Duration::from_millis(700);
        needs!(fuse::available());
        for engine in ["posix", "uring"] {
            if engine == "uring" && wml::os::uring::available().is_err() {
                continue;
            }
            for fails in [false, true] {
                // The last read is let go long after the last file has been removed.
                let slow = Slow::new(move |kind, _, number| match kind {
                    Kind::Read if number == 4 => {
                        std::thread::sleep(HELD);
                        if fails { Act::Fail(Errno::EIO) } else { NO_TIME }
                    }
                    _ => NO_TIME,
                });
                let script = |mode: &str| {
                    format!(
                        "# dialect: fsl\nset mode quit {mode}\ndefine file name=f,path=$dir,size=1m,prealloc\n\
                     define fileset name=s,path=$dir,size=4k,entries=3,dirwidth=10,prealloc\n\
                     define process name=p {{ thread name=t {{\n\
                     flowop aioread name=rd,filename=f,iosize=4k,random,directio,iodepth=8\n\
                     flowop deletefile name=del,filesetname=s\n}} }}\n"
                    )
                };
                let run = |mode: &str, args: &[&str]| {
                    let call =
                        Wml::below(slow.dir()).idle().file("x.wml", &script(mode)).args(["x.wml", "--runtime", "20"]);
                    call.args(["--no-quiesce", "--engine", engine]).args(args).result().run()
                };
                if fails {
                    let failed = run("alldone", &[]).exits(1).only_run();
                    assert_eq!(
                        (&failed["state"], &failed["failure"]["errno"]),
                        (&"failed".into(), &"EIO".into()),
                        "{engine}"
                    );
                    assert_eq!(failed["failure"]["flowop"], "p/t/rd");
                    assert_eq!(count(&failed["summary"], "errors"), 1);
                    continue;
                }
                let done = run("firstdone", &[]).exits(0).only_run();
                assert_eq!(done["ended_by"], "first thread done");
                assert_eq!((count(flowop(&done, "rd"), "ops"), count(&done, "late_ops")), (4, 0), "{engine}");
                assert!(
                    number(&done, &["measured_seconds"]) >= HELD.as_secs_f64(),
                    "the last of it is in the time too"
                );
            }
        }
    });
}

/// What was still under way when the run had ended belongs to no measurement, and fails none: it is late, or counted as an error.
#[test]
fn an_error_after_the_end_does_not_fail_the_run() {
    undisturbed(|| {
        needs!(fuse::available());
        for (mode, end) in [("firstdone", "first thread done"), ("timeout", "count reached")] {
            let slow = Slow::new(|kind, _, _| match kind {
                Kind::Read => {
                    std::thread::sleep(Duration::from_millis(700));
                    Act::Fail(Errno::EIO)
                }
                _ => NO_TIME,
            });
            let finish = if mode == "timeout" { "flowop finishoncount name=end,value=1\n" } else { "" };
            let script = format!(
                "# dialect: fsl\nset mode quit {mode}\ndefine file name=f,path=$dir,size=1m,prealloc\n\
             define fileset name=s,path=$dir,size=4k,entries=1,dirwidth=10,prealloc\n\
             define process name=p {{\n\
             thread name=ends {{\nflowop deletefile name=del,filesetname=s\n{finish}}}\n\
             thread name=late {{ flowop read name=rd,filename=f,iosize=4k,random }}\n}}\n"
            );
            let call =
                Wml::below(slow.dir()).idle().file("x.wml", &script).args(["x.wml", "--runtime", "20", "--no-quiesce"]);
            let run = call.result().run().exits(0).only_run();
            assert_eq!((&run["state"], &run["ended_by"]), (&"complete".into(), &end.into()), "{mode}");
            assert_eq!(count(flowop(&run, "rd"), "ops"), 0);
        }
    });
}
