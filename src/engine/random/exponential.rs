//! The exponential distribution, and the Weibull distribution, which is a power of it.

use super::sampler::{BuiltSampler, ParameterValues, Sampler, SamplerBuilder, ShortNumber, same};
use super::stream::unit_above_zero;
use super::{Distribution, Parameter, Rng, UsableIn};
use std::fmt;

pub(super) const CVAR_EXPONENTIAL: Distribution = Distribution {
    name: "cvar-exponential",
    usable_in: UsableIn::Cvar,
    parameters: &[Parameter::new("mean", Some(1.0), "mean, and standard deviation")],
    doc: "above 0, memoryless: the gaps between independent events",
    example: "set $burst = cvar(type=cvar-exponential,parameters=\"mean:20\",min=1)",
    build: SamplerBuilder::Named(exponential),
};

pub(super) const CVAR_WEIBULL: Distribution = Distribution {
    name: "cvar-weibull",
    usable_in: UsableIn::Cvar,
    parameters: &[
        Parameter::new("shape", Some(1.0), "below 1: a heavier tail than exponential; above: a lighter one"),
        Parameter::new("scale", Some(1.0), "63 % of the draws are below this value"),
    ],
    doc: "above 0: `scale · (exponential with mean 1)^(1/shape)`",
    example: "set $iosize = cvar(type=cvar-weibull,parameters=\"shape:0.8;scale:8k\",min=512)",
    build: SamplerBuilder::Named(weibull),
};

/// A Weibull distribution. With a shape of 1 it is the exponential distribution.
#[derive(Debug)]
struct Weibull {
    scale: f64,
    shape: f64,
    power: f64,
}

fn exponential(values: &ParameterValues<'_>) -> BuiltSampler {
    Ok((Box::new(Weibull { scale: values.not_negative("mean")?, shape: 1.0, power: 1.0 }), Vec::new()))
}

fn weibull(values: &ParameterValues<'_>) -> BuiltSampler {
    let (scale, shape) = (values.not_negative("scale")?, values.above_zero("shape")?);
    Ok((Box::new(Weibull { scale, shape, power: 1.0 / shape }), Vec::new()))
}

impl Sampler for Weibull {
    fn draw(&self, rng: &mut Rng) -> f64 {
        let exponential = -unit_above_zero(rng).ln();
        if same(self.shape, 1.0) { self.scale * exponential } else { self.scale * exponential.powf(self.power) }
    }
    fn mean(&self) -> f64 {
        self.scale * gamma_function(1.0 + self.power)
    }
    fn bounds(&self) -> (f64, f64) {
        (0.0, if self.scale > 0.0 { f64::INFINITY } else { 0.0 })
    }
}

impl fmt::Display for Weibull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if same(self.shape, 1.0) {
            write!(f, "exponential(mean={})", ShortNumber(self.scale))
        } else {
            write!(f, "weibull(shape={},scale={})", ShortNumber(self.shape), ShortNumber(self.scale))
        }
    }
}

/// Computes Euler's gamma function for `x ≥ 1`: Stirling's series, after the argument is shifted to 10 or more, where
/// four terms give ten digits.
fn gamma_function(x: f64) -> f64 {
    let (mut z, mut divisor) = (x, 1.0);
    while z < 10.0 {
        divisor *= z;
        z += 1.0;
    }
    let series = 1.0 / (12.0 * z) - 1.0 / (360.0 * z.powi(3)) + 1.0 / (1260.0 * z.powi(5)) - 1.0 / (1680.0 * z.powi(7));
    ((z - 0.5) * z.ln() - z + 0.5 * std::f64::consts::TAU.ln() + series).exp() / divisor
}

#[cfg(test)]
mod tests {
    use super::gamma_function;

    #[test]
    fn the_gamma_function_interpolates_factorials() {
        for (x, expected) in [(1.0, 1.0), (2.0, 1.0), (5.0, 24.0), (1.5, 0.886_226_925_452_758), (11.0, 3_628_800.0)] {
            assert!((gamma_function(x) / expected - 1.0).abs() < 1e-10, "{x}: {}", gamma_function(x));
        }
    }
}
