//! Tests on a real directory: creation, reuse and removal of trees, and protection of foreign files.
#![allow(clippy::unwrap_used, clippy::naive_bytecount)]

use super::super::Fileset;
use super::super::dirs::{Dirs, ThreadDirs};
use super::super::error::{Error, Foreign, Special};
use super::super::marker::{MARKER, MarkerProgress};
use super::{
    Demand, Phase, PrepareOptions, Prepared, Progress, Quiet, Taken, clean, prepare, remove, root, scan, space,
};
use crate::fileset::FilesetSpec;
use crate::random::Quantity;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use wml_os::{Mode, OFlags, fd};

#[path = "adoption_tests.rs"]
mod adoption;

static NO_STOP: AtomicBool = AtomicBool::new(false);

fn options() -> PrepareOptions {
    PrepareOptions { threads: 3, quiesce: false, keep_free: false, ..PrepareOptions::default() }
}

fn spec(dir: &Path, entries: u64, size: u64) -> FilesetSpec {
    let mut spec = FilesetSpec::new("data", dir, entries, size);
    spec.dirwidth = Some(Quantity::Const(5));
    spec.prealloc = 100;
    spec
}

fn set(spec: &FilesetSpec) -> Arc<Fileset> {
    Arc::new(Fileset::open(spec.clone(), 1, false, &NO_STOP).unwrap())
}

fn ready(spec: &FilesetSpec) -> Result<Prepared, Error> {
    let set = Arc::new(Fileset::open(spec.clone(), 1, false, &NO_STOP)?);
    let prepared = prepare(std::slice::from_ref(&set), &options(), &Quiet, &NO_STOP)?.remove(0);
    set.close();
    Ok(prepared)
}

/// Returns size and inode of all files below the root by path; `None` for directories.
fn tree(root: &Path) -> BTreeMap<String, Option<(u64, u64)>> {
    fn walk(at: &Path, root: &Path, all: &mut BTreeMap<String, Option<(u64, u64)>>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if name == ".wmlrun" {
                continue;
            }
            all.insert(name, meta.is_file().then(|| (meta.len(), meta.ino())));
            if meta.is_dir() {
                walk(&path, root, all);
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(root, root, &mut all);
    all
}

fn files(root: &Path) -> BTreeMap<String, u64> {
    tree(root).into_iter().filter_map(|(name, file)| Some((name, file?.0))).collect()
}

/// Returns the sizes of the files that should exist, by path.
fn expected(spec: &FilesetSpec) -> BTreeMap<String, u64> {
    let set = set(spec);
    let tree = &set.tree;
    (0..tree.n_files()).filter(|&i| tree.exists_at_start(i)).map(|i| (tree.rel_path(i), tree.size_of(i))).collect()
}

#[test]
fn exactly_the_files_of_the_tree_are_created() {
    let dir = TempDir::new().unwrap();
    for (at, prealloc) in [100, 40, 0].into_iter().enumerate() {
        let mut spec = spec(&dir.path().join(format!("missing/{at}")), 500, 0);
        spec.size = gamma_sized(9000.0);
        spec.prealloc = prealloc;
        let prepared = ready(&spec).unwrap();
        assert_eq!(files(&spec.root()), expected(&spec));
        assert_eq!(prepared.files, expected(&spec).len() as u64);
        assert_eq!(prepared.bytes, expected(&spec).values().sum::<u64>());
        let dirs = tree(&spec.root()).values().filter(|file| file.is_none()).count() as u64;
        assert_eq!(prepared.directories, dirs);
        assert!(prepared.made_root && !prepared.reused);
    }
}

#[test]
fn all_blocks_of_all_files_differ() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 6, 300_000);
    ready(&spec).unwrap();
    let mut seen = std::collections::HashSet::new();
    for name in files(&spec.root()).keys() {
        let data = fs::read(spec.root().join(name)).unwrap();
        for block in data.chunks(4096) {
            assert!(block.iter().filter(|&&b| b == 0).count() < 100);
            assert!(seen.insert(block.to_vec()), "two blocks are equal");
        }
    }
}

#[test]
fn without_reuse_the_tree_is_recreated() {
    let dir = TempDir::new().unwrap();
    ready(&spec(dir.path(), 100, 10)).unwrap();
    let other = spec(dir.path(), 37, 20);
    let prepared = ready(&other).unwrap();
    assert_eq!(files(&other.root()), expected(&other));
    assert!(prepared.made_root && !prepared.reused);
}

#[test]
fn leaf_directories_are_created_and_recreated() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 12, 0);
    spec.leafdirs = 12;
    for _ in 0..2 {
        ready(&spec).unwrap();
        let set = set(&spec);
        let all = tree(&spec.root());
        assert!((0..12).all(|i| all.get(&set.tree.leafdir_rel_path(i)) == Some(&None)));
        assert_eq!(files(&spec.root()), expected(&spec));
    }
}

#[test]
fn reuse_repairs_in_place() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 50, 10_000);
    ready(&spec).unwrap();
    let before = tree(&spec.root());
    let names: Vec<PathBuf> = files(&spec.root()).keys().map(|name| spec.root().join(name)).collect();
    fs::write(&names[0], vec![7; 20_000]).unwrap();
    fs::write(&names[1], vec![7; 5]).unwrap();
    fs::remove_file(&names[2]).unwrap();
    spec.reuse = true;
    let prepared = ready(&spec).unwrap();
    assert_eq!((prepared.reused, prepared.repairs.total()), (true, 3));
    let after = tree(&spec.root());
    for (name, file) in &before {
        if spec.root().join(name) == names[2] {
            assert_eq!(after[name].unwrap().0, 10_000);
        } else {
            assert_eq!(after[name], *file, "{name}: inode or size differ");
        }
    }
    let data = fs::read(&names[1]).unwrap();
    assert_eq!(data[..5], [7; 5], "existing data is kept");
    assert!(data[5..].iter().filter(|&&b| b == 0).count() < 200);
    // File sizes are not part of the layout.
    spec.size = Quantity::Const(4096);
    assert_eq!(ready(&spec).unwrap().repairs.total(), 50);
    assert!(files(&spec.root()).values().all(|&size| size == 4096));
    assert_eq!(ready(&spec).unwrap().repairs.total(), 0);
}

#[test]
fn reuse_removes_files_that_should_not_exist() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 200, 100);
    ready(&spec).unwrap();
    (spec.reuse, spec.prealloc) = (true, 30);
    ready(&spec).unwrap();
    assert_eq!(files(&spec.root()), expected(&spec));
}

#[test]
fn a_tree_with_other_files_than_the_set_is_compared_and_not_trusted() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 200, 100);
    (spec.trusttree, spec.prealloc) = (true, 50);
    ready(&spec).unwrap();
    assert!(!ready(&spec).unwrap().verified);
    spec.prealloc = 60;
    assert!(ready(&spec).unwrap().repairs.created > 0);
    assert_eq!(files(&spec.root()), expected(&spec));
}

#[test]
fn reuse_of_another_layout_is_refused_and_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 50, 10);
    ready(&spec).unwrap();
    let before = tree(&spec.root());
    spec.reuse = true;
    spec.entries = 51;
    assert!(matches!(ready(&spec), Err(Error::OtherLayout { .. })));
    spec.entries = 50;
    spec.dirwidth = Some(Quantity::Const(6));
    assert!(matches!(ready(&spec), Err(Error::OtherLayout { .. })));
    assert_eq!(tree(&spec.root()), before);
}

#[test]
fn reuse_does_not_change_hard_linked_files() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 10, 100);
    ready(&spec).unwrap();
    let name = spec.root().join(files(&spec.root()).keys().next().unwrap());
    fs::hard_link(&name, dir.path().join("backup")).unwrap();
    spec.reuse = true;
    spec.size = Quantity::Const(50);
    assert!(matches!(ready(&spec), Err(Error::Foreign { what: Foreign::OtherName, .. })));
    assert_eq!(fs::metadata(dir.path().join("backup")).unwrap().len(), 100);
}

#[test]
fn an_unmarked_directory_is_refused_and_not_changed() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 10, 100);
    let file = spec.root().join("00000001/00000001");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "precious").unwrap();
    let e = ready(&spec).unwrap_err();
    assert!(matches!(e, Error::Unmarked { .. }));
    assert!(e.help().unwrap().contains("--adopt") && e.help().unwrap().contains("--dir"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    assert_eq!(tree(&spec.root()).len(), 2);
    assert!(!spec.root().join(".wmlrun").exists());
}

#[test]
fn a_foreign_file_in_a_tree_prevents_its_removal() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 40, 10);
    let root = spec.root();
    let some_dir = || root.join("00000001");
    let leaf = || {
        let name = files(&root).keys().next().unwrap().clone();
        root.join(name).parent().unwrap().to_owned()
    };
    let foreign: [(&str, Foreign, &dyn Fn() -> PathBuf); 7] = [
        ("notes.txt", Foreign::Name, &leaf),
        ("00000000", Foreign::Name, &leaf),
        ("0000001", Foreign::Name, &some_dir),
        ("thesis", Foreign::Name, &|| root.clone()),
        ("00000077", Foreign::Mixed, &|| root.clone()),
        ("00000088", Foreign::Link, &leaf),
        ("00000099", Foreign::Special(Special::Socket), &leaf),
    ];
    for (name, what, dir_of) in foreign {
        ready(&spec).unwrap();
        let path = dir_of().join(name);
        match what {
            Foreign::Link => symlink("/etc", &path).unwrap(),
            Foreign::Special(_) => drop(std::os::unix::net::UnixListener::bind(&path).unwrap()),
            _ => fs::write(&path, "precious").unwrap(),
        }
        let before = tree(&root);
        assert_eq!(
            ready(&spec).unwrap_err(),
            Error::Foreign { set: "data".into(), path: path.clone(), what },
            "{name}"
        );
        let report = clean(dir.path(), 2, &NO_STOP).unwrap();
        assert_eq!((report.removed.len(), report.refused.len()), (0, 1), "{name}");
        assert_eq!(tree(&root), before, "{name}");
        fs::remove_file(path).unwrap();
    }
    // A directory next to files.
    ready(&spec).unwrap();
    let path = leaf().join("00000099");
    fs::create_dir(&path).unwrap();
    assert!(matches!(ready(&spec), Err(Error::Foreign { what: Foreign::Mixed, .. })));
}

#[test]
fn symbolic_links_are_not_followed() {
    let dir = TempDir::new().unwrap();
    let elsewhere = TempDir::new().unwrap();
    fs::write(elsewhere.path().join("x"), "mine").unwrap();
    let spec = spec(dir.path(), 40, 10);
    symlink(elsewhere.path(), spec.root()).unwrap();
    assert!(matches!(ready(&spec), Err(Error::Link { .. })));
    fs::remove_file(spec.root()).unwrap();
    // Below the root: a directory of the tree replaced by a link.
    ready(&spec).unwrap();
    fs::remove_dir_all(spec.root().join("00000001")).unwrap();
    symlink(elsewhere.path(), spec.root().join("00000001")).unwrap();
    for reuse in [false, true] {
        let mut spec = spec.clone();
        spec.reuse = reuse;
        assert!(matches!(ready(&spec), Err(Error::Foreign { what: Foreign::Link, .. })), "reuse {reuse}");
    }
    let e = remove(&set(&spec), 1, &NO_STOP);
    assert!(matches!(e, Err(Error::Foreign { .. })));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    // The path of a set may be a symbolic link, since the user named it.
    symlink(elsewhere.path(), dir.path().join("named")).unwrap();
    let mut through = spec.clone();
    through.path = dir.path().join("named");
    ready(&through).unwrap();
    assert!(elsewhere.path().join("data/.wmlrun").exists());
}

#[test]
fn invalid_directory_names_are_refused() {
    let dir = TempDir::new().unwrap();
    for name in ["", ".", "..", "../x", "/", "/../x", "a/../b", ".wmlrun"] {
        let mut spec = spec(dir.path(), 1, 1);
        spec.name = name.into();
        assert!(matches!(ready(&spec), Err(Error::Name { .. })), "{name}");
    }
    let mut spec = spec(dir.path(), 1, 1);
    fs::write(spec.root(), "a file").unwrap();
    assert!(matches!(ready(&spec), Err(Error::NotADirectory { .. })));
    for (name, made) in [("deep/er", "deep/er"), ("/sub/a", "sub/a"), ("//b/", "b")] {
        spec.name = name.into();
        ready(&spec).unwrap();
        assert!(dir.path().join(made).join("00000001/00000001").exists(), "{name}");
    }
}

#[test]
fn an_existing_empty_root_is_used_and_not_removed() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 20, 10);
    fs::create_dir(spec.root()).unwrap();
    let inode = fs::metadata(spec.root()).unwrap().ino();
    for _ in 0..2 {
        assert!(!ready(&spec).unwrap().made_root);
        assert_eq!(fs::metadata(spec.root()).unwrap().ino(), inode);
    }
    let removed = remove(&set(&spec), 2, &NO_STOP).unwrap();
    assert_eq!((removed.files, removed.root_removed), (20, false));
    assert_eq!(fs::read_dir(spec.root()).unwrap().count(), 0);
    // A root that wmlrun created is removed with its tree.
    fs::remove_dir(spec.root()).unwrap();
    ready(&spec).unwrap();
    assert!(remove(&set(&spec), 2, &NO_STOP).unwrap().root_removed);
    assert!(!spec.root().exists());
}

#[test]
fn clean_removes_only_marked_roots() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 20, 10);
    ready(&spec).unwrap();
    spec.name = "more".into();
    ready(&spec).unwrap();
    fs::create_dir(dir.path().join("mine")).unwrap();
    fs::write(dir.path().join("mine/00000001"), "precious").unwrap();
    fs::write(dir.path().join("letter"), "precious").unwrap();
    let report = clean(dir.path(), 2, &NO_STOP).unwrap();
    assert_eq!((report.removed.len(), report.refused.len()), (2, 0));
    let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["letter", "mine"]);
    // `clean` accepts the root itself.
    ready(&spec).unwrap();
    assert_eq!(clean(&spec.root(), 2, &NO_STOP).unwrap().removed.len(), 1);
    assert!(!spec.root().exists());
}

#[test]
fn a_root_in_use_is_refused() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 20, 10);
    let first = set(&spec);
    prepare(std::slice::from_ref(&first), &options(), &Quiet, &NO_STOP).unwrap();
    let before = tree(&spec.root());
    assert!(matches!(ready(&spec), Err(Error::InUse { .. })));
    assert!(matches!(clean(dir.path(), 1, &NO_STOP).unwrap().refused[..], [Error::InUse { .. }]));
    assert_eq!(tree(&spec.root()), before);
    // Preparing the same set again succeeds.
    prepare(std::slice::from_ref(&first), &options(), &Quiet, &NO_STOP).unwrap();
    first.close();
    ready(&spec).unwrap();
}

#[test]
fn closing_unlocks_a_root_despite_duplicates_of_the_descriptor() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 1, 0);
    let first = set(&spec);
    prepare(std::slice::from_ref(&first), &options(), &Quiet, &NO_STOP).unwrap();
    // A program that another thread starts has copies of all descriptors for a moment.
    let marker = spec.root().join(MARKER).canonicalize().unwrap();
    let is_it = |fd: &PathBuf| fs::read_link(fd).is_ok_and(|to| to == marker);
    let descriptor = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path()).find(is_it).unwrap();
    let copy = fd::duplicate(descriptor.file_name().unwrap().to_str().unwrap().parse().unwrap()).unwrap();
    first.close();
    ready(&spec).unwrap();
    fd::close(copy);
}

#[test]
fn overlapping_sets_are_refused() {
    let dir = TempDir::new().unwrap();
    let one = spec(dir.path(), 20, 10);
    let mut inner = spec(&one.root(), 20, 10);
    inner.name = "00000001".into();
    for other in [one.clone(), inner] {
        let sets = [set(&one), set(&other)];
        assert!(matches!(prepare(&sets, &options(), &Quiet, &NO_STOP), Err(Error::Overlap { .. })));
    }
    assert!(!one.root().exists());
    // The same root by way of a directory that does not exist yet.
    let roundabout = FilesetSpec { path: dir.path().join("new/.."), ..one.clone() };
    let sets = [set(&one), set(&roundabout)];
    assert!(matches!(prepare(&sets, &options(), &Quiet, &NO_STOP), Err(Error::Overlap { .. })));
    // Names that are between the two in the order of their bytes.
    let sets = ["a", "c", "a/b", "a-b", "a.b"].map(|name| set(&FilesetSpec { name: name.into(), ..one.clone() }));
    match prepare(&sets, &options(), &Quiet, &NO_STOP) {
        Err(Error::Overlap { set, other, path }) => {
            assert_eq!((set.as_str(), other.as_str()), ("a", "a/b"));
            assert!(path.ends_with("a/b"), "{}", path.display());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_set_that_does_not_fit_is_refused_and_nothing_is_left_behind() {
    let dir = TempDir::new().unwrap();
    let mut small = spec(dir.path(), 10, 10);
    small.name = "small".into();
    let sets = [set(&small), set(&spec(dir.path(), 1000, 1 << 50))];
    match prepare(&sets, &options(), &Quiet, &NO_STOP).unwrap_err() {
        Error::Space { needed, free, .. } => assert!(needed >= 1000 << 50 && free < needed),
        e => panic!("{e}"),
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn the_space_of_the_old_tree_counts_as_free() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 30, 10_000);
    ready(&spec).unwrap();
    let set = set(&spec);
    let Taken::Owned(root) = root::take(&spec).unwrap() else { panic!("the root is not owned") };
    fd::syncfs(root.fd).unwrap();
    let scan = scan::scan(&root, &NO_STOP).unwrap();
    let bytes = remove::bytes_of(&root, &scan, &NO_STOP).unwrap();
    root.close();
    assert!((set.tree.bytes()..set.tree.bytes() * 2).contains(&bytes), "{bytes}");
    let demand = |freed| Demand {
        set: "data".into(),
        path: spec.root(),
        device: 1,
        bytes: fd::statvfs_path(&spec.root()).unwrap().free + (1 << 30),
        inodes: 0,
        freed: (freed, 0),
    };
    assert!(matches!(space::check(&[demand(0)], false), Err(Error::Space { .. })));
    // (Gibibytes, because other programs may allocate and free space meanwhile.)
    assert!(space::check(&[demand(3 << 30)], false).is_ok());
}

#[test]
fn an_interrupted_population_is_detected_and_repaired() {
    for reuse in [false, true] {
        let dir = TempDir::new().unwrap();
        let mut spec = spec(dir.path(), 300, 5000);
        ready(&spec).unwrap();
        // As after a kill: some files missing, one too short, and the marker not ready.
        let mut root = root::take_marked(&spec.root()).unwrap().unwrap();
        assert_eq!(root.marker.state, MarkerProgress::Ready);
        root.marker.state = MarkerProgress::Populating;
        root.write_marker().unwrap();
        root.close();
        let names: Vec<PathBuf> = files(&spec.root()).keys().map(|name| spec.root().join(name)).collect();
        names[100..].iter().for_each(|name| fs::remove_file(name).unwrap());
        fs::write(&names[99], "short").unwrap();
        // Even `trusttree` does not accept an incomplete tree.
        (spec.reuse, spec.trusttree) = (reuse, reuse);
        let prepared = ready(&spec).unwrap();
        assert_eq!((prepared.reused, prepared.repairs.total()), (reuse, if reuse { 201 } else { 0 }));
        assert_eq!(files(&spec.root()), expected(&spec));
        let root = root::take_marked(&spec.root()).unwrap().unwrap();
        assert_eq!(root.marker.state, MarkerProgress::Ready);
        root.close();
    }
}

#[test]
fn an_interrupted_removal_leaves_no_complete_tree() {
    /// Stops the preparation when the removal begins.
    struct StopAtRemoval<'a>(&'a AtomicBool);
    impl Progress for StopAtRemoval<'_> {
        fn started(&self, _: &str, phase: Phase, _: u64, _: u64) {
            self.0.fetch_or(phase == Phase::Remove, Ordering::Relaxed);
        }
        fn advanced(&self, _: u64, _: u64) {}
    }
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 30, 10);
    ready(&spec).unwrap();
    let stop = AtomicBool::new(false);
    let stopped = prepare(&[set(&spec)], &options(), &StopAtRemoval(&stop), &stop);
    assert!(matches!(stopped, Err(Error::Stopped { .. })), "{stopped:?}");
    let root = root::take_marked(&spec.root()).unwrap().unwrap();
    assert_eq!(root.marker.state, MarkerProgress::Removing);
    root.close();
    // The files that are left are not trusted, but completed.
    let name = files(&spec.root()).into_keys().next().unwrap();
    fs::remove_file(spec.root().join(name)).unwrap();
    spec.trusttree = true;
    ready(&spec).unwrap();
    assert_eq!(files(&spec.root()), expected(&spec));
}

#[test]
fn a_trusted_tree_is_not_checked() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 20, 10);
    ready(&spec).unwrap();
    fs::remove_file(spec.root().join(files(&spec.root()).keys().next().unwrap())).unwrap();
    spec.trusttree = true;
    assert!(ready(&spec).unwrap().reused);
    assert_eq!(files(&spec.root()).len(), 19);
}

#[test]
fn a_stop_ends_population_and_the_next_run_recovers() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 200, 100);
    let set = set(&spec);
    let stop = AtomicBool::new(true);
    let e = prepare(std::slice::from_ref(&set), &options(), &Quiet, &stop).unwrap_err();
    assert!(matches!(e, Error::Stopped { .. }));
    stop.store(false, Ordering::SeqCst);
    prepare(std::slice::from_ref(&set), &options(), &Quiet, &stop).unwrap();
    set.close();
    assert_eq!(files(&spec.root()), expected(&spec));
}

#[test]
fn a_root_that_is_being_created_is_not_cleaned() {
    let dir = TempDir::new().unwrap();
    let unfinished = dir.path().join("data/.wmlrun.new");
    fs::create_dir(dir.path().join("data")).unwrap();
    fs::write(&unfinished, "").unwrap();
    // As a run that has created the file, and is about to lock it.
    let parent = fd::open_path(dir.path(), OFlags::RDONLY, Mode::empty()).unwrap();
    fd::lock(parent).unwrap();
    assert!(matches!(clean(dir.path(), 1, &NO_STOP).unwrap().refused[..], [Error::InUse { .. }]));
    assert!(unfinished.exists());
    fd::unlock(parent);
    assert_eq!(clean(dir.path(), 1, &NO_STOP).unwrap().removed.len(), 1);
    assert!(!unfinished.exists());
}

#[test]
fn every_directory_can_be_opened_with_and_without_a_shared_table() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 400, 0);
    let set = set(&spec);
    prepare(std::slice::from_ref(&set), &options(), &Quiet, &NO_STOP).unwrap();
    let inode = |d: u64| fs::metadata(spec.root().join(set.tree.dir_rel_path(d))).unwrap().ino();
    for budget in [10_000, 10] {
        let dirs = Dirs::open_all(std::slice::from_ref(&set), budget).unwrap().remove(0);
        assert_eq!(dirs.is_shared(), budget == 10_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut own = ThreadDirs::new(7);
                    for d in (0..set.tree.n_dirs()).chain((0..set.tree.n_dirs()).rev()) {
                        let fd = dirs.dir(d, &mut own).unwrap();
                        assert_eq!(fd::fstat(fd).unwrap().inode, inode(d));
                    }
                    own.close_all();
                });
            }
        });
        dirs.close_all();
    }
    set.close();
}

/// Returns a gamma-distributed quantity with shape 1.5.
fn gamma_sized(mean: f64) -> Quantity {
    let params = crate::random::RandvarParams { mean: Some(mean), ..Default::default() };
    crate::random::randvar(&params).unwrap().into()
}

#[test]
fn a_file_that_has_replaced_the_marker_is_kept() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 5, 10);
    let set = set(&spec);
    prepare(std::slice::from_ref(&set), &options(), &Quiet, &NO_STOP).unwrap();
    let marker = spec.root().join(".wmlrun");
    fs::remove_file(&marker).unwrap();
    fs::write(&marker, "mine").unwrap();
    assert!(!remove(&set, 1, &NO_STOP).unwrap().root_removed);
    assert_eq!(fs::read_to_string(&marker).unwrap(), "mine");
}
