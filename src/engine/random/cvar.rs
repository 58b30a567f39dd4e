//! `cvar(type=…,parameters=…)`: Filebench's custom variables, and this program's additional distributions in the same
//! syntax.

use super::randvar::bounded;
use super::sampler::{ParameterValues, SamplerBuilder, finite};
use super::variable::Adjust;
use super::{BadDistribution, DISTRIBUTIONS, Distribution, RandomVar};
use wml_text::size;

/// Builds a random variable from the arguments of a `cvar`.
///
/// `kind` is the type, such as `cvar-gamma`. `parameters` is `key:value;key:value`; a value is a number with an
/// optional unit (`16k`), `true` or `false`. Blanks and empty assignments are ignored. Draws are rounded to the nearest
/// multiple of `round` and then bounded by `min` (default: the smallest positive number, so that negative draws become
/// 0) and `max`.
pub fn cvar(
    kind: &str,
    parameters: &str,
    min: Option<f64>,
    max: Option<f64>,
    round: Option<f64>,
) -> Result<RandomVar, BadDistribution> {
    let named = |distribution: &'static Distribution| match distribution.build {
        SamplerBuilder::Named(build) => Some((distribution, build)),
        SamplerBuilder::Randvar(_) => None,
    };
    let Some((distribution, build)) = Distribution::of_cvar(kind).and_then(named) else {
        return Err(BadDistribution::UnknownType { name: kind.to_owned(), known: names() });
    };
    let given = parse(parameters)?;
    let min = finite("min", min.unwrap_or(f64::MIN_POSITIVE))?;
    let max = finite("max", max.unwrap_or(f64::MAX))?;
    let round = finite("round", round.unwrap_or(0.0))?;
    if round < 0.0 {
        return Err(BadDistribution::OutOfRange { parameter: "round", value: round, range: "at least 0" });
    }
    let (sampler, notes) = build(&ParameterValues::new(distribution.name, distribution.parameters, &given)?)?;
    let max = bounded(min, max, &*sampler, distribution.name)?;
    Ok(RandomVar::new(sampler, Adjust { round, min, max }, notes))
}

/// Returns the names of all types that a `cvar` accepts.
fn names() -> Vec<String> {
    DISTRIBUTIONS.iter().filter_map(Distribution::cvar_name).collect()
}

/// Parses `key:value;key:value` into names and numbers.
fn parse(parameters: &str) -> Result<Vec<(String, f64)>, BadDistribution> {
    let mut given = Vec::new();
    for assignment in parameters.split(';').map(str::trim).filter(|assignment| !assignment.is_empty()) {
        let (name, value) = assignment.split_once(':').unwrap_or((assignment, ""));
        let (name, value) = (name.trim(), value.trim());
        let Some(number) = number(value) else {
            return Err(BadDistribution::NotANumber { parameter: name.to_owned(), value: value.to_owned() });
        };
        given.push((name.to_owned(), number));
    }
    Ok(given)
}

/// Parses a number with an optional unit, or a boolean (1 or 0). `None` when `text` is neither.
fn number(text: &str) -> Option<f64> {
    match text {
        "true" => return Some(1.0),
        "false" => return Some(0.0),
        _ => {}
    }
    let (digits, shift) = size::split_unit(text);
    // `parse` also accepts `inf` and `nan`, which are not valid parameters.
    digits.parse::<f64>().ok().map(|n| n * (1u64 << shift) as f64).filter(|n| n.is_finite())
}

#[cfg(test)]
mod tests {
    use super::{number, parse};

    #[test]
    fn numbers_with_units_and_booleans_are_parsed() {
        let read: Vec<Option<f64>> =
            ["16k", "1.5", "2G", "-3", "1e3", "true", "false", "k", "", "x", "inf", "nan", "0x10", "4kb", "1é"]
                .iter()
                .map(|text| number(text))
                .collect();
        let some = [16_384.0, 1.5, 2_147_483_648.0, -3.0, 1000.0, 1.0, 0.0].map(Some);
        assert_eq!(read[..7], some);
        assert!(read[7..].iter().all(Option::is_none), "{read:?}");
    }

    #[test]
    fn a_parameter_string_is_parsed() -> Result<(), super::BadDistribution> {
        assert_eq!(parse(" mean:16k ; gamma : 1.5;;")?, [("mean".to_owned(), 16_384.0), ("gamma".to_owned(), 1.5)]);
        assert_eq!(parse("")?, []);
        let error = parse("mean").map_err(|e| e.to_string());
        assert_eq!(error, Err("`mean` is ``, which is not a number".to_owned()));
        Ok(())
    }
}
