//! Tests the effects of flowops on files, on a real file system or by their counters.

use crate::support::{self, Outcome};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wml::result::FlowopResult;
use wml::session::{SilentFront, Status};

/// Nothing here is measured: a bound, so that a mistake does not hang.
const PATIENCE: u64 = 60_000;

/// Files below a directory that is a root of a file set, by their paths; the marker is left out.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            found.extend(files(&path));
        } else if path.file_name().unwrap().to_str().unwrap().parse::<u64>().is_ok() {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A script that does its flowops once in one thread, and ends.
pub(crate) fn once(sets: &str, flowops: &str) -> String {
    format!(
        "# dialect: fsl\nset mode quit firstdone\n{sets}\n\
         define process name=p {{ thread name=t {{\n{flowops}\n flowop finishoncount name=end,value=1 }} }}\n"
    )
}

pub(crate) fn done(text: &str, dir: &Path) -> Outcome {
    let outcome = support::run("test.wml", text, support::real(PATIENCE, dir));
    assert_eq!(outcome.status, Status::Done, "{}", outcome.said);
    assert_eq!(outcome.run().ended_by, "count reached", "{}", outcome.said);
    outcome
}

pub(crate) fn named<'a>(outcome: &'a Outcome, name: &str) -> &'a FlowopResult {
    outcome.run().flowops.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no flowop {name}"))
}

#[test]
fn rename_moves_files_to_unused_names_and_loses_none() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define fileset name=s,path=$dir,entries=40,dirwidth=4,dirgamma=0,size=100,prealloc=50";
    let before = {
        done(&once(set, "flowop statfile name=st,filesetname=s"), dir.path());
        files(&dir.path().join("s"))
    };
    let outcome = done(&once(&format!("{set},reuse"), "flowop rename name=mv,filesetname=s,iters=7"), dir.path());
    let after = files(&dir.path().join("s"));
    assert_eq!(named(&outcome, "mv").ops, 7);
    assert_eq!(after.len(), before.len());
    assert!(after.iter().all(|f| fs::metadata(f).unwrap().len() == 100));
    assert_ne!(after, before, "names have moved");
}

#[test]
fn new_files_are_named_in_one_rotation_with_and_without_opennext() {
    let names = |last: &str| {
        let dir = tempfile::tempdir().unwrap();
        let set = "define fileset name=s,path=$dir,entries=8,dirwidth=100,dirgamma=0,size=100\n\
            define flowop name=make { flowop createfile name=c,filesetname=s,fd=1\nflowop closefile name=x,fd=1 }";
        let flowops = format!(
            "flowop make name=m,iters=3\nflowop deletefile name=rm,filesetname=s,indexed=0\n\
             flowop createfile name=last,filesetname=s{last}"
        );
        done(&once(set, &flowops), dir.path());
        let found = files(&dir.path().join("s")).into_iter().map(|file| file.file_name().unwrap().to_owned());
        found.collect::<Vec<_>>()
    };
    let rotated = names("");
    assert_eq!(rotated.len(), 3);
    assert_eq!(names(",opennext"), rotated, "the name that was removed is not the next one");
}

#[test]
fn a_hard_link_has_the_same_inode_and_can_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define fileset name=s,path=$dir,entries=40,dirwidth=6,dirgamma=0,size=100,prealloc=50";
    let outcome = done(&once(set, "flowop link name=ln,filesetname=s,iters=2"), dir.path());
    assert_eq!(named(&outcome, "ln").ops, 2);
    let found = files(&dir.path().join("s"));
    let links: u64 = found.iter().map(|f| fs::metadata(f).unwrap().nlink() - 1).sum();
    assert!(links >= 2, "names share a file");
    // The same tree again, and every name of it removed.
    let n = found.len();
    let all = format!("flowop link name=ln,filesetname=s,iters=2\nflowop deletefile name=rm,filesetname=s,iters={n}");
    let outcome = done(&once(set, &all), dir.path());
    assert_eq!(named(&outcome, "rm").ops, n as u64);
    assert_eq!(files(&dir.path().join("s")).len(), 0);
}

#[test]
fn a_rename_over_another_link_to_the_same_file_frees_the_old_name() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define fileset name=s,path=$dir,entries=2,dirwidth=6,dirgamma=0,size=100";
    // With two names, the second link needs the one that the rename has freed.
    let flowops = "flowop createfile name=cr,filesetname=s,fd=1\nflowop closefile name=cl,fd=1\n\
                   flowop link name=ln,filesetname=s\nflowop rename name=mv,filesetname=s,over\n\
                   flowop link name=again,filesetname=s";
    let outcome = done(&once(set, flowops), dir.path());
    let (mv, again) = (named(&outcome, "mv"), named(&outcome, "again"));
    assert_eq!((mv.ops, mv.calls, again.ops), (1, 1, 1));
    let found = files(&dir.path().join("s"));
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|file| fs::metadata(file).unwrap().nlink() == 2), "both are names of one file");
    // Between two sets.
    let dir = tempfile::tempdir().unwrap();
    let sets = format!("{set}\n{}", set.replace("name=s", "name=t"));
    let flowops = "flowop createfile name=cr,filesetname=s,fd=1\nflowop closefile name=cl,fd=1\n\
                   flowop link name=ln,filesetname=s\nflowop rename name=mv,filesetname=s,toset=t\n\
                   flowop rename name=over,filesetname=s,toset=t,over\n\
                   flowop createfile name=a,filesetname=s,fd=1\nflowop closefile name=ca,fd=1\n\
                   flowop createfile name=b,filesetname=s,fd=1\nflowop closefile name=cb,fd=1";
    let outcome = done(&once(&sets, flowops), dir.path());
    assert_eq!((named(&outcome, "over").ops, named(&outcome, "b").ops), (1, 1));
    assert_eq!((files(&dir.path().join("s")).len(), files(&dir.path().join("t")).len()), (2, 1));
    assert!(files(&dir.path().join("s")).iter().all(|file| fs::metadata(file).unwrap().nlink() == 1));
}

#[test]
fn symbolic_links_are_created_read_and_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define fileset name=l,path=$dir,entries=8,dirwidth=4,dirgamma=0";
    let text =
        once(set, "flowop symlink name=ln,filesetname=l,iters=8\nflowop readlink name=rl,filesetname=l,iters=20");
    let outcome = done(&text, dir.path());
    assert_eq!((named(&outcome, "ln").ops, named(&outcome, "rl").ops), (8, 20));
    for link in files(&dir.path().join("l")) {
        let text = fs::read_link(&link).unwrap();
        assert_eq!(text.parent(), Some(Path::new("")), "a link points out of its directory: {}", text.display());
    }
    // A second run finds its own links, with and without `reuse`, and makes files of them or nothing.
    for reuse in ["reuse", "prealloc,reuse", "prealloc=100"] {
        let outcome = done(&once(&format!("{set},{reuse}"), "flowop statfs name=fs,filesetname=l"), dir.path());
        let prealloc = reuse.contains("prealloc");
        let found = files(&dir.path().join("l"));
        assert_eq!(found.len(), if prealloc { 8 } else { 0 }, "{reuse}: {}", outcome.said);
        assert!(found.iter().all(|f| fs::symlink_metadata(f).unwrap().is_file()));
        done(&once(&format!("{set},reuse"), "flowop symlink name=ln,filesetname=l,iters=8"), dir.path());
    }
}

#[test]
fn a_foreign_link_is_never_removed() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define fileset name=l,path=$dir,entries=8,dirwidth=4,dirgamma=0";
    let text = once(set, "flowop symlink name=ln,filesetname=l");
    done(&text, dir.path());
    let place = fs::read_dir(dir.path().join("l")).unwrap().flatten().map(|e| e.path()).find(|p| p.is_dir()).unwrap();
    let foreign = place.join("00000077");
    std::os::unix::fs::symlink("/etc/passwd", &foreign).unwrap();
    let outcome = support::run("test.wml", &text, support::real(PATIENCE, dir.path()));
    assert_eq!(outcome.status, Status::Refused, "{}", outcome.said);
    assert!(fs::symlink_metadata(&foreign).unwrap().is_symlink());
}

#[test]
fn truncate_fallocate_and_punchhole_change_the_allocated_space() {
    let file = "define file name=f,path=$dir,size=1m,prealloc";
    let one = |flowops: &str| {
        let dir = tempfile::tempdir().unwrap();
        let outcome = done(&once(file, flowops), dir.path());
        let meta = fs::metadata(&files(&dir.path().join("f"))[0]).unwrap();
        (meta.len(), meta.blocks() * 512, outcome)
    };
    assert_eq!(one("flowop truncate name=tr,filename=f,value=5000").0, 5000);
    assert_eq!(one("flowop truncate name=tr,filename=f").0, 0);
    let (len, taken, outcome) = one("flowop punchhole name=ph,filename=f,iosize=256k,iters=4");
    assert_eq!((len, named(&outcome, "ph").ops), (1 << 20, 4));
    assert!(taken < 64 << 10, "all four quarters were deallocated, but {taken} bytes are allocated");
    let (len, taken, _) =
        one("flowop truncate name=tr,filename=f,fd=1\nflowop fallocate name=al,filename=f,fd=1,iosize=512k,iters=2");
    assert_eq!(len, 1 << 20);
    assert!(taken >= 1 << 20);
}

#[test]
fn copyrange_copies_the_contents_of_the_source() {
    let dir = tempfile::tempdir().unwrap();
    let sets = "define file name=a,path=$dir,size=300000,prealloc\ndefine file name=b,path=$dir,size=300000";
    let flowops = "flowop openfile name=o,filename=a,fd=1\nflowop createfile name=c,filename=b,fd=2\n\
                   flowop copyrange name=cp,srcfd=1,fd=2\nflowop closefile name=x,fd=1\nflowop closefile name=y,fd=2";
    let outcome = done(&once(sets, flowops), dir.path());
    let read = |set: &str| fs::read(&files(&dir.path().join(set))[0]).unwrap();
    assert_eq!(read("a"), read("b"));
    assert_eq!(named(&outcome, "cp").bytes, 300_000);
}

#[test]
fn a_write_at_an_offset_extends_the_file_for_later_flowops() {
    let dir = tempfile::tempdir().unwrap();
    let sets = "define file name=a,path=$dir,size=4k,prealloc\ndefine file name=b,path=$dir,size=4k,prealloc";
    // The first copy reads the size of the source, which the slot follows from then on.
    let flowops = "flowop openfile name=o,filename=a,fd=1\nflowop copyrange name=first,filename=b,srcfd=1,fd=2\n\
                   flowop write name=w,filename=a,fd=1,iosize=4k,offset=8k\nflowop copyrange name=all,srcfd=1,fd=2\n\
                   flowop closefile name=x,fd=1\nflowop closefile name=y,fd=2";
    let outcome = done(&once(sets, flowops), dir.path());
    assert_eq!((named(&outcome, "first").bytes, named(&outcome, "all").bytes), (4096, 12_288));
    let read = |set: &str| fs::read(&files(&dir.path().join(set))[0]).unwrap();
    assert_eq!(read("a"), read("b"));
}

#[test]
fn sendfile_sends_the_file_as_long_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = "define file name=f,path=$dir,size=40000,prealloc";
    let flowops = "flowop sendfile name=whole,filename=f,fd=1\nflowop sendfile name=pieces,fd=1,iosize=16k,iters=2\n\
                   flowop truncate name=grow,fd=1,value=100000\nflowop sendfile name=grown,fd=1\n\
                   flowop read name=rd,fd=1,iosize=1k\nflowop truncate name=cut,fd=1\nflowop sendfile name=empty,fd=1";
    let outcome = done(&once(file, flowops), dir.path());
    let figures = |name| {
        let flowop = named(&outcome, name);
        (flowop.ops, flowop.bytes, flowop.calls, flowop.implicit_opens)
    };
    assert_eq!(figures("whole"), (1, 40_000, 0, 1));
    // 16 KiB, 16 KiB and a short call, which ends at the known size.
    assert_eq!(figures("pieces"), (2, 80_000, 4, 0));
    assert_eq!(figures("grown"), (1, 100_000, 0, 0));
    assert_eq!(figures("rd"), (1, 1024, 0, 0), "it does not move the file position");
    assert_eq!(figures("empty"), (1, 0, 0, 0));
}

#[test]
fn buffered_io_makes_few_calls_and_writes_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let file = "define file name=f,path=$dir,size=10000";
    let flowops = "flowop createfile name=c,filename=f,fd=1\nflowop bufwrite name=w,fd=1,iosize=100,iters=100\n\
                   flowop closefile name=x,fd=1\nflowop openfile name=o,filename=f,fd=1\n\
                   flowop bufread name=r,fd=1,iosize=100,iters=101\nflowop closefile name=y,fd=1";
    let outcome = done(&once(file, flowops), dir.path());
    let written = fs::read(&files(&dir.path().join("f"))[0]).unwrap();
    assert_eq!(written.len(), 10_000);
    assert!(written.chunks(100).all(|piece| piece.iter().any(|b| *b != 0)), "no piece is missing");
    let (w, r) = (named(&outcome, "w"), named(&outcome, "r"));
    assert_eq!((w.ops, w.bytes, r.ops, r.bytes), (100, 10_000, 101, 10_100));
    // Two full buffers; the third, not full, is closefile's. Reads: three that bring data, one that finds the end, then from
    // the start again a seek and a read.
    assert_eq!((w.calls, r.calls, named(&outcome, "x").calls), (2, 6, 1));
}

#[test]
fn mapped_io_moves_the_bytes_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = "define file name=f,path=$dir,size=64k,prealloc";
    done(&once(file, "flowop statfile name=s,filename=f"), dir.path());
    let path = files(&dir.path().join("f"))[0].clone();
    let before = fs::read(&path).unwrap();
    let flowops = "flowop mmapread name=r,filename=f,iosize=4k,random,iters=50\n\
                   flowop mmapwrite name=w,filename=f,iosize=4k,iters=16";
    let outcome = done(&once(&format!("{file},reuse"), flowops), dir.path());
    let after = fs::read(&path).unwrap();
    assert_eq!(after.len(), before.len());
    let changed = before.chunks(4096).zip(after.chunks(4096)).filter(|(a, b)| a != b).count();
    assert_eq!(changed, 16, "sixteen writes in order reach each block once");
    assert_eq!((named(&outcome, "r").bytes, named(&outcome, "w").bytes), (50 * 4096, 16 * 4096));
}

#[test]
fn truncating_a_mapped_file_is_an_error_and_not_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let text = "# dialect: fsl\nset mode quit firstdone\ndefine file name=f,path=$dir,size=8m,prealloc\n\
        define process name=p {\n\
        thread name=reader { flowop mmapread name=r,filename=f,iosize=4k,random\n\
                             flowop finishoncount name=e1,value=200000,target=r }\n\
        thread name=cutter { flowop truncate name=cut,filename=f,iters=100\n\
                             flowop truncate name=grow,filename=f,value=8m }\n}\n";
    let settings = wml::session::Settings { count_errors: true, ..support::real(2000, dir.path()) };
    let outcome = support::run("test.wml", text, settings);
    assert_eq!(outcome.status, Status::Done, "{}", outcome.said);
    let allowed = ["EFAULT".to_owned()];
    assert!(named(&outcome, "r").errors.keys().all(|e| allowed.contains(e)), "{:?}", named(&outcome, "r").errors);
}

#[test]
fn listdirplus_stats_each_name() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define fileset name=s,path=$dir,entries=10,dirwidth=10,dirgamma=0,prealloc";
    let flowops = "flowop listdir name=ls,filesetname=s,iters=4\nflowop listdirplus name=ll,filesetname=s,iters=4";
    let outcome = done(&once(set, flowops), dir.path());
    let (ls, ll) = (named(&outcome, "ls"), named(&outcome, "ll"));
    assert_eq!((ls.bytes, ll.bytes), (0, 0), "names are no file data");
    assert_eq!(ls.listed_bytes, ll.listed_bytes);
    assert_eq!(outcome.run().summary.listed_bytes, ls.listed_bytes + ll.listed_bytes);
    // Of the twelve entries of ten files, with `.` and `..`, and the root's, as Filebench counts them.
    assert!(ls.listed_bytes > 2 * 10 * (279 + 8), "{}", ls.listed_bytes);
    // The root with its one directory and the marker, twice, and the ten files, twice.
    assert_eq!(ll.calls - ls.calls, 2 * 2 + 2 * 10);
}

/// The file that a slot remembers is removed whatever the set is that the flowop names, and is there again in the next
/// run.
#[test]
fn deletefile_removes_the_file_of_its_slot_and_a_repair_makes_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let sets = "define fileset name=a,path=$dir,entries=5,dirwidth=9,size=100,prealloc,reuse\n\
        define fileset name=b,path=$dir,entries=5,dirwidth=9,size=100,prealloc,reuse";
    let flowops = "flowop openfile name=op,filesetname=a,fd=1\nflowop closefile name=cl,fd=1\n\
        flowop deletefile name=rm,filesetname=b,fd=1";
    let script = once(sets, flowops) + "run 60\nrun 60\n";
    let outcome = support::run("test.wml", &script, support::real(PATIENCE, dir.path()));
    assert_eq!((outcome.status, outcome.document.runs.len()), (Status::Done, 2), "{}", outcome.said);
    let left = ["a", "b"].map(|set| files(&dir.path().join(set)).len());
    assert_eq!(left, [4, 5], "of the second run");
}

/// As in Filebench, of a target and of the whole process: a listing of ten names has about 3 kB.
#[test]
fn finishonbytes_counts_listings() {
    for target in [",target=ls", ""] {
        let dir = tempfile::tempdir().unwrap();
        let set = "define fileset name=s,path=$dir,entries=10,dirwidth=20,dirgamma=0,prealloc";
        let flowops = format!(
            "flowop listdir name=ls,filesetname=s\nflowop finishonbytes name=end,value=10k{target}\n\
             flowop finishoncount name=never,value=1000,target=ls"
        );
        let script = format!("{set}\ndefine process name=p {{ thread name=t {{\n{flowops}\n}} }}\n");
        let outcome = done(&script, dir.path());
        let ls = named(&outcome, "ls");
        let each = ls.listed_bytes / ls.ops;
        assert!(ls.listed_bytes > 10_240 && ls.listed_bytes - each <= 10_240, "{target}: {each} bytes each");
    }
}

#[test]
fn extended_attributes_are_on_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define file name=f,path=$dir,size=1k,prealloc";
    let flowops = "flowop getxattr name=none,filename=f,iosize=200\nflowop setxattr name=sx,filename=f,iosize=100\n\
                   flowop getxattr name=gx,filename=f,iosize=200";
    let outcome = support::run("test.wml", &once(set, flowops), support::real(PATIENCE, dir.path()));
    if outcome.said.contains("not supported")
        || outcome.run().failure.as_ref().is_some_and(|f| f.errno.as_deref() == Some("EOPNOTSUPP"))
    {
        return;
    }
    assert_eq!(outcome.status, Status::Done, "{}", outcome.said);
    assert_eq!((named(&outcome, "none").ops, named(&outcome, "gx").ops), (1, 1));
    let mut value = [0; 256];
    let n = rustix::fs::getxattr(&files(&dir.path().join("f"))[0], c"user.wmlrun", &mut value[..]).unwrap();
    assert_eq!(n, 100);
}

// ---- where I/O goes, by which blocks change

/// The 4 KiB blocks of a file of 64 KiB that some flowops change, and the first and last byte that changes in each.
fn changed(flowops: &str) -> Vec<(usize, usize, usize)> {
    let dir = tempfile::tempdir().unwrap();
    let file = "define file name=f,path=$dir,size=64k,prealloc,reuse";
    done(&once(file, "flowop statfile name=s,filename=f"), dir.path());
    let path = files(&dir.path().join("f"))[0].clone();
    let before = fs::read(&path).unwrap();
    done(&once(file, flowops), dir.path());
    let after = fs::read(&path).unwrap();
    assert_eq!(before.len(), after.len());
    let blocks = before.chunks(4096).zip(after.chunks(4096)).enumerate();
    blocks
        .filter_map(|(n, (a, b))| {
            let differs = |i: &usize| a[*i] != b[*i];
            Some((n, (0..4096).find(differs)?, (0..4096).rfind(differs)?))
        })
        .collect()
}

fn blocks(flowops: &str) -> Vec<usize> {
    changed(flowops).into_iter().map(|(n, _, _)| n).collect()
}

#[test]
fn offsets_follow_the_attributes() {
    assert_eq!(blocks("flowop write name=w,filename=f,iosize=4k,iters=3"), [0, 1, 2]);
    assert_eq!(blocks("flowop write name=w,filename=f,iosize=4k,backward,iters=3"), [13, 14, 15]);
    assert_eq!(blocks("flowop write name=w,filename=f,iosize=4k,backward,workingset=32k,iters=2"), [6, 7]);
    assert_eq!(blocks("flowop write name=w,filename=f,iosize=4k,stride=8k,iters=4"), [0, 3, 6, 9]);
    // Two writers that share a file: each pass of the second begins at the second block.
    assert_eq!(
        blocks("flowop write name=w,filename=f,iosize=4k,stride=4k,offset=4k,iters=20"),
        [1, 3, 5, 7, 9, 11, 13, 15]
    );
    assert_eq!(blocks("flowop write name=w,filename=f,iosize=4k,offset=56k,iters=5"), [14, 15]);
    assert_eq!(blocks("flowop write name=w,filename=f,iosize=4k,random,workingset=16k,iters=200"), [0, 1, 2, 3]);
    assert_eq!(
        blocks("flowop write name=w,filename=f,iosize=4k,random,iters=2000").len(),
        16,
        "the last block is reached too"
    );
}

#[test]
fn reoffset_uses_the_offset_of_the_last_io() {
    let read = |more: &str| {
        blocks(&format!(
            "flowop openfile name=o,filename=f,fd=1\nflowop read name=r,fd=1,iosize=4k,{more}\n\
             flowop write name=w,fd=1,iosize=4k,reoffset\nflowop closefile name=c,fd=1"
        ))
    };
    assert_eq!(read("iters=5"), [4]);
    assert_eq!(read("iters=17"), [0], "the seventeenth read starts over");
    assert_eq!(read("backward,iters=2"), [14]);
    assert_eq!(read("random").len(), 1);
}

#[test]
fn aligned_offsets_are_multiples() {
    let all = changed("flowop write name=w,filename=f,iosize=512,random,align=4k,iters=500");
    assert!(all.len() > 10, "{all:?}");
    assert!(all.iter().all(|(_, _, last)| *last < 512), "{all:?}");
    let all = changed("flowop write name=w,filename=f,iosize=8k,random,align=4k,iters=500");
    assert_eq!(all.len(), 16, "from every block on but the last");
}

// ---- attributes, by what the null engine counts

/// Offsets that a file's reads would go to can't be seen on the null engine; sizes, counts and calls can.
fn counted(sets: &str, flowops: &str) -> BTreeMap<String, (u64, u64, u64)> {
    let text = once(&sets.replace("$dir", "/nowhere"), flowops);
    let outcome = support::run("test.wml", &text, support::null(PATIENCE));
    assert_eq!(outcome.status, Status::Done, "{}", outcome.said);
    outcome.run().flowops.iter().map(|f| (f.name.clone(), (f.ops, f.bytes, f.calls))).collect()
}

#[test]
fn fsyncevery_adds_an_fsync_each_time_its_bytes_are_written() {
    let all = counted(
        "define file name=f,path=$dir,size=1m,prealloc",
        "flowop write name=w,filename=f,iosize=4k,fsyncevery=16k,iters=17",
    );
    assert_eq!(all["w"], (17, 17 * 4096, 4));
}

#[test]
fn wrap_keeps_a_file_below_its_size() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, wrap) in [("write", 8), ("appendfile", 8), ("appendfilerand", 16), ("bufwrite", 8)] {
        let file = format!("define file name={kind},path=$dir,size=0,prealloc");
        let flowops = format!("flowop {kind} name=w,filename={kind},iosize=1k,wrap={wrap}k,iters=50");
        done(&once(&file, &flowops), dir.path());
        let len = fs::metadata(&files(&dir.path().join(kind))[0]).unwrap().len();
        assert!(len <= wrap << 10, "{kind}: {len}");
    }
}

#[test]
fn a_mix_draws_one_flowop_by_weight_per_iteration() {
    let text = "# dialect: fsl\nset mode quit firstdone\ndefine file name=f,path=/nowhere,size=1m,prealloc\n\
        define flowop name=both { flowop read name=r,filename=f,iosize=4k\nflowop read name=s,filename=f,iosize=4k }\n\
        define process name=p { thread name=t,mix {\n\
        flowop statfile name=often,filesetname=f,weight=6\nflowop both name=pair,weight=3\n\
        flowop statfile name=never,filesetname=f,weight=0\nflowop statfile name=rare,filesetname=f\n\
        flowop finishoncount name=end,value=20000,weight=0.5,target=often } }\n";
    let outcome = support::run("test.wml", text, support::null(PATIENCE));
    assert_eq!(outcome.run().ended_by, "count reached", "{}", outcome.said);
    let ops = |name: &str| named(&outcome, name).ops as f64;
    assert_eq!((named(&outcome, "never").ops, named(&outcome, "pair.r").ops), (0, named(&outcome, "pair.s").ops));
    assert!((ops("often") / ops("pair.r") - 2.0).abs() < 0.1);
    assert!((ops("often") / ops("rare") - 6.0).abs() < 0.6);
}

#[test]
fn an_open_loop_offers_its_rate_and_reports_the_backlog() {
    let text = |value: u64| {
        format!(
            "# dialect: fsl\ndefine file name=f,path=/nowhere,size=1m,prealloc\n\
             define process name=p {{ thread name=t,instances=2,rate=100 {{\n\
             flowop statfile name=look,filesetname=f\nflowop hog name=work,value={value} }} }}\n"
        )
    };
    // Nothing to do: every round that was to start has started, but for those that a busy machine was late with.
    let outcome = support::run("test.wml", &text(0), support::null(1000));
    let run = outcome.run();
    let open = run.open_loop.as_ref().unwrap();
    assert!((150.0..=250.0).contains(&open.offered_per_s), "{open:?}");
    let look = named(&outcome, "look");
    assert!(look.ops <= 202, "no more than were offered");
    assert_eq!(look.response_ns.as_ref().unwrap().min.is_some(), look.ops > 0);
    assert!(named(&outcome, "work").response_ns.is_none(), "the response is that of I/O");
    // Far too much to do: few rounds end, the rest queues up and is counted.
    let outcome = support::run("test.wml", &text(200_000_000), support::null(1000));
    let open = outcome.run().open_loop.as_ref().unwrap();
    assert!(open.achieved_per_s < open.offered_per_s / 2.0, "{open:?}");
    assert!(open.backlog > 50, "{open:?}");
    assert!(open.backlog_oldest_seconds > 0.3, "{open:?}");
    // What waits in the queue was not woken late.
    assert!(open.wakeup_latency_share.is_none_or(|share| share < 0.5), "{open:?}");
}

#[test]
fn a_rate_of_0_is_a_closed_loop() {
    let text = "# dialect: fsl\nset $load=0\nset $rate=$load / 4\nset mode quit firstdone\n\
        define file name=f,path=/nowhere,size=1m,prealloc\n\
        define process name=p { thread name=t,rate=$rate,arrival=poisson { flowop statfile name=s,filesetname=f\n\
        flowop finishoncount name=end,value=1000 } }\n";
    let outcome = support::run("test.wml", text, support::null(PATIENCE));
    assert_eq!(outcome.run().ended_by, "count reached", "{}", outcome.said);
    assert!(outcome.run().open_loop.is_none());
}

#[test]
fn an_append_wraps_by_the_size_of_the_file_however_often_it_was_opened() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define file name=f,path=$dir,size=4k,prealloc\n\
        define flowop name=log { flowop openfile name=o,filename=f,fd=1\n\
        flowop appendfile name=a,fd=1,iosize=16k,wrap=64k\nflowop closefile name=c,fd=1 }";
    let outcome = done(&once(set, "flowop log name=log,iters=10"), dir.path());
    assert_eq!(named(&outcome, "log.a").ops, 10);
    // 20k, 36k, 52k; the fourth append would exceed the limit and starts over: 16k, 32k, 48k, 64k; and again: 48k.
    assert_eq!(fs::metadata(&files(&dir.path().join("f"))[0]).unwrap().len(), 48 << 10);
}

#[test]
fn a_file_defined_as_empty_is_read_whole_in_few_calls() {
    let text = once(
        "define fileset name=s,path=/nowhere,entries=1,dirwidth=5,size=0,prealloc",
        "flowop appendfile name=ap,filesetname=s,fd=1,iosize=1m\nflowop readwholefile name=rd,filesetname=s,fd=1",
    );
    let outcome = support::run("test.wml", &text, support::null(PATIENCE));
    let read = named(&outcome, "rd");
    assert_eq!((read.ops, read.bytes), (1, 1 << 20));
    assert!(read.calls < 5, "{} calls", read.calls);
}

#[test]
fn asynchronous_operations_count_for_a_finish_from_their_submission_on() {
    let text = "# dialect: fsl\nset mode quit firstdone\ndefine file name=f,path=/nowhere,size=1m,prealloc\n\
        define process name=p { thread name=t { flowop aiowrite name=wr,filename=f,iosize=4k,random,iters=6\n\
        flowop finishoncount name=end,value=6,target=wr } }\n";
    let outcome = support::run("test.wml", text, support::null(PATIENCE));
    assert_eq!(outcome.run().ended_by, "count reached", "{}", outcome.said);
    assert_eq!((named(&outcome, "wr").ops, outcome.run().late_ops), (6, 0));
}

#[test]
fn a_finish_counts_its_target_from_the_end_of_the_warm_up_on() {
    let text = "# dialect: fsl\nset mode quit firstdone\ndefine file name=f,path=/nowhere,size=1m,prealloc\n\
        eventgen rate=1000\n\
        define process name=p { thread name=t { flowop statfile name=s,filename=f\nflowop eventlimit name=limit\n\
        flowop finishoncount name=end,value=1000,target=s } }\n";
    let warmup = wml::measure::WarmupLength::Fixed(std::time::Duration::from_millis(100));
    let outcome = support::run("test.wml", text, wml::session::Settings { warmup, ..support::null(PATIENCE) });
    assert_eq!(outcome.run().ended_by, "count reached", "{}", outcome.said);
    assert!(outcome.run().warmup.as_ref().is_some_and(|warmup| warmup.ops > 0), "{:?}", outcome.run().warmup);
    assert!(named(&outcome, "s").ops >= 1000, "{}", named(&outcome, "s").ops);
}

#[test]
fn the_time_of_a_run_is_ignored_in_the_other_modes_of_the_sun_dialect() {
    let seconds = |n| Some(std::time::Duration::from_secs(n));
    for (dialect, mode, option, wanted) in [
        ("sun", "timeout", None, seconds(5)),
        ("sun", "firstdone", None, None),
        ("sun", "alldone", None, None),
        ("sun", "alldone", seconds(7), seconds(7)),
        ("fsl", "alldone", None, seconds(5)),
    ] {
        let text = format!(
            "# dialect: {dialect}\nset mode quit {mode}\ndefine file name=f,path=/nowhere,size=1m,prealloc\n\
             define process name=p {{ thread name=t {{ flowop statfile name=s,filename=f }} }}\nrun 5\n"
        );
        let settings = wml::session::Settings { runtime: option, ..support::null(0) };
        let mut session = wml::session::Session::new(settings, std::sync::Arc::default());
        let model = session.read("test.wml", &text, &mut SilentFront::default()).unwrap();
        assert_eq!(session.run_lengths(&model), [wanted], "{dialect} {mode}");
    }
}
