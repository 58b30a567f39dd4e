//! Where the steady part of a run begins, by three rules of which the middle answer counts.
//!
//! No rule is right for all shapes: a step, a slow rise and a saw-tooth each mislead another one. The values are the rates of
//! intervals of equal length. What comes out says something of one run; it is never an observation when runs are compared.

use super::sample::median;

/// Fewer intervals are not judged.
const FEWEST: usize = 20;

/// Windows of the window rule.
const WINDOWS: usize = 5;

/// How far apart the means of the windows may lie, as a share of the mean of them all.
const EXCURSION: f64 = 0.20;

/// How much a straight line through the windows may rise or fall over them, as a share of the same.
const SLOPE: f64 = 0.10;

/// Values in a batch of MSER-5.
const BATCH: usize = 5;

/// A change of the level that is smaller than this share of the mean is none.
const LEVEL_CHANGE: f64 = 0.05;

/// The fewest intervals on either side of a change of the level.
const SEGMENT: usize = 5;

/// From which interval on each rule calls the run steady; `None`: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyState {
    /// Of the rest in five windows, the means differ by at most 20 % and a line through them rises or falls by at most 10 %
    /// (the rule of the SNIA's Performance Test Specification).
    pub windows: Option<usize>,
    /// MSER-5: the rest has the smallest standard error (White 1997). Never, if that is less than half of the run.
    pub mser: Option<usize>,
    /// The last change of the level. Never, if less than a quarter of the run follows.
    pub change_point: Option<usize>,
}

impl SteadyState {
    /// Judges the rates of a run's intervals; `None` of fewer than 20, or if nothing was done.
    pub fn of(rates: &[f64]) -> Option<Self> {
        let judged =
            rates.len() >= FEWEST && rates.iter().all(|rate| rate.is_finite()) && rates.iter().sum::<f64>() > 0.0;
        judged.then(|| Self { windows: by_windows(rates), mser: by_mser(rates), change_point: by_change_point(rates) })
    }

    /// The middle answer of the three. `None`: two of them say never.
    pub fn agreed(&self) -> Option<usize> {
        let mut all = [self.windows, self.mser, self.change_point].map(|from| from.unwrap_or(usize::MAX));
        all.sort_unstable();
        (all[1] < usize::MAX).then_some(all[1])
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The first interval from which on the rest keeps the window rule.
fn by_windows(rates: &[f64]) -> Option<usize> {
    // Two intervals a window at least.
    (0..=rates.len() - 2 * WINDOWS).find(|from| windows_are_level(&rates[*from..]))
}

fn windows_are_level(rest: &[f64]) -> bool {
    let means: Vec<f64> =
        (0..WINDOWS).map(|i| mean(&rest[i * rest.len() / WINDOWS..(i + 1) * rest.len() / WINDOWS])).collect();
    let all = mean(&means);
    let (low, high) = means.iter().fold((f64::MAX, f64::MIN), |(low, high), m| (low.min(*m), high.max(*m)));
    // Least squares over the places −2 … 2, whose squares sum to 10; the line spans four steps.
    let slope = means.iter().enumerate().map(|(i, m)| (i as f64 - 2.0) * m).sum::<f64>() / 10.0;
    high - low <= EXCURSION * all && (4.0 * slope).abs() <= SLOPE * all
}

/// The start of the batches whose mean has the smallest standard error.
fn by_mser(rates: &[f64]) -> Option<usize> {
    let batches: Vec<f64> = rates.chunks_exact(BATCH).map(mean).collect();
    let error = |from: usize| {
        let rest = &batches[from..];
        let centre = mean(rest);
        rest.iter().map(|z| (z - centre).powi(2)).sum::<f64>() / (rest.len() * rest.len()) as f64
    };
    let half = batches.len() / 2;
    let best = (0..=half).min_by(|a, b| error(*a).total_cmp(&error(*b)))?;
    (best < half).then_some(best * BATCH)
}

/// The last change of the level, by binary segmentation: the split that explains most is kept if it explains more than the noise
/// would (three times its variance for each doubling of the length), and each side is looked at in turn.
fn by_change_point(rates: &[f64]) -> Option<usize> {
    // Differences of neighbours know nothing of the level. Their median is not moved by the change itself.
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

/// The best place to split `values` in two levels, if there are two.
fn level_change(values: &[f64], sigma: f64, whole: f64) -> Option<usize> {
    let n = values.len();
    if n < 2 * SEGMENT {
        return None;
    }
    let total: f64 = values.iter().sum();
    let mut before: f64 = values[..SEGMENT].iter().sum();
    let mut best = (0.0, 0, 0.0);
    for (at, value) in values.iter().enumerate().take(n - SEGMENT + 1).skip(SEGMENT) {
        let (left, right) = (before / at as f64, (total - before) / (n - at) as f64);
        let gain = (at * (n - at)) as f64 / n as f64 * (left - right).powi(2);
        if gain > best.0 {
            best = (gain, at, (left - right).abs());
        }
        before += value;
    }
    let (gain, at, change) = best;
    let noise = 3.0 * sigma * sigma * (n as f64).log2();
    (gain > noise && change > LEVEL_CHANGE * whole).then_some(at)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rand::RngExt;
    use rand::SeedableRng;
    use rand_distr::{Distribution, Normal};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// 100 rates around a level that a function gives, with 3 % of noise.
    fn course(seed: u64, level: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let noise = Normal::new(1.0, 0.03).unwrap();
        (0..100).map(|i| level(f64::from(i)) * noise.sample(&mut random)).collect()
    }

    /// How many of 200 runs are called steady from an interval of `range` on.
    fn found(range: std::ops::RangeInclusive<usize>, level: impl Fn(f64) -> f64) -> usize {
        let agreed = |seed| SteadyState::of(&course(seed, &level)).unwrap().agreed();
        (0..200).filter(|seed| agreed(*seed).is_some_and(|from| range.contains(&from))).count()
    }

    #[test]
    fn a_level_run_is_steady_from_the_start() {
        assert!(found(0..=0, |_| 1000.0) >= 180);
    }

    #[test]
    fn a_step_ends_the_warm_up() {
        assert!(found(19..=26, |t| if t < 20.0 { 400.0 } else { 1000.0 }) >= 180);
    }

    #[test]
    fn a_slow_rise_is_left_out() {
        assert!(found(12..=50, |t| 1000.0 * (1.0 - 0.8 * (-t / 10.0).exp())) >= 180);
    }

    #[test]
    fn a_run_that_falls_to_its_end_is_never_steady() {
        let never =
            (0..200).filter(|seed| SteadyState::of(&course(*seed, |t| 1000.0 - 9.0 * t)).unwrap().agreed().is_none());
        assert!(never.count() >= 180);
    }

    #[test]
    fn what_cannot_be_judged_is_not() {
        assert_eq!(SteadyState::of(&[1.0; FEWEST - 1]), None);
        assert_eq!(SteadyState::of(&[0.0; FEWEST]), None);
        assert_eq!(SteadyState::of(&[f64::NAN; FEWEST]), None);
        assert_eq!(SteadyState::of(&[1.0; FEWEST]).unwrap().agreed(), Some(0));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for n in FEWEST..200 {
            let rates: Vec<f64> = (0..n).map(|_| random.random_range(0.0..1e9)).collect();
            if let Some(from) = SteadyState::of(&rates).unwrap().agreed() {
                assert!(from < n);
            }
        }
    }
}
