//! The time in which all ranks ran, on the clock that they have in common, and rates over it.

use super::RankRun;
use crate::ClockDrift;
use crate::{Interval, RankResult};

/// The least share of each rank's measured time that the common time must cover, so that the rate of all ranks is the
/// sum of their rates.
pub const MIN_COVERED: f64 = 0.99;

/// The time of a rank, or of all, in seconds after the latest start of a rank.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RankTime {
    start: f64,
    end: f64,
}

impl RankTime {
    /// Returns the measured time of a rank, or its time in a phase; `None` if that phase has not begun.
    fn of(rank: &RankRun, phase: Option<u64>, origin_ns: i64) -> Option<Self> {
        let (start, end) = match phase {
            None => (0.0, rank.run.measured_seconds),
            Some(number) => {
                let phase = rank.run.phases.iter().find(|phase| phase.number == number)?;
                let warmup = rank.run.warmup.as_ref().map_or(0.0, |warmup| warmup.seconds);
                let start = (phase.start_seconds? - warmup).max(0.0);
                (start, start + phase.seconds)
            }
        };
        let (began, scale) = (seconds_after(origin_ns, rank.start_skew_ns), scale(rank));
        Some(Self { start: began + start * scale, end: began + end * scale })
    }

    /// Returns the time that both have in common. Its end is before its start if there is none.
    fn and(self, other: Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    fn seconds(self) -> f64 {
        self.end - self.start
    }
}

/// The time in which all ranks ran, or were in a phase.
#[derive(Clone, Debug)]
pub(super) struct CommonTime {
    /// The phase; `None` for the whole runs.
    phase: Option<u64>,
    /// The latest start of a rank's measured time, in nanoseconds after the common start.
    origin_ns: i64,
    /// The time of a phase that the ranks have done one after the other is that from the first start to the last end.
    time: RankTime,
    /// Whether it covers [`MIN_COVERED`] of the time of each rank.
    covers: bool,
}

/// The part of the measured time that all ranks have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overlap {
    /// Its length in seconds.
    pub seconds: f64,
    /// The least share of a rank's measured time that it covers, 0 to 1.
    pub covered: f64,
}

/// Returns the time that all ranks have in common. Ranks without threads do not count. `None` without other ranks.
pub fn overlap(ranks: &[RankResult]) -> Option<Overlap> {
    let working: Vec<&RankResult> = ranks.iter().filter(|rank| rank.threads > 0).collect();
    let origin_ns = working.iter().map(|rank| rank.start_skew_ns.unwrap_or(0)).max()?;
    let times: Vec<RankTime> = working
        .iter()
        .map(|rank| {
            let start = seconds_after(origin_ns, rank.start_skew_ns);
            RankTime { start, end: start + rank.measured_seconds * seconds_of_rank_0(rank.clock_drift()) }
        })
        .collect();
    let (common, covered) = intersection(&times);
    Some(Overlap { seconds: common.seconds(), covered })
}

impl CommonTime {
    /// Returns the time that the measured times of all ranks have in common.
    pub(super) fn of_runs(ranks: &[RankRun]) -> Self {
        // A rank without threads, to which a split of the instances gave none, ends at once.
        let any = ranks.iter().any(|rank| rank.run.threads > 0);
        Self::of(ranks.iter().filter(|rank| !any || rank.run.threads > 0), None)
    }

    /// Returns the time in which all ranks with threads in a phase were in it. It is empty if the phase did not start on
    /// one of these.
    pub(super) fn of_phase(ranks: &[RankRun], number: u64) -> Self {
        Self::of(ranks.iter().filter(|rank| rank.run.phases.iter().any(|phase| phase.number == number)), Some(number))
    }

    fn of<'a>(ranks: impl Iterator<Item = &'a RankRun> + Clone, phase: Option<u64>) -> Self {
        let origin_ns = ranks.clone().map(|rank| rank.start_skew_ns.unwrap_or(0)).max().unwrap_or(0);
        let times: Option<Vec<RankTime>> = ranks.map(|rank| RankTime::of(rank, phase, origin_ns)).collect();
        let times = times.filter(|times| !times.is_empty());
        let (time, covered) = times.map_or((RankTime { start: 0.0, end: 0.0 }, 0.0), |times| {
            let (common, covered) = intersection(&times);
            (if common.seconds() > 0.0 || phase.is_none() { common } else { span(&times) }, covered)
        });
        Self { phase, origin_ns, time, covers: covered >= MIN_COVERED }
    }

    /// Returns its length in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.time.seconds()
    }

    /// Returns how many of the events of a rank that `count` counts in an interval occurred in this time, per second.
    /// `own` is the rate over the rank's own time, which is the result if this time covers it.
    pub(super) fn rate(&self, rank: &RankRun, own: f64, count: impl Fn(&Interval) -> f64) -> f64 {
        let seconds = self.seconds();
        if self.covers || rank.run.intervals.is_empty() {
            return own;
        }
        let Some(own_time) = RankTime::of(rank, self.phase, self.origin_ns).filter(|_| seconds > 0.0) else {
            return 0.0;
        };
        let (began, scale) = (seconds_after(self.origin_ns, rank.start_skew_ns), scale(rank));
        // At its start and its end a phase has only a part of an interval, with all of the events in it.
        let within = |interval: &Interval| {
            let end = began + interval.t * scale;
            let part = own_time.and(RankTime { start: end - interval.seconds * scale, end });
            let common = part.and(self.time).seconds();
            if common > 0.0 { common / part.seconds() } else { 0.0 }
        };
        rank.run.intervals.iter().map(|interval| count(interval) * within(interval)).sum::<f64>() / seconds
    }
}

/// Returns the time that all have in common, and the least share of one that it covers. A time without length is
/// covered by nothing.
fn intersection(times: &[RankTime]) -> (RankTime, f64) {
    let all = RankTime { start: f64::NEG_INFINITY, end: f64::INFINITY };
    let RankTime { start, end } = times.iter().copied().fold(all, RankTime::and);
    let common = RankTime { start, end: end.max(start) };
    let share = |time: &RankTime| match time.seconds() {
        own if own > 0.0 => (common.seconds() / own).min(1.0),
        _ => 0.0,
    };
    (common, times.iter().map(share).fold(1.0, f64::min))
}

/// Returns the time from the first start to the last end.
fn span(times: &[RankTime]) -> RankTime {
    let start = times.iter().map(|time| time.start).fold(f64::INFINITY, f64::min);
    RankTime { start, end: times.iter().map(|time| time.end).fold(start, f64::max) }
}

/// Returns the time on the clock of rank 0 that passes in a second on that of a rank.
fn scale(rank: &RankRun) -> f64 {
    seconds_of_rank_0(rank.clock.and_then(|clock| clock.drift))
}

/// The same for a drift. An unknown one counts as none.
fn seconds_of_rank_0(drift: Option<ClockDrift>) -> f64 {
    drift.map_or(1.0, ClockDrift::seconds_of_rank_0)
}

/// Returns a start skew as seconds after `origin_ns`. An unknown skew counts as none.
fn seconds_after(origin_ns: i64, skew_ns: Option<i64>) -> f64 {
    skew_ns.unwrap_or(0).saturating_sub(origin_ns) as f64 / 1e9
}
