//! Detects the start of the steady state of a run by three rules, and takes the median of their results.
//!
//! No rule is right for all shapes: a step, a slow rise and a saw-tooth each mislead a different one. The input is the
//! rates of intervals of equal length. The result describes one run; it is never used as an observation when runs are
//! compared.

use super::sample::median;

/// The minimum number of intervals. Shorter runs are not analysed.
const MIN_INTERVALS: usize = 20;

/// The number of windows of the window rule.
const WINDOWS: usize = 5;

/// The maximum difference between the greatest and the smallest window mean, as a fraction of the mean of all windows.
const MAX_EXCURSION: f64 = 0.20;

/// The maximum rise or fall, over all windows, of a least-squares line through the window means, as a fraction of their
/// mean.
const MAX_SLOPE: f64 = 0.10;

/// The number of values in a batch of MSER-5.
const BATCH_SIZE: usize = 5;

/// The minimum change of the level, as a fraction of the mean.
const MIN_LEVEL_CHANGE: f64 = 0.05;

/// The minimum number of intervals on each side of a change of the level.
const MIN_SEGMENT: usize = 5;

/// The first interval of the steady state according to each rule. `None` when the run does not become steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyState {
    /// The window rule of SNIA's Performance Test Specification: the remaining intervals are divided into five windows,
    /// whose means differ by at most 20 %, and a least-squares line through these rises or falls by at most 10 %.
    pub windows: Option<usize>,
    /// MSER-5: the mean of the remaining intervals has the smallest standard error (White 1997). `None` when more than
    /// half of the run would be discarded.
    pub mser: Option<usize>,
    /// The last change of the level. `None` when less than a quarter of the run follows it.
    pub change_point: Option<usize>,
}

impl SteadyState {
    /// Analyses the rates of a run's intervals. Returns `None` when there are fewer than 20, when a rate is not finite,
    /// or when all rates are 0.
    pub fn of(rates: &[f64]) -> Option<Self> {
        let valid = rates.len() >= MIN_INTERVALS
            && rates.iter().all(|rate| rate.is_finite())
            && rates.iter().sum::<f64>() > 0.0;
        valid.then(|| Self { windows: by_windows(rates), mser: by_mser(rates), change_point: by_change_point(rates) })
    }

    /// Returns the median of the three results. `None` when two rules find no steady state.
    pub fn agreed(&self) -> Option<usize> {
        let mut all = [self.windows, self.mser, self.change_point].map(|from| from.unwrap_or(usize::MAX));
        all.sort_unstable();
        (all[1] < usize::MAX).then_some(all[1])
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the first interval from which the remaining ones satisfy the window rule.
fn by_windows(rates: &[f64]) -> Option<usize> {
    // Each window needs at least two intervals.
    (0..=rates.len() - 2 * WINDOWS).find(|from| windows_are_level(&rates[*from..]))
}

/// True if the window rule holds for these rates.
fn windows_are_level(rest: &[f64]) -> bool {
    let means: Vec<f64> =
        (0..WINDOWS).map(|i| mean(&rest[i * rest.len() / WINDOWS..(i + 1) * rest.len() / WINDOWS])).collect();
    let all = mean(&means);
    let (low, high) = means.iter().fold((f64::MAX, f64::MIN), |(low, high), m| (low.min(*m), high.max(*m)));
    // Least-squares line over the positions −2 … 2, whose squares add up to 10. The line spans four steps.
    let slope = means.iter().enumerate().map(|(i, m)| (i as f64 - 2.0) * m).sum::<f64>() / 10.0;
    high - low <= MAX_EXCURSION * all && (4.0 * slope).abs() <= MAX_SLOPE * all
}

/// Returns the first interval of the batches whose mean has the smallest standard error.
fn by_mser(rates: &[f64]) -> Option<usize> {
    let batches: Vec<f64> = rates.chunks_exact(BATCH_SIZE).map(mean).collect();
    let error = |from: usize| {
        let rest = &batches[from..];
        let centre = mean(rest);
        rest.iter().map(|z| (z - centre).powi(2)).sum::<f64>() / (rest.len() * rest.len()) as f64
    };
    let half = batches.len() / 2;
    let best = (0..=half).min_by(|a, b| error(*a).total_cmp(&error(*b)))?;
    (best < half).then_some(best * BATCH_SIZE)
}

/// Returns the last change of the level, found by binary segmentation: the split that reduces the sum of squares most
/// is kept if the reduction exceeds a threshold for noise (three times its variance, multiplied by the binary logarithm
/// of the number of values). Then both sides are split in the same way.
fn by_change_point(rates: &[f64]) -> Option<usize> {
    // The noise is estimated from the differences of adjacent values, which do not depend on the level. A change of the
    // level affects one difference only, so their median is hardly affected.
    let steps: Vec<f64> = rates.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let sigma = median(&steps)? / (0.674_5 * std::f64::consts::SQRT_2);
    let whole = mean(rates);
    let mut last = 0;
    let mut parts = vec![(0, rates.len())];
    while let Some((from, to)) = parts.pop() {
        if let Some(at) = level_change(&rates[from..to], sigma, whole) {
            last = last.max(from + at);
            parts.extend([(from, from + at), (from + at, to)]);
        }
    }
    (last <= rates.len() - rates.len() / 4).then_some(last)
}

/// Returns the best position for a split of `values` into two levels, or `None` when no split exceeds the thresholds.
/// `sigma` is the standard deviation of the noise, `whole` the mean of the whole run.
fn level_change(values: &[f64], sigma: f64, whole: f64) -> Option<usize> {
    let n = values.len();
    if n < 2 * MIN_SEGMENT {
        return None;
    }
    let total: f64 = values.iter().sum();
    let mut before: f64 = values[..MIN_SEGMENT].iter().sum();
    let mut best = (0.0, 0, 0.0);
    for (at, value) in values.iter().enumerate().take(n - MIN_SEGMENT + 1).skip(MIN_SEGMENT) {
        let (left, right) = (before / at as f64, (total - before) / (n - at) as f64);
        let gain = (at * (n - at)) as f64 / n as f64 * (left - right).powi(2);
        if gain > best.0 {
            best = (gain, at, (left - right).abs());
        }
        before += value;
    }
    let (gain, at, change) = best;
    let noise = 3.0 * sigma * sigma * (n as f64).log2();
    (gain > noise && change > MIN_LEVEL_CHANGE * whole).then_some(at)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rand::RngExt;
    use rand::SeedableRng;
    use rand_distr::{Distribution, Normal};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Returns 100 rates: a level, which is a function of the interval, with 3 % of noise.
    fn noisy_rates(seed: u64, level: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let noise = Normal::new(1.0, 0.03).unwrap();
        (0..100).map(|i| level(f64::from(i)) * noise.sample(&mut random)).collect()
    }

    /// Returns the number of runs, of 200, whose steady state starts in `range`.
    fn steady_in(range: std::ops::RangeInclusive<usize>, level: impl Fn(f64) -> f64) -> usize {
        let agreed = |seed| SteadyState::of(&noisy_rates(seed, &level)).unwrap().agreed();
        (0..200).filter(|seed| agreed(*seed).is_some_and(|from| range.contains(&from))).count()
    }

    #[test]
    fn a_level_run_is_steady_from_the_start() {
        assert!(steady_in(0..=0, |_| 1000.0) >= 180);
    }

    #[test]
    fn a_step_ends_the_warm_up() {
        assert!(steady_in(19..=26, |t| if t < 20.0 { 400.0 } else { 1000.0 }) >= 180);
    }

    #[test]
    fn a_slow_rise_is_excluded() {
        assert!(steady_in(12..=50, |t| 1000.0 * (1.0 - 0.8 * (-t / 10.0).exp())) >= 180);
    }

    #[test]
    fn a_run_that_falls_to_its_end_is_never_steady() {
        let never = (0..200)
            .filter(|seed| SteadyState::of(&noisy_rates(*seed, |t| 1000.0 - 9.0 * t)).unwrap().agreed().is_none());
        assert!(never.count() >= 180);
    }

    #[test]
    fn short_and_idle_runs_are_not_analysed() {
        assert_eq!(SteadyState::of(&[1.0; MIN_INTERVALS - 1]), None);
        assert_eq!(SteadyState::of(&[0.0; MIN_INTERVALS]), None);
        assert_eq!(SteadyState::of(&[f64::NAN; MIN_INTERVALS]), None);
        assert_eq!(SteadyState::of(&[1.0; MIN_INTERVALS]).unwrap().agreed(), Some(0));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for n in MIN_INTERVALS..200 {
            let rates: Vec<f64> = (0..n).map(|_| random.random_range(0.0..1e9)).collect();
            if let Some(from) = SteadyState::of(&rates).unwrap().agreed() {
                assert!(from < n);
            }
        }
    }
}
