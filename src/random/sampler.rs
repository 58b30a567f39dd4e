//! What a distribution is to the rest of the room: a distribution that can be drawn from and knows its mean and bounds, and the function
//! that builds it from checked parameters.

use super::{BadDistribution, Parameter, RandvarParams, Rng, VariableNote};
use std::fmt;

/// A distribution with its parameters, before rounding and clamping.
pub(super) trait Sampler: fmt::Debug + fmt::Display + Send + Sync {
    /// One draw.
    fn draw(&self, rng: &mut Rng) -> f64;
    /// The expected value; infinite where there is none.
    fn mean(&self) -> f64;
    /// Least and greatest value; either may be infinite.
    fn bounds(&self) -> (f64, f64);
}

/// A distribution, and what is worth saying about how it came to be.
pub(super) type BuiltSampler = Result<(Box<dyn Sampler>, Vec<VariableNote>), BadDistribution>;

/// From parameters to distribution.
#[derive(Clone, Copy, Debug)]
pub(super) enum SamplerBuilder {
    /// From Filebench's attributes of a random variable.
    Randvar(fn(&RandvarParams) -> BuiltSampler),
    /// From named numbers.
    Named(fn(&ParameterValues<'_>) -> BuiltSampler),
}

/// Named numbers, checked against the parameters that the distribution has.
#[derive(Debug)]
pub(super) struct ParameterValues<'a> {
    parameters: &'static [Parameter],
    given: &'a [(String, f64)],
}

impl<'a> ParameterValues<'a> {
    /// Each name must be one of `parameters`. Of a name given twice the last counts, as everywhere in the language.
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

    /// What was given.
    pub(super) fn given(&self, name: &str) -> Option<f64> {
        self.given.iter().rev().find(|(n, _)| n == name).map(|(_, value)| *value)
    }

    /// What was given, else the default; NaN for a name without either, which only a slip in a distribution's own file can ask for.
    pub(super) fn get(&self, name: &str) -> f64 {
        let default = || self.parameters.iter().find(|p| p.name == name).and_then(|p| p.default);
        self.given(name).or_else(default).unwrap_or(f64::NAN)
    }

    /// [`Self::get`], which must be above zero.
    pub(super) fn above_zero(&self, name: &'static str) -> Result<f64, BadDistribution> {
        check(name, self.get(name), |v| v > 0.0, "above 0")
    }

    /// [`Self::get`], which must not be below zero.
    pub(super) fn not_negative(&self, name: &'static str) -> Result<f64, BadDistribution> {
        check(name, self.get(name), |v| v >= 0.0, "at least 0")
    }
}

/// `value`, if it passes.
pub(super) fn check(
    parameter: &'static str,
    value: f64,
    ok: impl Fn(f64) -> bool,
    range: &'static str,
) -> Result<f64, BadDistribution> {
    if ok(value) { Ok(value) } else { Err(BadDistribution::OutOfRange { parameter, value, range }) }
}

/// `value`, if it is a finite number.
pub(super) fn finite(parameter: &'static str, value: f64) -> Result<f64, BadDistribution> {
    check(parameter, value, f64::is_finite, "a finite number")
}

/// Whether two numbers of a script are the very same: they are compared as written, before any arithmetic.
pub(super) fn same(a: f64, b: f64) -> bool {
    a.total_cmp(&b).is_eq()
}

/// The distribution that always gives the same: what remains of a distribution without spread.
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

/// A number as the scripts write it: `16k` for 16384, `1.5`, at most six digits after the point.
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
    fn numbers_look_as_in_scripts() {
        let shown: Vec<String> =
            [0.0, 1.0, 1.5, 1000.0, 1024.0, 16384.0, 1536.0, 1_048_576.0, 0.99, 1.0 / 3.0, -2048.0, 1024f64.powi(4)]
                .iter()
                .map(|&n| ShortNumber(n).to_string())
                .collect();
        assert_eq!(shown, ["0", "1", "1.5", "1000", "1k", "16k", "1536", "1m", "0.99", "0.333333", "-2k", "1t"]);
    }
}
