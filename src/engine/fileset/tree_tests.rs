//! Tests of tree shapes: against trees observed in Filebench, and against a direct implementation of its construction.
#![allow(clippy::unwrap_used)]

use super::super::shape::ShapeError;
use super::super::{FilesetSpec, Interleave, SizeRow, SizeTable};
use super::Tree;
use crate::random::{self, Quantity};
use proptest::prelude::*;

fn spec(entries: u64, leafdirs: u64, width: Option<u64>, gamma: f64) -> FilesetSpec {
    let mut spec = FilesetSpec::new("fs", "/x", entries, 1024);
    spec.leafdirs = leafdirs;
    spec.dirwidth = width.map(Quantity::Const);
    (spec.width_gamma, spec.depth_gamma) = (gamma, gamma);
    spec.prealloc = 100;
    spec
}

fn paths(tree: &Tree) -> Vec<String> {
    (0..tree.n_files()).map(|i| tree.rel_path(i)).collect()
}

#[test]
fn ten_entries_at_width_three_are_as_in_filebench() {
    let tree = Tree::new(&spec(10, 0, Some(3), 0.0), 1).unwrap();
    let expected: Vec<String> = [(1, 3), (2, 3), (3, 3), (4, 1)]
        .iter()
        .flat_map(|&(d, n)| (1..=n).map(move |f| format!("{d:08}/{f:08}")))
        .collect();
    assert_eq!(paths(&tree), expected);
    assert_eq!(tree.n_dirs(), 5);
    assert!((tree.mean_depth() - 2.096).abs() < 0.001);
}

#[test]
fn a_tree_without_entries_has_a_depth() {
    for (entries, width) in [(0, None), (0, Some(1)), (0, Some(20)), (1, None), (1, Some(1)), (1, Some(20))] {
        let tree = Tree::new(&spec(entries, 0, width, 1.5), 1).unwrap();
        assert_eq!(format!("{:.1}", tree.mean_depth()), "0.0", "{entries} {width:?}");
    }
}

#[test]
fn leaf_directories_are_as_in_filebench() {
    let tree = Tree::new(&spec(0, 5, Some(3), 0.0), 1).unwrap();
    let all: Vec<String> = (0..5).map(|i| tree.leafdir_rel_path(i)).collect();
    assert_eq!(all, ["1/1", "1/2", "1/3", "2/1", "2/2"].map(|p| p.replace('/', "/0000000").replacen("", "0000000", 1)));
    assert_eq!(tree.n_files(), 0);
}

#[test]
fn files_and_leaf_directories_of_one_set_do_not_collide() {
    let tree = Tree::new(&spec(5, 5, Some(3), 0.0), 1).unwrap();
    let files = paths(&tree);
    let leafs: Vec<String> = (0..5).map(|i| tree.leafdir_rel_path(i)).collect();
    assert!(leafs.iter().all(|leaf| !files.contains(leaf)));
    // No directory contains both leaf directories and files.
    let parent = |p: &String| p[..p.len() - 9].to_owned();
    assert!(leafs.iter().all(|leaf| files.iter().all(|file| parent(file) != parent(leaf))));
}

#[test]
fn a_single_file_is_two_levels_below_the_root() {
    let mut one = spec(1, 0, Some(10), 0.0);
    one.single = true;
    assert_eq!(paths(&Tree::new(&one, 1).unwrap()), ["00000001/00000001"]);
}

#[test]
fn degenerate_widths_put_all_files_one_level_below_the_root() {
    for width in [None, Some(0)] {
        let tree = Tree::new(&spec(5, 0, width, 1.5), 1).unwrap();
        assert_eq!(paths(&tree), (1..=5).map(|d| format!("{d:08}/00000001")).collect::<Vec<_>>());
    }
    let tree = Tree::new(&spec(50, 0, Some(1), 1.5), 1).unwrap();
    assert_eq!(tree.levels(), 1);
    assert!(tree.n_dirs() < 51, "some gamma widths around 1 exceed 1");
    let tree = Tree::new(&spec(1000, 0, Some(1_000_000), 0.0), 1).unwrap();
    assert_eq!((tree.n_dirs(), tree.rel_path(999).as_str()), (2, "00000001/00001000"));
    let tree = Tree::new(&spec(0, 0, Some(20), 1.5), 1).unwrap();
    assert_eq!((tree.n_dirs(), tree.bytes()), (1, 0));
}

#[test]
fn prealloc_selects_the_requested_share_and_always_the_same_files() {
    let mut half = spec(10_000, 0, Some(10), 1.5);
    half.prealloc = 50;
    let (a, b) = (Tree::new(&half, 1).unwrap(), Tree::new(&half, 1).unwrap());
    let present: Vec<u64> = (0..10_000).filter(|&i| a.exists_at_start(i)).collect();
    assert!((4800..5200).contains(&present.len()), "{}", present.len());
    assert_eq!(a.files_at_start(), present.len() as u64);
    assert!(present.iter().all(|&i| b.exists_at_start(i)));
    assert_eq!(a.bytes_at_start(), present.len() as u64 * 1024);
    let other = Tree::new(&half, 2).unwrap();
    assert!(present.iter().any(|&i| !other.exists_at_start(i)));
    half.prealloc = 0;
    assert_eq!(Tree::new(&half, 1).unwrap().files_at_start(), 0);
}

#[test]
fn drawn_sizes_are_reproducible_and_have_the_requested_mean() {
    let mut drawn = spec(20_000, 0, Some(20), 1.5);
    drawn.size = gamma_sized(16384.0);
    let (a, b) = (Tree::new(&drawn, 1).unwrap(), Tree::new(&drawn, 1).unwrap());
    assert!((0..20_000).rev().all(|i| a.size_of(i) == b.size_of(i)));
    let mean = a.bytes() as f64 / 20_000.0;
    assert!((15_800.0..17_000.0).contains(&mean), "{mean}");
    assert!((0..100).any(|i| a.size_of(i) != Tree::new(&drawn, 9).unwrap().size_of(i)));
}

#[test]
fn a_tree_deeper_than_a_path_is_refused() {
    // Widths slightly above one need very many levels. (Draws are truncated to integers, which lowers their mean by
    // about 0.5.)
    let mut deep = spec(1_000_000, 0, None, 0.0);
    let width = |mean| Some(gamma_sized(mean));
    deep.dirwidth = width(1.5);
    assert_eq!(Tree::new(&deep, 1).err(), Some(ShapeError::Levels));
    deep.dirwidth = width(2.0);
    assert!(Tree::new(&deep, 1).is_ok());
    deep.entries = u64::from(u32::MAX);
    assert_eq!(Tree::new(&deep, 1).err(), Some(ShapeError::Entries(deep.entries)));
}

/// The construction as described in wml 4.2: recursive, with paths.
struct Direct<'a> {
    spec: &'a FilesetSpec,
    rng: random::Rng,
    depth: f64,
    wanted: usize,
    files: Vec<String>,
    dirs: Vec<String>,
}

impl Direct<'_> {
    fn build(spec: &FilesetSpec, seed: u64) -> (Vec<String>, Vec<String>) {
        let width = spec.dirwidth.as_ref().map_or(0.0, Quantity::mean);
        let mut direct = Direct {
            spec,
            // The stream from which the shape is drawn: `purpose::SHAPE`.
            rng: random::stream(seed, &[1]),
            depth: (spec.entries as f64).ln() / width.ln(),
            wanted: spec.entries as usize,
            files: Vec::new(),
            dirs: Vec::new(),
        };
        let mut serial = 0;
        while direct.files.len() < direct.wanted {
            serial += 1;
            direct.dir("", serial, 2);
        }
        (direct.files, direct.dirs)
    }

    fn dir(&mut self, parent: &str, serial: u64, level: u64) {
        let path = if parent.is_empty() { format!("{serial:08}") } else { format!("{parent}/{serial:08}") };
        self.dirs.push(path.clone());
        let limit = match (self.depth.is_finite() && self.depth > 0.0, self.spec.depth_gamma) {
            (false, _) => 1,
            (true, shape) if shape > 0.0 => (random::gamma(&mut self.rng, self.depth, shape) as u64).max(1),
            _ => (self.depth as u64).max(1),
        };
        let width = match (&self.spec.dirwidth, self.spec.width_gamma) {
            (None | Some(Quantity::Const(0)), _) => 1,
            (Some(Quantity::Const(w)), shape) if shape > 0.0 => {
                (random::gamma(&mut self.rng, *w as f64, shape).ceil() as u64).max(1)
            }
            (Some(w), _) => w.draw(&mut self.rng).max(1),
        };
        for serial in 1..=width {
            if self.files.len() == self.wanted {
                return;
            }
            if level >= limit {
                self.files.push(format!("{path}/{serial:08}"));
            } else {
                self.dir(&path, serial, level + 1);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn trees_equal_those_of_the_direct_construction(
        entries in 1_u64..3000, width in prop::option::of(0_u64..60), gamma in prop_oneof![Just(0.0), Just(1.5), 0.5_f64..4.0], seed: u64
    ) {
        let spec = spec(entries, 0, width, gamma);
        let tree = Tree::new(&spec, seed).unwrap();
        let (files, dirs) = Direct::build(&spec, seed);
        prop_assert_eq!(paths(&tree), files);
        prop_assert_eq!((1..tree.n_dirs()).map(|d| tree.dir_rel_path(d)).collect::<Vec<_>>(), dirs);
    }

    #[test]
    fn every_file_is_in_the_directory_that_lists_it(entries in 1_u64..5000, leafdirs in 0_u64..500, width in 1_u64..40, seed: u64) {
        let tree = Tree::new(&spec(entries, leafdirs, Some(width), 1.5), seed).unwrap();
        let mut next = 0;
        let mut next_leaf = 0;
        for d in 0..tree.n_dirs() {
            prop_assert!(d == 0 || tree.parent(d) < d);
            for (k, i) in tree.files_in(d).enumerate() {
                prop_assert_eq!((i, tree.dir_of(i), tree.serial(i)), (next, d, k as u64 + 1));
                next += 1;
            }
            for i in tree.leafdirs_in(d) {
                prop_assert_eq!((i, tree.dir_of_leafdir(i)), (next_leaf, d));
                next_leaf += 1;
            }
        }
        prop_assert_eq!((next, next_leaf), (entries, leafdirs));
    }
}

/// Compares a part of a tree with the whole tree: all properties of each file and leaf directory, and of directories.
fn compare_part(whole: &Tree, part: &Tree, of: Interleave) {
    assert_eq!(
        (part.part(), part.n_files(), part.n_leafdirs()),
        (of, of.len(whole.n_files()), of.len(whole.n_leafdirs()))
    );
    for (i, number) in (0..part.n_files()).map(|i| (i, of.number(i))) {
        assert_eq!((part.rel_path(i), part.name(i)), (whole.rel_path(number), whole.name(number)));
        assert_eq!(part.dir_and_serial(i), whole.dir_and_serial(number));
        assert_eq!(part.dir_of(i), whole.dir_of(number));
        assert_eq!((part.size_of(i), part.size_at_start(i)), (whole.size_of(number), whole.size_at_start(number)));
        assert_eq!(part.exists_at_start(i), whole.exists_at_start(number));
        assert_eq!(part.next_name(i), whole.next_name(number));
    }
    for (i, number) in (0..part.n_leafdirs()).map(|i| (i, of.number(i))) {
        assert_eq!(part.leafdir_rel_path(i), whole.leafdir_rel_path(number));
        assert_eq!(part.leafdir_at_start(i), whole.leafdir_at_start(number));
    }
    assert_eq!((part.n_dirs(), part.levels()), (whole.n_dirs(), whole.levels()));
    for d in 0..whole.n_dirs() {
        assert_eq!(part.dir_rel_path(d), whole.dir_rel_path(d));
        let inside = part.files_in(d).map(|i| of.number(i)).collect::<Vec<_>>();
        let expected = whole.files_in(d).filter(|i| i % of.step == of.first).collect::<Vec<_>>();
        assert_eq!(inside, expected, "{of:?}, directory {d}");
        assert_eq!(part.leafdirs_in(d), of.range(whole.leafdirs_in(d)));
    }
}

#[test]
fn the_parts_of_a_tree_have_its_files_with_their_names_and_sizes() {
    let table = SizeTable::new(&[SizeRow { above: 0, up_to: 9000, count: 1 }], 700, None);
    let plain = spec(700, 60, Some(7), 1.5);
    let partial = FilesetSpec { prealloc: 40, ..plain.clone() };
    let specs = [
        plain.clone(),
        FilesetSpec { size: gamma_sized(9e3), ..partial.clone() },
        FilesetSpec { sizes: Some(table), ..partial },
        FilesetSpec { empty: true, ..plain },
        spec(3, 0, Some(2), 0.0),
        spec(1, 5, None, 0.0),
    ];
    for spec in specs {
        let whole = Tree::new(&spec, 3).unwrap();
        for n in 1..5 {
            let parts: Vec<Tree> =
                (0..n).map(|k| Tree::new(&spec, 3).unwrap().interleaved(Interleave::part(k, n))).collect();
            for (k, part) in (0..n).zip(&parts) {
                compare_part(&whole, part, Interleave::part(k, n));
            }
            let sum = |of: fn(&Tree) -> u64| parts.iter().map(of).sum::<u64>();
            assert_eq!(sum(Tree::bytes), whole.bytes());
            assert_eq!(sum(Tree::bytes_at_start), whole.bytes_at_start());
            assert_eq!(sum(Tree::files_at_start), whole.files_at_start());
        }
    }
}

/// Sizes of a larger set are drawn when they are needed.
#[test]
fn the_drawn_sizes_of_a_large_tree_are_those_of_its_parts() {
    let spec = FilesetSpec { size: gamma_sized(9e3), ..spec(70_000, 0, Some(1000), 0.0) };
    let whole = Tree::new(&spec, 3).unwrap();
    for k in 0..3 {
        let of = Interleave::part(k, 3);
        let part = Tree::new(&spec, 3).unwrap().interleaved(of);
        for i in (0..part.n_files()).step_by(101) {
            assert_eq!(part.size_of(i), whole.size_of(of.number(i)));
        }
    }
}

/// Returns a gamma-distributed quantity with shape 1.5.
fn gamma_sized(mean: f64) -> Quantity {
    let params = crate::random::RandvarParams { mean: Some(mean), ..Default::default() };
    crate::random::randvar(&params).unwrap().into()
}

#[test]
fn the_median_size_does_not_depend_on_a_few_large_files() {
    let sizes = |spec: &FilesetSpec| {
        let tree = Tree::new(spec, 1).unwrap();
        (tree.median_size(), tree.largest_size())
    };
    assert_eq!(sizes(&spec(30, 0, Some(3), 0.0)), (1024, 1024));
    assert_eq!(sizes(&spec(0, 5, Some(3), 0.0)), (0, 0));
    let rows =
        [SizeRow { above: 4096, up_to: 4096, count: 990 }, SizeRow { above: 1 << 40, up_to: 1 << 40, count: 10 }];
    for prealloc in [100, 50] {
        let mut outliers = spec(1000, 0, Some(10), 0.0);
        (outliers.sizes, outliers.prealloc) = (Some(SizeTable::new(&rows, 1000, None)), prealloc);
        assert_eq!(sizes(&outliers), (4096, 1 << 40));
    }
}
