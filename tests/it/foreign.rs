//! Tests foreign objects in the place of a file set's files: they are refused with exit status 3, named, and not
//! changed.
//!
//! Each object is placed there before a run, or swapped in during a run. Roots with foreign names are in
//! [`crate::ownership`].

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cmd::{Output, Wml, has, scratch, short_or_long, skip, tool};
use crate::mounts::{self, Fs, Mount};
use crate::tree::tree;
use crate::undisturbed::undisturbed;

/// Eight files in one directory; the third is the one that is replaced.
const FILE: &str = "data/00000001/00000003";

fn script(extra: &str, flowops: &str) -> String {
    format!(
        "# dialect: fsl\n\
         define fileset name=data,path=$dir,size=8k,entries=8,dirwidth=20,dirgamma=0,prealloc=100{extra}\n\
         define process name=p {{ thread name=t,memsize=64k {{\n{flowops} }} }}\n"
    )
}

const WRITE: &str = "flowop writewholefile name=w,filesetname=data,fd=1,iosize=4k\nflowop closefile name=c,fd=1\n";

fn call(dir: &Path, extra: &str, flowops: &str) -> Wml {
    longer("0.2", dir, extra, flowops)
}

fn longer(runtime: &str, dir: &Path, extra: &str, flowops: &str) -> Wml {
    let call = Wml::new().file("w.wml", &script(extra, flowops)).args(["w.wml", "--runtime", runtime, "--no-quiesce"]);
    call.timeout(Duration::from_mins(1)).args(["--dir"]).args([dir])
}

fn place() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("foreign-").tempdir_in(scratch()).unwrap()
}

/// A directory with the tree of an earlier run.
fn made() -> tempfile::TempDir {
    let dir = place();
    call(dir.path(), "", WRITE).run().exits(0);
    assert!(dir.path().join(FILE).is_file(), "the tree is kept");
    dir
}

/// Commands that undo the setup of a test, executed on drop.
struct Undo(Vec<Vec<String>>);

impl Drop for Undo {
    fn drop(&mut self) {
        for words in &self.0 {
            let _ = std::process::Command::new(&words[0]).args(&words[1..]).output();
        }
    }
}

fn undo(words: &[&str]) -> Undo {
    Undo(vec![words.iter().map(ToString::to_string).collect()])
}

/// Something foreign: its name here, the words by which it is named, and how it is made at a path, given a foreign file.
type Thing = (&'static str, &'static str, fn(&Path, &Path) -> Undo);

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Those that any user can make, and those that only root can.
fn things() -> Vec<Thing> {
    let mut things: Vec<Thing> = vec![
        ("link", "symbolic link", |at, foreign| {
            symlink(foreign, at).unwrap();
            Undo(Vec::new())
        }),
        ("pipe", "named pipe", |at, _| {
            tool("mkfifo", &[text(at)]);
            Undo(Vec::new())
        }),
        ("socket", "socket", |at, _| {
            // A path of a socket is short.
            let short = tempfile::tempdir_in("/tmp").unwrap();
            drop(UnixListener::bind(short.path().join("s")).unwrap());
            tool("mv", &[text(&short.path().join("s")), text(at)]);
            Undo(Vec::new())
        }),
        ("directory", "side by side", |at, _| {
            fs::create_dir(at).unwrap();
            fs::write(at.join("precious"), "mine").unwrap();
            Undo(Vec::new())
        }),
        ("hard link", "another name", |at, foreign| {
            fs::hard_link(foreign, at).unwrap();
            Undo(Vec::new())
        }),
    ];
    if rustix::process::geteuid().is_root() {
        things.push(("character device", "character device", |at, _| {
            tool("mknod", &[text(at), "c", "1", "3"]);
            Undo(Vec::new())
        }));
        things.push(("block device", "block device", |at, foreign| {
            let device = tool("losetup", &["--find", "--show", text(foreign)]).trim().to_owned();
            let number = fs::metadata(&device).unwrap().rdev();
            let (major, minor) = (rustix::fs::major(number).to_string(), rustix::fs::minor(number).to_string());
            tool("mknod", &[text(at), "b", &major, &minor]);
            undo(&["losetup", "--detach", &device])
        }));
        things.push(("mounted file", "mounted", |at, foreign| {
            fs::write(at, "").unwrap();
            tool("mount", &["--bind", text(foreign), text(at)]);
            undo(&["umount", text(at)])
        }));
    } else {
        skip("only root can make devices and mounts");
    }
    things
}

/// A foreign file of some size outside the tree, in a separate directory.
fn precious() -> (tempfile::TempDir, PathBuf) {
    let dir = place();
    let file = dir.path().join("precious");
    fs::write(&file, vec![b'x'; 64 << 10]).unwrap();
    (dir, file)
}

/// Bytes, times of content and mode: links come and go with the tests themselves.
fn content(file: &Path) -> (Vec<u8>, i64, i64, u64, u32) {
    let meta = fs::symlink_metadata(file).unwrap();
    (fs::read(file).unwrap(), meta.mtime(), meta.mtime_nsec(), meta.ino(), meta.mode())
}

#[track_caller]
fn assert_named(output: &Output, what: &str, words: &[&str]) {
    for word in words {
        assert!(output.stderr.contains(word), "{what}: no `{word}` in\n{}", output.shown());
    }
}

#[test]
fn a_foreign_object_in_the_place_of_a_file_is_refused_before_and_during_a_run() {
    let ways = [",reuse", ",trusttree", ",reuse,cached", ",trusttree,cached", ",reuse,trusttree,readonly"];
    for (n, (name, word, lay)) in things().into_iter().enumerate() {
        let chosen: Vec<_> = ways.iter().cycle().skip(n).take(short_or_long(2, ways.len())).collect();
        for extra in chosen {
            let (dir, (_keep, foreign)) = (made(), precious());
            let at = dir.path().join(FILE);
            fs::remove_file(&at).unwrap();
            let _undo = lay(&at, &foreign);
            let before = content(&foreign);
            let what = format!("{name} with `{extra}`");
            let flowops = if extra.contains("readonly") {
                "flowop readwholefile name=r,filesetname=data,fd=1\nflowop closefile name=c,fd=1\n"
            } else {
                WRITE
            };
            let output = call(dir.path(), extra, flowops).run();
            assert_eq!(output.code(), 3, "{what}\n{}", output.shown());
            assert_named(&output, &what, &[word, FILE]);
            assert!(before == content(&foreign), "{what}: the foreign file was changed\n{}", output.shown());
            assert!(fs::symlink_metadata(&at).is_ok(), "{what}: it was removed");
        }
    }
}

/// Loops of each operation that opens, changes or removes files by their names.
const OPERATIONS: &[(&str, &str)] = &[
    ("openfile", "flowop openfile name=o,filesetname=data,fd=1\nflowop closefile name=c,fd=1\n"),
    ("readwholefile", "flowop readwholefile name=r,filesetname=data,fd=1\nflowop closefile name=c,fd=1\n"),
    ("writewholefile", WRITE),
    ("appendfile", "flowop appendfile name=a,filesetname=data,fd=1,iosize=1k,wrap=16k\nflowop closefile name=c,fd=1\n"),
    ("write", "flowop write name=w,filesetname=data,fd=1,iosize=4k,random\nflowop closefile name=c,fd=1\n"),
    ("truncate", "flowop truncate name=t,filesetname=data,fd=1\nflowop closefile name=c,fd=1\n"),
    ("setxattr", "flowop setxattr name=s,filesetname=data,fd=1\nflowop closefile name=c,fd=1\n"),
    ("chmod", "flowop chmod name=s,filesetname=data,mode=640\n"),
    ("setattr", "flowop setattr name=s,filesetname=data\n"),
    (
        "deletefile",
        "flowop deletefile name=d,filesetname=data\nflowop createfile name=cr,filesetname=data,fd=1\n\
         flowop closefile name=c,fd=1\n",
    ),
    (
        "rename",
        "flowop deletefile name=d,filesetname=data\nflowop rename name=m,filesetname=data\n\
         flowop createfile name=cr,filesetname=data,fd=1\nflowop closefile name=c,fd=1\n",
    ),
    ("statfile", "flowop statfile name=s,filesetname=data\n"),
    ("mmapwrite", "flowop mmapwrite name=w,filesetname=data,fd=1,iosize=4k\nflowop closefile name=c,fd=1\n"),
];

#[test]
fn a_foreign_object_swapped_in_during_a_run_is_refused() {
    // On a busy machine the run may have looked at the file just before: within that second nothing is seen.
    undisturbed(|| {
        // A mount needs a file of its own below it: it can't be moved into its place.
        let things: Vec<_> = things().into_iter().filter(|thing| thing.0 != "mounted file").collect();
        let all = OPERATIONS.iter().enumerate().flat_map(|(o, operation)| {
            things.iter().enumerate().map(move |(t, thing)| ((o * 5 + t * 3) % 7, operation, thing))
        });
        // Every operation meets some of them, every one of them some operations.
        for (_, (operation, flowops), (name, word, lay)) in all.filter(|case| case.0 == 0 || crate::cmd::long()) {
            // The answer is all that `statfile` takes, and another name does not change it.
            if *operation == "statfile" && matches!(*name, "hard link" | "link") {
                continue;
            }
            let (dir, (keep, foreign)) = (place(), precious());
            let at = dir.path().join(FILE);
            let aside = keep.path().join("aside");
            let _undo = lay(&aside, &foreign);
            let before = content(&foreign);
            let running = longer("30", dir.path(), "", flowops).start();
            let marker = dir.path().join("data/.wmlrun");
            wait_until(|| fs::read_to_string(&marker).is_ok_and(|marker| marker.contains("\"ready\"")));
            if *name == "directory" {
                // They change places, since an operation may not find nothing there. The file itself may be away for a moment.
                let swap = rustix::fs::RenameFlags::EXCHANGE;
                wait_until(|| rustix::fs::renameat_with(rustix::fs::CWD, &aside, rustix::fs::CWD, &at, swap).is_ok());
            } else {
                fs::rename(&aside, &at).unwrap();
            }
            let output = running.wait();
            let what = format!("{name} under {operation}");
            assert_eq!(output.code(), 3, "{what}\n{}", output.shown());
            assert_named(&output, &what, &[word, "data/00000001/0000000"]);
            assert!(before == content(&foreign), "{what}: the foreign file was changed\n{}", output.shown());
            assert!(fs::symlink_metadata(&at).is_ok(), "{what}: it was removed\n{}", output.shown());
        }
    });
}

#[test]
fn a_hard_link_at_the_name_of_a_new_file_is_not_emptied() {
    let (dir, (_keep, foreign)) = (place(), precious());
    let run = |extra: &str, flowops: &str| {
        let half = script(extra, flowops).replace("prealloc=100", "prealloc=50");
        let call = Wml::new().file("w.wml", &half).args(["w.wml", "--runtime", "0.2", "--no-quiesce", "--dir"]);
        call.args([dir.path()]).run()
    };
    run("", "flowop statfile name=s,filesetname=data\n").exits(0);
    let names = (1..=8).map(|number| dir.path().join(format!("data/00000001/{number:08}")));
    let absent = names.into_iter().find(|name| !name.exists()).unwrap();
    let create = "flowop createfile name=cr,filesetname=data,fd=1\nflowop closefile name=c,fd=1\n";
    fs::hard_link(&foreign, &absent).unwrap();
    let before = content(&foreign);
    let output = run(",trusttree", create);
    assert_eq!(output.code(), 3, "{}", output.shown());
    assert_named(&output, "createfile", &["another name", "data/00000001/0000000"]);
    assert!(before == content(&foreign), "the foreign file was changed\n{}", output.shown());
    // A file with one name is left by an earlier run, and is emptied as `O_TRUNC` does.
    fs::remove_file(&absent).unwrap();
    fs::write(&absent, "left").unwrap();
    run(",trusttree", create).exits(0);
    assert_eq!(fs::metadata(&absent).unwrap().len(), 0);
}

#[track_caller]
fn wait_until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_mins(1), "it does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a run and `clean` refuse, with everything in `dir` as it was.
#[track_caller]
fn assert_kept(dir: &Path, extras: &[&str], words: &[&str]) {
    let before = tree(dir);
    for extra in extras {
        let output = call(dir, extra, WRITE).run();
        assert_eq!(output.code(), 3, "`{extra}`\n{}", output.shown());
        assert_named(&output, extra, words);
        assert!(before == tree(dir), "`{extra}`: something was changed\n{}", output.shown());
    }
    let output = Wml::new().args(["clean"]).args([dir]).run();
    assert_eq!(output.code(), 3, "clean\n{}", output.shown());
    assert!(before == tree(dir), "clean: something was changed\n{}", output.shown());
}

/// A path in a tree, and the object that is created there.
type Laid = (&'static str, fn(&Path));

#[test]
fn numbers_outside_the_layout_are_foreign() {
    let lay: [Laid; 5] = [
        ("data/20240101", |at| fs::create_dir(at).unwrap()),
        ("data/00000002", |at| {
            fs::create_dir(at).unwrap();
            fs::write(at.join("00000001"), "mine").unwrap();
        }),
        ("data/00000001/20240102", |at| fs::write(at, "mine").unwrap()),
        ("data/00000001/00000009", |at| fs::write(at, "mine").unwrap()),
        ("data/00000001/00000000", |at| fs::write(at, "mine").unwrap()),
    ];
    for (name, lay) in lay {
        let dir = made();
        lay(&dir.path().join(name));
        assert_kept(dir.path(), &[""], &[name]);
    }
    // Widths and depths that are drawn: the tree has a shape of its own each time, and is known all the same.
    for more in [",dirwidth=3,dirgamma=1500", ",dirwidth=randvar(type=uniform,min=2,max=5)"] {
        let script =
            script("", WRITE).replace(",dirwidth=20,dirgamma=0", more).replace("entries=8", "entries=60,leafdirs=7");
        let run = |dir: &Path| {
            let call = Wml::new().file("w.wml", &script).args(["w.wml", "--runtime", "0.2", "--no-quiesce"]);
            call.args(["--dir"]).args([dir]).run()
        };
        let dir = place();
        run(dir.path()).exits(0);
        run(dir.path()).exits(0);
        let foreign = dir.path().join("data/20240101");
        fs::create_dir(&foreign).unwrap();
        run(dir.path()).exits(3);
        Wml::new().args(["clean"]).args([dir.path()]).run().exits(3);
        fs::remove_dir(foreign).unwrap();
        Wml::new().args(["clean"]).args([dir.path()]).run().exits(0);
        assert!(!dir.path().join("data").exists());
    }
}

/// A word of its refusal, and how it is made.
type Marker<'a> = (&'static str, &'a dyn Fn(&Path));

#[test]
fn a_damaged_or_copied_marker_is_not_valid() {
    let image = precious();
    let markers: [Marker<'_>; 6] = [
        ("empty", &|at| fs::write(at, "").unwrap()),
        ("zeros", &|at| fs::File::create(at).unwrap().set_len(1 << 20).unwrap()),
        ("earlier version", &|at| {
            fs::write(at, "{\"format\":1,\"set\":\"data\",\"state\":\"ready\",\"made_root\":true,\"layout\":null}")
                .unwrap();
        }),
        ("another name", &|at| fs::hard_link(&image.1, at).unwrap()),
        ("not written by wmlrun", &|at| fs::write(at, "wmlrun marker 00\n{}").unwrap()),
        ("copy", &|at| {
            let made = made();
            fs::copy(made.path().join("data/.wmlrun"), at).unwrap();
        }),
    ];
    for (word, lay) in markers {
        let dir = place();
        fs::create_dir_all(dir.path().join("data/00000001")).unwrap();
        fs::write(dir.path().join(FILE), "precious").unwrap();
        lay(&dir.path().join("data/.wmlrun"));
        assert_kept(dir.path(), &["", ",reuse", ",trusttree"], &[word, ".wmlrun"]);
    }
    // A copy of a whole tree, as a backup makes it, says what to do.
    let dir = made();
    let copy = place();
    tool("cp", &["-a", text(&dir.path().join("data")), text(copy.path())]);
    assert_kept(copy.path(), &["", ",reuse"], &["copy", "--adopt"]);
    fs::remove_file(copy.path().join("data/.wmlrun")).unwrap();
    call(copy.path(), "", WRITE).args(["--adopt"]).run().exits(0);
}

#[test]
fn a_partial_marker_of_a_killed_run_does_not_prevent_the_next() {
    let dir = place();
    fs::create_dir(dir.path().join("data")).unwrap();
    fs::write(dir.path().join("data/.wmlrun.new"), "").unwrap();
    call(dir.path(), "", WRITE).run().exits(0);
    assert!(!dir.path().join("data/.wmlrun.new").exists());
    let dir = place();
    fs::create_dir(dir.path().join("data")).unwrap();
    fs::write(dir.path().join("data/.wmlrun.new"), "mine").unwrap();
    let before = tree(dir.path());
    call(dir.path(), "", WRITE).run().exits(3);
    assert!(before == tree(dir.path()));
}

#[test]
fn clean_removes_an_incomplete_marker() {
    needs!(has("strace"), "strace not found");
    let clean = |dir: &Path| Wml::new().args(["clean"]).args([dir]).run().exits(0).stdout;
    // Killed when the marker is written, but does not have its name yet.
    for call_name in ["pwrite64", "fsync", "renameat2"] {
        let dir = place();
        let inject = format!("inject={call_name}:signal=KILL:when=1");
        let strace = ["strace", "-f", "-o", "/dev/null", "-e", &format!("trace={call_name}"), "-e", &inject];
        let output = call(dir.path(), "", WRITE).under(strace).run();
        assert!(dir.path().join("data/.wmlrun.new").is_file(), "{call_name}: {}", output.shown());
        assert!(clean(dir.path()).contains("data removed"), "{call_name}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{call_name}");
    }
    // One that says nothing yet: the directory may have been there before. And one of another program.
    let longer = format!("{}mine", " ".repeat(16 << 10));
    let kept = "data: incomplete marker removed; the empty directory is kept\n";
    for (content, said, left) in
        [("", kept, false), ("mine", "no file sets", true), (longer.as_str(), "no file sets", true)]
    {
        let dir = place();
        fs::create_dir(dir.path().join("data")).unwrap();
        fs::write(dir.path().join("data/.wmlrun.new"), content).unwrap();
        let stdout = clean(dir.path());
        assert!(stdout.contains(said), "{content}: {stdout}");
        assert_eq!(dir.path().join("data/.wmlrun.new").exists(), left, "{content}");
        assert!(dir.path().join("data").is_dir(), "{content}");
    }
    // One in a directory that has files: nothing says that it was adopted.
    let dir = place();
    fs::create_dir(dir.path().join("data")).unwrap();
    fs::write(dir.path().join("data/.wmlrun.new"), "").unwrap();
    fs::write(dir.path().join("data/notes"), "mine").unwrap();
    let stdout = clean(dir.path());
    assert!(stdout.contains("data: incomplete marker removed; other files kept\n"), "{stdout}");
    assert_eq!(fs::read_to_string(dir.path().join("data/notes")).unwrap(), "mine");
    assert_eq!(fs::read_dir(dir.path().join("data")).unwrap().count(), 1);
}

/// As on Lustre without the option `flock`. The lock of a marker is what keeps other programs out of a tree.
#[test]
fn a_file_system_without_locks_is_refused_with_advice() {
    needs!(has("strace"), "strace not found");
    let strace = ["strace", "-f", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:error=ENOSYS"];
    let refused = |dir: &Path| {
        let before = tree(dir);
        let output = call(dir, "", WRITE).under(strace).run().exits(3);
        assert_named(&output, "without locks", &["can't lock", "ENOSYS", "-o flock"]);
        // Names come and go in the directory, so that its times change.
        assert!(before.keys().eq(tree(dir).keys()), "{}", output.shown());
    };
    let new = place();
    refused(new.path());
    let unfinished = place();
    fs::create_dir(unfinished.path().join("data")).unwrap();
    fs::write(unfinished.path().join("data/.wmlrun.new"), "").unwrap();
    refused(unfinished.path());
    refused(made().path());
}

/// Killed at each call on the way to its marker, an adoption leaves either none or one that is whole.
#[test]
fn a_killed_adoption_does_not_make_a_tree_removable() {
    needs!(has("strace"), "strace not found");
    for (call_name, times) in [("pwrite64", 1), ("fsync", 1), ("renameat2", 1), ("fsync", 2), ("pwrite64", 2)] {
        let dir = made();
        fs::remove_file(dir.path().join("data/.wmlrun")).unwrap();
        let files = || {
            let mut all = tree(&dir.path().join("data"));
            all.retain(|path, _| path.to_string_lossy().contains("0000"));
            all
        };
        let before = files();
        let inject = format!("inject={call_name}:signal=KILL:when={times}");
        let strace = ["strace", "-f", "-o", "/dev/null", "-e", &format!("trace={call_name}"), "-e", &inject];
        let output =
            call(dir.path(), "", "flowop statfile name=s,filesetname=data\n").args(["--adopt"]).under(strace).run();
        assert_ne!(output.code(), 0, "{call_name} {times}: not killed\n{}", output.shown());
        assert!(before == files(), "{call_name} {times}");
        // Neither a run nor `clean` takes it for its own.
        call(dir.path(), "", "flowop statfile name=s,filesetname=data\n").run();
        assert!(before == files(), "{call_name} {times}: the next run");
        Wml::new().args(["clean"]).args([dir.path()]).run();
        assert!(before == files(), "{call_name} {times}: clean");
    }
}

#[test]
fn a_tree_with_hard_links_is_not_adopted() {
    let dir = made();
    fs::remove_file(dir.path().join("data/.wmlrun")).unwrap();
    let backup = place();
    tool("cp", &["-al", text(&dir.path().join("data")), text(backup.path())]);
    for extra in ["", ",reuse"] {
        let before = tree(backup.path());
        let output = call(dir.path(), extra, WRITE).args(["--adopt"]).run().exits(3);
        assert_named(&output, extra, &["another name", "00000001/0000000"]);
        assert!(before == tree(backup.path()), "the backup was changed");
        assert!(!dir.path().join("data/.wmlrun").exists(), "it was marked all the same");
    }
}

/// Names that `link` flowops have made are known to the next run.
#[test]
fn links_created_by_a_set_belong_to_it() {
    // To the end of a round: a trusted tree has all of its names.
    let link = "flowop deletefile name=d,filesetname=data\nflowop link name=l,filesetname=data\n\
                flowop finishoncount name=end,value=40,target=l\n";
    let dir = place();
    for extra in ["", ",reuse", ",trusttree", ",reuse"] {
        call(dir.path(), extra, link).run().exits(0);
    }
    // Without such flowops each file is one again; a trusted tree is as it was left.
    call(dir.path(), ",reuse", WRITE).run().exits(0);
    call(dir.path(), "", link).run().exits(0);
    call(dir.path(), ",trusttree", "flowop statfile name=s,filesetname=data\n").run().exits(0);
    call(dir.path(), "", WRITE).run().exits(0);
}

#[test]
fn a_subvolume_and_a_mount_in_a_tree_are_not_entered() {
    needs!(mounts::available(&[Fs::Btrfs]));
    let mount = Mount::new(Fs::Btrfs, 512 << 20);
    fs::create_dir(mount.dir().join("d")).unwrap();
    let small = |extra: &str| call(&mount.dir().join("d"), extra, WRITE);
    small("").run().exits(0);
    let below = mount.dir().join("d/data/00000001");
    fs::remove_dir_all(&below).unwrap();
    tool("btrfs", &["subvolume", "create", text(&below)]);
    fs::write(below.join("00000001"), "precious").unwrap();
    assert_kept(&mount.dir().join("d"), &["", ",reuse"], &["subvolume", "data/00000001"]);
    let output = small(",trusttree").run().exits(3);
    assert_named(&output, "trusttree", &["subvolume", "data/00000001"]);
    assert_eq!(fs::read_to_string(below.join("00000001")).unwrap(), "precious");
    // Without it the tree is ours again.
    tool("btrfs", &["subvolume", "delete", text(&below)]);
    small(",reuse").run().exits(0);
}

#[test]
fn clean_keeps_empty_directories_that_no_run_created() {
    let dir = place();
    fs::create_dir(dir.path().join("wmlrun-2024-02")).unwrap();
    Wml::new().args(["clean"]).args([dir.path()]).run().exits(0);
    Wml::new().args(["clean"]).args([dir.path().join("wmlrun-2024-02")]).run().exits(0);
    assert!(dir.path().join("wmlrun-2024-02").is_dir());
}

#[test]
fn a_root_that_was_replaced_is_not_removed() {
    let dir = place();
    let running = longer("30", dir.path(), "", WRITE).args(["--clean", "--live", "jsonl:live"]).start();
    let root = dir.path().join("data");
    wait_until(|| fs::read_to_string(running.dir().join("live")).is_ok_and(|lines| lines.contains("\"started\"")));
    fs::rename(&root, dir.path().join("aside")).unwrap();
    fs::create_dir(&root).unwrap();
    let inode = fs::metadata(&root).unwrap().ino();
    running.signal(rustix::process::Signal::INT);
    let output = running.wait();
    assert_eq!(fs::metadata(&root).unwrap().ino(), inode, "the foreign directory is there");
    let said = "data is not removed: no tree of wmlrun is there any more";
    assert!(output.stderr.contains(said), "{}", output.shown());
    assert!(dir.path().join("aside/.wmlrun").exists(), "{}", output.shown());
}

#[test]
fn clean_names_trees_that_it_has_no_permission_to_read() {
    needs!(has("setpriv"), "setpriv not found");
    let dir = made();
    let root = dir.path().join("data");
    tool("chmod", &["000", text(&root)]);
    let call = Wml::new().args(["clean"]).args([dir.path()]);
    // Root without its rights is as any other user.
    let call = if rustix::process::geteuid().is_root() { call.under(["setpriv", "--bounding-set=-all"]) } else { call };
    let output = call.run();
    tool("chmod", &["755", text(&root)]);
    assert_eq!(output.code(), 3, "{}", output.shown());
    assert_named(&output, "clean", &[text(&root)]);
    assert!(!output.shown().contains("no file sets of wmlrun"), "{}", output.shown());
}

#[test]
fn a_tree_that_can_only_be_read_is_measured_as_it_is() {
    needs!(rustix::process::geteuid().is_root() && has("setpriv"), "it needs root and setpriv");
    let dir = made();
    let root = dir.path().join("data");
    tool("chown", &["-R", "65534:65534", text(&root)]);
    let before = tree(&root);
    // Root without its rights is as any other user.
    let run = |extra: &str, options: &[&str]| {
        let read = "flowop readwholefile name=r,filesetname=data,iosize=4k\n";
        let call = call(dir.path(), &format!(",readonly{extra}"), read).args(options);
        call.under(["setpriv", "--bounding-set=-all"]).run()
    };
    run("", &["--as-is"]).exits(0);
    run(",reuse", &[]).exits(0);
    for extra in ["", ",reuse,size=4k"] {
        let output = run(extra, &[]).exits(3);
        assert_named(&output, extra, &["EACCES", "--as-is", ".wmlrun"]);
        assert!(before == tree(&root), "{extra}: {}", output.shown());
    }
    let output = Wml::new().args(["clean"]).args([dir.path()]).under(["setpriv", "--bounding-set=-all"]).run().exits(3);
    assert_named(&output, "clean", &["EACCES", ".wmlrun"]);
    assert!(before == tree(&root), "{}", output.shown());
}

#[test]
fn sizes_that_overflow_are_too_large() {
    for (entries, size) in [("4", 1_u64 << 62), ("8", 1 << 61), ("16", (1 << 60) + 1), ("1", 1 << 62)] {
        let dir = place();
        for reuse in ["", ",reuse"] {
            let script = script(reuse, WRITE).replace("entries=8", &format!("entries={entries}"));
            let script = script.replace("size=8k", &format!("size={size}"));
            let call =
                Wml::new().file("w.wml", &script).args(["w.wml", "--runtime", "0.2", "--dir"]).args([dir.path()]);
            let output = call.run().exits(3);
            assert_named(&output, entries, &["not enough"]);
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "something was left");
        }
    }
}

/// A snapshot keeps the numbers and times of all files, the marker's too.
#[test]
fn a_snapshot_of_a_tree_has_no_valid_marker() {
    needs!(mounts::available(&[Fs::Btrfs]));
    let mount = Mount::new(Fs::Btrfs, 512 << 20);
    let (volume, snapshot) = (mount.dir().join("volume"), mount.dir().join("snapshot"));
    tool("btrfs", &["subvolume", "create", text(&volume)]);
    call(&volume, "", WRITE).run().exits(0);
    tool("btrfs", &["subvolume", "snapshot", text(&volume), text(&snapshot)]);
    let before = tree(&snapshot);
    let output = Wml::new().args(["clean"]).args([&snapshot]).run().exits(3);
    assert!(output.stderr.contains("snapshot/data/.wmlrun"), "{}", output.shown());
    call(&snapshot, "", WRITE).run().exits(3);
    assert_eq!(tree(&snapshot), before);
    // The volume's own stays its own, under whatever name.
    let renamed = mount.dir().join("renamed");
    fs::rename(&volume, &renamed).unwrap();
    Wml::new().args(["clean"]).args([&renamed]).run().exits(0);
    assert!(!renamed.join("data").exists());
}

/// A listing does not show a mount on a file, so the program checks for mounts before it removes the first file.
#[test]
fn a_mount_on_a_file_is_refused_before_anything_is_removed() {
    if !rustix::process::geteuid().is_root() {
        return skip("it needs root");
    }
    let dir = made();
    let precious = dir.path().join("precious");
    fs::write(&precious, "precious").unwrap();
    tool("mount", &["--bind", text(&precious), text(&dir.path().join(FILE))]);
    let _undo = undo(&["umount", text(&dir.path().join(FILE))]);
    let before = tree(&dir.path().join("data"));
    for output in [call(dir.path(), "", WRITE).run(), Wml::new().args(["clean"]).args([dir.path()]).run()] {
        assert!(output.exits(3).stderr.contains(FILE));
        assert_eq!(tree(&dir.path().join("data")), before);
    }
}

#[test]
fn a_tree_on_a_read_only_file_system_is_measured_unchanged() {
    needs!(mounts::available(&[Fs::Ext4]));
    let mount = Mount::new(Fs::Ext4, 128 << 20);
    call(mount.dir(), "", WRITE).run().exits(0);
    tool("mount", &["-o", "remount,ro", text(mount.dir())]);
    call(mount.dir(), "", "flowop statfile name=s,filesetname=data\n").args(["--as-is"]).run().exits(0);
    let output = call(mount.dir(), "", WRITE).run().exits(3);
    assert!(output.stderr.contains("--as-is"), "{}", output.shown());
}
