//! Random streams and distributions.

use rand::{RngExt, SeedableRng};
use std::fmt;
use std::sync::Arc;

pub type Rng = rand_xoshiro::Xoshiro256PlusPlus;

#[derive(Debug)]
pub struct RandomVar {
    mean: f64,
    shape: f64,
}

impl RandomVar {
    pub fn gamma(mean: f64, shape_thousandths: f64) -> Self {
        Self { mean, shape: shape_thousandths / 1000.0 }
    }
}

#[derive(Clone, Debug)]
pub enum Quantity {
    Const(u64),
    Random(Arc<RandomVar>),
}

impl Quantity {
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Const(n) => *n,
            Self::Random(v) => gamma(rng, v.mean, v.shape) as u64,
        }
    }
    pub fn mean(&self) -> f64 {
        match self {
            Self::Const(n) => *n as f64,
            Self::Random(v) => v.mean,
        }
    }
    pub fn max_hint(&self) -> Option<u64> {
        match self {
            Self::Const(n) => Some(*n),
            Self::Random(_) => None,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const(n) => write!(f, "{n}"),
            Self::Random(v) => write!(f, "gamma(mean={}, shape={})", v.mean, v.shape),
        }
    }
}

pub fn mix(seed: u64, n: u64) -> u64 {
    let mut z = seed ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub fn stream(seed: u64, path: &[u64]) -> Rng {
    Rng::seed_from_u64(path.iter().fold(mix(seed, 0), |s, &n| mix(s, n)))
}

pub fn gamma(rng: &mut Rng, mean: f64, shape: f64) -> f64 {
    use rand_distr::{Distribution, Gamma};
    let _ = rng.random::<u64>();
    Gamma::new(shape, mean / shape).map_or(mean, |g| g.sample(rng))
}
