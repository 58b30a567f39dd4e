//! Helper that records the contents of a directory to the byte, to check that nothing was changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One file, directory or link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    mode: u32,
    inode: u64,
    links: u64,
    /// When content and metadata last changed, in nanoseconds. A directory's tell of names made and removed in it.
    changed: (i128, i128),
    /// A file's bytes, or where a link points.
    content: Vec<u8>,
}

/// Everything below `dir`, itself included, by its path from there.
pub(crate) fn tree(dir: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut all = BTreeMap::new();
    look(dir, Path::new("."), &mut all);
    all
}

fn look(path: &Path, name: &Path, all: &mut BTreeMap<PathBuf, Entry>) {
    let meta = fs::symlink_metadata(path).unwrap();
    let content = if meta.is_file() {
        fs::read(path).unwrap()
    } else if meta.is_symlink() {
        fs::read_link(path).unwrap().into_os_string().into_encoded_bytes()
    } else {
        Vec::new()
    };
    let nanos = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let changed = (nanos(meta.mtime(), meta.mtime_nsec()), nanos(meta.ctime(), meta.ctime_nsec()));
    let entry = Entry { mode: meta.mode(), inode: meta.ino(), links: meta.nlink(), changed, content };
    all.insert(name.to_owned(), entry);
    if meta.is_dir() {
        for child in fs::read_dir(path).unwrap().map(Result::unwrap) {
            look(&child.path(), &name.join(child.file_name()), all);
        }
    }
}

#[test]
fn every_change_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("a")).unwrap();
    fs::write(dir.path().join("a/x"), "one").unwrap();
    let before = tree(dir.path());
    assert_eq!(before, tree(dir.path()));
    assert_eq!(before.len(), 3);
    fs::write(dir.path().join("a/x"), "two").unwrap();
    assert_ne!(before, tree(dir.path()));
    fs::write(dir.path().join("a/x"), "one").unwrap();
    assert_ne!(before, tree(dir.path()), "the same bytes, written again");
}
