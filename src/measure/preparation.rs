//! The file sets of a run on the disk: what is done with each before a run, and that nothing of them is held after it.
//!
//! A session remembers the trees that it has worked on. Before each run every set is brought to its definition, in place where
//! its tree is known; where no run has changed it since, which the plan's operations and the marker's stamp tell, nothing is
//! looked at. Deliberately absent: how trees are made, repaired and removed (`fileset`), and when they go (`run`).

use super::machine;
use super::trees::{ReadySet, trees};
use super::watch::{Stage, Watched};
use super::{Front, Runner, Status};
use crate::disk::prepare::{self, Prepared, Repairs};
use crate::disk::{Error, Existing, Fileset, StartState};
use crate::fileset::FilesetSpec;
use crate::os::limits;
use crate::plan::Plan;
use crate::util::count::{count, grouped};
use crate::util::duration;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The sets of a plan, and how those that were made for it came about.
type OnDisk = (Vec<Arc<Fileset>>, Vec<Option<Prepared>>);

impl Runner {
    /// The directory of the command line must be there: a slip in the name of a mount point would measure another file system.
    /// With `--mkdir` it is made.
    pub fn check_dir(&self, dir: &str, front: &mut dyn Front) -> Result<(), Status> {
        if !self.settings.engine.real() {
            return Ok(());
        }
        for dir in directories(dir) {
            let shown = dir.display();
            match std::fs::metadata(dir) {
                Ok(meta) if meta.is_dir() => {}
                Ok(_) => {
                    front.error(None, &format!("`--dir {shown}` is not a directory"), Some("name a directory"));
                    return Err(Status::Refused);
                }
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && self.settings.mkdir => {
                    if let Err(e) = std::fs::create_dir_all(dir) {
                        front.error(None, &format!("{shown} can't be made: {e}"), Some("name another directory"));
                        return Err(Status::Refused);
                    }
                    front.note(&format!("{shown} is made (`--mkdir`)"));
                }
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                    let near =
                        near_path(dir).map_or(String::new(), |near| format!("did you mean `{}`? ", near.display()));
                    let help = format!("{near}`--mkdir` makes it");
                    front.error(None, &format!("the directory `{shown}` of `--dir` does not exist"), Some(&help));
                    return Err(Status::Refused);
                }
                Err(e) => {
                    front.error(None, &format!("`--dir {shown}`: {e}"), Some("name another directory"));
                    return Err(Status::Refused);
                }
            }
        }
        Ok(())
    }

    /// Makes the fresh directory, if there is none yet and the engine makes files.
    pub fn make_fresh_dir(&mut self, front: &mut dyn Front) -> Result<Option<PathBuf>, Status> {
        if self.trees.fresh.is_some() || !self.settings.engine.real() {
            return Ok(None);
        }
        let base = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        for n in 0..1000 {
            let path = base.join(format!("wmlrun-{}-{n}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => {
                    self.trees.fresh = Some(path.clone());
                    return Ok(Some(path));
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    front.error(
                        None,
                        &format!("no directory can be made in {}: {e}", base.display()),
                        Some("give a directory with `--dir`"),
                    );
                    return Err(Status::Refused);
                }
            }
        }
        front.error(
            None,
            &format!("{} is full of directories of other runs", base.display()),
            Some("`wmlrun clean` removes them"),
        );
        Err(Status::Refused)
    }

    /// The fresh directory, if it was made.
    pub fn fresh_dir(&self) -> Option<String> {
        self.trees.fresh.as_ref().map(|dir| dir.display().to_string())
    }

    /// Brings the plan's sets to their definitions, or, `as_is`, takes their trees as they are. Trees that this session knows
    /// are repaired in place. `runs`: the plan is run afterwards, and may change them.
    pub(crate) fn prepare(
        &mut self,
        plan: &Plan,
        as_is: bool,
        runs: bool,
        front: &mut dyn Front,
    ) -> Result<OnDisk, Status> {
        if !self.settings.engine.real() {
            let sets = trees(plan, self.settings.layout_seed, front).ok_or(Status::Refused)?;
            machine::check(plan, &sets, front)?;
            let nothing = sets.iter().map(|_| None).collect();
            return Ok((sets, nothing));
        }
        let keys: Vec<String> = plan.filesets.iter().map(|s| format!("{s:?}")).collect();
        self.let_go_of_others(plan, &keys, front);
        let changes = if runs { plan.changed_sets() } else { vec![false; keys.len()] };
        let mut sets = Vec::new();
        for ((spec, key), changes) in plan.filesets.iter().zip(&keys).zip(&changes) {
            match self.start_of(spec, key, as_is, *changes) {
                Ok(set) => sets.push(Arc::new(set)),
                Err(e) => {
                    front.error(Some(e.code()), &e.to_string(), e.help().as_deref());
                    return Err(Status::Refused);
                }
            }
        }
        if runs {
            // Before the first file is made.
            machine::check(plan, &sets, front)?;
        }
        // Before anything is made: the marker says whether files of a set may have several names.
        let linked: HashSet<usize> = plan.threads().flat_map(|(_, thread)| thread.effects.links.clone()).collect();
        let has_links = |set: &usize| linked.contains(&plan.named(*set));
        (0..sets.len()).filter(has_links).for_each(|set| sets[set].allow_links());
        self.trees.places.extend(sets.iter().filter_map(|set| set.spec.root().parent().map(Path::to_owned)));
        // What bears a marker already is not this session's to take away, if it can't be worked on.
        let known = |root: &PathBuf| self.trees.sets.iter().any(|r| r.set.spec.root() == *root);
        let roots = sets.iter().map(|set| set.spec.root());
        let unmade: Vec<PathBuf> = roots.filter(|root| !known(root) && !prepare::is_marked(root)).collect();
        let prepared = match self.bring_to_disk(&sets, as_is, front) {
            Ok(prepared) => prepared,
            Err(status) => {
                // What came of them is not known.
                self.trees.sets.iter_mut().for_each(|ready| ready.stamp = None);
                self.leave_unfinished(unmade, front);
                return Err(status);
            }
        };
        self.trees.sets = sets
            .iter()
            .zip(prepared.iter().zip(keys).zip(changes))
            .map(|(set, ((prepared, made_from), changes))| {
                self.trees.roots.insert(set.spec.root(), data_of(&set.spec));
                let changed = changes || (as_is && !prepared.unchanged);
                let (set, prepared) = (Arc::clone(set), prepared.clone());
                ReadySet { set, prepared, made_from, changed, stamp: None }
            })
            .collect();
        Ok((sets, prepared.into_iter().map(Some).collect()))
    }

    /// Parts with sets that the plan does not have, or not as they were; a tree at the same place is looked at again.
    fn let_go_of_others(&mut self, plan: &Plan, keys: &[String], front: &mut dyn Front) {
        for ready in std::mem::take(&mut self.trees.sets) {
            if keys.contains(&ready.made_from) || plan.filesets.iter().any(|s| s.root() == ready.set.spec.root()) {
                self.trees.sets.push(ready);
            } else {
                self.let_go(&ready, front);
            }
        }
        self.trees.leftovers.retain(|left| plan.filesets.iter().all(|s| s.root() != left.root));
    }

    /// A set at the start of a run, by what is known of its tree.
    fn start_of(&self, spec: &FilesetSpec, key: &str, as_is: bool, changes: bool) -> Result<Fileset, Error> {
        let before = self.trees.sets.iter().find(|ready| ready.made_from == key);
        let known = before.and_then(|ready| ready.stamp.filter(|_| !ready.changed));
        let tree = match self.trees.roots.get(&spec.root()) {
            _ if as_is => Existing::Keep,
            // Directories that an earlier run has made go with its files.
            Some(data) if *data == data_of(spec) && !spec.late_dirs => Existing::Repair,
            _ => Existing::Replace,
        };
        let start = StartState { tree, known, changes };
        match before {
            Some(ready) => Ok(ready.set.again(start)),
            None => Ok(Fileset::open(spec.clone(), self.settings.layout_seed, self.settings.adopt)?.with_start(start)),
        }
    }

    /// Lets go of the sets after a run: between runs nothing of them is open or locked.
    pub fn release_sets(&mut self) {
        if self.trees.stalled {
            // Their file system does not answer.
            return;
        }
        let roots = self.trees.sets.iter().map(|ready| ready.set.spec.root()).collect();
        let _releasing = self.begin(Stage::CleanUp, "letting go of the file sets", roots);
        for ready in &mut self.trees.sets {
            if let Some(stamp) = ready.set.close() {
                ready.stamp = Some(stamp);
            }
        }
    }

    /// Something else may have changed the trees: the next run looks at them.
    pub fn distrust_sets(&mut self) {
        self.trees.sets.iter_mut().for_each(|ready| ready.stamp = None);
    }

    fn bring_to_disk(
        &mut self,
        sets: &[Arc<Fileset>],
        as_is: bool,
        front: &mut dyn Front,
    ) -> Result<Vec<Prepared>, Status> {
        if sets.is_empty() {
            return Ok(Vec::new());
        }
        limits::raise_descriptors(super::machine::MOST_DESCRIPTORS);
        let options = prepare::PrepareOptions {
            threads: self.settings.populate_threads,
            quiesce: self.settings.quiesce && (self.trees.wrote || sets.iter().any(|set| !set.is_known())),
            adopt: self.settings.adopt,
            data_seed: self.settings.seed,
            ..prepare::PrepareOptions::default()
        };
        let watch = std::sync::Arc::clone(&self.watch);
        let progress = Watched { watch: &watch, progress: front.progress() };
        match self.interruptible(|stop| prepare::prepare(sets, &options, &progress, stop)) {
            Ok(prepared) => {
                self.trees.wrote &= !options.quiesce;
                prepared.iter().filter_map(|set| set.note.as_deref()).for_each(|note| front.note(note));
                if let Some(line) = changes_line(&prepared, as_is) {
                    front.note(&line);
                }
                Ok(prepared)
            }
            Err(_) if self.signal() != 0 => {
                front.note("interrupted while files were made: there was no run");
                Err(Status::Interrupted(self.signal()))
            }
            Err(e) => {
                front.error(Some(e.code()), &e.to_string(), e.help().as_deref());
                Err(Status::Refused)
            }
        }
    }
}

/// The directories that a `path=` names: one, or several with colons between them, each of which begins as a path does.
fn directories(text: &str) -> Vec<&Path> {
    let parts: Vec<&str> = text.split(':').collect();
    let begins = |part: &&str| ["/", "./", "../"].iter().any(|start| part.starts_with(start));
    match parts.len() > 1 && parts[1..].iter().all(begins) && !Path::new(text).exists() {
        true => parts.into_iter().map(Path::new).collect(),
        false => vec![Path::new(text)],
    }
}

/// An entry of a missing path's parent whose name is near its own.
fn near_path(path: &Path) -> Option<PathBuf> {
    /// More names are not looked at: it is a courtesy.
    const MOST: usize = 1000;
    let parent = path.parent().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p })?;
    let entries = std::fs::read_dir(parent).ok()?.take(MOST).flatten();
    let names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let name = path.file_name()?.to_string_lossy().into_owned();
    Some(path.with_file_name(crate::diag::nearest(&name, names.iter().map(String::as_str))?))
}

/// What a file's data is like: files of other data are not the same files.
fn data_of(spec: &FilesetSpec) -> String {
    format!("{:?} {:?}", spec.compress, spec.dedupe)
}

/// What bringing trees that were there to their definitions took, if anything; or that they were left as they are.
fn changes_line(prepared: &[Prepared], as_is: bool) -> Option<String> {
    let there: Vec<&Prepared> = prepared.iter().filter(|set| set.reused).collect();
    if as_is && !there.is_empty() {
        let files = there.iter().map(|set| set.files).sum();
        return Some(format!("file sets: left as they are, with {}", count(files, "file")));
    }
    let done = there.iter().fold(Repairs::default(), |all, set| all.and(set.repairs));
    if done.total() == 0 {
        return None;
    }
    let parts = [
        (done.made, "file", "made"),
        (done.resized, "file", "resized"),
        (done.removed, "file", "removed"),
        (done.directories_made, "directory", "made"),
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
    let seconds: f64 = there.iter().map(|set| set.populate_seconds).sum();
    Some(format!("file sets: {} in {}", words.join(", "), duration::seconds(seconds)))
}
