//! Pairs of measurements: two sides in alternation, and the ratio of each pair with its interval.

/// Returns the next number of the generator splitmix64.
pub(super) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Measures two sides in pairs, with the order reversed in every other pair.
pub(super) fn alternate<T>(pairs: usize, mut first: impl FnMut() -> T, mut second: impl FnMut() -> T) -> Vec<(T, T)> {
    let pair = |pair: usize| {
        if pair.is_multiple_of(2) {
            let first = first();
            (first, second())
        } else {
            let second = second();
            (first(), second)
        }
    };
    (0..pairs).map(pair).collect()
}

/// Returns the median, or NaN of no values.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 { f64::NAN } else { f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]) }
}

/// Returns the 95 % percentile bootstrap interval of the median, from 10,000 resamples with a fixed seed.
pub(super) fn interval(values: &[f64]) -> (f64, f64) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut medians: Vec<f64> = (0..10_000)
        .map(|_| {
            let resampled: Vec<f64> =
                values.iter().map(|_| values[(next(&mut state) % values.len() as u64) as usize]).collect();
            median(&resampled)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    (medians[250], medians[9749])
}
