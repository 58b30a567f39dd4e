//! Wait-free counters with a single writer and any number of readers.
//!
//! All counters are `Relaxed` atomics that the writer updates with a plain load and store. With a single writer no
//! update can be lost, so no locked instruction is needed; the accesses compile to ordinary memory accesses. A reader
//! may see an operation in one counter and not yet in another; once the writer pauses, all counters agree. Only the
//! sharded histograms of runs with very many threads have several writers (`stats/sharded.rs`). While a run is in
//! progress, memory is allocated only for the first open-loop operation and for errors. `#[cold]` marks these, and
//! counts of failures and commands, which are rare next to operations.

use super::sharded::{self, ShardedHistogram};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use wml_os::map::Counters;
use wml_result::FlowopCounter;
use wml_result::layout;
use wml_result::snapshot::{Dist, Snapshot};

/// The counters of one thread: a [`Cell`] for each of its flowops.
#[derive(Debug)]
pub struct ThreadStats {
    cells: Box<[Cell]>,
    /// Whether the thread has submitted an asynchronous operation. Without one, totals need only the first cache line
    /// of each cell.
    submits: AtomicBool,
}

impl ThreadStats {
    /// Allocates counters for `flowops` flowops, all zero. A flowop takes 36 KiB of address space, and memory only
    /// where latencies are counted (4 KiB per four octaves). Fails if the kernel has no memory.
    pub fn new(flowops: usize) -> std::io::Result<Self> {
        let cells = Counters::new(flowops, layout::LEN)?.into_iter().map(Cell::new).collect();
        Ok(Self { cells, submits: AtomicBool::new(false) })
    }

    /// Allocates counters for each of `threads` threads of one definition, in a run whose threads have `flowops_of_all`
    /// flowops in total. All are in one mapping, since making ten thousand mappings takes a second. If they are too
    /// many for a processor's cache, the threads share their histograms (`stats/sharded.rs`), which are then reported
    /// with the counters of the first thread.
    pub(crate) fn for_threads(threads: usize, flowops: usize, flowops_of_all: usize) -> std::io::Result<Vec<Self>> {
        let cells = threads.checked_mul(flowops).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let shares = sharded::should_share(threads, flowops_of_all);
        let all_sharded = if shares { ShardedHistogram::for_flowops(flowops)? } else { Vec::new() };
        let mut counters = Counters::new_shared(cells, if shares { 0 } else { layout::LEN })?.into_iter();
        let mut thread = |number: usize| {
            let mut cells: Box<[Cell]> = counters.by_ref().take(flowops).map(Cell::new).collect();
            for (cell, sharded) in cells.iter_mut().zip(&all_sharded) {
                cell.latency.share = Some(Share { sharded: Arc::clone(sharded), reports: number == 0 });
            }
            Self { cells, submits: AtomicBool::new(false) }
        };
        Ok((0..threads).map(&mut thread).collect())
    }

    /// Returns the counters of the thread's flowop `i`.
    #[inline]
    pub fn cell(&self, i: usize) -> &Cell {
        &self.cells[i]
    }

    /// Returns the index of the flowop with these counters, which must belong to this thread.
    pub(crate) fn index_of(&self, cell: &Cell) -> usize {
        self.cells.element_offset(cell).unwrap_or_default()
    }

    /// Returns the number of flowops.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// True if the thread has no flowops.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the number of operations of all flowops so far, without late ones. It is summed on demand: a limiter
    /// asks once per iteration, so maintaining a sum would cost each operation more than it saves.
    pub(crate) fn total_ops(&self) -> u64 {
        self.cells.iter().map(Cell::ops).sum()
    }

    /// Returns the number of late operations of all flowops so far.
    pub(crate) fn total_late_ops(&self) -> u64 {
        self.cells.iter().map(|cell| cell.count(FlowopCounter::LateOps)).sum()
    }

    /// Returns the bytes of all flowops so far, of the same operations as [`total_ops`](Self::total_ops).
    pub(crate) fn total_bytes(&self) -> u64 {
        self.cells.iter().map(Cell::bytes).sum()
    }

    /// Returns the same number with the asynchronous operations in flight.
    pub(crate) fn total_started_ops(&self) -> u64 {
        if self.submits.load(Relaxed) { self.cells.iter().map(Cell::started_ops).sum() } else { self.total_ops() }
    }

    /// Returns the number of operations of some flowops so far, with the asynchronous ones in flight.
    pub(crate) fn started_ops_of(&self, flowops: &[usize]) -> u64 {
        let ops = if self.submits.load(Relaxed) { Cell::started_ops } else { Cell::ops };
        flowops.iter().map(|i| ops(self.cell(*i))).sum()
    }

    /// Returns the bytes of all flowops so far, with those that asynchronous operations in flight are to move.
    pub(crate) fn total_started_bytes(&self) -> u64 {
        if self.submits.load(Relaxed) { self.cells.iter().map(Cell::started_bytes).sum() } else { self.total_bytes() }
    }

    /// Returns the bytes of all flowops so far, with those of the listings of directories.
    pub(crate) fn total_moved_bytes(&self) -> u64 {
        self.cells.iter().map(Cell::moved_bytes).sum()
    }

    /// Records that flowop `i` has submitted an asynchronous operation of `bytes` bytes. It is counted by
    /// [`Cell::record`] when it has completed.
    pub(crate) fn record_submitted(&self, i: usize, bytes: u64) {
        let cell = self.cell(i);
        bump(&cell.submitted_ops, 1);
        bump(&cell.submitted_bytes, bytes);
        if !self.submits.load(Relaxed) {
            self.submits.store(true, Relaxed);
        }
    }

    /// Starts a measurement: [`Cell::measured_ops`] counts from now on. Called by a thread other than the writer.
    pub(crate) fn begin_measurement(&self) {
        for cell in &self.cells {
            cell.ops_before.store(cell.started_ops(), Relaxed);
            cell.bytes_before.store(cell.moved_bytes(), Relaxed);
        }
    }

    /// Returns the current counters of flowop `i`.
    pub fn snapshot(&self, i: usize) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.add_to(i, &mut snapshot);
        snapshot
    }

    /// Merges the current counters of flowop `i` into a snapshot. Without an intermediate snapshot, this is the fastest
    /// way to sum over many threads.
    pub fn add_to(&self, i: usize, into: &mut Snapshot) {
        self.cells[i].add_to(into);
    }
}

/// The counters of one flowop in one thread.
///
/// Aligned to 128 bytes, so that the cells of two threads share neither a cache line nor the pair of lines that the
/// processor prefetches together.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Cell {
    // The fields that every operation writes come first, in one cache line of 64 bytes.
    ops: AtomicU64,
    bytes: AtomicU64,
    latency: LiveCounters,
    /// By [`FlowopCounter`].
    counts: [AtomicU64; FlowopCounter::ALL.len()],
    late_oldest_ns: AtomicU64,
    submitted_ops: AtomicU64,
    submitted_bytes: AtomicU64,
    // The only fields that the controller writes: what had been started when the measurement began.
    ops_before: AtomicU64,
    bytes_before: AtomicU64,
    open_loop: OnceLock<Box<OpenLoopCells>>,
    errors: Mutex<BTreeMap<i32, u64>>,
}

/// The additional distributions of a flowop with intended start times.
#[derive(Debug)]
struct OpenLoopCells {
    response: LiveCounters,
    lateness: LiveCounters,
}

/// A distribution that is being recorded.
#[derive(Debug)]
#[repr(C)]
struct LiveCounters {
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
    counts: Counters,
    /// One bit per block of [`layout::BLOCK`] buckets, set if the block has a count, so that readers skip the other
    /// blocks.
    touched: AtomicU64,
    /// The shared histogram, used if `counts` is empty.
    share: Option<Share>,
}

/// A thread's reference to a sharded histogram.
#[derive(Debug)]
struct Share {
    sharded: Arc<ShardedHistogram>,
    /// Whether the histogram is reported with this thread's counters. True for exactly one of the threads that share
    /// it.
    reports: bool,
}

// There must be a bit for each block.
const _: () = assert!(layout::LEN / layout::BLOCK <= 64);

/// Adds to a counter whose only writer is the calling thread, without a locked instruction.
#[inline]
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

impl Cell {
    fn new(counts: Counters) -> Self {
        Self {
            ops: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            latency: LiveCounters::new(counts),
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            late_oldest_ns: AtomicU64::new(0),
            submitted_ops: AtomicU64::new(0),
            submitted_bytes: AtomicU64::new(0),
            ops_before: AtomicU64::new(0),
            bytes_before: AtomicU64::new(0),
            open_loop: OnceLock::new(),
            errors: Mutex::new(BTreeMap::new()),
        }
    }

    /// Records an operation that ended before the deadline: its latency and the bytes that it moved.
    #[inline]
    pub fn record(&self, ns: u64, bytes: u64) {
        bump(&self.ops, 1);
        bump(&self.bytes, bytes);
        self.latency.record(ns);
    }

    /// Records an operation that ended after the deadline: its age then, and the bytes that it moved. It is reported as
    /// late, and counts in no rate.
    #[cold]
    pub(crate) fn record_late(&self, ns: u64, bytes: u64) {
        self.add(FlowopCounter::LateOps, 1);
        self.add(FlowopCounter::LateBytes, bytes);
        self.late_oldest_ns.store(self.late_oldest_ns.load(Relaxed).max(ns), Relaxed);
    }

    /// Takes back the submission of an operation that turned out to be none.
    #[cold]
    pub(crate) fn withdraw_submitted(&self, bytes: u64) {
        bump(&self.submitted_ops, 1_u64.wrapping_neg());
        bump(&self.submitted_bytes, bytes.wrapping_neg());
    }

    /// Adds the bytes that an operation moved before it failed. They count although the operation does not.
    #[cold]
    pub(crate) fn add_bytes(&self, bytes: u64) {
        bump(&self.bytes, bytes);
    }

    /// Adds to a counter.
    #[inline]
    pub(crate) fn add(&self, counter: FlowopCounter, n: u64) {
        bump(&self.counts[counter as usize], n);
    }

    fn count(&self, counter: FlowopCounter) -> u64 {
        self.counts[counter as usize].load(Relaxed)
    }

    /// Adds system calls of an operation beyond its first.
    #[inline]
    pub(crate) fn add_calls(&self, n: u64) {
        self.add(FlowopCounter::Calls, n);
    }

    /// Returns the number of operations so far, without late ones.
    #[inline]
    pub fn ops(&self) -> u64 {
        self.ops.load(Relaxed)
    }

    /// Returns the bytes of these operations so far.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Returns the number of operations so far, with asynchronous ones from their submission on.
    #[inline]
    pub(crate) fn started_ops(&self) -> u64 {
        // Only asynchronous flowops submit, and each of their operations was submitted before it was counted.
        self.ops().max(self.submitted_ops.load(Relaxed))
    }

    /// Returns the bytes of these operations so far.
    #[inline]
    pub(crate) fn started_bytes(&self) -> u64 {
        self.bytes().max(self.submitted_bytes.load(Relaxed))
    }

    /// Returns the part of [`started_ops`](Self::started_ops) since the measurement began
    /// ([`ThreadStats::begin_measurement`]).
    pub(crate) fn measured_ops(&self) -> u64 {
        self.started_ops().saturating_sub(self.ops_before.load(Relaxed))
    }

    /// Returns the bytes of these operations and those of the listings of directories.
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.started_bytes().saturating_add(self.count(FlowopCounter::ListedBytes))
    }

    /// Returns the part of [`moved_bytes`](Self::moved_bytes) since the measurement began.
    pub(crate) fn measured_bytes(&self) -> u64 {
        self.moved_bytes().saturating_sub(self.bytes_before.load(Relaxed))
    }

    /// Records an open-loop operation, in addition to [`record`](Self::record): the time from its intended start to its
    /// end, and how late it started. The first call maps memory.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "as a call, which the compiler makes at times, it takes 14 instructions more"
    )]
    pub(crate) fn record_response(&self, response_ns: u64, lateness_ns: u64) {
        let open_loop = self.open_loop.get_or_init(|| Box::new(OpenLoopCells::new()));
        open_loop.response.record(response_ns);
        open_loop.lateness.record(lateness_ns);
    }

    /// Counts a failed operation by its error number. It is not part of any other count.
    #[cold]
    pub fn error(&self, errno: i32) {
        *self.errors.lock().entry(errno).or_default() += 1;
    }

    fn add_to(&self, into: &mut Snapshot) {
        into.ops += self.ops();
        into.bytes += self.bytes();
        for (sum, counter) in into.counts.iter_mut().zip(&self.counts) {
            *sum += counter.load(Relaxed);
        }
        into.late_oldest_ns = into.late_oldest_ns.max(self.late_oldest_ns.load(Relaxed));
        self.latency.add_to(&mut into.latency);
        if let Some(open_loop) = self.open_loop.get() {
            open_loop.response.add_to(into.response.get_or_insert_default());
            open_loop.lateness.add_to(into.lateness.get_or_insert_default());
        }
        for (errno, n) in self.errors.lock().iter() {
            *into.errors.entry(*errno).or_default() += n;
        }
    }
}

impl OpenLoopCells {
    #[cold]
    fn new() -> Self {
        let mut shares = Counters::new(2, layout::LEN).unwrap_or_default().into_iter();
        match (shares.next(), shares.next()) {
            (Some(response), Some(lateness)) => {
                Self { response: LiveCounters::new(response), lateness: LiveCounters::new(lateness) }
            }
            // Fails as any allocation of Rust does.
            _ => std::alloc::handle_alloc_error(std::alloc::Layout::new::<[[u64; layout::LEN]; 2]>()),
        }
    }
}

impl LiveCounters {
    fn new(counts: Counters) -> Self {
        Self {
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            counts,
            touched: AtomicU64::new(0),
            share: None,
        }
    }

    /// Records a value, in nanoseconds.
    #[inline]
    fn record(&self, ns: u64) {
        bump(&self.sum, ns);
        if ns < self.min.load(Relaxed) {
            self.min.store(ns, Relaxed);
        }
        if ns > self.max.load(Relaxed) {
            self.max.store(ns, Relaxed);
        }
        let index = layout::index(ns);
        match self.counts.get(index).map(|counter| (counter, counter.load(Relaxed))) {
            Some((counter, n @ 1..)) => counter.store(n + 1, Relaxed),
            _ => self.count_slow(index),
        }
    }

    /// Counts a value that is the first in its bucket, or one in a shared histogram. A value beyond the end of the
    /// layout counts in the last bucket.
    ///
    /// Split for speed from [`LiveCounters::record`]: a bucket with a count needs no update of `touched` and exists in
    /// `counts`, so one load checks both, and the frequent case is one load and one store inline. `#[cold]` and
    /// `#[inline(never)]` keep the rest out of the callers. The sharded case is here for the same reason: with it a
    /// random read still takes 150 instructions.
    #[cold]
    #[inline(never)]
    fn count_slow(&self, index: usize) {
        if let Some(share) = &self.share {
            return share.sharded.count(index);
        }
        let index = index.min(layout::LEN - 1);
        self.touched.store(self.touched.load(Relaxed) | 1 << (index / layout::BLOCK), Relaxed);
        bump(&self.counts[index], 1);
    }

    fn add_to(&self, into: &mut Dist) {
        into.sum += self.sum.load(Relaxed);
        into.min = into.min.min(self.min.load(Relaxed));
        into.max = into.max.max(self.max.load(Relaxed));
        into.add_counts(&self.counts, self.touched.load(Relaxed));
        if let Some(Share { sharded, reports: true }) = &self.share {
            sharded.add_to(into);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Cell, ThreadStats};
    use wml_result::FlowopCounter;
    use wml_result::layout;

    #[test]
    fn asynchronous_operations_count_as_started_from_their_submission_on() {
        let stats = ThreadStats::new(2).unwrap();
        let (sync, aio) = (stats.cell(0), stats.cell(1));
        sync.record(1000, 10);
        assert_eq!((stats.total_started_ops(), stats.total_started_bytes()), (1, 10));
        (0..3).for_each(|_| stats.record_submitted(1, 100));
        aio.record(1000, 100);
        assert_eq!((aio.ops(), aio.started_ops(), aio.started_bytes()), (1, 3, 300));
        assert_eq!((stats.total_started_ops(), stats.total_started_bytes()), (4, 310));
        stats.begin_measurement();
        aio.record(1000, 100);
        assert_eq!((aio.measured_ops(), aio.measured_bytes()), (0, 0), "submitted before the measurement");
        stats.record_submitted(1, 7);
        sync.record(1000, 1);
        assert_eq!((aio.measured_ops(), aio.measured_bytes()), (1, 7));
        assert_eq!((sync.measured_ops(), sync.measured_bytes()), (1, 1));
        aio.withdraw_submitted(7);
        assert_eq!(aio.measured_ops(), 0);
    }

    #[test]
    fn a_snapshot_has_every_counter() {
        let stats = ThreadStats::new(2).unwrap();
        let cell = stats.cell(1);
        cell.record(1000, 4096);
        cell.record(3000, 1);
        cell.record_late(90, 7);
        cell.record_late(80, 1);
        cell.add(FlowopCounter::Opens, 1);
        cell.add(FlowopCounter::OpenTime, 500);
        cell.add_calls(3);
        cell.add(FlowopCounter::ToolTime, 40);
        cell.add(FlowopCounter::StarvedTime, 60);
        cell.error(28);
        cell.error(28);
        cell.error(5);
        let s = stats.snapshot(1);
        assert_eq!((s.ops, s.bytes, s.late_oldest_ns), (2, 4097, 90));
        let counted = FlowopCounter::ALL.map(|counter| (counter.name(), s[counter]));
        let counted: Vec<_> = counted.into_iter().filter(|(_, n)| *n > 0).collect();
        let [opens, late] = [[("opens", 1), ("open_ns", 500)], [("late_ops", 2), ("late_bytes", 8)]];
        assert_eq!(counted, [&opens[..], &late, &[("calls", 3), ("tool_ns", 40), ("starved_ns", 60)]].concat());
        assert_eq!(s.errors.into_iter().collect::<Vec<_>>(), [(5, 1), (28, 2)]);
        assert_eq!((s.latency.count, s.latency.sum, s.latency.min, s.latency.max), (2, 4000, 1000, 3000));
        assert!(s.response.is_none());
        assert_eq!(stats.snapshot(0), super::Snapshot::default());
        assert_eq!((stats.total_ops(), stats.total_bytes()), (2, 4097));
    }

    #[test]
    fn many_threads_are_counted_separately_and_reported_together() {
        let (threads, flowops) = (4 * wml_os::limits::processors(), 2);
        for flowops_of_all in [threads * flowops, usize::MAX] {
            let stats = ThreadStats::for_threads(threads, flowops, flowops_of_all).unwrap();
            for (i, thread) in stats.iter().enumerate() {
                (0..=i as u64).for_each(|n| thread.cell(1).record(1000 * n + 7, 1));
            }
            assert!(stats.iter().enumerate().all(|(i, thread)| thread.total_ops() == i as u64 + 1));
            let mut all = super::Snapshot::default();
            stats.iter().for_each(|thread| thread.add_to(1, &mut all));
            let ops = (threads * (threads + 1) / 2) as u64;
            assert_eq!((all.ops, all.bytes, all.latency.count), (ops, ops, ops));
            assert_eq!((all.latency.min, all.latency.max), (7, 1000 * (threads as u64 - 1) + 7));
            let (first, n) = all.latency.recorded().next().unwrap();
            assert_eq!((first, n), (7, threads as u64), "the first operation of each");
        }
    }

    #[test]
    fn intended_starts_have_separate_distributions() {
        let stats = ThreadStats::new(1).unwrap();
        stats.cell(0).record(10, 0);
        stats.cell(0).record_response(5000, 4990);
        let s = stats.snapshot(0);
        assert_eq!(s.latency.max, 10);
        assert_eq!(s.response.map(|d| (d.count, d.max)), Some((1, 5000)));
        assert_eq!(s.lateness.map(|d| (d.count, d.min)), Some((1, 4990)));
    }

    #[test]
    fn a_value_beyond_the_layout_counts_in_the_last_bucket_and_keeps_the_maximum() {
        let stats = ThreadStats::new(1).unwrap();
        stats.cell(0).record(u64::MAX / 2, 0);
        stats.cell(0).record(layout::LIMIT, 0);
        let latency = stats.snapshot(0).latency;
        assert_eq!((latency.count, latency.max), (2, u64::MAX / 2));
        assert_eq!(latency.percentile(0.1), Some(layout::LIMIT));
        assert_eq!(latency.percentile(1.0), Some(u64::MAX / 2));
    }

    #[test]
    fn the_counters_of_an_operation_fit_in_one_cache_line() {
        assert_eq!(std::mem::offset_of!(Cell, latency) + std::mem::offset_of!(super::LiveCounters, counts) + 16, 56);
        assert_eq!(align_of::<Cell>(), 128);
    }

    #[test]
    fn reading_does_not_disturb_the_writer() {
        const OPS: u64 = 200_000;
        let stats = ThreadStats::new(1).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (0..OPS).for_each(|i| stats.cell(0).record(i, 2)));
            let mut before = 0;
            while !writer.is_finished() {
                let now = stats.snapshot(0);
                assert!(now.latency.count >= before && now.ops <= OPS);
                before = now.latency.count;
            }
        });
        let s = stats.snapshot(0);
        assert_eq!((s.ops, s.bytes, s.latency.count), (OPS, 2 * OPS, OPS));
        assert_eq!(s.latency.sum, OPS * (OPS - 1) / 2);
    }
}
