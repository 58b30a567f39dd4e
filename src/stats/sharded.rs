//! Histograms that many threads share, one for each processor.
//!
//! A histogram of a thread's own is written without a locked instruction, which is best as long as it stays in the cache. A
//! hundred threads of thirty flowops have three thousand of them, each with its latencies over some thirty lines: more than a
//! cache holds, so that each operation would wait for memory and drive the kernel's data out as well. The threads of one
//! definition that take turns on a processor therefore count in one histogram: as many lines as one thread has, and a locked
//! instruction on a line that is at hand.

use super::layout;
use super::snapshot::Dist;
use crate::os::limits::processors;
use crate::os::map::Counters;
use crate::os::proc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Flowops of all threads together, for each processor, up to which their histograms stay in its cache: as the lines that one
/// of them takes, a kilobyte or two, and the half megabyte of a usual second level.
const RESIDENT: usize = 128;

/// Whether threads of one definition share their histograms, in a run whose threads have so many flowops together.
pub(super) fn shares(threads: usize, flowops_of_all: usize) -> bool {
    proc::PROCESSOR_IS_CHEAP && threads > 2 * processors() && flowops_of_all > RESIDENT * processors()
}

/// The histograms of one flowop: who counts does so in that of the processor it runs on.
#[derive(Debug)]
pub(super) struct ShardedHistogram {
    shards: Box<[Shard]>,
}

/// One processor's, on lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Shard {
    counts: Counters,
    /// As in the histograms of one thread: one bit a block that has anything in it.
    touched: AtomicU64,
}

impl ShardedHistogram {
    /// One for each of so many flowops. Fails if the kernel has no memory to give.
    pub(super) fn several(flowops: usize) -> std::io::Result<Vec<Arc<Self>>> {
        let shards = processors();
        let all = flowops.checked_mul(shards).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let mut counters = Counters::many(all, layout::LEN)?.into_iter();
        let mut shard = || counters.next().map(|counts| Shard { counts, touched: AtomicU64::new(0) });
        Ok((0..flowops).map(|_| Arc::new(Self { shards: (0..shards).map_while(|_| shard()).collect() })).collect())
    }

    /// Counts one in a bucket; what is beyond the last counts there. Right on whatever processor, also for a thread that is
    /// moved meanwhile.
    pub(super) fn count(&self, index: usize) {
        let index = index.min(layout::LEN - 1);
        let shard = &self.shards[proc::processor() % self.shards.len()];
        if shard.counts[index].fetch_add(1, Relaxed) == 0 {
            shard.touched.fetch_or(1 << (index / layout::BLOCK), Relaxed);
        }
    }

    /// Adds the counts of all processors, as they are now, to those of a distribution.
    pub(super) fn add_to(&self, into: &mut Dist) {
        for shard in &self.shards {
            into.add_counts(&shard.counts, shard.touched.load(Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::ShardedHistogram;
    use crate::stats::layout;
    use crate::stats::snapshot::Dist;

    #[test]
    fn nothing_is_lost_whoever_counts_where() {
        const EACH: usize = 50_000;
        let all_sharded = ShardedHistogram::several(2).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let sharded = &all_sharded[1];
                scope.spawn(move || (0..EACH).for_each(|i| sharded.count(thread * 500 + i % 7)));
            }
        });
        all_sharded[1].count(usize::MAX);
        let mut dist = Dist::default();
        all_sharded[1].add_to(&mut dist);
        assert_eq!(dist.count, 8 * EACH as u64 + 1);
        let buckets: Vec<_> = dist.recorded().collect();
        assert_eq!((buckets.len(), buckets[0], buckets.last()), (57, (0, 7143), Some(&(layout::LEN - 1, 1))));
        let mut none = Dist::default();
        all_sharded[0].add_to(&mut none);
        assert_eq!(none, Dist::default());
    }
}
