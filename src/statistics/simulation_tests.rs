//! Error rates of the analysis on simulated runs, with 2,000 series for each cell and fixed seeds.
//!
//! The expected rates are from an independent simulation with as many series. A cell passes if the difference of the
//! two rates is inside the interval that contains it with a probability of 99.9 %.

use super::distributions::normal;
use super::explain::ranks;
use super::precision::{PrecisionRule, RepeatRule, RepeatState, RunRange, independent_mean, mean_interval};
use super::verdict::{ComparisonVerdict, Tolerance, classify};
use super::{Power, RunBlock, analyse, control_change, equal_ratios, mean_ratio, ratio_in_blocks, welch_ratio};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;

const SERIES: usize = 2000;

/// Returns the half-width of the interval of the difference between two estimates of a rate, each from [`SERIES`]
/// series.
fn band(share: f64) -> f64 {
    3.29 * (2.0 * share * (1.0 - share) / SERIES as f64).sqrt()
}

fn in_band(name: &str, seen: usize, expected: f64) {
    let share = seen as f64 / SERIES as f64;
    assert!((share - expected).abs() <= band(expected), "{name}: {share}, expected {expected} ± {}", band(expected));
}

/// Checks a rate against a probability that is known exactly.
fn has_probability(name: &str, seen: usize, expected: f64) {
    let share = seen as f64 / SERIES as f64;
    let band = band(expected) / std::f64::consts::SQRT_2;
    assert!((share - expected).abs() <= band, "{name}: {share}, expected {expected} ± {band}");
}

/// Returns the two-sided p-value of the Mann–Whitney test, by the normal approximation with continuity correction.
fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let (n, m) = (a.len() as f64, b.len() as f64);
    let sum: f64 = ranks(a, b).0.iter().sum();
    let distance = (sum - n * (n + m + 1.0) / 2.0).abs() - 0.5;
    2.0 * normal(-distance / (n * m * (n + m + 1.0) / 12.0).sqrt())
}

/// A source of simulated runs with mean 1: an AR(1) process with a given coefficient of variation and lag-1
/// autocorrelation, and a linear drift over all runs.
struct Machine {
    rng: Xoshiro256PlusPlus,
    variation: f64,
    lag1: f64,
    drift: f64,
}

impl Machine {
    fn new(seed: u64, variation: f64, lag1: f64, drift: f64) -> Self {
        Self { rng: Xoshiro256PlusPlus::seed_from_u64(seed), variation, lag1, drift }
    }

    fn runs(&mut self, n: usize) -> Vec<f64> {
        let mut normal = || self.rng.sample::<f64, _>(StandardNormal);
        let mut state = normal();
        (0..n)
            .map(|i| {
                let value = 1.0 + self.variation * state + self.drift * i as f64 / (n - 1) as f64;
                state = self.lag1 * state + (1.0 - self.lag1 * self.lag1).sqrt() * normal();
                value
            })
            .collect()
    }

    /// Returns blocks, each in one of the two orders at random. The runs of B are multiplied by `factor`.
    fn blocks(&mut self, n: usize, factor: f64) -> Vec<RunBlock> {
        let runs = self.runs(4 * n);
        runs.chunks(4)
            .map(|four| match self.rng.random::<bool>() {
                true => RunBlock { a: [four[0], four[3]], b: [factor * four[1], factor * four[2]] },
                false => RunBlock { a: [four[1], four[2]], b: [factor * four[0], factor * four[3]] },
            })
            .collect()
    }
}

/// The rate at which the levels of a factor without an effect are found to differ, in four cells of five runs, of which
/// one may vary more than the others. A drift makes only the intervals wider that do not consider blocks.
#[test]
fn false_alarms_of_a_factor_without_effect() {
    for (row, (drift, variation)) in [(0.0, 1.0), (0.3, 1.0), (0.0, 5.0), (0.3, 5.0)].into_iter().enumerate() {
        let mut machine = Machine::new(row as u64, 0.04, 0.0, drift);
        let (mut alarms, mut narrower, mut dependent) = (0, 0, 0);
        for _ in 0..SERIES {
            let mut cells = [const { Vec::new() }; 4];
            for block in machine.runs(20).chunks_mut(4) {
                block.shuffle(&mut machine.rng);
                cells.iter_mut().zip(block).for_each(|(cell, value)| cell.push(*value));
            }
            // The first cell varies more, around the mean of its block.
            for value in &mut cells[0] {
                *value += (variation - 1.0) * 0.04 * machine.rng.sample::<f64, _>(StandardNormal);
            }
            let [a, b, c, d]: &[Vec<f64>; 4] = &cells;
            let pairs: [(&[f64], &[f64]); 2] = [(a, b), (c, d)];
            let (Some(in_blocks), Some(all)) = (ratio_in_blocks(&pairs, 0.95), mean_ratio(&pairs, 0.95)) else {
                panic!("no ratio of {pairs:?}");
            };
            alarms += usize::from(in_blocks.low > 1.0 || in_blocks.high < 1.0);
            narrower += usize::from(in_blocks.high - in_blocks.low < all.high - all.low);
            dependent += usize::from(equal_ratios(&pairs, true).is_some_and(|p| p < 0.05));
        }
        let name = format!("drift {drift}, variation {variation}");
        in_band(&name, alarms, 0.05);
        in_band(&format!("{name}, dependent"), dependent, 0.05);
        let is_drift = drift > 0.0 && variation < 2.0;
        assert!(!is_drift || narrower > SERIES * 3 / 4, "{narrower}");
    }
}

/// The rate at which equal arms are found to differ at a significance level of 5 %.
#[test]
fn false_alarms_of_two_equal_arms() {
    // Lag-1 autocorrelation, drift; Welch's and the Mann–Whitney test of A then B, Welch's of ABBA, t-test and signed-rank test
    // on pairs, sign test.
    let table = [
        (0.0, 0.0, [0.045, 0.044, 0.045, 0.049, 0.049, 0.022]),
        (0.5, 0.0, [0.236, 0.207, 0.015, 0.047, 0.045, 0.019]),
        (0.0, 0.1, [0.735, 0.692, 0.015, 0.048, 0.046, 0.021]),
        (0.5, 0.1, [0.714, 0.672, 0.005, 0.044, 0.043, 0.018]),
    ];
    for (row, (lag1, drift, expected)) in table.into_iter().enumerate() {
        let mut machine = Machine::new(row as u64, 0.04, lag1, drift);
        let mut alarms = [0; 6];
        for _ in 0..SERIES {
            let runs = machine.runs(20);
            let separate = welch_ratio(&runs[..10], &runs[10..], 0.95).is_some_and(|test| test.p < 0.05);
            let by_ranks = mann_whitney(&runs[..10], &runs[10..]) < 0.05;
            let blocks = machine.blocks(5, 1.0);
            let unblocked = unblocked_p(&blocks) < 0.05;
            let pairs = control_change(&blocks, 0.95).is_some_and(|(_, p)| p < 0.05);
            let analysis = analyse(&blocks, 0.95);
            let by_blocks = analysis.is_some_and(|analysis| analysis.p < 0.05);
            let by_signs =
                analysis.and_then(|analysis| analysis.sign).is_some_and(|sign| sign.low > 1.0 || sign.high < 1.0);
            let raised = [separate, by_ranks, unblocked, pairs, by_blocks, by_signs];
            for (alarm, raised) in alarms.iter_mut().zip(raised) {
                *alarm += usize::from(raised);
            }
        }
        for (column, (alarms, expected)) in alarms.into_iter().zip(expected).enumerate() {
            in_band(&format!("lag-1 {lag1}, drift {drift}, column {column}"), alarms, expected);
        }
    }
}

/// Returns the p-value of Welch's test of all runs of A against all runs of B, regardless of their blocks.
fn unblocked_p(blocks: &[RunBlock]) -> f64 {
    let (a, b): (Vec<_>, Vec<_>) = blocks.iter().map(|block| (block.a, block.b)).unzip();
    welch_ratio(a.as_flattened(), b.as_flattened(), 0.95).map_or(1.0, |test| test.p)
}

/// The probability with which a true difference of 3 % is found at a significance level of 5 %. The figures are from
/// simulations with scipy.
#[test]
fn drift_hides_a_difference_unless_runs_are_blocked() {
    let mut machine = Machine::new(500, 0.04, 0.0, 0.1);
    let (mut blocked, mut unblocked, mut separate) = (0, 0, 0);
    for _ in 0..SERIES {
        let blocks = machine.blocks(14, 1.03);
        blocked += usize::from(analyse(&blocks, 0.95).is_some_and(|analysis| analysis.p < 0.05));
        unblocked += usize::from(unblocked_p(&blocks) < 0.05);
        // A loss of B, while the machine becomes faster.
        let runs = machine.runs(56);
        let b: Vec<f64> = runs[28..].iter().map(|value| 0.97 * value).collect();
        separate += usize::from(welch_ratio(&runs[..28], &b, 0.95).is_some_and(|test| test.p < 0.05));
    }
    in_band("blocks", blocked, 0.774);
    in_band("Welch's test of ABBA", unblocked, 0.64);
    in_band("Welch's test of A then B", separate, 0.35);
}

/// Returns the number of series with one of these verdicts, at a coefficient of variation of 4 % and a tolerance of
/// 3 %.
fn verdicts(blocks: usize, factor: f64, wanted: &[ComparisonVerdict]) -> usize {
    let mut machine = Machine::new(blocks as u64 * 100 + (factor * 50.0) as u64, 0.04, 0.0, 0.0);
    let verdict = |blocks: &[RunBlock]| analyse(blocks, 0.95).map(|a| classify(a.ratio, Tolerance(0.03)));
    (0..SERIES).filter(|_| verdict(&machine.blocks(blocks, factor)).is_some_and(|v| wanted.contains(&v))).count()
}

#[test]
fn verdicts_on_true_losses_and_on_equal_arms() {
    let worse = [ComparisonVerdict::Worse];
    in_band("a loss of 3 %", verdicts(4, 0.97, &worse), 0.018);
    in_band("a loss of 6 %", verdicts(4, 0.94, &worse), 0.227);
    in_band("a loss of 12 %", verdicts(4, 0.88, &worse), 0.970);
    let no_loss = [ComparisonVerdict::Same, ComparisonVerdict::NotWorse];
    in_band("equal, 12 blocks", verdicts(12, 1.0, &no_loss), 0.692);
    in_band("equal, 16 blocks", verdicts(16, 1.0, &no_loss), 0.820);
}

/// The detectable loss is computed by an integral; here it is planted and looked for.
#[test]
fn the_detectable_loss_is_found_in_four_of_five_comparisons() {
    for blocks in [4, 12, 28] {
        let power = Power::of_pairs(2 * blocks, 0.04 * 2.0_f64.sqrt(), 0.025);
        let loss = power.and_then(|power| power.detectable_loss(Tolerance(0.03))).unwrap_or(1.0);
        let found = verdicts(blocks, 1.0 - loss, &[ComparisonVerdict::Worse]);
        has_probability(&format!("a loss of {loss} with {blocks} blocks"), found, 0.8);
    }
}

/// The end of simulated repeats by one rule.
#[derive(Default)]
struct EndedSeries {
    /// The series whose reported interval contains the true mean.
    held: usize,
    runs: usize,
    converged: usize,
}

impl EndedSeries {
    /// Adds a series that ended after `n` runs with an interval of the mean of ± `half`.
    fn add(&mut self, n: usize, mean: f64, half: f64, converged: bool) {
        self.held += usize::from((mean - 1.0).abs() <= half);
        self.runs += n;
        self.converged += usize::from(converged);
    }

    fn has(&self, name: &str, coverage: f64, mean_runs: f64) {
        in_band(&format!("{name}: coverage"), self.held, coverage);
        let mean = self.runs as f64 / SERIES as f64;
        assert!((mean - mean_runs).abs() <= 1.0, "{name}: {mean} runs, expected {mean_runs}");
    }
}

/// The target and the maximum number of runs of the simulated repeats. The minimum is 10.
const TARGET: f64 = 0.05;
const MAX_RUNS: usize = 60;

/// Repeats a series until the interval of independent runs is narrow enough `times` times in succession.
fn repeat_uncorrected(series: &[f64], times: usize, ended: &mut EndedSeries) {
    let mut narrow = 0;
    for n in 10..=MAX_RUNS {
        let Some(mean) = independent_mean(&series[..n], 0.95) else { return };
        let half = mean.high - mean.value;
        narrow = if half / mean.value < TARGET { narrow + 1 } else { 0 };
        if narrow == times || n == MAX_RUNS {
            return ended.add(n, mean.value, half, narrow == times);
        }
    }
}

/// Repeats a series until the product's rule ends it.
fn repeat_by_rule(rule: &RepeatRule, series: &[f64], ended: &mut EndedSeries) {
    for n in 10..=MAX_RUNS {
        let metrics = [series[..n].to_vec()];
        let state = rule.evaluate(&metrics).state;
        if state != RepeatState::Running {
            let Some(mean) = mean_interval(&series[..n], 0.95) else { return };
            // A series that drifts ends like one that does not, and has the same interval.
            return ended.add(n, mean.mean, mean.half_width, rule.is_precise(&metrics, n, TARGET));
        }
    }
}

/// Repetition until the interval is precise: coverage of the reported interval and mean number of runs, with intervals
/// of independent runs once and twice in succession, and by the rule of `wmlrun repeat`.
#[test]
fn repeats_end_with_intervals_that_contain_the_mean() {
    let (runs, stop) = (RunRange { min: 10, max: MAX_RUNS as u64 }, PrecisionRule::Corrected);
    let rule = RepeatRule { runs, target: Some(TARGET), level: 0.95, stop };
    // Coefficient of variation, lag-1 autocorrelation; once, twice, the rule; the share that converges by the rule.
    let table = [
        (0.05, 0.0, (0.949, 10.0), (0.956, 11.0), (0.962, 12.0), 1.0),
        (0.10, 0.0, (0.933, 17.0), (0.942, 19.0), (0.952, 21.0), 1.0),
        (0.15, 0.0, (0.940, 35.0), (0.940, 37.0), (0.949, 41.0), 1.0),
        (0.05, 0.5, (0.752, 10.0), (0.772, 11.0), (0.884, 19.0), 1.0),
        (0.10, 0.5, (0.710, 15.0), (0.721, 17.0), (0.869, 39.0), 0.72),
        (0.15, 0.5, (0.715, 32.0), (0.728, 34.0), (0.917, 55.0), 0.21),
    ];
    for (row, (variation, lag1, once, twice, by_rule, converged)) in table.into_iter().enumerate() {
        let mut machine = Machine::new(1000 + row as u64, variation, lag1, 0.0);
        let mut ended = <[EndedSeries; 3]>::default();
        for _ in 0..SERIES {
            let series = machine.runs(MAX_RUNS);
            repeat_uncorrected(&series, 1, &mut ended[0]);
            repeat_uncorrected(&series, 2, &mut ended[1]);
            repeat_by_rule(&rule, &series, &mut ended[2]);
        }
        for (name, ended, (coverage, runs)) in
            [("once", &ended[0], once), ("twice", &ended[1], twice), ("the rule", &ended[2], by_rule)]
        {
            ended.has(&format!("variation {variation}, lag-1 {lag1}, {name}"), coverage, runs);
        }
        if converged < 1.0 {
            in_band(&format!("variation {variation}, lag-1 {lag1}: converged"), ended[2].converged, converged);
        }
    }
}

/// The rule of the study, 10 to 30 runs: coverage of the interval of independent runs, and mean number of runs, by an
/// independent simulation of 20,000 series each.
#[test]
fn the_rule_of_the_study_has_the_printed_coverage() {
    let (runs, stop) = (RunRange { min: 10, max: 30 }, PrecisionRule::Study);
    let rule = RepeatRule { runs, target: Some(TARGET), level: 0.95, stop };
    let table = [
        (0.05, 0.0, 0.951, 10.1),
        (0.10, 0.0, 0.936, 17.2),
        (0.15, 0.0, 0.939, 28.3),
        (0.05, 0.5, 0.752, 10.1),
        (0.10, 0.5, 0.723, 15.4),
        (0.15, 0.5, 0.720, 26.3),
    ];
    for (row, (variation, lag1, coverage, mean_runs)) in table.into_iter().enumerate() {
        let mut machine = Machine::new(2000 + row as u64, variation, lag1, 0.0);
        let mut ended = EndedSeries::default();
        for _ in 0..SERIES {
            let series = machine.runs(30);
            let is_end = |n: &usize| rule.evaluate(&[series[..*n].to_vec()]).state != RepeatState::Running;
            let Some(n) = (10..=30).find(is_end) else { continue };
            let Some(mean) = independent_mean(&series[..n], 0.95) else { continue };
            ended.add(n, mean.value, mean.high - mean.value, true);
        }
        ended.has(&format!("variation {variation}, lag-1 {lag1}"), coverage, mean_runs);
    }
}

/// The share of normal samples with an outlier, by an independent simulation of 4,000 samples each.
#[test]
fn a_normal_sample_rarely_has_an_outlier() {
    for (n, expected) in [(7, 0.012), (10, 0.0023)] {
        let seen = (0..SERIES as u64)
            .filter(|seed| !super::outliers(&Machine::new(9_000 + seed, 0.15, 0.0, 0.0).runs(n)).is_empty())
            .count();
        in_band(&format!("outliers of {n}"), seen, expected);
    }
}
