//! The one door to the disk: from sets as they ought to be to sets as they are.
//!
//! Takes and locks the roots, decides for each what is to be done, sees that all of it fits, removes, makes or mends, and
//! quiesces the disks. Until all roots are taken and everything is found to fit, nothing is made that is not undone
//! again. The work itself is in `populate` and `remove`.

use super::error::Error;
use super::known::DirNames;
use super::marker::MarkerProgress as Stage;
use super::populate::{self, Made, Mode, PopulateJob};
use super::quiesce::{self, Quiesced};
use super::root::{self, Root, Taken};
use super::scan::{self, Scan};
use super::space::{self, Demand};
use super::{Existing, Fileset, remove};
use crate::os::{fd, limits};
use crate::random::Quantity;
use crate::util::count::count;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

pub use super::remove::{CleanReport, Removed, clean, clean_fresh, clean_places, is_marked, remove};

/// How sets are prepared.
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// Threads that make files.
    pub threads: usize,
    /// Wait until the disks are idle.
    pub quiesce: bool,
    /// Take over trees that were found ([`Fileset::open`] read their shape).
    pub adopt: bool,
    /// Refuse what would leave too little free on a file system. Without, only what does not fit at all is refused.
    pub keep_free: bool,
    /// The seed of the data written: the run's.
    pub data_seed: u64,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        Self { threads: limits::processors(), quiesce: true, adopt: false, keep_free: true, data_seed: 0 }
    }
}

/// What is being done with a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The tree that is there is looked through before it is removed.
    Scan,
    /// It is removed.
    Remove,
    /// A tree to be reused is compared with what it should be.
    Compare,
    /// Files are made.
    Populate,
    /// The disks write back what is dirty (all sets together).
    Quiesce,
    /// Files are read into the page cache.
    Warm,
    /// Files are evicted from it.
    Evict,
}

impl Phase {
    /// It, in words: `making data`.
    pub fn doing(self, set: &str) -> String {
        match self {
            Self::Scan => format!("looking through {set}"),
            Self::Remove => format!("removing the old {set}"),
            Self::Compare => format!("comparing {set}"),
            Self::Populate => format!("making {set}"),
            Self::Warm => format!("reading {set} into memory"),
            Self::Evict => format!("evicting {set} from memory"),
            Self::Quiesce => "waiting until the disks are idle".to_owned(),
        }
    }
}

/// Is told how things stand, from the thread that called [`prepare`].
pub trait Progress {
    /// A phase starts; so many files and bytes are to be done, 0 where that is not known.
    fn started(&self, set: &str, phase: Phase, files: u64, bytes: u64);
    /// So many are done; some twenty times a second.
    fn advanced(&self, files: u64, bytes: u64);
}

/// Progress that nobody wants to know.
#[derive(Clone, Copy, Default, Debug)]
pub struct Quiet;

impl Progress for Quiet {
    fn started(&self, _: &str, _: Phase, _: u64, _: u64) {}
    fn advanced(&self, _: u64, _: u64) {}
}

/// A set that is ready.
#[derive(Clone, PartialEq, Debug)]
pub struct Prepared {
    /// The file set.
    pub set: String,
    /// Its root.
    pub path: PathBuf,
    /// Files that are there.
    pub files: u64,
    /// Directories below the root, leaf directories not counted.
    pub directories: u64,
    /// Bytes of the files that are there.
    pub bytes: u64,
    /// Seconds that comparing, making and mending took.
    pub populate_seconds: f64,
    /// Seconds until the disks were idle, of all sets together.
    pub sync_seconds: f64,
    /// Seconds that looking through and removing the old tree took.
    pub removed_seconds: f64,
    /// The root directory was made by wmlrun (now or earlier).
    pub made_root: bool,
    /// The tree was there already.
    pub reused: bool,
    /// The tree was known to be right, and not looked at.
    pub unchanged: bool,
    /// It was someone else's, and adopted.
    pub adopted: bool,
    /// What a tree that was kept took to be as defined.
    pub repairs: Repairs,
    /// How the disks came to rest; `None` if that was not waited for.
    pub quiesced: Option<Quiesced>,
    /// What is to be said about its place.
    pub note: Option<String>,
}

/// Changes to a tree that was there.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Repairs {
    /// Files made.
    pub made: u64,
    /// Files whose size was changed.
    pub resized: u64,
    /// Files removed.
    pub removed: u64,
    /// Directories made.
    pub directories_made: u64,
    /// Directories removed.
    pub directories_removed: u64,
}

impl Repairs {
    /// All of them together.
    pub fn total(&self) -> u64 {
        self.made + self.resized + self.removed + self.directories_made + self.directories_removed
    }

    /// Those of several sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            made: self.made + other.made,
            resized: self.resized + other.resized,
            removed: self.removed + other.removed,
            directories_made: self.directories_made + other.directories_made,
            directories_removed: self.directories_removed + other.directories_removed,
        }
    }
}

impl From<Made> for Repairs {
    fn from(made: Made) -> Self {
        Self {
            made: made.files,
            resized: made.resized,
            removed: made.removed,
            directories_made: made.dirs,
            directories_removed: made.removed_dirs,
        }
    }
}

/// What is to be done with a root.
enum Action {
    /// It is empty.
    Make,
    /// The old tree goes first.
    Replace(Scan),
    /// The tree is brought to what it should be, which would take so much.
    Repair(Made),
    /// The tree is trusted to be right.
    Trust,
    /// The tree is known to be right.
    Nothing,
    /// The tree stays as it is, which is so.
    Keep(Made),
}

/// One set on its way.
struct Work<'a> {
    set: &'a Arc<Fileset>,
    root: Root,
    action: Action,
    /// Something was changed on the disk.
    begun: bool,
    removed_seconds: f64,
    populate_seconds: f64,
    repairs: Repairs,
}

/// Brings sets onto the disk: afterwards exactly the files are there that their states say, and their roots are open and
/// locked in the caller's descriptor table until [`Fileset::close`]. On an error all roots are let go; what was not begun is as
/// it was.
pub fn prepare(
    sets: &[Arc<Fileset>],
    options: &PrepareOptions,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Vec<Prepared>, Error> {
    no_overlap(sets)?;
    let mut works: Vec<Work<'_>> = Vec::with_capacity(sets.len());
    let done = sets
        .iter()
        .try_for_each(|set| {
            let root = take(set, options)?;
            works.push(Work {
                set,
                root,
                action: Action::Make,
                begun: false,
                removed_seconds: 0.0,
                populate_seconds: 0.0,
                repairs: Repairs::default(),
            });
            Ok(())
        })
        .and_then(|()| all(&mut works, options, progress, stop));
    match done {
        Ok(quiesced) => Ok(works.into_iter().map(|work| work.finish(quiesced)).collect()),
        Err(e) => {
            // Backwards: what one made may lie in what another made before.
            for work in works.into_iter().rev() {
                if work.begun { work.root.close() } else { work.root.give_up() }
            }
            Err(e)
        }
    }
}

fn all(
    works: &mut [Work<'_>],
    options: &PrepareOptions,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Option<Quiesced>, Error> {
    for work in works.iter_mut() {
        work.decide(options, progress, stop)?;
    }
    let mut demands: Vec<Demand> = works.iter().filter_map(Work::demand).collect();
    if room(&demands, options).is_err() {
        // What the trees that go first take is looked up only if it matters: that is a call for each file of theirs.
        for work in works.iter() {
            if let Action::Replace(scan) = &work.action {
                let bytes = remove::bytes_of(&work.root, scan, stop)?;
                for demand in demands.iter_mut().filter(|demand| demand.path == work.root.path) {
                    demand.freed.0 = bytes;
                }
            }
        }
        room(&demands, options)?;
    }
    for work in works.iter_mut() {
        work.perform(options, progress, stop)?;
    }
    if !options.quiesce {
        return Ok(None);
    }
    progress.started("", Phase::Quiesce, 0, 0);
    let roots: Vec<&Path> = works.iter().map(|work| work.root.path.as_path()).collect();
    let quiesced = quiesce::quiesce(&roots, stop)
        .map_err(|(at, e)| Error::call(&works[at].set.spec.name, "write back", &works[at].root.path, e))?;
    Ok(Some(quiesced))
}

/// Whether it all fits.
fn room(demands: &[Demand], options: &PrepareOptions) -> Result<(), Error> {
    space::check(demands, options.keep_free)?;
    memory(demands)
}

fn take(set: &Fileset, options: &PrepareOptions) -> Result<Root, Error> {
    // A second run with the same set: it is ours already.
    set.close();
    match root::take(&set.spec)? {
        Taken::Ours(root) => Ok(*root),
        Taken::Unmarked(dir) if options.adopt && set.adopted => dir.adopt(),
        Taken::Unmarked(dir) => Err(dir.refuse()),
    }
}

/// No two sets may have one root, or one inside the other's.
fn no_overlap(sets: &[Arc<Fileset>]) -> Result<(), Error> {
    let roots: Vec<PathBuf> = sets.iter().map(|set| real(&set.spec.root())).collect();
    for (at, one) in roots.iter().enumerate() {
        for (other_at, other) in roots.iter().enumerate() {
            if at != other_at && one.starts_with(other) {
                let name = |at: usize| sets[at].spec.name.clone();
                return Err(Error::Overlap { set: name(other_at), other: name(at), path: one.clone() });
            }
        }
    }
    Ok(())
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    if let Ok(path) = std::fs::canonicalize(path) {
        return path;
    }
    match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) if !above.as_os_str().is_empty() => real(above).join(name),
        (_, Some(name)) => std::env::current_dir().unwrap_or_default().join(name),
        _ => path.to_owned(),
    }
}

/// On tmpfs files take memory, and each inode a kilobyte of the kernel's.
fn memory(demands: &[Demand]) -> Result<(), Error> {
    const INODE: u64 = 1024;
    let (_, free) = limits::memory();
    let here: Vec<&Demand> = demands.iter().filter(|d| quiesce::in_memory(&d.path)).collect();
    let taken = |bytes: u64, inodes: u64| bytes.saturating_add(inodes.saturating_mul(INODE));
    let needed = here
        .iter()
        .fold(0_u64, |sum, d| sum.saturating_add(taken(d.bytes, d.inodes).saturating_sub(taken(d.freed.0, d.freed.1))));
    if free > 0 && needed > free {
        let sets = here.iter().map(|d| format!("file set `{}`", d.set)).collect::<Vec<_>>().join(" and ");
        return Err(Error::Memory { sets, what: "the files", needed, free });
    }
    Ok(())
}

impl Work<'_> {
    fn job(&self, mode: Mode, options: &PrepareOptions) -> PopulateJob<'_> {
        PopulateJob { set: self.set, root: &self.root, mode, threads: options.threads, seed: options.data_seed }
    }

    /// What is to be done, by the marker and what is there.
    fn decide(&mut self, options: &PrepareOptions, progress: &dyn Progress, stop: &AtomicBool) -> Result<(), Error> {
        let spec = &self.set.spec;
        let marker = &self.root.marker;
        if self.root.fresh && !marker.adopted {
            return Ok(());
        }
        let start = &self.set.start;
        let complete = marker.state == Stage::Ready || marker.adopted;
        if complete && start.known.is_some() && self.root.stamp() == start.known {
            self.action = Action::Nothing;
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
            if spec.trusttree && complete && start.tree == Existing::Replace {
                self.action = Action::Trust;
                return Ok(());
            }
            let start = Instant::now();
            progress.started(&spec.name, Phase::Compare, self.set.tree.n_files(), 0);
            let made =
                populate::run(&self.job(Mode::DryRun, options), stop, |files, bytes| progress.advanced(files, bytes))?;
            self.populate_seconds += start.elapsed().as_secs_f64();
            // Somebody's files become ours as they are; to cut them takes a word of the script's. Until a tree was found right
            // once, an adoption is not done.
            let new = self.root.fresh || marker.state == Stage::Empty;
            if new && made.resized > 0 && !spec.reuse {
                let why = format!(
                    "has {} of another size than the script's; `reuse` would cut or extend them",
                    count(made.resized, "file")
                );
                return Err(Error::Adopt { set: spec.name.clone(), path: self.root.path.clone(), why });
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
            let was = marker.layout.as_ref().map_or_else(|| "a layout that is not known".into(), ToString::to_string);
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

    /// What it will take.
    fn demand(&self) -> Option<Demand> {
        let tree = &self.set.tree;
        let (files, bytes, dirs) = match &self.action {
            Action::Trust | Action::Nothing | Action::Keep(_) => return None,
            Action::Repair(made) => (made.files, made.bytes, made.dirs),
            _ => (tree.files_at_start(), tree.bytes_at_start(), tree.n_dirs() + tree.n_leafdirs()),
        };
        // Whole blocks: exactly where sizes are all the same, half a block a file where they are not.
        let block = fd::statvfs_path(&self.root.path).map_or(4096, |space| space.block.clamp(512, 4096));
        let blocks = match (&self.set.spec.size, &self.set.spec.sizes, &self.action) {
            _ if self.set.spec.empty => 0,
            (Quantity::Const(size), None, Action::Make | Action::Replace(_)) => {
                size.checked_next_multiple_of(block).map_or(u64::MAX, |size| files.saturating_mul(size))
            }
            (Quantity::Const(0), None, _) => 0,
            _ => bytes.saturating_add(files.saturating_mul(block / 2)),
        };
        let freed = match &self.action {
            Action::Replace(scan) => (0, scan.files + scan.dirs.len() as u64),
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

    fn perform(&mut self, options: &PrepareOptions, progress: &dyn Progress, stop: &AtomicBool) -> Result<(), Error> {
        let set = Arc::clone(self.set);
        let (name, tree) = (set.spec.name.as_str(), &set.tree);
        let watch = |files, bytes| progress.advanced(files, bytes);
        if let Action::Replace(scan) = &self.action {
            let start = Instant::now();
            self.begun = true;
            progress.started(name, Phase::Remove, scan.files, 0);
            remove::remove_tree(&self.root, scan, options.threads, stop, watch)?;
            self.removed_seconds += start.elapsed().as_secs_f64();
        }
        let mode = match &self.action {
            Action::Make | Action::Replace(_) => Some(Mode::Create),
            Action::Repair(made) if *made != Made::default() || self.root.marker.state != Stage::Ready => {
                Some(Mode::Repair)
            }
            Action::Repair(_) | Action::Trust | Action::Nothing | Action::Keep(_) => None,
        };
        let layout = set.spec.layout(set.layout_seed);
        if let Some(mode) = mode {
            let start = Instant::now();
            self.begun = true;
            name.clone_into(&mut self.root.marker.set);
            self.root.marker.layout = Some(layout);
            self.root.marker.names = Some(DirNames::of(&set));
            self.root.marker.links |= set.has_links();
            self.root.marker.state = Stage::Populating;
            self.root.write_marker()?;
            progress.started(name, Phase::Populate, tree.files_at_start(), tree.bytes_at_start());
            let made = populate::run(&self.job(mode, options), stop, watch)?;
            self.root.marker.state = Stage::Ready;
            // Files that had several names have been given one of their own.
            self.root.marker.links = set.has_links();
            self.root.write_marker()?;
            self.populate_seconds += start.elapsed().as_secs_f64();
            if mode == Mode::Repair {
                self.repairs = made.into();
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

    /// Reads the state of the set from its tree.
    fn read(&self, options: &PrepareOptions, progress: &dyn Progress, stop: &AtomicBool) -> Result<Made, Error> {
        let state = &self.set.state;
        state.files.load(|_| false);
        state.leafdirs.load(|_| false);
        populate::run(&self.job(Mode::Read, options), stop, |files, bytes| progress.advanced(files, bytes))
    }

    fn finish(self, quiesced: Option<Quiesced>) -> Prepared {
        let tree = &self.set.tree;
        let adopted = self.set.adopted;
        let (files, bytes) = match &self.action {
            Action::Keep(found) => (found.files, found.bytes),
            _ if adopted => (tree.n_files(), tree.bytes()),
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
            reused: !matches!(self.action, Action::Make | Action::Replace(_)),
            unchanged: matches!(self.action, Action::Nothing),
            adopted,
            repairs: self.repairs,
            quiesced,
            note: self.root.note.clone(),
        };
        *self.set.identity.lock() = fd::fstat(self.root.fd).ok().map(|stat| (stat.device, stat.inode));
        *self.set.held.lock() = Some(self.root);
        prepared
    }
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
