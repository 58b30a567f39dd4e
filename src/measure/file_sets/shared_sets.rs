//! The preparation of file sets, by one rank or several.
//!
//! The ranks that share a tree are a group. Its first rank takes and locks the root, decides what to do with the tree by
//! the rules of a single rank, and does it, except that each rank of the group creates its own part of the files of a
//! new tree. Between these steps all ranks exchange their outcomes. Not here: the work on the trees (`disk`).

use super::trees::{DefinitionKey, ReadySet};
use super::{FileSets, PrepareRequest, Purpose};
use crate::diag::{Code, Diagnostic, Failure};
use crate::disk::prepare::{self, Preparation, PrepareOptions, Prepared};
use crate::disk::shared::TreeReport;
use crate::disk::space_sums;
use crate::disk::{Error, Fileset, NotShared, StartState};
use crate::fileset::{FilesetSpec, Interleave};
use crate::measure::Front;
use crate::measure::machine::{self, RankMemory};
use crate::os::limits;
use crate::plan::Plan;
use crate::ranks::Together;
use crate::spec::Sharing;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What the other ranks must know of a file set of a rank.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct SetKey {
    pub(super) root: String,
    /// A hash of the definition.
    definition: u64,
    /// Whether the run changes the tree.
    changes: bool,
}

impl SetKey {
    pub(super) fn of(spec: &FilesetSpec, changes: bool) -> Self {
        Self { root: root_text(spec), definition: DefinitionKey::of(spec).hashed(), changes }
    }
}

/// Returns the root of a set as text, which messages contain.
fn root_text(spec: &FilesetSpec) -> String {
    spec.root().to_string_lossy().into_owned()
}

/// What the other ranks must know of a rank that has taken the roots of its trees.
#[derive(Serialize, Deserialize)]
pub(super) struct TakenRoots {
    /// The trees that it prepares, by their roots.
    pub(super) trees: BTreeMap<String, TreeReport>,
    pub(super) memory: RankMemory,
}

/// The ranks that share the tree of a set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SharingGroup {
    /// Their numbers, in order. The first one prepares the tree.
    ranks: Vec<usize>,
    /// The position of this rank.
    at: usize,
    sharing: Sharing,
    /// Whether a run of one of them changes the tree.
    pub(super) changes: bool,
    /// Whether each has a part of the files and of the leaf directories. Otherwise there are fewer of one kind than ranks,
    /// and all use all.
    in_parts: bool,
}

impl SharingGroup {
    /// Returns the group of a set, given the sets of all ranks by their roots. The error is a rank of which a set with
    /// the same root has another definition.
    pub(super) fn of(
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

    /// True if this rank prepares the tree.
    pub(super) fn is_first(&self) -> bool {
        self.at == 0
    }

    /// True if other ranks have the tree too.
    pub(super) fn is_shared(&self) -> bool {
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
pub(super) struct RankSet {
    pub(super) group: SharingGroup,
    /// The whole tree, on the first rank of the group.
    pub(super) whole: Option<Arc<Fileset>>,
    /// The files that the run uses. The same as `whole` if this rank uses all files of a tree that it prepares.
    pub(super) used: Arc<Fileset>,
    /// The files that this rank creates, if they are others.
    created: Option<Arc<Fileset>>,
    /// Duration of their creation in seconds.
    seconds: f64,
}

impl RankSet {
    /// Returns a set of this rank, according to what is known of its tree. `before`: the set of the last plan with the
    /// same definition.
    fn open(
        files: &FileSets,
        spec: &FilesetSpec,
        group: SharingGroup,
        before: Option<&ReadySet>,
        as_is: bool,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        let (real, seed) = (files.settings.engine.real(), files.settings.layout_seed);
        let part = |part: Interleave| match before.filter(|ready| ready.set.tree.part() == part && ready.is_shared) {
            Some(ready) => Ok(Arc::new(ready.set.again(StartState::default()))),
            None => Fileset::part_of(spec.clone(), seed, part).map(Arc::new),
        };
        let whole = if group.is_first() && real {
            let start = files.start_state(spec, before, as_is, group.changes);
            let whole = match before.and_then(ReadySet::owner) {
                Some(whole) => whole.again(start),
                None => Fileset::open(spec.clone(), seed, files.settings.adopt, stop)?.with_start(start),
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
        Ok(Self { group, whole, used, created, seconds: 0.0 })
    }

    /// Returns what counts for this rank, which has not prepared the tree: the sums of all ranks are those of the tree.
    fn own_part(&self, part: Prepared) -> Prepared {
        let (files, bytes) = if self.group.in_parts { (part.files, part.bytes) } else { (0, 0) };
        Prepared { files, bytes, directories: 0, ..part }
    }

    /// True if the run uses the tree by an open root of its own, beside the locked one of the first rank.
    fn opens_shared(&self) -> bool {
        self.whole.as_ref().is_none_or(|whole| !Arc::ptr_eq(whole, &self.used))
    }
}

/// The file sets of this rank while they are prepared.
#[derive(Default)]
pub(super) struct SharedWork {
    pub(super) sets: Vec<RankSet>,
    preparation: Option<Preparation>,
    /// What the ranks that prepared the trees have reported of them, in the order of `sets`.
    reports: Vec<TreeReport>,
}

impl SharedWork {
    /// Creates the sets of this rank, and takes the roots of those that it prepares.
    pub(super) fn begin(
        &mut self,
        files: &mut FileSets,
        plan: &Plan,
        groups: Vec<SharingGroup>,
        definitions: &[DefinitionKey],
        request: PrepareRequest,
        front: &mut dyn Front,
    ) -> Result<TakenRoots, Failure> {
        self.sets = files.on_disk(front, |_, stop| {
            let before = files.trees.by_definition();
            let wanted = plan.filesets.iter().zip(groups).zip(definitions);
            let open = |((spec, group), definition): ((&FilesetSpec, SharingGroup), &DefinitionKey)| {
                RankSet::open(files, spec, group, before.get(definition).copied(), request.as_is, stop)
            };
            wanted.map(open).collect()
        })?;
        let memory = RankMemory::of(plan, &self.used());
        match request.purpose {
            Purpose::Run => files.check_run(plan, &self.used(), front)?,
            Purpose::CreateOnly => machine::check(plan, &self.used())?,
        }
        if !files.settings.engine.real() {
            return Ok(TakenRoots { trees: BTreeMap::new(), memory });
        }
        let linked = plan.linked_sets();
        for (_, set) in self.sets.iter().enumerate().filter(|(at, _)| linked.contains(&plan.named(*at))) {
            let RankSet { whole, used, created, .. } = set;
            [whole.as_ref(), Some(used), created.as_ref()].into_iter().flatten().for_each(|set| set.allow_links());
        }
        let parents = self.sets.iter().filter_map(|set| set.used.spec.root().parent().map(Path::to_owned));
        files.trees.parent_dirs.extend(parents);
        let (wholes, options) = (self.wholes(), files.prepare_options());
        if !self.sets.is_empty() {
            limits::raise_descriptors(machine::MAX_DESCRIPTORS);
        }
        let several_hosts = files.settings.together.distinct_hosts() > 1;
        let begun = files.on_disk(front, |progress, stop| {
            let begun = Preparation::begin(&wholes, &options, progress, stop);
            begun.map_err(|e| if several_hosts { e.between_hosts() } else { e })
        })?;
        let preparation = self.preparation.insert(begun);
        if !files.settings.together.is_alone() {
            files.on_disk(front, |_, _| preparation.renew_tokens())?;
        }
        for (at, set) in self.sets.iter().filter(|set| set.whole.is_some()).enumerate() {
            if set.group.in_parts {
                preparation.create_in_parts(at);
            }
        }
        Ok(TakenRoots { trees: self.own_reports(), memory })
    }

    /// Performs the preparation after all roots are taken, given the reports of all ranks. Returns how each set was
    /// prepared.
    pub(super) fn prepare_trees(
        &mut self,
        files: &mut FileSets,
        mut taken: Vec<BTreeMap<String, TreeReport>>,
        as_is: bool,
        front: &mut dyn Front,
    ) -> Result<Vec<Option<Prepared>>, Failure> {
        let mut options = files.prepare_options();
        // What several ranks create on one file system.
        let (together, keep_free) = (files.settings.together.clone(), options.keep_free);
        let fit = |taken: &[BTreeMap<String, TreeReport>]| {
            let by_host = together.hosts().iter().zip(taken);
            let trees = by_host.flat_map(|(host, trees)| {
                trees.values().filter_map(|tree| Some((host.as_str(), tree.demand.as_ref()?)))
            });
            space_sums::check(trees, keep_free)
        };
        if fit(&taken).is_err() {
            // Only if it matters, as with one rank. All ranks have found the same.
            let measured = match &mut self.preparation {
                Some(preparation) => files.on_disk(front, |_, stop| preparation.measure_freed(stop)),
                None => Ok(()),
            };
            let measured = measured.map(|()| ((), self.own_reports()));
            taken = files.ranks.agree_with("the space", measured)?.1;
        }
        // The same directory on all ranks of a group. Checked before anything is changed.
        let fits = files.on_disk(front, |_, _| fit(&taken));
        let opened = fits.and_then(|()| self.open_trees(files, &taken, front));
        files.ranks.agree("the directories", opened)?;
        // The trees: removed, repaired, or their directories made.
        let performed = match &mut self.preparation {
            Some(preparation) => files.on_disk(front, |progress, stop| preparation.perform(&options, progress, stop)),
            None => Ok(()),
        };
        files.ranks.agree("the trees", performed)?;
        // The files.
        let created = self.create_parts(files, &options, front);
        files.ranks.agree("the files", created)?;
        let changed = self.reports.iter().any(|report| !report.unchanged);
        options.quiesce = files.settings.quiesce && !self.sets.is_empty() && (files.trees.wrote || changed);
        let completed = self.complete_trees(files, &options, as_is, front);
        files.ranks.agree("the complete trees", completed)
    }

    /// Opens the roots that other ranks have taken, and checks that no other rank has taken those of this one.
    fn open_trees(
        &mut self,
        files: &FileSets,
        reports: &[BTreeMap<String, TreeReport>],
        front: &mut dyn Front,
    ) -> Result<(), Failure> {
        if let Some(preparation) = self.preparation.as_ref().filter(|_| !files.settings.together.is_alone()) {
            files.on_disk(front, |_, _| preparation.check_tokens())?;
        }
        for set in &self.sets {
            let first = set.group.ranks.first().and_then(|first| reports.get(*first));
            let Some(report) = first.and_then(|reports| reports.get(&root_text(&set.used.spec))) else {
                return Err(Failure::failed("the rank that prepares a file set has not reported it", ""));
            };
            if set.opens_shared() {
                files.on_disk(front, |_, _| set.used.open_shared(report))?;
            }
            self.reports.push(report.clone());
        }
        Ok(())
    }

    /// Creates this rank's files in new trees.
    fn create_parts(
        &mut self,
        files: &FileSets,
        options: &PrepareOptions,
        front: &mut dyn Front,
    ) -> Result<(), Failure> {
        for (set, _) in self.sets.iter_mut().zip(&self.reports).filter(|(_, report)| report.in_parts) {
            let part = set.created.as_ref().unwrap_or(&set.used);
            set.seconds = files.on_disk(front, |progress, stop| set.used.create_part(part, options, progress, stop))?;
        }
        Ok(())
    }

    /// Completes the trees that this rank prepares, waits for its disks, and stores the roots in the sets. Returns how
    /// each set was prepared.
    fn complete_trees(
        &mut self,
        files: &mut FileSets,
        options: &PrepareOptions,
        as_is: bool,
        front: &mut dyn Front,
    ) -> Result<Vec<Option<Prepared>>, Failure> {
        if let Some(preparation) = &mut self.preparation {
            files.on_disk(front, |_, _| preparation.complete())?;
        }
        let sets = self.used();
        let waited = files.on_disk(front, |progress, stop| prepare::wait_for_disks(&sets, options, progress, stop))?;
        files.trees.wrote &= !options.quiesce;
        let mut parts = Vec::new();
        for (set, report) in self.sets.iter().zip(&self.reports) {
            parts.push(if set.opens_shared() {
                Some(files.on_disk(front, |progress, stop| {
                    set.used.prepared_part(report, set.seconds, options, progress, stop)
                })?)
            } else {
                None
            });
        }
        let wholes = self.preparation.take().map_or_else(Vec::new, |preparation| preparation.finish(waited));
        files.note_prepared(&wholes, as_is, front);
        let mut wholes = wholes.into_iter();
        let of_set = |(set, part): (&RankSet, Option<Prepared>)| {
            let whole = set.whole.as_ref().and_then(|_| wholes.next());
            match (whole, part) {
                (Some(whole), Some(part)) => Some(Prepared { files: part.files, bytes: part.bytes, ..whole }),
                (whole, part) => whole.or(part.map(|part| set.own_part(part).with_wait(waited))),
            }
        };
        Ok(self.sets.iter().zip(parts).map(of_set).collect())
    }

    /// Returns the trees that this rank prepares.
    pub(super) fn wholes(&self) -> Vec<Arc<Fileset>> {
        self.sets.iter().filter_map(|set| set.whole.clone()).collect()
    }

    /// Returns the reports of the trees that this rank prepares, by their roots.
    fn own_reports(&self) -> BTreeMap<String, TreeReport> {
        let reports = self.preparation.as_ref().map_or_else(Vec::new, Preparation::reports);
        self.wholes().iter().map(|set| root_text(&set.spec)).zip(reports).collect()
    }

    pub(super) fn used(&self) -> Vec<Arc<Fileset>> {
        self.sets.iter().map(|set| Arc::clone(&set.used)).collect()
    }

    /// Closes all roots after a failure. A tree whose creation has begun remains marked as incomplete.
    pub(super) fn abandon(self) {
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

/// Refuses a set that has the root of another rank's set with another definition. `others`: the rank for each set.
pub(super) fn refuse_other_definitions(plan: &Plan, others: &[Option<usize>]) -> Result<(), Failure> {
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
pub(super) fn shared_changes(plan: &Plan, groups: &[SharingGroup], purpose: Purpose) -> Vec<Diagnostic> {
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
