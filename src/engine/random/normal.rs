//! The normal distribution, and the lognormal distribution, which is its exponential.

use super::sampler::{BuiltSampler, ParameterValues, Sampler, SamplerBuilder, ShortNumber};
use super::{Distribution, Parameter, Rng, UsableIn, VariableNote};
use rand_distr::{Distribution as _, StandardNormal};
use std::fmt;

pub(super) const CVAR_NORMAL: Distribution = Distribution {
    name: "cvar-normal",
    usable_in: UsableIn::Cvar,
    parameters: &[Parameter::new("mean", Some(0.0), "mean"), Parameter::new("sigma", Some(1.0), "standard deviation")],
    doc: "the bell curve; negative draws become 0 unless `min` is set",
    example: "set $filesize = cvar(type=cvar-normal,parameters=\"mean:64k;sigma:8k\",min=1k)",
    build: SamplerBuilder::Named(normal),
};

pub(super) const CVAR_LOGNORMAL: Distribution = Distribution {
    name: "cvar-lognormal",
    usable_in: UsableIn::Cvar,
    parameters: &[
        Parameter::new("shape", Some(1.0), "standard deviation of the logarithm"),
        Parameter::new("scale", Some(1.0), "mean of the logarithm: the median is e^scale"),
    ],
    doc: "above 0; the logarithm has a normal distribution",
    example: "set $filesize = cvar(type=cvar-lognormal,parameters=\"shape:2;scale:9\",max=1g)",
    build: SamplerBuilder::Named(lognormal),
};

#[derive(Debug)]
struct Normal {
    mean: f64,
    sigma: f64,
}

#[derive(Debug)]
struct LogNormal(Normal);

fn normal(values: &ParameterValues<'_>) -> BuiltSampler {
    Ok((Box::new(Normal { mean: values.get("mean"), sigma: values.not_negative("sigma")? }), Vec::new()))
}

fn lognormal(values: &ParameterValues<'_>) -> BuiltSampler {
    let sampler = LogNormal(Normal { mean: values.get("scale"), sigma: values.not_negative("shape")? });
    let mut notes = Vec::new();
    // A median of e^44 is larger than any file. A script with `scale:16384` means the median itself, not its logarithm.
    if sampler.0.mean > 44.0 {
        notes.push(VariableNote::new(
            "scale",
            "`scale` is the mean of the logarithm: the median is e^scale, beyond 2^63",
        ));
    }
    Ok((Box::new(sampler), notes))
}

impl Sampler for Normal {
    fn draw(&self, rng: &mut Rng) -> f64 {
        let standard: f64 = StandardNormal.sample(rng);
        self.mean + self.sigma * standard
    }
    fn mean(&self) -> f64 {
        self.mean
    }
    fn bounds(&self) -> (f64, f64) {
        if self.sigma > 0.0 { (f64::NEG_INFINITY, f64::INFINITY) } else { (self.mean, self.mean) }
    }
}

impl Sampler for LogNormal {
    fn draw(&self, rng: &mut Rng) -> f64 {
        self.0.draw(rng).exp()
    }
    fn mean(&self) -> f64 {
        (self.0.mean + self.0.sigma * self.0.sigma / 2.0).exp()
    }
    fn bounds(&self) -> (f64, f64) {
        if self.0.sigma > 0.0 { (0.0, f64::INFINITY) } else { (self.0.mean.exp(), self.0.mean.exp()) }
    }
}

impl fmt::Display for Normal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "normal(mean={},sigma={})", ShortNumber(self.mean), ShortNumber(self.sigma))
    }
}

impl fmt::Display for LogNormal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lognormal(shape={},scale={})", ShortNumber(self.0.sigma), ShortNumber(self.0.mean))
    }
}
