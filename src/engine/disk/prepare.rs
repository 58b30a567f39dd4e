//! Preparation of file sets: brings the trees on the disk into the state that the sets define.
//!
//! Takes and locks the roots, decides on an action for each, checks the free space, removes, creates or repairs trees,
//! and quiesces the disks. If an error occurs before all roots are taken and the space is found to be sufficient,
//! everything that was created is removed again. The work itself is done in `populate` and `remove`.

use super::error::Error;
use super::marker::MarkerProgress as Stage;
use super::populate::{self, Changes, Mode, PopulateJob};
use super::quiesce::{self, Quiesced};
use super::record::{DirNames, MadeMembers};
use super::root::{self, Root, Taken};
use super::scan::{self, Scan};
use super::space::{self, Demand};
use super::{Existing, Fileset, remove};
use crate::fileset::aging::AgingError;
use crate::random::Quantity;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use wml_os::{fd, limits, path};
use wml_result::Repaired;
use wml_text::count::count;

pub use super::preparation::Preparation;
pub use super::remove::{
    CleanReport, Removed, clean, clean_fresh, clean_places, is_inside, is_marked, remove, with_marked_roots,
};

/// Options of a [`Preparation`].
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// Number of threads that create files.
    pub threads: usize,
    /// Whether to wait until the disks are idle.
    pub quiesce: bool,
    /// Whether to adopt existing trees ([`Fileset::open`] has read their shape).
    pub adopt: bool,
    /// Whether to return an error when less than [`space::floor`] would remain free. If not set, an error is returned
    /// only when the sets do not fit at all.
    pub keep_free: bool,
    /// Seed of the written data: the run seed.
    pub data_seed: u64,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        Self { threads: limits::processors(), quiesce: true, adopt: false, keep_free: true, data_seed: 0 }
    }
}

/// A phase of the preparation of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The existing tree is scanned before it is removed.
    Scan,
    /// The existing tree is removed.
    Remove,
    /// An existing tree to be reused is compared with its definition.
    Compare,
    /// Files are created.
    Populate,
    /// Files are created, updated and removed in the sequence of an aging.
    Age,
    /// The positions of files on the device are read.
    Locate,
    /// Dirty pages are written back (for all sets together).
    Quiesce,
    /// Files are read into the page cache.
    Warm,
    /// Files are evicted from the page cache.
    Evict,
}

impl Phase {
    /// True if the phase writes so much that its progress is always shown.
    pub fn is_long(self) -> bool {
        matches!(self, Self::Populate | Self::Age)
    }

    /// Returns a description of the phase for the user, such as `creating data`.
    pub fn doing(self, set: &str) -> String {
        match self {
            Self::Scan => format!("scanning {set}"),
            Self::Remove => format!("removing the old {set}"),
            Self::Compare => format!("comparing {set}"),
            Self::Populate => format!("creating {set}"),
            Self::Age => "aging".to_owned(),
            Self::Locate => format!("reading the positions of {set}"),
            Self::Warm => format!("reading {set} into memory"),
            Self::Evict => format!("evicting {set} from memory"),
            Self::Quiesce => "waiting until the disks are idle".to_owned(),
        }
    }
}

/// A receiver of progress reports. Called in the thread that prepares.
pub trait Progress {
    /// Reports the start of a phase, and the number of files and bytes to process; 0 if unknown.
    fn started(&self, set: &str, phase: Phase, files: u64, bytes: u64);
    /// Reports the number of files and bytes processed so far. Called some twenty times per second.
    fn advanced(&self, files: u64, bytes: u64);
}

/// A receiver that ignores progress reports.
#[derive(Clone, Copy, Default, Debug)]
pub struct Quiet;

impl Progress for Quiet {
    fn started(&self, _: &str, _: Phase, _: u64, _: u64) {}
    fn advanced(&self, _: u64, _: u64) {}
}

/// The result of preparing a set.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Prepared {
    /// The file set.
    pub set: String,
    /// Its root.
    pub path: PathBuf,
    /// Number of existing files.
    pub files: u64,
    /// Number of directories below the root, without leaf directories.
    pub directories: u64,
    /// Bytes of the existing files.
    pub bytes: u64,
    /// Duration of comparison, creation and repair, in seconds.
    pub populate_seconds: f64,
    /// Duration of the wait for idle disks, in seconds, for all sets together.
    pub sync_seconds: f64,
    /// Duration of scanning and removing the old tree, in seconds.
    pub removed_seconds: f64,
    /// Whether wmlrun created the root directory (now or earlier).
    pub made_root: bool,
    /// Whether an existing tree was kept.
    pub reused: bool,
    /// Whether the tree was known to be as defined, and was not checked.
    pub unchanged: bool,
    /// Whether every file was created with its size, or compared with it.
    pub verified: bool,
    /// Whether only this session has used the tree since its last run, according to [`StartState::released`].
    ///
    /// [`StartState::released`]: super::StartState::released
    pub untouched: bool,
    /// Whether the tree is adopted, that is, was not created by wmlrun.
    pub adopted: bool,
    /// Repairs of a tree that was kept.
    pub repairs: Repaired,
    /// Result of the wait for idle disks. `None` if there was no wait.
    pub quiesced: Option<Quiesced>,
    /// Note for the user about the location of the root.
    pub note: Option<String>,
    /// The directory of the root, if it did not exist and was created.
    pub made_parent: Option<PathBuf>,
}

impl From<Changes> for Repaired {
    fn from(changes: Changes) -> Self {
        Self {
            created: changes.files,
            resized: changes.resized,
            removed: changes.removed,
            directories_created: changes.dirs,
            directories_removed: changes.removed_dirs,
        }
    }
}

/// The action for a root.
pub(super) enum Action {
    /// Create the tree in an empty root.
    Make,
    /// Remove the old tree, and create a new one.
    Replace(Scan),
    /// Repair the tree. The counts are those of a dry run.
    Repair(Changes),
    /// Keep the tree without a check (`trusttree`).
    Trust,
    /// Keep the tree, which is known to be as defined.
    Unchanged,
    /// Keep the tree unchanged. The counts are those of the existing files.
    Keep(Changes),
}

/// The preparation of one set.
pub(super) struct PrepareTask {
    pub(super) set: Arc<Fileset>,
    pub(super) root: Root,
    pub(super) action: Action,
    /// Whether ranks create the files of a new tree, each its part, after the directories.
    pub(super) in_parts: bool,
    /// The checksum of the marker, by which other ranks recognise the tree. Empty with one rank.
    pub(super) token: String,
    /// Whether anything was changed on the disk.
    pub(super) begun: bool,
    /// Whether only this session has used the tree since its last run.
    untouched: bool,
    removed_seconds: f64,
    populate_seconds: f64,
    /// The bytes that the removal of the old tree will free. 0 if they were not determined.
    pub(super) freed: u64,
    /// The start of the population of a new tree that is not complete yet.
    populating: Option<Instant>,
    repairs: Repaired,
}

/// Prepares sets on the disk, by all steps of a [`Preparation`].
///
/// Afterwards exactly the files exist that exist according to the states of the sets. The roots are open and locked in
/// the caller's descriptor table until [`Fileset::close`].
///
/// On an error all roots are closed and unlocked, and sets whose modification had not begun are unchanged.
#[cfg(test)]
pub(super) fn prepare(
    sets: &[Arc<Fileset>],
    options: &PrepareOptions,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Vec<Prepared>, Error> {
    let mut preparation = Preparation::begin(sets, options, progress, stop)?;
    let done = preparation.perform(options, progress, stop);
    match done.and_then(|()| wait_for_disks(sets, options, progress, stop)) {
        Ok(quiesced) => Ok(preparation.finish(quiesced)),
        Err(e) => {
            preparation.abandon();
            Err(e)
        }
    }
}

/// Waits until the disks of the sets are idle, if this is requested.
pub fn wait_for_disks(
    sets: &[Arc<Fileset>],
    options: &PrepareOptions,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Option<Quiesced>, Error> {
    if !options.quiesce {
        return Ok(None);
    }
    progress.started("", Phase::Quiesce, 0, 0);
    let roots: Vec<PathBuf> = sets.iter().map(|set| set.spec.root()).collect();
    let quiesced =
        quiesce::quiesce(&roots, stop).map_err(|(at, e)| Error::call(&sets[at].spec.name, "sync", &roots[at], e))?;
    Ok(Some(quiesced))
}

/// Takes the root of a set, and adopts an unmarked tree if requested.
pub(super) fn take(set: &Fileset, options: &PrepareOptions, stop: &AtomicBool) -> Result<Root, Error> {
    // A second run with the same set: release the lock first.
    set.close();
    match root::take(&set.spec)? {
        Taken::Owned(root) => Ok(*root),
        Taken::Unmarked(dir) if options.adopt && set.adopted => dir.adopt(),
        Taken::Unmarked(dir) => Err(dir.refuse(scan::fits(&set.spec, stop))),
    }
}

/// Returns an error when two sets share a root, or the root of one is inside the root of the other.
pub(super) fn check_overlap(sets: &[Arc<Fileset>]) -> Result<(), Error> {
    let mut roots: Vec<(PathBuf, &str)> =
        sets.iter().map(|set| (path::resolve(&set.spec.root()), set.spec.name.as_str())).collect();
    // By components, so that a path is directly followed by the paths inside it.
    roots.sort_by(|(one, _), (other, _)| one.cmp(other));
    let overlap = roots.iter().zip(roots.iter().skip(1)).find(|((outer, _), (inner, _))| inner.starts_with(outer));
    match overlap {
        None => Ok(()),
        Some(((_, set), (path, other))) => {
            let (set, other) = ((*set).to_owned(), (*other).to_owned());
            Err(Error::Overlap { set, other, path: path.clone() })
        }
    }
}

impl PrepareTask {
    /// Creates the preparation of a set whose root is taken.
    pub(super) fn new(set: &Arc<Fileset>, root: Root) -> Self {
        Self {
            set: Arc::clone(set),
            root,
            action: Action::Make,
            in_parts: false,
            token: String::new(),
            begun: false,
            untouched: false,
            removed_seconds: 0.0,
            populate_seconds: 0.0,
            freed: 0,
            populating: None,
            repairs: Repaired::default(),
        }
    }

    /// True if the tree is created anew.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.action, Action::Make | Action::Replace(_))
    }

    /// Returns the population job of this set.
    fn job(&self, mode: Mode, options: &PrepareOptions) -> PopulateJob<'_> {
        PopulateJob { set: &self.set, root: &self.root, mode, threads: options.threads, seed: options.data_seed }
    }

    /// Decides on the action, based on the marker and the existing tree.
    pub(super) fn decide(
        &mut self,
        options: &PrepareOptions,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let spec = &self.set.spec;
        let marker = &self.root.marker;
        if marker.aging.is_some() {
            let why = AgingError::Aged;
            return Err(Error::Aging { set: spec.name.clone(), path: self.root.path.clone(), why });
        }
        let adopt_error = |why: String| Err(Error::Adopt { set: spec.name.clone(), path: self.root.path.clone(), why });
        // The set was read from the disk before the root was locked, or comes from an earlier run of the session. Files
        // of an adopted tree that the definition does not have would be removed.
        if marker.adopted != self.set.adopted {
            return adopt_error("was adopted, or removed and created again, by another process meanwhile".into());
        }
        if self.root.fresh && !marker.adopted {
            return Ok(());
        }
        let start = &self.set.start;
        // Before the marker is written.
        self.untouched = start.released.is_some() && self.root.stamp() == start.released;
        let complete = marker.state == Stage::Ready || marker.adopted;
        if complete && start.known.is_some() && self.root.stamp() == start.known {
            self.action = Action::Unchanged;
            return Ok(());
        }
        let wanted = spec.layout(self.set.layout_seed);
        let same = self.set.adopted || marker.layout.as_ref() == Some(&wanted);
        let keep = spec.reuse || spec.trusttree || marker.adopted || start.tree == Existing::Keep;
        if same && start.tree == Existing::Keep && complete {
            progress.started(&spec.name, Phase::Compare, self.set.tree.n_files(), 0);
            let found = self.read(options, progress, stop)?;
            self.action = Action::Keep(found);
            return Ok(());
        }
        if same && (keep || start.tree == Existing::Repair) {
            if spec.trusttree && complete && start.tree == Existing::Replace && marker.has_members_of(&self.set.tree) {
                self.action = Action::Trust;
                return Ok(());
            }
            let start = Instant::now();
            progress.started(&spec.name, Phase::Compare, self.set.tree.n_files(), 0);
            let made =
                populate::run(&self.job(Mode::DryRun, options), stop, |files, bytes| progress.advanced(files, bytes))?;
            self.populate_seconds += start.elapsed().as_secs_f64();
            // Files of an adopted tree may have been changed by the user since. Truncating, extending or replacing them
            // requires `reuse`, except between the runs of a session, which have changed them. A run with another
            // definition, or one that has trusted the tree, says nothing about the sizes that the user's files had. Nor
            // does any run if a command or another session has come between.
            let changed = made.resized + made.removed;
            let is_own_change = self.set.start.verified && self.untouched;
            if marker.adopted && !spec.reuse && changed > 0 && !is_own_change {
                return adopt_error(format!(
                    "has {} of another size or kind than the script defines; `reuse` would truncate, extend or replace them",
                    count(changed, "file")
                ));
            }
            self.action = Action::Repair(made);
            return Ok(());
        }
        let start = Instant::now();
        progress.started(&spec.name, Phase::Scan, 0, 0);
        let scan = scan::scan(&self.root, stop)?;
        self.removed_seconds += start.elapsed().as_secs_f64();
        if scan.dirs.len() == 1 {
            return Ok(());
        }
        if keep {
            let was = marker.layout.as_ref().map_or_else(|| "an unknown layout".into(), ToString::to_string);
            return Err(Error::OtherLayout {
                set: spec.name.clone(),
                path: self.root.path.clone(),
                was,
                wanted: wanted.to_string(),
            });
        }
        self.action = Action::Replace(scan);
        Ok(())
    }

    /// Returns the space that the action needs. `None` when it creates no files.
    pub(super) fn demand(&self) -> Option<Demand> {
        let tree = &self.set.tree;
        let (files, bytes, dirs) = match &self.action {
            Action::Trust | Action::Unchanged | Action::Keep(_) => return None,
            Action::Repair(made) => (made.files, made.bytes, made.dirs),
            _ => (tree.files_at_start(), tree.bytes_at_start(), tree.n_dirs() + tree.n_leafdirs()),
        };
        // Round up to whole blocks: exactly if all sizes are the same, otherwise by half a block per file.
        let block = space::allocation_unit(self.root.fd);
        let blocks = match (&self.set.spec.size, &self.set.spec.sizes, &self.action) {
            _ if self.set.spec.empty => 0,
            (Quantity::Const(size), None, Action::Make | Action::Replace(_)) => {
                size.checked_next_multiple_of(block).map_or(u64::MAX, |size| files.saturating_mul(size))
            }
            (Quantity::Const(0), None, _) => 0,
            _ => bytes.saturating_add(files.saturating_mul(block / 2)),
        };
        let freed = match &self.action {
            Action::Replace(scan) => (self.freed, scan.files + scan.dirs.len() as u64),
            _ => (0, 0),
        };
        Some(Demand {
            set: self.set.spec.name.clone(),
            path: self.root.path.clone(),
            device: fd::fstat(self.root.fd).map_or(0, |stat| stat.device),
            bytes: blocks.saturating_add(dirs.saturating_mul(block)),
            inodes: files.saturating_add(dirs),
            freed,
        })
    }

    /// Performs the action. Of a tree that is created in parts, only the directories are created.
    pub(super) fn perform(
        &mut self,
        options: &PrepareOptions,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let set = Arc::clone(&self.set);
        let (name, tree) = (set.spec.name.as_str(), &set.tree);
        let watch = |files, bytes| progress.advanced(files, bytes);
        if let Action::Replace(scan) = &self.action {
            let start = Instant::now();
            self.begun = true;
            self.root.announce_removal()?;
            progress.started(name, Phase::Remove, scan.files, 0);
            remove::remove_tree(&self.root, scan, options.threads, stop, watch)?;
            self.removed_seconds += start.elapsed().as_secs_f64();
        }
        let mode = match &self.action {
            Action::Make | Action::Replace(_) => Some(if self.in_parts { Mode::Directories } else { Mode::Create }),
            Action::Repair(made) if *made != Changes::default() || self.root.marker.state != Stage::Ready => {
                Some(Mode::Repair)
            }
            Action::Repair(_) | Action::Trust | Action::Unchanged | Action::Keep(_) => None,
        };
        let layout = set.spec.layout(set.layout_seed);
        if let Some(mode) = mode {
            let start = Instant::now();
            self.begun = true;
            name.clone_into(&mut self.root.marker.set);
            self.root.marker.layout = Some(layout);
            self.root.marker.names = Some(DirNames::of(&set.spec, &set.tree));
            self.root.marker.made = Some(MadeMembers::of(tree));
            self.root.marker.below = set.spec.levels_below();
            self.root.marker.links |= set.has_links();
            self.root.marker.state = Stage::Populating;
            self.root.write_marker()?;
            progress.started(name, Phase::Populate, tree.files_at_start(), tree.bytes_at_start());
            self.populating = Some(start);
            let made = populate::run(&self.job(mode, options), stop, watch)?;
            if mode == Mode::Repair {
                self.repairs = made.into();
            }
            if !self.in_parts || !self.is_new() {
                self.complete()?;
            }
        } else if set.has_links() && !self.root.marker.links {
            self.root.marker.links = true;
            self.root.write_marker()?;
        }
        if self.root.marker.links {
            set.allow_links();
        }
        if set.start.changes {
            self.root.touch();
        }
        Ok(())
    }

    /// Records in the marker that the tree is complete, if it was created or repaired.
    pub(super) fn complete(&mut self) -> Result<(), Error> {
        let Some(start) = self.populating.take() else { return Ok(()) };
        self.root.marker.state = Stage::Ready;
        // The repair has replaced all files that had several names.
        self.root.marker.links = self.set.has_links();
        self.root.write_marker()?;
        self.populate_seconds += start.elapsed().as_secs_f64();
        Ok(())
    }

    /// Reads the state of the set from the existing tree.
    fn read(&self, options: &PrepareOptions, progress: &dyn Progress, stop: &AtomicBool) -> Result<Changes, Error> {
        let state = &self.set.state;
        state.files.load(|_| false);
        state.leafdirs.load(|_| false);
        populate::run(&self.job(Mode::Read, options), stop, |files, bytes| progress.advanced(files, bytes))
    }

    /// Returns the note on an adopted tree that lacks files: how many there are decides what a run measures.
    fn note_on_missing_files(&self) -> Option<String> {
        let (tree, root) = (&self.set.tree, self.root.path.display());
        let (there, all) = (tree.files_at_start(), tree.n_files());
        (self.set.adopted && there < all)
            .then(|| format!("`{root}` has {there} of the {all} files of the set; runs start with these"))
    }

    /// Stores the root in the set, and returns the result.
    pub(super) fn finish(self, quiesced: Option<Quiesced>) -> Prepared {
        let tree = &self.set.tree;
        let adopted = self.set.adopted;
        let (files, bytes) = match &self.action {
            Action::Keep(found) => (found.files, found.bytes),
            _ => (tree.files_at_start(), tree.bytes_at_start()),
        };
        let prepared = Prepared {
            set: self.set.spec.name.clone(),
            path: self.root.path.clone(),
            files,
            directories: tree.n_dirs() - 1,
            bytes,
            populate_seconds: self.populate_seconds,
            sync_seconds: quiesced.map_or(0.0, |quiesced| quiesced.seconds),
            removed_seconds: self.removed_seconds,
            made_root: self.root.marker.made_root,
            reused: !self.is_new(),
            unchanged: matches!(self.action, Action::Unchanged),
            verified: matches!(self.action, Action::Make | Action::Replace(_) | Action::Repair(_)),
            untouched: self.untouched,
            adopted,
            repairs: self.repairs,
            quiesced,
            note: self.root.note.clone().or_else(|| self.note_on_missing_files()),
            made_parent: self.root.made_parents.first().map(|made| made.path().to_owned()),
        };
        self.set.set_root(self.root.fd);
        *self.set.held.lock() = Some(self.root);
        prepared
    }
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
