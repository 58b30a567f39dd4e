//! The sequence of an aging: which source trees are checked out, updated and removed in which order, and the size and
//! content of every file after each step.
//!
//! Source trees are ranges of the file numbers of one file set. All properties are functions of the parameters and of
//! the number of the step, so that an interrupted aging needs only that number to continue. Pure: no disk, no clock.

use super::content::BLOCK;
use super::shape::MAX_ENTRIES;
use crate::random::{self, BadDistribution, Quantity, cvar, mix};
use std::fmt;
use std::ops::Range;
use wml_text::size;

/// Number of source trees that are checked out at the same time.
pub(crate) const PARALLEL: u32 = 4;
/// Maximum number of rounds. The history of a file is recomputed from its start, which takes time in proportion.
pub const MAX_ROUNDS: u32 = 200;
/// Number of rounds by default. A tree is then updated through about ten revisions.
pub const DEFAULT_ROUNDS: u32 = 20;

/// File sizes: the logarithm is normally distributed, with a median of 5 kB and a mean of 13 kB.
const SIZES: &str = "shape:1.4;scale:8.5";
/// Largest size of a file before it grows, in bytes.
const MAX_SIZE: u64 = 4 << 20;
/// Largest number of bytes by which a file grows in one revision.
const MAX_GROWTH: u64 = 16 << 10;

/// Shares of the files of a tree, in thousandths.
mod share {
    /// Files that exist when the tree is checked out.
    pub(super) const PRESENT: u64 = 900;
    /// Existing files that a revision removes.
    pub(super) const REMOVED: u64 = 10;
    /// Existing files that a revision replaces by a new file.
    pub(super) const REPLACED: u64 = 80;
    /// Existing files that a revision extends.
    pub(super) const GROWN: u64 = 40;
    /// Missing files that a revision adds. As many files are added as removed.
    pub(super) const ADDED: u64 = 90;
}

/// Identifiers of the independent random numbers that are derived from the seed.
mod purpose {
    pub(super) const TREE: u64 = 0xa6e0;
    pub(super) const FILL: u64 = 0xa6e1;
    pub(super) const CONTENT: u64 = 0xa6e2;
    pub(super) const GROWTH: u64 = 0xa6e3;
}

/// The fullness to reach.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fullness {
    /// A percentage of the capacity of the file system, above 0 and at most 100.
    Percent(f64),
    /// A number of bytes.
    Bytes(u64),
}

impl Fullness {
    /// Parses a percentage such as `47%`, or a size such as `20m`. Returns the reason when the text is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(number) = text.strip_suffix('%') {
            let percent: f64 = number.trim().parse().map_err(|_| format!("`{text}` is not a percentage"))?;
            return if percent > 0.0 && percent <= 100.0 {
                Ok(Self::Percent(percent))
            } else {
                Err(format!("{text} is not between 0 % and 100 %"))
            };
        }
        if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
            return Err(format!("`{text}` has no unit; expected a percentage (`{text}%`) or a size (`{text}g`)"));
        }
        match size::parse(text).map_err(|e| format!("{e}; expected a percentage (`47%`) or a size (`20m`)"))? {
            0 => Err("the size must be greater than 0".to_owned()),
            bytes => Ok(Self::Bytes(bytes)),
        }
    }

    /// Returns the bytes to reach on a file system of `capacity` bytes: a multiple of [`BLOCK`].
    pub fn bytes(self, capacity: u64) -> u64 {
        let bytes = match self {
            Self::Percent(percent) => (capacity as f64 * percent / 100.0) as u64,
            Self::Bytes(bytes) => bytes,
        };
        bytes - bytes % BLOCK as u64
    }
}

impl fmt::Display for Fullness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Bytes(bytes) => {
                let units = [(40, "t"), (30, "g"), (20, "m"), (10, "k")];
                let (shift, unit) = units.into_iter().find(|(shift, _)| bytes % (1 << shift) == 0).unwrap_or((0, "b"));
                write!(f, "{}{unit}", bytes >> shift)
            }
        }
    }
}

/// Why a directory can't be aged as requested.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum AgingError {
    /// The fullness is too small for the number of rounds.
    TooSmall {
        /// Bytes to reach.
        bytes: u64,
        /// Number of rounds.
        rounds: u32,
        /// Least number of bytes for these rounds.
        needed: u64,
    },
    /// The files would be more than a file set can have.
    TooMany,
    /// The distribution of the sizes was refused.
    Sizes(BadDistribution),
    /// The directory was aged with other parameters.
    OtherParameters {
        /// The parameters of the directory.
        was: String,
        /// The requested parameters.
        wanted: String,
    },
    /// The directory contains a file set of a script.
    OfScript,
    /// The file set of a script has the directory of an aged tree.
    Aged,
    /// The removal of the tree was interrupted.
    PartlyRemoved,
}

impl fmt::Display for AgingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { bytes, rounds, needed } => write!(
                f,
                "{} are too few for {rounds} rounds, which need at least {}",
                size::format(*bytes),
                size::format(*needed)
            ),
            Self::TooMany => write!(f, "the files would be more than {MAX_ENTRIES}, the maximum of a file set"),
            Self::Sizes(why) => write!(f, "the distribution of the sizes is wrong: {why}"),
            Self::OtherParameters { was, wanted } => write!(f, "it was aged with {was}, not with {wanted}"),
            Self::OfScript => f.write_str("it contains the file set of a script, which `wmlrun age` did not create"),
            Self::Aged => f.write_str("it was created by `wmlrun age`, and a run does not change it"),
            Self::PartlyRemoved => f.write_str("its removal was interrupted, and files are missing"),
        }
    }
}

impl AgingError {
    /// Returns advice on how to resolve the error. `None` when there is none.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::TooSmall { .. } => "give a larger `--to`, or fewer `--rounds`",
            Self::TooMany => "give a smaller `--to`",
            Self::Sizes(_) => return None,
            Self::OtherParameters { .. } => {
                "repeat the parameters of the directory, or remove its files with `wmlrun clean`"
            }
            Self::OfScript => "use another directory, or remove the file set with `wmlrun clean`",
            Self::PartlyRemoved => "remove the rest of the files with `wmlrun clean`",
            Self::Aged => "give the file set another name or path, or remove the aged tree with `wmlrun clean`",
        })
    }
}

/// The parameters that determine a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AgingParameters {
    pub seed: u64,
    /// Number of rounds, 1 to [`MAX_ROUNDS`].
    pub rounds: u32,
    /// Bytes of all files at the end, each rounded up to a multiple of [`BLOCK`]. Itself such a multiple.
    pub bytes: u64,
}

/// What a step does with its source trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AgingAction {
    /// Creates their files.
    CheckOut,
    /// Updates their files by one revision.
    Update,
    /// Removes their files.
    Remove,
    /// Creates the files that fill the remaining bytes. They belong to no source tree.
    Fill,
}

/// A step of the sequence. The file system is written back after it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AgingStep {
    pub action: AgingAction,
    /// The source trees that it concerns.
    pub trees: Vec<u32>,
}

/// The version of a source tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TreeVersion {
    /// The step in which it was checked out.
    checked_out: u32,
    /// Number of updates since.
    revision: u32,
}

/// A file of a source tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AgedFile {
    /// Size in bytes.
    pub size: u64,
    /// Identifies the content. Files of equal identifiers have equal bytes, as far as both go.
    pub content: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileChange {
    /// The file is not changed, or does not exist.
    Unchanged,
    /// The file is created, or replaced by a new one.
    Written(AgedFile),
    /// The file is extended.
    Grown {
        /// The size before.
        from: u64,
        /// The file afterwards.
        file: AgedFile,
    },
    Removed,
}

/// Numbers of files and bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct AgingWork {
    /// Files that are created, extended or removed.
    pub files: u64,
    /// Bytes that are written.
    pub bytes: u64,
}

impl AgingWork {
    fn add(&mut self, change: FileChange) {
        self.files += u64::from(change != FileChange::Unchanged);
        self.bytes += match change {
            FileChange::Written(file) => file.size,
            FileChange::Grown { from, file } => file.size - from,
            FileChange::Unchanged | FileChange::Removed => 0,
        };
    }
}

/// The versions of all source trees at some moment. `None` stands for a tree that does not exist.
pub(crate) type TreeVersions = Vec<Option<TreeVersion>>;

#[derive(Debug)]
pub(crate) struct AgingSequence {
    parameters: AgingParameters,
    sizes: Quantity,
    steps: Vec<AgingStep>,
    /// Number of source trees at the end.
    trees: u32,
    /// File numbers of each source tree.
    files_per_tree: u64,
    /// Number of files of the last step, and the size of the last of them.
    fill: (u64, u64),
}

impl AgingSequence {
    /// Computes the sequence. Takes about a second for ten million files.
    pub(crate) fn new(parameters: AgingParameters) -> Result<Self, AgingError> {
        let sizes = cvar("cvar-lognormal", SIZES, None, Some(MAX_SIZE as f64), None).map_err(AgingError::Sizes)?;
        let (steps, trees) = steps_of(parameters.rounds.clamp(1, MAX_ROUNDS));
        // More files than this would take minutes to count.
        if parameters.bytes as f64 / (sizes.mean() + BLOCK as f64) > MAX_ENTRIES as f64 {
            return Err(AgingError::TooMany);
        }
        let mut sequence = Self { parameters, sizes: sizes.into(), steps, trees, files_per_tree: 0, fill: (0, 0) };
        let remaining = sequence.divide()?;
        sequence.fill_up(remaining)?;
        Ok(sequence)
    }

    /// Determines the number of files of a source tree: as many as fit. Returns the remaining bytes.
    fn divide(&mut self) -> Result<u64, AgingError> {
        let versions = self.versions_before(self.steps.len());
        let mut remaining = self.parameters.bytes;
        loop {
            let row = self.row(&versions, self.files_per_tree);
            if row > remaining {
                break;
            }
            remaining -= row;
            self.files_per_tree += 1;
            if self.files_per_tree * u64::from(self.trees) > MAX_ENTRIES {
                return Err(AgingError::TooMany);
            }
        }
        if self.files_per_tree == 0 {
            let AgingParameters { rounds, bytes, .. } = self.parameters;
            return Err(AgingError::TooSmall { bytes, rounds, needed: self.row(&versions, 0) });
        }
        Ok(remaining)
    }

    /// Returns the bytes of the files with this number in all source trees, in whole blocks.
    fn row(&self, versions: &[Option<TreeVersion>], file: u64) -> u64 {
        let trees = versions.iter().zip(0..).filter_map(|(version, tree)| version.map(|version| (tree, version)));
        trees.filter_map(|(tree, version)| self.file_in(tree, version, file)).map(|file| blocks(file.size)).sum()
    }

    /// Determines the files of the last step, whose blocks are exactly the remaining bytes.
    fn fill_up(&mut self, mut remaining: u64) -> Result<(), AgingError> {
        while remaining > 0 {
            let size = self.size(mix(self.fill_seed(), self.fill.0), 0).max(1);
            self.fill = (self.fill.0 + 1, size.min(remaining));
            remaining = remaining.saturating_sub(blocks(size));
        }
        if self.entries() > MAX_ENTRIES { Err(AgingError::TooMany) } else { Ok(()) }
    }

    fn fill_seed(&self) -> u64 {
        mix(self.parameters.seed, purpose::FILL)
    }

    pub(crate) fn parameters(&self) -> AgingParameters {
        self.parameters
    }

    /// Returns the number of files of the file set, of which not all exist at any moment.
    pub(crate) fn entries(&self) -> u64 {
        u64::from(self.trees) * self.files_per_tree + self.fill.0
    }

    /// Returns the number of source trees at the end.
    pub(crate) fn trees(&self) -> u32 {
        self.trees
    }

    pub(crate) fn steps(&self) -> &[AgingStep] {
        &self.steps
    }

    /// Returns the file numbers of a source tree.
    pub(crate) fn files_of(&self, tree: u32) -> Range<u64> {
        let first = u64::from(tree) * self.files_per_tree;
        first..first + self.files_per_tree
    }

    /// Returns the file numbers of the last step.
    pub(crate) fn fill_files(&self) -> Range<u64> {
        u64::from(self.trees) * self.files_per_tree..self.entries()
    }

    /// Returns the versions of all source trees before step `step`. The number of steps stands for the end.
    pub(crate) fn versions_before(&self, step: usize) -> TreeVersions {
        let mut versions = vec![None; self.trees as usize];
        for (number, step) in self.steps.iter().enumerate().take(step) {
            Self::apply(number, step, &mut versions);
        }
        versions
    }

    /// Changes the versions as a step does.
    fn apply(number: usize, step: &AgingStep, versions: &mut [Option<TreeVersion>]) {
        for &tree in &step.trees {
            let version = &mut versions[tree as usize];
            *version = match step.action {
                AgingAction::CheckOut => Some(TreeVersion { checked_out: number as u32, revision: 0 }),
                AgingAction::Update => version.map(|v| TreeVersion { revision: v.revision + 1, ..v }),
                AgingAction::Remove | AgingAction::Fill => None,
            };
        }
    }

    /// Returns the change of file `i` in a step, given the versions of its source tree before and after the step.
    pub(crate) fn change(&self, i: u64, before: Option<TreeVersion>, after: Option<TreeVersion>) -> FileChange {
        let (tree, file) = ((i / self.files_per_tree) as u32, i % self.files_per_tree);
        let at = |version: Option<TreeVersion>| version.and_then(|version| self.file_in(tree, version, file));
        match (at(before), at(after)) {
            (was, now) if was == now => FileChange::Unchanged,
            (Some(was), Some(now)) if was.content == now.content => FileChange::Grown { from: was.size, file: now },
            (_, Some(now)) => FileChange::Written(now),
            (_, None) => FileChange::Removed,
        }
    }

    /// Returns file `i`, given the versions of all source trees, and whether the last step is done. `None` when the
    /// file does not exist.
    pub(crate) fn file(&self, i: u64, versions: &[Option<TreeVersion>], filled: bool) -> Option<AgedFile> {
        if self.fill_files().contains(&i) {
            return filled.then(|| self.fill_file(i));
        }
        let version = versions[(i / self.files_per_tree) as usize]?;
        self.file_in((i / self.files_per_tree) as u32, version, i % self.files_per_tree)
    }

    /// Returns file `i` of the last step.
    pub(crate) fn fill_file(&self, i: u64) -> AgedFile {
        let number = i - self.fill_files().start;
        let key = mix(self.fill_seed(), number);
        let (count, last) = self.fill;
        let size = if number + 1 == count { last } else { self.size(key, 0).max(1) };
        AgedFile { size, content: mix(key, purpose::CONTENT) }
    }

    /// Returns the bytes of all files before step `step`, in whole blocks.
    pub(crate) fn bytes_before(&self, step: usize) -> u64 {
        let versions = self.versions_before(step);
        (0..self.files_per_tree).map(|file| self.row(&versions, file)).sum()
    }

    /// Returns the work of the steps from `step` on.
    pub(crate) fn work_from(&self, step: usize) -> AgingWork {
        let mut work = AgingWork::default();
        let mut versions = self.versions_before(step);
        // The lives of source trees in these steps: from the version before them, if the tree existed, to the last one.
        let mut first = versions.clone();
        for (number, step) in self.steps.iter().enumerate().skip(step) {
            if step.action == AgingAction::Remove {
                for &tree in &step.trees {
                    let at = tree as usize;
                    self.add_life(&mut work, tree, first[at].take(), versions[at], true);
                }
            }
            Self::apply(number, step, &mut versions);
        }
        for (tree, (first, last)) in (0..).zip(first.into_iter().zip(versions)) {
            self.add_life(&mut work, tree, first, last, false);
        }
        for i in self.fill_files() {
            work.add(FileChange::Written(self.fill_file(i)));
        }
        work
    }

    /// Adds the work of a source tree from version `first` (`None`: from its check-out) to version `last`.
    fn add_life(
        &self,
        work: &mut AgingWork,
        tree: u32,
        first: Option<TreeVersion>,
        last: Option<TreeVersion>,
        removed: bool,
    ) {
        let Some(last) = last else { return };
        for file in 0..self.files_per_tree {
            let mut history = self.history(tree, last.checked_out, file);
            if first.is_none() {
                history.file(self).into_iter().for_each(|file| work.add(FileChange::Written(file)));
            }
            let known = first.map_or(0, |first| first.revision);
            while history.revision < last.revision {
                let was = history.file_parts();
                history.advance();
                if history.revision > known && was != history.file_parts() {
                    work.files += 1;
                    work.bytes += history.written(was, self);
                }
            }
            work.files += u64::from(removed && history.whole.is_some());
        }
    }

    /// Returns a file of a source tree. `None` when it does not exist in this version.
    fn file_in(&self, tree: u32, version: TreeVersion, file: u64) -> Option<AgedFile> {
        let mut history = self.history(tree, version.checked_out, file);
        while history.revision < version.revision {
            history.advance();
        }
        history.file(self)
    }

    fn history(&self, tree: u32, checked_out: u32, file: u64) -> FileHistory {
        let seed = mix(mix(self.parameters.seed, purpose::TREE), u64::from(tree));
        let key = mix(mix(seed, u64::from(checked_out)), file);
        let present = mix(key, 0) % 1000 < share::PRESENT;
        FileHistory { key, revision: 0, whole: present.then_some(0), growth: 0 }
    }

    /// Draws the size of a file that is written in a revision.
    fn size(&self, key: u64, revision: u32) -> u64 {
        self.sizes.draw(&mut random::stream(key, &[u64::from(revision)]))
    }
}

/// The history of a file of a source tree, from its check-out on.
#[derive(Clone, Copy, Debug)]
struct FileHistory {
    key: u64,
    revision: u32,
    /// The revision in which the file was last written as a whole. `None` when it does not exist.
    whole: Option<u32>,
    /// Bytes by which it has grown since.
    growth: u64,
}

impl FileHistory {
    /// Proceeds to the next revision.
    fn advance(&mut self) {
        self.revision += 1;
        let draw = mix(self.key, u64::from(self.revision));
        let part = draw % 1000;
        match self.whole {
            None if part < share::ADDED => (self.whole, self.growth) = (Some(self.revision), 0),
            None => {}
            Some(_) if part < share::REMOVED => self.whole = None,
            Some(_) if part < share::REMOVED + share::REPLACED => {
                (self.whole, self.growth) = (Some(self.revision), 0);
            }
            Some(_) if part < share::REMOVED + share::REPLACED + share::GROWN => {
                self.growth += 1 + mix(draw, purpose::GROWTH) % MAX_GROWTH;
            }
            Some(_) => {}
        }
    }

    /// Returns what distinguishes the versions of the file, without drawing its size.
    fn file_parts(&self) -> (Option<u32>, u64) {
        (self.whole, self.growth)
    }

    /// Returns the bytes that the last revision has written, given the parts before it.
    fn written(&self, was: (Option<u32>, u64), sequence: &AgingSequence) -> u64 {
        match self.whole {
            None => 0,
            Some(_) if self.whole == was.0 => self.growth - was.1,
            Some(revision) => sequence.size(self.key, revision),
        }
    }

    /// Returns the file. `None` when it does not exist.
    fn file(&self, sequence: &AgingSequence) -> Option<AgedFile> {
        let revision = self.whole?;
        let content = mix(mix(self.key, purpose::CONTENT), u64::from(revision));
        Some(AgedFile { size: sequence.size(self.key, revision) + self.growth, content })
    }
}

/// Returns the steps of a number of rounds, and the number of source trees at the end.
///
/// Every round removes one source tree, in turns, checks it out again together with new ones, and updates all trees.
fn steps_of(rounds: u32) -> (Vec<AgingStep>, u32) {
    let mut steps = Vec::new();
    let mut trees = 0;
    for number in 0..rounds {
        let removed = number.checked_sub(1).map(|turn| turn % trees);
        if let Some(tree) = removed {
            steps.push(AgingStep { action: AgingAction::Remove, trees: vec![tree] });
        }
        let new = trees..trees + PARALLEL - u32::from(removed.is_some());
        trees = new.end;
        steps.push(AgingStep { action: AgingAction::CheckOut, trees: removed.into_iter().chain(new).collect() });
        steps.push(AgingStep { action: AgingAction::Update, trees: (0..trees).collect() });
    }
    steps.push(AgingStep { action: AgingAction::Fill, trees: Vec::new() });
    (steps, trees)
}

/// Returns a size rounded up to whole blocks.
fn blocks(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64)
}

#[cfg(test)]
#[path = "aging_tests.rs"]
mod tests;
