//! Axes of charts: the range, the scale, the ticks and their labels. Knows numbers and units, and nothing of drawing.

use wml_text::count::measured;
use wml_text::duration::latency;

/// The unit of the values of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisUnit {
    /// A rate, a ratio or another number.
    Number,
    /// A time in nanoseconds.
    Nanoseconds,
    /// A time in seconds.
    Seconds,
    /// A fraction, which is shown in per cent.
    Share,
}

impl AxisUnit {
    /// Formats a value for a table or a label beside it.
    pub fn format(self, value: f64) -> String {
        match self {
            _ if !value.is_finite() => "-".to_owned(),
            Self::Number => measured(value),
            Self::Nanoseconds => latency(value),
            Self::Seconds => format!("{} s", plain(value, 3)),
            Self::Share => format!("{:.1} %", value * 100.0),
        }
    }
}

/// The mapping of values to positions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum AxisScale {
    Linear,
    Logarithmic,
    /// Percentiles, by the share beyond them: p90 to p99 is as long as p99 to p99.9.
    Percentiles,
    /// So many categories of equal width, whose values are 0, 1, 2…
    Categories(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub struct AxisTick {
    pub value: f64,
    pub label: String,
}

#[derive(Clone, Debug)]
pub struct ChartAxis {
    low: f64,
    high: f64,
    scale: AxisScale,
    /// The title, with the unit.
    pub title: String,
    /// The ticks, in ascending order.
    pub ticks: Vec<AxisTick>,
}

/// The number of intervals between ticks that a linear axis aims at.
const LINEAR_INTERVALS: f64 = 5.0;

/// The least distance of ticks with names, as a share of the axis for each character.
const MIN_TICK_DISTANCE: f64 = 0.025;

/// The largest ratio of the ends of a logarithmic axis with ticks at equal steps.
const WIDEST_LINEAR: f64 = 4.0;

/// The largest number of ticks of a logarithmic axis with more than one tick per decade.
const MAX_LOG_TICKS: usize = 8;

impl ChartAxis {
    /// Creates a linear axis that contains all finite values.
    pub fn linear(title: &str, unit: AxisUnit, values: impl IntoIterator<Item = f64>) -> Self {
        let (mut low, mut high) = range(values).unwrap_or((0.0, 1.0));
        if high - low <= 1e-9 * high.abs().max(low.abs()) {
            let padding = if high == 0.0 { 1.0 } else { 0.05 * high.abs() };
            (low, high) = (low - padding, high + padding);
        }
        // A range too narrow or too wide for numbers of this kind has no ticks to choose from.
        let step = Some(step((high - low) / LINEAR_INTERVALS)).filter(|step| step.is_normal());
        let Some(step) = step else {
            let scale = AxisScale::Linear;
            return Self { low, high: low.max(high), scale, title: title.to_owned(), ticks: Vec::new() };
        };
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let largest = (first * step).abs().max((last * step).abs());
        let numbers = first as i64..=last as i64;
        let tick = |n: i64| {
            // A multiple of the step, not a sum of steps, which would accumulate rounding errors.
            let value = n as f64 * step;
            AxisTick { value, label: tick_label(unit, value, step, largest) }
        };
        Self {
            low: first * step,
            high: last * step,
            scale: AxisScale::Linear,
            title: title.to_owned(),
            ticks: numbers.map(tick).collect(),
        }
    }

    /// Creates a linear axis that begins and ends with the smallest and the largest of the finite values, for times and
    /// counts that have a first and a last one.
    pub fn fitted(title: &str, unit: AxisUnit, values: impl IntoIterator<Item = f64>) -> Self {
        let range = range(values).filter(|(low, high)| high > low);
        let mut axis = Self::linear(title, unit, range.into_iter().flat_map(|(low, high)| [low, high]));
        if let Some((low, high)) = range {
            (axis.low, axis.high) = (low, high);
            let tolerance = 1e-9 * (high - low);
            axis.ticks.retain(|tick| (low - tolerance..=high + tolerance).contains(&tick.value));
        }
        axis
    }

    /// Creates a logarithmic axis that contains all finite values above 0.
    pub fn logarithmic(title: &str, unit: AxisUnit, values: impl IntoIterator<Item = f64>) -> Self {
        let positive = values.into_iter().filter(|value| *value > 0.0);
        let (low, high) = range(positive).unwrap_or((1.0, 10.0));
        let first = low.log10().floor() as i32;
        let last = high.log10().ceil() as i32;
        let steps = |factors: &'static [f64]| {
            (first..=last).flat_map(move |decade| factors.iter().map(move |factor| factor * 10_f64.powi(decade)))
        };
        let all: Vec<f64> = steps(&[1.0, 2.0, 5.0]).collect();
        // The rounding error of a power of ten must not add an interval.
        let low = all.iter().copied().filter(|v| *v <= low * (1.0 + 1e-9)).fold(f64::NAN, f64::max);
        let high = all.iter().copied().filter(|v| *v >= high * (1.0 - 1e-9)).fold(f64::NAN, f64::min);
        let high = if high > low { high } else { low * 2.0 };
        let within = |value: &f64| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value);
        let fine: Vec<f64> = all.into_iter().filter(within).collect();
        let values = if fine.len() > MAX_LOG_TICKS { steps(&[1.0]).filter(within).collect() } else { fine };
        let tick = |value: f64| AxisTick { value, label: tick_label(unit, value, value, value) };
        Self {
            low: low.log10(),
            high: high.log10(),
            scale: AxisScale::Logarithmic,
            title: title.to_owned(),
            ticks: values.into_iter().map(tick).collect(),
        }
    }

    /// Creates a logarithmic axis for ratios that contains all finite values above 0. A narrow range has ticks at equal
    /// steps, since its decades have too few.
    pub fn of_ratios(title: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let positive: Vec<f64> = values.into_iter().filter(|value| *value > 0.0 && value.is_finite()).collect();
        let linear = Self::linear(title, AxisUnit::Number, positive.iter().copied());
        if linear.low > 0.0 && linear.high <= WIDEST_LINEAR * linear.low {
            let (low, high) = (linear.low.log10(), linear.high.log10());
            return Self { low, high, scale: AxisScale::Logarithmic, ..linear };
        }
        Self::logarithmic(title, AxisUnit::Number, positive)
    }

    /// Creates an axis for loads in ascending order, with their names as ticks: proportional, or logarithmic if they span more
    /// than a decade. A name that has no room is left out.
    pub fn of_loads(title: &str, loads: &[(f64, String)]) -> Self {
        let values = || loads.iter().map(|(value, _)| *value);
        let (low, high) = range(values()).unwrap_or((0.0, 1.0));
        let mut axis = match low > 0.0 && high > 10.0 * low {
            true => Self { low: low.log10(), high: high.log10(), ..Self::logarithmic(title, AxisUnit::Number, []) },
            false if high > low => {
                let zero = (2.0 * low <= high).then_some(low.min(0.0));
                Self::fitted(title, AxisUnit::Number, values().chain(zero))
            }
            false => Self::linear(title, AxisUnit::Number, values()),
        };
        let mut ticks: Vec<AxisTick> = Vec::new();
        for (value, label) in loads {
            let room = MIN_TICK_DISTANCE * label.chars().count().max(2) as f64;
            if ticks.last().is_none_or(|last| axis.fraction(*value) - axis.fraction(last.value) >= room) {
                ticks.push(AxisTick { value: *value, label: label.clone() });
            }
        }
        axis.ticks = ticks;
        axis
    }

    /// Creates an axis for percentiles up to `greatest`, from 0 to less than 100.
    pub fn of_percentiles(title: &str, greatest: f64) -> Self {
        const NAMED: [f64; 7] = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999];
        let named = NAMED.into_iter().filter(|value| *value <= greatest);
        Self {
            low: 0.0,
            high: greatest,
            scale: AxisScale::Percentiles,
            title: title.to_owned(),
            ticks: named.map(|value| AxisTick { value, label: format!("p{value}") }).collect(),
        }
    }

    /// Creates an axis with a category for each name.
    pub fn categories(title: &str, names: impl IntoIterator<Item = String>) -> Self {
        let tick = |(n, label): (usize, String)| AxisTick { value: n as f64, label };
        let ticks: Vec<AxisTick> = names.into_iter().enumerate().map(tick).collect();
        let scale = AxisScale::Categories(ticks.len().max(1));
        Self { low: 0.0, high: ticks.len() as f64, scale, title: title.to_owned(), ticks }
    }

    /// Returns the number of categories; `None` for an axis of numbers.
    pub fn count(&self) -> Option<usize> {
        match self.scale {
            AxisScale::Categories(n) => Some(n),
            AxisScale::Linear | AxisScale::Logarithmic | AxisScale::Percentiles => None,
        }
    }

    /// Returns the position of a value as a fraction of the length of the axis. A value outside the axis is moved to
    /// its end.
    pub fn fraction(&self, value: f64) -> f64 {
        let found = match self.scale {
            AxisScale::Categories(n) => (value + 0.5) / n as f64,
            AxisScale::Linear => (value - self.low) / (self.high - self.low),
            AxisScale::Logarithmic => (value.log10() - self.low) / (self.high - self.low),
            AxisScale::Percentiles => (2.0 - (100.0 - value).log10()) / (2.0 - (100.0 - self.high).log10()),
        };
        // NaN is the position of no value; the start is as good as any other.
        if found.is_nan() { 0.0 } else { found.clamp(0.0, 1.0) }
    }
}

/// Returns the smallest and the largest of the finite values.
fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let pairs = values.into_iter().filter(|value| value.is_finite()).map(|value| (value, value));
    pairs.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// Returns the least 1, 2 or 5 times a power of ten that is at least `raw`.
fn step(raw: f64) -> f64 {
    let power = 10_f64.powf(raw.log10().floor());
    let factor = raw / power;
    let factors = [1.0, 2.0, 5.0];
    factors.into_iter().find(|f| factor <= f * (1.0 + 1e-9)).unwrap_or(10.0) * power
}

/// Returns the label of a tick, with `k` for thousands and `M` for millions of large numbers. All ticks of an axis, whose
/// values are at most `largest`, have the same unit and as many decimals as `step` needs.
fn tick_label(unit: AxisUnit, value: f64, step: f64, largest: f64) -> String {
    const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (suffix, scale) = match unit {
        AxisUnit::Nanoseconds => {
            let fits = |(_, scale): &&(&str, f64)| largest >= scale * (1.0 - 1e-9);
            TIMES.iter().rev().find(fits).copied().unwrap_or(TIMES[0])
        }
        AxisUnit::Seconds => ("s", 1.0),
        AxisUnit::Share => ("%", 0.01),
        AxisUnit::Number if value != 0.0 && largest >= 1e6 => ("M", 1e6),
        AxisUnit::Number if value != 0.0 && largest >= 1e4 => ("k", 1e3),
        AxisUnit::Number => ("", 1.0),
    };
    let decimals = decimals(step / scale);
    let number = plain(value / scale, decimals);
    if suffix.is_empty() { number } else { format!("{number} {suffix}") }
}

/// Returns the number of decimals that multiples of a step have.
fn decimals(step: f64) -> usize {
    if step.is_finite() && step > 0.0 { (-(step.log10() + 1e-9).floor()).clamp(0.0, 12.0) as usize } else { 0 }
}

/// Formats a number with at most so many decimals, without trailing zeros, and with commas between groups of digits.
fn plain(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let rest = rest.trim_end_matches('0');
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), wml_text::count::grouped);
    let is_zero = whole == "0" && rest.is_empty();
    let sign = if value < 0.0 && !is_zero { "-" } else { "" };
    if rest.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{rest}") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::float_cmp)]
    use super::*;
    use proptest::prelude::*;

    fn labels(axis: &ChartAxis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn an_axis_of_numbers_too_small_or_too_large_for_a_step_has_no_ticks() {
        for values in [[0.0, 5e-324], [f64::MIN, f64::MAX]] {
            let axis = ChartAxis::linear("", AxisUnit::Number, values);
            assert!(axis.ticks.is_empty() && (0.0..=1.0).contains(&axis.fraction(values[1])), "{values:?}");
        }
    }

    #[test]
    fn a_linear_axis_has_ticks_at_multiples_of_one_two_or_five() {
        let axis = |values: &[f64], unit| ChartAxis::linear("", unit, values.iter().copied());
        let rate = axis(&[0.0, 12_300.0], AxisUnit::Number);
        assert_eq!(labels(&rate), ["0", "5 k", "10 k", "15 k"]);
        let narrow = axis(&[0.9971, 1.0032], AxisUnit::Number);
        assert_eq!(labels(&narrow), ["0.996", "0.998", "1", "1.002", "1.004"]);
        let time = axis(&[800_000.0, 1_300_000.0], AxisUnit::Nanoseconds);
        assert_eq!(labels(&time), ["0.8 ms", "0.9 ms", "1 ms", "1.1 ms", "1.2 ms", "1.3 ms"]);
        assert_eq!(labels(&axis(&[-5.0, 60.0], AxisUnit::Seconds)), ["-20 s", "0 s", "20 s", "40 s", "60 s"]);
        assert!((axis(&[7.0], AxisUnit::Number).fraction(7.0) - 0.5).abs() < 1e-9);
        let fitted = ChartAxis::fitted("", AxisUnit::Seconds, [-5.0, 60.0]);
        assert_eq!((labels(&fitted), fitted.fraction(60.0)), (vec!["0 s", "20 s", "40 s", "60 s"], 1.0));
        assert_eq!(labels(&axis(&[], AxisUnit::Share)), ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]);
    }

    #[test]
    fn a_logarithmic_axis_has_a_tick_for_each_decade() {
        let axis = |values: &[f64]| ChartAxis::logarithmic("", AxisUnit::Nanoseconds, values.iter().copied());
        assert_eq!(labels(&axis(&[1.5e3, 9e5])), ["1 µs", "10 µs", "100 µs", "1 ms"]);
        assert_eq!(labels(&axis(&[1e3, 1e6])), ["1 µs", "10 µs", "100 µs", "1 ms"]);
        assert_eq!(labels(&axis(&[230.0, 800.0])), ["200 ns", "500 ns", "1 µs"]);
        assert_eq!(axis(&[1e3, 1e5]).fraction(1e4), 0.5);
        // A time of 0 has no position on the axis.
        assert_eq!(axis(&[0.0, 1e3, 1e5]).fraction(0.0), 0.0);
        assert_eq!(labels(&axis(&[1e3])), ["1 µs", "2 µs"]);
    }

    /// A half and a double are equally far from 1.
    #[test]
    fn an_axis_of_ratios_is_logarithmic() {
        let axis = |values: &[f64]| ChartAxis::of_ratios("", values.iter().copied());
        assert_eq!(labels(&axis(&[0.97, 1.04])), ["0.96", "0.98", "1", "1.02", "1.04"]);
        assert_eq!(labels(&axis(&[0.5, 3.0])), ["0.5", "1", "2", "5"]);
        for wide in [&[0.97, 1.04][..], &[0.4, 2.5]] {
            let axis = axis(wide);
            let middle = |a: f64, b: f64| f64::midpoint(axis.fraction(a), axis.fraction(b));
            assert!((middle(wide[0], 1.0 / wide[0]) - axis.fraction(1.0)).abs() < 1e-9, "{axis:?}");
        }
        assert_eq!(labels(&axis(&[f64::NAN, 0.0])), ["1", "2", "5", "10"]);
    }

    #[test]
    fn an_axis_of_loads_has_their_distances() {
        let axis = |loads: &[f64]| {
            let loads: Vec<(f64, String)> = loads.iter().map(|load| (*load, format!("n={load}"))).collect();
            ChartAxis::of_loads("", &loads)
        };
        let near = axis(&[2.0, 4.0, 8.0]);
        assert_eq!((labels(&near), near.fraction(0.0), near.fraction(4.0)), (vec!["n=2", "n=4", "n=8"], 0.0, 0.5));
        let narrow = axis(&[8.0, 9.0, 10.0]);
        assert_eq!((narrow.fraction(8.0), narrow.fraction(9.0)), (0.0, 0.5));
        let far = axis(&[1.0, 1.5, 4.0, 64.0, 4096.0]);
        assert_eq!((labels(&far), far.fraction(64.0)), (vec!["n=1", "n=4", "n=64", "n=4096"], 0.5));
        assert!((axis(&[5.0]).fraction(5.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn an_axis_of_percentiles_has_equal_decades() {
        let axis = ChartAxis::of_percentiles("", 99.9);
        assert_eq!(labels(&axis), ["p50", "p90", "p99", "p99.9"]);
        for (value, fraction) in [(0.0, 0.0), (90.0, 1.0 / 3.0), (99.0, 2.0 / 3.0), (99.9, 1.0)] {
            assert!((axis.fraction(value) - fraction).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn categories_have_equal_widths() {
        let axis = ChartAxis::categories("", ["a", "b"].map(str::to_owned));
        assert_eq!((axis.fraction(0.0), axis.fraction(1.0), axis.count()), (0.25, 0.75, Some(2)));
    }

    proptest! {
        #[test]
        fn every_value_is_within_the_axis_and_the_ticks_ascend(
            values in prop::collection::vec(1e-3_f64..1e12, 1..8),
            logarithmic: bool,
        ) {
            let all = values.iter().copied();
            let axis = match logarithmic {
                true => ChartAxis::logarithmic("", AxisUnit::Nanoseconds, all),
                false => ChartAxis::linear("", AxisUnit::Number, all),
            };
            prop_assert!((2..=20).contains(&axis.ticks.len()), "{:?}", axis.ticks);
            let positions: Vec<f64> = axis.ticks.iter().map(|tick| axis.fraction(tick.value)).collect();
            prop_assert!(positions.is_sorted(), "{:?}", axis.ticks);
            let unlimited = |value: f64| {
                let value = if logarithmic { value.log10() } else { value };
                (value - axis.low) / (axis.high - axis.low)
            };
            prop_assert!(values.iter().all(|value| (-1e-6..=1.0 + 1e-6).contains(&unlimited(*value))), "{axis:?}");
        }
    }
}
