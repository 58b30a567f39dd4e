//! `randvar(…)` and `define randvar`: Filebench's random variables, and this program's additional distributions in the
//! same syntax.

use super::sampler::{ParameterValues, Sampler, SamplerBuilder, finite};
use super::variable::Adjust;
use super::{BadDistribution, DISTRIBUTIONS, Distribution, RandomVar, UsableIn, VariableNote};

/// The type of a random variable.
#[derive(Clone, Copy, Debug)]
pub enum RandvarKind {
    /// `type=uniform`.
    Uniform,
    /// `type=gamma`.
    Gamma,
    /// `type=tabular`.
    Tabular,
    /// A distribution that Filebench does not have.
    Other(&'static Distribution),
}

impl RandvarKind {
    /// Returns the type with this name. `Err` when there is none.
    pub fn named(name: &str) -> Result<Self, BadDistribution> {
        match name {
            "uniform" => Ok(Self::Uniform),
            "gamma" => Ok(Self::Gamma),
            "tabular" => Ok(Self::Tabular),
            _ => Distribution::of_randvar(name).map(Self::Other).ok_or_else(|| {
                let known =
                    DISTRIBUTIONS.iter().filter(|d| d.usable_in != UsableIn::Cvar).map(|d| d.name.to_owned()).collect();
                BadDistribution::UnknownType { name: name.to_owned(), known }
            }),
        }
    }
}

/// The attributes of a random variable, as written in the script.
#[derive(Clone, Debug, Default)]
pub struct RandvarParams {
    /// The type. `None` is `gamma`, or `tabular` if there is a table.
    pub kind: Option<RandvarKind>,
    /// The lower bound of uniform and gamma, the new least value of a table, or the lower bound of an extension's
    /// draws. Default: 0.
    pub min: f64,
    /// The upper bound of draws. An extension: Filebench's random variables have none.
    pub max: Option<f64>,
    /// The mean. Default: 0 for uniform, the gamma value for gamma, the table's mean for tabular.
    pub mean: Option<f64>,
    /// The shape of gamma, in thousandths. Default: 1500.
    pub gamma: Option<u64>,
    /// The unit to which draws are rounded; 0 means no rounding.
    pub round: u64,
    /// The seed, which is accepted and has no effect. Draws come from the stream of the drawing thread, which `--seed`
    /// reproduces. Filebench has one stream per variable, shared by all threads, whose values depend on the order in
    /// which threads draw.
    pub seed: Option<u64>,
    /// Rows of percentage, least and greatest value. With a table the type is tabular, whatever `kind` is.
    pub table: Vec<(u64, u64, u64)>,
    /// Named parameters of the additional distributions, such as `items` and `theta`. A boolean is 1 or 0.
    pub named: Vec<(String, f64)>,
}

/// Builds a random variable from its attributes.
pub fn randvar(params: &RandvarParams) -> Result<RandomVar, BadDistribution> {
    finite("min", params.min)?;
    for (name, value) in [("mean", params.mean), ("max", params.max)] {
        value.map_or(Ok(0.0), |v| finite(name, v))?;
    }
    let wanted = match params.kind {
        _ if !params.table.is_empty() => "tabular",
        None | Some(RandvarKind::Gamma) => "gamma",
        Some(RandvarKind::Uniform) => "uniform",
        Some(RandvarKind::Tabular) => "tabular",
        Some(RandvarKind::Other(distribution)) => distribution.name,
    };
    // All names above are in the table; a test checks that.
    let Some(distribution) = Distribution::of_randvar(wanted) else {
        return Err(BadDistribution::UnknownType { name: wanted.to_owned(), known: Vec::new() });
    };
    let mut adjust = Adjust { round: params.round as f64, max: params.max.unwrap_or(f64::MAX), ..Adjust::NONE };
    let (sampler, mut notes) = match distribution.build {
        SamplerBuilder::Randvar(build) => {
            if let Some((name, _)) = params.named.first() {
                let known = distribution.parameters.iter().map(|p| p.name.to_owned()).collect();
                return Err(BadDistribution::UnknownParameter {
                    distribution: distribution.name,
                    parameter: name.clone(),
                    known,
                });
            }
            build(params)?
        }
        SamplerBuilder::Named(build) => {
            adjust.min = params.min;
            let mut named = params.named.clone();
            named.extend(params.mean.map(|mean| ("mean".to_owned(), mean)));
            named.extend(params.gamma.map(|gamma| ("gamma".to_owned(), gamma as f64 / 1000.0)));
            build(&ParameterValues::new(distribution.name, distribution.parameters, &named)?)?
        }
    };
    adjust.max = bounded(adjust.min, adjust.max, &*sampler, distribution.name)?;
    if params.seed.is_some_and(|seed| seed != 0) {
        let message = "`seed` of a random variable has no effect: each thread draws from a separate stream, which `--seed` reproduces";
        notes.push(VariableNote::new("seed", message));
    }
    Ok(RandomVar::new(sampler, adjust, notes))
}

/// Returns `max` if it is at least `min`, and if the distribution has a finite mean or a finite upper bound. A file set
/// whose file sizes have neither has no total size.
pub(super) fn bounded(
    min: f64,
    max: f64,
    sampler: &dyn Sampler,
    distribution: &'static str,
) -> Result<f64, BadDistribution> {
    if max < min {
        return Err(BadDistribution::OutOfRange { parameter: "max", value: max, range: "at least `min`" });
    }
    if max >= f64::MAX && !sampler.bounds().1.is_finite() && !sampler.mean().is_finite() {
        let why = ": its mean is infinite without a bound";
        return Err(BadDistribution::Missing { distribution, parameter: "max", why });
    }
    Ok(max)
}
