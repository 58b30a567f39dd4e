//! Tests the data that flowops write: it compresses and repeats as its file set says, and the time to generate it is
//! the program's own.

use crate::cmd::Wml;
use crate::strace;
use crate::support::{self, Outcome};
use crate::undisturbed::undisturbed;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use wml::result::FlowopResult;
use wml::session::{Settings, Status};

/// The unit in which data is compressible or repeated.
const BLOCK: usize = 4096;

/// The blocks of all files of a set.
fn blocks(set: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(set).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(blocks(&path));
        } else if path.file_name().unwrap().to_str().unwrap().parse::<u64>().is_ok() {
            found.extend(fs::read(&path).unwrap().chunks(BLOCK).map(<[u8]>::to_vec));
        }
    }
    found
}

/// The compressible part of some blocks: the bytes at the end of each that are all the same.
fn compressible(blocks: &[Vec<u8>]) -> f64 {
    let same = |block: &Vec<u8>| block.iter().rev().take_while(|byte| Some(*byte) == block.last()).count();
    let all: usize = blocks.iter().map(Vec::len).sum();
    blocks.iter().map(same).sum::<usize>() as f64 / all as f64
}

/// The part of some blocks that are equal to an earlier one.
fn repeated(blocks: &[Vec<u8>]) -> f64 {
    1.0 - blocks.iter().collect::<HashSet<_>>().len() as f64 / blocks.len() as f64
}

/// A set of files of 256 KiB that do not exist before the run, by its name.
fn set(name: &str, attributes: &str) -> String {
    format!("define fileset name={name},path=$dir,entries=16,dirwidth=100,dirgamma=0,size=256k{attributes}\n")
}

/// A composite that creates a file of a set in a slot and writes it.
fn maker(set: &str, fd: u32, write: &str) -> String {
    format!(
        "define flowop name=make_{set} {{ flowop createfile name=c,filesetname={set},fd={fd}\n\
         {write},fd={fd}\nflowop closefile name=x,fd={fd} }}\n"
    )
}

/// Executes composites of one thread.
fn run(definitions: &str, flowops: &str, settings: Settings) {
    let text = format!(
        "# dialect: fsl\nset mode quit firstdone\n{definitions}\
         define process name=p {{ thread name=t {{ {flowops}\nflowop finishoncount name=end,value=1 }} }}\n"
    );
    let outcome = support::run("test.wml", &text, settings);
    assert_eq!(outcome.status, Status::Done, "{}", outcome.said);
}

#[test]
fn data_is_as_its_set_says_after_a_hole_was_read() {
    let dir = tempfile::tempdir().unwrap();
    // A random read does not move the position, from which the file is written.
    let write = "flowop truncate name=t,value=256k,fd=1\nflowop read name=r,iosize=256k,fd=1,random\n\
                 flowop writewholefile name=w,iosize=32k";
    let definitions = set("s", ",compress=0.5") + &maker("s", 1, write);
    run(&definitions, "flowop make_s name=m,iters=16", support::real(60_000, dir.path()));
    let written = blocks(&dir.path().join("s"));
    let packed = compressible(&written);
    assert_eq!(written.len(), 16 * 64);
    assert!((packed - 0.5).abs() < 0.02, "{packed} is compressible");
}

#[test]
fn every_flowop_writes_data_as_its_set_says() {
    for (write, engine) in [
        ("flowop writewholefile name=w,iosize=32k", "posix"),
        ("flowop writewholefile name=w", "posix"),
        ("flowop write name=w,iosize=8k,iters=32", "posix"),
        ("flowop appendfile name=w,iosize=4k,iters=64", "posix"),
        ("flowop bufwrite name=w,iosize=64k,iters=4", "posix"),
        ("flowop mmapwrite name=w,iosize=16k,iters=16", "posix"),
        ("flowop aiowrite name=w,iosize=16k,iters=16", "posix"),
        ("flowop aiowrite name=w,iosize=16k,iters=16,iodepth=4", "uring"),
    ] {
        if engine == "uring" && wml::os::uring::available().is_err() {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let definitions = set("s", ",compress=0.5,dedupe=0.25") + &maker("s", 1, write);
        let engine = wml::io_engine::find(engine).unwrap();
        let settings = Settings { engine, ..support::real(60_000, dir.path()) };
        run(&definitions, "flowop make_s name=m,iters=16", settings);
        let written = blocks(&dir.path().join("s"));
        assert_eq!(written.len(), 16 * 64, "{write}");
        let (packed, same) = (compressible(&written), repeated(&written));
        assert!((packed - 0.5).abs() < 0.02, "{write}: {packed} is compressible");
        // A quarter of the blocks, of which the first of each of the 64 that are copied is no repetition.
        assert!((0.13..0.27).contains(&same), "{write}: {same} are repeated");
    }
}

/// A thread with files of several sets, which also reads what does not compress.
#[test]
fn each_set_gets_its_own_data_from_one_thread() {
    for (write, read) in [
        ("flowop writewholefile name=w,iosize=32k", "flowop readwholefile name=r,filesetname=plain,fd=9,iosize=64k"),
        (
            "flowop aiowrite name=w,iosize=16k,iters=16",
            "flowop aioread name=r,filesetname=plain,fd=9,iosize=16k,iters=20\nflowop aiowait name=a",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (mut definitions, mut flowops) = (set("plain", ",prealloc"), read.to_owned());
        let sets = [("dense", ""), ("half", ",compress=0.5"), ("most", ",compress=0.9"), ("twins", ",dedupe=0.5")];
        for (fd, (name, attributes)) in (1..).zip(sets) {
            definitions.push_str(&set(name, attributes));
            definitions.push_str(&maker(name, fd, write));
            flowops.push_str(&format!("\nflowop make_{name} name=m{fd}"));
        }
        definitions.push_str(&format!("define flowop name=all {{ {flowops} }}\n"));
        run(&definitions, "flowop all name=every,iters=16", support::real(60_000, dir.path()));
        for (name, packed, same) in
            [("plain", 0.0, 0.0), ("dense", 0.0, 0.0), ("half", 0.5, 0.0), ("most", 0.9, 0.0), ("twins", 0.0, 0.44)]
        {
            let written = blocks(&dir.path().join(name));
            assert_eq!(written.len(), 16 * 64, "{write}: {name}");
            let found = (compressible(&written), repeated(&written));
            assert!((found.0 - packed).abs() < 0.02, "{write}: {name}: {} is compressible", found.0);
            assert!((found.1 - same).abs() < 0.06, "{write}: {name}: {} are repeated", found.1);
        }
    }
}

/// The flowop `w` of a run.
fn writer(outcome: &Outcome) -> &FlowopResult {
    outcome.run().flowops.iter().find(|flowop| flowop.name == "w").unwrap()
}

/// On the null engine a write takes no time, so nearly all of the time is that of generating its data.
#[test]
fn generating_much_data_is_in_no_latency() {
    undisturbed(|| {
        for flowops in [
            "flowop write name=w,filename=f,iosize=16m,random",
            "flowop writewholefile name=w,filename=f,iosize=16m",
            "flowop truncate name=cut,filename=f\nflowop appendfilerand name=w,filename=f,iosize=8m,maxsize=128m",
            "flowop mmapwrite name=w,filename=f,iosize=16m,random",
            "flowop bufwrite name=w,filename=f,iosize=16m,wrap=64m",
        ] {
            let text = format!(
                "# dialect: fsl\ndefine file name=f,path=/nowhere,size=64m,prealloc\n\
                 define process name=p {{ thread name=t {{ {flowops} }} }}\n"
            );
            let outcome = support::run("test.wml", &text, support::null(200));
            assert_eq!(outcome.status, Status::Done, "{}", outcome.said);
            let w = writer(&outcome);
            let (latency, tool) = (w.latency_ns.p50.unwrap() as f64, w.tool_ns_mean.unwrap());
            assert!(latency < tool / 2.0, "{flowops}: {latency} ns of latency, {tool} ns for the data");
        }
    });
}

/// File systems keep data as it came, so that it matters by which writes a file was made.
#[test]
fn files_are_made_by_writes_of_the_size_that_their_set_says() {
    needs!(strace::available());
    for (attributes, sizes) in [
        ("size=20k,fillsize=8k", vec![8192, 8192, 4096]),
        ("size=1100k", vec![1 << 20, 76 << 10]),
        ("size=3m,fillsize=2m", vec![2 << 20, 1 << 20]),
    ] {
        let text = format!(
            "define file name=s,path=$dir,prealloc,{attributes}\n\
             define process name=p {{ thread name=t {{ flowop statfile name=st,filesetname=s }} }}\n"
        );
        let call = Wml::new().file("x.wml", &text).args(["x.wml", "--no-quiesce", "--runtime", "0.1"]);
        let output = call.under(["strace", "-f", "-qq", "-y", "-e", "trace=write", "-o", "calls"]).run().exits(0);
        let calls = fs::read_to_string(output.dir().join("calls")).unwrap();
        let of_set = calls.lines().filter(|call| call.contains("/s/"));
        let made: Vec<u64> = of_set.map(|call| call.rsplit("= ").next().unwrap().trim().parse().unwrap()).collect();
        assert_eq!(made, sizes, "{attributes}: {calls}");
    }
}
