//! The progress of the ranks during a run, for the live view of rank 0.
//!
//! Each rank sends its counters since the start of the run, so that a message that was dropped loses no operation. Pure
//! functions: no clock, no messages.

use serde::{Deserialize, Serialize};

/// The number of intervals without a message after which the rate of a rank is unknown.
const MAX_UNCHANGED: u32 = 3;

/// The counters of a rank since the start of the measured time. Operations and bytes are those of the I/O flowops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankProgress {
    /// The number of the run, from 1.
    pub run: u64,
    /// The time since the start, in nanoseconds.
    pub elapsed_ns: u64,
    /// Operations.
    pub ops: u64,
    pub bytes: u64,
    /// The sum of the latencies, in nanoseconds.
    pub latency_ns: u64,
    /// Failed operations of flowops of all classes.
    pub errors: u64,
}

impl RankProgress {
    /// Returns the difference to earlier counters of the same run. Counters that were reset in between begin at 0.
    fn since(self, earlier: Self) -> Self {
        if earlier.run != self.run || earlier.elapsed_ns > self.elapsed_ns {
            return self;
        }
        Self {
            run: self.run,
            elapsed_ns: self.elapsed_ns - earlier.elapsed_ns,
            ops: self.ops.saturating_sub(earlier.ops),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            latency_ns: self.latency_ns.saturating_sub(earlier.latency_ns),
            errors: self.errors.saturating_sub(earlier.errors),
        }
    }
}

/// The last two messages of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastProgress {
    /// The message before the newest one; zeros if there is none.
    previous: RankProgress,
    /// The newest message.
    newest: RankProgress,
}

impl LastProgress {
    /// Adds a message.
    pub fn add(&mut self, message: RankProgress) {
        *self = Self { previous: self.newest, newest: message };
    }

    /// Returns the counters of the time between the two messages.
    fn interval(&self) -> RankProgress {
        self.newest.since(self.previous)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct RankRate {
    /// The number of the rank.
    pub rank: usize,
    /// The name of its host.
    pub host: String,
    /// I/O operations per second.
    pub ops_per_s: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RanksInterval {
    /// The number of ranks.
    pub ranks: usize,
    /// The number of ranks whose rates are known.
    pub reporting: usize,
    /// I/O operations that became known since the last interval.
    pub ops: u64,
    /// The sum of the rates of the ranks, each over its newest interval.
    pub ops_per_s: f64,
    /// Bytes that became known since the last interval.
    pub bytes: u64,
    /// The sum of the throughputs of the ranks, in bytes per second.
    pub bytes_per_s: f64,
    /// The mean latency of these operations in nanoseconds; `None` without any.
    pub mean_ns: Option<f64>,
    /// Failed operations since the start.
    pub errors: u64,
    /// The rank with the lowest rate.
    pub slowest: Option<RankRate>,
    /// The rank with the highest rate.
    pub fastest: Option<RankRate>,
}

/// The counters of a rank that an interval has included.
#[derive(Clone, Copy, Debug, Default)]
struct IncludedRank {
    counters: RankProgress,
    /// The number of intervals since they changed.
    unchanged: u32,
}

/// The intervals of all ranks, as rank 0 shows them.
#[derive(Clone, Debug)]
pub struct RanksProgress {
    /// The name of the host of each rank.
    hosts: Vec<String>,
    own: LastProgress,
    included: Vec<IncludedRank>,
}

impl RanksProgress {
    /// Returns the progress before the first interval. `hosts`: the host of each rank.
    pub fn new(hosts: Vec<String>) -> Self {
        let included = vec![IncludedRank::default(); hosts.len()];
        Self { hosts, own: LastProgress::default(), included }
    }

    /// Ends an interval with the counters of rank 0, and the last messages of the ranks; the first one is not read.
    pub fn interval(&mut self, own: RankProgress, others: &[LastProgress]) -> RanksInterval {
        self.own.add(own);
        let mut all = RanksInterval { ranks: self.hosts.len(), ..RanksInterval::default() };
        let (mut latency_ns, mut rates) = (0_u64, Vec::new());
        for (rank, included) in self.included.iter_mut().enumerate() {
            let last = if rank == 0 { self.own } else { others.get(rank).copied().unwrap_or_default() };
            if last.newest.run != own.run {
                continue;
            }
            let new = last.newest.since(included.counters);
            let is_unchanged = last.newest == included.counters;
            let unchanged = if is_unchanged { included.unchanged.saturating_add(1) } else { 0 };
            *included = IncludedRank { counters: last.newest, unchanged };
            all.errors += last.newest.errors;
            if !is_unchanged {
                all.ops += new.ops;
                all.bytes += new.bytes;
                latency_ns += new.latency_ns;
            }
            let interval = last.interval();
            if interval.elapsed_ns == 0 || unchanged >= MAX_UNCHANGED {
                continue;
            }
            let seconds = interval.elapsed_ns as f64 / 1e9;
            let ops_per_s = interval.ops as f64 / seconds;
            all.reporting += 1;
            all.ops_per_s += ops_per_s;
            all.bytes_per_s += interval.bytes as f64 / seconds;
            rates.push(RankRate { rank, host: self.hosts[rank].clone(), ops_per_s });
        }
        all.mean_ns = (all.ops > 0).then(|| latency_ns as f64 / all.ops as f64);
        let by_rate = |a: &&RankRate, b: &&RankRate| a.ops_per_s.total_cmp(&b.ops_per_s);
        all.slowest = rates.iter().min_by(by_rate).cloned();
        all.fastest = rates.iter().max_by(by_rate).cloned();
        all
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{LastProgress, MAX_UNCHANGED, RankProgress, RanksInterval, RanksProgress};

    fn progress(run: u64, seconds: u64, ops: u64) -> RankProgress {
        let elapsed_ns = seconds * 1_000_000_000;
        RankProgress { run, elapsed_ns, ops, bytes: 4 * ops, latency_ns: 10 * ops, errors: seconds }
    }

    /// The progress of three ranks after the first interval of a run.
    fn after_one() -> (RanksProgress, [LastProgress; 3], RanksInterval) {
        let mut all = RanksProgress::new(["h1", "h1", "h2"].map(str::to_owned).to_vec());
        let mut others = [LastProgress::default(); 3];
        others[1].add(progress(1, 1, 300));
        others[2].add(progress(1, 1, 50));
        let interval = all.interval(progress(1, 1, 100), &others);
        (all, others, interval)
    }

    #[test]
    fn an_interval_has_the_sums_and_the_extremes() {
        let (_, _, interval) = after_one();
        assert_eq!((interval.ranks, interval.reporting, interval.ops, interval.bytes), (3, 3, 450, 1800));
        assert_eq!((interval.ops_per_s, interval.bytes_per_s, interval.mean_ns), (450.0, 1800.0, Some(10.0)));
        assert_eq!(interval.errors, 3);
        let (slowest, fastest) = (interval.slowest.unwrap(), interval.fastest.unwrap());
        assert_eq!((slowest.rank, slowest.host.as_str(), slowest.ops_per_s), (2, "h2", 50.0));
        assert_eq!((fastest.rank, fastest.host.as_str(), fastest.ops_per_s), (1, "h1", 300.0));
    }

    #[test]
    fn a_dropped_message_loses_no_operation() {
        let (mut all, mut others, _) = after_one();
        // Nothing came from rank 1.
        others[2].add(progress(1, 2, 150));
        let second = all.interval(progress(1, 2, 200), &others);
        assert_eq!((second.ops, second.ops_per_s), (200, 500.0), "the rate of rank 1 is the last known one");
        others[1].add(progress(1, 3, 900));
        others[2].add(progress(1, 3, 250));
        let third = all.interval(progress(1, 3, 300), &others);
        assert_eq!((third.ops, third.ops_per_s), (800, 100.0 + 300.0 + 100.0));
    }

    #[test]
    fn the_rate_of_a_silent_rank_is_unknown() {
        let (mut all, mut others, _) = after_one();
        let mut last = RanksInterval::default();
        for second in 2..=2 + u64::from(MAX_UNCHANGED) {
            others[1].add(progress(1, second, 300 * second));
            last = all.interval(progress(1, second, 100 * second), &others);
        }
        assert_eq!((last.ranks, last.reporting, last.ops_per_s), (3, 2, 400.0));
        assert_eq!(last.slowest.unwrap().rank, 0);
    }

    #[test]
    fn counters_of_another_run_do_not_count() {
        let (mut all, mut others, _) = after_one();
        others[2].add(progress(2, 1, 70));
        let interval = all.interval(progress(2, 1, 40), &others);
        assert_eq!((interval.reporting, interval.ops, interval.ops_per_s), (2, 110, 110.0));
        // The counters of a run can be reset.
        others[2].add(progress(2, 1, 5));
        others[2].add(progress(2, 2, 10));
        let interval = all.interval(progress(2, 2, 80), &others);
        assert_eq!((interval.ops_per_s, interval.reporting), (45.0, 2));
    }
}
