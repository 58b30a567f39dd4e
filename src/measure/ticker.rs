//! The schedule of samples of a run: one at the end of each interval of the time series, and enough for the reports of
//! `psrun` to be on time. Not here: clocks, and what a sample is used for.

use std::time::Duration;

/// The upper bound of the delay of a `psrun` report.
const MAX_REPORT_DELAY: Duration = Duration::from_millis(100);

/// The period of samples, and the decision which of them end an interval.
#[derive(Debug)]
pub(crate) struct Ticker {
    sample_period: Duration,
    interval_ns: u64,
    next_ns: u64,
}

impl Ticker {
    /// Creates a schedule for intervals of `interval`, and reports every `period`.
    pub(crate) fn new(interval: Duration, period: Option<Duration>) -> Self {
        let interval_ns = (interval.as_nanos() as u64).max(1);
        let wanted =
            period.map_or(interval, |period| interval.min(period.max(Duration::from_millis(1))).min(MAX_REPORT_DELAY));
        // A whole number of samples per interval, so that the period of samples does not change the length of
        // intervals.
        let samples = interval_ns.div_ceil((wanted.as_nanos() as u64).max(1));
        Self { sample_period: Duration::from_nanos(interval_ns.div_ceil(samples)), interval_ns, next_ns: interval_ns }
    }

    /// Takes samples at most this far apart.
    pub(crate) fn with_samples_every(self, longest: Duration) -> Self {
        let wanted = self.sample_period.min(longest).as_nanos() as u64;
        let samples = self.interval_ns.div_ceil(wanted.max(1));
        Self { sample_period: Duration::from_nanos(self.interval_ns.div_ceil(samples)), ..self }
    }

    /// Returns the time between two samples.
    pub(crate) fn period(&self) -> Duration {
        self.sample_period
    }

    /// True if the sample at this time ends an interval. Samples may be skipped, or be slightly early due to
    /// rounding.
    pub(crate) fn ends_interval(&mut self, elapsed_ns: u64) -> bool {
        let rounded = elapsed_ns + self.sample_period.as_nanos() as u64 / 2;
        let ends = rounded >= self.next_ns;
        if ends {
            self.next_ns = (rounded / self.interval_ns + 1) * self.interval_ns;
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::Ticker;
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    fn ticker(interval: u64, period: Option<u64>) -> Ticker {
        Ticker::new(Duration::from_millis(interval), period.map(Duration::from_millis))
    }

    /// The ends of the first hundred intervals in milliseconds, if no sample is late.
    fn ends(interval: u64, period: Option<u64>) -> Vec<u64> {
        let mut ticker = ticker(interval, period);
        let sample_period = ticker.period().as_nanos() as u64;
        (1..).map(|n| n * sample_period).filter(|ns| ticker.ends_interval(*ns)).map(|ns| ns / MS).take(100).collect()
    }

    #[test]
    fn intervals_have_their_length_with_any_report_period() {
        for interval in [100, 250, 700, 1000, 3000] {
            for period in [None, Some(1), Some(40), Some(250), Some(1500), Some(10_000)] {
                let wanted: Vec<u64> = (1..=100).map(|n| n * interval).collect();
                assert_eq!(ends(interval, period), wanted, "every {interval} ms, reports each {period:?} ms");
            }
        }
    }

    #[test]
    fn reports_do_not_wait_for_the_end_of_an_interval() {
        for (interval, period) in [(700, 1500), (1000, 250), (10_000, 3000), (250, 1000)] {
            let sample_period = ticker(interval, Some(period)).period();
            assert!(sample_period <= Duration::from_millis(period.min(100)), "samples every {sample_period:?}");
        }
        assert_eq!(ticker(700, None).period(), Duration::from_millis(700), "no samples within an interval");
    }

    #[test]
    fn samples_can_be_more_frequent_than_intervals() {
        for (interval, longest, period) in [(10_000, 1000, 1000), (700, 1000, 700), (1500, 1000, 750), (100, 1000, 100)]
        {
            let mut ticker = ticker(interval, None).with_samples_every(Duration::from_millis(longest));
            assert_eq!(ticker.period(), Duration::from_millis(period), "intervals of {interval} ms");
            let ends: Vec<u64> = (1..=40).map(|n| n * period).filter(|ms| ticker.ends_interval(ms * MS)).collect();
            let wanted: Vec<u64> = (1..=40 * period / interval).map(|n| n * interval).collect();
            assert_eq!(ends, wanted, "intervals of {interval} ms");
        }
    }

    #[test]
    fn a_skipped_sample_delays_the_end_of_its_interval_only() {
        let mut ticker = ticker(1000, Some(1500));
        let ends: Vec<u64> =
            [900, 1300, 1400, 2000, 5400, 5500, 6000].into_iter().filter(|ms| ticker.ends_interval(ms * MS)).collect();
        assert_eq!(ends, [1300, 2000, 5400, 6000]);
    }
}
