//! The values of expressions, and their conversions.
//!
//! Deliberately absent: evaluation (`expr`), and which kind of value an attribute takes (`fit`).

use super::expr::RandomExpr;
use crate::source::Span;
use std::sync::Arc;

/// The value of an evaluated expression.
#[derive(Clone, PartialEq, Debug)]
pub enum ModelValue {
    /// A switch.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A fraction.
    Float(f64),
    /// A text. It is shared, since many attributes may read one variable.
    Text(Arc<str>),
    /// A random variable.
    Random(Arc<RandomExpr>),
    /// Rows of numbers.
    Table(Arc<[Vec<f64>]>),
}

impl ModelValue {
    /// The text that `echo` prints.
    pub fn print(&self) -> String {
        match self {
            Self::Bool(b) => b.to_string(),
            Self::Int(n) => n.to_string(),
            Self::Float(x) => x.to_string(),
            Self::Text(s) => s.as_ref().to_owned(),
            Self::Random(r) => r.describe(),
            Self::Table(rows) => format!("table of {} rows", rows.len()),
        }
    }

    /// The kind of value, with its article, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a switch",
            Self::Int(_) => "a number",
            Self::Float(_) => "a fraction",
            Self::Text(_) => "a text",
            Self::Random(_) => "a random variable",
            Self::Table(_) => "a table",
        }
    }

    /// The value as a finite number: numbers, and texts that are numbers.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(n) => Some(*n as f64),
            Self::Float(x) => Some(*x),
            Self::Text(s) => s.trim().parse().ok().filter(|x: &f64| x.is_finite()),
            Self::Bool(_) | Self::Random(_) | Self::Table(_) => None,
        }
    }

    /// The value as a number of a random variable's parameter: as [`Self::as_f64`], and switches are 1 and 0.
    pub fn as_parameter(&self) -> Option<f64> {
        match self {
            Self::Bool(b) => Some(f64::from(*b)),
            other => other.as_f64(),
        }
    }

    /// The value as a whole number from 0 up. Switches are 1 and 0, as in Filebench. A fraction is cut off: where that
    /// may change what a script does, [`Self::fraction`] is an error.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Int(n) => u64::try_from(*n).ok(),
            Self::Bool(b) => Some(u64::from(*b)),
            // 2⁶⁴ and above would become the largest number.
            Self::Float(x) if (0.0..u64::MAX as f64).contains(x) => Some(whole(*x).unwrap_or(*x) as u64),
            Self::Text(s) => s.trim().parse().ok().or_else(|| Self::Float(self.as_f64()?).as_u64()),
            Self::Float(_) | Self::Random(_) | Self::Table(_) => None,
        }
    }

    /// The value as a number that is not whole. `None` if it is whole, or no number.
    pub fn fraction(&self) -> Option<f64> {
        self.as_f64().filter(|x| whole(*x).is_none())
    }

    /// The value in messages: a number as it is, anything else by its kind.
    pub fn describe(&self) -> String {
        match self {
            Self::Int(_) | Self::Float(_) => self.print(),
            other => other.kind().to_owned(),
        }
    }

    /// The value as a switch. Numbers other than 0 are on, as in Filebench.
    pub fn as_switch(&self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(*b),
            Self::Int(n) => Some(*n != 0),
            Self::Float(x) => Some(*x != 0.0),
            Self::Text(s) => switch(s),
            Self::Random(_) | Self::Table(_) => None,
        }
    }
}

/// A whole number; numbers above the largest one become that.
impl From<u64> for ModelValue {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<&str> for ModelValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// The attributes of one definition, with their values.
#[derive(Clone, Debug, Default)]
pub struct Evaluated {
    /// Name, value, and the place of the value.
    pub values: Vec<(&'static str, ModelValue, Span)>,
    /// Whether the value of an attribute was wrong, which was reported. The attribute is not in `values`.
    pub incomplete: bool,
}

impl Evaluated {
    /// An attribute's value and its place.
    pub fn get(&self, name: &str) -> Option<(&ModelValue, Span)> {
        self.values.iter().rev().find(|(n, _, _)| *n == name).map(|(_, v, s)| (v, *s))
    }

    /// A whole number; the default if there is none.
    pub fn int(&self, name: &str, default: u64) -> u64 {
        self.get(name).and_then(|(v, _)| v.as_u64()).unwrap_or(default)
    }

    /// A switch; off if there is none.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(|(v, _)| v.as_switch()).unwrap_or(false)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|(v, _)| v.print())
    }
}

/// Returns the whole number that a value is, but for the rounding of its calculation: `0.29 * 100` is 29, not
/// 28.999999999999996. `None` if the value has a fraction.
fn whole(x: f64) -> Option<f64> {
    let nearest = x.round();
    ((x - nearest).abs() <= 1e-12 * x.abs()).then_some(nearest)
}

/// The words for the two states of a switch.
pub fn switch(text: &str) -> Option<bool> {
    match text {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::ModelValue::{self, Bool, Float, Int};

    #[test]
    fn each_conversion_takes_what_filebench_takes() {
        let text = |text: &str| ModelValue::Text(text.into());
        let all = [Bool(true), Int(7), Int(-1), Float(2.5), text(" 8 "), text("off"), text("x")];
        assert_eq!(text("18446744073709551615").as_u64(), Some(u64::MAX));
        for too_large in [Float(18_446_744_073_709_551_616.0), Float(1e300), text("18446744073709551616")] {
            assert_eq!(too_large.as_u64(), None, "{too_large:?}");
        }
        let whole: Vec<_> = all.iter().map(ModelValue::as_u64).collect();
        assert_eq!(whole, [Some(1), Some(7), None, Some(2), Some(8), None, None]);
        let switches: Vec<_> = all.iter().map(ModelValue::as_switch).collect();
        assert_eq!(switches, [Some(true), Some(true), Some(true), Some(true), None, Some(false), None]);
        let numbers: Vec<_> = all.iter().map(ModelValue::as_f64).collect();
        assert_eq!(numbers, [None, Some(7.0), Some(-1.0), Some(2.5), Some(8.0), None, None]);
        assert_eq!(Bool(true).as_parameter(), Some(1.0));
    }

    #[test]
    fn the_rounding_of_a_calculation_is_no_fraction() {
        assert_eq!(ModelValue::Text("5.0".into()).as_u64(), Some(5));
        let computed = [Float(0.29 * 100.0), Float(1.1 * 10.0), Float(7.0), Float(0.0)];
        assert_eq!(computed.each_ref().map(ModelValue::as_u64), [Some(29), Some(11), Some(7), Some(0)]);
        assert_eq!(computed.each_ref().map(ModelValue::fraction), [None; 4]);
        assert_eq!(Float(0.5).fraction(), Some(0.5));
        assert_eq!(ModelValue::Text("2.5".into()).fraction(), Some(2.5));
        assert_eq!([Int(3), Bool(true), ModelValue::Text("x".into())].each_ref().map(ModelValue::fraction), [None; 3]);
    }
}
