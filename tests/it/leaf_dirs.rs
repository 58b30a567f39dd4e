//! Tests of the empty directories of a file set on a real file system.

use crate::flowops::{done, named, once};
use crate::tree::tree;
use std::fs;

/// The number is half that of the empty directories times the value, as in Filebench.
#[test]
fn removedir_takes_the_directory_of_its_index() {
    let dir = tempfile::tempdir().unwrap();
    let set = "define fileset name=s,path=$dir,leafdirs=10,dirwidth=20,dirgamma=0,prealloc";
    let below = || -> Vec<String> {
        let dirs = fs::read_dir(dir.path().join("s/00000001")).unwrap();
        let mut names: Vec<String> = dirs.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    done(&once(set, "flowop listdir name=ls,filesetname=s"), dir.path());
    let mut expected = below();
    assert_eq!((expected.len(), expected.remove(5).as_str()), (10, "00000006"));
    done(&once(set, "flowop removedir name=rm,filesetname=s,indexed=1"), dir.path());
    assert_eq!(below(), expected);
}

/// A tree that is kept for the next run gets its missing empty directories again, also if the directory above is missing.
#[test]
fn missing_empty_directories_are_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let script = once(
        "define fileset name=s,path=$dir,leafdirs=10,dirwidth=5,dirgamma=0,prealloc,reuse",
        "flowop listdir name=ls,filesetname=s,iters=13",
    );
    done(&script, dir.path());
    let before = tree(&dir.path().join("s")).into_keys().collect::<Vec<_>>();
    fs::remove_dir_all(dir.path().join("s/00000001")).unwrap();
    let outcome = done(&script, dir.path());
    assert_eq!(named(&outcome, "ls").ops, 13);
    assert_eq!(tree(&dir.path().join("s")).into_keys().collect::<Vec<_>>(), before);
}
