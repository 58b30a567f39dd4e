//! The gamma distribution, and the Erlang distribution, which is a gamma distribution with an integer shape. Both give
//! many small values and a few large ones, as in the sizes of files.

use super::sampler::{BuiltSampler, Constant, ParameterValues, Sampler, SamplerBuilder, ShortNumber};
use super::{BadDistribution, Distribution, Parameter, RandvarParams, Rng, UsableIn, VariableNote};
use rand_distr::Distribution as _;
use std::fmt;

pub(super) const GAMMA: Distribution = Distribution {
    name: "gamma",
    usable_in: UsableIn::Randvar,
    parameters: &[
        Parameter::new("min", Some(0.0), "least value"),
        Parameter::new("mean", None, "mean; default: the gamma value, 1.5"),
        Parameter::new("gamma", Some(1500.0), "shape, in thousandths"),
    ],
    doc: "values from `min` upwards with this mean; the standard deviation is `(mean − min) / √shape`",
    example: "set $filesize = randvar(type=gamma,min=1k,mean=16k,gamma=1500)",
    build: SamplerBuilder::Randvar(randvar),
};

pub(super) const CVAR_GAMMA: Distribution = Distribution {
    name: "cvar-gamma",
    usable_in: UsableIn::Cvar,
    parameters: &[
        Parameter::new("mean", Some(4096.0), "mean"),
        Parameter::new("gamma", Some(1.5), "shape (not in thousandths)"),
    ],
    doc: "values above 0 with this mean; the standard deviation is `mean / √gamma`",
    example: "set $filesize = cvar(type=cvar-gamma,parameters=\"mean:16k;gamma:1.5\")",
    build: SamplerBuilder::Named(cvar_gamma),
};

pub(super) const CVAR_ERLANG: Distribution = Distribution {
    name: "cvar-erlang",
    usable_in: UsableIn::Cvar,
    parameters: &[
        Parameter::new("shape", Some(1.0), "number of phases, an integer"),
        Parameter::new("rate", Some(1.0), "the mean, in spite of its name"),
    ],
    doc: "the sum of `shape` exponential values, with a total mean of `rate`",
    example: "set $gap = cvar(type=cvar-erlang,parameters=\"shape:3;rate:100\")",
    build: SamplerBuilder::Named(cvar_erlang),
};

#[derive(Debug)]
struct Gamma {
    min: f64,
    /// `mean − min`. Negative if draws go downwards from `min`.
    above: f64,
    shape: f64,
    /// The gamma distribution with mean 1 and this shape.
    standard: rand_distr::Gamma<f64>,
}

/// Builds a gamma distribution of this shape, shifted by `min` and scaled to `mean`. Returns a constant if `mean`
/// equals `min`.
fn sampler(min: f64, mean: f64, shape: f64) -> Result<Box<dyn Sampler>, BadDistribution> {
    let above = mean - min;
    if above == 0.0 {
        return Ok(Box::new(Constant(mean)));
    }
    let wrong = |_| BadDistribution::OutOfRange { parameter: "gamma", value: shape, range: "above 0" };
    let standard = rand_distr::Gamma::new(shape, 1.0 / shape).map_err(wrong)?;
    Ok(Box::new(Gamma { min, above, shape, standard }))
}

fn randvar(params: &RandvarParams) -> BuiltSampler {
    let shape = params.gamma.map_or(1.5, |thousandths| thousandths as f64 / 1000.0);
    let min = params.min;
    let mut notes = Vec::new();
    let mean = match params.mean {
        Some(mean) => mean,
        // As in Filebench, the default of the mean is the gamma value. A least value above that gives a constant.
        None if min <= shape => shape,
        None => {
            let message =
                format!("a gamma variable with `min` and without `mean` always gives `min`, here {}", ShortNumber(min));
            notes.push(VariableNote::new("mean", message));
            min
        }
    };
    if mean < min {
        notes.push(VariableNote::new(
            "mean",
            "`mean` is below `min`: draws go downwards from `min`, and negative draws become 0",
        ));
    }
    if shape == 0.0 {
        notes.push(VariableNote::new("gamma", format!("with `gamma=0` every draw is the mean, {}", ShortNumber(mean))));
        return Ok((Box::new(Constant(mean)), notes));
    }
    Ok((sampler(min, mean, shape)?, notes))
}

fn cvar_gamma(values: &ParameterValues<'_>) -> BuiltSampler {
    Ok((sampler(0.0, values.not_negative("mean")?, values.above_zero("gamma")?)?, Vec::new()))
}

fn cvar_erlang(values: &ParameterValues<'_>) -> BuiltSampler {
    let given = values.above_zero("shape")?;
    let shape = given.trunc();
    if shape < 1.0 {
        return Err(BadDistribution::OutOfRange {
            parameter: "shape",
            value: given,
            range: "an integer of at least 1",
        });
    }
    let mut notes = Vec::new();
    if shape < given {
        notes.push(VariableNote::new(
            "shape",
            format!("`shape` must be an integer: {} is truncated to {}", ShortNumber(given), ShortNumber(shape)),
        ));
    }
    Ok((sampler(0.0, values.not_negative("rate")?, shape)?, notes))
}

impl Sampler for Gamma {
    fn draw(&self, rng: &mut Rng) -> f64 {
        self.min + self.above * self.standard.sample(rng)
    }
    fn mean(&self) -> f64 {
        self.min + self.above
    }
    fn bounds(&self) -> (f64, f64) {
        if self.above > 0.0 { (self.min, f64::INFINITY) } else { (f64::NEG_INFINITY, self.min) }
    }
}

impl fmt::Display for Gamma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gamma(mean={},shape={}", ShortNumber(self.mean()), ShortNumber(self.shape))?;
        if self.min != 0.0 {
            write!(f, ",min={}", ShortNumber(self.min))?;
        }
        f.write_str(")")
    }
}
