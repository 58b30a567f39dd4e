//! Counters that one thread writes and anyone reads, without either waiting for the other.
//!
//! All counters are relaxed atomics used as plain loads and stores: with one writer nothing can be lost, and on the
//! machine they are ordinary memory accesses. A reader may see an operation in one counter and not yet in the next; once
//! the writer rests, everything agrees. Only histograms of very many threads have several writers (`stats/sharded.rs`). Nothing here allocates
//! while a run goes on, but for the first open-loop operation and for errors.

use super::layout;
use super::sharded::{self, ShardedHistogram};
use super::snapshot::{Dist, Snapshot};
use crate::os::map::Counters;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

/// One thread's counters: a [`Cell`] for each of its flowops.
#[derive(Debug)]
pub struct ThreadStats {
    cells: Box<[Cell]>,
}

impl ThreadStats {
    /// Counters for so many flowops, all zero. Costs 36 KiB of address space a flowop, and memory only where latencies
    /// fall (4 KiB for four octaves). Fails if the kernel has no memory to give.
    pub fn new(flowops: usize) -> std::io::Result<Self> {
        let cells = Counters::new(flowops, layout::LEN)?.into_iter().map(Cell::new).collect();
        Ok(Self { cells })
    }

    /// The same for each of so many threads of one definition, in a run whose threads have `flowops_of_all` together. They
    /// are in one stretch of memory, since ten thousand stretches take a second to come by; or, where they are too many for
    /// a processor's cache, they share their histograms, which are told with the counters of the first of them.
    pub fn several(threads: usize, flowops: usize, flowops_of_all: usize) -> std::io::Result<Vec<Self>> {
        let cells = threads.checked_mul(flowops).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let shares = sharded::shares(threads, flowops_of_all);
        let all_sharded = if shares { ShardedHistogram::several(flowops)? } else { Vec::new() };
        let mut counters = Counters::many(cells, if shares { 0 } else { layout::LEN })?.into_iter();
        let mut thread = |number: usize| {
            let mut cells: Box<[Cell]> = counters.by_ref().take(flowops).map(Cell::new).collect();
            for (cell, sharded) in cells.iter_mut().zip(&all_sharded) {
                cell.latency.share = Some(Share { sharded: Arc::clone(sharded), notifies: number == 0 });
            }
            Self { cells }
        };
        Ok((0..threads).map(&mut thread).collect())
    }

    /// The counters of the thread's `i`-th flowop.
    #[inline]
    pub fn cell(&self, i: usize) -> &Cell {
        &self.cells[i]
    }

    /// Which flowop's counters these are; they must be this thread's.
    pub fn place_of(&self, cell: &Cell) -> usize {
        self.cells.element_offset(cell).unwrap_or_default()
    }

    /// How many flowops there are.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether the thread has no flowop.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Operations of all flowops so far, late ones left out. Added up when asked for: a limiter asks once in a pass over
    /// the flowops, so keeping a sum would cost each of them more than it saves.
    pub fn total_ops(&self) -> u64 {
        self.cells.iter().map(Cell::ops).sum()
    }

    /// Bytes of all flowops so far, as [`total_ops`](Self::total_ops).
    pub fn total_bytes(&self) -> u64 {
        self.cells.iter().map(Cell::bytes).sum()
    }

    /// The counters of flowop `i` as they are now.
    pub fn snapshot(&self, i: usize) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.add_to(i, &mut snapshot);
        snapshot
    }

    /// Merges the counters of flowop `i`, as they are now, into a snapshot: the quick way to sum up many threads.
    pub fn add_to(&self, i: usize, into: &mut Snapshot) {
        self.cells[i].add_to(into);
    }
}

/// The counters of one flowop in one thread.
///
/// Aligned so that two threads' cells share no line of the cache, nor the pair of lines that is fetched together.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Cell {
    // What every operation touches comes first: one line of 64 bytes.
    ops: AtomicU64,
    bytes: AtomicU64,
    latency: LiveCounters,
    tool_ns: AtomicU64,
    starved_ns: AtomicU64,
    calls: AtomicU64,
    opens: AtomicU64,
    open_ns: AtomicU64,
    late_ops: AtomicU64,
    late_bytes: AtomicU64,
    user_ns: AtomicU64,
    system_ns: AtomicU64,
    open_loop: OnceLock<Box<OpenLoopCells>>,
    errors: Mutex<BTreeMap<i32, u64>>,
}

/// The second and third distribution of a flowop with intended start times.
#[derive(Debug)]
struct OpenLoopCells {
    response: LiveCounters,
    lateness: LiveCounters,
}

/// A distribution being recorded.
#[derive(Debug)]
#[repr(C)]
struct LiveCounters {
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
    counts: Counters,
    /// One bit a block of [`layout::BLOCK`] buckets: set if anything is in it, so that readers skip the rest.
    touched: AtomicU64,
    /// Where to count if `counts` is empty.
    share: Option<Share>,
}

/// A thread's part in histograms that it does not have alone.
#[derive(Debug)]
struct Share {
    sharded: Arc<ShardedHistogram>,
    /// They are told with this thread's counters, and with no other's.
    notifies: bool,
}

// A bit for each block must fit.
const _: () = assert!(layout::LEN / layout::BLOCK <= 64);

/// Adds as the only writer: no locked instruction.
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
            tool_ns: AtomicU64::new(0),
            starved_ns: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            opens: AtomicU64::new(0),
            open_ns: AtomicU64::new(0),
            late_ops: AtomicU64::new(0),
            late_bytes: AtomicU64::new(0),
            user_ns: AtomicU64::new(0),
            system_ns: AtomicU64::new(0),
            open_loop: OnceLock::new(),
            errors: Mutex::new(BTreeMap::new()),
        }
    }

    /// An operation that ended inside the measured interval: its latency and the bytes it moved.
    #[inline]
    pub fn record(&self, ns: u64, bytes: u64) {
        bump(&self.ops, 1);
        bump(&self.bytes, bytes);
        self.latency.record(ns);
    }

    /// An operation that ended after the measured interval: told, not counted.
    pub fn record_late(&self, bytes: u64) {
        bump(&self.late_ops, 1);
        bump(&self.late_bytes, bytes);
    }

    /// Bytes that an operation moved before it failed: they are counted, though no operation is.
    #[cold]
    pub fn add_bytes(&self, bytes: u64) {
        bump(&self.bytes, bytes);
    }

    /// The same after the measured interval.
    #[cold]
    pub fn add_late_bytes(&self, bytes: u64) {
        bump(&self.late_bytes, bytes);
    }

    /// A file opened because the operation needed it, which no flowop asked for; its time is in no latency.
    #[inline]
    pub fn record_open(&self, ns: u64) {
        bump(&self.opens, 1);
        bump(&self.open_ns, ns);
    }

    /// Processor time of a command that the operation was, in user mode and in the kernel.
    #[cold]
    pub fn add_command(&self, user_ns: u64, system_ns: u64) {
        bump(&self.user_ns, user_ns);
        bump(&self.system_ns, system_ns);
    }

    /// System calls of an operation beyond its first.
    #[inline]
    pub fn add_calls(&self, n: u64) {
        bump(&self.calls, n);
    }

    /// Time that the tool itself took for an operation: picking a file, building a path.
    #[inline]
    pub fn tool(&self, ns: u64) {
        bump(&self.tool_ns, ns);
    }

    /// Time spent waiting for a file that the operation could use.
    #[inline]
    pub fn starved(&self, ns: u64) {
        bump(&self.starved_ns, ns);
    }

    /// Operations so far, late ones left out.
    #[inline]
    pub fn ops(&self) -> u64 {
        self.ops.load(Relaxed)
    }

    /// Bytes so far, of the same operations.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// An operation with an intended start, beside [`record`](Self::record): the time from then to its end, and how late
    /// it started. The first call maps memory.
    #[inline]
    pub fn record_response(&self, response_ns: u64, lateness_ns: u64) {
        let open_loop = self.open_loop.get_or_init(|| Box::new(OpenLoopCells::new()));
        open_loop.response.record(response_ns);
        open_loop.lateness.record(lateness_ns);
    }

    /// An operation that failed, which is no operation in any other count.
    #[cold]
    pub fn error(&self, errno: i32) {
        *self.errors.lock().entry(errno).or_default() += 1;
    }

    fn add_to(&self, into: &mut Snapshot) {
        let add = |sum: &mut u64, counter: &AtomicU64| *sum += counter.load(Relaxed);
        add(&mut into.ops, &self.ops);
        add(&mut into.bytes, &self.bytes);
        add(&mut into.tool_ns, &self.tool_ns);
        add(&mut into.starved_ns, &self.starved_ns);
        add(&mut into.calls, &self.calls);
        add(&mut into.opens, &self.opens);
        add(&mut into.open_ns, &self.open_ns);
        add(&mut into.user_ns, &self.user_ns);
        add(&mut into.system_ns, &self.system_ns);
        add(&mut into.late_ops, &self.late_ops);
        add(&mut into.late_bytes, &self.late_bytes);
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
            // As when any allocation of Rust's fails.
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
            _ => self.count_out_of_line(index),
        }
    }

    /// The first in its bucket, or one that others count too. What is longer than the layout can tell apart counts as the
    /// longest.
    #[cold]
    #[inline(never)]
    fn count_out_of_line(&self, index: usize) {
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
        if let Some(Share { sharded, notifies: true }) = &self.share {
            sharded.add_to(into);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Cell, ThreadStats};
    use crate::stats::layout;

    #[test]
    fn every_counter_arrives_in_the_snapshot() {
        let stats = ThreadStats::new(2).unwrap();
        let cell = stats.cell(1);
        cell.record(1000, 4096);
        cell.record(3000, 1);
        cell.record_late(7);
        cell.record_open(500);
        cell.add_calls(3);
        cell.tool(40);
        cell.starved(60);
        cell.error(28);
        cell.error(28);
        cell.error(5);
        let s = stats.snapshot(1);
        assert_eq!((s.ops, s.bytes, s.late_ops, s.late_bytes), (2, 4097, 1, 7));
        assert_eq!((s.opens, s.open_ns, s.calls, s.tool_ns, s.starved_ns), (1, 500, 3, 40, 60));
        assert_eq!(s.errors.into_iter().collect::<Vec<_>>(), [(5, 1), (28, 2)]);
        assert_eq!((s.latency.count, s.latency.sum, s.latency.min, s.latency.max), (2, 4000, 1000, 3000));
        assert!(s.response.is_none());
        assert_eq!(stats.snapshot(0), super::Snapshot::default());
        assert_eq!((stats.total_ops(), stats.total_bytes()), (2, 4097));
    }

    #[test]
    fn many_threads_are_counted_apart_and_told_together() {
        let (threads, flowops) = (4 * crate::os::limits::processors(), 2);
        for flowops_of_all in [threads * flowops, usize::MAX] {
            let stats = ThreadStats::several(threads, flowops, flowops_of_all).unwrap();
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
    fn intended_starts_have_distributions_of_their_own() {
        let stats = ThreadStats::new(1).unwrap();
        stats.cell(0).record(10, 0);
        stats.cell(0).record_response(5000, 4990);
        let s = stats.snapshot(0);
        assert_eq!(s.latency.max, 10);
        assert_eq!(s.response.map(|d| (d.count, d.max)), Some((1, 5000)));
        assert_eq!(s.lateness.map(|d| (d.count, d.min)), Some((1, 4990)));
    }

    #[test]
    fn what_is_too_long_counts_as_the_longest_and_keeps_its_maximum() {
        let stats = ThreadStats::new(1).unwrap();
        stats.cell(0).record(u64::MAX / 2, 0);
        stats.cell(0).record(layout::LIMIT, 0);
        let latency = stats.snapshot(0).latency;
        assert_eq!((latency.count, latency.max), (2, u64::MAX / 2));
        assert_eq!(latency.percentile(0.1), Some(layout::LIMIT));
        assert_eq!(latency.percentile(1.0), Some(u64::MAX / 2));
    }

    #[test]
    fn the_counters_of_an_operation_are_one_cache_line() {
        assert_eq!(std::mem::offset_of!(Cell, latency) + std::mem::offset_of!(super::LiveCounters, counts) + 16, 56);
        assert_eq!(align_of::<Cell>(), 128);
    }

    #[test]
    fn readers_never_disturb_the_writer() {
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
