//! Tests roots of file sets that contain foreign files, in every place and at every moment: no foreign byte changes.
//!
//! Bytes, names, inodes and times before a run are compared with those after it. The simple cases are in
//! [`crate::safety`].

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::cmd::{Output, Running, Wml, tool};
use crate::mounts::{self, Fs, Mount};
use crate::tree::{Entry, tree};

/// A set `data` of 40 small files three to a directory, and a thread that only looks at them.
fn script(extra: &str) -> String {
    format!(
        "# dialect: fsl\n\
         define fileset name=data,path=$dir,size=4k,entries=40,dirwidth=3,dirgamma=0,prealloc=100{extra}\n\
         define process name=p {{ thread name=t {{ flowop statfile name=look,filesetname=data }} }}\n"
    )
}

fn call(dir: &Path, extra: &str) -> Wml {
    Wml::new().file("w.wml", &script(extra)).args(["w.wml", "--runtime", "0.2", "--dir"]).args([dir])
}

/// A foreign object: its description, and a function that puts it into a directory.
type Spoiler = (&'static str, Box<dyn Fn(&Path)>);

/// An empty directory for sets.
fn place() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("own-").tempdir_in(crate::cmd::scratch()).unwrap()
}

/// A directory with a set that an earlier run has left.
fn made() -> (tempfile::TempDir, PathBuf) {
    let dir = place();
    call(dir.path(), "").run().exits(0);
    let root = dir.path().join("data");
    assert!(root.join(".wmlrun").is_file() && root.join("00000001").is_dir(), "the tree is kept");
    (dir, root)
}

/// Runs it with exit status 3, and finds everything in `dirs` as it was.
#[track_caller]
fn assert_refused(call: Wml, dirs: &[&Path], words: &[&str]) -> Output {
    let before: Vec<_> = dirs.iter().map(|dir| tree(dir)).collect();
    let output = call.run().exits(3);
    for (dir, before) in dirs.iter().zip(&before) {
        assert!(*before == tree(dir), "{} was changed\n{}", dir.display(), output.shown());
    }
    for word in words {
        assert!(output.stderr.contains(word), "no `{word}` in\n{}", output.stderr);
    }
    output
}

/// A file four levels down, where only files and directories of the set are.
fn deep(root: &Path) -> PathBuf {
    let mut dir = root.to_owned();
    while let Some(below) = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).find(|p| p.is_dir()) {
        dir = below;
    }
    assert!(dir.components().count() >= root.components().count() + 2, "{} is not deep", dir.display());
    dir
}

#[test]
fn any_foreign_object_in_a_marked_tree_prevents_its_removal() {
    let (dir, root) = made();
    let deep = deep(&root);
    let elsewhere = place();
    fs::write(elsewhere.path().join("x"), "mine").unwrap();
    let target = elsewhere.path().to_owned();
    let things: [Spoiler; 6] = [
        ("a file with a name of its own", Box::new(|at| fs::write(at.join("notes"), "mine").unwrap())),
        ("a hidden file", Box::new(|at| fs::write(at.join(".hidden"), "mine").unwrap())),
        ("a directory", Box::new(|at| fs::create_dir(at.join("folder")).unwrap())),
        ("a link named as a file", Box::new(move |at| symlink(&target, at.join("00000077")).unwrap())),
        ("a pipe named as a file", Box::new(|at| drop(tool("mkfifo", &[at.join("00000077").to_str().unwrap()])))),
        ("a name that is nearly one", Box::new(|at| fs::write(at.join("0000000a"), "mine").unwrap())),
    ];
    for (what, lay) in &things {
        for at in [&root, &root.join("00000001"), &deep] {
            lay(at);
            let output = assert_refused(call(dir.path(), ""), &[dir.path(), elsewhere.path()], &["error", "removed"]);
            assert!(output.stderr.contains(at.to_str().unwrap()), "{what}: the path in\n{}", output.stderr);
            // `clean` is no way around it.
            let before = tree(dir.path());
            Wml::new().args(["clean"]).args([dir.path()]).run().exits(3);
            assert!(before == tree(dir.path()), "{what} in {}: `clean` changed something", at.display());
            for name in ["notes", ".hidden", "00000077", "0000000a"] {
                let _ = fs::remove_file(at.join(name));
            }
            let _ = fs::remove_dir(at.join("folder"));
        }
    }
    // Without any of them the tree is ours again.
    call(dir.path(), "").run().exits(0);
}

#[test]
fn a_file_next_to_directories_and_a_hard_link_are_foreign() {
    let (dir, root) = made();
    fs::write(root.join("00000009"), "mine").unwrap();
    assert_refused(call(dir.path(), ""), &[dir.path()], &["00000009"]);
    fs::remove_file(root.join("00000009")).unwrap();
    // A file of the set with another name outside would be changed under that, too, when it is resized in place.
    let file = deep(&root).join("00000001");
    let elsewhere = place();
    fs::hard_link(&file, elsewhere.path().join("precious")).unwrap();
    let resized = script(",reuse").replace("size=4k", "size=1k");
    let call = Wml::new().file("w.wml", &resized).args(["w.wml", "--runtime", "0.2", "--dir"]).args([dir.path()]);
    let bytes = fs::read(elsewhere.path().join("precious")).unwrap();
    call.run().exits(3);
    assert_eq!(bytes, fs::read(elsewhere.path().join("precious")).unwrap(), "the other name's bytes");
}

/// A directory of the set is replaced by a link during a run: the target of the link is neither read nor written.
#[test]
fn a_link_swapped_in_during_a_run_is_not_followed() {
    let dir = place();
    let elsewhere = place();
    // 256 files, 64 in each directory below the root; a few dozen steps a second go through them in order.
    let script = "# dialect: fsl\n\
        eventgen rate=150\n\
        define fileset name=data,path=$dir,size=4k,entries=256,dirwidth=64,dirgamma=0,prealloc=100\n\
        define process name=p { thread name=t {\n\
          flowop openfile name=open,filesetname=data,fd=1\n\
          flowop appendfile name=append,fd=1,iosize=4k\n\
          flowop closefile name=close,fd=1\n\
          flowop eventlimit name=slow\n\
        } }\n";
    let call = Wml::new().file("w.wml", script).args(["w.wml", "--runtime", "8", "--dir"]).args([dir.path()]);
    let running = call.start();
    let root = dir.path().join("data");
    // The first file grows: the run is on its way.
    wait_until(|| fs::metadata(root.join("00000001/00000001")).is_ok_and(|meta| meta.len() > 4096));
    let last = root.join("00000004");
    let away = elsewhere.path().join("away");
    fs::create_dir(elsewhere.path().join("precious")).unwrap();
    for n in 1..=64 {
        fs::write(elsewhere.path().join(format!("precious/{n:08}")), format!("precious {n}")).unwrap();
    }
    fs::rename(&last, &away).unwrap();
    symlink(elsewhere.path().join("precious"), &last).unwrap();
    let before = tree(elsewhere.path());
    let output = running.wait().exits(3);
    assert!(output.stderr.contains("it is a symbolic link"), "the reason in\n{}", output.stderr);
    assert!(before == tree(elsewhere.path()), "behind the link\n{}", output.shown());
    assert!(output.stderr.contains("00000004"), "the path in\n{}", output.stderr);
    // Nor does the next run, which would remove the tree, go there.
    assert_refused(self::call(dir.path(), ""), &[elsewhere.path()], &["link"]);
}

fn wait_until(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_mins(1), "it did not happen in time");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn reuse_of_another_layout_is_refused() {
    let (dir, _) = made();
    for (from, to) in [("entries=40", "entries=41"), ("dirwidth=3", "dirwidth=4"), ("dirgamma=0", "dirgamma=1000")] {
        let other = script(",reuse").replace(from, to);
        let call = Wml::new().file("w.wml", &other).args(["w.wml", "--runtime", "0.2", "--dir"]).args([dir.path()]);
        assert_refused(call, &[dir.path()], &["layout", "reuse"]);
    }
    let seed = call(dir.path(), ",reuse").args(["--layout-seed", "7"]);
    assert_refused(seed, &[dir.path()], &["layout"]);
    // Sizes are no part of the layout, and the same layout is taken.
    call(dir.path(), ",reuse").run().exits(0);
}

#[test]
fn the_root_directory_and_names_that_leave_the_path_are_refused() {
    let names = || {
        let mut names: Vec<_> = fs::read_dir("/").unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for (path, name) in [("/", "."), ("/", ".."), ("/tmp", ".."), ("/", "usr"), ("/usr", "bin"), ("/", "/")] {
        for extra in ["", ",reuse"] {
            let script = script(extra).replace("name=data,path=$dir", &format!("name=\"{name}\",path=\"{path}\""));
            let script = script.replace("filesetname=data", &format!("filesetname=\"{name}\""));
            let output = Wml::new().file("w.wml", &script).args(["w.wml", "--runtime", "0.2"]).run();
            assert!(matches!(output.code(), 2 | 3), "{path} and {name}: {}\n{}", output.code(), output.shown());
        }
    }
    assert_eq!(before, names());
    assert!(!Path::new("/usr/.wmlrun").exists() && !Path::new("/usr/bin/.wmlrun").exists());
}

/// A mount of its own, taken away again however the test ends.
struct Bind(PathBuf);

impl Bind {
    fn new(from: &Path, to: &Path) -> Self {
        tool("mount", &["--bind", from.to_str().unwrap(), to.to_str().unwrap()]);
        Self(to.to_owned())
    }
}

impl Drop for Bind {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn another_mount_inside_a_root_is_not_entered() {
    needs!(mounts::available(&[Fs::Tmpfs]));
    let (dir, root) = made();
    let other = Mount::new(Fs::Tmpfs, 4 << 20);
    // What is on it looks exactly like a part of the set.
    for n in 1..=3 {
        fs::write(other.dir().join(format!("{n:08}")), "mine").unwrap();
    }
    for at in [root.join("00000001"), deep(&root)] {
        let bound = Bind::new(other.dir(), &at);
        for extra in ["", ",reuse"] {
            let before = tree(other.dir());
            call(dir.path(), extra).run().exits(3);
            assert!(before == tree(other.dir()), "on the mount");
        }
        Wml::new().args(["clean"]).args([dir.path()]).run().exits(3);
        assert_eq!(fs::read(other.dir().join("00000001")).unwrap(), b"mine");
        drop(bound);
    }
    // A root that is itself a mount point is the user's word.
    let empty = Mount::new(Fs::Tmpfs, 4 << 20);
    let fresh = place();
    fs::create_dir(fresh.path().join("data")).unwrap();
    let _bound = Bind::new(empty.dir(), &fresh.path().join("data"));
    call(fresh.path(), "").run().exits(0);
    assert!(empty.dir().join("00000001").is_dir());
    Wml::new().args(["clean"]).args([fresh.path()]).run().exits(0);
    assert_eq!(fs::read_dir(empty.dir()).unwrap().count(), 0);
}

#[test]
fn a_block_device_is_refused_with_and_without_permission() {
    needs!(mounts::available(&[Fs::Ext4]));
    let mount = Mount::new(Fs::Ext4, 16 << 20);
    // A file system that is only read writes nothing by itself, in its journal or to initialise its inodes.
    tool("mount", &["-o", "remount,ro", &mount.dir().display().to_string()]);
    let device = mount.device().unwrap();
    let name = device.rsplit('/').next().unwrap();
    let blocks = || {
        let text = tool("dd", &[&format!("if={device}"), "bs=1M", "skip=8", "count=8", "status=none", "iflag=direct"]);
        text.into_bytes()
    };
    let before = blocks();
    let file = "# dialect: fsl\n\
        define file name=NAME,path=/dev,size=8m,prealloc\n\
        define process name=p { thread name=t,memsize=4k { flowop write name=wr,filename=NAME,iosize=4k,random } }\n";
    let set = file.replace("define file ", "define fileset ").replace("prealloc", "entries=4,prealloc");
    let run = |script: &str, options: &[&str]| {
        Wml::new().file("w.wml", &script.replace("NAME", name)).args(["w.wml", "--runtime", "0.2"]).args(options).run()
    };
    let output = run(file, &[]).exits(3);
    assert!(output.stderr.contains("E0308") && output.stderr.contains("make a file system on it"), "{}", output.stderr);
    assert_eq!(output.left(), ["w.wml"], "refused before anything is created");
    let output = run(file, &["--allow-device", device]).exits(3);
    assert!(output.stderr.contains("E0308"), "{}", output.stderr);
    assert!(output.stderr.contains("warning: `--allow-device` has no effect"), "{}", output.stderr);
    run(&set, &[]).exits(3);
    run(&set, &["--allow-device", device]).exits(3);
    assert_eq!(before, blocks());
}

#[test]
fn two_programs_cannot_use_one_root() {
    let dir = place();
    let rated = script("").replace("} }", "flowop eventlimit name=rate } }") + "eventgen rate=50\n";
    let long = Wml::new().idle().file("w.wml", &rated).args(["w.wml", "--runtime", "60", "--dir"]).args([dir.path()]);
    let first = long.start();
    wait_until(|| fs::read_to_string(dir.path().join("data/.wmlrun")).is_ok_and(|marker| marker.contains("\"ready\"")));
    for extra in ["", ",reuse"] {
        assert_refused(call(dir.path(), extra), &[dir.path()], &["in use", "--dir"]);
    }
    Wml::new().args(["clean"]).args([dir.path()]).run().exits(3);
    first.signal(Signal::INT);
    first.wait().exits(130);
    call(dir.path(), "").run().exits(0);
}

/// Starts to make very many files and is killed while it does.
fn killed(dir: &Path, script: &str) {
    let call = Wml::new().file("w.wml", script).args(["w.wml", "--populate-threads", "1", "--runtime", "0.2", "--dir"]);
    let running: Running = call.args([dir]).start();
    wait_until(|| dir.join("data/00000001/00000001").exists());
    running.signal(Signal::KILL);
    running.wait().exits(137);
}

#[test]
fn a_killed_population_is_repeated_or_completed() {
    let script = |extra: &str| {
        script(extra).replace("entries=40", "entries=60000").replace("dirwidth=3", "dirwidth=1000").replace("4k", "1k")
    };
    let files = |dir: &Path| {
        let root = dir.join("data");
        let dirs = fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir());
        dirs.map(|dir| fs::read_dir(dir).unwrap().count()).sum::<usize>()
    };
    for extra in ["", ",reuse"] {
        let dir = place();
        fs::write(dir.path().join("mine"), "text").unwrap();
        killed(dir.path(), &script(""));
        assert!(files(dir.path()) < 60_000, "it was done before it was killed");
        let call = Wml::new().file("w.wml", &script(extra)).args(["w.wml", "--runtime", "0.2", "--dir"]);
        call.args([dir.path()]).run().exits(0);
        assert_eq!(files(dir.path()), 60_000, "all are there with `{extra}`");
        assert_eq!(fs::read(dir.path().join("mine")).unwrap(), b"text");
        Wml::new().args(["clean"]).args([dir.path()]).run().exits(0);
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["mine"]);
    }
    // A half-made tree with something foreign in it is left alone as well.
    let dir = place();
    killed(dir.path(), &script(""));
    fs::write(dir.path().join("data/00000001/notes"), "mine").unwrap();
    let call = Wml::new().file("w.wml", &script("")).args(["w.wml", "--runtime", "0.2", "--dir"]);
    assert_refused(call.args([dir.path()]), &[dir.path()], &["notes"]);
}

/// Creates the tree that Filebench creates for `entries=10,dirwidth=3,dirgamma=0`.
fn filebench(root: &Path) {
    for (dir, files) in [(1, 3), (2, 3), (3, 3), (4, 1)] {
        fs::create_dir_all(root.join(format!("{dir:08}"))).unwrap();
        for file in 1..=files {
            fs::write(root.join(format!("{dir:08}/{file:08}")), vec![b'f'; 4096]).unwrap();
        }
    }
}

fn ten(dir: &Path, options: &[&str]) -> Wml {
    let script = script("").replace("entries=40", "entries=10");
    Wml::new().file("w.wml", &script).args(["w.wml", "--runtime", "0.2"]).args(options).args(["--dir"]).args([dir])
}

/// The contents of an adopted tree, without the marker and the times of the root, which an adoption changes.
fn files(root: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut all = tree(root);
    all.retain(|path, _| path != Path::new(".") && !path.ends_with(".wmlrun"));
    all
}

#[test]
fn a_tree_of_filebench_can_be_adopted_and_is_released() {
    let dir = place();
    let root = dir.path().join("data");
    filebench(&root);
    assert_refused(ten(dir.path(), &[]), &[dir.path()], &["--adopt"]);
    let files = || files(&root);
    let before = files();
    let run = ten(dir.path(), &["--adopt"]).result().run().exits(0).only_run();
    assert_eq!(run["filesets"][0]["files"], 10);
    assert!(before == files(), "a run that only reads changes nothing");
    // From now on it is known; and it is never removed, only let go.
    ten(dir.path(), &[]).run().exits(0);
    Wml::new().args(["clean"]).args([dir.path()]).run().exits(0);
    assert!(before == files() && !root.join(".wmlrun").exists(), "given back as it was");
    assert_refused(ten(dir.path(), &[]), &[dir.path()], &["--adopt"]);
}

/// A file of another size than the script defines has foreign data: it is truncated only with `reuse`.
#[test]
fn adopting_truncates_no_file_without_reuse() {
    let dir = place();
    let root = dir.path().join("data");
    filebench(&root);
    let longer = root.join("00000001/00000001");
    fs::write(&longer, "u".repeat(50_000)).unwrap();
    let before = files(&root);
    let run = ten(dir.path(), &["--adopt"]).run().exits(3);
    assert!(run.stderr.contains("1 file of another size") && run.stderr.contains("`reuse`"), "{}", run.stderr);
    assert!(before == files(&root) && !root.join(".wmlrun").exists());
    let reusing = script("").replace("entries=40", "entries=10,reuse");
    Wml::new()
        .file("w.wml", &reusing)
        .args(["w.wml", "--runtime", "0.2", "--adopt", "--dir"])
        .args([dir.path()])
        .run()
        .exits(0);
    assert_eq!(fs::metadata(&longer).unwrap().len(), 4096);
}

/// The same in later runs of a session, which repair what its earlier runs have changed.
#[test]
fn a_later_run_truncates_no_adopted_file_without_reuse() {
    const LOOK: &str = "flowop statfile name=look,filesetname=data";
    let text = |attributes: &str, flowops: &str| {
        format!(
            "# dialect: fsl\n\
             define fileset name=data,path=$dir,entries=10,dirwidth=3,dirgamma=0,prealloc=100,{attributes}\n\
             define process name=p {{ thread name=t {{ {flowops} }} }}\n"
        )
    };
    let run = |dir: &Path, text: &str| {
        let call = Wml::new().file("w.wml", text).args(["w.wml", "--no-quiesce", "--adopt", "--allow-system"]);
        call.args(["--dir"]).args([dir]).run()
    };
    let adopted = || {
        let dir = place();
        filebench(&dir.path().join("data"));
        dir
    };
    // The second run has smaller sizes.
    let dir = adopted();
    let before = files(&dir.path().join("data"));
    let sizes = text("size=$size", LOOK) + "foreach $size in 4k,2k { run 0.1 }\n";
    let refused = run(dir.path(), &sizes).exits(3);
    assert!(refused.stderr.contains("10 files of another size"), "{}", refused.stderr);
    assert!(before == files(&dir.path().join("data")), "{}", refused.shown());
    // The first run trusts the tree, whose files are longer than defined. Both only look, but the command between them
    // may have done anything.
    let dir = adopted();
    let before = files(&dir.path().join("data"));
    let trusting = text("size=2k,trusttree", LOOK) + "run 0.1\nsystem \"true\"\nrun 0.1\n";
    let refused = run(dir.path(), &trusting).exits(3);
    assert!(refused.stderr.contains("10 files of another size"), "{}", refused.stderr);
    assert!(before == files(&dir.path().join("data")), "{}", refused.shown());
    // The first run finds the right sizes, but then a command changes one. A run that only looks hides nothing.
    for between in ["", "run 0.1 as-is\n"] {
        let dir = adopted();
        let grown = dir.path().join("data/00000001/00000001");
        let command = format!("run 0.1\nsystem \"printf more >> {}\"\n{between}run 0.1\n", grown.display());
        let refused = run(dir.path(), &(text("size=4k", LOOK) + &command)).exits(3);
        assert!(refused.stderr.contains("1 file of another size"), "{}", refused.stderr);
        assert_eq!(fs::metadata(&grown).unwrap().len(), 4100, "{}", refused.shown());
    }
    // What the runs of a session have changed themselves is repaired.
    let dir = adopted();
    let append = "flowop appendfile name=ap,filesetname=data,iosize=1k\n\
        flowop finishoncount name=f,value=10,target=ap";
    let repaired = run(dir.path(), &(text("size=4k", append) + "run 5\nrun 5\nrun 5 as-is\nrun 5\n")).exits(0);
    assert!(repaired.stderr.contains(" resized"), "{}", repaired.stderr);
}

#[test]
fn other_trees_than_those_of_filebench_cannot_be_adopted() {
    let others: [Spoiler; 6] = [
        ("a foreign file", Box::new(|root| fs::write(root.join("00000001/notes"), "mine").unwrap())),
        ("a file in the root", Box::new(|root| fs::write(root.join("00000005"), "mine").unwrap())),
        ("a file too few", Box::new(|root| fs::remove_file(root.join("00000004/00000001")).unwrap())),
        ("a file too many", Box::new(|root| fs::write(root.join("00000004/00000002"), "mine").unwrap())),
        ("a gap", Box::new(|root| fs::rename(root.join("00000001/00000002"), root.join("00000001/00000004")).unwrap())),
        ("a link", Box::new(|root| symlink("00000001", root.join("00000005")).unwrap())),
    ];
    for (what, spoil) in &others {
        let dir = place();
        let root = dir.path().join("data");
        filebench(&root);
        spoil(&root);
        let output = assert_refused(ten(dir.path(), &["--adopt"]), &[dir.path()], &["adopt"]);
        assert!(!root.join(".wmlrun").exists(), "{what}\n{}", output.shown());
    }
    // Nor one through a link.
    let dir = place();
    let elsewhere = place();
    filebench(elsewhere.path());
    symlink(elsewhere.path(), dir.path().join("data")).unwrap();
    assert_refused(ten(dir.path(), &["--adopt"]), &[dir.path(), elsewhere.path()], &["link"]);
}
