//! The caches of a run's file sets: their state before and after the run, and the bytes that the devices below
//! transferred in between. A state is reported only if it was measured.
//!
//! Not here: how files are evicted and their residency is read (`disk::cache`), and how it is presented (`report`).

use super::time_limit::with_timeout;
use crate::disk::cache::{self, Residency};
use crate::disk::{Error, Fileset, quiesce};
use crate::os::device::{self, DeviceStack, TransferredBytes};
use crate::os::fd;
use crate::plan::{self, FlowopInfo, Plan};
use crate::result::{CacheState, DeviceBytes, FlowopResult, Note, NoteCode, Run, Verdict};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Notes on sets that are not in the requested state.
    pub(crate) notes: Vec<Note>,
    /// The bytes that the program had made the devices transfer when the measurement began.
    pub(crate) by_program: Option<TransferredBytes>,
    /// The bytes that each device below the file systems had transferred when the measurement began.
    pub(crate) by_device: BTreeMap<String, TransferredBytes>,
}

/// The caches of one file set.
pub(crate) struct SetCache {
    resident: Option<Residency>,
    /// The set is in memory (tmpfs): there is no device below.
    in_memory: bool,
    stack: Option<DeviceStack>,
    /// The names of the devices below that are known, also if these are not all.
    layers: Vec<String>,
    /// The bytes that the devices had transferred when the measurement began.
    transferred: Option<TransferredBytes>,
}

/// What is known of the threads after a measurement, and with that, whether the file systems are examined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AfterRun {
    /// All threads have ended: the file systems are examined.
    Ended,
    /// The run goes on: the file systems are left alone, as an examination would disturb it.
    GoesOn,
    /// Threads are still in their calls: the file systems may not answer, and are not examined.
    Held,
}

impl SetCache {
    /// True if a cache below the file system has unknown contents.
    fn unknown_below(&self) -> bool {
        !self.in_memory && self.stack.as_ref().is_none_or(|stack| stack.cached_below)
    }
}

impl Cache {
    /// Returns the value for an engine that accesses no files.
    pub(crate) fn none() -> Self {
        Self {
            state: CacheState::AsIs,
            sets: Vec::new(),
            notes: Vec::new(),
            by_program: None,
            by_device: BTreeMap::new(),
        }
    }

    /// Reads the devices' counters at the start of the measurement.
    pub(crate) fn start_counting(&mut self) {
        self.by_program = device::transferred_by_program();
        let transferred = self.transferred();
        for (set, transferred) in self.sets.iter_mut().zip(transferred) {
            set.transferred = transferred;
        }
        let names: BTreeSet<&String> = self.sets.iter().flat_map(|set| &set.layers).collect();
        self.by_device = names.into_iter().filter_map(|name| Some((name.clone(), of_device(name)?))).collect();
    }

    /// Returns the bytes that the devices below each set have transferred. The counters of a device are read once: sets on
    /// one device have the same number, by which readers of a result know that it is to be counted once.
    fn transferred(&self) -> Vec<Option<TransferredBytes>> {
        let mut known: BTreeMap<&[String], Option<TransferredBytes>> = BTreeMap::new();
        let mut found = Vec::with_capacity(self.sets.len());
        for set in &self.sets {
            let devices = set.stack.as_ref().map(|stack| stack.devices.as_slice());
            let of_devices = |devices| *known.entry(devices).or_insert_with(|| device::transferred(devices));
            found.push(devices.and_then(of_devices));
        }
        found
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

    pub(crate) fn with_notes(mut self, notes: Vec<Note>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// Copies the state before the run to the run's entry, with the notes.
    pub(crate) fn describe(&self, run: &mut Run) {
        run.cache_state = self.state;
        run.warnings.extend(self.notes.iter().cloned());
        for (entry, set) in run.filesets.iter_mut().zip(&self.sets) {
            entry.resident_before = set.resident.map(|r| r.part);
            entry.resident_before_interval = set.resident.map(|r| [r.low, r.high]);
        }
    }

    /// Completes the run's entry: the bytes transferred by the devices since the start of the measurement, compared
    /// with the requested bytes, and the residency now. A file system that does not answer soon is not waited for.
    pub(crate) fn conclude(&self, run: &mut Run, plan: &Plan, sets: &[Arc<Fileset>], seed: u64, threads: AfterRun) {
        let places: Vec<PathBuf> = run.environment.mounts.iter().map(|mount| PathBuf::from(&mount.path)).collect();
        let (after, why) = match threads {
            _ if self.sets.is_empty() => (Some(CachesAfter::default()), None),
            AfterRun::Ended => {
                (read_after(sets, places, seed), Some("the file system was busy and did not answer in time"))
            }
            AfterRun::GoesOn => (None, None),
            AfterRun::Held => (None, Some("threads are still in a system call")),
        };
        let (resident, free) = after.unzip();
        for (mount, free) in run.environment.mounts.iter_mut().zip(free.into_iter().flatten()) {
            mount.free_after = free;
        }
        if let Some(why) = why.filter(|_| resident.is_none()) {
            let message = format!("the page cache after the run was not measured: {why}");
            run.warnings.push(NoteCode::NotLookedAt.note(message));
        }
        let now = self.transferred();
        let of_run = |(set, now): (&SetCache, Option<TransferredBytes>)| Some(now?.since(set.transferred?));
        let transferred: Vec<Option<TransferredBytes>> = self.sets.iter().zip(now).map(of_run).collect();
        let requested = self.requested_bytes(&run.flowops, plan);
        let by_program = device::transferred_by_program().zip(self.by_program).map(|(now, before)| now.since(before));
        let bytes = |moved: TransferredBytes| DeviceBytes { read: moved.read, written: moved.written };
        // The program of a file system in user space does the I/O, for which the kernel does not count this one's.
        let is_fuse = run.environment.mounts.iter().any(|mount| mount.kind.starts_with("fuse"));
        run.storage_bytes = by_program.filter(|_| !is_fuse).map(bytes);
        for device in run.environment.mounts.iter_mut().flat_map(|mount| &mut mount.devices) {
            let moved = of_device(&device.name).zip(self.by_device.get(&device.name));
            device.transferred = moved.map(|(now, before)| bytes(now.since(*before)));
        }
        for (id, (set, requested)) in self.sets.iter().zip(requested).enumerate() {
            let entry = &mut run.filesets[id];
            entry.device_bytes = transferred[id].map(bytes);
            let residency = resident.as_ref().and_then(|all| *all.get(id)?);
            entry.resident_after = residency.map(|r| r.part);
            entry.resident_after_interval = residency.map(|r| [r.low, r.high]);
            let resident_throughout = [entry.resident_before, entry.resident_after]
                .iter()
                .all(|part| part.is_some_and(|p| p >= RESIDENT_PART));
            // What the devices moved for other programs, or for earlier writes, says nothing about the run.
            let of_others = entry.device_bytes.as_ref().zip(run.storage_bytes.as_ref()).is_some_and(|(moved, own)| {
                if requested.named.read > 0 {
                    moved.are_mostly_read_by_others(own)
                } else {
                    moved.are_mostly_written_by_others(own)
                }
            });
            let found = verdict(set, &requested.named, &requested.all, transferred[id], resident_throughout);
            entry.verdict = found.filter(|verdict| !(of_others && *verdict != Verdict::Memory));
            entry.asked_bytes = requested.own;
        }
    }

    /// Returns the bytes that the flowops requested, for each set.
    fn requested_bytes(&self, flowops: &[FlowopResult], plan: &Plan) -> Vec<RequestedBytes> {
        let place = |(id, set): (usize, &SetCache)| SetPlace {
            named: plan.named(id) - plan.filesets[id].part as usize,
            devices: self.sets.iter().position(|other| other.stack == set.stack).unwrap_or(id),
        };
        let places: Vec<SetPlace> = self.sets.iter().enumerate().map(place).collect();
        let io = flowops.iter().zip(&plan.flowops).filter(|(flowop, _)| flowop.class.is_io());
        let bytes = |flowop: &FlowopResult| DeviceBytes {
            read: if flowop.reads { flowop.bytes } else { 0 },
            written: if flowop.writes { flowop.bytes } else { 0 },
        };
        requested_bytes(io.map(|(flowop, info)| (bytes(flowop), set_shares(plan, info))), &places)
    }
}

/// Returns the bytes that a device has transferred since boot.
fn of_device(name: &String) -> Option<TransferredBytes> {
    device::transferred(std::slice::from_ref(name))
}

/// The residency of each set, and the free bytes of each mount.
type CachesAfter = (Vec<Option<Residency>>, Vec<Option<u64>>);

/// Reads both; `None` if a file system does not answer in time. A set whose files are being removed has no residency.
fn read_after(sets: &[Arc<Fileset>], places: Vec<PathBuf>, seed: u64) -> Option<CachesAfter> {
    let sets = sets.to_vec();
    let resident = move |set: &Arc<Fileset>| cache::residency(set, seed, TIMEOUT_AFTER).ok().flatten();
    with_timeout(TIMEOUT_AFTER * 2, move || {
        let free = places.iter().map(|place| fd::statvfs_path(place).ok().map(|space| space.free)).collect();
        (sets.iter().map(resident).collect(), free)
    })
}

/// The bytes that the flowops requested from a file set, and from those on the same devices.
#[derive(Clone, Default, PartialEq, Debug)]
struct RequestedBytes {
    own: DeviceBytes,
    /// With those of the same name: the sets of other process instances, or the parts in other directories.
    named: DeviceBytes,
    /// With all others.
    all: DeviceBytes,
}

/// The name and the devices of a file set, each as the index of the first set that has it.
#[derive(Clone, Copy)]
struct SetPlace {
    named: usize,
    devices: usize,
}

/// One of the file sets that a flowop uses by one name: the set, its number among them, and how many there are.
type SetShare = (usize, u64, u64);

/// Returns the file sets that a flowop uses.
fn set_shares(plan: &Plan, info: &FlowopInfo) -> BTreeSet<SetShare> {
    let mut shares = BTreeSet::new();
    for set in &info.sets {
        let spec = &plan.filesets[*set];
        if spec.instance.is_some() {
            let instances = u64::from(plan.processes[info.process].instances);
            shares.extend((0..instances).map(|number| (set + number as usize, number, instances)));
        } else {
            let parts = plan::parts_of(&plan.filesets, set - spec.part as usize).len() as u64;
            shares.insert((*set, u64::from(spec.part), parts));
        }
    }
    shares
}

/// Returns the bytes requested from each set, given those that each flowop requested. A flowop has one count for all
/// sets of a name, which are used equally.
fn requested_bytes(
    flowops: impl Iterator<Item = (DeviceBytes, BTreeSet<SetShare>)>,
    places: &[SetPlace],
) -> Vec<RequestedBytes> {
    let add = |sum: &mut DeviceBytes, bytes: &DeviceBytes| {
        sum.read += bytes.read;
        sum.written += bytes.written;
    };
    let mut found = vec![RequestedBytes::default(); places.len()];
    let mut named: BTreeMap<(usize, usize), DeviceBytes> = BTreeMap::new();
    let mut all: BTreeMap<usize, DeviceBytes> = BTreeMap::new();
    for (bytes, shares) in flowops {
        let mut own: BTreeMap<usize, DeviceBytes> = BTreeMap::new();
        for (set, number, of) in shares {
            let Some(place) = places.get(set) else { continue };
            let part = DeviceBytes { read: part(bytes.read, number, of), written: part(bytes.written, number, of) };
            add(&mut found[set].own, &part);
            add(named.entry((place.named, place.devices)).or_default(), &part);
            add(own.entry(place.devices).or_default(), &part);
        }
        // A flowop that works on two sets, such as a copy, requests its bytes once.
        for (devices, sum) in own {
            let once = DeviceBytes { read: sum.read.min(bytes.read), written: sum.written.min(bytes.written) };
            add(all.entry(devices).or_default(), &once);
        }
    }
    for (entry, place) in found.iter_mut().zip(places) {
        entry.named = named.get(&(place.named, place.devices)).cloned().unwrap_or_default();
        entry.all = all.get(&place.devices).cloned().unwrap_or_default();
    }
    found
}

/// Returns one of `of` equal parts of a number. The sum of all parts is the number.
fn part(all: u64, number: u64, of: u64) -> u64 {
    let until = |n: u64| (u128::from(all) * u128::from(n) / u128::from(of.max(1))) as u64;
    until(number + 1) - until(number)
}

/// Returns where the requested bytes of a set came from: the bytes read if there were any, else the bytes written.
/// `own` and `sum` are the numbers of bytes requested from the sets of its name on the same devices, and from all sets
/// there. For a set that was resident all the time (`resident_throughout`) reads from the devices need not have been
/// for it. They may have been with direct I/O; so there is no verdict.
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
        layers: device::layers_below(&root).into_iter().map(|layer| layer.name).collect(),
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
        SetCache {
            resident: Some(resident(part)),
            in_memory: false,
            stack: Some(stack),
            layers: Vec::new(),
            transferred: None,
        }
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
        let network = SetCache {
            resident: Some(resident(0.0)),
            in_memory: false,
            stack: None,
            layers: Vec::new(),
            transferred: None,
        };
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

    /// Sets by name and devices; the flowops' bytes read and shares.
    fn requested(places: &[(usize, usize)], flowops: &[(u64, &[SetShare])]) -> Vec<(u64, u64, u64)> {
        let places: Vec<SetPlace> = places.iter().map(|&(named, devices)| SetPlace { named, devices }).collect();
        let flowops = flowops.iter().map(|(read, shares)| {
            (DeviceBytes { read: *read, written: 0 }, shares.iter().copied().collect::<BTreeSet<_>>())
        });
        let read = |found: RequestedBytes| (found.own.read, found.named.read, found.all.read);
        requested_bytes(flowops, &places).into_iter().map(read).collect()
    }

    #[test]
    fn the_sets_of_one_name_share_the_requested_bytes() {
        // Three process instances, and a set besides, on the same devices.
        let places = [(0, 0), (0, 0), (0, 0), (3, 0)];
        let instances: [SetShare; 3] = [(0, 0, 3), (1, 1, 3), (2, 2, 3)];
        let found = requested(&places, &[(100, &instances), (10, &[(3, 0, 1)])]);
        assert_eq!(found, [(33, 100, 110), (33, 100, 110), (34, 100, 110), (10, 10, 110)]);
        // Two directories on different devices.
        let found = requested(&[(0, 0), (0, 1)], &[(100, &[(0, 0, 2), (1, 1, 2)])]);
        assert_eq!(found, [(50, 50, 50), (50, 50, 50)]);
        // A copy from one set to another.
        let found = requested(&[(0, 0), (1, 0)], &[(100, &[(0, 0, 1), (1, 0, 1)])]);
        assert_eq!(found, [(100, 100, 100), (100, 100, 100)]);
        assert_eq!(requested(&[(0, 0)], &[(100, &[])]), [(0, 0, 0)], "a flowop without a set");
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
