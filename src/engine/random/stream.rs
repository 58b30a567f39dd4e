//! Streams of random numbers: the seeding of a thread's stream, and the draws that hot paths make directly.
//!
//! A published result names its seed, so the values of a seed must never change; tests pin them. For the same reason
//! the seeding is written out here and does not come from a crate.

use rand_distr::Distribution as _;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use wml_text::hash::{GOLDEN, mix};

/// The generator of all streams. It is fast and small, and it is named explicitly so that a seed gives the same numbers
/// in all versions.
pub type Rng = rand_xoshiro::Xoshiro256PlusPlus;

/// Returns the seed of the streams of one rank of a run with this seed. Rank 0 has the seed of the run, so that its
/// streams are those of a run in one process.
pub const fn seed_of_rank(seed: u64, rank: u64) -> u64 {
    if rank == 0 { seed } else { mix(mix(seed, GOLDEN), rank) }
}

/// Returns the stream of one position in the workload. `path` is (process, instance, thread, instance, …) and may have
/// any length.
///
/// Different paths, or different seeds, give independent streams. The same path and seed give the same stream on all
/// machines and in all versions.
pub fn stream(seed: u64, path: &[u64]) -> Rng {
    let key = path.iter().fold(mix(seed, path.len() as u64), |key, &step| mix(key, step));
    let mut bytes = [0; 32];
    for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&mix(key, i as u64).to_le_bytes());
    }
    Rng::from_seed(bytes)
}

/// Draws an integer in `0..n`; 0 if `n` is 0.
///
/// This is Lemire's multiplication without the rejection step: the probabilities of two values differ by at most `n /
/// 2^64`.
#[inline]
pub fn below(rng: &mut Rng, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

/// Draws a fraction in `[0, 1)`, in steps of 2^-53.
#[inline]
pub fn unit(rng: &mut Rng) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    (rng.next_u64() >> 11) as f64 * STEP
}

/// Draws a fraction in `(0, 1]`, which is safe as the argument of a logarithm.
#[inline]
pub fn unit_above_zero(rng: &mut Rng) -> f64 {
    1.0 - unit(rng)
}

/// Draws from the gamma distribution with this mean and shape. The variance is `mean² / shape`.
///
/// A shape or a mean that is not above 0 gives the mean itself, as Filebench's `dirgamma=0` and `filesizegamma=0` do.
pub fn gamma(rng: &mut Rng, mean: f64, shape: f64) -> f64 {
    match rand_distr::Gamma::new(shape, mean / shape) {
        Ok(sampler) => sampler.sample(rng),
        Err(_) => mean,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{below, gamma, mix, seed_of_rank, stream, unit};
    use rand_xoshiro::rand_core::Rng as _;
    use std::collections::HashSet;

    #[test]
    fn each_path_has_a_separate_stream() {
        let paths: [&[u64]; 9] =
            [&[], &[0], &[0, 0], &[0, 1], &[1, 0], &[1], &[0, 0, 0, 0], &[0, 0, 0, 1], &[u64::MAX, 0]];
        let firsts: HashSet<u64> =
            (0..4).flat_map(|seed| paths.iter().map(move |path| stream(seed, path).next_u64())).collect();
        assert_eq!(firsts.len(), 4 * paths.len());
    }

    /// The expected values come from a second implementation, in another language.
    #[test]
    fn the_values_of_a_seed_never_change() {
        let draws = |seed, path: &[u64]| {
            let mut rng = stream(seed, path);
            [rng.next_u64(), rng.next_u64(), rng.next_u64()]
        };
        assert_eq!(draws(0, &[]), [0x01C2_E29D_F3A5_FF61, 0x70CB_CEB6_5269_AEA7, 0x9FBE_299C_C0E7_BFB6]);
        assert_eq!(draws(42, &[1, 0, 2, 7]), [0x3558_2FB3_1B57_3187, 0x9FD9_0C2E_1AF8_F059, 0x0D0F_0674_9BA5_DCE7]);
        assert_eq!(
            [mix(0, 0), mix(0, 1), mix(1, 0), mix(u64::MAX, u64::MAX)],
            [0x4821_8226_FF3C_D4BF, 0xA706_DD2F_4D19_7E6F, 0x4450_18E3_0581_0B78, 0x0422_887E_4D87_A77A]
        );
    }

    #[test]
    fn each_rank_has_separate_streams() {
        assert_eq!([seed_of_rank(0, 0), seed_of_rank(42, 0), seed_of_rank(u64::MAX, 0)], [0, 42, u64::MAX]);
        let seeds: HashSet<u64> = (0..4).flat_map(|seed| (0..1000).map(move |rank| seed_of_rank(seed, rank))).collect();
        assert_eq!(seeds.len(), 4 * 1000);
        // From a second implementation, in another language.
        assert_eq!([seed_of_rank(0, 1), seed_of_rank(42, 7)], [0x6875_F7A0_36B2_0FA7, 0x1C6C_B6E5_236A_6B58]);
    }

    /// Directory trees are built from these draws, and a tree must stay the same after an update of a crate.
    #[test]
    fn gamma_draws_stay_the_same() {
        let mut rng = stream(7, &[3]);
        let draws: Vec<u64> = [1.5, 0.5, 1.0, 20.0].iter().map(|&shape| gamma(&mut rng, 1e6, shape) as u64).collect();
        assert_eq!(draws, [539_250, 1_030_237, 50_260, 1_357_403]);
    }

    #[test]
    fn draws_stay_in_range() {
        let mut rng = stream(1, &[]);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[usize::try_from(below(&mut rng, 10)).unwrap()] += 1;
            assert!((0.0..1.0).contains(&unit(&mut rng)));
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
        assert_eq!(below(&mut rng, 0), 0);
        assert_eq!(below(&mut rng, 1), 0);
        assert!(below(&mut rng, u64::MAX) > 0);
    }

    #[test]
    fn gamma_without_a_shape_is_the_mean() {
        let mut rng = stream(1, &[]);
        for shape in [0.0, -1.0, f64::NAN] {
            assert_eq!(gamma(&mut rng, 20.0, shape).to_bits(), 20f64.to_bits());
        }
        assert_eq!(gamma(&mut rng, 0.0, 1.5).to_bits(), 0f64.to_bits());
    }
}
