//! Tests asynchronous I/O: `io_uring` and the thread pool do the same operations, write the same bytes, and keep at
//! most `iodepth` operations in flight.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cmd::{Wml, count, flowop, has, skip};
use crate::fuse::{self, Act, Kind, Slow};
use crate::mounts::{self, Fs, Mount};
use crate::strace;
use crate::undisturbed::undisturbed;

/// The engines that can run here. Where all must be there, a kernel without `io_uring` fails the test.
fn engines() -> &'static [&'static str] {
    if wml::os::uring::available().is_ok() {
        return &["uring", "posix"];
    }
    skip("io_uring is not available");
    &["posix"]
}

/// The data files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if !path.file_name().unwrap().to_string_lossy().starts_with('.') {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A file written from start to end, once, by a thread that also reads it again.
fn once(flags: &str, also: &str) -> String {
    format!(
        "# dialect: fsl\nset mode quit alldone\ndefine file name=f,path=$dir,size=1m,prealloc\n\
         define process name=p {{ thread name=t {{\n\
         flowop aiowrite name=wr,filename=f,iosize=4k,iodepth=8,iters=256{flags}\n\
         {also}\
         flowop aioread name=rd,filename=f,iosize=8k,random,iodepth=8,iters=50{flags}\n\
         flowop aiowait name=w,iters=5\n\
         flowop finishoncount name=end,value=1\n}} }}\n"
    )
}

/// Alone in its thread, and with another flowop that delays the collection of completions; with and without direct I/O.
#[test]
fn both_engines_write_the_same_bytes_and_have_the_same_counts() {
    needs!(mounts::available(&[Fs::Ext4, Fs::Tmpfs]));
    for (fs, flags) in [(Fs::Ext4, ",directio"), (Fs::Ext4, ""), (Fs::Tmpfs, "")] {
        let mount = Mount::new(fs, 512 << 20);
        for also in ["", "flowop hog name=h,value=1000\n"] {
            let mut seen = Vec::new();
            for engine in engines() {
                let call = Wml::below(mount.dir()).file("x.wml", &once(flags, also)).folder("there");
                let call = call.args(["x.wml", "--engine", engine, "--seed", "7", "--dir", "there", "--no-quiesce"]);
                let output = call.result().timeout(Duration::from_mins(1)).run().exits(0);
                let run = output.only_run();
                assert_eq!((run["engine"].as_str(), &run["state"]), (Some(*engine), &"complete".into()));
                for (name, ops, bytes) in [("wr", 256, 1 << 20), ("rd", 50, 50 * 8192), ("w", 5, 0)] {
                    let flowop = flowop(&run, name);
                    assert_eq!((count(flowop, "ops"), count(flowop, "bytes")), (ops, bytes), "{name} with {engine}");
                }
                assert_eq!(count(&run, "late_ops"), 0);
                let files = files(&output.dir().join("there"));
                let data = files.iter().map(|f| std::fs::read(f).unwrap()).find(|data| data.len() == 1 << 20);
                let data = data.unwrap_or_else(|| panic!("no file of 1 MiB among {files:?}"));
                let blocks: std::collections::BTreeSet<_> = data.chunks(4096).collect();
                assert_eq!(blocks.len(), 256, "no two blocks are alike");
                seen.push(data);
            }
            assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{} {flags} {also}", fs.name());
        }
    }
}

/// Reads in order go from the start of the file to its end, what is left there included, and over again, as the synchronous ones
/// do: none is of nothing. So do those of a file that is shorter than it was to be.
#[test]
fn sequential_reads_return_to_the_start_at_the_end() {
    const FILE: u64 = 10_000;
    let script = |size: u64, also: &str| {
        format!(
            "# dialect: fsl\nset mode quit alldone\ndefine file name=f,path=$dir,size={size},prealloc\n\
             define process name=p {{ thread name=t {{\n\
             flowop openfile name=op,filesetname=f,fd=1\n{also}\
             flowop aioread name=rd,fd=1,iosize=4k,iodepth=1,iters=9\n\
             flowop closefile name=cl,fd=1\n\
             flowop finishoncount name=end,value=1\n}} }}\n"
        )
    };
    let mut engines = engines().to_vec();
    engines.push("null");
    for engine in engines {
        let read = |script: &str| {
            let call = Wml::new().file("x.wml", script).args(["x.wml", "--engine", engine, "--no-quiesce"]);
            let run = call.result().run().exits(0).only_run();
            (count(flowop(&run, "rd"), "ops"), count(flowop(&run, "rd"), "bytes"))
        };
        assert_eq!(read(&script(FILE, "")), (9, 3 * FILE), "{engine}");
        // A file that was to be of 100,000 bytes has 10,000, and one of 4,000 bytes has grown.
        let cut = "flowop truncate name=cut,fd=1,value=10000\nflowop closefile name=cl1,fd=1\n\
                   flowop openfile name=op1,filesetname=f,fd=1\n";
        if engine != "null" {
            assert_eq!(read(&script(100_000, cut)), (9, 3 * FILE), "{engine}");
            assert_eq!(read(&script(4000, cut)), (9, 3 * FILE), "{engine}");
        }
    }
}

/// What asks the kernel: one entry for each operation or fewer, and no write call; with the pool the other way round.
#[test]
fn io_uring_makes_no_additional_calls() {
    needs!(strace::available());
    let script = "# dialect: fsl\ndefine file name=f,path=$dir,size=4m,prealloc\n\
        define process name=p { thread name=t { flowop aiowrite name=wr,filename=f,iosize=4k,random,iodepth=4 } }\n";
    for engine in engines() {
        let call = Wml::new().file("x.wml", script).args(["x.wml", "--runtime", "0.5", "--engine", engine]);
        let (output, log) = strace::run(call.result());
        let run = output.exits(0).only_run();
        let wr = flowop(&run, "wr");
        let ops = count(wr, "ops") + count(wr, "late_ops");
        assert!(count(wr, "ops") > 100, "too few to tell");
        let steps = log.of_steps();
        let writes = steps.only(|call| call.writes() && call.file().ends_with("/00000001")).calls().count() as u64;
        let enters = steps.only(|call| call.name == "io_uring_enter").calls().count() as u64;
        if *engine == "uring" {
            assert_eq!(writes, 0, "calls that write");
            assert!((1..=ops + 4).contains(&enters), "{enters} entries for {ops} operations");
        } else {
            // The last ones may end after the thread's mark and before that of the end.
            assert_eq!(writes, ops);
            assert_eq!(enters, 0);
        }
    }
}

/// The kernel says no: by name `io_uring` is refused, unnamed the pool takes its place, and the result says so.
#[test]
fn a_kernel_without_io_uring_is_reported() {
    needs!(has("strace") && strace::available());
    let script = "# dialect: fsl\ndefine file name=f,path=$dir,size=1m,prealloc\n\
        define process name=p { thread name=t { flowop aioread name=rd,filename=f,iosize=4k,random,iodepth=4 } }\n";
    let call = |args: &[&str]| {
        let strace = ["strace", "-f", "-o", "/dev/null", "-e", "trace=io_uring_setup", "-e"];
        let words = strace.iter().chain(&["inject=io_uring_setup:error=EPERM"]).copied();
        Wml::new().file("x.wml", script).under(words).args(["x.wml", "--runtime", "0.2"]).args(args).result().run()
    };
    let refused = call(&["--engine", "uring"]).exits(3);
    assert!(refused.stderr.contains("io_uring") && refused.stderr.contains("--engine posix"), "{}", refused.stderr);
    assert_eq!(refused.left(), ["x.wml"], "nothing was created");
    let run = call(&[]).exits(0).only_run();
    assert_eq!(run["engine"], "posix");
    assert!(count(flowop(&run, "rd"), "ops") > 0);
}

/// By default: `io_uring` where there is asynchronous I/O.
#[test]
fn the_result_names_the_engine() {
    let by_default = if engines().len() > 1 { "uring" } else { "posix" };
    for (kind, engine) in [("aioread", by_default), ("read", "posix")] {
        let script = format!(
            "# dialect: fsl\ndefine file name=f,path=$dir,size=1m,prealloc\n\
             define process name=p {{ thread name=t {{ flowop {kind} name=rd,filename=f,iosize=4k,random }} }}\n"
        );
        let output = Wml::new().file("x.wml", &script).args(["x.wml", "--runtime", "0.2"]).result().run().exits(0);
        assert_eq!(output.only_run()["engine"], engine, "of {kind}");
    }
}

/// The file system sees how many are out at a time.
#[test]
fn no_more_than_iodepth_operations_are_in_flight() {
    needs!(fuse::available());
    undisturbed(|| {
        for engine in engines() {
            for also in ["", "flowop hog name=h,value=1\n"] {
                for depth in [1, 4, 32] {
                    let slow = Slow::new(|kind, _, _| {
                        Act::After(Duration::from_millis(if kind == Kind::Read { 2 } else { 0 }))
                    });
                    let script = format!(
                        "# dialect: fsl\ndefine file name=f,path=$dir,size=1m,prealloc\n\
                     define process name=p {{ thread name=t {{\n\
                     flowop aioread name=rd,filename=f,iosize=4k,random,directio,iodepth={depth}\n{also}}} }}\n"
                    );
                    let call = Wml::below(slow.dir()).idle().file("x.wml", &script);
                    let args = ["x.wml", "--runtime", "0.1", "--no-quiesce", "--engine", engine];
                    let run = call.args(args).result().run().exits(0).only_run();
                    let most = slow.tally(Kind::Read).most;
                    assert!(count(flowop(&run, "rd"), "ops") > 0);
                    assert!(most <= depth, "{most} at a time with iodepth={depth}, {engine}");
                    // The pool has eight workers, and so has the kernel on a small machine.
                    assert!(most >= depth.min(4), "only {most} at a time with iodepth={depth}, {engine}");
                }
            }
        }
    });
}

/// What a file system would refuse in the run is refused before it, by flowop, value and what is wanted instead.
#[test]
fn unaligned_direct_io_is_refused_and_names_the_flowop() {
    needs!(mounts::available(&[Fs::Ext4]));
    let mount = Mount::new(Fs::Ext4, 512 << 20);
    let Some(wanted) = wml::os::fd::direct_alignment(mount.dir()) else {
        return skip("the kernel does not say how direct I/O is aligned");
    };
    let script = |flowops: &str| {
        format!(
            "# dialect: fsl\nset $any=randvar(type=uniform,min=1,mean=8000)\n\
             set $even=randvar(type=uniform,min=4096,mean=16384,round=4096)\n\
             define file name=f,path=$dir,size=1m,prealloc\n\
             define file name=small,path=$dir,size=10000,prealloc\n\
             define fileset name=a,path=$dir,entries=2,dirwidth=5,size=1m,prealloc\n\
             define fileset name=b,path=$dir,entries=2,dirwidth=5,size=1m\n\
             define process name=p {{ thread name=t {{\n{flowops}\n}} }}\n"
        )
    };
    let run = |flowops: &str| {
        let call = Wml::below(mount.dir()).file("x.wml", &script(flowops)).args(["x.wml", "--runtime", "0.2"]);
        call.folder("there").args(["--dir", "there", "--no-quiesce"]).run()
    };
    let by_slot = "flowop openfile name=op,filesetname=f,fd=1,directio\nflowop read name=odd,fd=1,iosize=1000\n\
        flowop closefile name=cl,fd=1";
    let renamed = "flowop openfile name=op,filesetname=a,fd=1,directio\nflowop rename name=mv,filesetname=a,toset=b,fd=1\n\
        flowop read name=odd,fd=1,iosize=1000\nflowop closefile name=cl,fd=1\n\
        flowop rename name=back,filesetname=b,toset=a,fd=1";
    let copied = "flowop openfile name=op,filesetname=a,fd=1,directio\nflowop openfile name=from,filesetname=a,fd=2\n\
        flowop writewholefile name=odd,fd=1,srcfd=2,iosize=1000\nflowop closefile name=cl,fd=1\n\
        flowop closefile name=cl2,fd=2";
    for (flowops, value) in [
        ("flowop aiowrite name=odd,filename=f,iosize=1000,random,directio", "`iosize` is 1000"),
        ("flowop read name=odd,filename=f,iosize=4k,random,align=100,directio", "`align` is 100"),
        ("flowop write name=odd,filename=f,iosize=$any,random,directio", "`iosize` is uniform("),
        ("flowop appendfilerand name=odd,filename=f,iosize=4k,wrap=1m,directio", "any number of bytes"),
        (by_slot, "`iosize` is 1000"),
        (renamed, "`iosize` is 1000"),
        (copied, "`iosize` is 1000"),
        ("flowop writewholefile name=odd,filename=small,iosize=1m,directio", "the size of its files is 10000"),
        ("flowop writewholefile name=odd,filename=small,iosize=4k,exact,directio", "the size of its files is 10000"),
    ] {
        let output = run(flowops).exits(3);
        for part in ["error[E0309]", "`odd`", value, &format!("multiples of {} bytes", wanted.offset)] {
            assert!(output.stderr.contains(part), "no {part} for {flowops}\n{}", output.stderr);
        }
        assert_eq!(output.left(), ["there", "x.wml"], "nothing was created");
        assert!(output.dir().join("there").read_dir().unwrap().next().is_none(), "nothing was created in it");
    }
    for flowops in [
        "flowop aiowrite name=wr,filename=f,iosize=4k,random,directio,iodepth=4",
        "flowop write name=wr,filename=f,iosize=$even,random,directio",
        "flowop readwholefile name=rd,filename=f,iosize=64k,directio",
        "flowop read name=rd,filename=f,iosize=1000,random",
        "flowop writewholefile name=wr,filename=small,iosize=4k,directio",
    ] {
        run(flowops).exits(0);
    }
}
