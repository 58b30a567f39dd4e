//! Tests the recorded stream of a thread's operations: it agrees with the calls that the kernel saw, and depends only
//! on the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::cmd::{Output, Wml, count, flowop, memory, short_or_long};
use crate::strace::{self, Call};
use crate::undisturbed::undisturbed;

/// One operation: flowop, file, offset, size; the last two where data moves.
type Entry = (String, String, Option<u64>, u64);

/// The lines of a trace file, of all threads.
fn trace(path: &Path) -> Vec<(String, Entry)> {
    let text = fs::read_to_string(path).unwrap();
    let number = |field: &str| field.parse::<u64>().ok();
    let entry = |line: &str| {
        let f: Vec<&str> = line.split('\t').collect();
        assert_eq!(f.len(), 8, "{line}");
        let thread = f[..4].join(" ");
        (thread, (f[4].to_owned(), f[5].to_owned(), number(f[6]), number(f[7]).unwrap()))
    };
    text.lines().map(entry).collect()
}

/// Runs a script of one thread under strace; the stream's entries and the calls of its steps.
fn both(script: &str, sets: &[(&str, &str)], n: u64) -> (Vec<Entry>, Vec<Call>) {
    let call = Wml::below(&memory()).args([script, "--seed", "7", "--no-quiesce"]).sets(sets);
    let files = call.dir().join("files");
    fs::create_dir(&files).unwrap();
    let call = call.args(["--runtime", short_or_long("2", "40"), "--trace", &format!("trace.txt:{n}")]);
    let call = call.args(["--dir", files.to_str().unwrap()]);
    let (output, log) = strace::run(call);
    let output = output.exits(0);
    let entries: Vec<Entry> = trace(&output.dir().join("trace.txt")).into_iter().map(|(_, entry)| entry).collect();
    let own = |call: &Call| {
        call.result.is_some() && !call.opens_directory() && !call.looks() && Path::new(&call.file()).starts_with(&files)
    };
    let mut busy: Vec<Vec<Call>> = log.of_steps().only(own).threads.into_values().collect();
    // The controller asks how much room is left.
    busy.retain(|calls| calls.iter().any(is_io));
    assert_eq!(busy.len(), 1, "threads with I/O");
    assert_eq!(entries.len() as u64, n, "the run was too short for {n} operations");
    (entries, busy.remove(0))
}

fn is_io(call: &Call) -> bool {
    call.reads() || call.writes()
}

#[test]
fn recorded_random_reads_agree_with_the_kernel() {
    if strace::available() {
        undisturbed(random_reads_agree);
    }
}

fn random_reads_agree() {
    let n = short_or_long(500, 10_000);
    let (entries, calls) = both("randomread", &[("filesize", "8m"), ("nthreads", "1")], n);
    let seen: Vec<_> = calls.iter().filter(|c| c.reads()).take(entries.len()).collect();
    assert_eq!(seen.len(), entries.len());
    for (entry, call) in entries.iter().zip(seen) {
        assert_eq!(entry.0, "rand-read1");
        assert_eq!((entry.1.as_str(), entry.2, entry.3), (call.descriptor().unwrap(), call.offset(), call.bytes()));
    }
    let offsets: BTreeSet<_> = entries.iter().map(|e| e.2).collect();
    assert!(offsets.len() > 100, "{} different offsets", offsets.len());
}

#[test]
fn a_recorded_sequential_pass_agrees_with_the_kernel() {
    needs!(strace::available());
    let n = short_or_long(500, 10_000);
    let (entries, calls) = both("singlestreamread", &[("filesize", "1m"), ("iosize", "16k")], n);
    // The kernel keeps the position: it is followed from the calls.
    let (mut position, mut seen) = (0, Vec::new());
    for call in &calls {
        match call.name.as_str() {
            "lseek" => position = call.result.unwrap() as u64,
            "read" if call.bytes() > 0 => {
                seen.push((call.descriptor().unwrap().to_owned(), Some(position), call.bytes()));
                position += call.bytes();
            }
            _ => {}
        }
    }
    let entries: Vec<_> = entries.into_iter().map(|(_, file, offset, size)| (file, offset, size)).collect();
    assert_eq!(entries, seen[..entries.len()]);
    let starts: Vec<_> = entries.iter().filter(|e| e.1 == Some(0)).collect();
    assert!(starts.len() >= 500 / 64, "the file is read more than once");
}

#[test]
fn a_recorded_run_of_varmail_agrees_with_the_kernel() {
    if strace::available() {
        undisturbed(a_run_of_varmail_agrees);
    }
}

/// Every flowop of varmail makes calls of its own kind; a whole file or an append may be several.
fn a_run_of_varmail_agrees() {
    let n = short_or_long(500, 10_000);
    let (entries, calls) = both("varmail", &[("nfiles", "200"), ("nthreads", "1")], n);
    let mut calls = calls.iter().peekable();
    for (i, (name, file, offset, size)) in entries.iter().enumerate() {
        let wanted = match name.trim_end_matches(char::is_numeric) {
            "deletefile" => "unlinkat",
            "createfile" | "openfile" => "openat",
            "closefile" => "close",
            "fsyncfile" => "fsync",
            "appendfilerand" => "write",
            "readfile" => "read",
            other => panic!("varmail has no `{other}`"),
        };
        let mut moved = 0;
        let first = loop {
            let call = calls.next().unwrap_or_else(|| panic!("entry {i}, {name}: no more calls"));
            match call.name.as_str() {
                // An append asks for the end of the file: where it writes.
                "lseek" if wanted == "write" => assert_eq!(call.result, offset.map(|o| o as i64), "entry {i}, {name}"),
                "lseek" => {}
                _ if call.looks() => {}
                _ => break call,
            }
        };
        assert!(first.name.starts_with(wanted), "entry {i}, {name}: {} of {}", first.name, first.file());
        assert_eq!(first.file(), *file, "entry {i}, {name}");
        moved += first.bytes();
        while is_io(first) && calls.peek().is_some_and(|next| next.name == first.name) {
            moved += calls.next().unwrap().bytes();
        }
        assert_eq!(moved, *size, "entry {i}, {name}");
        assert_eq!(offset.is_some(), is_io(first), "entry {i}, {name}");
    }
}

/// Two process instances with two threads each; nothing that one does depends on another.
const FOUR: &str = "\
define file name=data,path=$dir,size=1m,prealloc
define process name=reader,instances=2 {
  thread name=t,instances=2,memsize=64k {
    flowop read name=rd,filename=data,iosize=4k,random,iters=50
    flowop write name=wr,filename=data,iosize=4k,random
    flowop finishoncount name=end,value=20,target=wr
  }
}
set mode quit alldone
run
";

fn digested(seed: &str) -> Output {
    let call = Wml::below(&memory()).file("four.wml", FOUR).result();
    call.args(["four.wml", "--seed", seed, "--digest=500", "--trace", "t:500", "--no-quiesce"]).run().exits(0)
}

#[test]
fn the_digest_depends_on_the_seed_alone() {
    let value = |output: &Output| {
        let digest = output.only_run()["digest"].clone();
        assert_eq!((count(&digest, "operations"), count(&digest, "short_threads")), (500, 0));
        digest["value"].as_str().unwrap().to_owned()
    };
    let first = digested("1");
    assert!(count(flowop(&first.only_run(), "rd"), "ops") >= 4 * 1000);
    assert_eq!(value(&first), value(&digested("1")));
    assert_ne!(value(&first), value(&digested("2")));
    assert!(first.shown().contains(&value(&first)), "{}", first.shown());
}

#[test]
fn instances_of_a_process_do_different_things() {
    let output = digested("1");
    let entries = trace(&output.dir().join("t"));
    let of = |thread: &str| -> Vec<_> { entries.iter().filter(|(t, _)| t == thread).map(|(_, e)| e.clone()).collect() };
    let threads = [of("reader 1 t 1"), of("reader 1 t 2"), of("reader 2 t 1"), of("reader 2 t 2")];
    for (i, one) in threads.iter().enumerate() {
        assert_eq!(one.len(), 500);
        let same = |other: &Vec<Entry>| other.iter().zip(one).filter(|(a, b)| a.2 == b.2).count();
        // One in 256 is the same by chance.
        assert!(threads[..i].iter().all(|other| same(other) < 50), "thread {i}");
    }
}

/// A file that its set defines as empty, and to which an earlier phase has appended.
#[test]
fn random_offsets_are_in_the_whole_of_a_file_that_has_grown() {
    const GROWN: &str = "# dialect: fsl\nset mode quit alldone\n\
        define file name=log,path=$dir,size=0,prealloc\n\
        define file name=new,path=$dir,size=0,prealloc\n\
        define process name=w { thread name=w {\n\
          flowop appendfile name=ap,filename=log,iosize=64k\n\
          flowop finishoncount name=end,value=16,target=ap } }\n\
        define process name=r,phase=2 { thread name=r {\n\
          flowop read name=rd,filename=log,iosize=4k,random,workingset=1m,fd=1\n\
          flowop write name=wr,filename=new,iosize=4k,random,workingset=1m,fd=2\n\
          flowop finishoncount name=end,value=200,target=rd } }\n";
    let call = Wml::below(&memory()).file("x.wml", GROWN).args(["x.wml", "--no-quiesce", "--trace", "t:1000"]);
    let output = call.args(["--runtime", "60"]).run().exits(0);
    let entries = trace(&output.dir().join("t"));
    for name in ["rd", "wr"] {
        let of = entries.iter().filter(|(_, entry)| entry.0 == name).filter_map(|(_, entry)| entry.2);
        let offsets: std::collections::BTreeSet<u64> = of.collect();
        assert!(offsets.len() > 100 && offsets.iter().all(|offset| offset + 4096 <= 1 << 20), "{name}: {offsets:?}");
    }
}

/// The streams of `bufread` and `bufwrite` have a place of their own in the file, before or behind that of the kernel.
#[test]
fn buffered_reads_and_writes_have_their_offsets() {
    const BUFFERED: &str = "# dialect: fsl\nset mode quit alldone\n\
        define file name=small,path=$dir,size=1000,prealloc\n\
        define file name=large,path=$dir,size=12k,prealloc\n\
        define file name=new,path=$dir,size=0,prealloc\n\
        define process name=p { thread name=t {\n\
          flowop bufread name=rs,filename=small,iosize=300,fd=1\n\
          flowop bufread name=rl,filename=large,iosize=5000,fd=2\n\
          flowop bufwrite name=wr,filename=new,iosize=300,wrap=1000,fd=3\n\
          flowop bufwrite name=wl,filename=new,iosize=5000,fd=4\n\
          flowop finishoncount name=end,value=6,target=rs } }\n";
    let call = Wml::below(&memory()).file("x.wml", BUFFERED).args(["x.wml", "--no-quiesce", "--trace", "t:1000"]);
    let output = call.args(["--runtime", "60"]).run().exits(0);
    let entries = trace(&output.dir().join("t"));
    let of = |name: &str| -> Vec<(u64, u64)> {
        let own = entries.iter().filter(|(_, entry)| entry.0 == name);
        own.take(6).map(|(_, entry)| (entry.2.unwrap(), entry.3)).collect()
    };
    assert_eq!(of("rs"), [(0, 300), (300, 300), (600, 300), (900, 100), (0, 300), (300, 300)]);
    assert_eq!(of("rl"), [(0, 5000), (5000, 5000), (10000, 2288), (0, 5000), (5000, 5000), (10000, 2288)]);
    assert_eq!(of("wr"), [(0, 300), (300, 300), (600, 300), (0, 300), (300, 300), (600, 300)]);
    assert_eq!(of("wl")[..3], [(0, 5000), (5000, 5000), (10000, 5000)]);
}

#[test]
fn streams_are_recorded_only_on_request() {
    let call = Wml::below(&memory()).file("four.wml", FOUR).result().args(["four.wml", "--no-quiesce"]);
    let output = call.run().exits(0);
    assert!(output.only_run()["digest"].is_null());
    let output = Wml::new().args(["randomread", "--trace", "file"]).run().exits(2);
    assert!(output.stderr.contains("--trace <FILE:N>"), "{}", output.stderr);
}

/// Each mailbox of several has a pass of its own, whichever thread is faster.
#[test]
fn openfile_with_shuffle_visits_each_file_of_each_instance_once_a_pass() {
    let script = "# dialect: fsl\nset mode quit alldone\n\
        define fileset name=s,path=/nowhere,entries=50,dirwidth=50,size=0,prealloc,perinstance\n\
        define process name=p,instances=5 { thread name=t {\n\
          flowop openfile name=open,filesetname=s,fd=1,shuffle\nflowop closefile name=close,fd=1\n\
          flowop finishoncount name=end,value=50,target=open } }\n";
    let call = Wml::new().file("w.wml", script).args(["w.wml", "--engine", "null", "--seed", "1"]);
    let output = call.args(["--trace", "trace.txt:1000"]).run().exits(0);
    let mut opened: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (thread, entry) in trace(&output.dir().join("trace.txt")) {
        if entry.0 == "open" {
            opened.entry(thread).or_default().push(entry.1);
        }
    }
    let orders: BTreeSet<Vec<&str>> =
        opened.values().map(|paths| paths.iter().map(|path| path.rsplit('/').next().unwrap()).collect()).collect();
    assert_eq!((opened.len(), orders.len()), (5, 5), "an order of its own for each: {orders:?}");
    for paths in opened.values() {
        assert_eq!((paths.len(), paths.iter().collect::<BTreeSet<_>>().len()), (50, 50), "{paths:?}");
    }
}

#[test]
fn openfile_with_shuffle_visits_each_file_once_a_pass_in_an_order_of_the_seed() {
    let script = "# dialect: fsl\nset mode quit firstdone\n\
        define fileset name=s,path=/nowhere,entries=50,dirwidth=50,size=0,prealloc\n\
        define process name=p { thread name=t {\n\
          flowop openfile name=open,filesetname=s,fd=1,shuffle\nflowop closefile name=close,fd=1\n\
          flowop finishoncount name=end,value=100,target=open } }\n";
    let order = |seed: &str| -> Vec<String> {
        let call = Wml::new().file("w.wml", script).args(["w.wml", "--engine", "null", "--seed", seed]);
        let output = call.args(["--trace", "trace.txt:1000"]).run().exits(0);
        let entries = trace(&output.dir().join("trace.txt")).into_iter().map(|(_, entry)| entry);
        entries.filter(|entry| entry.0 == "open").map(|entry| entry.1).collect()
    };
    let (first, again, other) = (order("1"), order("1"), order("2"));
    assert_eq!(first.len(), 100);
    for pass in first.chunks(50) {
        assert_eq!(pass.iter().collect::<BTreeSet<_>>().len(), 50, "each file once: {pass:?}");
        assert!(!pass.is_sorted(), "not in the order of their numbers");
    }
    assert_eq!(first, again);
    assert_ne!(first, other, "another seed, another order");
}
