//! The preparation of file sets, by one rank or several.
//!
//! A session remembers the trees that it has worked on. Before each run, every set is brought to its definition, by
//! repair where its tree is known. A tree that no run has changed since, according to the operations of the plan and
//! the stamp in its marker, is not scanned.
//!
//! The ranks that share a tree are a group. Its first rank takes and locks the root, decides what to do with the tree by
//! the rules of a single rank, and does it, except that each rank of the group creates its own part of the files of a
//! new tree. Between these steps all ranks exchange their outcomes. Not here: the work on the trees (`disk`).

use super::machine::{self, RankMemory};
use super::preparation::{OnDisk, PrepareRequest, Purpose};
use super::trees::{DefinitionKey, ReadySet};
use super::{Front, Runner, Status};
use crate::diag::{Code, Diagnostic, Failure};
use crate::disk::prepare::{self, Preparation, PrepareOptions, Prepared};
use crate::disk::shared::TreeReport;
use crate::disk::space_sums;
use crate::disk::{Error, Fileset, NotShared, StartState};
use crate::fileset::{FilesetSpec, Interleave};
use crate::os::limits;
use crate::os::signals::Kept;
use crate::plan::Plan;
use crate::ranks::Together;
use crate::source::SourceMap;
use crate::spec::Sharing;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What the other ranks must know of a file set of a rank.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct SetKey {
    root: String,
    /// A hash of the definition.
    definition: u64,
    /// Whether the run changes the tree.
    changes: bool,
}

impl SetKey {
    fn of(spec: &FilesetSpec, changes: bool) -> Self {
        Self { root: root_text(spec), definition: DefinitionKey::of(spec).hashed(), changes }
    }
}

/// Returns the root of a set as text, which messages contain.
fn root_text(spec: &FilesetSpec) -> String {
    spec.root().to_string_lossy().into_owned()
}

/// What the other ranks must know of a rank that has taken the roots of its trees.
#[derive(Serialize, Deserialize)]
struct TakenRoots {
    /// The trees that it prepares, by their roots.
    trees: BTreeMap<String, TreeReport>,
    memory: RankMemory,
}

/// The ranks that share the tree of a set.
#[derive(Clone, PartialEq, Eq, Debug)]
struct SharingGroup {
    /// Their numbers, in order. The first one prepares the tree.
    ranks: Vec<usize>,
    /// The position of this rank.
    at: usize,
    sharing: Sharing,
    /// Whether a run of one of them changes the tree.
    changes: bool,
    /// Whether each has a part of the files and of the leaf directories. Otherwise there are fewer of one kind than ranks,
    /// and all use all.
    in_parts: bool,
}

impl SharingGroup {
    /// Returns the group of a set, given the sets of all ranks by their roots. The error is a rank of which a set with
    /// the same root has another definition.
    fn of(
        spec: &FilesetSpec,
        default: Sharing,
        together: &Together,
        keys: &[HashMap<&str, &SetKey>],
    ) -> (Self, Option<usize>) {
        let sharing = spec.share.unwrap_or(default);
        let (root, own) = (root_text(spec), SetKey::of(spec, false).definition);
        let shares = |rank: &usize| {
            sharing != Sharing::Host || together.hosts().get(*rank).is_some_and(|h| h == together.host())
        };
        let (mut group, mut changes, mut other) = (Vec::new(), false, None);
        for rank in (0..keys.len()).filter(shares) {
            match keys[rank].get(root.as_str()) {
                // Two sets of a rank with one root are refused when it is taken.
                Some(key) if rank == together.rank() || key.definition == own => {
                    group.push(rank);
                    changes |= key.changes;
                }
                Some(_) => other = other.or(Some(rank)),
                None => {}
            }
        }
        let n = group.len() as u64;
        let enough = |members: u64| members == 0 || members >= n;
        let in_parts = n > 1 && enough(spec.entries) && enough(spec.leafdirs);
        let at = group.iter().position(|rank| *rank == together.rank()).unwrap_or(0);
        (Self { ranks: group, at, sharing, changes, in_parts }, other)
    }

    /// Returns whether this rank prepares the tree.
    fn is_first(&self) -> bool {
        self.at == 0
    }

    /// Returns whether other ranks have the tree too.
    fn is_shared(&self) -> bool {
        self.ranks.len() > 1
    }

    /// Returns the files that this rank creates in a new tree.
    fn created(&self) -> Interleave {
        if self.in_parts { Interleave::part(self.at as u64, self.ranks.len() as u64) } else { Interleave::WHOLE }
    }

    /// Returns the files that this rank uses.
    fn used(&self) -> Interleave {
        let n = self.ranks.len() as u64;
        match self.sharing {
            Sharing::Neighbour if self.in_parts => Interleave::part((self.at as u64 + 1) % n, n),
            _ => self.created(),
        }
    }
}

/// A file set of this rank while it is prepared.
struct RankSet {
    group: SharingGroup,
    /// The whole tree, on the first rank of the group.
    whole: Option<Arc<Fileset>>,
    /// The files that the run uses. The same as `whole` if this rank uses all files of a tree that it prepares.
    used: Arc<Fileset>,
    /// The files that this rank creates, if they are others.
    created: Option<Arc<Fileset>>,
    /// Duration of their creation in seconds.
    seconds: f64,
}

impl RankSet {
    /// Returns what counts for this rank, which has not prepared the tree: the sums of all ranks are those of the tree.
    fn own_part(&self, part: Prepared) -> Prepared {
        let (files, bytes) = if self.group.in_parts { (part.files, part.bytes) } else { (0, 0) };
        Prepared { files, bytes, directories: 0, ..part }
    }

    /// Returns whether the run uses the tree by an open root of its own, beside the locked one of the first rank.
    fn opens_shared(&self) -> bool {
        self.whole.as_ref().is_none_or(|whole| !Arc::ptr_eq(whole, &self.used))
    }
}

/// The file sets of this rank while they are prepared.
#[derive(Default)]
struct SharedWork {
    sets: Vec<RankSet>,
    preparation: Option<Preparation>,
    /// What the ranks that prepared the trees have reported of them, in the order of `sets`.
    reports: Vec<TreeReport>,
}

impl SharedWork {
    /// Returns the trees that this rank prepares.
    fn wholes(&self) -> Vec<Arc<Fileset>> {
        self.sets.iter().filter_map(|set| set.whole.clone()).collect()
    }

    /// Returns the reports of the trees that this rank prepares, by their roots.
    fn own_reports(&self) -> BTreeMap<String, TreeReport> {
        let reports = self.preparation.as_ref().map_or_else(Vec::new, Preparation::reports);
        self.wholes().iter().map(|set| root_text(&set.spec)).zip(reports).collect()
    }

    fn used(&self) -> Vec<Arc<Fileset>> {
        self.sets.iter().map(|set| Arc::clone(&set.used)).collect()
    }

    /// Closes all roots after a failure. A tree whose creation has begun remains marked as incomplete.
    fn abandon(self) {
        for set in &self.sets {
            set.used.close();
            if let Some(whole) = &set.whole {
                whole.close();
            }
        }
        if let Some(preparation) = self.preparation {
            preparation.abandon();
        }
    }
}

impl Runner {
    /// Prepares the plan's sets. Trees that this session knows are repaired in place. All ranks call this, and all return
    /// with the same status. `map`: the source texts of the plan.
    pub(super) fn prepare(
        &mut self,
        plan: &Plan,
        request: PrepareRequest,
        map: &SourceMap,
        front: &mut dyn Front,
    ) -> Result<OnDisk, Failure> {
        self.kept.get_or_insert_with(Kept::begin);
        let definitions: Vec<DefinitionKey> = plan.filesets.iter().map(DefinitionKey::of).collect();
        let PrepareRequest { purpose, as_is } = request;
        let changes = purpose.changes(plan);
        let own: Vec<SetKey> = plan.filesets.iter().zip(&changes).map(|(spec, c)| SetKey::of(spec, *c)).collect();
        let checked = self.check_sets(plan, front);
        let ((), keys) = self.agree_with("the file sets", checked.map(|()| ((), own)))?;
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
            self.begin_sets(&mut work, plan, groups, &definitions, request, front)
        });
        let begun = self.agree_with("the roots", begun.map(|taken| ((), taken)));
        let done = begun.and_then(|((), taken)| {
            let needs: Vec<RankMemory> = taken.iter().map(|taken| taken.memory).collect();
            let enough = machine::check_memory_of_ranks(&needs, self.settings.together.hosts());
            self.agree("the memory", enough)?;
            if !real {
                return Ok(work.sets.iter().map(|_| None).collect());
            }
            self.prepare_trees(&mut work, taken.into_iter().map(|taken| taken.trees).collect(), as_is, front)
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
    pub(super) fn check_sets(&mut self, plan: &Plan, front: &mut dyn Front) -> Result<(), Failure> {
        self.check_outputs_in_place(front)?;
        if !self.settings.engine.real() {
            return Ok(());
        }
        self.check_file_systems(plan)?;
        self.outputs_outside(plan)
    }

    /// Creates the sets of this rank, and takes the roots of those that it prepares.
    fn begin_sets(
        &mut self,
        work: &mut SharedWork,
        plan: &Plan,
        groups: Vec<SharingGroup>,
        definitions: &[DefinitionKey],
        request: PrepareRequest,
        front: &mut dyn Front,
    ) -> Result<TakenRoots, Failure> {
        work.sets = self.on_disk(front, |_, stop| {
            let before = self.trees.by_definition();
            let wanted = plan.filesets.iter().zip(groups).zip(definitions);
            let open = |((spec, group), definition): ((&FilesetSpec, SharingGroup), &DefinitionKey)| {
                self.rank_set(spec, group, before.get(definition).copied(), request.as_is, stop)
            };
            wanted.map(open).collect()
        })?;
        let memory = RankMemory::of(plan, &work.used());
        match request.purpose {
            Purpose::Run => self.check_run(plan, &work.used(), front)?,
            Purpose::CreateOnly => machine::check(plan, &work.used())?,
        }
        if !self.settings.engine.real() {
            return Ok(TakenRoots { trees: BTreeMap::new(), memory });
        }
        let linked = plan.linked_sets();
        for (_, set) in work.sets.iter().enumerate().filter(|(at, _)| linked.contains(&plan.named(*at))) {
            let RankSet { whole, used, created, .. } = set;
            [whole.as_ref(), Some(used), created.as_ref()].into_iter().flatten().for_each(|set| set.allow_links());
        }
        let parents = work.sets.iter().filter_map(|set| set.used.spec.root().parent().map(Path::to_owned));
        self.trees.parent_dirs.extend(parents);
        let (wholes, options) = (work.wholes(), self.prepare_options());
        if !work.sets.is_empty() {
            limits::raise_descriptors(machine::MAX_DESCRIPTORS);
        }
        let several_hosts = self.settings.together.distinct_hosts() > 1;
        let begun = self.on_disk(front, |progress, stop| {
            let begun = Preparation::begin(&wholes, &options, progress, stop);
            begun.map_err(|e| if several_hosts { e.between_hosts() } else { e })
        })?;
        let preparation = work.preparation.insert(begun);
        if !self.settings.together.is_alone() {
            self.on_disk(front, |_, _| preparation.renew_tokens())?;
        }
        for (at, set) in work.sets.iter().filter(|set| set.whole.is_some()).enumerate() {
            if set.group.in_parts {
                preparation.create_in_parts(at);
            }
        }
        Ok(TakenRoots { trees: work.own_reports(), memory })
    }

    /// Returns a set of this rank, according to what is known of its tree. `before`: the set of the last plan with the
    /// same definition.
    fn rank_set(
        &self,
        spec: &FilesetSpec,
        group: SharingGroup,
        before: Option<&ReadySet>,
        as_is: bool,
        stop: &AtomicBool,
    ) -> Result<RankSet, Error> {
        let (real, seed) = (self.settings.engine.real(), self.settings.layout_seed);
        let part = |part: Interleave| match before.filter(|ready| ready.set.tree.part() == part && ready.is_shared) {
            Some(ready) => Ok(Arc::new(ready.set.again(StartState::default()))),
            None => Fileset::part_of(spec.clone(), seed, part).map(Arc::new),
        };
        let whole = if group.is_first() && real {
            let start = self.start_state(spec, before, as_is, group.changes);
            let whole = match before.and_then(ReadySet::owner) {
                Some(whole) => whole.again(start),
                None => Fileset::open(spec.clone(), seed, self.settings.adopt, stop)?.with_start(start),
            };
            if whole.is_adopted() && group.is_shared() {
                let (set, path) = (spec.name.clone(), spec.root());
                return Err(Error::Shared { set, path, why: NotShared::Adopted });
            }
            Some(Arc::new(whole))
        } else {
            None
        };
        let (used, created) = match &whole {
            Some(whole) if !group.in_parts => (Arc::clone(whole), None),
            _ if !real || group.created() == group.used() => (part(group.used())?, None),
            _ => {
                let created = Fileset::part_of(spec.clone(), seed, group.created())?;
                (part(group.used())?, Some(Arc::new(created)))
            }
        };
        Ok(RankSet { group, whole, used, created, seconds: 0.0 })
    }

    /// Performs the preparation after all roots are taken, given the reports of all ranks. Returns how each set was
    /// prepared.
    fn prepare_trees(
        &mut self,
        work: &mut SharedWork,
        mut taken: Vec<BTreeMap<String, TreeReport>>,
        as_is: bool,
        front: &mut dyn Front,
    ) -> Result<Vec<Option<Prepared>>, Failure> {
        let mut options = self.prepare_options();
        // What several ranks create on one file system.
        let (together, keep_free) = (self.settings.together.clone(), options.keep_free);
        let fit = |taken: &[BTreeMap<String, TreeReport>]| {
            let by_host = together.hosts().iter().zip(taken);
            let trees = by_host.flat_map(|(host, trees)| {
                trees.values().filter_map(|tree| Some((host.as_str(), tree.demand.as_ref()?)))
            });
            space_sums::check(trees, keep_free)
        };
        if fit(&taken).is_err() {
            // Only if it matters, as with one rank. All ranks have found the same.
            let measured = match &mut work.preparation {
                Some(preparation) => self.on_disk(front, |_, stop| preparation.measure_freed(stop)),
                None => Ok(()),
            };
            let measured = measured.map(|()| ((), work.own_reports()));
            taken = self.agree_with("the space", measured)?.1;
        }
        // The same directory on all ranks of a group. Checked before anything is changed.
        let fits = self.on_disk(front, |_, _| fit(&taken));
        let opened = fits.and_then(|()| self.open_trees(work, &taken, front));
        self.agree("the directories", opened)?;
        // The trees: removed, repaired, or their directories made.
        let performed = match &mut work.preparation {
            Some(preparation) => self.on_disk(front, |progress, stop| preparation.perform(&options, progress, stop)),
            None => Ok(()),
        };
        self.agree("the trees", performed)?;
        // The files.
        let created = self.create_parts(work, &options, front);
        self.agree("the files", created)?;
        let changed = work.reports.iter().any(|report| !report.unchanged);
        options.quiesce = self.settings.quiesce && !work.sets.is_empty() && (self.trees.wrote || changed);
        let completed = self.complete_trees(work, &options, as_is, front);
        self.agree("the complete trees", completed)
    }

    /// Opens the roots that other ranks have taken, and checks that no other rank has taken those of this one.
    fn open_trees(
        &self,
        work: &mut SharedWork,
        reports: &[BTreeMap<String, TreeReport>],
        front: &mut dyn Front,
    ) -> Result<(), Failure> {
        if let Some(preparation) = work.preparation.as_ref().filter(|_| !self.settings.together.is_alone()) {
            self.on_disk(front, |_, _| preparation.check_tokens())?;
        }
        for set in &work.sets {
            let first = set.group.ranks.first().and_then(|first| reports.get(*first));
            let Some(report) = first.and_then(|reports| reports.get(&root_text(&set.used.spec))) else {
                return Err(Failure::failed("the rank that prepares a file set has not reported it", ""));
            };
            if set.opens_shared() {
                self.on_disk(front, |_, _| set.used.open_shared(report))?;
            }
            work.reports.push(report.clone());
        }
        Ok(())
    }

    /// Creates this rank's files in new trees.
    fn create_parts(
        &self,
        work: &mut SharedWork,
        options: &PrepareOptions,
        front: &mut dyn Front,
    ) -> Result<(), Failure> {
        for (set, _) in work.sets.iter_mut().zip(&work.reports).filter(|(_, report)| report.in_parts) {
            let part = set.created.as_ref().unwrap_or(&set.used);
            set.seconds = self.on_disk(front, |progress, stop| set.used.create_part(part, options, progress, stop))?;
        }
        Ok(())
    }

    /// Completes the trees that this rank prepares, waits for its disks, and stores the roots in the sets. Returns how
    /// each set was prepared.
    fn complete_trees(
        &mut self,
        work: &mut SharedWork,
        options: &PrepareOptions,
        as_is: bool,
        front: &mut dyn Front,
    ) -> Result<Vec<Option<Prepared>>, Failure> {
        if let Some(preparation) = &mut work.preparation {
            self.on_disk(front, |_, _| preparation.complete())?;
        }
        let sets = work.used();
        let waited = self.on_disk(front, |progress, stop| prepare::wait_for_disks(&sets, options, progress, stop))?;
        self.trees.wrote &= !options.quiesce;
        let mut parts = Vec::new();
        for (set, report) in work.sets.iter().zip(&work.reports) {
            parts.push(if set.opens_shared() {
                Some(self.on_disk(front, |progress, stop| {
                    set.used.prepared_part(report, set.seconds, options, progress, stop)
                })?)
            } else {
                None
            });
        }
        let wholes = work.preparation.take().map_or_else(Vec::new, |preparation| preparation.finish(waited));
        self.note_prepared(&wholes, as_is, front);
        let mut wholes = wholes.into_iter();
        let of_set = |(set, part): (&RankSet, Option<Prepared>)| {
            let whole = set.whole.as_ref().and_then(|_| wholes.next());
            match (whole, part) {
                (Some(whole), Some(part)) => Some(Prepared { files: part.files, bytes: part.bytes, ..whole }),
                (whole, part) => whole.or(part.map(|part| set.own_part(part).with_wait(waited))),
            }
        };
        Ok(work.sets.iter().zip(parts).map(of_set).collect())
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
}

/// Refuses a set that has the root of another rank's set with another definition. `others`: the rank for each set.
fn refuse_other_definitions(plan: &Plan, others: &[Option<usize>]) -> Result<(), Failure> {
    let Some((spec, _)) = plan.filesets.iter().zip(others).find(|(_, other)| other.is_some()) else { return Ok(()) };
    let (set, path) = (spec.name.clone(), spec.root());
    Err(Error::Shared { set, path, why: NotShared::OtherDefinition }.into())
}

/// Returns what a set needs so that `n` ranks can divide it: the kinds of members of which it has too few.
fn too_few(spec: &FilesetSpec, n: usize) -> String {
    let kinds = [(spec.entries, "files"), (spec.leafdirs, "leaf directories")];
    let few = kinds.into_iter().filter(|(members, _)| (1..n as u64).contains(members));
    few.map(|(_, kind)| format!("{n} {kind}")).collect::<Vec<_>>().join(" and ")
}

/// Returns errors for flowops that create, remove or rename files of a set with fewer files, or fewer leaf directories,
/// than ranks: a rank does not see such changes of another one.
fn shared_changes(plan: &Plan, groups: &[SharingGroup], purpose: Purpose) -> Vec<Diagnostic> {
    let runs = purpose == Purpose::Run;
    let common = groups.iter().enumerate().filter(|(_, group)| runs && group.is_shared() && !group.in_parts);
    let error = |(set, group): (usize, &SharingGroup)| {
        let flowop = plan.changer(set)?;
        let (name, kind, n) = (&plan.filesets[set].name, flowop.kind, group.ranks.len());
        let message = format!("`{kind}` changes which files of `{name}` exist, and {n} ranks use each of them");
        let help =
            format!("give the set at least {}, so that each rank has some of its own", too_few(&plan.filesets[set], n));
        Some(Diagnostic::error(Code::Unsupported, flowop.span, message).help(help))
    };
    common.filter_map(error).collect()
}

#[cfg(test)]
#[path = "shared_sets_tests.rs"]
mod tests;
