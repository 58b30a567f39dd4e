//! Gamma, and Erlang, which is gamma with a whole shape: many small values and a few large ones, as file sizes are.

use super::sampler::{BuiltSampler, Constant, ParameterValues, Sampler, SamplerBuilder, ShortNumber};
use super::{BadDistribution, Distribution, Parameter, RandvarParams, Rng, UsableIn, VariableNote};
use rand_distr::Distribution as _;
use std::fmt;

pub(super) const GAMMA: Distribution = Distribution {
    name: "gamma",
    place: UsableIn::Randvar,
    parameters: &[
        Parameter::new("min", Some(0.0), "least value"),
        Parameter::new("mean", None, "mean; not given: the gamma value itself, 1.5"),
        Parameter::new("gamma", Some(1500.0), "shape, in thousandths"),
    ],
    doc: "`min` and above with this mean; the standard deviation is `(mean − min) / √shape`",
    example: "set $filesize = randvar(type=gamma,min=1k,mean=16k,gamma=1500)",
    build: SamplerBuilder::Randvar(randvar),
};

pub(super) const CVAR_GAMMA: Distribution = Distribution {
    name: "cvar-gamma",
    place: UsableIn::Cvar,
    parameters: &[
        Parameter::new("mean", Some(4096.0), "mean"),
        Parameter::new("gamma", Some(1.5), "shape, not in thousandths"),
    ],
    doc: "above zero with this mean; the standard deviation is `mean / √gamma`",
    example: "set $filesize = cvar(type=cvar-gamma,parameters=\"mean:16k;gamma:1.5\")",
    build: SamplerBuilder::Named(cvar_gamma),
};

pub(super) const CVAR_ERLANG: Distribution = Distribution {
    name: "cvar-erlang",
    place: UsableIn::Cvar,
    parameters: &[
        Parameter::new("shape", Some(1.0), "number of phases, whole"),
        Parameter::new("rate", Some(1.0), "the mean: Filebench calls it a rate and uses it as the mean"),
    ],
    doc: "the sum of `shape` exponential values, with mean `rate` in all",
    example: "set $gap = cvar(type=cvar-erlang,parameters=\"shape:3;rate:100\")",
    build: SamplerBuilder::Named(cvar_erlang),
};

#[derive(Debug)]
struct Gamma {
    min: f64,
    /// `mean − min`; below zero if draws run downwards from `min`.
    above: f64,
    shape: f64,
    /// With mean 1.
    standard: rand_distr::Gamma<f64>,
}

/// A gamma distribution of this shape, moved and stretched; constant if there is nothing to stretch.
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
        // Filebench: without a mean the mean is the gamma value. With a least value above that nothing but the least is meant.
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
            "`mean` is below `min`: draws run downwards from `min`, and those below zero are 0",
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
            range: "a whole number of at least 1",
        });
    }
    let mut notes = Vec::new();
    if shape < given {
        notes.push(VariableNote::new(
            "shape",
            format!("`shape` is a whole number: {} counts as {}", ShortNumber(given), ShortNumber(shape)),
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
