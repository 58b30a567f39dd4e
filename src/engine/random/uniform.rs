//! The uniform distribution: all values of a range are equally likely.

use super::sampler::{BuiltSampler, Constant, ParameterValues, Sampler, SamplerBuilder, ShortNumber};
use super::stream::unit;
use super::{Distribution, Parameter, RandvarParams, Rng, UsableIn, VariableNote};
use std::fmt;

pub(super) const UNIFORM: Distribution = Distribution {
    name: "uniform",
    usable_in: UsableIn::Randvar,
    parameters: &[
        Parameter::new("min", Some(0.0), "least value"),
        Parameter::new("mean", Some(0.0), "mean; the range ends below `2·mean − min`"),
    ],
    doc: "all values from `min` to below `2·mean − min` are equally likely",
    example: "set $iosize = randvar(type=uniform,min=1k,mean=8k,round=512)",
    build: SamplerBuilder::Randvar(randvar),
};

pub(super) const CVAR_UNIFORM: Distribution = Distribution {
    name: "cvar-uniform",
    usable_in: UsableIn::Cvar,
    parameters: &[
        Parameter::new("lower", Some(0.0), "least value"),
        Parameter::new("upper", Some(1.0), "the range ends below this value"),
    ],
    doc: "all values from `lower` to below `upper` are equally likely",
    example: "set $iosize = cvar(type=cvar-uniform,parameters=\"lower:1k;upper:8k\")",
    build: SamplerBuilder::Named(cvar),
};

#[derive(Debug)]
struct Uniform {
    low: f64,
    /// Negative if the range goes downwards.
    width: f64,
}

#[expect(clippy::unnecessary_wraps, reason = "every builder has this form")]
fn randvar(params: &RandvarParams) -> BuiltSampler {
    let min = params.min;
    let mut notes = Vec::new();
    let mean = match params.mean {
        Some(mean) if mean >= min => mean,
        Some(mean) => {
            let message = format!(
                "`mean` is below `min`: draws are between {} and {}, and negative draws become 0",
                ShortNumber(2.0 * mean - min),
                ShortNumber(min)
            );
            notes.push(VariableNote::new("mean", message));
            mean
        }
        None => {
            // Filebench takes 0 as the mean, and draws from a range from `min` down to `-min`.
            let message = format!("a uniform variable without `mean` always gives `min`, here {}", ShortNumber(min));
            notes.push(VariableNote::new("mean", message));
            return Ok((Box::new(Constant(min)), notes));
        }
    };
    Ok((Box::new(Uniform { low: min, width: 2.0 * (mean - min) }), notes))
}

#[expect(clippy::unnecessary_wraps, reason = "every builder has this form")]
fn cvar(values: &ParameterValues<'_>) -> BuiltSampler {
    let (lower, upper) = (values.get("lower"), values.get("upper"));
    let mut notes = Vec::new();
    if upper < lower {
        notes.push(VariableNote::new("upper", "`upper` is below `lower`: the two are swapped"));
    }
    Ok((Box::new(Uniform { low: lower, width: upper - lower }), notes))
}

impl Sampler for Uniform {
    #[inline]
    fn draw(&self, rng: &mut Rng) -> f64 {
        self.low + unit(rng) * self.width
    }
    fn mean(&self) -> f64 {
        self.low + self.width / 2.0
    }
    fn bounds(&self) -> (f64, f64) {
        let other = self.low + self.width;
        (self.low.min(other), self.low.max(other))
    }
}

impl fmt::Display for Uniform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.bounds();
        write!(f, "uniform({}..{})", ShortNumber(low), ShortNumber(high))
    }
}
