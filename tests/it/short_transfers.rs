//! Tests a file system that transfers less than requested, is interrupted by signals, or reports its errors when a file
//! is closed.
//!
//! The rest of a short transfer is transferred by the next call. A transfer that cannot be completed is counted with
//! the bytes that it has moved, and no error is reported without a failed call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use fuser::Errno;
use serde_json::Value;

use crate::cmd::{Output, Wml, count, flowop};
use crate::fuse::{self, Act, Kind, Slow};
use crate::sums::assert_adds_up;
use crate::undisturbed::undisturbed;
use std::time::Duration;

const AS_USUAL: Act = Act::After(Duration::ZERO);

/// A file system whose rule has a say once the run opens its first file. The rule is given the kind of the call and its number since.
fn faulty(rule: impl Fn(Kind, u64) -> Act + Send + Sync + 'static) -> Slow {
    let begun = AtomicBool::new(false);
    let numbers = [const { AtomicU64::new(0) }; 4];
    Slow::new(move |kind, _, _| {
        begun.fetch_or(kind == Kind::Open, Relaxed);
        let place = [Kind::Read, Kind::Write, Kind::Flush, Kind::CopyRange].iter().position(|k| *k == kind);
        match place {
            Some(place) if begun.load(Relaxed) => rule(kind, numbers[place].fetch_add(1, Relaxed)),
            _ => AS_USUAL,
        }
    })
}

/// Runs the flowops of one thread on 4 files of 40,000 bytes.
fn run(slow: &Slow, flowops: &str, args: &[&str]) -> Output {
    let script = format!(
        "define fileset name=data,path=$dir,size=40000,entries=4,dirwidth=10,prealloc=100\n\
         define process name=p {{ thread name=t {{ {flowops} }} }}\n"
    );
    let call =
        Wml::new().file("x.wml", &script).args(["x.wml", "--runtime", "0.2", "--no-quiesce", "--clean", "--dir"]);
    call.args([slow.dir()]).args(args).result().timeout(Duration::from_mins(1)).run()
}

/// The flowop `x` of a run that went well.
#[track_caller]
fn went_well(slow: &Slow, flowops: &str, args: &[&str]) -> Value {
    let run = run(slow, flowops, args).exits(0).only_run();
    assert_adds_up(&run);
    let x = flowop(&run, "x").clone();
    assert_eq!(x["errors"], serde_json::json!({}), "{flowops}");
    assert!(count(&x, "ops") > 0, "{flowops}: no operation");
    x
}

#[test]
fn the_rest_of_a_short_transfer_is_moved_by_further_calls() {
    undisturbed(|| {
        needs!(fuse::available());
        let slow = faulty(|kind, _| match kind {
            Kind::Read | Kind::Write | Kind::CopyRange => Act::Short(1000),
            _ => AS_USUAL,
        });
        // Each with the bytes of an operation and the calls that those take.
        for (flowops, bytes, calls) in [
            ("flowop write name=x,filesetname=data,iosize=4k,random", 4096, 5),
            ("flowop write name=x,filesetname=data,iosize=3k,wrap=30k", 3072, 4),
            ("flowop appendfile name=x,filesetname=data,iosize=2k,wrap=100k", 2048, 3),
            ("flowop writewholefile name=x,filesetname=data,iosize=8k", 40_960, 45),
            ("flowop read name=x,filesetname=data,iosize=4k,random", 4096, 5),
            ("flowop read name=x,filesetname=data,iosize=8000", 8000, 8),
            ("flowop readwholefile name=x,filesetname=data,iosize=1m", 40_000, 40),
            ("flowop bufwrite name=x,filesetname=data,iosize=8k,wrap=40k", 8192, 9),
            ("flowop bufread name=x,filesetname=data,iosize=8000", 8000, 1),
            (
                "flowop openfile name=o,filesetname=data,fd=1,indexed=2 flowop copyrange name=x,filesetname=data,fd=2,srcfd=1,indexed=1 \
             flowop closefile name=c,fd=1 flowop closefile name=d,fd=2",
                40_000,
                1,
            ),
        ] {
            let x = went_well(&slow, flowops, &[]);
            let (ops, late) = (count(&x, "ops"), count(&x, "late_ops"));
            // The operation that the end of the run found under way may have moved less.
            let whole = ops * bytes;
            assert!(count(&x, "bytes") <= whole && count(&x, "bytes") + bytes > whole, "{flowops}: {x}");
            assert!(count(&x, "calls") + calls >= (ops + late) * (calls - 1), "{flowops}: {x}");
        }
    });
}

#[test]
fn short_asynchronous_operations_are_continued() {
    undisturbed(|| {
        needs!(fuse::available());
        let slow = faulty(|kind, _| if matches!(kind, Kind::Read | Kind::Write) { Act::Short(1500) } else { AS_USUAL });
        // The kernel itself makes an error (EIO) of a short write to FUSE that nobody waits for.
        for (engine, words) in [("posix", ["aiowrite", "aioread"].as_slice()), ("uring", &["aioread"])] {
            for word in words {
                let flowops =
                    format!("flowop {word} name=x,filesetname=data,iosize=4k,random,iodepth=4 flowop aiowait name=w");
                let x = went_well(&slow, &flowops, &["--engine", engine]);
                assert_eq!(count(&x, "bytes"), 4096 * count(&x, "ops"), "{word} by {engine}: {x}");
                assert!(count(&x, "calls") >= 2 * count(&x, "ops"), "{word} by {engine}: {x}");
            }
        }
    });
}

/// An error in the middle of an operation: the operation counts as an error, and its bytes are counted.
#[test]
fn bytes_written_before_an_error_are_counted() {
    undisturbed(|| {
        needs!(fuse::available());
        for (flowops, moved) in [
            ("flowop write name=x,filesetname=data,iosize=4k,random", Kind::Write),
            ("flowop write name=x,filesetname=data,iosize=4k,wrap=40k", Kind::Write),
            ("flowop writewholefile name=x,filesetname=data,iosize=8k", Kind::Write),
            ("flowop read name=x,filesetname=data,iosize=4k,random", Kind::Read),
            ("flowop readwholefile name=x,filesetname=data,iosize=8k", Kind::Read),
        ] {
            let went = Arc::new(AtomicU64::new(0));
            let seen = Arc::clone(&went);
            let slow = faulty(move |kind, n| {
                if kind != moved {
                    AS_USUAL
                } else if n % 2 == 0 {
                    seen.fetch_add(1000, Relaxed);
                    Act::Short(1000)
                } else {
                    Act::Fail(Errno::EDQUOT)
                }
            });
            let run = run(&slow, flowops, &["--on-error", "count"]).only_run();
            assert_adds_up(&run);
            let x = flowop(&run, "x");
            assert_eq!(count(x, "ops"), 0, "{flowops}: {x}");
            assert!(count(&x["errors"], "EDQUOT") > 0, "{flowops}: {x}");
            assert_eq!(count(x, "bytes") + count(x, "late_bytes"), went.load(Relaxed), "{flowops}: {x}");
        }
    });
}

/// Nothing is taken and no error reported: this is said, and no error of another name made up.
#[test]
fn a_write_of_zero_bytes_is_reported_as_such() {
    undisturbed(|| {
        needs!(fuse::available());
        let slow = faulty(|kind, n| match kind {
            Kind::Write if n >= 20 => Act::Short(0),
            _ => AS_USUAL,
        });
        let output =
            run(&slow, "flowop write name=x,filesetname=data,iosize=4k,random", &["--engine", "posix"]).exits(1);
        let run = output.only_run();
        let x = flowop(&run, "x");
        assert_eq!(x["errors"], serde_json::json!({ "nothing written": 1 }));
        assert_eq!((count(x, "ops"), count(x, "bytes")), (20, 20 * 4096));
        assert!(output.shown().contains("accepted none of the bytes"), "{}", output.shown());
        assert!(!output.shown().contains("No space left"), "{}", output.shown());
    });
}

#[test]
fn an_interrupted_call_is_repeated() {
    undisturbed(|| {
        needs!(fuse::available());
        let slow = faulty(|kind, n| match kind {
            Kind::Read | Kind::Write if n % 3 == 2 => Act::Fail(Errno::EINTR),
            _ => AS_USUAL,
        });
        for flowops in [
            "flowop read name=x,filesetname=data,iosize=4k,random",
            "flowop write name=x,filesetname=data,iosize=4k,random",
        ] {
            let x = went_well(&slow, &format!("{flowops},iters=10"), &[]);
            assert_eq!(count(&x, "bytes"), 4096 * count(&x, "ops"));
        }
    });
}

const WRITER: &str = "flowop openfile name=o,filesetname=data,fd=1 flowop write name=w,fd=1,iosize=4k,random";

#[test]
fn a_close_that_fails_is_an_error() {
    undisturbed(|| {
        needs!(fuse::available());
        let failing =
            || faulty(|kind, n| if kind == Kind::Flush && n >= 10 { Act::Fail(Errno::EIO) } else { AS_USUAL });
        let script = format!("{WRITER} flowop closefile name=x,fd=1");
        // It stops the run.
        let output = run(&failing(), &script, &[]).exits(1);
        let run_ = output.only_run();
        assert_eq!(
            (&run_["state"], &run_["failure"]["errno"]),
            (&"failed".into(), &"EIO".into()),
            "{}",
            output.shown()
        );
        assert_eq!(run_["failure"]["flowop"], "p/t/x");
        assert!(run_["failure"]["path"].is_string());
        assert_eq!(flowop(&run_, "x")["errors"], serde_json::json!({ "EIO": 1 }));
        assert_adds_up(&run_);
        // Or it is counted, each time.
        let slow = failing();
        let run_ = run(&slow, &script, &["--on-error", "count"]).exits(0).only_run();
        let x = flowop(&run_, "x");
        let (good, bad) = (count(x, "ops"), count(&x["errors"], "EIO"));
        assert!(good <= 10 && bad > 0, "{x}");
        assert_adds_up(&run_);
    });
}

#[test]
fn a_close_whose_buffered_data_cannot_be_written_frees_the_slot() {
    undisturbed(|| {
        needs!(fuse::available());
        let slow = faulty(|kind, _| if kind == Kind::Write { Act::Fail(Errno::ENOSPC) } else { AS_USUAL });
        let flowops = "flowop openfile name=o,filesetname=data,fd=1 flowop bufwrite name=w,fd=1,iosize=100 \
                       flowop closefile name=x,fd=1";
        let run = run(&slow, flowops, &["--on-error", "count"]).only_run();
        assert_adds_up(&run);
        let (o, x) = (flowop(&run, "o"), flowop(&run, "x"));
        assert!(count(o, "ops") > 1, "{o}");
        assert_eq!(o["errors"], serde_json::json!({}), "the slot is free");
        let failed = count(&x["errors"], "ENOSPC");
        assert_eq!(x["errors"], serde_json::json!({ "ENOSPC": failed }), "{x}");
        assert!(failed > 1 && count(x, "ops") == 0, "{x}");
        // One close for each write that failed; the last of them may be later than the end.
        assert!(count(x, "calls") >= failed, "{x}");
    });
}

/// Files that are closed at the end of the run: their errors are reported.
#[test]
fn a_close_that_fails_at_the_end_fails_the_run() {
    undisturbed(|| {
        needs!(fuse::available());
        let failing = || faulty(|kind, _| if kind == Kind::Flush { Act::Fail(Errno::EIO) } else { AS_USUAL });
        // The look at the page cache opens and closes files too, of which it says nothing; the writer's own is the last.
        let script = "flowop write name=x,filesetname=data,iosize=4k,random";
        let output = run(&failing(), script, &[]).exits(1);
        let run_ = output.only_run();
        assert_eq!(
            (&run_["state"], &run_["failure"]["errno"]),
            (&"failed".into(), &"EIO".into()),
            "{}",
            output.shown()
        );
        assert_eq!(flowop(&run_, "x")["errors"], serde_json::json!({ "EIO": 1 }));
        assert!(count(flowop(&run_, "x"), "ops") > 0);
        let run_ = run(&failing(), script, &["--on-error", "count"]).exits(0).only_run();
        assert_eq!(flowop(&run_, "x")["errors"], serde_json::json!({ "EIO": 1 }));
    });
}
