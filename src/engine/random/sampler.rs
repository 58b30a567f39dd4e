//! The interface of distributions: sampling, mean and bounds, and the functions that build a distribution from checked
//! parameters.

use super::{BadDistribution, Parameter, RandvarParams, Rng, VariableNote};
use std::fmt;

/// A distribution with its parameters, before rounding and bounds are applied.
pub(super) trait Sampler: fmt::Debug + fmt::Display + Send + Sync {
    fn draw(&self, rng: &mut Rng) -> f64;
    /// Returns the expected value; infinite when there is none.
    fn mean(&self) -> f64;
    /// Returns the least and the greatest value; either may be infinite.
    fn bounds(&self) -> (f64, f64);
}

/// A distribution, and notes about parameters with an unexpected effect.
pub(super) type BuiltSampler = Result<(Box<dyn Sampler>, Vec<VariableNote>), BadDistribution>;

/// The function that builds a distribution from its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) enum SamplerBuilder {
    /// Builds from the attributes of a `randvar` that Filebench has.
    Randvar(fn(&RandvarParams) -> BuiltSampler),
    /// Builds from named numbers.
    Named(fn(&ParameterValues<'_>) -> BuiltSampler),
}

/// Named numbers, checked against the parameters of the distribution.
#[derive(Debug)]
pub(super) struct ParameterValues<'a> {
    parameters: &'static [Parameter],
    given: &'a [(String, f64)],
}

impl<'a> ParameterValues<'a> {
    /// Checks that each name is one of `parameters` and each value is finite. If a name is given twice, the last value
    /// counts, as everywhere in the language.
    pub(super) fn new(
        distribution: &'static str,
        parameters: &'static [Parameter],
        given: &'a [(String, f64)],
    ) -> Result<Self, BadDistribution> {
        for (name, value) in given {
            let Some(parameter) = parameters.iter().find(|p| p.name == name) else {
                let known = parameters.iter().map(|p| p.name.to_owned()).collect();
                return Err(BadDistribution::UnknownParameter { distribution, parameter: name.clone(), known });
            };
            finite(parameter.name, *value)?;
        }
        Ok(Self { parameters, given })
    }

    /// Returns the value that the script gives. `None` when it gives none.
    pub(super) fn given(&self, name: &str) -> Option<f64> {
        self.given.iter().rev().find(|(n, _)| n == name).map(|(_, value)| *value)
    }

    /// Returns the value that the script gives, else the default. NaN for a name with neither, which only a mistake in
    /// a distribution's file can cause.
    pub(super) fn get(&self, name: &str) -> f64 {
        let default = || self.parameters.iter().find(|p| p.name == name).and_then(|p| p.default);
        self.given(name).or_else(default).unwrap_or(f64::NAN)
    }

    /// Returns [`Self::get`], or an error if it is not above 0.
    pub(super) fn above_zero(&self, name: &'static str) -> Result<f64, BadDistribution> {
        check(name, self.get(name), |v| v > 0.0, "above 0")
    }

    /// Returns [`Self::get`], or an error if it is negative.
    pub(super) fn not_negative(&self, name: &'static str) -> Result<f64, BadDistribution> {
        check(name, self.get(name), |v| v >= 0.0, "at least 0")
    }
}

/// Returns `value`, or [`BadDistribution::OutOfRange`] if `ok` is false for it.
pub(super) fn check(
    parameter: &'static str,
    value: f64,
    ok: impl Fn(f64) -> bool,
    range: &'static str,
) -> Result<f64, BadDistribution> {
    if ok(value) { Ok(value) } else { Err(BadDistribution::OutOfRange { parameter, value, range }) }
}

/// Returns `value`, or an error if it is not a finite number.
pub(super) fn finite(parameter: &'static str, value: f64) -> Result<f64, BadDistribution> {
    check(parameter, value, f64::is_finite, "a finite number")
}

/// True if two numbers of a script are identical. They are compared as written, before any arithmetic.
pub(super) fn same(a: f64, b: f64) -> bool {
    a.total_cmp(&b).is_eq()
}

/// The constant distribution, which stands for any distribution without spread.
#[derive(Debug)]
pub(super) struct Constant(pub(super) f64);

impl Sampler for Constant {
    fn draw(&self, _: &mut Rng) -> f64 {
        self.0
    }
    fn mean(&self) -> f64 {
        self.0
    }
    fn bounds(&self) -> (f64, f64) {
        (self.0, self.0)
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "constant({})", ShortNumber(self.0))
    }
}

/// A number in the notation of scripts: `16k` for 16384, `1.5`, at most six digits after the point.
pub(super) struct ShortNumber(pub(super) f64);

impl fmt::Display for ShortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(f64, &str); 4] = [
            (1024f64 * 1024. * 1024. * 1024., "t"),
            (1024f64 * 1024. * 1024., "g"),
            (1024f64 * 1024., "m"),
            (1024., "k"),
        ];
        for (unit, letter) in UNITS {
            let scaled = self.0 / unit;
            if scaled.abs() >= 1.0 && scaled.fract() == 0.0 {
                return write!(f, "{scaled}{letter}");
            }
        }
        let digits = format!("{:.6}", self.0);
        f.write_str(digits.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::ShortNumber;

    #[test]
    fn numbers_print_as_in_scripts() {
        let shown: Vec<String> =
            [0.0, 1.0, 1.5, 1000.0, 1024.0, 16384.0, 1536.0, 1_048_576.0, 0.99, 1.0 / 3.0, -2048.0, 1024f64.powi(4)]
                .iter()
                .map(|&n| ShortNumber(n).to_string())
                .collect();
        assert_eq!(shown, ["0", "1", "1.5", "1000", "1k", "16k", "1536", "1m", "0.99", "0.333333", "-2k", "1t"]);
    }
}
