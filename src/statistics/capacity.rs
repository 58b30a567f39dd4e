//! The greatest load at which a limit is kept: which load is tried next, and what the runs so far say.
//!
//! The load is doubled until the limit is not kept, or halved until it is. Then the two loads of the bracket are brought
//! closer. Then runs are made at both in turn, until the load at which a line through the logarithms of the figures crosses
//! the limit has a narrow interval.

use super::distributions::t_upper;
use super::sample::{Estimate, median};
use serde::Serialize;

/// The most doublings of the first load, and the most halvings: at a low load a percentile takes long.
const MOST_DOUBLINGS: usize = 16;
const MOST_HALVINGS: usize = 6;
/// The relative distance of the loads of a bracket at which both are repeated.
const NARROW: f64 = 0.1;
/// The relative half-width of the interval that is enough.
const PRECISE: f64 = 0.04;
/// The fewest and the most runs at each load of a bracket.
const FEWEST: usize = 5;
const MOST: usize = 10;
/// The fewest runs of a search that finds a load, and the most of any, with those that are no probes.
pub const SEARCH_RUNS: [usize; 2] = [2 * FEWEST, 40];
/// The upper tail of the quantile of the interval. It is examined after each run, and a search ends when it is narrow:
/// with 0.01 in place of 0.025 it holds in 92 to 98 % of the searches all the same.
const TAIL: f64 = 0.01;
/// The number of runs at each load of a bracket after which one that shows no slope is made wider, once.
const LEVEL: usize = 5;
/// How often a bracket is moved whose loads are both on one side of the limit.
const MOST_MOVES: usize = 4;
/// The greatest excess that counts: beyond a saturated system's capacity figures grow with the length of a run.
const MOST_EXCESS: f64 = 1.0;
/// A run further from the median of its load than so many standard deviations, by the median distance, counts as one that
/// is just so far: one disturbed run of thirty would hide the slope.
const FARTHEST: f64 = 5.0;
/// The fewest runs at a load whose distances tell what is far.
const TELLING: usize = 3;
/// The least rise of the excess from the first load to the last by which a search downwards goes away from the limit.
const RISE: f64 = std::f64::consts::LN_2;

/// A run at a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadProbe {
    pub load: f64,
    /// The logarithm of the ratio of the figure to the limit: above 0 if the limit is not kept.
    pub excess: f64,
}

/// What the runs say about the greatest load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Capacity {
    /// The greatest load at which the limit is kept, with its 95 % interval.
    Found(Estimate),
    /// It is kept at all loads up to this one.
    AlwaysMet { load: f64 },
    /// It is kept at none down to this one.
    NeverMet { load: f64 },
    /// At `high` the figure is better than at `low`.
    NotMonotone { low: f64, high: f64 },
    /// Between these loads the limit is kept at times.
    Unstable { low: f64, high: f64 },
    /// The runs ended before an answer: it is kept at `low` and not at `high`, of which either may be unknown.
    Unfinished { low: Option<f64>, high: Option<f64> },
}

/// The next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CapacityStep {
    /// A run at this load, and the number of runs that are expected from this one on.
    Run {
        load: f64,
        expected: usize,
    },
    End(Capacity),
}

/// A search for the greatest load.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacitySearch {
    first: f64,
    /// Whether loads are whole numbers.
    is_whole: bool,
    probes: Vec<LoadProbe>,
    /// The number of runs, with those that are no probes.
    made: usize,
}

impl CapacitySearch {
    pub fn new(first: f64, is_whole: bool) -> Self {
        Self { first, is_whole, probes: Vec::new(), made: 0 }
    }

    pub fn take(&mut self, probe: LoadProbe) {
        self.probes.push(probe);
        self.made += 1;
    }

    /// Takes a run that says nothing about its load.
    pub fn skip(&mut self) {
        self.made += 1;
    }

    /// The number of runs so far.
    pub fn made(&self) -> usize {
        self.made
    }

    /// What the runs so far say if no more is made.
    pub fn so_far(&self) -> Capacity {
        match self.next() {
            CapacityStep::End(Capacity::Found(found)) if self.is_whole => Capacity::Found(found.map(f64::floor)),
            CapacityStep::End(found) => found,
            CapacityStep::Run { .. } => {
                let (low, high) = self.bracket();
                Capacity::Unfinished { low, high }
            }
        }
    }

    /// The greatest load at which the limit was kept, and the least at which it was not.
    fn bracket(&self) -> (Option<f64>, Option<f64>) {
        let loads = |is_kept: bool| {
            self.probes.iter().filter(move |probe| (probe.excess <= 0.0) == is_kept).map(|probe| probe.load)
        };
        (loads(true).reduce(f64::max), loads(false).reduce(f64::min))
    }

    /// The same step, unless the runs are as many as a search may have.
    fn limited(&self, step: CapacityStep) -> CapacityStep {
        let left = SEARCH_RUNS[1].saturating_sub(self.made);
        match (step, self.bracket()) {
            (CapacityStep::Run { load, expected }, _) if left > 0 => {
                CapacityStep::Run { load, expected: expected.min(left) }
            }
            (CapacityStep::Run { .. }, (Some(low), Some(high))) if low >= high => {
                CapacityStep::End(Capacity::Unstable { low: high, high: low })
            }
            (CapacityStep::Run { .. }, (low, high)) => CapacityStep::End(Capacity::Unfinished { low, high }),
            (end, _) => end,
        }
    }

    /// The step after the runs so far.
    pub fn next(&self) -> CapacityStep {
        self.limited(self.wanted())
    }

    /// The same if the runs may be as many as it takes.
    fn wanted(&self) -> CapacityStep {
        let mut made = self.probes.iter();
        let (mut low, mut high) = (None, None);
        let mut load = self.first;
        for _ in 0.. {
            let Some(probe) = made.next() else {
                let to_come = if low.is_some() && high.is_some() { self.halvings(low, high) } else { 5 };
                return CapacityStep::Run { load, expected: to_come + 2 * FEWEST - 1 };
            };
            if probe.excess <= 0.0 {
                low = Some(probe.load);
            } else {
                high = Some(probe.load);
            }
            load = match (low, high) {
                (Some(low), None) if low >= self.first * 2_f64.powi(MOST_DOUBLINGS as i32) => {
                    return CapacityStep::End(Capacity::AlwaysMet { load: low });
                }
                (Some(low), None) => self.rounded(low * 2.0),
                (None, Some(high)) if self.is_least(high) => {
                    return CapacityStep::End(self.not_met_down_to(probe));
                }
                (None, Some(high)) => self.rounded(high / 2.0),
                (Some(low), Some(high)) if self.is_narrow(low, high) => {
                    return self.at_edge(low, high);
                }
                (Some(low), Some(high)) => self.rounded(f64::midpoint(low, high)),
                (None, None) => load,
            };
        }
        CapacityStep::End(self.so_far())
    }

    /// The answer of a search that went down from the first load to the least. A limit that is kept at greater loads, such
    /// as a least rate, is missed by more the further it goes.
    fn not_met_down_to(&self, least: &LoadProbe) -> Capacity {
        let load = least.load;
        match self.probes.first() {
            Some(first) if least.excess - first.excess > RISE => Capacity::NotMonotone { low: load, high: first.load },
            _ => Capacity::NeverMet { load },
        }
    }

    /// The number of runs that bring the loads of a bracket close to each other.
    fn halvings(&self, low: Option<f64>, high: Option<f64>) -> usize {
        let (Some(mut low), Some(high)) = (low, high) else { return 0 };
        let mut runs = 0;
        while !self.is_narrow(low, high) {
            (low, runs) = (self.rounded(f64::midpoint(low, high)), runs + 1);
        }
        runs
    }

    /// A load that can be tried: a whole number, or one of four digits.
    fn rounded(&self, load: f64) -> f64 {
        if self.is_whole {
            return load.floor().max(1.0);
        }
        format!("{load:.3e}").parse().unwrap_or(load)
    }

    fn is_least(&self, load: f64) -> bool {
        load <= self.first / 2_f64.powi(MOST_HALVINGS as i32) || self.is_whole && load <= 1.0
    }

    fn is_narrow(&self, low: f64, high: f64) -> bool {
        high - low <= NARROW * low * (1.0 + 1e-9) || self.is_whole && high - low <= 1.0
    }

    /// The step once the limit is kept at `low`, and not at `high`, which is little more.
    fn at_edge(&self, mut low: f64, mut high: f64) -> CapacityStep {
        let width = high - low;
        let mut widened = 0;
        for _ in 0..=MOST_MOVES {
            let [at_low, at_high] = [low, high].map(|load| self.excesses(load));
            let runs = at_low.len() + at_high.len();
            let found = crossing(&self.probes, low, high);
            // Twice in succession: a few figures may agree by chance.
            let before = crossing(&self.probes[..self.probes.len() - 1], low, high);
            let is_precise = |found: &Estimate| {
                let is_near = self.is_whole && found.high.floor() - found.low.floor() <= 1.0;
                is_near || found.high - found.low <= 2.0 * PRECISE * found.value
            };
            if at_low.len() < FEWEST || at_high.len() < FEWEST {
                let load = if at_low.len() <= at_high.len() { low } else { high };
                return CapacityStep::Run { load, expected: (2 * FEWEST).saturating_sub(runs).max(1) };
            }
            let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
            let moved = match (mean(&at_low) <= 0.0, mean(&at_high) <= 0.0) {
                (false, false) if self.is_whole && low <= 1.0 => {
                    return CapacityStep::End(Capacity::NeverMet { load: low });
                }
                (false, false) => (self.rounded((low - width).max(low / 2.0)), low),
                (true, true) => (high, self.rounded(high + width)),
                // The figures differ more from run to run than between the loads.
                _ if found.is_none() && runs >= 2 * LEVEL && widened < 1 => {
                    widened += 1;
                    (self.rounded((low - width).max(low / 2.0)), self.rounded(high + width))
                }
                (is_kept_at_low, _) => {
                    return match found {
                        Some(found)
                            if is_kept_at_low && is_precise(&found) && before.as_ref().is_some_and(is_precise) =>
                        {
                            CapacityStep::End(Capacity::Found(found))
                        }
                        _ if runs < 2 * MOST && self.made < SEARCH_RUNS[1] => {
                            let load = if at_low.len() <= at_high.len() { low } else { high };
                            CapacityStep::Run { load, expected: 2 * MOST - runs }
                        }
                        _ if !is_kept_at_low => CapacityStep::End(Capacity::NotMonotone { low, high }),
                        Some(found) => CapacityStep::End(Capacity::Found(found)),
                        None => CapacityStep::End(Capacity::Unstable { low, high }),
                    };
                }
            };
            (low, high) = moved;
        }
        let near = (low - width)..=(high + width);
        let tried = self.probes.iter().map(|probe| probe.load).filter(|load| near.contains(load));
        let [low, high] = tried.fold([high, low], |[least, most], load| [least.min(load), most.max(load)]);
        CapacityStep::End(Capacity::Unstable { low, high })
    }

    /// The excesses of the runs at a load.
    fn excesses(&self, load: f64) -> Vec<f64> {
        let at_load = self.probes.iter().filter(|probe| (probe.load - load).abs() <= 1e-9 * load);
        winsorized(&at_load.copied().collect::<Vec<_>>()).0.iter().map(|probe| probe.excess).collect()
    }
}

/// Moves runs that are far from the median of their load to the farthest that counts. Returns all, and how many moved.
fn winsorized(probes: &[LoadProbe]) -> (Vec<LoadProbe>, usize) {
    let clamped = |probe: &LoadProbe| LoadProbe { excess: probe.excess.clamp(-MOST_EXCESS, MOST_EXCESS), ..*probe };
    let mut all: Vec<LoadProbe> = probes.iter().map(clamped).collect();
    all.sort_by(|a, b| a.load.total_cmp(&b.load));
    let center =
        |of: &[LoadProbe]| median(&of.iter().map(|probe| probe.excess).collect::<Vec<_>>()).unwrap_or_default();
    let is_one = |a: &LoadProbe, b: &LoadProbe| (a.load - b.load).abs() <= 1e-9 * a.load;
    let several = all.chunk_by(is_one).filter(|of| of.len() >= TELLING);
    let distances: Vec<f64> = several
        .flat_map(|of| {
            let center = center(of);
            of.iter().map(move |probe| (probe.excess - center).abs())
        })
        .collect();
    // Of normal values the standard deviation is 1.4826 times the median distance.
    let far = FARTHEST * 1.4826 * median(&distances).unwrap_or_default();
    let mut outliers = 0;
    for of in all.chunk_by_mut(is_one).filter(|of| far > 0.0 && of.len() >= TELLING) {
        let center = center(of);
        for probe in of.iter_mut().filter(|probe| (probe.excess - center).abs() > far) {
            probe.excess = probe.excess.clamp(center - far, center + far);
            outliers += 1;
        }
    }
    (all, outliers)
}

/// The load at which a least-squares line through the runs from one load to another crosses the limit, with its
/// interval by Fieller's method. `None` if the line may as well be level.
fn crossing(probes: &[LoadProbe], low: f64, high: f64) -> Option<Estimate> {
    let is_between = |probe: &&LoadProbe| probe.load >= low * (1.0 - 1e-9) && probe.load <= high * (1.0 + 1e-9);
    let between: Vec<LoadProbe> = probes.iter().filter(is_between).copied().collect();
    let (between, outliers) = winsorized(&between);
    let points: Vec<(f64, f64)> = between.iter().map(|probe| (probe.load.ln(), probe.excess)).collect();
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (load, excess) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - load).powi(2)).sum();
    let slope = points.iter().map(|point| (point.0 - load) * (point.1 - excess)).sum::<f64>() / spread;
    if points.len() < 3 || !slope.is_finite() || slope <= 0.0 {
        return None;
    }
    let residuals: f64 = points.iter().map(|point| (point.1 - excess - slope * (point.0 - load)).powi(2)).sum();
    // A run that was moved says nothing about the scatter.
    let df = n - 2.0 - outliers as f64;
    if df < 1.0 {
        return None;
    }
    let error = t_upper(TAIL, df) * (residuals / df).sqrt() / slope;
    let left = 1.0 - error.powi(2) / spread;
    if left <= 0.0 {
        return None;
    }
    let from_mean = -excess / slope;
    let center = load + from_mean / left;
    let half = error / left * (from_mean.powi(2) / spread + left / n).sqrt();
    Some(Estimate { value: load + from_mean, low: center - half, high: center + half }.map(f64::exp))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Searches with runs whose excess a function gives. Returns the answer and the number of runs.
    fn search(first: f64, is_whole: bool, mut excess: impl FnMut(f64) -> f64) -> (Capacity, usize) {
        let mut search = CapacitySearch::new(first, is_whole);
        for runs in 0..=SEARCH_RUNS[1] {
            match search.next() {
                CapacityStep::End(found) => return (found, runs),
                CapacityStep::Run { load, expected } => {
                    assert!(expected > 0 && (!is_whole || load.fract() == 0.0 && load >= 1.0), "{load}");
                    search.take(LoadProbe { load, excess: excess(load) });
                }
            }
        }
        panic!("no end");
    }

    /// A standard normal number.
    fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
        let (u, v): (f64, f64) = (rng.random(), rng.random());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    #[test]
    fn the_crossing_of_exact_figures_is_found() {
        for first in [1.0, 7.0, 19.0, 300.0] {
            let (found, runs) = search(first, true, |users| (users / 19.5).ln());
            let Capacity::Found(found) = found else { panic!("{found:?}") };
            assert_eq!((found.value.floor(), found.low.floor(), found.high.floor()), (19.0, 19.0, 19.0), "{first}");
            assert!(runs < 20, "{runs}");
        }
        assert_eq!(search(1.0, true, |users| (users / 1.5).ln()).1, SEARCH_RUNS[0]);
        for (first, limit) in [(3.0, 0.123), (0.00003, 0.000_004_7), (1e-8, 3e-9), (2e12, 7e13)] {
            let (found, _) = search(first, false, |rate| 2.0 * (rate / limit).ln());
            let Capacity::Found(found) = found else { panic!("{found:?}") };
            assert!((found.value / limit - 1.0).abs() < 1e-6, "{found:?}");
        }
    }

    #[test]
    fn limits_that_are_always_or_never_met_and_figures_that_do_not_rise_are_told() {
        assert_eq!(search(10.0, true, |_| -1.0).0, Capacity::AlwaysMet { load: 655_360.0 });
        assert_eq!(search(10.0, true, |_| 1.0).0, Capacity::NeverMet { load: 1.0 });
        assert_eq!(search(64.0, false, |_| 1.0).0, Capacity::NeverMet { load: 1.0 });
        // A limit that is kept from a load on, such as a least rate.
        let found = search(8.0, true, |users| (100.0 / users).ln()).0;
        assert_eq!(found, Capacity::NotMonotone { low: 1.0, high: 8.0 });
        assert!(matches!(search(1.0, true, |users| if users > 5.0 { 1.0 } else { -1.0 }).0,
            Capacity::Found(found) if found.value > 5.0 && found.value < 6.0));
        // From the second run of a load on, the greater one is the better one.
        let mut runs = std::collections::BTreeMap::new();
        let found = search(100.0, false, |load| {
            let n = runs.entry(load as u64).and_modify(|n| *n += 1).or_insert(1);
            let kept = (load < 150.0) == (*n == 1);
            if kept { -0.5 } else { 0.5 }
        });
        assert!(matches!(found.0, Capacity::NotMonotone { .. }), "{found:?}");
        // Figures of chance, whatever the load is.
        let is_told = |seed: &u64| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(*seed);
            let mut most = 0.0_f64;
            let found = search(100.0, false, |load| {
                most = most.max(load);
                normal(&mut rng)
            });
            if let Capacity::Unstable { low, high } = found.0 {
                assert!(low <= high && high <= most, "{found:?}, {most}");
            }
            let found = found.0;
            matches!(found, Capacity::Unstable { .. } | Capacity::NotMonotone { .. } | Capacity::NeverMet { .. })
        };
        assert!((0..100).filter(is_told).count() >= 70);
    }

    /// The 99th percentile of the response times of `requests` requests that arrive at a rate at a queue with exponential
    /// service, 200 a second.
    fn p99(rate: f64, requests: usize, rng: &mut Xoshiro256PlusPlus) -> f64 {
        let mut draw = |mean: f64| -mean * (1.0 - rng.random::<f64>()).ln();
        let (mut wait, mut responses) = (0.0_f64, Vec::with_capacity(requests));
        for _ in 0..requests {
            let response = wait + draw(1.0 / 200.0);
            responses.push(response);
            wait = (response - draw(1.0 / rate)).max(0.0);
        }
        *responses.select_nth_unstable_by(requests * 99 / 100, f64::total_cmp).1
    }

    /// The 99th percentile of a queue with Poisson arrivals and exponential service is 4.605 / (μ − λ). The load at which it
    /// reaches a limit is found within 5 %.
    #[test]
    fn the_capacity_of_a_queue_is_found() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        for share in [0.5, 0.7, 0.85] {
            let truth = 200.0 * share;
            let limit = 100_f64.ln() / (200.0 - truth);
            let (mut inside, mut near, all) = (0, 0, 400);
            for n in 0..all {
                let first = if n % 2 == 0 { 50.0 } else { 190.0 };
                let (found, _) = search(first, false, |rate| (p99(rate, 11_000, &mut rng) / limit).ln());
                let Capacity::Found(found) = found else { continue };
                inside += usize::from(found.low <= truth && truth <= found.high);
                near += usize::from((found.value / truth - 1.0).abs() <= 0.05);
            }
            assert!(inside * 100 >= all * 92 && near * 100 >= all * 95, "{share}: {inside}, {near} of {all}");
        }
    }

    /// One run of thirty takes three times as long: other programs disturbed it.
    #[test]
    fn disturbed_runs_hide_no_capacity() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
        for share in [0.5, 0.7, 0.85] {
            let truth = 200.0 * share;
            let limit = 100_f64.ln() / (200.0 - truth);
            let (mut near, all) = (0, 200);
            for _ in 0..all {
                let (found, _) = search(50.0, false, |rate| {
                    let disturbed = if rng.random_bool(1.0 / 30.0) { 3.0 } else { 1.0 };
                    (disturbed * p99(rate, 11_000, &mut rng) / limit).ln()
                });
                let Capacity::Found(found) = found else { continue };
                near += usize::from((found.value / truth - 1.0).abs() <= 0.05);
            }
            assert!(near * 100 >= all * 85, "{share}: {near} of {all}");
        }
    }

    #[test]
    fn a_run_that_is_no_probe_counts() {
        let mut search = CapacitySearch::new(8.0, true);
        for _ in 0..SEARCH_RUNS[1] {
            assert!(matches!(search.next(), CapacityStep::Run { load, expected } if load.total_cmp(&8.0).is_eq()
                && expected + search.made() <= SEARCH_RUNS[1]));
            search.skip();
        }
        assert_eq!(search.next(), CapacityStep::End(Capacity::Unfinished { low: None, high: None }));
    }

    #[test]
    fn an_unfinished_search_has_its_bracket() {
        let mut search = CapacitySearch::new(8.0, true);
        assert_eq!(search.so_far(), Capacity::Unfinished { low: None, high: None });
        search.take(LoadProbe { load: 8.0, excess: -1.0 });
        search.take(LoadProbe { load: 16.0, excess: 1.0 });
        assert_eq!(search.so_far(), Capacity::Unfinished { low: Some(8.0), high: Some(16.0) });
        assert!(matches!(search.next(), CapacityStep::Run { load, .. } if load.total_cmp(&12.0).is_eq()));
    }
}
