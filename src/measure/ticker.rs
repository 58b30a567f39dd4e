//! When a run is looked at: at the end of each piece of its time series, and often enough that the reports of `psrun` are
//! in time. Deliberately absent: clocks, and what is done at a look.

use std::time::Duration;

/// A report of `psrun` is late by less than this.
const PUNCTUAL: Duration = Duration::from_millis(100);

/// How often to look, and which looks end a piece.
#[derive(Debug)]
pub(crate) struct Ticker {
    look: Duration,
    interval_ns: u64,
    next_ns: u64,
}

impl Ticker {
    /// For pieces of `interval`, and reports each `period`.
    pub(crate) fn new(interval: Duration, period: Option<Duration>) -> Self {
        let interval_ns = (interval.as_nanos() as u64).max(1);
        let wanted = period.map_or(interval, |period| interval.min(period.max(Duration::from_millis(1))).min(PUNCTUAL));
        // A whole number of looks to each piece: however often it is looked, the pieces are as long as was asked for.
        let looks = interval_ns.div_ceil((wanted.as_nanos() as u64).max(1));
        Self { look: Duration::from_nanos(interval_ns.div_ceil(looks)), interval_ns, next_ns: interval_ns }
    }

    /// Between two looks.
    pub(crate) fn look(&self) -> Duration {
        self.look
    }

    /// Whether a piece ends with the look at this time. Looks may fall out, and come a little early by rounding.
    pub(crate) fn ends_interval(&mut self, elapsed_ns: u64) -> bool {
        let about = elapsed_ns + self.look.as_nanos() as u64 / 2;
        let ends = about >= self.next_ns;
        if ends {
            self.next_ns = (about / self.interval_ns + 1) * self.interval_ns;
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

    /// When the first hundred pieces end, in milliseconds, if no look is late.
    fn ends(interval: u64, period: Option<u64>) -> Vec<u64> {
        let mut ticker = ticker(interval, period);
        let look = ticker.look().as_nanos() as u64;
        (1..).map(|n| n * look).filter(|ns| ticker.ends_interval(*ns)).map(|ns| ns / MS).take(100).collect()
    }

    #[test]
    fn pieces_are_as_long_as_asked_for_whatever_the_period() {
        for interval in [100, 250, 700, 1000, 3000] {
            for period in [None, Some(1), Some(40), Some(250), Some(1500), Some(10_000)] {
                let wanted: Vec<u64> = (1..=100).map(|n| n * interval).collect();
                assert_eq!(ends(interval, period), wanted, "every {interval} ms, reports each {period:?} ms");
            }
        }
    }

    #[test]
    fn reports_wait_for_no_piece() {
        for (interval, period) in [(700, 1500), (1000, 250), (10_000, 3000), (250, 1000)] {
            let look = ticker(interval, Some(period)).look();
            assert!(look <= Duration::from_millis(period.min(100)), "looks {look:?} apart");
        }
        assert_eq!(ticker(700, None).look(), Duration::from_millis(700), "nothing to look at in between");
    }

    #[test]
    fn a_look_that_falls_out_ends_its_piece_later_and_moves_no_other() {
        let mut ticker = ticker(1000, Some(1500));
        let ends: Vec<u64> =
            [900, 1300, 1400, 2000, 5400, 5500, 6000].into_iter().filter(|ms| ticker.ends_interval(ms * MS)).collect();
        assert_eq!(ends, [1300, 2000, 5400, 6000]);
    }
}
