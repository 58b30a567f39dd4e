//! Tests the flowops that make one system call each, on ext4, xfs and btrfs: the call, the number of calls, and the
//! error that some of them expect.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::cmd::{Wml, count, flowop};
use crate::mounts::{self, Fs, Mount};
use crate::strace;

/// A row of the table: a flowop with its attributes, how often, the call, its error, and a word in the call's arguments.
type Row = (&'static str, u64, &'static str, Option<&'static str>, &'static str);

/// In this order: `expect` needs absent names, `over` two that exist.
const ROWS: &[Row] = &[
    ("statfile filesetname=s,missing", 7, "newfstatat", Some("ENOENT"), ""),
    ("openfile filesetname=s,missing", 6, "openat2", Some("ENOENT"), ""),
    ("access filesetname=s,missing", 5, "faccessat2", Some("ENOENT"), ""),
    ("readlink filesetname=s,missing", 4, "readlinkat", Some("ENOENT"), ""),
    ("deletefile filesetname=s,expect=ENOENT", 3, "unlinkat", Some("ENOENT"), ""),
    ("createfile filesetname=s,expect=EEXIST", 8, "openat", Some("EEXIST"), "O_EXCL"),
    ("makedir filesetname=s,expect=EEXIST", 9, "mkdirat", Some("EEXIST"), ""),
    ("openfile filesetname=s,expect=ENOTDIR", 4, "openat2", Some("ENOTDIR"), "O_DIRECTORY"),
    ("openfile filesetname=s,fd=1,dsync=data", 1, "openat2", None, "O_DSYNC"),
    ("access filesetname=s,uniform", 11, "faccessat2", None, ""),
    ("lock filesetname=s,fd=1,iosize=4k,shuffle", 4, "fcntl", None, "F_WRLCK"),
    ("lock filesetname=s,fd=1,shared", 2, "fcntl", None, "F_RDLCK"),
    ("unlock filesetname=s,fd=1", 2, "fcntl", None, "F_UNLCK"),
    // It finds no lock.
    ("getlk filesetname=s,fd=1,iosize=1,at=1g", 3, "fcntl", None, "F_UNLCK"),
    ("lseek filesetname=s,fd=1,whence=end", 3, "lseek", None, "SEEK_END"),
    ("read filesetname=s,fd=1,iosize=4k,at=1m", 5, "pread64", None, "1048576"),
    ("appendfile filesetname=s,fd=1,iosize=4k,onecall", 3, "pwritev2", None, "RWF_APPEND"),
    ("readvec filesetname=s,fd=1,iosize=8k,segments=4,random", 3, "preadv", None, ""),
    ("writevec filesetname=s,fd=1,iosize=8k,random", 2, "pwritev", None, ""),
    ("write filesetname=s,fd=1,iosize=4k,shuffle", 4, "pwrite64", None, ""),
    ("syncfs filesetname=s,fd=1", 1, "syncfs", None, ""),
    ("syncrange filesetname=s,fd=1,iosize=4k", 3, "sync_file_range", None, ""),
    ("syncrange filesetname=s,fd=1,wait", 2, "sync_file_range", None, "WAIT_AFTER"),
    ("fadvise filesetname=s,fd=1,advice=dontneed", 3, "fadvise64", None, "POSIX_FADV_DONTNEED"),
    ("fallocate filesetname=s,fd=1,iosize=64k,keepsize", 2, "fallocate", None, "FALLOC_FL_KEEP_SIZE"),
    ("chmod filesetname=s,fd=1,mode=640", 3, "fchmod", None, "0640"),
    ("chown filesetname=s,fd=1", 3, "fchown", None, ""),
    ("utimens filesetname=s,fd=1", 3, "utimensat", None, ""),
    ("setxattr filesetname=s,fd=1", 1, "fsetxattr", None, ""),
    ("listxattr filesetname=s,fd=1", 3, "flistxattr", None, ""),
    ("closefile fd=1", 1, "close", None, ""),
    ("chmod filesetname=s,mode=600", 5, "fchmodat2", None, "0600"),
    ("chown filesetname=s", 5, "fchownat", None, ""),
    ("utimens filesetname=s", 5, "utimensat", None, ""),
    ("rename filesetname=s,over", 4, "renameat", None, ""),
    ("rename filesetname=s,recycle", 3, "renameat", None, ""),
    ("fsyncdir filesetname=s", 3, "fsync", None, ""),
    ("fsyncdir filesetname=s,data", 2, "fdatasync", None, ""),
];

fn script() -> String {
    let flowops: String = ROWS
        .iter()
        .enumerate()
        .map(|(i, (flowop, times, ..))| format!("flowop {flowop},name=f{i},iters={times}\n"))
        .collect();
    format!(
        "# dialect: fsl\nset mode quit firstdone\n\
         define fileset name=s,path=$dir,entries=20,dirwidth=4,dirgamma=0,size=16k,prealloc=50\n\
         define process name=p {{ thread name=t {{\n{flowops}flowop finishoncount name=end,value=1\n}} }}\n"
    )
}

/// Regular files below a directory, the tool's own left out.
fn files(root: &Path) -> usize {
    let entries = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| match path.is_dir() {
            true => files(&path),
            false => usize::from(path.file_name().unwrap().to_str().unwrap().parse::<u64>().is_ok()),
        })
        .sum()
}

fn makes_its_calls(kind: Fs) {
    needs!(mounts::available(&[kind]) && strace::available());
    let mount = Mount::new(kind, 1 << 30);
    let call = Wml::below(mount.dir())
        .file("calls.wml", &script())
        .folder("d")
        .args(["calls.wml", "--runtime", "60"])
        .sets(&[("dir", "d")])
        .result();
    let (output, log) = strace::run(call);
    let output = output.exits(0);
    let run = output.only_run();
    assert_eq!(run["ended_by"], "count reached", "{}", output.shown());
    let steps = log.of_steps();
    let mut wanted = BTreeMap::<_, u64>::new();
    for (_, times, name, error, word) in ROWS {
        *wanted.entry((*name, *error, *word)).or_default() += times;
    }
    for ((name, error, word), times) in wanted {
        // strace before 6.6 does not know this call, and Linux before 6.6 does not have it.
        if name == "fchmodat2" && !log.calls().any(|call| call.name == name && call.error().is_none()) {
            continue;
        }
        let is_it = |call: &&strace::Call| {
            call.name == name && call.error() == error && call.args.iter().any(|arg| arg.contains(word))
        };
        // The rows that name no word share their call with those that do.
        let more: u64 = ROWS
            .iter()
            .filter(|row| row.2 == name && row.3 == error && word.is_empty() && !row.4.is_empty())
            .map(|row| row.1)
            .sum();
        let opened = |call: &&strace::Call| call.opens_directory() || call.looks();
        let seen = steps.calls().filter(is_it).filter(|call| error.is_some() || !opened(call)).count() as u64;
        let closes = name == "close";
        assert!(seen == times + more || closes && seen >= times, "{name} {error:?} {word}: {seen}, not {times}");
    }
    let number = |path: Option<&str>| path.is_some_and(|name| name.parse::<u64>().is_ok());
    let creates = |call: &&strace::Call| call.opens() && call.args.iter().any(|arg| arg.contains("O_CREAT"));
    let made = log.calls().filter(creates).filter(|call| number(call.path())).count();
    assert!(made > 4, "{made} files were created");
    assert_eq!(files(&output.dir().join("d")), made - 4, "four of {made} files were replaced");
}

/// Not where its file set says that it ends. The size is read once after each open.
#[test]
fn space_for_appends_is_allocated_where_the_file_ends() {
    needs!(strace::available());
    let script = "# dialect: fsl\nset mode quit alldone\ndefine file name=f,path=$dir,size=1m,prealloc\n\
        define process name=p { thread name=t {\n\
        flowop openfile name=op,filename=f,fd=1\nflowop truncate name=cut,fd=1,value=16k\nflowop closefile name=cl,fd=1\n\
        flowop openfile name=op2,filename=f,fd=1\nflowop fallocate name=al,fd=1,iosize=64k,keepsize,iters=2\n\
        flowop closefile name=cl2,fd=1\nflowop finishoncount name=end,value=1\n} }\n";
    let call = Wml::new().file("x.wml", script).args(["x.wml", "--no-quiesce"]);
    let (output, log) = strace::run(call.result());
    let run = output.exits(0).only_run();
    let steps = log.of_steps();
    let offsets = steps.calls().filter(|call| call.name == "fallocate").map(|call| call.args[2].as_str());
    assert_eq!(offsets.collect::<Vec<_>>(), ["16384", "16384"]);
    let allocate = flowop(&run, "al");
    assert_eq!((count(allocate, "ops"), count(allocate, "calls")), (2, 1), "{allocate}");
}

#[test]
fn on_ext4() {
    makes_its_calls(Fs::Ext4);
}

#[test]
fn on_xfs() {
    makes_its_calls(Fs::Xfs);
}

#[test]
fn on_btrfs() {
    makes_its_calls(Fs::Btrfs);
}
