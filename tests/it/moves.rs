//! Tests `rename` of the file in a slot and between file sets, flushes of directories, picks of recent files, and
//! `measure=`.

use std::fs;
use std::path::Path;

use wml::result::FlowopResult;
use wml::session::Status;

use crate::cmd::{Wml, count, flowop, memory};
use crate::strace;
use crate::support::{self, Outcome};

/// A bound in milliseconds, so that a mistake does not hang.
const PATIENCE: u64 = 60_000;

/// The sizes of the files of a set, by their paths.
fn files(root: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().unwrap().to_str().unwrap().parse::<u64>().is_ok() {
            found.push((path.display().to_string(), meta.len()));
        }
    }
    found.sort();
    found
}

/// Runs flowops once in one thread.
fn once(dir: &Path, sets: &str, flowops: &str) -> Outcome {
    let text = format!(
        "# dialect: fsl\nset mode quit firstdone\n{sets}\n\
         define process name=p {{ thread name=t {{\n{flowops}\n flowop finishoncount name=end,value=1 }} }}\n"
    );
    let outcome = support::run("test.wml", &text, support::real(PATIENCE, dir));
    assert_eq!(outcome.status, Status::Done, "{}", outcome.said);
    outcome
}

fn named<'a>(outcome: &'a Outcome, name: &str) -> &'a FlowopResult {
    outcome.run().flowops.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no flowop {name}"))
}

const MAILDIR: &str = "define fileset name=tmp,path=$dir,entries=20,size=3000,dirwidth=100,dirgamma=0\n\
    define fileset name=new,path=$dir,entries=20,size=5000,dirwidth=100,dirgamma=0\n\
    define fileset name=cur,path=$dir,entries=20,size=100,dirwidth=100,dirgamma=0,prealloc=100";

#[test]
fn the_file_in_a_slot_moves_to_another_set_and_stays_in_the_slot() {
    let dir = tempfile::tempdir().unwrap();
    let flowops = "flowop createfile name=cr,filesetname=tmp,fd=1\nflowop writewholefile name=wr,fd=1\n\
        flowop rename name=mv,filesetname=tmp,toset=new,fd=1\nflowop fsyncdir name=fs,fd=1\n\
        flowop statfile name=st,fd=1\nflowop closefile name=cl,fd=1\n\
        flowop rename name=again,filesetname=new,fd=1\nflowop deletefile name=other,filesetname=cur\n\
        flowop rename name=tocur,filesetname=new,toset=cur,fd=1";
    let outcome = once(dir.path(), MAILDIR, flowops);
    for name in ["mv", "fs", "st", "again", "other", "tocur"] {
        assert_eq!(named(&outcome, name).ops, 1, "{name}: {}", outcome.said);
    }
    let cur = files(&dir.path().join("cur"));
    assert_eq!((files(&dir.path().join("tmp")).len(), files(&dir.path().join("new")).len(), cur.len()), (0, 0, 20));
    assert_eq!(cur.iter().filter(|(_, size)| *size == 3000).count(), 1, "the file that was written: {cur:?}");
    // The next run finds nothing foreign and restores the definition.
    once(dir.path(), &MAILDIR.replace(",dirwidth", ",reuse,dirwidth"), "flowop statfile name=st,filesetname=cur");
    assert!(files(&dir.path().join("cur")).iter().all(|(_, size)| *size == 100));
}

#[test]
fn a_file_that_is_gone_is_not_moved_and_no_other_instead_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let set = |name| format!("define fileset name={name},path=$dir,entries=5,size=10,dirwidth=100,dirgamma=0");
    let sets = format!("{},prealloc=100\n{}", set("a"), set("b"));
    let flowops = "flowop openfile name=o1,filesetname=a,fd=1,indexed=0\nflowop openfile name=o2,filesetname=a,fd=2,indexed=0\n\
        flowop rename name=first,filesetname=a,toset=b,fd=1\nflowop rename name=late,filesetname=a,toset=b,fd=2";
    let outcome = once(dir.path(), &sets, flowops);
    assert_eq!((named(&outcome, "first").ops, named(&outcome, "late").ops), (1, 0));
    assert_eq!((files(&dir.path().join("a")).len(), files(&dir.path().join("b")).len()), (4, 1));
}

#[test]
fn a_move_over_existing_files_replaces_them() {
    let dir = tempfile::tempdir().unwrap();
    let set = |name, size| {
        format!("define fileset name={name},path=$dir,entries=5,size={size},dirwidth=100,dirgamma=0,prealloc=100")
    };
    let sets = format!("{}\n{}", set("draft", 10), set("data", 20));
    let outcome = once(dir.path(), &sets, "flowop rename name=mv,filesetname=draft,toset=data,over,iters=5");
    assert_eq!(named(&outcome, "mv").ops, 5);
    assert_eq!(files(&dir.path().join("draft")).len(), 0);
    let sizes: Vec<u64> = files(&dir.path().join("data")).into_iter().map(|(_, size)| size).collect();
    assert_eq!(sizes, [10; 5]);
}

/// A pipeline of three sets with a few names, so that all threads wait for each other all the time.
#[test]
fn many_threads_move_files_and_none_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let set = |name, n| format!("define fileset name={name},path=$dir,entries={n},size=10,dirwidth=4,dirgamma=0\n");
    let text = format!(
        "# dialect: fsl\n{}{}{}\
         define process name=p {{\n\
         thread name=in,instances=4 {{ flowop createfile name=cr,filesetname=tmp,fd=1\n\
           flowop closefile name=cl,fd=1\nflowop rename name=tonew,filesetname=tmp,toset=new,fd=1\n\
           flowop finishoncount name=end,value=500,target=tonew }}\n\
         thread name=on,instances=4 {{ flowop rename name=tocur,filesetname=new,toset=cur,uniform }}\n\
         thread name=back,instances=2 {{ flowop rename name=back,filesetname=cur,toset=new,recent=1 }}\n\
         thread name=out,instances=3 {{ flowop deletefile name=rm,filesetname=cur }}\n}}\n",
        set("tmp", 5),
        set("new", 7),
        set("cur", 9)
    );
    let outcome = support::run("test.wml", &text, support::real(PATIENCE, dir.path()));
    assert_eq!(outcome.status, Status::Done, "{}", outcome.said);
    assert_eq!(outcome.run().ended_by, "count reached");
    let ops = |name| {
        let f = named(&outcome, name);
        assert!(f.errors.is_empty(), "{name}: {:?}", f.errors);
        (f.ops + f.late_ops) as usize
    };
    let (made, tonew, tocur, back, removed) = (ops("cr"), ops("tonew"), ops("tocur"), ops("back"), ops("rm"));
    let left = ["tmp", "new", "cur"].map(|name| files(&dir.path().join(name)).len());
    assert_eq!(left, [made - tonew, tonew + back - tocur, tocur - back - removed]);
    // What is left over belongs to the sets, and is removed again.
    let sets = format!("{}{}{}", set("tmp", 5), set("new", 7), set("cur", 9)).replace(",dirgamma", ",reuse,dirgamma");
    once(
        dir.path(),
        &sets,
        "flowop statfs name=fs,filesetname=tmp\nflowop statfs name=fn,filesetname=new\nflowop statfs name=fc,filesetname=cur",
    );
    assert_eq!(["tmp", "new", "cur"].map(|name| files(&dir.path().join(name)).len()), [0, 0, 0]);
}

#[test]
fn a_move_without_a_free_name_ends_its_thread() {
    let dir = tempfile::tempdir().unwrap();
    let set =
        |name| format!("define fileset name={name},path=$dir,entries=5,size=10,dirwidth=100,dirgamma=0,prealloc=100\n");
    let text = format!(
        "# dialect: fsl\n{}{}define process name=p {{ thread name=t,instances=3 {{\n\
         flowop rename name=mv,filesetname=a,toset=b }} }}\n",
        set("a"),
        set("b")
    );
    let outcome = support::run("test.wml", &text, support::real(PATIENCE, dir.path()));
    assert_eq!(outcome.run().ended_by, "all threads done", "{}", outcome.said);
    assert_eq!((named(&outcome, "mv").ops, files(&dir.path().join("a")).len()), (0, 5));
}

#[test]
fn the_newest_files_are_behind_the_last_one_created() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define fileset name=s,path=$dir,entries=50,size=10,dirwidth=100,dirgamma=0\n\
        define flowop name=add { flowop createfile name=cr,filesetname=s,fd=1\nflowop closefile name=cl,fd=1 }";
    // So steep that practically all picks are of the newest.
    let outcome = once(
        dir.path(),
        set,
        "flowop add name=ten,iters=10\nflowop deletefile name=rm,filesetname=s,recent=100,iters=3",
    );
    assert_eq!(named(&outcome, "rm").ops, 3);
    let left: Vec<String> = files(&dir.path().join("s"))
        .into_iter()
        .map(|(path, _)| path.rsplit('/').next().unwrap().trim_start_matches('0').to_owned())
        .collect();
    assert_eq!(left, ["1", "2", "3", "4", "5", "6", "7"]);
}

#[test]
fn a_row_of_measure_is_the_time_of_all_that_it_spans() {
    let dir = tempfile::tempdir().unwrap();
    let sets = "define fileset name=s,path=$dir,entries=50,size=10,dirwidth=100,dirgamma=0,prealloc=100\n\
        define flowop name=look,measure=both { flowop statfile name=a,filesetname=s\nflowop statfile name=b,filesetname=s }";
    let outcome = once(dir.path(), sets, "flowop look name=look1,iters=40");
    let (both, a, b) = (named(&outcome, "both"), named(&outcome, "look1.a"), named(&outcome, "look1.b"));
    assert_eq!((both.ops, both.kind.as_str(), both.class.name()), (40, "measure", "other"));
    let mean = |f: &FlowopResult| f.latency_ns.mean.unwrap();
    // Its time is not less than that of the calls, to a nanosecond of rounding each.
    assert!(mean(both) + 2.0 >= mean(a) + mean(b), "{} < {} + {}", mean(both), mean(a), mean(b));
    assert_eq!(outcome.run().summary.ops, 80, "it is no I/O");
}

/// In an open loop, an iteration has a response time from its intended start.
#[test]
fn an_iteration_of_an_open_loop_has_a_response_time() {
    let dir = tempfile::tempdir().unwrap();
    let text = "# dialect: fsl\ndefine fileset name=s,path=$dir,entries=5,size=10,dirwidth=100,dirgamma=0,prealloc=100\n\
        define process name=p { thread name=t,rate=1000,measure=request {\n\
        flowop statfile name=a,filesetname=s\nflowop finishoncount name=end,value=20,target=request } }\n";
    let outcome = support::run("test.wml", text, support::real(PATIENCE, dir.path()));
    let request = named(&outcome, "request");
    assert_eq!(request.ops, 20, "{}", outcome.said);
    let (service, response) = (request.latency_ns.mean.unwrap(), request.response_ns.unwrap().mean.unwrap());
    assert!(response + 1.0 >= service, "response {response}, service {service}");
}

/// The kernel's view of a delivery: the directory that is flushed is the one that the file was moved to.
#[test]
fn the_directory_of_the_moved_file_is_flushed() {
    needs!(strace::available());
    let script = format!(
        "# dialect: fsl\nset mode quit firstdone\n{MAILDIR}\ndefine process name=p {{ thread name=t {{\n\
         flowop createfile name=cr,filesetname=tmp,fd=1\nflowop closefile name=cl,fd=1\n\
         flowop rename name=mv,filesetname=tmp,toset=new,fd=1\nflowop fsyncdir name=fs,fd=1\n\
         flowop finishoncount name=end,value=4,target=fs }} }}\n"
    );
    let call = Wml::below(&memory()).file("x.wml", &script).args(["x.wml", "--runtime", "60"]).result();
    let (output, log) = strace::run(call);
    let run = output.exits(0).only_run();
    assert_eq!((count(flowop(&run, "fs"), "ops"), count(flowop(&run, "fs"), "calls")), (4, 8));
    let steps = log.of_steps();
    let flushed: Vec<String> = steps.calls().filter(|call| call.name == "fsync").map(strace::Call::file).collect();
    assert_eq!(flushed.len(), 4);
    assert!(flushed.iter().all(|dir| dir.ends_with("/new/00000001")), "{flushed:?}");
    let moves: Vec<&strace::Call> = steps.calls().filter(|call| call.name.starts_with("rename")).collect();
    assert_eq!(moves.len(), 4);
    for call in moves {
        let dirs: Vec<&String> = call.args.iter().filter(|arg| arg.contains('<')).collect();
        assert!(dirs[0].contains("/tmp/00000001>") && dirs[1].contains("/new/00000001>"), "{:?}", call.args);
    }
}
