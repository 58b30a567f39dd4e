//! Aging of a file system: source trees are checked out, updated and removed in turns until a fullness is reached, and
//! the fragmentation before and afterwards is determined.
//!
//! The files are a file set: its root `aged` is created, marked, locked and removed like that of any other set. The
//! marker also has the parameters and the number of completed steps, so that an interrupted aging continues. What the
//! steps are is decided in [`crate::fileset::aging`].

mod record;
mod score;
mod steps;

use super::error::Error;
use super::marker::MarkerProgress;
use super::prepare::{self, Phase, Progress};
use super::record::DirNames;
use super::root::{self, Root, Taken};
use super::space::{self, Demand};
use super::{Fileset, disk_usage};
use crate::fileset::FilesetSpec;
use crate::fileset::aging::{AgingError, AgingParameters, AgingSequence, AgingWork, Fullness};
use crate::fileset::content::BLOCK;
use crate::random::Quantity;
pub(super) use record::AgingRecord;
pub use record::{Figure, FileScore, FreeSpaceClass, FreeSpaceScore};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use steps::Locations;
use wml_os::{FileType, fd};

/// Name of the file set, and of its root in the directory to age.
pub const NAME: &str = "aged";
/// Mean number of entries of a directory.
const DIR_WIDTH: u64 = 20;

/// The parameters of an aging.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AgingOptions {
    /// The fullness to reach.
    pub to: Fullness,
    /// Number of rounds, 1 to [`MAX_ROUNDS`](crate::fileset::aging::MAX_ROUNDS).
    pub rounds: u32,
    /// Seed of names, sizes, contents and sequence.
    pub seed: u64,
}

/// The result of an aging.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AgingReport {
    /// The root of the aged tree.
    pub path: PathBuf,
    /// The requested fullness, as text.
    pub to: String,
    /// Number of rounds.
    pub rounds: u32,
    pub seed: u64,
    /// Capacity of the file system at the start, in bytes.
    pub capacity: u64,
    /// Bytes of the files, each rounded up to 4 KiB.
    pub bytes: u64,
    /// Number of source trees.
    pub trees: u32,
    /// Number of files.
    pub files: u64,
    pub steps: usize,
    /// Steps that earlier calls had completed.
    pub steps_before: usize,
    /// Bytes that this call has written.
    pub written: u64,
    /// Duration of the steps of this call, in seconds.
    pub seconds: f64,
    /// The score before the first file was created.
    pub at_start: AgingScore,
    /// The score of the first source trees, before any file was updated or removed.
    pub first_trees: AgingScore,
    /// The score at the end.
    pub aged: AgingScore,
    /// Note for the user about the location of the root.
    pub note: Option<String>,
}

/// A score: how fragmented files and free space are. `None` where it was not determined.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
pub struct AgingScore {
    /// Extents of the files.
    pub files: Option<Figure<FileScore>>,
    /// Free extents of the file system.
    pub free_space: Option<Figure<FreeSpaceScore>>,
}

/// Ages the file system of a directory: creates, updates and removes files in `DIR/aged`. Continues an interrupted
/// aging with the same parameters; if it is complete, only determines the score.
///
/// On an error before the first step everything that was created is removed. Later, the files remain, and the next call
/// continues.
pub fn age(
    dir: &Path,
    options: AgingOptions,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<AgingReport, Error> {
    match fd::stat(dir) {
        Ok(stat) if stat.kind == FileType::Directory => {}
        Ok(_) => return Err(Error::NotADirectory { set: NAME.to_owned(), path: dir.to_owned() }),
        Err(e) => return Err(Error::call("", "open", dir, e)),
    }
    let mut root = match root::take(&spec(dir, 0))? {
        Taken::Owned(root) => *root,
        Taken::Unmarked(unmarked) => return Err(unmarked.refuse(Ok(()))),
    };
    let mut aging = match Aging::begin(&mut root, dir, options) {
        Ok(aging) => aging,
        Err(e) => {
            root.roll_back();
            return Err(e);
        }
    };
    let done = aging.proceed(&mut root, progress, stop);
    root.close();
    done
}

/// Returns the definition of the file set of an aged tree.
fn spec(dir: &Path, entries: u64) -> FilesetSpec {
    let mut spec = FilesetSpec::new(NAME, dir, entries, 0);
    spec.dirwidth = Some(Quantity::Const(DIR_WIDTH));
    spec.late_dirs = true;
    spec
}

/// An aging in progress.
struct Aging {
    record: AgingRecord,
    sequence: AgingSequence,
    set: Arc<Fileset>,
}

impl Aging {
    /// Reads the progress from the marker, or begins: checks the parameters and the free space. Writes only the marker.
    fn begin(root: &mut Root, dir: &Path, options: AgingOptions) -> Result<Self, Error> {
        let refused = |why| Error::Aging { set: NAME.to_owned(), path: root.path.clone(), why };
        if root.marker.aging.is_some() && root.marker.state == MarkerProgress::Removing {
            return Err(refused(AgingError::PartlyRemoved));
        }
        let record = match &root.marker.aging {
            Some(record) if record.is_of(options) => record.clone(),
            Some(record) => {
                let wanted = parameters_text(&options.to.to_string(), options.rounds, options.seed);
                return Err(refused(AgingError::OtherParameters { was: record.text(), wanted }));
            }
            None if root.marker.layout.is_some() || root.marker.adopted => return Err(refused(AgingError::OfScript)),
            None => AgingRecord::new(root, options)?,
        };
        let AgingRecord { seed, rounds, bytes, .. } = record;
        let sequence = AgingSequence::new(AgingParameters { seed, rounds, bytes }).map_err(refused)?;
        let set = Arc::new(Fileset::new(spec(dir, sequence.entries()), seed)?);
        // Each step opens the root by its path.
        set.set_root(root.fd);
        let layout = set.spec.layout(seed);
        if root.marker.layout.as_ref().is_some_and(|was| *was != layout) {
            // Another version of the program computes another sequence.
            let was = root.marker.layout.as_ref().map_or_else(String::new, ToString::to_string);
            return Err(refused(AgingError::OtherParameters { was, wanted: layout.to_string() }));
        }
        let aging = Self { record, sequence, set };
        if aging.is_complete() {
            return Ok(aging);
        }
        aging.check_space(root)?;
        root.marker.layout = Some(layout);
        root.marker.names = Some(DirNames::of(&aging.set.spec, &aging.set.tree));
        root.marker.state = MarkerProgress::Populating;
        aging.write(root)?;
        // From here on the files of the tree belong to the root, which is kept.
        root.fresh = false;
        Ok(aging)
    }

    fn is_complete(&self) -> bool {
        self.record.steps >= self.sequence.steps().len()
    }

    /// Writes the progress to the marker.
    fn write(&self, root: &mut Root) -> Result<(), Error> {
        root.marker.aging = Some(self.record.clone());
        root.write_marker()
    }

    /// Returns an error when the remaining steps don't fit on the file system.
    fn check_space(&self, root: &Root) -> Result<(), Error> {
        let (tree, steps) = (&self.set.tree, self.record.steps);
        let (mut present, mut inodes) = (0, tree.n_files() + tree.n_dirs());
        if steps > 0 || root.marker.layout.is_some() {
            // An interrupted step has created some of its files.
            let found = disk_usage::bytes(&root.path, usize::MAX).unwrap_or(0);
            (present, inodes) = (found.max(self.sequence.bytes_before(steps)), 0);
        }
        let demand = Demand {
            set: NAME.to_owned(),
            path: root.path.clone(),
            device: root.device,
            bytes: self.record.bytes.saturating_sub(present) + inodes.min(tree.n_dirs()) * BLOCK as u64,
            inodes,
            freed: (0, 0),
        };
        // The first call ensures that space stays free.
        space::check_with_memory(&[demand], present == 0)
    }

    /// Does the remaining steps, and determines the score.
    fn proceed(&mut self, root: &mut Root, progress: &dyn Progress, stop: &AtomicBool) -> Result<AgingReport, Error> {
        let (steps_before, start) = (self.record.steps, Instant::now());
        let mut done = AgingWork::default();
        if !self.is_complete() {
            let work = self.sequence.work_from(steps_before);
            progress.started(NAME, Phase::Age, work.files, work.bytes);
        }
        for number in steps_before..self.sequence.steps().len() {
            let at = Locations::new(&self.set, root, &self.sequence, stop);
            done = at.perform(number, &self.sequence.steps()[number], done, progress)?;
            // Written back before the marker, which then never states more than the disk has.
            fd::syncfs(root.fd).map_err(|e| Error::call(NAME, "sync", &root.path, e))?;
            if number == 0 {
                self.record.first_trees = Some(score::files(&at, 1, &prepare::Quiet)?);
            }
            self.record.steps = number + 1;
            if self.is_complete() {
                root.marker.state = MarkerProgress::Ready;
            }
            self.write(root)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let steps = self.sequence.steps().len();
        let at = Locations::new(&self.set, root, &self.sequence, stop);
        let files = score::files(&at, steps, progress)?;
        let free_space = score::free_space(root)?;
        let versions = self.sequence.versions_before(steps);
        let exists = |i: &u64| self.sequence.file(*i, &versions, true).is_some();
        Ok(AgingReport {
            path: root.path.clone(),
            to: self.record.to.clone(),
            rounds: self.record.rounds,
            seed: self.record.seed,
            capacity: self.record.capacity,
            bytes: self.record.bytes,
            trees: self.sequence.trees(),
            files: (0..self.sequence.entries()).filter(exists).count() as u64,
            steps,
            steps_before,
            written: done.bytes,
            seconds,
            at_start: AgingScore { files: None, free_space: Some(self.record.free_at_start.clone()) },
            first_trees: AgingScore { files: self.record.first_trees.clone(), free_space: None },
            aged: AgingScore { files: Some(files), free_space: Some(free_space) },
            note: root.note.clone(),
        })
    }
}

impl AgingRecord {
    /// Creates the record of an aging that has not begun.
    fn new(root: &Root, options: AgingOptions) -> Result<Self, Error> {
        let space = fd::statvfs(root.fd).map_err(|e| Error::call(NAME, "stat", &root.path, e))?;
        Ok(Self {
            to: options.to.to_string(),
            rounds: options.rounds,
            seed: options.seed,
            capacity: space.total,
            bytes: options.to.bytes(space.total),
            steps: 0,
            free_at_start: score::free_space(root)?,
            first_trees: None,
        })
    }

    fn is_of(&self, options: AgingOptions) -> bool {
        (&self.to, self.rounds, self.seed) == (&options.to.to_string(), options.rounds, options.seed)
    }

    fn text(&self) -> String {
        parameters_text(&self.to, self.rounds, self.seed)
    }
}

/// Returns the parameters as options of the command line.
fn parameters_text(to: &str, rounds: u32, seed: u64) -> String {
    format!("`--to {to} --rounds {rounds} --seed {seed}`")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use wml_os::Errno;

    /// Puts another directory into the place of the root when the steps begin.
    struct Replace<'a>(&'a Path);

    impl Progress for Replace<'_> {
        fn started(&self, _: &str, phase: Phase, _: u64, _: u64) {
            if phase == Phase::Age {
                fs::rename(self.0.join(NAME), self.0.join("away")).unwrap();
                fs::create_dir(self.0.join(NAME)).unwrap();
            }
        }

        fn advanced(&self, _: u64, _: u64) {}
    }

    #[test]
    fn a_directory_that_has_replaced_the_root_is_not_aged() {
        let dir = tempfile::tempdir().unwrap();
        let options = AgingOptions { to: Fullness::Bytes(3 << 20), rounds: 3, seed: 1 };
        let done = age(dir.path(), options, &Replace(dir.path()), &AtomicBool::new(false));
        assert!(matches!(done, Err(Error::Call { errno: Errno::STALE, .. })), "{done:?}");
        assert_eq!(fs::read_dir(dir.path().join(NAME)).unwrap().count(), 0);
        assert!(dir.path().join("away/.wmlrun").is_file());
    }
}
