//! What the preparation of file sets begins and ends with: directories, the state of a tree at the start of a run, and
//! the release of trees after it.
//!
//! Not here: the preparation itself (`shared_sets`), how trees are created, repaired and removed (`disk`), and when they
//! are removed (`removal`).

use super::trees::{DefinitionKey, ReadySet, data_properties, size_properties};
use super::watch::{Stage, WatchedProgress};
use super::{Front, Runner};
use crate::diag::{Failure, Reason, Status, similar_path};
use crate::disk::prepare::{self, Prepared, Repairs};
use crate::disk::{Error, Existing, Fileset, StartState};
use crate::fileset::FilesetSpec;
use crate::os::held_dir::HeldDir;
use crate::os::signals::Kept;
use crate::plan::{self, Plan};
use crate::util::count::{count, grouped};
use crate::util::duration;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The sets of a plan, and how each was prepared.
pub(super) type OnDisk = (Vec<Arc<Fileset>>, Vec<Option<Prepared>>);

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

/// The directories of a run that an option names.
pub(crate) struct NamedDirs {
    option: &'static str,
    dirs: Vec<PathBuf>,
}

impl NamedDirs {
    /// Returns the directories of `--dir`, which may be a list.
    pub(crate) fn of_dir(dir: &str) -> Self {
        // An empty path in a list is an error of the file set that uses it.
        let is_named = |part: &&str| !part.is_empty() || dir.is_empty();
        let dirs = plan::listed_directories(dir, None).into_iter().filter(is_named).map(PathBuf::from);
        Self { option: "--dir", dirs: dirs.collect() }
    }

    /// Returns the directory of `--below`.
    pub(crate) fn of_below(below: &Path) -> Self {
        Self { option: "--below", dirs: vec![below.to_owned()] }
    }
}

/// How the sets of a plan are prepared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrepareRequest {
    pub(crate) purpose: Purpose,
    /// Their trees are used as they are, instead of being brought to their definitions.
    pub(crate) as_is: bool,
}

impl Runner {
    /// Checks that the directories that an option names exist: a mistyped mount point would measure another file system. With
    /// `--mkdir` they are created, on a file system that is allowed.
    pub(crate) fn check_dirs(&self, named: &NamedDirs, front: &mut dyn Front) -> Result<(), Failure> {
        for dir in self.missing_dirs(named)? {
            self.settings.required.check(std::iter::once(dir.clone()))?;
            let shown = dir.display();
            HeldDir::create(&dir)
                .map_err(|e| Failure::refused(format!("can't create {shown}: {e}"), "name another directory"))?;
            front.note(&format!("created {shown} (`--mkdir`)"));
        }
        Ok(())
    }

    /// The directories that `--mkdir` is to create. An error if one does not exist without it.
    pub(crate) fn missing_dirs(&self, named: &NamedDirs) -> Result<Vec<PathBuf>, Failure> {
        let mut missing = Vec::new();
        if !self.settings.engine.real() {
            return Ok(missing);
        }
        let option = named.option;
        for dir in &named.dirs {
            let shown = dir.display();
            let (what, help) = match std::fs::metadata(dir) {
                Ok(meta) if meta.is_dir() => continue,
                Ok(_) => (format!("`{option} {shown}` is not a directory"), "name a directory".to_owned()),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && self.settings.mkdir => {
                    missing.push(dir.to_owned());
                    continue;
                }
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                    let near = similar_path(dir, true)
                        .map_or(String::new(), |near| format!("did you mean `{}`? ", near.display()));
                    (
                        format!("the directory `{shown}` of `{option}` does not exist"),
                        format!("{near}`--mkdir` creates it"),
                    )
                }
                Err(e) => (format!("`{option} {shown}`: {e}"), "name another directory".to_owned()),
            };
            return Err(Failure::refused(what, help));
        }
        Ok(missing)
    }

    /// Checks that the file sets of a plan would be on file systems that are allowed.
    pub(crate) fn check_file_systems(&self, plan: &Plan) -> Result<(), Failure> {
        // The fresh directory of a run is created in the current directory.
        let place =
            |set: &FilesetSpec| if set.root().starts_with(plan::FRESH) { PathBuf::from(".") } else { set.root() };
        match self.settings.engine.real() {
            true => self.settings.required.check(plan.filesets.iter().map(place)),
            false => Ok(()),
        }
    }

    /// Creates the fresh directory, unless it exists or the engine creates no files. Returns it if it was created now.
    ///
    /// With several ranks one of each host creates it, or one of all ranks if the sets are `shared_by_all`. All ranks call
    /// this.
    pub fn make_fresh_dir(&mut self, shared_by_all: bool) -> Result<Option<PathBuf>, Failure> {
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
        let (own, made) = self.agree_with("the fresh directory", made)?;
        self.trees.fresh_of_other = own.is_none();
        self.trees.fresh = own.or_else(|| made.get(maker).cloned().flatten().map(PathBuf::from));
        Ok(self.trees.fresh.clone())
    }

    /// Returns the fresh directory if it was created.
    pub fn fresh_dir(&self) -> Option<String> {
        self.trees.fresh.as_ref().map(|dir| dir.display().to_string())
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
    pub fn release_sets(&mut self) {
        if std::mem::take(&mut self.trees.held_with_ranks) {
            if !self.trees.stalled {
                self.trees.sets.iter().for_each(ReadySet::close_part);
            }
            let _waiting = self.watch.pause();
            // The next step reports the ranks that are lost.
            self.trees.in_use_by_ranks = self.settings.together.wait().is_err();
        }
        if self.trees.stalled {
            // The file system does not answer.
            return;
        }
        let roots = self.trees.sets.iter().map(|ready| ready.set.spec.root()).collect();
        let _watch = self.begin(Stage::CleanUp, "releasing the file sets", roots);
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
    pub fn invalidate_stamps(&mut self) {
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
            data_seed: self.stream_seed(),
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
        match self.interruptible(|stop| work(&progress, stop)) {
            Ok(done) => Ok(done),
            Err(_) if self.signal() != 0 => {
                front.note("interrupted while files were created: there was no run");
                Err(Failure::unexplained(Status::Interrupted(self.signal())))
            }
            Err(e) => Err(e.into()),
        }
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        let (code, message) = (Some(e.code().to_owned()), e.to_string());
        let reason = Reason::Stated { code, message, help: e.help().into_iter().collect() };
        Self { status: Status::Refused, reasons: vec![reason] }
    }
}

/// Creates a directory in the current one, with a name that no other has.
fn new_directory() -> Result<PathBuf, Failure> {
    let base = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    // The variable `$dir` is a text, in which such a path would become another one.
    if base.to_str().is_none() {
        let text = format!("the path of the current directory is not UTF-8: {}", base.display());
        return Err(Failure::refused(text, "give a directory with `--dir`"));
    }
    let held = HeldDir::open(Path::new("."));
    for n in 0..1000 {
        let name = format!("wmlrun-{}-{n}", std::process::id());
        let made = held.as_ref().map_err(ToString::to_string);
        match made.and_then(|held| held.make_dir(name.as_ref()).map_err(|e| e.to_string())) {
            Ok(Some(_)) => return Ok(base.join(name)),
            Ok(None) => {}
            Err(e) => {
                let text = format!("can't create a directory in {}: {e}", base.display());
                return Err(Failure::refused(text, "give a directory with `--dir`"));
            }
        }
    }
    let text = format!("{} has too many directories of other runs", base.display());
    Err(Failure::refused(text, "`wmlrun clean` removes them"))
}

/// Returns the message on the changes that brought existing trees to their definitions, or on their use as they are.
/// `None` if nothing was changed.
fn changes_line(prepared: &[Prepared], as_is: bool) -> Option<String> {
    let existing: Vec<&Prepared> = prepared.iter().filter(|set| set.reused).collect();
    if as_is && !existing.is_empty() {
        let files = existing.iter().map(|set| set.files).sum();
        return Some(format!("file sets: left as they are, with {}", count(files, "file")));
    }
    let done = existing.iter().fold(Repairs::default(), |all, set| all.and(set.repairs));
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
