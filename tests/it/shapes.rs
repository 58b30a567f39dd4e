//! Tests the shapes of trees against a direct implementation of Filebench's construction with separate random numbers,
//! and against a tree that Filebench has created.

use rand::SeedableRng;
use rand_distr::{Distribution, Gamma};
use rand_xoshiro::Xoshiro256PlusPlus;
use wml::disk::Fileset;
use wml::fileset::FilesetSpec;
use wml::random::Quantity;

use crate::cmd::Wml;

/// Shape of the distributions of width and depth where a script says nothing.
const GAMMA: f64 = 1.5;

/// The compared properties of a tree.
#[derive(Clone, Copy, Debug)]
struct Figures {
    /// Directories, the root not counted.
    dirs: f64,
    /// Mean number of files in a directory that holds any.
    width: f64,
    /// Mean number of directories above a file, the root not counted.
    depth: f64,
}

/// The construction in its simplest form: recursive, one directory after the other.
struct Direct {
    rng: Xoshiro256PlusPlus,
    depths: Gamma<f64>,
    widths: Gamma<f64>,
    wanted: u64,
    files: u64,
    dirs: u64,
    leaves: u64,
    levels: u64,
}

impl Direct {
    fn figures(entries: u64, width: u64, seed: u64) -> Figures {
        let depth = (entries as f64).ln() / (width as f64).ln();
        let gamma = |mean: f64| Gamma::new(GAMMA, mean / GAMMA).unwrap();
        let mut direct = Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            depths: gamma(depth),
            widths: gamma(width as f64),
            wanted: entries,
            files: 0,
            dirs: 0,
            leaves: 0,
            levels: 0,
        };
        // The root, which is level 1, goes on until all files are there.
        while direct.files < direct.wanted {
            direct.directory(2);
        }
        Figures {
            dirs: direct.dirs as f64,
            width: entries as f64 / direct.leaves as f64,
            depth: direct.levels as f64 / entries as f64,
        }
    }

    fn directory(&mut self, level: u64) {
        self.dirs += 1;
        let limit = (self.depths.sample(&mut self.rng) as u64).max(1);
        let width = (self.widths.sample(&mut self.rng).ceil() as u64).max(1);
        let leaf = level >= limit;
        self.leaves += u64::from(leaf);
        for _ in 0..width {
            if self.files == self.wanted {
                return;
            }
            if leaf {
                self.files += 1;
                self.levels += level - 1;
            } else {
                self.directory(level + 1);
            }
        }
    }
}

fn ours(entries: u64, width: u64, seed: u64) -> Figures {
    let mut spec = FilesetSpec::new("fs", "/nowhere", entries, 0);
    spec.dirwidth = Some(Quantity::Const(width));
    let set = Fileset::new(spec, seed).unwrap();
    let tree = &set.tree;
    let (mut leaves, mut levels) = (0, 0);
    let mut level = vec![0_u64; tree.n_dirs() as usize];
    for d in 1..tree.n_dirs() {
        level[d as usize] = level[tree.parent(d) as usize] + 1;
        let files = tree.files_in(d).count() as u64;
        leaves += u64::from(files > 0);
        levels += files * level[d as usize];
    }
    assert_eq!(tree.n_files(), entries);
    Figures {
        dirs: (tree.n_dirs() - 1) as f64,
        width: entries as f64 / leaves as f64,
        depth: levels as f64 / entries as f64,
    }
}

/// Mean and variance of the mean.
fn mean(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0) / n)
}

#[test]
fn trees_have_the_directories_widths_and_depths_of_the_direct_construction() {
    for entries in [1_000, 10_000, 100_000, 1_000_000] {
        let seeds = 1..=if entries > 100_000 { 12 } else { 40 };
        for width in [5, 20, 100, 1000, 1_000_000] {
            let direct: Vec<_> = seeds.clone().map(|seed| Direct::figures(entries, width, seed)).collect();
            let own: Vec<_> = seeds.clone().map(|seed| ours(entries, width, seed)).collect();
            for (what, of) in [
                ("directories", (|f: &Figures| f.dirs) as fn(&Figures) -> f64),
                ("mean width", |f| f.width),
                ("mean depth", |f| f.depth),
            ] {
                let (expected, doubt) = mean(direct.iter().map(of));
                let (found, own_doubt) = mean(own.iter().map(of));
                // Five standard errors, and what counts of whole directories differ by where trees have only a few.
                let slack = 5.0 * (doubt + own_doubt).sqrt() + 0.001 * expected;
                assert!(
                    (found - expected).abs() <= slack,
                    "{what} of {entries} entries at width {width}: {found} instead of {expected} ± {slack}"
                );
            }
        }
    }
}

#[test]
fn ten_entries_of_width_three_give_the_tree_of_filebench() {
    let script =
        "# dialect: fsl\ndefine fileset name=fs1,path=$dir,entries=10,dirwidth=3,dirgamma=0,prealloc\ncreate files\n";
    let call = Wml::new().file("w.wml", script).args(["w.wml", "--dir", "."]);
    let output = call.run().exits(0);
    let root = output.dir().join("fs1");
    let names = |dir: &std::path::Path| {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        names
    };
    assert_eq!(names(&root), ["00000001", "00000002", "00000003", "00000004"]);
    for (dir, files) in [("00000001", 3), ("00000002", 3), ("00000003", 3), ("00000004", 1)] {
        let expected: Vec<String> = (1..=files).map(|n| format!("{n:08}")).collect();
        assert_eq!(names(&root.join(dir)), expected, "in {dir}");
    }
}

#[test]
fn files_and_leaf_directories_of_one_set_are_separate_with_a_warning() {
    let script = "# dialect: fsl\ndefine fileset name=fs,path=$dir,entries=5,leafdirs=5,dirwidth=3,dirgamma=0,prealloc\ncreate files\n";
    let output = Wml::new().file("w.wml", script).args(["w.wml", "--dir", "."]).run().exits(0);
    assert!(output.stderr.contains("W0412"), "{}", output.stderr);
    // Filebench ends with `File exists` here.
    let there = |path: &str| output.dir().join("fs").join(path);
    assert!(there("00000002/00000002").is_file(), "the files' second directory");
    assert!(there("00000003/00000001").is_dir() && there("00000004/00000002").is_dir(), "leaf directories behind");
}
