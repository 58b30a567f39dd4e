//! The caches around a run: brought to the state that is asked for, looked at before and after, and what the devices at the
//! bottom moved in between. Only what was measured is claimed.
//!
//! Deliberately absent: how a file is evicted or looked at (`disk::cache`), and words about it (`report`).

use super::bounded::bounded;
use crate::disk::cache::{self, Residency};
use crate::disk::{Error, Fileset, quiesce};
use crate::os::device::{self, DeviceStack, TransferredBytes};
use crate::os::fd;
use crate::plan::Plan;
use crate::result::{self, CacheState, DeviceBytes, Note, Run, Verdict};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A set of which no more is in memory is cold; pages of metadata and a file that somebody has mapped may stay.
const COLD: f64 = 0.01;
/// A set of which no less is in memory is warm.
const WARM: f64 = 0.99;
/// What the look before a run may take: it is not measured, and a disk of a thousand slow opens is still looked at.
const BEFORE: Duration = Duration::from_secs(30);
/// What the look after it may take: the report waits for it.
const AFTER: Duration = Duration::from_millis(150);
/// A device that moved no less of what was asked for served it.
const MOST: f64 = 0.9;
/// One that moved no more did not.
const LITTLE: f64 = 0.1;

/// The caches of a run's file sets, as they were before it.
pub(crate) struct Cache {
    pub(crate) state: CacheState,
    pub(crate) sets: Vec<SetCache>,
}

/// Those of one set.
pub(crate) struct SetCache {
    resident: Option<Residency>,
    /// It lies in memory: nothing is below.
    in_memory: bool,
    bottom: Option<DeviceStack>,
    /// What the devices had moved when the measurement began.
    moved: Option<TransferredBytes>,
}

impl SetCache {
    /// Nobody can tell what a cache below the file system holds.
    fn unknown_below(&self) -> bool {
        !self.in_memory && self.bottom.as_ref().is_none_or(|bottom| bottom.cached_below)
    }
}

impl Cache {
    /// Of an engine that touches no file.
    pub(crate) fn none() -> Self {
        Self { state: CacheState::AsIs, sets: Vec::new() }
    }

    /// The measurement begins now.
    pub(crate) fn start_counting(&mut self) {
        for set in &mut self.sets {
            set.moved = set.bottom.as_ref().and_then(DeviceStack::transferred);
        }
    }

    /// What the look before the run found, for the run's entry.
    pub(crate) fn describe(&self, run: &mut Run) {
        run.cache_state = self.state;
        for (entry, set) in run.filesets.iter_mut().zip(&self.sets) {
            entry.resident_before = set.resident.map(|r| r.part);
            entry.resident_before_interval = set.resident.map(|r| [r.low, r.high]);
        }
    }

    /// What the devices moved since the measurement began, held against what was asked for; and what is in memory now.
    /// What a file system does not say soon is not waited for; where threads are held in their calls (`held`) nothing is asked.
    pub(crate) fn conclude(&self, run: &mut Run, plan: &Plan, sets: &[Arc<Fileset>], seed: u64, held: bool) {
        let places: Vec<PathBuf> = run.environment.mounts.iter().map(|mount| PathBuf::from(&mount.path)).collect();
        let looked = if self.sets.is_empty() { Some(Found::default()) } else { look_after(sets, places, seed, held) };
        let (resident, free) = looked.unzip();
        for (mount, free) in run.environment.mounts.iter_mut().zip(free.into_iter().flatten()) {
            mount.free_after = free;
        }
        if resident.is_none() {
            let why = if held { "threads are still in a call" } else { "the file system did not answer" };
            let message = format!("the page cache after the run was not measured: {why}");
            run.warnings.push(Note { code: "not_looked_at".to_owned(), message });
        }
        let moved: Vec<Option<TransferredBytes>> =
            self.sets.iter().map(|set| Some(set.bottom.as_ref()?.transferred()?.since(set.moved?))).collect();
        for (id, entry) in run.filesets.iter_mut().enumerate().take(self.sets.len()) {
            entry.asked_bytes = asked(&run.flowops, plan, id);
        }
        for (id, set) in self.sets.iter().enumerate() {
            // Sets that share their devices share what those moved.
            let together = self.sets.iter().zip(&run.filesets).filter(|(other, _)| other.bottom == set.bottom);
            let sum = together.fold(DeviceBytes::default(), |sum, (_, entry)| DeviceBytes {
                read: sum.read + entry.asked_bytes.read,
                written: sum.written + entry.asked_bytes.written,
            });
            let entry = &mut run.filesets[id];
            entry.device_bytes = moved[id].map(|moved| DeviceBytes { read: moved.read, written: moved.written });
            let after = resident.as_ref().and_then(|all| *all.get(id)?);
            entry.resident_after = after.map(|r| r.part);
            entry.resident_after_interval = after.map(|r| [r.low, r.high]);
            let stayed =
                [entry.resident_before, entry.resident_after].iter().all(|part| part.is_some_and(|p| p >= MOST));
            entry.verdict = verdict(set, &entry.asked_bytes, &sum, moved[id], stayed);
        }
    }
}

/// What of each set is in memory, and what is free at each place.
type Found = (Vec<Option<Residency>>, Vec<Option<u64>>);

/// Looks at both; `None` if a file system does not say soon. A set whose files go away just now has nothing in memory.
fn look_after(sets: &[Arc<Fileset>], places: Vec<PathBuf>, seed: u64, held: bool) -> Option<Found> {
    if held {
        return None;
    }
    let sets = sets.to_vec();
    let resident = move |set: &Arc<Fileset>| cache::residency(set, seed, AFTER).ok().flatten();
    bounded(AFTER * 2, move || {
        let free = places.iter().map(|place| fd::statvfs_path(place).ok().map(|space| space.free)).collect();
        (sets.iter().map(resident).collect(), free)
    })
}

/// Bytes that the flowops of a set moved.
fn asked(flowops: &[result::FlowopResult], plan: &Plan, set: usize) -> DeviceBytes {
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

/// Where the bytes were that a set was asked for: reads if there were any, else writes. `sum` is what all sets on its devices
/// were asked for. Of a set that `stayed` in memory all the time nothing need have been read, whatever the devices moved for
/// others; direct I/O may have, which nobody can tell.
fn verdict(
    set: &SetCache,
    own: &DeviceBytes,
    sum: &DeviceBytes,
    moved: Option<TransferredBytes>,
    stayed: bool,
) -> Option<Verdict> {
    let reads = own.read > 0;
    let (own, sum, moved) = match (own.read, own.written) {
        (0, 0) => return None,
        (0, _) => (own.written, sum.written, moved.map(|m| m.written)),
        _ => (own.read, sum.read, moved.map(|m| m.read)),
    };
    if set.in_memory {
        return Some(Verdict::Memory);
    }
    if set.unknown_below() {
        return Some(Verdict::UnknownBelow);
    }
    // What the devices moved may have been all for this set, or as little as the other sets leave of it.
    let moved = moved?;
    let (least, most) = (moved.saturating_sub(sum - own).min(own), moved.min(own));
    let share = |part: u64| part as f64 / own as f64;
    match () {
        () if share(least) >= MOST && stayed && reads => None,
        () if share(least) >= MOST => Some(Verdict::Device),
        () if share(most) <= LITTLE => Some(Verdict::Memory),
        () if sum == own => Some(Verdict::Both),
        () => None,
    }
}

/// The caches of a set as they are.
pub(crate) fn look(set: &Arc<Fileset>, seed: u64) -> Result<SetCache, Error> {
    let root = set.spec.root();
    Ok(SetCache {
        resident: cache::residency(set, seed, BEFORE)?,
        in_memory: quiesce::in_memory(&root),
        bottom: device::stack_below(&root),
        moved: None,
    })
}

/// The state of one set; `None` for one that has nothing in it and of which nothing is asked.
pub(crate) fn state(wish: Option<bool>, set: &SetCache) -> Option<CacheState> {
    let part = set.resident.map(|r| r.part);
    Some(match (wish, part) {
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

/// The state of all: what they have in common.
pub(crate) fn all(mut states: impl Iterator<Item = CacheState>) -> CacheState {
    use CacheState::{AsIs, Cold, UnknownBelow};
    let Some(first) = states.next() else { return AsIs };
    states.fold(first, |all, one| match (all, one) {
        (all, one) if all == one => all,
        (Cold, UnknownBelow) | (UnknownBelow, Cold) => UnknownBelow,
        _ => AsIs,
    })
}

/// What to say of a set that is not in the state that was asked for. That tmpfs can't be cold is said elsewhere.
pub(crate) fn missed(set: &Fileset, wish: Option<bool>, looked: &SetCache) -> Option<String> {
    let part = looked.resident?.part;
    let name = &set.spec.name;
    match wish {
        Some(false) if part > COLD && !looked.in_memory => {
            Some(format!("`{name}` was evicted, but {:.0} % of it stays in memory", part * 100.0))
        }
        Some(true) if part < WARM => {
            Some(format!("`{name}` was read in, but only {:.0} % of it stays in memory", part * 100.0))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn disk(cached_below: bool, part: f64) -> SetCache {
        let bottom = DeviceStack { devices: vec!["sda".into()], layers: Vec::new(), cached_below };
        SetCache { resident: Some(resident(part)), in_memory: false, bottom: Some(bottom), moved: None }
    }

    fn resident(part: f64) -> Residency {
        Residency { part, low: part, high: part, files: 1, method: cache::Method::Cachestat }
    }

    #[test]
    fn only_what_was_measured_is_claimed() {
        assert_eq!(state(Some(false), &disk(false, 0.0)), Some(CacheState::Cold));
        assert_eq!(state(Some(false), &disk(false, 0.5)), Some(CacheState::AsIs), "evicted, and still there");
        assert_eq!(state(Some(false), &disk(true, 0.0)), Some(CacheState::UnknownBelow), "a buffered loop");
        assert_eq!(state(Some(true), &disk(true, 1.0)), Some(CacheState::Warm), "what is below does not matter then");
        assert_eq!(state(Some(true), &disk(false, 0.5)), Some(CacheState::AsIs), "larger than memory");
        assert_eq!(state(None, &disk(false, 0.0)), Some(CacheState::AsIs), "not asked for");
        let network = SetCache { resident: Some(resident(0.0)), in_memory: false, bottom: None, moved: None };
        assert_eq!(state(Some(false), &network), Some(CacheState::UnknownBelow), "a server has a cache too");
        let empty = SetCache { resident: None, ..disk(false, 0.0) };
        assert_eq!(state(None, &empty), None);
        assert_eq!(state(Some(false), &empty), Some(CacheState::Cold));
    }

    #[test]
    fn a_run_is_in_the_state_that_its_sets_share() {
        use CacheState::{AsIs, Cold, UnknownBelow, Warm};
        assert_eq!(all([].into_iter()), AsIs);
        assert_eq!(all([Cold, Cold].into_iter()), Cold);
        assert_eq!(all([Cold, UnknownBelow].into_iter()), UnknownBelow);
        assert_eq!(all([Warm, Cold].into_iter()), AsIs);
        assert_eq!(all([Warm, AsIs].into_iter()), AsIs);
    }

    #[test]
    fn the_verdict_holds_bytes_asked_against_bytes_moved() {
        let set = disk(false, 0.0);
        let bytes = |read, written| DeviceBytes { read, written };
        let of = |own: &DeviceBytes, moved| verdict(&set, own, own, Some(moved), false);
        let moved = |read, written| TransferredBytes { read, written };
        assert_eq!(of(&bytes(100, 0), moved(101, 7)), Some(Verdict::Device));
        assert_eq!(of(&bytes(100, 0), moved(3, 100)), Some(Verdict::Memory));
        assert_eq!(of(&bytes(100, 50), moved(40, 50)), Some(Verdict::Both));
        assert_eq!(of(&bytes(0, 50), moved(0, 60)), Some(Verdict::Device), "writes only");
        assert_eq!(of(&bytes(0, 0), moved(9, 9)), None, "nothing was asked for");
        // Two sets on one device: what it moved may have been for either.
        let beside = |read| verdict(&set, &bytes(100, 0), &bytes(1000, 0), Some(moved(read, 0)), false);
        assert_eq!(beside(100), None);
        assert_eq!(beside(5), Some(Verdict::Memory));
        assert_eq!(beside(1000), Some(Verdict::Device));
        assert_eq!(verdict(&set, &bytes(100, 0), &bytes(100, 0), None, false), None, "a device that does not count");
        let stayed = |own: &DeviceBytes| verdict(&set, own, own, Some(moved(900, 900)), true);
        assert_eq!(stayed(&bytes(100, 0)), None, "read by others, or by direct I/O");
        assert_eq!(stayed(&bytes(0, 100)), Some(Verdict::Device), "what is written stays in memory too");
        assert_eq!(
            verdict(&disk(true, 0.0), &bytes(1, 0), &bytes(1, 0), Some(moved(1, 0)), false),
            Some(Verdict::UnknownBelow)
        );
    }
}
