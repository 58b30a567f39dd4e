//! Tests that the program does not change what it did not create: foreign files, links, and plain files in the place of
//! a root.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::cmd::{Output, Wml, scratch, tool};
use crate::mounts::{self, Fs, Mount};
use crate::tree::tree;

/// A script whose one file set is `data`, small, in `$dir`; with or without `reuse`.
fn script(reuse: &str) -> String {
    format!(
        "define fileset name=data,path=$dir,size=4k,entries=20,dirwidth=5,prealloc=100{reuse}\n\
         define process name=p {{ thread name=t {{ flowop statfile name=look,filesetname=data }} }}\n"
    )
}

fn call(reuse: &str) -> Wml {
    let call = Wml::new().file("w.wml", &script(reuse)).args(["w.wml", "--runtime", "0.2", "--dir", "d"]);
    fs::create_dir(call.dir().join("d")).unwrap();
    call
}

/// Runs the program in a directory that `lay` has filled, and checks that nothing was changed.
#[track_caller]
fn assert_refused(reuse: &str, lay: impl Fn(&Path)) -> Output {
    let call = call(reuse);
    let dir = call.dir().join("d");
    lay(&dir);
    let before = tree(&dir);
    let output = call.run().exits(3);
    assert_eq!(before, tree(&dir), "something below the directory was changed\n{}", output.shown());
    output
}

#[test]
fn a_foreign_directory_is_refused_and_not_changed() {
    for reuse in ["", ",reuse"] {
        let output = assert_refused(reuse, |dir| {
            // Named as files of the set would be.
            fs::create_dir_all(dir.join("data/00000001")).unwrap();
            fs::write(dir.join("data/00000001/00000001"), "precious").unwrap();
        });
        for word in ["--adopt", "--dir", "data"] {
            assert!(output.stderr.contains(word), "no `{word}` in\n{}", output.stderr);
        }
        assert_refused(reuse, |dir| {
            fs::create_dir(dir.join("data")).unwrap();
            fs::write(dir.join("data/.hidden"), "").unwrap();
        });
    }
}

#[test]
fn a_link_is_not_followed() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("x"), "mine").unwrap();
    let before = tree(elsewhere.path());
    for reuse in ["", ",reuse"] {
        assert_refused(reuse, |dir| symlink(elsewhere.path(), dir.join("data")).unwrap());
        assert_eq!(before, tree(elsewhere.path()), "behind the link");
    }
}

#[test]
fn a_plain_file_in_the_place_of_a_root_is_kept() {
    assert_refused("", |dir| fs::write(dir.join("data"), "text").unwrap());
}

/// A file that a user has added to a tree of wmlrun is not removed with the tree.
#[test]
fn a_foreign_file_in_a_tree_prevents_its_removal() {
    let first = call("").run().exits(0);
    let dir = first.dir().join("d");
    assert!(dir.join("data/00000001").exists(), "a tree in a directory that the user named is kept");
    let again = |dir: &Path| {
        Wml::new().file("w.wml", &script("")).args(["w.wml", "--runtime", "0.2", "--dir"]).args([dir]).run()
    };
    again(&dir).exits(0);
    fs::write(dir.join("data/00000001/notes.txt"), "mine").unwrap();
    let before = tree(&dir);
    let output = again(&dir).exits(3);
    assert!(output.stderr.contains("notes.txt"), "{}", output.stderr);
    assert_eq!(before, tree(&dir));
}

#[test]
fn clean_removes_only_what_wmlrun_created() {
    let first = call("").run().exits(0);
    let dir = first.dir().join("d");
    fs::write(dir.join("mine"), "text").unwrap();
    Wml::new().args(["clean"]).args([&dir]).run().exits(0);
    let names: Vec<_> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["mine"]);
}

/// What a run made is not taken away by another that could not even begin on it, whatever that was to do at its end.
#[test]
fn a_tree_that_was_refused_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let script = |entries: u32, more: &str| {
        format!(
            "define fileset name=data,path=$dir,entries={entries},dirwidth=5,size=1k,prealloc=100{more}\n\
             define process name=p {{ thread name=t {{ flowop statfile name=s,filesetname=data }} }}\n"
        )
    };
    let run = |text: &str, args: &[&str]| {
        let call = Wml::new().file("x.wml", text).args(["x.wml", "--runtime", "0.2", "--no-quiesce", "--dir"]);
        call.args([dir.path()]).args(args).run()
    };
    run(&script(10, ""), &[]).exits(0);
    let root = dir.path().join("data");
    // Another layout.
    run(&script(20, ",reuse"), &["--clean"]).exits(3);
    assert_eq!(walk(&root), 10 + 1, "the files and the marker");
}

/// How many files there are below a directory.
fn walk(dir: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    entries.map(|path| if path.is_dir() { walk(&path) } else { 1 }).sum()
}

#[test]
fn a_tree_outside_of_the_fresh_directory_is_kept() {
    // `$dir` is a new directory, which is removed at the end, but the path leaves it.
    let script = "define fileset name=data,path=$dir/../mine,entries=5,dirwidth=5,size=4k,prealloc,reuse\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=data } }\n";
    let call = Wml::new().file("x.wml", script).args(["x.wml", "--runtime", "0.1", "--no-quiesce"]);
    let output = call.run().exits(0);
    assert!(output.dir().join("mine/data/.wmlrun").is_file(), "{}", output.shown());
    // The message does not contain the path of the directory that is gone.
    assert!(
        output.stderr.contains("mine/data stays") && !output.stderr.contains("../mine/data stays"),
        "{}",
        output.shown()
    );
    let names: Vec<_> = fs::read_dir(output.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with("wmlrun-")), "{names:?}");
}

/// What a command mounts in the fresh directory may have trees of other sessions. One of the directories is on another
/// file system than the fresh directory, the other one on the same.
#[test]
fn a_file_system_mounted_in_the_fresh_directory_is_kept() {
    needs!(mounts::available(&[Fs::Tmpfs]));
    let script = |name: &str, path: &str| {
        format!(
            "# dialect: fsl\ndefine fileset name={name},path={path},entries=5,dirwidth=5,size=4k,prealloc=100\n\
             define process name=p {{ thread name=t {{ flowop statfile name=s,filesetname={name} }} }}\n"
        )
    };
    let (mount, same) = (Mount::new(Fs::Tmpfs, 16 << 20), tempfile::tempdir_in(scratch()).unwrap());
    for other in [mount.dir(), same.path()] {
        let call = |text: &str| Wml::new().file("w.wml", text).args(["w.wml", "--no-quiesce"]);
        call(&script("big", "$dir")).args(["--runtime", "0.1", "--dir"]).args([other]).run().exits(0);
        let before = tree(&other.join("big"));
        let bind = format!("system \"mkdir $dir/m && mount --bind {} $dir/m\"\n", other.display());
        let output = call(&(script("data", "$dir/m") + &bind + "run 0.1\n")).args(["--allow-system"]).run();
        // Before the working directory is removed with all that is in it.
        let entries = fs::read_dir(output.dir()).unwrap().map(|entry| entry.unwrap().path().join("m"));
        let bound = entries.filter(|path| path.is_dir()).collect::<Vec<_>>();
        bound.iter().for_each(|path| drop(tool("umount", &[path.to_str().unwrap()])));
        let output = output.exits(0);
        assert!(bound.len() == 1 && output.stderr.contains("m/data stays"), "{}", output.shown());
        assert!(before == tree(&other.join("big")) && other.join("data/.wmlrun").is_file(), "{}", output.shown());
    }
}
