//! Tests on a real directory: adoption of trees that wmlrun did not create.

use super::super::super::{Existing, Fileset, StartState};
use super::super::{Error, PrepareOptions, Quiet, prepare, remove};
use super::{NO_STOP, options, ready, spec, tree};
use crate::fileset::FilesetSpec;
use crate::random::Quantity;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

/// Creates a tree as another tool would.
fn foreign_tree(root: &Path) {
    for (dir, n) in [("00000001/00000001", 3), ("00000001/00000002", 2), ("00000002", 4)] {
        fs::create_dir_all(root.join(dir)).unwrap();
        for k in 1..=n {
            fs::write(root.join(dir).join(format!("{k:08}")), vec![1; 100]).unwrap();
        }
    }
}

#[test]
fn an_adopted_tree_keeps_its_shape_and_is_not_removed() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 9, 100);
    foreign_tree(&spec.root());
    let before = tree(&spec.root());
    let adopting = PrepareOptions { adopt: true, ..options() };
    let set = Arc::new(Fileset::open(spec.clone(), 1, true, &NO_STOP).unwrap());
    assert!(set.is_adopted());
    assert_eq!(set.tree.rel_path(3), "00000001/00000002/00000001");
    assert_eq!(set.tree.rel_path(8), "00000002/00000004");
    let prepared = prepare(std::slice::from_ref(&set), &adopting, &Quiet, &NO_STOP).unwrap().remove(0);
    assert!(prepared.adopted && prepared.reused);
    set.close();
    // From now on it is recognized without the option, and still not recreated.
    assert!(ready(&spec).unwrap().adopted);
    assert_eq!(tree(&spec.root()), before);
    let removed = remove(&Fileset::open(spec.clone(), 1, false, &NO_STOP).unwrap(), 1, &NO_STOP).unwrap();
    assert!(removed.adopted && !removed.root_removed);
    assert_eq!(tree(&spec.root()), before);
    assert!(!spec.root().join(".wmlrun").exists());
}

#[test]
fn a_stop_ends_the_reading_of_a_tree_to_adopt() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 9, 100);
    foreign_tree(&spec.root());
    let stopped = Fileset::open(spec, 1, true, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(Error::Stopped { .. })), "{stopped:?}");
}

#[test]
fn a_tree_that_was_adopted_meanwhile_is_refused() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 9, 100);
    spec.prealloc = 50;
    foreign_tree(&spec.root());
    let before = tree(&spec.root());
    // As a set of an earlier run, or one that was opened while another process had locked the marker.
    let early = Arc::new(Fileset::open(spec.clone(), 1, false, &NO_STOP).unwrap());
    let adopting = PrepareOptions { adopt: true, ..options() };
    let adopted = Arc::new(Fileset::open(spec.clone(), 1, true, &NO_STOP).unwrap());
    prepare(std::slice::from_ref(&adopted), &adopting, &Quiet, &NO_STOP).unwrap();
    // While the marker is locked it is unknown whether the tree is adopted.
    assert!(matches!(Fileset::open(spec.clone(), 1, false, &NO_STOP), Err(Error::InUse { .. })));
    adopted.close();
    for start in [StartState::default(), StartState { tree: Existing::Repair, ..StartState::default() }] {
        let set = Arc::new(early.again(start));
        let refused = prepare(&[set], &options(), &Quiet, &NO_STOP);
        assert!(matches!(refused, Err(Error::Adopt { .. })), "{refused:?}");
        assert_eq!(tree(&spec.root()), before);
    }
}

#[test]
fn files_of_an_adopted_tree_that_were_changed_since_are_kept_without_reuse() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 9, 100);
    foreign_tree(&spec.root());
    let adopting = PrepareOptions { adopt: true, ..options() };
    let set = Arc::new(Fileset::open(spec.clone(), 1, true, &NO_STOP).unwrap());
    prepare(std::slice::from_ref(&set), &adopting, &Quiet, &NO_STOP).unwrap();
    set.close();
    let (grown, link) = (spec.root().join("00000002/00000001"), spec.root().join("00000002/00000003"));
    let changes: [&dyn Fn(); 2] = [&|| fs::write(&grown, vec![2; 300]).unwrap(), &|| {
        fs::write(&grown, vec![1; 100]).unwrap();
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("00000004", &link).unwrap();
    }];
    for change in changes {
        change();
        let before = tree(&spec.root());
        assert!(matches!(ready(&spec), Err(Error::Adopt { .. })));
        assert_eq!(tree(&spec.root()), before);
    }
    spec.reuse = true;
    assert!(ready(&spec).unwrap().adopted);
}

/// The state of a later run of a session: differences may be changes of its earlier runs.
#[test]
fn later_runs_restore_only_sizes_that_were_verified() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 9, 100);
    foreign_tree(&spec.root());
    let adopting = PrepareOptions { adopt: true, ..options() };
    let set = Arc::new(Fileset::open(spec.clone(), 1, true, &NO_STOP).unwrap());
    assert!(prepare(std::slice::from_ref(&set), &adopting, &Quiet, &NO_STOP).unwrap()[0].verified);
    let released = set.close();
    assert!(released.is_some());
    let later = |spec: &FilesetSpec, verified, released| {
        let start = StartState { tree: Existing::Repair, verified, released, ..StartState::default() };
        let set = Arc::new(Fileset::open(spec.clone(), 1, false, &NO_STOP).unwrap().with_start(start));
        let prepared = prepare(std::slice::from_ref(&set), &options(), &Quiet, &NO_STOP);
        set.close();
        prepared
    };
    fs::write(spec.root().join("00000002/00000001"), vec![2; 300]).unwrap();
    let before = tree(&spec.root());
    spec.trusttree = true;
    assert!(!ready(&spec).unwrap().verified);
    let smaller = FilesetSpec { size: Quantity::Const(50), ..spec.clone() };
    for spec in [&spec, &smaller] {
        let refused = later(spec, false, released);
        assert!(matches!(refused, Err(Error::Adopt { .. })), "{refused:?}");
        assert_eq!(tree(&spec.root()), before);
    }
    // A command has come between, or another session, which has touched the marker.
    assert!(matches!(later(&spec, true, None), Err(Error::Adopt { .. })));
    std::thread::sleep(std::time::Duration::from_millis(20));
    let marker = spec.root().join(".wmlrun");
    fs::set_permissions(&marker, fs::metadata(&marker).unwrap().permissions()).unwrap();
    assert!(matches!(later(&spec, true, released), Err(Error::Adopt { .. })));
    assert_eq!(tree(&spec.root()), before);
    // The stamp of a later run of the session.
    let set = Arc::new(Fileset::open(spec.clone(), 1, false, &NO_STOP).unwrap());
    assert!(!prepare(std::slice::from_ref(&set), &options(), &Quiet, &NO_STOP).unwrap()[0].untouched);
    let prepared = later(&spec, true, set.close()).unwrap();
    assert!(prepared[0].untouched);
    assert_eq!(prepared[0].repairs.resized, 1);
}

#[test]
fn a_tree_of_another_structure_is_not_adopted() {
    type Damage<'a> = (&'a str, &'a dyn Fn(&Path));
    let damages: [Damage<'_>; 5] = [
        ("a missing file", &|root| fs::remove_file(root.join("00000002/00000002")).unwrap()),
        ("one file missing at the end", &|root| fs::remove_file(root.join("00000002/00000004")).unwrap()),
        ("a foreign name", &|root| fs::write(root.join("00000002/readme"), "x").unwrap()),
        ("a missing directory", &|root| fs::rename(root.join("00000002"), root.join("00000003")).unwrap()),
        ("a file in the root", &|root| fs::write(root.join("00000003"), "x").unwrap()),
    ];
    for (what, damage) in damages {
        let dir = TempDir::new().unwrap();
        let spec = spec(dir.path(), 9, 100);
        foreign_tree(&spec.root());
        damage(&spec.root());
        let before = tree(&spec.root());
        assert!(matches!(Fileset::open(spec.clone(), 1, true, &NO_STOP), Err(Error::Adopt { .. })), "{what}");
        assert_eq!(tree(&spec.root()), before);
        assert!(!spec.root().join(".wmlrun").exists(), "{what}");
    }
}

#[test]
fn leaf_directories_can_be_adopted() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 9, 100);
    spec.leafdirs = 5;
    foreign_tree(&spec.root());
    for leaf in
        ["00000003/00000001", "00000003/00000002", "00000003/00000003", "00000004/00000001", "00000004/00000002"]
    {
        fs::create_dir_all(spec.root().join(leaf)).unwrap();
    }
    let set = Fileset::open(spec, 1, true, &NO_STOP).unwrap();
    assert_eq!(set.tree.leafdir_rel_path(3), "00000004/00000001");
    assert_eq!((set.tree.n_dirs(), set.tree.n_files()), (7, 9));
}
