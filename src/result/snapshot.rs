//! Counters at one moment, as plain numbers that can be merged (threads, processes) and subtracted (warm-up,
//! intervals).
//!
//! Percentiles are always computed from merged counts and never averaged.

use super::{FlowopCounter, hdr, layout};
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A distribution of nanoseconds: exact count, sum, least and greatest value, and the counts of the buckets of
/// [`layout`].
#[derive(Clone, Debug)]
pub struct Dist {
    /// The number of values.
    pub count: u64,
    /// The sum of the values, in nanoseconds.
    pub sum: u64,
    /// The least value; `u64::MAX` when there are no values.
    pub min: u64,
    /// The greatest value; 0 when there are no values.
    pub max: u64,
    /// [`layout::LEN`] counts, or an empty vector while all are zero.
    counts: Vec<u64>,
}

impl Default for Dist {
    fn default() -> Self {
        Self { count: 0, sum: 0, min: u64::MAX, max: 0, counts: Vec::new() }
    }
}

impl PartialEq for Dist {
    fn eq(&self, other: &Self) -> bool {
        let plain = |d: &Self| (d.count, d.sum, d.min, d.max);
        plain(self) == plain(other) && self.recorded().eq(other.recorded())
    }
}

impl Eq for Dist {}

impl Dist {
    /// Returns a distribution with these counts by bucket number, as a stored histogram has them. Numbers beyond the
    /// last bucket count in the last. Sum, least and greatest value are as exact as the buckets.
    pub fn from_counts(counts: impl IntoIterator<Item = (usize, u64)>) -> Self {
        let mut dist = Self::default();
        for (index, n) in counts.into_iter().filter(|(_, n)| *n > 0) {
            let index = index.min(layout::LEN - 1);
            // A stored histogram can have any counts.
            let bucket = &mut dist.counts_mut()[index];
            *bucket = bucket.saturating_add(n);
            dist.count = dist.count.saturating_add(n);
            let middle = u64::midpoint(layout::lowest(index), layout::highest(index));
            dist.sum = dist.sum.saturating_add(middle.saturating_mul(n));
            dist.min = dist.min.min(layout::lowest(index));
            dist.max = dist.max.max(layout::highest(index));
        }
        dist
    }

    /// Returns all buckets for modification. The caller keeps `count` consistent.
    pub(crate) fn counts_mut(&mut self) -> &mut [u64] {
        if self.counts.is_empty() {
            // The allocator returns zeroed memory: writing zeros was an eighth of the time of the unit tests.
            self.counts = vec![0; layout::LEN];
        }
        &mut self.counts
    }

    /// Adds the current values of counters: only the blocks whose bit is set in `blocks`.
    pub fn add_counts(&mut self, counters: &[AtomicU64], mut blocks: u64) {
        if blocks == 0 {
            return;
        }
        let counts = self.counts_mut();
        let mut seen = 0;
        while blocks != 0 {
            let start = blocks.trailing_zeros() as usize * layout::BLOCK;
            let block = start..start + layout::BLOCK;
            for (sum, counter) in counts[block.clone()].iter_mut().zip(&counters[block]) {
                let n = counter.load(Relaxed);
                *sum += n;
                seen += n;
            }
            blocks &= blocks - 1;
        }
        self.count += seen;
    }

    /// Adds one value.
    pub fn record(&mut self, ns: u64) {
        self.counts_mut()[layout::index(ns).min(layout::LEN - 1)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// Returns the buckets with a count, in order, with their counts.
    pub fn recorded(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.blocks().flat_map(|(start, block)| (start..).zip(block.iter().copied()).filter(|(_, n)| *n > 0))
    }

    /// Returns the blocks with a count, each with the number of its first bucket. Most blocks of a distribution are
    /// empty, and each is skipped by one comparison: in a build without optimisation the unit tests took 104 s of
    /// processor time instead of 244 s.
    fn blocks(&self) -> impl Iterator<Item = (usize, &[u64])> {
        const EMPTY: &[u64] = &[0; layout::BLOCK];
        let blocks = self.counts.chunks(layout::BLOCK).enumerate().filter(|(_, block)| *block != EMPTY);
        blocks.map(|(n, block)| (n * layout::BLOCK, block))
    }

    /// Adds another distribution. The result does not depend on the order of merging.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let counts = self.counts_mut();
        for (start, block) in other.blocks() {
            for (sum, n) in counts[start..].iter_mut().zip(block) {
                *sum = sum.saturating_add(*n);
            }
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the values recorded after an earlier snapshot of the same counters. Least and greatest are exact if the
    /// baseline is empty or has been exceeded since; otherwise they are the bounds of the outermost buckets.
    #[must_use]
    pub fn minus(&self, baseline: &Self) -> Self {
        if baseline.count == 0 {
            return self.clone();
        }
        let mut rest = Self { sum: self.sum.saturating_sub(baseline.sum), ..Self::default() };
        rest.counts.clone_from(&self.counts);
        for (start, block) in baseline.blocks() {
            let counts = rest.counts.get_mut(start..).unwrap_or_default();
            for (now, then) in counts.iter_mut().zip(block) {
                *now = now.saturating_sub(*then);
            }
        }
        rest.count = rest.recorded().map(|(_, n)| n).sum();
        let ends = (rest.recorded().next(), rest.recorded().last());
        let (Some((first, _)), Some((last, _))) = ends else { return Self::default() };
        rest.min = layout::lowest(first).max(self.min);
        let saturated = last + 1 == layout::LEN;
        rest.max = if saturated { self.max } else { layout::highest(last).min(self.max) };
        // In a sample the greatest value may be older than the counts by one operation.
        rest.max = rest.max.max(rest.min);
        rest
    }

    /// Returns the mean, exact except for rounding. `None` when there are no values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Returns the standard deviation, computed from the buckets. `None` when there are no values.
    pub fn stddev(&self) -> Option<f64> {
        (self.count > 0).then(|| hdr::Quantiles::of(self).stddev())
    }

    /// Returns the value that a share `q` (0 … 1) of all values does not exceed: the upper end of its bucket, within
    /// the least and the greatest value. `None` when there are no values. Use [`hdr::Quantiles`] for several
    /// percentiles of one distribution.
    pub fn percentile(&self, q: f64) -> Option<u64> {
        (self.count > 0).then(|| hdr::Quantiles::of(self).at(q))
    }

    /// Returns the percentiles at ascending shares in one pass over the buckets; none when there are no values.
    pub fn percentiles(&self, shares: &[f64]) -> Vec<u64> {
        let mut found = Vec::with_capacity(shares.len());
        let mut seen: u64 = 0;
        for (index, n) in self.recorded() {
            seen = seen.saturating_add(n);
            let has = |share: &&f64| (**share * self.count as f64).ceil() <= seen as f64;
            let reached = shares[found.len()..].iter().take_while(has).count();
            let value = layout::highest(index).min(self.max).max(self.min);
            found.extend(std::iter::repeat_n(value, reached));
        }
        found
    }
}

/// The counters of one flowop at one moment, of one thread or of many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Operations that ended before the deadline.
    pub ops: u64,
    /// Bytes that these operations moved.
    pub bytes: u64,
    /// Age of the oldest late operation at the deadline, in nanoseconds.
    pub late_oldest_ns: u64,
    /// The other counters, by [`FlowopCounter`].
    pub counts: [u64; FlowopCounter::ALL.len()],
    /// Failed operations by error number.
    pub errors: BTreeMap<i32, u64>,
    /// Latency (service time).
    pub latency: Dist,
    /// Time from the intended start to the end; only in an open loop.
    pub response: Option<Dist>,
    /// Time from the intended to the actual start; only in an open loop.
    pub lateness: Option<Dist>,
}

impl Index<FlowopCounter> for Snapshot {
    type Output = u64;

    fn index(&self, counter: FlowopCounter) -> &u64 {
        &self.counts[counter as usize]
    }
}

impl IndexMut<FlowopCounter> for Snapshot {
    fn index_mut(&mut self, counter: FlowopCounter) -> &mut u64 {
        &mut self.counts[counter as usize]
    }
}

impl Snapshot {
    /// Adds another snapshot. The result does not depend on the order of merging.
    pub fn merge(&mut self, other: &Self) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        for (sum, n) in self.counts.iter_mut().zip(other.counts) {
            *sum += n;
        }
        for (errno, n) in &other.errors {
            *self.errors.entry(*errno).or_default() += n;
        }
        self.late_oldest_ns = self.late_oldest_ns.max(other.late_oldest_ns);
        self.latency.merge(&other.latency);
        for (into, from) in [(&mut self.response, &other.response), (&mut self.lateness, &other.lateness)] {
            if let Some(from) = from {
                into.get_or_insert_default().merge(from);
            }
        }
    }

    /// Returns what was counted after an earlier snapshot of the same counters.
    #[must_use]
    pub fn minus(&self, baseline: &Self) -> Self {
        let mut rest = Self {
            ops: self.ops.saturating_sub(baseline.ops),
            bytes: self.bytes.saturating_sub(baseline.bytes),
            late_oldest_ns: self.late_oldest_ns,
            counts: self.counts,
            latency: self.latency.minus(&baseline.latency),
            ..Self::default()
        };
        for (now, then) in rest.counts.iter_mut().zip(baseline.counts) {
            *now = now.saturating_sub(then);
        }
        for (errno, now) in &self.errors {
            let then = baseline.errors.get(errno).copied().unwrap_or(0);
            if *now > then {
                rest.errors.insert(*errno, now - then);
            }
        }
        let minus = |now: &Option<Dist>, then: &Option<Dist>| {
            now.as_ref().map(|now| then.as_ref().map_or_else(|| now.clone(), |then| now.minus(then)))
        };
        rest.response = minus(&self.response, &baseline.response);
        rest.lateness = minus(&self.lateness, &baseline.lateness);
        rest
    }

    /// Returns the mean latency in nanoseconds. `None` when there are no operations.
    pub fn mean(&self) -> Option<f64> {
        self.latency.mean()
    }

    /// Returns a percentile of the latency, `q` in 0 … 1. `None` when there are no operations.
    pub fn percentile(&self, q: f64) -> Option<u64> {
        self.latency.percentile(q)
    }

    /// Returns the number of failed operations, over all error numbers.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Dist, Snapshot};
    use proptest::prelude::*;

    fn dist(values: &[u64]) -> Dist {
        let mut dist = Dist::default();
        for value in values {
            dist.record(*value);
        }
        dist
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec((0_u32..44, any::<u64>()).prop_map(|(bits, v)| v >> (63 - bits)), 0..60)
    }

    fn snapshots() -> impl Strategy<Value = Snapshot> {
        let open_loop = prop::option::of(values().prop_map(|v| dist(&v)));
        let errors = prop::collection::btree_map(1_i32..40, 1_u64..9, 0..4);
        (values(), prop::array::uniform12(0_u64..1 << 40), errors, open_loop).prop_map(
            |(latency, n, errors, response)| Snapshot {
                ops: latency.len() as u64,
                bytes: n[0],
                counts: std::array::from_fn(|at| n[at + 1]),
                late_oldest_ns: n[11],
                errors,
                latency: dist(&latency),
                lateness: response.clone(),
                response,
            },
        )
    }

    fn merged(parts: &[&Snapshot]) -> Snapshot {
        let mut sum = Snapshot::default();
        for part in parts {
            sum.merge(part);
        }
        sum
    }

    proptest! {
        #[test]
        fn merging_does_not_depend_on_the_order(a in snapshots(), b in snapshots(), c in snapshots()) {
            prop_assert_eq!(merged(&[&a, &b]), merged(&[&b, &a]));
            prop_assert_eq!(merged(&[&merged(&[&a, &b]), &c]), merged(&[&a, &merged(&[&b, &c])]));
            prop_assert_eq!(merged(&[&a]), a);
        }

        #[test]
        fn merging_equals_recording_in_one_distribution(a in values(), b in values()) {
            let mut sum = dist(&a);
            sum.merge(&dist(&b));
            prop_assert_eq!(sum, dist(&[a, b].concat()));
        }

        #[test]
        fn minus_reverses_merge(a in snapshots(), b in snapshots()) {
            let rest = merged(&[&a, &b]).minus(&a);
            prop_assert_eq!((rest.ops, rest.bytes, rest.counts), (b.ops, b.bytes, b.counts));
            prop_assert_eq!(&rest.errors, &b.errors);
            prop_assert_eq!((rest.latency.count, rest.latency.sum), (b.latency.count, b.latency.sum));
            prop_assert!(rest.latency.recorded().eq(b.latency.recorded()));
        }

        #[test]
        fn extremes_after_a_baseline_are_within_a_bucket(a in values(), b in values()) {
            prop_assume!(!b.is_empty());
            let (mut all, b) = (dist(&a), dist(&b));
            all.merge(&b);
            let rest = all.minus(&dist(&a));
            if a.is_empty() {
                prop_assert_eq!(&rest, &b);
            }
            let near = |x: u64, y: u64| (x.abs_diff(y)) as f64 <= x.max(y) as f64 / 100.0;
            prop_assert!(rest.min <= b.min && rest.max >= b.max);
            // Beyond the end of the layout all values are in one bucket.
            if all.max < crate::layout::LIMIT {
                prop_assert!(near(rest.min, b.min), "{} {}", rest.min, b.min);
                prop_assert!(near(rest.max, b.max), "{} {}", rest.max, b.max);
            }
        }

        #[test]
        fn percentiles_are_sorted_and_in_range(v in values(), mut qs in prop::collection::vec(0.0_f64..=1.0, 2..9)) {
            prop_assume!(!v.is_empty());
            let d = dist(&v);
            qs.sort_by(f64::total_cmp);
            let at: Vec<u64> = qs.iter().filter_map(|q| d.percentile(*q)).collect();
            prop_assert_eq!(at.len(), qs.len());
            prop_assert!(at.is_sorted());
            prop_assert!(at.iter().all(|p| (d.min..=d.max).contains(p)));
            prop_assert_eq!(d.percentile(1.0), Some(d.max));
            // Beyond the end of the layout the values of a bucket differ, and at 0 the ends of the first one.
            if d.max < crate::layout::LIMIT && qs[0] > 0.0 {
                prop_assert_eq!(d.percentiles(&qs), at);
            }
        }
    }

    #[test]
    fn percentiles_mean_and_deviation_of_known_values() {
        let d = dist(&(1..=1000).map(|v| v * 1000).collect::<Vec<_>>());
        for (q, exact) in [(0.5, 500_000.0), (0.9, 900_000.0), (0.99, 990_000.0)] {
            let found = d.percentile(q).map_or(0.0, |v| v as f64);
            assert!((found / exact - 1.0).abs() < 0.01, "{q}: {found}");
        }
        assert_eq!(d.mean(), Some(500_500.0));
        let deviation = d.stddev().unwrap_or(0.0);
        assert!((deviation / 288_675.0 - 1.0).abs() < 0.01, "{deviation}");
    }

    #[test]
    fn an_empty_distribution_has_no_statistics() {
        let none = Dist::default();
        assert_eq!((none.mean(), none.stddev(), none.percentile(0.5)), (None, None, None));
        assert_eq!(dist(&[5]).minus(&dist(&[5])), none);
    }
}
