//! The time series of a run: intervals whose sums equal the run's totals, regardless of when samples were taken.
//!
//! Memory is bounded for runs of any length. Beyond `MAX_INTERVALS` intervals, each pair of adjacent intervals is
//! merged, with exact percentiles, and later intervals get the merged length. So all intervals but the last have the
//! same length, except for scheduling delays. Not here: clocks and the schedule of the samples.

use super::build;
use super::{Interval, IntervalFlowop};
use crate::snapshot::{Dist, Snapshot};

/// Maximum number of intervals. A week of one-second intervals ends as 1,182 of 512 s.
pub(crate) const MAX_INTERVALS: usize = 2_000;

/// Maximum size of all latency histograms in bytes. Without it they would grow with the spread of the latencies.
const MAX_BYTES: usize = 64 << 20;

/// A last interval shorter than this, in nanoseconds, or than half of the usual interval, is merged into the previous
/// one.
const MIN_LAST_NS: u64 = 100_000_000;

/// The time series of one measurement.
#[derive(Clone, Debug)]
pub struct Timeline {
    slices: Vec<Slice>,
    /// Number of samples per interval.
    samples: u64,
    /// Counters at the last sample; all zero before the first.
    last: Vec<Snapshot>,
    /// Time of the last sample, in nanoseconds since the measurement began.
    last_ns: u64,
    /// A last interval shorter than this, in nanoseconds, is merged into the previous one.
    shortest_ns: u64,
    /// Maximum size of all latency histograms in bytes.
    max_bytes: usize,
}

/// One interval in its compact form.
#[derive(Clone, Debug)]
struct Slice {
    start_ns: u64,
    end_ns: u64,
    samples: u64,
    flowops: Vec<SliceFlowop>,
}

/// One flowop in one interval.
#[derive(Clone, Default, Debug)]
struct SliceFlowop {
    ops: u64,
    bytes: u64,
    sum: u64,
    min: u64,
    max: u64,
    latency: PackedHistogram,
}

impl Timeline {
    /// Creates the time series of a measurement with `flowops` flowops that begins now, and gets a sample each
    /// `interval_ns` nanoseconds.
    pub fn new(flowops: usize, interval_ns: u64) -> Self {
        let last = vec![Snapshot::default(); flowops];
        let shortest_ns = (interval_ns / 2).min(MIN_LAST_NS);
        Self { slices: Vec::new(), samples: 1, last, last_ns: 0, shortest_ns, max_bytes: MAX_BYTES }
    }

    /// Returns the length of the shortest interval, in nanoseconds.
    pub fn shortest_ns(&self) -> u64 {
        self.shortest_ns
    }

    /// Returns the time of the last sample, in nanoseconds since the measurement began.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Records a sample of the counters. Returns the interval since the previous sample.
    pub fn record(&mut self, now_ns: u64, counters: Vec<Snapshot>) -> Interval {
        let (slice, fresh) = self.since_last(now_ns, counters);
        match self.slices.last_mut().filter(|last| last.samples < self.samples) {
            Some(last) => last.append(&slice),
            None => self.slices.push(slice),
        }
        while self.slices.len() > MAX_INTERVALS || self.slices.len() > 2 && self.bytes() > self.max_bytes {
            self.merge_pairs();
        }
        fresh
    }

    /// Ends the time series with a final sample. The rest becomes a separate interval, or part of the last one if it is
    /// shorter than [`shortest_ns`](Self::shortest_ns).
    pub fn finish(&mut self, end_ns: u64, counters: Vec<Snapshot>) {
        let (slice, _) = self.since_last(end_ns, counters);
        self.slices.push(slice);
        // The end of the run may be earlier than the last sample.
        while let [.., before, last] = &mut self.slices[..]
            && end_ns.saturating_sub(last.start_ns) < self.shortest_ns
        {
            before.append(last);
            self.slices.pop();
        }
        if let Some(last) = self.slices.last_mut() {
            last.end_ns = end_ns.max(last.start_ns);
        }
    }

    pub fn intervals(&self) -> Vec<Interval> {
        self.slices.iter().map(Slice::interval).collect()
    }

    /// Returns the interval since the previous sample, in both forms, and stores the new counters.
    fn since_last(&mut self, now_ns: u64, counters: Vec<Snapshot>) -> (Slice, Interval) {
        let now_ns = now_ns.max(self.last_ns);
        let deltas: Vec<Snapshot> = counters.iter().zip(&self.last).map(|(now, then)| now.minus(then)).collect();
        let flowops = deltas.iter().map(SliceFlowop::of).collect();
        let slice = Slice { start_ns: self.last_ns, end_ns: now_ns, samples: 1, flowops };
        let seconds = (now_ns - self.last_ns) as f64 / 1e9;
        (self.last, self.last_ns) = (counters, now_ns);
        (slice, build::interval(now_ns as f64 / 1e9, seconds, &deltas))
    }

    /// Merges each pair of adjacent intervals and doubles the number of samples per interval.
    fn merge_pairs(&mut self) {
        self.samples = self.samples.saturating_mul(2);
        let mut merged: Vec<Slice> = Vec::with_capacity(self.slices.len().div_ceil(2));
        for (i, slice) in std::mem::take(&mut self.slices).into_iter().enumerate() {
            match merged.last_mut() {
                Some(last) if i % 2 == 1 => last.append(&slice),
                _ => merged.push(slice),
            }
        }
        self.slices = merged;
    }

    /// Returns the size of all latency histograms in bytes.
    fn bytes(&self) -> usize {
        self.slices.iter().flat_map(|slice| &slice.flowops).map(|part| part.latency.0.len()).sum()
    }
}

impl Slice {
    fn append(&mut self, next: &Self) {
        self.end_ns = next.end_ns;
        self.samples += next.samples;
        for (part, next) in self.flowops.iter_mut().zip(&next.flowops) {
            part.add(next);
        }
    }

    fn interval(&self) -> Interval {
        let seconds = (self.end_ns - self.start_ns) as f64 / 1e9;
        let flowops = self.flowops.iter().map(SliceFlowop::figures).collect();
        Interval { t: self.end_ns as f64 / 1e9, seconds, flowops }
    }
}

impl SliceFlowop {
    fn of(delta: &Snapshot) -> Self {
        let Dist { sum, min, max, .. } = delta.latency;
        Self { ops: delta.ops, bytes: delta.bytes, sum, min, max, latency: PackedHistogram::of(&delta.latency) }
    }

    fn add(&mut self, next: &Self) {
        if next.latency.0.is_empty() {
            self.ops += next.ops;
            self.bytes += next.bytes;
            return;
        }
        let mut both = self.dist();
        both.merge(&next.dist());
        let Dist { sum, min, max, .. } = both;
        let (ops, bytes) = (self.ops + next.ops, self.bytes + next.bytes);
        *self = Self { ops, bytes, sum, min, max, latency: PackedHistogram::of(&both) };
    }

    fn dist(&self) -> Dist {
        let mut dist = Dist::from_counts(self.latency.counts());
        if dist.count > 0 {
            (dist.sum, dist.min, dist.max) = (self.sum, self.min, self.max);
        }
        dist
    }

    fn figures(&self) -> IntervalFlowop {
        build::interval_flowop(self.ops, self.bytes, &self.dist())
    }
}

/// Compact encoding of a histogram. Each non-empty bucket is encoded as its distance from the previous one and its
/// count, as variable-length integers with seven bits per byte, least significant first.
#[derive(Clone, Default, Debug)]
struct PackedHistogram(Box<[u8]>);

impl PackedHistogram {
    fn of(dist: &Dist) -> Self {
        let (mut bytes, mut last) = (Vec::new(), 0);
        for (bucket, n) in dist.recorded() {
            push_varint(&mut bytes, (bucket - last) as u64);
            push_varint(&mut bytes, n);
            last = bucket;
        }
        Self(bytes.into_boxed_slice())
    }

    fn counts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let (mut rest, mut bucket) = (&self.0[..], 0);
        std::iter::from_fn(move || {
            bucket += pop_varint(&mut rest)? as usize;
            Some((bucket, pop_varint(&mut rest)?))
        })
    }
}

/// Appends a variable-length integer.
fn push_varint(bytes: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
}

/// Removes a variable-length integer from the front of `bytes`. Returns `None` at the end.
fn pop_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (mut n, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        n |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 {
            return Some(n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_INTERVALS, MIN_LAST_NS, PackedHistogram, Timeline};
    use crate::Interval;
    use crate::snapshot::{Dist, Snapshot};
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    /// Adds operations with the given latencies to the counters of the first flowop.
    fn work(counters: &mut [Snapshot], latencies: &[u64]) {
        for ns in latencies {
            counters[0].ops += 1;
            counters[0].bytes += 512;
            counters[0].latency.record(*ns);
        }
    }

    fn sums(intervals: &[Interval], flowop: usize) -> (u64, u64) {
        let of = |i: &Interval| (i.flowops[flowop].ops, i.flowops[flowop].bytes);
        intervals.iter().map(of).fold((0, 0), |sum, i| (sum.0 + i.0, sum.1 + i.1))
    }

    #[test]
    fn a_long_run_is_bounded_and_loses_no_operation() {
        const SAMPLES: u64 = 20_000;
        let mut timeline = Timeline::new(2, SECOND);
        let mut counters = vec![Snapshot::default(); 2];
        for second in 1..=SAMPLES {
            work(&mut counters, &[1000 + second % 64, 90_000]);
            let fresh = timeline.record(second * SECOND, counters.clone());
            assert_eq!(fresh.flowops[0].ops, 2, "the live display is not merged");
            assert!(timeline.slices.len() <= MAX_INTERVALS);
        }
        timeline.finish(SAMPLES * SECOND + 3, counters.clone());
        let intervals = timeline.intervals();
        assert_eq!(intervals.len(), SAMPLES.div_ceil(16) as usize);
        assert_eq!(sums(&intervals, 0), (counters[0].ops, counters[0].bytes));
        assert_eq!(sums(&intervals, 1), (0, 0));
        assert!(intervals[..intervals.len() - 1].iter().all(|i| (i.seconds - 16.0).abs() < 1e-9));
        assert!((intervals.iter().map(|i| i.seconds).sum::<f64>() - SAMPLES as f64).abs() < 1e-3);
        let first = &intervals[0].flowops[0];
        assert!(first.p50_ns.is_some_and(|ns| (1008..1024).contains(&ns)), "{first:?}");
        assert!(first.p99_ns.is_some_and(|ns| (89_000..=90_000).contains(&ns)), "{first:?}");
    }

    #[test]
    fn large_histograms_are_merged_sooner() {
        const SECONDS: u64 = 40;
        let mut timeline = Timeline { max_bytes: 4 << 20, ..Timeline::new(30, SECOND) };
        let mut counters = vec![Snapshot::default(); 30];
        for counter in &mut counters {
            counter.latency = Dist::from_counts((0..4000).map(|bucket| (bucket, 1)));
            counter.ops = 4000;
        }
        let each = counters.clone();
        for second in 1..=SECONDS {
            timeline.record(second * SECOND, counters.clone());
            counters.iter_mut().zip(&each).for_each(|(sum, each)| sum.merge(each));
        }
        assert!(timeline.bytes() <= 4 << 20 && timeline.slices.len() < SECONDS as usize, "{}", timeline.slices.len());
        assert_eq!(sums(&timeline.intervals(), 29).0, SECONDS * 4000);
    }

    #[test]
    fn a_short_rest_belongs_to_the_interval_before_it() {
        for (end, expected) in [
            (2 * SECOND + MIN_LAST_NS - 1, vec![1.0, 1.099_999_999]),
            (2 * SECOND + MIN_LAST_NS, vec![1.0, 1.0, 0.1]),
            // The run ended before the last sample.
            (2 * SECOND - 5, vec![1.0, 0.999_999_995]),
            (SECOND + 5, vec![1.000_000_005]),
        ] {
            let mut timeline = Timeline::new(2, SECOND);
            let mut counters = vec![Snapshot::default(); 2];
            for second in 1..=2 {
                work(&mut counters, &[5; 10]);
                timeline.record(second * SECOND, counters.clone());
            }
            work(&mut counters, &[7; 3]);
            timeline.finish(end, counters.clone());
            let intervals = timeline.intervals();
            assert_eq!(intervals.iter().map(|i| i.seconds).collect::<Vec<_>>(), expected, "end at {end}");
            assert_eq!(sums(&intervals, 0), (23, 23 * 512), "end at {end}");
        }
    }

    #[test]
    fn short_intervals_stay_separate() {
        const SHORT: u64 = 20_000_000;
        let mut timeline = Timeline::new(1, SHORT);
        for n in 1..=5 {
            timeline.record(n * SHORT, vec![Snapshot::default()]);
        }
        timeline.finish(6 * SHORT - 1, vec![Snapshot::default()]);
        assert_eq!(timeline.intervals().len(), 6);
    }

    #[test]
    fn a_measurement_without_samples_is_one_interval() {
        let mut timeline = Timeline::new(2, SECOND);
        let mut counters = vec![Snapshot::default(); 2];
        work(&mut counters, &[5]);
        timeline.finish(7, counters);
        assert_eq!((timeline.intervals().len(), sums(&timeline.intervals(), 0).0), (1, 1));
    }

    proptest! {
        #[test]
        fn packed_histograms_are_restored(counts in prop::collection::btree_map(0_usize..4608, 1_u64..1 << 40, 0..60)) {
            let dist = Dist::from_counts(counts.clone());
            prop_assert_eq!(PackedHistogram::of(&dist).counts().collect::<Vec<_>>(), counts.into_iter().collect::<Vec<_>>());
        }
    }
}
