//! Means of figures of which some are unknown.

/// Returns the mean of values, each with its weight. It is null if a value with a weight is unknown, since it would then
/// be the mean of a part only. Without any weight it is the mean of the known values.
pub(crate) fn weighted_mean(values: impl IntoIterator<Item = (Option<f64>, f64)>) -> Option<f64> {
    let values: Vec<(Option<f64>, f64)> = values.into_iter().collect();
    let weighted: Vec<(Option<f64>, f64)> = values.iter().copied().filter(|(_, weight)| *weight > 0.0).collect();
    match weighted[..] {
        [] => mean(values.into_iter().filter_map(|(value, _)| value)),
        // Exact, without a rounding error of the division.
        [(value, _)] => value,
        _ => {
            let weights: f64 = weighted.iter().map(|(_, weight)| weight).sum();
            let sum: Option<f64> = weighted.iter().map(|(value, weight)| Some((*value)? * weight)).sum();
            sum.map(|sum| sum / weights)
        }
    }
}

/// Returns the mean; `None` without values.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum) = values.fold((0_u64, 0.0), |(n, sum), value| (n + 1, sum + value));
    (n > 0).then(|| sum / n as f64)
}
