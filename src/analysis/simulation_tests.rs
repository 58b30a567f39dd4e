//! Error rates of the analysis on simulated runs, with 2,000 series for each cell and fixed seeds.
//!
//! The expected rates are from an independent simulation with as many series. A cell passes if the difference of the
//! two rates is inside the interval that contains it with a probability of 99.9 %.

use super::precision::{RepeatRule, RepeatState, RunRange, mean_interval};
use super::verdict::{ComparisonVerdict, Tolerance, classify};
use super::{RunBlock, analyse, control_change, welch};
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

/// The rate at which equal arms are found to differ at a significance level of 5 %.
#[test]
fn false_alarms_of_two_equal_arms() {
    // Lag-1 autocorrelation, drift; Welch's t-test of A then B and of ABBA, t-test on pairs and on blocks, sign test.
    let table = [
        (0.0, 0.0, [0.045, 0.045, 0.046, 0.046, 0.025]),
        (0.5, 0.0, [0.236, 0.015, 0.063, 0.052, 0.027]),
        (0.0, 0.1, [0.735, 0.015, 0.056, 0.050, 0.021]),
        (0.5, 0.1, [0.714, 0.005, 0.062, 0.052, 0.031]),
    ];
    for (row, (lag1, drift, expected)) in table.into_iter().enumerate() {
        let mut machine = Machine::new(row as u64, 0.04, lag1, drift);
        let mut alarms = [0; 5];
        for _ in 0..SERIES {
            let runs = machine.runs(20);
            let separate = welch(&runs[..10], &runs[10..], 0.95).is_some_and(|test| test.p < 0.05);
            let blocks = machine.blocks(5, 1.0);
            let (a, b): (Vec<_>, Vec<_>) = blocks.iter().map(|block| (block.a, block.b)).unzip();
            let unblocked = welch(a.as_flattened(), b.as_flattened(), 0.95).is_some_and(|test| test.p < 0.05);
            let pairs = control_change(&blocks, 0.95).is_some_and(|(_, p)| p < 0.05);
            let analysis = analyse(&blocks, 0.95);
            let by_blocks = analysis.is_some_and(|analysis| analysis.p < 0.05);
            let by_signs =
                analysis.and_then(|analysis| analysis.sign).is_some_and(|sign| sign.low > 1.0 || sign.high < 1.0);
            for (alarm, raised) in alarms.iter_mut().zip([separate, unblocked, pairs, by_blocks, by_signs]) {
                *alarm += usize::from(raised);
            }
        }
        for (column, (alarms, expected)) in alarms.into_iter().zip(expected).enumerate() {
            in_band(&format!("lag-1 {lag1}, drift {drift}, column {column}"), alarms, expected);
        }
    }
}

/// Verdicts at a coefficient of variation of 4 % and a tolerance of 3 %.
#[test]
fn verdicts_on_true_losses_and_on_equal_arms() {
    let count = |blocks: usize, factor: f64, wanted: &[ComparisonVerdict]| {
        let mut machine = Machine::new(blocks as u64 * 100 + (factor * 50.0) as u64, 0.04, 0.0, 0.0);
        let verdict = |blocks: &[RunBlock]| analyse(blocks, 0.95).map(|a| classify(a.ratio, Tolerance(0.03)));
        (0..SERIES).filter(|_| verdict(&machine.blocks(blocks, factor)).is_some_and(|v| wanted.contains(&v))).count()
    };
    let worse = [ComparisonVerdict::Worse];
    in_band("a loss of 3 %", count(4, 0.97, &worse), 0.02);
    in_band("a loss of 6 %", count(4, 0.94, &worse), 0.20);
    in_band("a loss of 12 %", count(4, 0.88, &worse), 0.89);
    let no_loss = [ComparisonVerdict::Same, ComparisonVerdict::NotWorse];
    in_band("equal, 12 blocks", count(12, 1.0, &no_loss), 0.67);
    in_band("equal, 16 blocks", count(16, 1.0, &no_loss), 0.80);
}

/// Repetition until the interval is precise: coverage of the reported interval, mean number of runs, share of series
/// that converged.
#[test]
fn repeats_end_with_intervals_that_contain_the_mean() {
    let rule = RepeatRule { runs: RunRange { min: 10, max: 60 }, target: Some(0.05), level: 0.95 };
    let table = [
        (0.05, 0.0, 0.962, 12.0, 1.0),
        (0.10, 0.0, 0.952, 21.0, 1.0),
        (0.15, 0.0, 0.949, 41.0, 0.95),
        (0.05, 0.5, 0.884, 19.0, 1.0),
        (0.10, 0.5, 0.869, 39.0, 0.72),
        (0.15, 0.5, 0.917, 55.0, 0.21),
    ];
    for (row, (variation, lag1, coverage, mean_runs, converged)) in table.into_iter().enumerate() {
        let mut machine = Machine::new(1000 + row as u64, variation, lag1, 0.0);
        let (mut held, mut runs, mut ended) = (0, 0, 0);
        for _ in 0..SERIES {
            let series = machine.runs(60);
            let tight = |n: usize| mean_interval(&series[..n], 0.95).is_some_and(|mean| mean.relative() < 0.05);
            // This repeats the stopping rule, but computes each interval only once.
            let end = (11..=60).scan(tight(10), |before, n| Some((n, std::mem::replace(before, tight(n)), *before)));
            let end = end.into_iter().find(|(_, before, now)| *before && *now).map(|(n, ..)| n);
            let n = end.unwrap_or(60);
            if row == 0 {
                let state = rule.evaluate(&[series[..n].to_vec()]).state;
                assert!(
                    matches!(state, RepeatState::Converged | RepeatState::Drifting) == end.is_some(),
                    "{state:?} after {n}"
                );
            }
            let mean = mean_interval(&series[..n], 0.95).map_or(f64::INFINITY, |m| (m.mean - 1.0).abs() / m.half_width);
            held += usize::from(mean <= 1.0);
            runs += n;
            ended += usize::from(end.is_some());
        }
        let name = format!("variation {variation}, lag-1 {lag1}");
        in_band(&format!("{name}: coverage"), held, coverage);
        let mean = runs as f64 / SERIES as f64;
        assert!((mean - mean_runs).abs() <= 1.0, "{name}: {mean} runs, expected {mean_runs}");
        if converged < 1.0 && row != 2 {
            in_band(&format!("{name}: converged"), ended, converged);
        }
    }
}
