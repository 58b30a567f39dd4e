//! The caches of a run's file sets: their state before and after the run, and the bytes that the devices below
//! transferred in between. A state is reported only if it was measured.
//!
//! Not here: how files are evicted and their residency is read (`disk::cache`), and how it is presented (`report`).

use super::time_limit::with_timeout;
use crate::disk::cache::{self, Residency};
use crate::disk::{Error, Fileset, quiesce};
use crate::os::device::{self, DeviceStack, TransferredBytes};
use crate::os::fd;
use crate::plan::Plan;
use crate::result::{self, CacheState, DeviceBytes, Note, Run, Verdict};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A set is cold if at most this part of it is resident. Metadata pages and files that another process maps may remain.
const COLD: f64 = 0.01;
/// A set is warm if at least this part of it is resident.
const WARM: f64 = 0.99;
/// The time limit for reading residency before a run. It is not measured time, and suffices for a disk with a thousand
/// slow opens.
const TIMEOUT_BEFORE: Duration = Duration::from_secs(30);
/// The time limit for reading residency after a run. It delays the report.
const TIMEOUT_AFTER: Duration = Duration::from_millis(150);
/// A set is resident throughout a run if at least this part of it was resident before and after.
const RESIDENT_PART: f64 = 0.9;
/// A device did not serve a file set if it transferred at most this part of the requested bytes.
const SMALL_PART: f64 = 0.1;

/// The caches of a run's file sets before the run.
pub(crate) struct Cache {
    pub(crate) state: CacheState,
    pub(crate) sets: Vec<SetCache>,
}

/// The caches of one file set.
pub(crate) struct SetCache {
    resident: Option<Residency>,
    /// The set is in memory (tmpfs): there is no device below.
    in_memory: bool,
    stack: Option<DeviceStack>,
    /// The bytes that the devices had transferred when the measurement began.
    transferred: Option<TransferredBytes>,
}

impl SetCache {
    /// Returns whether a cache below the file system has unknown contents.
    fn unknown_below(&self) -> bool {
        !self.in_memory && self.stack.as_ref().is_none_or(|stack| stack.cached_below)
    }
}

impl Cache {
    /// Returns the value for an engine that accesses no files.
    pub(crate) fn none() -> Self {
        Self { state: CacheState::AsIs, sets: Vec::new() }
    }

    /// Reads the devices' counters at the start of the measurement.
    pub(crate) fn start_counting(&mut self) {
        for set in &mut self.sets {
            set.transferred = set.stack.as_ref().and_then(DeviceStack::transferred);
        }
    }

    /// Returns the devices on which the file systems of the sets are, without duplicates; none if one of them is on no
    /// visible device.
    pub(crate) fn devices(&self) -> Vec<String> {
        let stacks: Option<Vec<&DeviceStack>> = self.sets.iter().map(|set| set.stack.as_ref()).collect();
        let mut names: Vec<String> = stacks.into_iter().flatten().flat_map(|stack| stack.tops.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Copies the state before the run to the run's entry.
    pub(crate) fn describe(&self, run: &mut Run) {
        run.cache_state = self.state;
        for (entry, set) in run.filesets.iter_mut().zip(&self.sets) {
            entry.resident_before = set.resident.map(|r| r.part);
            entry.resident_before_interval = set.resident.map(|r| [r.low, r.high]);
        }
    }

    /// Completes the run's entry: the bytes transferred by the devices since the start of the measurement, compared
    /// with the requested bytes, and the residency now. A file system that does not answer soon is not waited for. If
    /// threads are still in their calls (`held`), no file system is accessed.
    pub(crate) fn conclude(&self, run: &mut Run, plan: &Plan, sets: &[Arc<Fileset>], seed: u64, held: bool) {
        let places: Vec<PathBuf> = run.environment.mounts.iter().map(|mount| PathBuf::from(&mount.path)).collect();
        let after =
            if self.sets.is_empty() { Some(CachesAfter::default()) } else { read_after(sets, places, seed, held) };
        let (resident, free) = after.unzip();
        for (mount, free) in run.environment.mounts.iter_mut().zip(free.into_iter().flatten()) {
            mount.free_after = free;
        }
        if resident.is_none() {
            let why = if held { "threads are still in a system call" } else { "the file system did not answer" };
            let message = format!("the page cache after the run was not measured: {why}");
            run.warnings.push(Note { code: "not_looked_at".to_owned(), message });
        }
        let transferred: Vec<Option<TransferredBytes>> =
            self.sets.iter().map(|set| Some(set.stack.as_ref()?.transferred()?.since(set.transferred?))).collect();
        for (id, entry) in run.filesets.iter_mut().enumerate().take(self.sets.len()) {
            entry.asked_bytes = requested_bytes(&run.flowops, plan, id);
        }
        for (id, set) in self.sets.iter().enumerate() {
            // Sets on the same devices share the bytes that these transferred.
            let together = self.sets.iter().zip(&run.filesets).filter(|(other, _)| other.stack == set.stack);
            let sum = together.fold(DeviceBytes::default(), |sum, (_, entry)| DeviceBytes {
                read: sum.read + entry.asked_bytes.read,
                written: sum.written + entry.asked_bytes.written,
            });
            let entry = &mut run.filesets[id];
            entry.device_bytes =
                transferred[id].map(|transferred| DeviceBytes { read: transferred.read, written: transferred.written });
            let residency = resident.as_ref().and_then(|all| *all.get(id)?);
            entry.resident_after = residency.map(|r| r.part);
            entry.resident_after_interval = residency.map(|r| [r.low, r.high]);
            let resident_throughout = [entry.resident_before, entry.resident_after]
                .iter()
                .all(|part| part.is_some_and(|p| p >= RESIDENT_PART));
            entry.verdict = verdict(set, &entry.asked_bytes, &sum, transferred[id], resident_throughout);
        }
    }
}

/// The residency of each set, and the free bytes of each mount.
type CachesAfter = (Vec<Option<Residency>>, Vec<Option<u64>>);

/// Reads both; `None` if a file system does not answer in time. A set whose files are being removed has no residency.
fn read_after(sets: &[Arc<Fileset>], places: Vec<PathBuf>, seed: u64, held: bool) -> Option<CachesAfter> {
    if held {
        return None;
    }
    let sets = sets.to_vec();
    let resident = move |set: &Arc<Fileset>| cache::residency(set, seed, TIMEOUT_AFTER).ok().flatten();
    with_timeout(TIMEOUT_AFTER * 2, move || {
        let free = places.iter().map(|place| fd::statvfs_path(place).ok().map(|space| space.free)).collect();
        (sets.iter().map(resident).collect(), free)
    })
}

/// Returns the bytes that the flowops of a set requested.
fn requested_bytes(flowops: &[result::FlowopResult], plan: &Plan, set: usize) -> DeviceBytes {
    let set = plan.named(set);
    let own =
        flowops.iter().zip(&plan.flowops).filter(|(flowop, info)| flowop.class.is_io() && info.sets.contains(&set));
    own.fold(DeviceBytes::default(), |mut sum, (flowop, _)| {
        if flowop.reads {
            sum.read += flowop.bytes;
        }
        if flowop.writes {
            sum.written += flowop.bytes;
        }
        sum
    })
}

/// Returns where the requested bytes of a set came from: the bytes read if there were any, else the bytes written.
/// `sum` is the number of bytes requested from all sets on the same devices. For a set that was resident all the time
/// (`resident_throughout`) reads from the devices need not have been for it. They may have been with direct I/O; so
/// there is no verdict.
fn verdict(
    set: &SetCache,
    own: &DeviceBytes,
    sum: &DeviceBytes,
    transferred: Option<TransferredBytes>,
    resident_throughout: bool,
) -> Option<Verdict> {
    let reads = own.read > 0;
    let (own, sum, transferred) = match (own.read, own.written) {
        (0, 0) => return None,
        (0, _) => (own.written, sum.written, transferred.map(|m| m.written)),
        _ => (own.read, sum.read, transferred.map(|m| m.read)),
    };
    if set.in_memory {
        return Some(Verdict::Memory);
    }
    if set.unknown_below() {
        return Some(Verdict::UnknownBelow);
    }
    // Of the bytes that the devices transferred, all or only those that the other sets do not account for may have been
    // for this set.
    let transferred = transferred?;
    let (least, most) = (transferred.saturating_sub(sum - own).min(own), transferred.min(own));
    let share = |part: u64| part as f64 / own as f64;
    match () {
        () if share(least) >= Verdict::DEVICE_PART && resident_throughout && reads => None,
        () if share(least) >= Verdict::DEVICE_PART => Some(Verdict::Device),
        () if share(most) <= SMALL_PART => Some(Verdict::Memory),
        () if sum == own => Some(Verdict::Both),
        () => None,
    }
}

/// Reads the current state of a set's caches.
pub(crate) fn inspect(set: &Arc<Fileset>, seed: u64) -> Result<SetCache, Error> {
    let root = set.spec.root();
    Ok(SetCache {
        resident: cache::residency(set, seed, TIMEOUT_BEFORE)?,
        in_memory: quiesce::in_memory(&root),
        stack: device::stack_below(&root),
        transferred: None,
    })
}

/// Returns the cache state of one set. `None` for an empty set without a requested state.
pub(crate) fn state_of(wanted: Option<bool>, set: &SetCache) -> Option<CacheState> {
    let part = set.resident.map(|r| r.part);
    Some(match (wanted, part) {
        (None, None) => return None,
        (None, Some(_)) => CacheState::AsIs,
        (Some(true), part) if part.is_none_or(|part| part >= WARM) => CacheState::Warm,
        (Some(false), part) if part.is_none_or(|part| part <= COLD) => {
            if set.unknown_below() {
                CacheState::UnknownBelow
            } else {
                CacheState::Cold
            }
        }
        (Some(_), _) => CacheState::AsIs,
    })
}

/// Returns the state that all sets share, or [`CacheState::AsIs`].
pub(crate) fn common_state(mut states: impl Iterator<Item = CacheState>) -> CacheState {
    use CacheState::{AsIs, Cold, UnknownBelow};
    let Some(first) = states.next() else { return AsIs };
    states.fold(first, |all, one| match (all, one) {
        (all, one) if all == one => all,
        (Cold, UnknownBelow) | (UnknownBelow, Cold) => UnknownBelow,
        _ => AsIs,
    })
}

/// Returns a note on a set that is not in the requested state. That a set on tmpfs can't be cold is reported by the
/// caller.
pub(crate) fn missed_state(set: &Fileset, wanted: Option<bool>, cache: &SetCache) -> Option<String> {
    let part = cache.resident?.part;
    let name = &set.spec.name;
    match wanted {
        Some(false) if part > COLD && !cache.in_memory => {
            Some(format!("`{name}` was evicted, but {:.0} % of it stays in memory", part * 100.0))
        }
        Some(true) if part < WARM => {
            Some(format!("`{name}` was read into the page cache, but only {:.0} % of it stays in memory", part * 100.0))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn disk(cached_below: bool, part: f64) -> SetCache {
        let stack = DeviceStack { devices: vec!["sda".into()], tops: Vec::new(), layers: Vec::new(), cached_below };
        SetCache { resident: Some(resident(part)), in_memory: false, stack: Some(stack), transferred: None }
    }

    fn resident(part: f64) -> Residency {
        Residency { part, low: part, high: part, files: 1, method: cache::Method::Cachestat }
    }

    #[test]
    fn only_a_measured_state_is_reported() {
        assert_eq!(state_of(Some(false), &disk(false, 0.0)), Some(CacheState::Cold));
        assert_eq!(state_of(Some(false), &disk(false, 0.5)), Some(CacheState::AsIs), "evicted, and still resident");
        assert_eq!(
            state_of(Some(false), &disk(true, 0.0)),
            Some(CacheState::UnknownBelow),
            "a loop device without direct I/O"
        );
        assert_eq!(
            state_of(Some(true), &disk(true, 1.0)),
            Some(CacheState::Warm),
            "caches below do not matter for a warm set"
        );
        assert_eq!(state_of(Some(true), &disk(false, 0.5)), Some(CacheState::AsIs), "larger than memory");
        assert_eq!(state_of(None, &disk(false, 0.0)), Some(CacheState::AsIs), "no state requested");
        let network = SetCache { resident: Some(resident(0.0)), in_memory: false, stack: None, transferred: None };
        assert_eq!(state_of(Some(false), &network), Some(CacheState::UnknownBelow), "a server has a cache too");
        let empty = SetCache { resident: None, ..disk(false, 0.0) };
        assert_eq!(state_of(None, &empty), None);
        assert_eq!(state_of(Some(false), &empty), Some(CacheState::Cold));
    }

    #[test]
    fn the_state_of_a_run_is_that_of_all_its_sets() {
        use CacheState::{AsIs, Cold, UnknownBelow, Warm};
        assert_eq!(common_state([].into_iter()), AsIs);
        assert_eq!(common_state([Cold, Cold].into_iter()), Cold);
        assert_eq!(common_state([Cold, UnknownBelow].into_iter()), UnknownBelow);
        assert_eq!(common_state([Warm, Cold].into_iter()), AsIs);
        assert_eq!(common_state([Warm, AsIs].into_iter()), AsIs);
    }

    #[test]
    fn the_verdict_compares_requested_and_transferred_bytes() {
        let set = disk(false, 0.0);
        let bytes = |read, written| DeviceBytes { read, written };
        let verdict_of = |own: &DeviceBytes, transferred| verdict(&set, own, own, Some(transferred), false);
        let transferred = |read, written| TransferredBytes { read, written };
        assert_eq!(verdict_of(&bytes(100, 0), transferred(101, 7)), Some(Verdict::Device));
        assert_eq!(verdict_of(&bytes(100, 0), transferred(3, 100)), Some(Verdict::Memory));
        assert_eq!(verdict_of(&bytes(100, 50), transferred(40, 50)), Some(Verdict::Both));
        assert_eq!(verdict_of(&bytes(0, 50), transferred(0, 60)), Some(Verdict::Device), "writes only");
        assert_eq!(verdict_of(&bytes(0, 0), transferred(9, 9)), None, "no bytes requested");
        // Two sets on one device: the transferred bytes may have been for either.
        let beside = |read| verdict(&set, &bytes(100, 0), &bytes(1000, 0), Some(transferred(read, 0)), false);
        assert_eq!(beside(100), None);
        assert_eq!(beside(5), Some(Verdict::Memory));
        assert_eq!(beside(1000), Some(Verdict::Device));
        assert_eq!(verdict(&set, &bytes(100, 0), &bytes(100, 0), None, false), None, "a device without statistics");
        let resident_throughout = |own: &DeviceBytes| verdict(&set, own, own, Some(transferred(900, 900)), true);
        assert_eq!(resident_throughout(&bytes(100, 0)), None, "read for other files, or with direct I/O");
        assert_eq!(resident_throughout(&bytes(0, 100)), Some(Verdict::Device), "written pages remain resident");
        assert_eq!(
            verdict(&disk(true, 0.0), &bytes(1, 0), &bytes(1, 0), Some(transferred(1, 0)), false),
            Some(Verdict::UnknownBelow)
        );
    }
}
