//! The triangular distribution: a range with a peak.

use super::sampler::{BuiltSampler, Constant, ParameterValues, Sampler, SamplerBuilder, ShortNumber, check, same};
use super::stream::unit;
use super::{Distribution, Parameter, Rng, UsableIn};
use std::fmt;

pub(super) const CVAR_TRIANGULAR: Distribution = Distribution {
    name: "cvar-triangular",
    usable_in: UsableIn::Cvar,
    parameters: &[
        Parameter::new("lower", Some(0.0), "least value"),
        Parameter::new("upper", Some(1.0), "greatest value"),
        Parameter::new("mode", Some(0.5), "the likeliest value, from `lower` to `upper`"),
    ],
    doc: "from `lower` to `upper`, rising to `mode` and falling after it; the mean is a third of the sum of the three",
    example: "set $filesize = cvar(type=cvar-triangular,parameters=\"lower:10k;upper:150k;mode:20k\")",
    build: SamplerBuilder::Named(build),
};

#[derive(Debug)]
struct Triangular {
    lower: f64,
    upper: f64,
    mode: f64,
}

fn build(values: &ParameterValues<'_>) -> BuiltSampler {
    let (lower, upper) = (values.get("lower"), values.get("upper"));
    check("upper", upper, |upper| upper >= lower, "at least `lower`")?;
    let mode =
        check("mode", values.get("mode"), |mode| (lower..=upper).contains(&mode), "between `lower` and `upper`")?;
    if same(lower, upper) {
        return Ok((Box::new(Constant(lower)), Vec::new()));
    }
    Ok((Box::new(Triangular { lower, upper, mode }), Vec::new()))
}

impl Sampler for Triangular {
    /// Draws by the inverse of the distribution function, which is a parabola on each side of the mode.
    fn draw(&self, rng: &mut Rng) -> f64 {
        let u = unit(rng);
        let (range, rise) = (self.upper - self.lower, self.mode - self.lower);
        if u * range < rise {
            self.lower + (u * range * rise).sqrt()
        } else {
            self.upper - ((1.0 - u) * range * (self.upper - self.mode)).sqrt()
        }
    }
    fn mean(&self) -> f64 {
        (self.lower + self.upper + self.mode) / 3.0
    }
    fn bounds(&self) -> (f64, f64) {
        (self.lower, self.upper)
    }
}

impl fmt::Display for Triangular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "triangular({}..{},mode={})",
            ShortNumber(self.lower),
            ShortNumber(self.upper),
            ShortNumber(self.mode)
        )
    }
}
