//! The time series of a run: intervals whose sums are the run's totals, whatever was looked at and when.
//!
//! A run of any length takes bounded memory: beyond [`MOST`] intervals each pair of neighbours becomes one, with its exact
//! percentiles, and the intervals that follow are as long. So all but the last are equally long, but for the scheduler's delays.
//! Deliberately absent: clocks, and who looks when.

use super::build;
use super::{Interval, IntervalFlowop};
use crate::stats::snapshot::{Dist, Snapshot};

/// Intervals at most. A week of one-second intervals ends as 1,182 of 512 s.
pub const MOST: usize = 2_000;

/// Bytes of latency histograms at most, which would otherwise grow with the spread of the latencies.
const MOST_BYTES: usize = 64 << 20;

/// What is left at the end and shorter than this, in nanoseconds, belongs to the interval before it.
pub const SHORT_NS: u64 = 100_000_000;

/// The time series of one measurement.
#[derive(Clone, Debug)]
pub struct Timeline {
    slices: Vec<Slice>,
    /// How many looks make an interval.
    looks: u64,
    /// The counters at the last look; all zero before the first, when the measurement began.
    last: Vec<Snapshot>,
    /// When that was, in nanoseconds since the measurement began.
    last_ns: u64,
}

/// One interval, as it is kept.
#[derive(Clone, Debug)]
struct Slice {
    start_ns: u64,
    end_ns: u64,
    looks: u64,
    flowops: Vec<Part>,
}

/// One flowop in one interval.
#[derive(Clone, Default, Debug)]
struct Part {
    ops: u64,
    bytes: u64,
    sum: u64,
    min: u64,
    max: u64,
    latency: Packed,
}

impl Timeline {
    /// Of a measurement of so many flowops that begins now.
    pub fn new(flowops: usize) -> Self {
        Self { slices: Vec::new(), looks: 1, last: vec![Snapshot::default(); flowops], last_ns: 0 }
    }

    /// When the last look was, in nanoseconds since the measurement began.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// A look at the counters. Returns what has happened since the last one.
    pub fn look(&mut self, now_ns: u64, counters: Vec<Snapshot>) -> Interval {
        let (slice, fresh) = self.since_last(now_ns, counters);
        match self.slices.last_mut().filter(|last| last.looks < self.looks) {
            Some(last) => last.append(&slice),
            None => self.slices.push(slice),
        }
        while self.slices.len() > MOST || self.slices.len() > 2 && self.bytes() > MOST_BYTES {
            self.halve();
        }
        fresh
    }

    /// The end of the measurement: what is left becomes an interval of its own, or, if it is short, a part of the last one.
    pub fn conclude(&mut self, end_ns: u64, counters: Vec<Snapshot>) {
        let (slice, _) = self.since_last(end_ns, counters);
        self.slices.push(slice);
        // The end may turn out to lie before the last look.
        while let [.., before, last] = &mut self.slices[..]
            && end_ns.saturating_sub(last.start_ns) < SHORT_NS
        {
            before.append(last);
            self.slices.pop();
        }
        if let Some(last) = self.slices.last_mut() {
            last.end_ns = end_ns.max(last.start_ns);
        }
    }

    /// All intervals.
    pub fn intervals(&self) -> Vec<Interval> {
        self.slices.iter().map(Slice::interval).collect()
    }

    fn since_last(&mut self, now_ns: u64, counters: Vec<Snapshot>) -> (Slice, Interval) {
        let now_ns = now_ns.max(self.last_ns);
        let deltas: Vec<Snapshot> = counters.iter().zip(&self.last).map(|(now, then)| now.minus(then)).collect();
        let flowops = deltas.iter().map(Part::of).collect();
        let slice = Slice { start_ns: self.last_ns, end_ns: now_ns, looks: 1, flowops };
        let seconds = (now_ns - self.last_ns) as f64 / 1e9;
        (self.last, self.last_ns) = (counters, now_ns);
        (slice, build::interval(now_ns as f64 / 1e9, seconds, &deltas))
    }

    fn halve(&mut self) {
        self.looks = self.looks.saturating_mul(2);
        let mut halved: Vec<Slice> = Vec::with_capacity(self.slices.len().div_ceil(2));
        for (i, slice) in std::mem::take(&mut self.slices).into_iter().enumerate() {
            match halved.last_mut() {
                Some(last) if i % 2 == 1 => last.append(&slice),
                _ => halved.push(slice),
            }
        }
        self.slices = halved;
    }

    fn bytes(&self) -> usize {
        self.slices.iter().flat_map(|slice| &slice.flowops).map(|part| part.latency.0.len()).sum()
    }
}

impl Slice {
    fn append(&mut self, next: &Self) {
        self.end_ns = next.end_ns;
        self.looks += next.looks;
        for (part, next) in self.flowops.iter_mut().zip(&next.flowops) {
            part.add(next);
        }
    }

    fn interval(&self) -> Interval {
        let seconds = (self.end_ns - self.start_ns) as f64 / 1e9;
        let flowops = self.flowops.iter().map(Part::figures).collect();
        Interval { t: self.end_ns as f64 / 1e9, seconds, flowops }
    }
}

impl Part {
    fn of(delta: &Snapshot) -> Self {
        let Dist { sum, min, max, .. } = delta.latency;
        Self { ops: delta.ops, bytes: delta.bytes, sum, min, max, latency: Packed::of(&delta.latency) }
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
        *self = Self { ops, bytes, sum, min, max, latency: Packed::of(&both) };
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

/// A histogram's counts in as few bytes as they take: for each bucket that has any, the distance from the last such bucket and the
/// count, seven bits a byte, the lowest first.
#[derive(Clone, Default, Debug)]
struct Packed(Box<[u8]>);

impl Packed {
    fn of(dist: &Dist) -> Self {
        let (mut bytes, mut last) = (Vec::new(), 0);
        for (bucket, n) in dist.recorded() {
            put(&mut bytes, (bucket - last) as u64);
            put(&mut bytes, n);
            last = bucket;
        }
        Self(bytes.into_boxed_slice())
    }

    fn counts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let (mut rest, mut bucket) = (&self.0[..], 0);
        std::iter::from_fn(move || {
            bucket += take(&mut rest)? as usize;
            Some((bucket, take(&mut rest)?))
        })
    }
}

fn put(bytes: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
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
    use super::{MOST, MOST_BYTES, Packed, SHORT_NS, Timeline};
    use crate::result::Interval;
    use crate::stats::snapshot::{Dist, Snapshot};
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    /// Counters of two flowops, of which the second does nothing, that many operations further.
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
    fn a_long_run_is_bounded_and_loses_nothing() {
        const LOOKS: u64 = 20_000;
        let mut timeline = Timeline::new(2);
        let mut counters = vec![Snapshot::default(); 2];
        for second in 1..=LOOKS {
            work(&mut counters, &[1000 + second % 64, 90_000]);
            let fresh = timeline.look(second * SECOND, counters.clone());
            assert_eq!(fresh.flowops[0].ops, 2, "what is shown while it runs is not thinned");
            assert!(timeline.slices.len() <= MOST);
        }
        timeline.conclude(LOOKS * SECOND + 3, counters.clone());
        let intervals = timeline.intervals();
        assert_eq!(intervals.len(), LOOKS.div_ceil(16) as usize);
        assert_eq!(sums(&intervals, 0), (counters[0].ops, counters[0].bytes));
        assert_eq!(sums(&intervals, 1), (0, 0));
        assert!(intervals[..intervals.len() - 1].iter().all(|i| (i.seconds - 16.0).abs() < 1e-9));
        assert!((intervals.iter().map(|i| i.seconds).sum::<f64>() - LOOKS as f64).abs() < 1e-3);
        let first = &intervals[0].flowops[0];
        assert!(first.p50_ns.is_some_and(|ns| (1008..1024).contains(&ns)), "{first:?}");
        assert!(first.p99_ns.is_some_and(|ns| (89_000..=90_000).contains(&ns)), "{first:?}");
    }

    #[test]
    fn wide_histograms_are_thinned_sooner() {
        let mut timeline = Timeline::new(30);
        let mut counters = vec![Snapshot::default(); 30];
        for counter in &mut counters {
            counter.latency = Dist::from_counts((0..4000).map(|bucket| (bucket, 1)));
            counter.ops = 4000;
        }
        let each = counters.clone();
        for second in 1..=600 {
            timeline.look(second * SECOND, counters.clone());
            counters.iter_mut().zip(&each).for_each(|(sum, each)| sum.merge(each));
        }
        assert!(timeline.bytes() <= MOST_BYTES && timeline.slices.len() < 600, "{}", timeline.slices.len());
        assert_eq!(sums(&timeline.intervals(), 29).0, 600 * 4000);
    }

    #[test]
    fn a_short_rest_belongs_to_the_interval_before_it() {
        for (end, expected) in [
            (2 * SECOND + SHORT_NS - 1, vec![1.0, 1.099_999_999]),
            (2 * SECOND + SHORT_NS, vec![1.0, 1.0, 0.1]),
            // The end was earlier than the last look, of which nobody had heard by then.
            (2 * SECOND - 5, vec![1.0, 0.999_999_995]),
            (SECOND + 5, vec![1.000_000_005]),
        ] {
            let mut timeline = Timeline::new(2);
            let mut counters = vec![Snapshot::default(); 2];
            for second in 1..=2 {
                work(&mut counters, &[5; 10]);
                timeline.look(second * SECOND, counters.clone());
            }
            work(&mut counters, &[7; 3]);
            timeline.conclude(end, counters.clone());
            let intervals = timeline.intervals();
            assert_eq!(intervals.iter().map(|i| i.seconds).collect::<Vec<_>>(), expected, "end at {end}");
            assert_eq!(sums(&intervals, 0), (23, 23 * 512), "end at {end}");
        }
    }

    #[test]
    fn a_measurement_nobody_looked_at_is_one_interval() {
        let mut timeline = Timeline::new(2);
        let mut counters = vec![Snapshot::default(); 2];
        work(&mut counters, &[5]);
        timeline.conclude(7, counters);
        assert_eq!((timeline.intervals().len(), sums(&timeline.intervals(), 0).0), (1, 1));
    }

    proptest! {
        #[test]
        fn what_is_packed_reads_back(counts in prop::collection::btree_map(0_usize..4608, 1_u64..1 << 40, 0..60)) {
            let dist = Dist::from_counts(counts.clone());
            prop_assert_eq!(Packed::of(&dist).counts().collect::<Vec<_>>(), counts.into_iter().collect::<Vec<_>>());
        }
    }
}
