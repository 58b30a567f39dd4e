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

/// Returns the paths of the files that exist according to a set, in order.
fn existing(set: &Fileset) -> Vec<String> {
    let exists = |i: &u64| {
        assert_eq!(set.tree.exists_at_start(*i), set.state.files.exists(*i), "file {i}");
        set.tree.exists_at_start(*i)
    };
    (0..set.tree.n_files()).filter(exists).map(|i| set.tree.rel_path(i)).collect()
}

#[test]
fn a_tree_that_was_preallocated_in_part_is_adopted_as_it_is() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 12, 100);
    spec.prealloc = 80;
    foreign_tree(&spec.root());
    for missing in ["00000001/00000001/00000002", "00000002/00000001", "00000001/00000002/00000002"] {
        fs::remove_file(spec.root().join(missing)).unwrap();
    }
    fs::create_dir(spec.root().join("00000003")).unwrap();
    let before = tree(&spec.root());
    let there = ["00000001/00000001/00000001", "00000001/00000001/00000003", "00000001/00000002/00000001"];
    let there = [&there[..], &["00000002/00000002", "00000002/00000003", "00000002/00000004"]].concat();
    let adopting = PrepareOptions { adopt: true, ..options() };
    let set = Arc::new(Fileset::open(spec.clone(), 1, true, &NO_STOP).unwrap());
    assert_eq!((set.tree.n_files(), set.tree.n_dirs()), (12, 6));
    assert_eq!(existing(&set), there);
    let prepared = prepare(std::slice::from_ref(&set), &adopting, &Quiet, &NO_STOP).unwrap().remove(0);
    assert!(prepared.adopted && prepared.repairs.total() == 0, "{prepared:?}");
    assert_eq!((prepared.files, prepared.bytes), (6, 600));
    assert!(prepared.note.unwrap_or_default().contains("has 6 of the 12 files"));
    set.close();
    assert_eq!(tree(&spec.root()), before);
    // In a later session too, and when the marker is removed.
    assert_eq!(existing(&Fileset::open(spec.clone(), 1, false, &NO_STOP).unwrap()), there);
    assert!(ready(&spec).unwrap().adopted);
    remove(&Fileset::open(spec.clone(), 1, false, &NO_STOP).unwrap(), 1, &NO_STOP).unwrap();
    assert_eq!(tree(&spec.root()), before);
}

#[test]
fn directories_of_a_constant_width_are_filled_before_the_next() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 9, 100);
    (spec.prealloc, spec.dirwidth, spec.width_gamma) = (50, Some(Quantity::Const(4)), 0.0);
    for (sub, files) in [("1", &[2_u32, 3][..]), ("2", &[]), ("3", &[])] {
        let sub = spec.root().join(format!("{sub:0>8}"));
        fs::create_dir_all(&sub).unwrap();
        files.iter().for_each(|file| fs::write(sub.join(format!("{file:08}")), vec![1; 100]).unwrap());
    }
    let set = Fileset::open(spec.clone(), 1, true, &NO_STOP).unwrap();
    let paths: Vec<String> = (0..9).map(|i| set.tree.rel_path(i)).collect();
    let named = |dir: u32, files: u32| (1..=files).map(move |file| format!("{dir:08}/{file:08}"));
    assert_eq!(paths, named(1, 4).chain(named(2, 4)).chain(named(3, 1)).collect::<Vec<_>>());
    assert_eq!(existing(&set), ["00000001/00000002", "00000001/00000003"]);
    // A larger number than the width, and fewer directories than the set has.
    for (entries, width) in [(9, 2), (13, 4)] {
        let other = FilesetSpec { entries, dirwidth: Some(Quantity::Const(width)), ..spec.clone() };
        assert!(matches!(Fileset::open(other, 1, true, &NO_STOP), Err(Error::Adopt { .. })), "{entries} {width}");
    }
}

#[test]
fn a_tree_with_more_names_than_the_set_is_not_adopted() {
    let dir = TempDir::new().unwrap();
    let mut spec = spec(dir.path(), 20, 100);
    spec.prealloc = 80;
    foreign_tree(&spec.root());
    for name in ["99999999", "00000016"] {
        let extra = spec.root().join("00000002").join(name);
        fs::write(&extra, vec![1; 100]).unwrap();
        assert!(matches!(Fileset::open(spec.clone(), 1, true, &NO_STOP), Err(Error::Adopt { .. })), "{name}");
        fs::remove_file(extra).unwrap();
    }
    // Leaf directories can't be told from directories whose files are missing.
    let leafs = FilesetSpec { leafdirs: 3, ..spec.clone() };
    assert!(matches!(Fileset::open(leafs, 1, true, &NO_STOP), Err(Error::Adopt { .. })));
    assert!(Fileset::open(spec, 1, true, &NO_STOP).is_ok());
}

#[test]
fn a_refusal_says_why_adoption_would_not_help() {
    let dir = TempDir::new().unwrap();
    let spec = spec(dir.path(), 9, 100);
    foreign_tree(&spec.root());
    let help = |spec: &FilesetSpec| ready(spec).unwrap_err().help().unwrap();
    assert!(help(&spec).contains("or adopt"), "{}", help(&spec));
    fs::remove_file(spec.root().join("00000002/00000002")).unwrap();
    assert!(help(&spec).contains("`--adopt` can't use the files as this set"), "{}", help(&spec));
    let partial = FilesetSpec { prealloc: 90, ..spec };
    assert!(help(&partial).contains("or adopt"), "{}", help(&partial));
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
