//! The Zipf distribution: a few items get most of the requests. An extension: Filebench has nothing similar.

use super::permutation::Permutation;
use super::sampler::{BuiltSampler, ParameterValues, Sampler, SamplerBuilder, ShortNumber, check, same};
use super::{BadDistribution, Distribution, Parameter, Rng, UsableIn};
use rand_distr::Distribution as _;
use std::fmt;

pub(super) const ZIPF: Distribution = Distribution {
    name: "zipf",
    usable_in: UsableIn::Both,
    parameters: &[
        Parameter::new("items", Some(1000.0), "number of items"),
        Parameter::new("theta", Some(0.99), "skew: 0 is uniform, larger values are steeper"),
        Parameter::new("unit", Some(1.0), "distance between the values of two items; 1 for `indexed`"),
        Parameter::new("lower", Some(0.0), "value of the first item"),
        Parameter::new("scramble", Some(0.0), "true: the popular items are scattered, alike in all runs"),
    ],
    doc: "item k of `items` with a probability proportional to `1/k^theta`; the value is `lower + unit · (k − 1)`",
    example: "set $file = randvar(type=zipf,items=10000,theta=0.99,scramble=true)",
    build: SamplerBuilder::Named(build),
};

/// Ranks of a Zipf distribution: rank k, from 0, has a probability proportional to `1/(k + 1)^theta`.
#[derive(Debug)]
pub struct ZipfRanks {
    items: u64,
    ranks: rand_distr::Zipf<f64>,
}

impl ZipfRanks {
    /// Makes the distribution of ranks below `items`, 1 to 2^53, with `theta` from 0 to 100. `Err` when `theta` is out
    /// of range.
    pub fn new(items: u64, theta: f64) -> Result<Self, BadDistribution> {
        let wrong = |_| BadDistribution::OutOfRange { parameter: "theta", value: theta, range: THETA };
        check("theta", theta, |t| (0.0..=100.0).contains(&t), THETA)?;
        Ok(Self { items, ranks: rand_distr::Zipf::new(items as f64, theta).map_err(wrong)? })
    }

    pub fn draw(&self, rng: &mut Rng) -> u64 {
        // The rank of `rand_distr` is 1 … `items`. The bound guards against rounding at the upper end.
        (self.ranks.sample(rng) as u64).clamp(1, self.items) - 1
    }
}

/// The range of `theta`.
const THETA: &str = "from 0 to 100";

#[derive(Debug)]
struct Zipf {
    items: u64,
    theta: f64,
    unit: f64,
    lower: f64,
    scramble: Option<Permutation>,
    ranks: ZipfRanks,
}

fn build(values: &ParameterValues<'_>) -> BuiltSampler {
    // Ranks are drawn as floating-point numbers, which would skip items beyond 2^53.
    let range = "from 1 to 2^53";
    let items = check("items", values.get("items").trunc(), |n| (1.0..=9_007_199_254_740_992.0).contains(&n), range)?;
    let theta = check("theta", values.get("theta"), |t| (0.0..=100.0).contains(&t), THETA)?;
    let (unit, lower) = (values.not_negative("unit")?, values.not_negative("lower")?);
    let items = items as u64;
    let ranks = ZipfRanks::new(items, theta)?;
    let scramble = (values.get("scramble") != 0.0).then(|| Permutation::new(items, 0));
    Ok((Box::new(Zipf { items, theta, unit, lower, scramble, ranks }), Vec::new()))
}

impl Sampler for Zipf {
    fn draw(&self, rng: &mut Rng) -> f64 {
        let rank = self.ranks.draw(rng);
        let item = self.scramble.as_ref().map_or(rank, |scramble| scramble.at(rank));
        self.lower + self.unit * item as f64
    }

    fn mean(&self) -> f64 {
        let weight = power_sum(self.items, self.theta);
        let middle = match &self.scramble {
            None => power_sum(self.items, self.theta - 1.0) / weight - 1.0,
            Some(scramble) => {
                // Sum over the popular items one by one. The other items are scattered evenly, so that their mean is
                // the middle.
                let head = self.items.min(10_000);
                let likelihood = |rank: u64| ((rank + 1) as f64).powf(-self.theta) / weight;
                let sum: f64 = (0..head).map(|rank| scramble.at(rank) as f64 * likelihood(rank)).sum();
                sum + (1.0 - power_sum(head, self.theta) / weight) * (self.items - 1) as f64 / 2.0
            }
        };
        self.lower + self.unit * middle
    }

    fn bounds(&self) -> (f64, f64) {
        (self.lower, self.lower + self.unit * (self.items - 1) as f64)
    }
}

impl fmt::Display for Zipf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zipf(items={},theta={}", ShortNumber(self.items as f64), ShortNumber(self.theta))?;
        if !same(self.unit, 1.0) {
            write!(f, ",unit={}", ShortNumber(self.unit))?;
        }
        if self.lower != 0.0 {
            write!(f, ",lower={}", ShortNumber(self.lower))?;
        }
        f.write_str(if self.scramble.is_some() { ",scrambled)" } else { ")" })
    }
}

/// Returns the sum of `1/k^s` for k = 1 … n: the first thousand terms, then the integral with the half-way correction
/// of Euler and Maclaurin, which is accurate to nine digits from there on.
fn power_sum(n: u64, s: f64) -> f64 {
    let head = n.min(1000);
    let sum: f64 = (1..=head).map(|k| (k as f64).powf(-s)).sum();
    if n == head {
        return sum;
    }
    let (a, b) = (head as f64, n as f64);
    let integral = if (s - 1.0).abs() < 1e-9 { (b / a).ln() } else { (b.powf(1.0 - s) - a.powf(1.0 - s)) / (1.0 - s) };
    sum + integral + (b.powf(-s) - a.powf(-s)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::power_sum;

    #[test]
    fn a_sum_of_powers_equals_the_sum_of_its_terms() {
        for s in [-0.5, 0.0, 0.99, 1.0, 2.0] {
            let terms: f64 = (1..=50_000u32).map(|k| f64::from(k).powf(-s)).sum();
            assert!((power_sum(50_000, s) / terms - 1.0).abs() < 1e-8, "{s}");
        }
    }
}
