//! The Pareto distribution with a heavy tail, and its discrete variant in which a fifth of the items gets four fifths
//! of the requests. An extension: Filebench has neither.

use super::sampler::{BuiltSampler, ParameterValues, Sampler, SamplerBuilder, ShortNumber, check, same};
use super::stream::{unit, unit_above_zero};
use super::{Distribution, Parameter, Rng, UsableIn};
use std::fmt;

pub(super) const PARETO: Distribution = Distribution {
    name: "pareto",
    usable_in: UsableIn::Both,
    parameters: &[
        Parameter::new("shape", Some(1.5), "shape of the tail: the smaller, the heavier; values up to 1 need `max`"),
        Parameter::new("scale", Some(4096.0), "least value"),
        Parameter::new(
            "h",
            None,
            "replaces `shape` and `scale`: a share `h` of the items gets a share `1 − h` of the draws, as in fio",
        ),
        Parameter::new("items", Some(1000.0), "with `h`: number of items"),
        Parameter::new("unit", Some(1.0), "with `h`: distance between items"),
    ],
    doc: "`scale / u^(1/shape)` for sizes; with `h`, `unit · ⌊items · u^(ln h / ln(1 − h))⌋` for files (u uniform)",
    example: "set $filesize = randvar(type=pareto,shape=1.3,scale=4k,max=1g)",
    build: SamplerBuilder::Named(build),
};

#[derive(Debug)]
struct Tail {
    scale: f64,
    shape: f64,
}

#[derive(Debug)]
struct Items {
    h: f64,
    count: f64,
    unit: f64,
    power: f64,
}

fn build(values: &ParameterValues<'_>) -> BuiltSampler {
    let Some(h) = values.given("h") else {
        return Ok((
            Box::new(Tail { scale: values.above_zero("scale")?, shape: values.above_zero("shape")? }),
            Vec::new(),
        ));
    };
    let h = check("h", h, |h| 0.0 < h && h < 1.0, "between 0 and 1")?;
    let range = "from 1 to 2^53";
    let items = check("items", values.get("items").trunc(), |n| (1.0..=9_007_199_254_740_992.0).contains(&n), range)?;
    let unit = values.not_negative("unit")?;
    Ok((Box::new(Items { h, count: items, unit, power: h.ln() / (1.0 - h).ln() }), Vec::new()))
}

impl Sampler for Tail {
    fn draw(&self, rng: &mut Rng) -> f64 {
        self.scale * unit_above_zero(rng).powf(-1.0 / self.shape)
    }
    fn mean(&self) -> f64 {
        if self.shape > 1.0 { self.scale * self.shape / (self.shape - 1.0) } else { f64::INFINITY }
    }
    fn bounds(&self) -> (f64, f64) {
        (self.scale, f64::INFINITY)
    }
}

impl Sampler for Items {
    fn draw(&self, rng: &mut Rng) -> f64 {
        self.unit * (self.count * unit(rng).powf(self.power)).floor()
    }
    fn mean(&self) -> f64 {
        // Rounding down takes half an item on average.
        self.unit * (self.count / (self.power + 1.0) - 0.5).max(0.0)
    }
    fn bounds(&self) -> (f64, f64) {
        (0.0, self.unit * (self.count - 1.0))
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pareto(shape={},scale={})", ShortNumber(self.shape), ShortNumber(self.scale))
    }
}

impl fmt::Display for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pareto(h={},items={}", ShortNumber(self.h), ShortNumber(self.count))?;
        if !same(self.unit, 1.0) {
            write!(f, ",unit={}", ShortNumber(self.unit))?;
        }
        f.write_str(")")
    }
}
