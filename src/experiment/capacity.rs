//! The search of a sweep for the greatest load at which a limit is kept: the runs that it makes, and the arms of the loads
//! that it tries.
//!
//! Each of its runs is a run of the experiment. A load that is tried for the first time becomes an arm of the description.
//! Which load is next follows from the runs so far (`statistics`), so that a search is resumed like any other experiment.

use super::wanted::{Arm, Experiment, RuleWanted, with_value};
use crate::analysis::{CapacitySearch, CapacityStep, LoadProbe};
use crate::comparison::LoadLimit;
use crate::import::{MetricLimit, Observation};
use crate::result::MIN_BEYOND;
use crate::util::duration;
use std::time::Duration;

/// The share by which a run is longer than the operations beyond the percentile are expected to take.
pub const SPARE: f64 = 1.1;

/// How often a run is made longer whose percentile had too few operations beyond it, before it counts as it is.
const MOST_EXTENSIONS: usize = 3;

/// A load as the value of a variable.
pub fn level_of(load: f64) -> String {
    format!("{load}")
}

/// How fast the operations beyond a percentile came in at a load.
#[derive(Clone, Copy, Debug)]
struct BeyondRate {
    load: f64,
    per_second: f64,
    /// Whether the rate is that at which requests arrive.
    is_offered: bool,
}

impl BeyondRate {
    /// The rate that is expected at another load; at a higher one it may be the same.
    fn at(self, load: f64) -> f64 {
        let share = load / self.load;
        self.per_second * if self.is_offered { share } else { share.min(1.0) }
    }
}

/// The state of a search.
#[derive(Clone, Debug)]
pub(super) struct LoadSearch {
    search: CapacitySearch,
    limit: MetricLimit,
    levels: Vec<String>,
    rates: Vec<BeyondRate>,
    /// The load whose last run was too short, and how many of its runs were.
    short: Option<(f64, usize)>,
    /// The sum of what runs took besides the measured time, such as their file sets and hooks, and their number.
    besides: (f64, u32),
    /// The time than which no run is shorter.
    least: f64,
}

/// The next step of a search.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LoadStep {
    /// A run of an arm, which may be the first after the last one; the number of runs that are expected from it on.
    Run {
        arm: usize,
        expected: usize,
    },
    End,
}

impl LoadSearch {
    /// The search of an experiment, without runs; `None` if it makes none.
    pub(super) fn of(experiment: &Experiment) -> Option<Self> {
        let RuleWanted::Sweep { levels, search: Some(wanted), .. } = &experiment.rule else { return None };
        let (limit, first) = (wanted.limit.parse().ok()?, levels.first()?.parse().ok()?);
        let search = CapacitySearch::new(first, wanted.is_whole);
        let levels = levels.clone();
        Some(Self { search, limit, levels, rates: Vec::new(), short: None, besides: (0.0, 0), least: wanted.least })
    }

    /// Takes the next run. One whose percentile has too few operations beyond it is made again, for longer. That of a
    /// saturated system counts: its figures only grow. A first run that other programs disturbed is made again if it misses
    /// the limit: by it the search would go down, to longer runs. `took`: its time with what is not measured.
    pub(super) fn take(&mut self, arm: usize, run: &Observation, took: Option<f64>) {
        let Some(load) = self.levels.get(arm).and_then(|level| level.parse::<f64>().ok()) else { return };
        let seconds = run.figures.get("seconds").copied().unwrap_or_default();
        if let Some(took) = took {
            self.besides = (self.besides.0 + (took - seconds).max(0.0), self.besides.1 + 1);
        }
        let is_overloaded = run.warnings.iter().any(|code| code == "unstable");
        if let Some(beyond) = self.limit.metric.operations_beyond(run).filter(|beyond| *beyond > 0.0 && seconds > 0.0) {
            let is_offered = run.figures.contains_key("offered") && !is_overloaded;
            self.rates.push(BeyondRate { load, per_second: beyond / seconds, is_offered });
        }
        // A run that failed, or that lacks the figure, has ended the experiment.
        let Some(value) = self.limit.metric.of(run) else { return };
        let excess = self.limit.excess(value);
        let extensions = self.short.filter(|(of, _)| same(*of, load)).map_or(0, |(_, n)| n);
        if self.search.made() == 0 && run.disturbed && excess > 0.0 {
            self.search.skip();
            return;
        }
        let is_short = self.limit.too_few_beyond(&[run]).is_some();
        let is_certain = is_overloaded && excess > 0.0 || extensions >= MOST_EXTENSIONS;
        if is_short && !is_certain {
            self.short = Some((load, extensions + 1));
            self.search.skip();
            return;
        }
        self.short = None;
        self.search.take(LoadProbe { load, excess });
    }

    /// The load of the next run, and the number of runs that are expected from it on.
    fn next_load(&self) -> Option<(f64, usize)> {
        match self.search.next() {
            CapacityStep::Run { load, expected } => Some((load, expected)),
            CapacityStep::End(_) => None,
        }
    }

    pub(super) fn next(&self) -> LoadStep {
        let Some((load, expected)) = self.next_load() else { return LoadStep::End };
        let is_it = |level: &String| level.parse().is_ok_and(|of| same(of, load));
        LoadStep::Run { arm: self.levels.iter().position(is_it).unwrap_or(self.levels.len()), expected }
    }

    /// The time of a run at a load in which its percentile counts, in whole seconds; `None` if the limit is on no
    /// percentile, or as long as that is unknown.
    fn seconds_at(&self, load: f64) -> Option<u64> {
        let distance = |rate: &&BeyondRate| (rate.load / load).ln().abs();
        let nearest = self.rates.iter().rev().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let seconds = MIN_BEYOND as f64 * SPARE / nearest.at(load);
        Some(seconds.max(self.least).ceil() as u64)
    }

    /// The time of this number of runs from the next one on; `None` if it does not depend on the load.
    pub(super) fn time_of(&self, runs: usize) -> Option<Duration> {
        let (load, _) = self.next_load()?;
        let besides = self.besides.0 / f64::from(self.besides.1.max(1));
        Duration::try_from_secs_f64((self.seconds_at(load)? as f64 + besides) * runs as f64).ok()
    }

    /// The experiment with an arm for the next run, if that is not there yet or its runs are too short; and a note that says
    /// how long they are.
    pub(super) fn with_next_arm(&self, experiment: &Experiment) -> Option<(Experiment, Option<String>)> {
        let LoadStep::Run { arm, expected } = self.next() else { return None };
        let (load, _) = self.next_load()?;
        let is_new = arm == experiment.arms.len();
        let is_short = self.short.is_some_and(|(of, _)| same(of, load));
        let seconds = self.seconds_at(load);
        if !is_new && (!is_short || seconds.is_none()) {
            return None;
        }
        let mut changed = experiment.clone();
        let RuleWanted::Sweep { factor, levels, .. } = &mut changed.rule else { return None };
        let (level, first) = (level_of(load), levels.first()?.clone());
        let words = with_value(&experiment.arms.first()?.words, factor, &first, &level);
        let of_time = |word: &String| word.starts_with(RUNTIME);
        let mut words: Vec<String> = match seconds {
            // The first arm may have been made longer.
            Some(_) => words.into_iter().filter(|word| !of_time(word)).collect(),
            None => words,
        };
        words.splice(0..0, seconds.map(|seconds| format!("{RUNTIME}{seconds}")));
        let name = experiment.arms.first()?.name.replace(&format!("{factor}={first}"), &format!("{factor}={level}"));
        let note = seconds.filter(|seconds| *seconds as f64 > self.least).map(|seconds| {
            let is_over = experiment.budget.is_some_and(|budget| budget < (seconds * expected as u64) as f64);
            let help = "; the budget is too short for that: begin at a higher load, or limit a lower percentile";
            let help = if is_over { help } else { "" };
            let time = duration::format(Duration::from_secs(seconds));
            format!("a run at {factor}={level} takes {time}, in which {} counts{help}", self.limit.metric)
        });
        match changed.arms.get_mut(arm) {
            Some(arm) if arm.words == words => return None,
            Some(arm) => arm.words = words,
            None => {
                changed.arms.push(Arm { name, words, metric: None });
                let script = changed.identity.scripts.first().cloned();
                changed.identity.scripts.extend(script);
                levels.push(level);
            }
        }
        Some((changed, note))
    }
}

/// The option by which a run has its length.
const RUNTIME: &str = "--runtime=";

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

impl Experiment {
    /// What a search has found by these runs, in their order, with their arms; `None` if the experiment makes none.
    pub(crate) fn capacity<'a>(&self, runs: impl IntoIterator<Item = (usize, &'a Observation)>) -> Option<LoadLimit> {
        let mut search = LoadSearch::of(self)?;
        runs.into_iter().for_each(|(arm, run)| search.take(arm, run, None));
        let LoadSearch { search, limit, .. } = search;
        let (metric, threshold) = (limit.metric.to_string(), limit.threshold);
        Some(LoadLimit { limit: limit.to_string(), metric, threshold, found: search.so_far() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_disturbed_first_run_is_made_again_once() {
        let search = CapacitySearch::new(100.0, false);
        let (limit, levels) = ("ops < 5".parse().unwrap(), vec!["100".to_owned()]);
        let (rates, besides) = (Vec::new(), (0.0, 0));
        let mut search = LoadSearch { search, limit, levels, rates, short: None, besides, least: 1.0 };
        let figures = [("ops".to_owned(), 9.0), ("seconds".to_owned(), 4.0)].into_iter().collect();
        let run = Observation { disturbed: true, figures, ..Observation::default() };
        search.take(0, &run, Some(9.0));
        assert!(matches!(search.next(), LoadStep::Run { arm: 0, .. }));
        search.take(0, &run, Some(11.0));
        assert!(matches!(search.next(), LoadStep::Run { arm: 1, .. }));
        // Each of the next two takes 21 s for the operations beyond its percentile, and 6 s besides.
        assert_eq!(search.time_of(2), None);
        search.rates.push(BeyondRate { load: 50.0, per_second: 5.4, is_offered: false });
        assert_eq!(search.time_of(2), Some(Duration::from_secs(54)));
    }
}
