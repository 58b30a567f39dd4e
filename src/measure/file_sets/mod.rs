//! The file sets of a session on the disk: preparing them before a run, releasing them after it, and removing them.
//!
//! A session remembers the trees that it has worked on. Before each run, every set is brought to its definition, by
//! repair where its tree is known. A tree that no run has changed since, according to the operations of the plan and
//! the stamp in its marker, is not scanned. Not here: how trees are created, repaired and removed (`disk`).

mod caches;
mod leftovers;
mod shared_sets;
mod trees;

pub use trees::trees;

use self::leftovers::Leftover;
use self::shared_sets::{SetKey, SharedWork, SharingGroup, refuse_other_definitions, shared_changes};
use self::trees::{DefinitionKey, ReadySet, Trees, data_properties, size_properties};
use super::cache::Cache;
use super::machine::{self, RankMemory};
use super::named_dirs::{check_file_systems, new_directory};
use super::outputs::Outputs;
use super::run_ranks::RunRanks;
use super::watch::{Stage, Watch, WatchGuard, WatchedProgress};
use super::{Front, Settings, Status};
use crate::diag::Failure;
use crate::disk::prepare::{self, Prepared};
use crate::disk::{self, Error, Existing, Fileset, StartState};
use crate::fileset::FilesetSpec;
use crate::os::held_dir::HeldDir;
use crate::os::limits;
use crate::os::signals::Kept;
use crate::plan::{self, Plan};
use crate::result::Repaired;
use crate::source::SourceMap;
use crate::util::count::{count, grouped};
use crate::util::{duration, printable, size};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The sets of a plan, and how each was prepared.
pub(crate) type OnDisk = (Vec<Arc<Fileset>>, Vec<Option<Prepared>>);

/// What the sets of a plan are prepared for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A run of the plan, which may change them.
    Run,
    /// Nothing but their creation.
    CreateOnly,
}

impl Purpose {
    /// Returns which sets of the plan are changed afterwards.
    pub(super) fn changes(self, plan: &Plan) -> Vec<bool> {
        match self {
            Self::Run => plan.changed_sets(),
            Self::CreateOnly => vec![false; plan.filesets.len()],
        }
    }
}

/// How the sets of a plan are prepared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrepareRequest {
    pub(crate) purpose: Purpose,
    /// Their trees are used as they are, instead of being brought to their definitions.
    pub(crate) as_is: bool,
}

/// The file sets of a session on the disk.
pub struct FileSets {
    settings: Arc<Settings>,
    watch: Arc<Watch>,
    ranks: RunRanks,
    trees: Trees,
    /// The memory in bytes that runs may need, as far as a note has said so.
    noted_memory: BTreeSet<u64>,
    /// From the first file that is created on: a signal lets the session remove the files and write the result.
    kept: Option<Kept>,
}

impl FileSets {
    pub(crate) fn new(settings: &Arc<Settings>, watch: &Arc<Watch>, ranks: &RunRanks) -> Self {
        Self {
            settings: Arc::clone(settings),
            watch: Arc::clone(watch),
            ranks: ranks.clone(),
            trees: Trees::default(),
            noted_memory: BTreeSet::new(),
            kept: None,
        }
    }

    /// The parent directories of the roots of all sets.
    pub(crate) fn parent_dirs(&self) -> Vec<PathBuf> {
        self.trees.parent_dirs.iter().cloned().collect()
    }

    /// Notes that a run of this plan writes, so that the disks are not idle after it.
    pub(crate) fn note_run(&mut self, plan: &Plan) {
        self.trees.wrote |= plan.writes();
    }

    /// The roots of the sets of the last plan.
    pub(crate) fn roots(&self) -> impl Iterator<Item = PathBuf> {
        self.trees.sets.iter().map(|ready| ready.set.spec.root())
    }

    /// Notes that the script has dropped the dentries and inodes of the machine.
    pub(crate) fn note_dropped_caches(&mut self) {
        self.trees.caches_dropped = true;
    }

    /// Creates the fresh directory, unless it exists or the engine creates no files. Returns it if it was created now.
    ///
    /// With several ranks one of each host creates it, or one of all ranks if the sets are `shared_by_all`. All ranks call
    /// this.
    pub(crate) fn make_fresh_dir(&mut self, shared_by_all: bool) -> Result<Option<PathBuf>, Failure> {
        if self.trees.fresh.is_some() || !self.settings.engine.real() {
            return Ok(None);
        }
        self.kept.get_or_insert_with(Kept::begin);
        let together = &self.settings.together;
        let same_host = together.hosts().iter().position(|host| host == together.host()).unwrap_or(0);
        let maker = if shared_by_all { 0 } else { same_host };
        let made = if maker == together.rank() { new_directory().map(Some) } else { Ok(None) };
        let text = |dir: &Option<PathBuf>| dir.as_ref().map(|dir| dir.to_string_lossy().into_owned());
        let made = made.map(|dir| (dir.clone(), text(&dir)));
        let (own, made) = self.ranks.agree_with("the fresh directory", made)?;
        self.trees.fresh_of_other = own.is_none();
        self.trees.fresh = own.or_else(|| made.get(maker).cloned().flatten().map(PathBuf::from));
        Ok(self.trees.fresh.clone())
    }

    /// Returns the fresh directory if it was created.
    pub(crate) fn fresh_dir(&self) -> Option<String> {
        self.trees.fresh.as_ref().map(|dir| dir.display().to_string())
    }

    /// Prepares the plan's sets. Trees that this session knows are repaired in place. All ranks call this, and all return
    /// with the same status. `map`: the source texts of the plan.
    pub(super) fn prepare(
        &mut self,
        plan: &Plan,
        request: PrepareRequest,
        map: &SourceMap,
        outputs: &mut Outputs,
        front: &mut dyn Front,
    ) -> Result<OnDisk, Failure> {
        self.kept.get_or_insert_with(Kept::begin);
        let definitions: Vec<DefinitionKey> = plan.filesets.iter().map(DefinitionKey::of).collect();
        let PrepareRequest { purpose, as_is } = request;
        let changes = purpose.changes(plan);
        let own: Vec<SetKey> = plan.filesets.iter().zip(&changes).map(|(spec, c)| SetKey::of(spec, *c)).collect();
        let checked = self.check_sets(plan, outputs, front);
        let ((), keys) = self.ranks.agree_with("the file sets", checked.map(|()| ((), own)))?;
        let by_root: Vec<HashMap<&str, &SetKey>> =
            keys.iter().map(|keys| keys.iter().map(|key| (key.root.as_str(), key)).collect()).collect();
        let together = self.settings.together.clone();
        let group = |spec| SharingGroup::of(spec, self.settings.share, &together, &by_root);
        let (groups, others): (Vec<SharingGroup>, Vec<Option<usize>>) = plan.filesets.iter().map(group).unzip();
        let real = self.settings.engine.real();
        if real {
            self.release_other_sets(plan, &definitions, front);
        }
        let led =
            || plan.filesets.iter().zip(&groups).filter(|(_, group)| group.is_first()).map(|(spec, _)| spec.root());
        let known = self.trees.roots_of_sets();
        let new_roots: Vec<PathBuf> = led().filter(|root| !known.contains(root) && !prepare::is_marked(root)).collect();
        let mut work = SharedWork::default();
        let found = shared_changes(plan, &groups, purpose);
        let refused = match found.is_empty() {
            true => Ok(()),
            false => Err(Failure::in_script(Status::Refused, map, found)),
        };
        let begun = refused.and_then(|()| {
            if real {
                refuse_other_definitions(plan, &others)?;
            }
            work.begin(self, plan, groups, &definitions, request, front)
        });
        let begun = self.ranks.agree_with("the roots", begun.map(|taken| ((), taken)));
        let done = begun.and_then(|((), taken)| {
            let needs: Vec<RankMemory> = taken.iter().map(|taken| taken.memory).collect();
            let enough = machine::check_memory_of_ranks(&needs, self.settings.together.hosts());
            self.ranks.agree("the memory", enough)?;
            if !real {
                return Ok(work.sets.iter().map(|_| None).collect());
            }
            work.prepare_trees(self, taken.into_iter().map(|taken| taken.trees).collect(), as_is, front)
        });
        match done {
            Ok(prepared) => Ok(self.keep_sets(work, prepared, definitions, as_is)),
            Err(failure) => {
                work.abandon();
                // The state of the trees is unknown.
                self.trees.sets.iter_mut().for_each(|ready| ready.stamp = None);
                Err(self.clean_unfinished(new_roots, failure))
            }
        }
    }

    /// Makes the checks of a plan's file sets that need no access to them.
    fn check_sets(&self, plan: &Plan, outputs: &mut Outputs, front: &mut dyn Front) -> Result<(), Failure> {
        outputs.check_outputs_in_place(front)?;
        if !self.settings.engine.real() {
            return Ok(());
        }
        check_file_systems(&self.settings, plan)?;
        let trees: Vec<_> = plan.filesets.iter().map(|set| (set.name.clone(), set.root())).collect();
        outputs.outputs_outside(&trees)
    }

    /// Keeps the prepared sets for later runs of the session.
    fn keep_sets(
        &mut self,
        work: SharedWork,
        prepared: Vec<Option<Prepared>>,
        definitions: Vec<DefinitionKey>,
        as_is: bool,
    ) -> OnDisk {
        let sets = work.used();
        if self.settings.engine.real() {
            let ready = work.sets.into_iter().zip(prepared.iter().flatten()).zip(definitions);
            let ready = ready.map(|((set, prepared), definition)| ReadySet {
                is_shared: set.group.is_shared(),
                changed: set.group.changes || (as_is && !prepared.unchanged),
                whole: set.whole.filter(|_| set.group.is_shared()),
                set: set.used,
                prepared: prepared.clone(),
                definition,
                stamp: None,
            });
            self.trees.sets = ready.collect();
            for (set, prepared) in sets.iter().zip(prepared.iter().flatten()) {
                self.trees.remember(&set.spec, prepared);
            }
        }
        self.trees.held_with_ranks = !self.settings.together.is_alone();
        (sets, prepared)
    }

    /// Makes the check for a run with these sets. Shows a note if memory may not suffice, which depends on the course
    /// of the run: once for all runs that may need as much.
    pub(super) fn check_run(
        &mut self,
        plan: &Plan,
        sets: &[Arc<Fileset>],
        front: &mut dyn Front,
    ) -> Result<(), Failure> {
        machine::check(plan, sets)?;
        let most = plan::totals(plan, sets).max_memory;
        let (_, free) = limits::memory();
        if free > 0 && most > free && !sets.is_empty() && self.noted_memory.insert(most) {
            let (most, free) = (size::format(most), size::format(free));
            front.note(&format!(
                "the run may need up to {most} of memory, and {free} is available: `iosize=` limits the buffers for \
                 whole files, and `iodepth=` those of asynchronous I/O"
            ));
        }
        Ok(())
    }

    /// Releases the sets that the plan does not have or that have another definition. Keeps those whose root the plan
    /// uses.
    pub(super) fn release_other_sets(&mut self, plan: &Plan, keys: &[DefinitionKey], front: &mut dyn Front) {
        let definitions: HashSet<&DefinitionKey> = keys.iter().collect();
        let roots: HashSet<PathBuf> = plan.filesets.iter().map(FilesetSpec::root).collect();
        for ready in std::mem::take(&mut self.trees.sets) {
            if definitions.contains(&ready.definition) || roots.contains(&ready.set.spec.root()) {
                self.trees.sets.push(ready);
            } else {
                let released = self.release_or_remove(&ready, front);
                front.status(released);
            }
        }
        self.trees.leftovers.retain(|leftover| !roots.contains(&leftover.root));
    }

    /// Returns how the tree of a set is treated at the start of a run. `before`: the set of the last plan with the same
    /// definition.
    pub(super) fn start_state(
        &self,
        spec: &FilesetSpec,
        before: Option<&ReadySet>,
        as_is: bool,
        changes: bool,
    ) -> StartState {
        let known = before.and_then(|ready| ready.stamp.filter(|_| !ready.changed));
        let root = self.trees.roots.get(&spec.root());
        let tree = match root {
            _ if as_is => Existing::Keep,
            // Directories that an earlier run has created are removed with its files.
            Some(root) if root.data == data_properties(spec) && !spec.late_dirs => Existing::Repair,
            _ => Existing::Replace,
        };
        let sizes = root.and_then(|root| root.sizes.as_ref()).filter(|_| tree == Existing::Repair);
        let verified = sizes.is_some_and(|sizes| *sizes == size_properties(spec));
        let released = root.and_then(|root| root.released);
        StartState { tree, known, changes, verified, released }
    }

    /// Releases the sets after a run, so that between runs no file of them is open or locked. If several ranks have
    /// prepared the sets, all of them call this, and no tree is unlocked while a rank uses it.
    pub(crate) fn release_sets(&mut self) {
        if std::mem::take(&mut self.trees.held_with_ranks) {
            if !self.watch.is_stalled() {
                self.trees.sets.iter().for_each(ReadySet::close_part);
            }
            let _waiting = self.watch.pause();
            // The next step reports the ranks that are lost.
            self.trees.in_use_by_ranks = self.settings.together.wait().is_err();
        }
        if self.watch.is_stalled() {
            // The file system does not answer.
            return;
        }
        let roots = self.trees.sets.iter().map(|ready| ready.set.spec.root()).collect();
        let _watch = self.watch.begin(Stage::CleanUp, "releasing the file sets", roots);
        let in_use = self.trees.in_use_by_ranks;
        for ready in self.trees.sets.iter_mut().filter(|ready| !(ready.is_shared && in_use)) {
            let Some(stamp) = ready.owner().and_then(|set| set.close()) else { continue };
            ready.stamp = Some(stamp);
            if let Some(root) = self.trees.roots.get_mut(&ready.set.spec.root()) {
                root.released = Some(stamp);
            }
        }
    }

    /// Makes the next run scan the trees, because another program may have changed them. Differences of an adopted tree
    /// are then not taken for changes of this session.
    pub(crate) fn invalidate_stamps(&mut self) {
        self.trees.sets.iter_mut().for_each(|ready| ready.stamp = None);
        self.trees.roots.values_mut().for_each(|root| root.released = None);
    }

    /// Shows what the preparation of trees has changed.
    pub(super) fn note_prepared(&self, prepared: &[Prepared], as_is: bool, front: &mut dyn Front) {
        prepared.iter().filter_map(|set| set.note.as_deref()).for_each(|note| front.note(note));
        // The directory of a run is its own.
        let is_own = |dir: &PathBuf| self.trees.fresh.as_ref().is_some_and(|fresh| dir.starts_with(fresh));
        let made: BTreeSet<&PathBuf> =
            prepared.iter().filter_map(|set| set.made_parent.as_ref()).filter(|made| !is_own(made)).collect();
        if let Some(first) = made.first() {
            let (dir, more) = (first.display(), made.len() - 1);
            let others = if more == 0 { String::new() } else { format!(" and {}", count(more as u64, "other")) };
            front.note(&format!("created the directory {dir}{others}: no file system was mounted there"));
        }
        if let Some(line) = changes_line(prepared, as_is) {
            front.note(&line);
        }
    }

    /// Returns the options of the preparation, without a wait for idle disks.
    pub(super) fn prepare_options(&self) -> prepare::PrepareOptions {
        prepare::PrepareOptions {
            threads: self.settings.populate_threads,
            quiesce: false,
            adopt: self.settings.adopt,
            data_seed: self.ranks.stream_seed(),
            ..prepare::PrepareOptions::default()
        }
    }

    /// Does work on trees so that a signal stops it, and the watchdog sees its progress.
    pub(super) fn on_disk<T>(
        &self,
        front: &mut dyn Front,
        work: impl FnOnce(&dyn prepare::Progress, &AtomicBool) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let watch = Arc::clone(&self.watch);
        let progress = WatchedProgress { watch: &watch, progress: front.progress() };
        match self.watch.interruptible(|stop| work(&progress, stop)) {
            Ok(done) => Ok(done),
            Err(_) if self.watch.signal() != 0 => {
                front.note("interrupted while files were created: there was no run");
                Err(Failure::unexplained(Status::Interrupted(self.watch.signal())))
            }
            Err(e) => Err(e.into()),
        }
    }

    /// `fsflush`: writes the file sets back and evicts them from the page cache. Drops the caches of the whole machine
    /// only if the user allows it. Filebench calls a separate script for each file system type instead.
    pub fn fsflush(&mut self, front: &mut dyn Front) -> Result<(), Failure> {
        let sets: Vec<Arc<Fileset>> = self.trees.sets.iter().map(|ready| Arc::clone(&ready.set)).collect();
        let threads = self.settings.populate_threads;
        let dropped = self.watch.interruptible(|stop| {
            if self.settings.allow_drop_caches {
                return disk::cache::drop_all(&sets, stop);
            }
            sets.iter().try_for_each(|set| disk::cache::evict(set, threads, stop, |_, _| ())).map(|()| true)
        });
        if !self.settings.allow_drop_caches {
            front.note(
                "`fsflush` evicts the file sets only; `--allow-drop-caches` lets it drop all caches of the machine",
            );
        }
        if dropped.map_err(|e| caches::stopped_or(&self.watch, e))? {
            self.trees.caches_dropped |= self.settings.allow_drop_caches;
        } else {
            front.note("the caches of the machine can't be dropped: that needs root");
        }
        Ok(())
    }

    /// Brings the caches into the state that the script or the command line requires.
    pub(crate) fn prepare_caches(
        &mut self,
        sets: &[Arc<Fileset>],
        prepared: &[Option<Prepared>],
        front: &mut dyn Front,
    ) -> Result<Cache, Failure> {
        // The files of a tree that has only now been created are in memory, as they would be without these commands.
        let existed = prepared.iter().flatten().all(|set| set.reused || set.unchanged);
        let dropped = std::mem::take(&mut self.trees.caches_dropped) && existed;
        let cache = caches::prepare(&self.settings, &self.watch, sets, dropped, front);
        let made = prepared.iter().flatten().filter_map(|set| set.made_parent.as_deref());
        let cache = cache.map(|cache| cache.with_notes(caches::not_mounted(made)));
        self.ranks.agree("the caches", cache)
    }

    /// `shutdown files`: removes the trees.
    pub(crate) fn remove_trees(&mut self, front: &mut dyn Front) -> Result<(), Failure> {
        let _watch = self.removing();
        let mut failed = Vec::new();
        for ready in std::mem::take(&mut self.trees.sets) {
            failed.extend(self.remove_tree(&ready, front).err());
        }
        self.ranks.agree(REMOVAL, Failure::all(failed))
    }

    fn remove_tree(&mut self, ready: &ReadySet, front: &mut dyn Front) -> Result<(), Failure> {
        // The rank that has prepared a shared tree removes it.
        let Some(set) = ready.owner() else { return Ok(()) };
        if ready.is_shared && self.trees.in_use_by_ranks {
            return Err(left_in_use(&set.spec.root()));
        }
        // The file system may have been unmounted or recreated, or another program has moved or removed the tree.
        if !prepare::is_marked(&set.spec.root()) {
            self.trees.roots.remove(&set.spec.root());
            set.close();
            front.note(&format!("{} is not removed: no tree of wmlrun is there any more", set.spec.root().display()));
            return Ok(());
        }
        let removed = prepare::remove(set, self.settings.populate_threads, &AtomicBool::new(false))?;
        // A tree that is adopted again has the files of its owner.
        self.trees.roots.remove(&set.spec.root());
        if removed.adopted {
            front.note(&format!("{} was adopted: its marker is removed, its files stay", removed.path.display()));
        }
        Ok(())
    }

    /// Releases a set that no run needs any more. Its tree is removed in the fresh directory or with `--clean`; else it
    /// remains.
    pub(crate) fn release_or_remove(&mut self, ready: &ReadySet, front: &mut dyn Front) -> Result<(), Failure> {
        let is_fresh = self.trees.is_in_fresh_dir(&ready.set.spec.root());
        if (is_fresh && !self.settings.keep) || self.settings.clean {
            return self.remove_tree(ready, front);
        }
        let Some(set) = ready.owner().filter(|set| prepare::is_marked(&set.spec.root())) else { return Ok(()) };
        let files = if ready.is_shared { set.tree.n_files() } else { set.state.n_existing() };
        let adopted = ready.prepared.adopted;
        let (root, bytes) = (set.spec.root(), Some(ready.prepared.bytes));
        self.trees.leftovers.push(Leftover { root, bytes, files, adopted });
        if !(ready.is_shared && self.trees.in_use_by_ranks) {
            set.close();
        }
        Ok(())
    }

    /// Handles trees in a directory of the user whose creation was interrupted: removes them with `--clean`, else keeps
    /// them. Adds to the failure of the creation why some can't be removed.
    pub(crate) fn clean_unfinished(&mut self, roots: Vec<PathBuf>, mut failure: Failure) -> Failure {
        for root in roots.into_iter().filter(|root| prepare::is_marked(root)) {
            if self.trees.is_in_fresh_dir(&root) {
                continue;
            }
            if !self.settings.clean {
                self.trees.leftovers.push(Leftover { root, bytes: None, files: 0, adopted: false });
                continue;
            }
            let cleaned = prepare::clean(&root, self.settings.populate_threads, &AtomicBool::new(false));
            let errors = cleaned.map_or_else(|e| vec![e], |cleaned| cleaned.refused);
            failure.reasons.extend(errors.into_iter().flat_map(|e| Failure::from(e).reasons));
        }
        failure
    }

    /// Ends the work on trees at the end of the session: removes the fresh directory, and reports the trees that
    /// remain.
    pub(crate) fn finish_trees(&mut self, front: &mut dyn Front) -> Status {
        if self.watch.is_stalled() {
            self.report_stalled(front);
            let stalled = self.ranks.agree(REMOVAL, Err(Failure::unexplained(Status::Failed)));
            return front.status(stalled);
        }
        let _watch = self.removing();
        let mut failed = Vec::new();
        for ready in std::mem::take(&mut self.trees.sets) {
            failed.extend(self.release_or_remove(&ready, front).err());
        }
        let mut fresh = self.trees.fresh.take().filter(|_| !self.settings.keep && !self.trees.fresh_of_other);
        if self.trees.in_use_by_ranks
            && let Some(dir) = fresh.take()
        {
            failed.push(left_in_use(&dir));
        }
        // The fresh directory may contain trees of several ranks.
        let removed = self.ranks.agree(REMOVAL, Failure::all(failed));
        let status = front.status(removed);
        if let Some(dir) = fresh {
            // Paths through the directory to trees outside it will not exist.
            for leftover in self.trees.leftovers.iter_mut().filter(|leftover| leftover.root.starts_with(&dir)) {
                leftover.root = std::fs::canonicalize(&leftover.root).unwrap_or_else(|_| leftover.root.clone());
            }
            // A tree whose creation was interrupted is in no list; it is found by its marker.
            let (parents, stop) = (std::mem::take(&mut self.trees.parent_dirs), AtomicBool::new(false));
            let cleaned = prepare::clean_places(&dir, &parents, self.settings.populate_threads, &stop);
            cleaned.refused.into_iter().for_each(|e| front.failed(&e.into()));
            let removed = HeldDir::of_entry(&dir).and_then(|(parent, name)| parent.remove_dir(&name));
            if let Err(e) = removed
                && e.kind() != std::io::ErrorKind::NotFound
            {
                front.note(&format!("{} stays: {e}", dir.display()));
            }
        }
        for line in leftovers::lines(std::mem::take(&mut self.trees.leftovers)) {
            front.remains(&line);
        }
        status
    }

    /// Starts the removal of trees for the watchdog, which ends the program if the removal takes too long.
    pub(crate) fn removing(&self) -> WatchGuard {
        let roots = self.trees.sets.iter().map(|ready| ready.set.spec.root()).chain(self.trees.fresh.clone()).collect();
        self.watch.begin(Stage::CleanUp, "removing the file sets", roots)
    }

    /// Reports trees on which threads are still in system calls. They are left as they are, and their file systems are not
    /// accessed.
    pub(crate) fn report_stalled(&mut self, front: &mut dyn Front) {
        let sets = std::mem::take(&mut self.trees.sets);
        let roots = sets.iter().map(|ready| ready.set.spec.root());
        let places: Vec<PathBuf> = self.trees.fresh.take().map_or_else(|| roots.collect(), |dir| vec![dir]);
        for place in places {
            let parent = place.parent().filter(|_| !place.ends_with("wmlrun")).unwrap_or(&place).display().to_string();
            front.note(&format!(
                "{} is left as it is: its file system does not answer (`wmlrun clean {parent}` removes it later)",
                place.display()
            ));
        }
    }
}

/// Returns the message on the changes that brought existing trees to their definitions, or on their use as they are.
/// `None` if nothing was changed.
fn changes_line(prepared: &[Prepared], as_is: bool) -> Option<String> {
    let existing: Vec<&Prepared> = prepared.iter().filter(|set| set.reused).collect();
    if as_is && !existing.is_empty() {
        let files = existing.iter().map(|set| set.files).sum();
        return Some(format!("file sets: left as they are, with {}", count(files, "file")));
    }
    let done = existing.iter().fold(Repaired::default(), |all, set| all.and(set.repairs));
    if done.total() == 0 {
        return None;
    }
    let parts = [
        (done.created, "file", "created"),
        (done.resized, "file", "resized"),
        (done.removed, "file", "removed"),
        (done.directories_created, "directory", "created"),
        (done.directories_removed, "directory", "removed"),
    ];
    let mut words: Vec<String> = Vec::new();
    let mut last = "";
    for (n, what, verb) in parts.into_iter().filter(|(n, ..)| *n > 0) {
        let number = match (what == last, what) {
            (true, _) => grouped(n),
            (_, "directory") if n != 1 => format!("{} directories", grouped(n)),
            _ => count(n, what),
        };
        words.push(format!("{number} {verb}"));
        last = what;
    }
    let seconds: f64 = existing.iter().map(|set| set.populate_seconds).sum();
    Some(format!("file sets: {} in {}", words.join(", "), duration::seconds(seconds)))
}

/// The step in which all ranks remove their trees.
const REMOVAL: &str = "the removal";

/// The failure to remove a tree, or a directory of trees, that other ranks may still use. It stays.
fn left_in_use(path: &Path) -> Failure {
    let shown = printable::path(path);
    let help = format!("`wmlrun clean {shown}` removes it when all ranks have ended");
    Failure::failed(format!("{shown} stays: other ranks may still use it"), help)
}
