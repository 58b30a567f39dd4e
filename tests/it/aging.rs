//! Tests `wmlrun age`: the same seed gives the same files, also after a kill, and nothing foreign is changed.
//!
//! The sequence itself is tested without a disk, in `fileset`.

use crate::cmd::{Output, Wml, scratch, tool};
use crate::experiments::valid;
use crate::mounts::{self, Fs, Mount};
use crate::signals::picture;
use crate::strace;
use crate::tree::tree;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A small aging, which takes a tenth of a second in memory: 10 source trees of some twenty files.
const SMALL: [&str; 4] = ["--to", "3m", "--rounds", "3"];

fn call(dir: &Path, args: &[&str]) -> Wml {
    Wml::new().args(["age", "--quiet"]).args([dir]).args(args)
}

fn age(dir: &Path, args: &[&str]) -> Output {
    call(dir, args).run()
}

/// The bytes of all files of an aged tree by name, and its directories, which have no bytes.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let root = dir.join("aged");
    let name = |path: &str| path.strip_prefix(root.to_str().unwrap()).unwrap().to_owned();
    let all = picture(&root).into_iter().map(|(path, (_, _, bytes))| (name(&path), bytes));
    all.filter(|(path, _)| path != "/.wmlrun").collect()
}

/// Runs an aging that is killed at the `n`th call of this kind of one of its threads.
fn killed(dir: &Path, name: &str, n: usize) {
    let (trace, inject) = (format!("trace={name}"), format!("inject={name}:signal=KILL:when={n}"));
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    let output = call(dir, &SMALL).under(strace).run();
    assert_eq!(output.code(), 137, "{name} {n}\n{}", output.shown());
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir_in(scratch()).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let dirs: [_; 3] = std::array::from_fn(|_| place());
    let [one, two, other] = [("7", &dirs[0]), ("7", &dirs[1]), ("8", &dirs[2])].map(|(seed, dir)| {
        age(dir.path(), &[&SMALL[..], &["--seed", seed]].concat()).exits(0);
        contents(dir.path())
    });
    assert!(one == two);
    assert!(one.iter().all(|(name, bytes)| bytes.is_empty() || other.get(name) != Some(bytes)), "another seed");
    let blocks: usize = one.values().map(|bytes| bytes.len().next_multiple_of(4096)).sum();
    assert_eq!(blocks, 3 << 20, "exactly the fullness");
    let mut distinct: Vec<_> = one.values().filter(|bytes| !bytes.is_empty()).collect();
    let files = distinct.len();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() == files && files > 100, "{} of {files} files differ", distinct.len());
}

/// An aging that is complete is only examined; the result has its parameters and the same scores.
#[test]
fn a_complete_aging_is_not_changed() {
    let dir = place();
    let json = |output: &Output| serde_json::from_str::<Value>(&output.stdout).unwrap();
    let first = json(&age(dir.path(), &[&SMALL[..], &["--json", "-"]].concat()).exits(0));
    let before = tree(&dir.path().join("aged"));
    let again = json(&age(dir.path(), &[&SMALL[..], &["--json", "-"]].concat()).exits(0));
    assert!(before == tree(&dir.path().join("aged")));
    valid(&first);
    assert_eq!((&first["schema"], &first["bytes"]), (&"wmlrun.aging/1".into(), &(3 << 20).into()));
    let files = before.keys().filter(|path| dir.path().join("aged").join(path).is_file()).count();
    assert_eq!(first["files"].as_u64(), Some(files as u64 - 1), "without the marker");
    assert_eq!((&first["steps_before"], &again["steps_before"]), (&0.into(), &first["steps"]));
    assert!(first["written"].as_u64() > first["bytes"].as_u64() && again["written"] == 0);
    assert_eq!(first["aged"]["files"], again["aged"]["files"]);
    let shown = age(dir.path(), &SMALL).exits(0).stdout;
    assert!(shown.contains("nothing was written") && shown.contains("10 source trees"), "{shown}");
}

/// The result replaces a result, and no other file.
#[test]
fn the_result_replaces_no_other_file() {
    let (dir, home) = (place(), place());
    let path = home.path().join("file");
    let call = |extra: &[&str]| age(dir.path(), &[&SMALL[..], &["--json", path.to_str().unwrap()], extra].concat());
    fs::write(&path, "theirs").unwrap();
    let shown = call(&[]).exits(3).stderr;
    assert!(shown.contains("it exists, and has other content") && shown.contains("`--force`"), "{shown}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    assert!(!dir.path().join("aged").exists(), "refused before the first file is created");
    call(&["--force"]).exits(0);
    call(&[]).exits(0);
    assert!(fs::read_to_string(&path).unwrap().contains("wmlrun.aging/1"));
}

#[test]
fn an_aging_that_was_killed_is_continued() {
    needs!(strace::available());
    let reference = place();
    age(reference.path(), &SMALL).exits(0);
    // At the end of the first step and of a later one, at writes of the marker, and at changes of files within a step.
    for (name, n) in [("syncfs", 1), ("syncfs", 7), ("fsync", 4), ("pwrite64", 5), ("write", 12), ("unlinkat", 2)] {
        let dir = place();
        killed(dir.path(), name, n);
        age(dir.path(), &SMALL).exits(0);
        assert!(contents(reference.path()) == contents(dir.path()), "{name} {n}");
        Wml::new().args(["clean"]).args([dir.path()]).run().exits(0);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{name} {n}");
    }
    // What a killed aging has left is removed as well.
    let dir = place();
    killed(dir.path(), "syncfs", 4);
    Wml::new().args(["clean"]).args([dir.path()]).run().exits(0);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// A file that another program has put into the place of one of the tree is neither followed nor removed.
#[test]
fn foreign_files_in_an_aged_tree_are_not_changed() {
    needs!(strace::available());
    let dir = place();
    // Killed at the end of the first step, which is then repeated.
    killed(dir.path(), "syncfs", 1);
    let first = contents(dir.path()).into_iter().find(|(_, bytes)| !bytes.is_empty()).unwrap().0;
    let path = dir.path().join("aged").join(&first[1..]);
    let mine = dir.path().join("mine");
    let foreign: [&dyn Fn(); 3] =
        [&|| symlink(&mine, &path).unwrap(), &|| fs::hard_link(&mine, &path).unwrap(), &|| {
            drop(tool("mkfifo", &[path.to_str().unwrap()]));
        }];
    for (number, make) in foreign.iter().enumerate() {
        fs::write(&mine, "mine").unwrap();
        fs::remove_file(&path).unwrap();
        make();
        let output = age(dir.path(), &SMALL).exits(3);
        assert!(output.stderr.contains(first.as_str()), "{number}: {}", output.stderr);
        assert_eq!(fs::read(&mine).unwrap(), b"mine", "{number}");
        assert!(fs::symlink_metadata(&path).is_ok(), "{number}");
    }
    fs::remove_file(&path).unwrap();
    fs::write(path.with_file_name("notes.txt"), "mine").unwrap();
    Wml::new().args(["clean"]).args([dir.path()]).run().exits(3);
    assert!(path.with_file_name("notes.txt").exists());
}

#[test]
fn other_directories_are_refused_and_not_changed() {
    let refused = |make: &dyn Fn(&Path), args: &[&str], words: &[&str]| {
        let dir = place();
        make(dir.path());
        let before = tree(dir.path());
        let output = age(dir.path(), args).exits(3);
        assert!(before == tree(dir.path()), "{}", output.shown());
        words.iter().for_each(|word| assert!(output.stderr.contains(word), "no `{word}` in {}", output.stderr));
    };
    let foreign = |dir: &Path| {
        fs::create_dir(dir.join("aged")).unwrap();
        fs::write(dir.join("aged/00000001"), "mine").unwrap();
    };
    refused(&foreign, &SMALL, &["aged", "not empty"]);
    refused(&|dir| fs::write(dir.join("aged"), "mine").unwrap(), &SMALL, &["not a directory"]);
    refused(&|dir| symlink("/tmp", dir.join("aged")).unwrap(), &SMALL, &["symbolic link"]);
    refused(&|dir| drop(age(dir, &SMALL).exits(0)), &["--to", "3m"], &["--rounds 3", "clean"]);
    for (to, words) in [("8k", ["20 rounds", "--rounds"]), ("900p", ["maximum of a file set", "--to"])] {
        let dir = place();
        let output = age(dir.path(), &["--to", to]).exits(3);
        words.iter().for_each(|word| assert!(output.stderr.contains(word), "no `{word}` in {}", output.stderr));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{to}");
    }
    let missing = age(Path::new("/nonexistent"), &SMALL).exits(3);
    assert!(missing.stderr.contains("ENOENT") && missing.stderr.contains("/nonexistent"), "{}", missing.stderr);
    for to in ["0%", "147%", "47", "half"] {
        let output = age(Path::new("/nonexistent"), &["--to", to]).exits(2);
        assert!(output.stderr.contains(to), "{}", output.stderr);
    }
}

/// A file set of a script with the name of an aged tree is refused, and the other way round.
#[test]
fn runs_and_agings_do_not_replace_each_other() {
    let script = "define fileset name=aged,path=$dir,entries=5,size=1k,prealloc\n\
                  define process name=p { thread name=t { flowop statfile name=s,filesetname=aged } }\n";
    let run = |dir: &Path| {
        let call = Wml::new().file("w.wml", script).args(["w.wml", "--runtime", "0.1", "--no-quiesce", "--dir"]);
        call.args([dir]).run()
    };
    let (aged, used) = (place(), place());
    age(aged.path(), &SMALL).exits(0);
    let before = tree(aged.path());
    let output = run(aged.path()).exits(3);
    assert!(output.stderr.contains("wmlrun age"), "{}", output.stderr);
    assert!(before == tree(aged.path()));
    run(used.path()).exits(0);
    let before = tree(used.path());
    let output = age(used.path(), &SMALL).exits(3);
    assert!(output.stderr.contains("file set of a script"), "{}", output.stderr);
    assert!(before == tree(used.path()));
}

/// Without space the cause is reported, and the same command continues when there is space again.
#[test]
fn a_full_or_read_only_file_system_is_reported() {
    needs!(mounts::available(&[]) && strace::available());
    let mount = Mount::new(Fs::Tmpfs, 8 << 20);
    let refused = age(mount.dir(), &["--to", "97%", "--rounds", "1"]).exits(3);
    assert!(refused.stderr.contains("not enough space") && refused.stderr.contains("--to"), "{}", refused.stderr);
    assert_eq!(fs::read_dir(mount.dir()).unwrap().count(), 0);
    killed(mount.dir(), "syncfs", 1);
    let filler = mount.dir().join("filler");
    let free = rustix::fs::statvfs(mount.dir()).unwrap();
    fs::write(&filler, vec![1; (free.f_bavail * free.f_frsize) as usize - (64 << 10)]).unwrap();
    let full = age(mount.dir(), &SMALL).exits(3);
    assert!(full.stderr.contains("not enough space"), "{}", full.stderr);
    fs::remove_file(&filler).unwrap();
    age(mount.dir(), &SMALL).exits(0);
    let reference = place();
    age(reference.path(), &SMALL).exits(0);
    assert!(contents(reference.path()) == contents(mount.dir()));
    // The same with space that is exhausted by a write, in another directory.
    let other = mount.dir().join("other");
    fs::create_dir(&other).unwrap();
    let strace =
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=write", "-e", "inject=write:error=ENOSPC:when=9"];
    let output = call(&other, &SMALL).under(strace).run().exits(3);
    assert!(["ENOSPC", "/aged/0000", "continues"].iter().all(|word| output.stderr.contains(word)), "{}", output.stderr);
    age(&other, &SMALL).exits(0);
    assert!(contents(reference.path()) == contents(&other));
    // The score can be read without permission to write.
    tool("mount", &["-o", "remount,ro", mount.dir().to_str().unwrap()]);
    age(mount.dir(), &SMALL).exits(0);
    drop(mount);
    let empty = Mount::new(Fs::Tmpfs, 8 << 20);
    tool("mount", &["-o", "remount,ro", empty.dir().to_str().unwrap()]);
    let output = age(empty.dir(), &SMALL).exits(3);
    assert!(output.stderr.contains("EROFS") && output.stderr.contains("read-write"), "{}", output.stderr);
}

/// The scores of real file systems. ext4 reports its free extents, btrfs does not.
#[test]
fn extents_and_free_space_are_scored() {
    needs!(mounts::available(&[Fs::Ext4, Fs::Btrfs]));
    let mut trees = Vec::new();
    for (fs, size) in [(Fs::Ext4, 40 << 20), (Fs::Btrfs, 120 << 20)] {
        let mount = Mount::new(fs, size);
        let output = age(mount.dir(), &["--to", "6m", "--rounds", "4", "--json", "-"]).exits(0);
        let found: Value = serde_json::from_str(&output.stdout).unwrap();
        let number = |path: &str| found.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}"));
        let [files, extents, blocks] =
            ["files", "extents", "blocks"].map(|key| number(&format!("/aged/files/known/{key}")));
        assert!(files > 200 && extents >= files && blocks >= extents, "{found:#}");
        assert!(files <= number("/files") && number("/first_trees/files/known/files") < files);
        for moment in ["/at_start", "/aged"] {
            let free = &found.pointer(moment).unwrap()["free_space"];
            if fs == Fs::Btrfs {
                assert!(free["unknown"].as_str().unwrap().contains("ENOTTY"), "{free}");
                continue;
            }
            let classes = free["known"]["histogram"].as_array().unwrap();
            let sum = |key: &str| classes.iter().map(|class| class[key].as_u64().unwrap()).sum::<u64>();
            assert_eq!(
                (free["known"]["bytes"].as_u64(), free["known"]["extents"].as_u64()),
                (Some(sum("bytes")), Some(sum("extents")))
            );
            assert!(free["known"]["largest"].as_u64() <= Some(sum("bytes")));
        }
        if fs == Fs::Ext4 {
            let used = number("/at_start/free_space/known/bytes") - number("/aged/free_space/known/bytes");
            assert!((4 << 20..8 << 20).contains(&used), "{used} bytes of free space are used");
        }
        trees.push(contents(mount.dir()));
    }
    assert!(trees[0] == trees[1], "the files do not depend on the file system");
}
