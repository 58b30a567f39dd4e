//! Tests of the choice of the members that exist at the start: the numbers against the published algorithm and known
//! values of the C library, the choice against a direct one.
#![allow(clippy::unwrap_used)]

use super::{CRand, Present, RAND_MAX, bound, key};
use proptest::prelude::*;

/// The first results of `rand()` in a program that does not call `srand()`, as the algorithm is described: 34 numbers from
/// the seed, and then each the sum of two earlier ones, of which the first 310 are not used.
fn described(n: usize) -> Vec<u32> {
    let mut r: Vec<u32> = vec![1];
    for i in 1..31 {
        r.push((u64::from(r[i - 1]) * 16_807 % 2_147_483_647) as u32);
    }
    for i in 31..34 {
        r.push(r[i - 31]);
    }
    for i in 34..344 + n {
        r.push(r[i - 31].wrapping_add(r[i - 3]));
    }
    r[344..].iter().map(|value| value >> 1).collect()
}

/// The results after so many calls.
fn drawn(calls: u64, n: usize) -> Vec<u32> {
    let mut rand = CRand::at(calls);
    let mut values = Vec::new();
    while values.len() < n {
        rand.advance();
        values.extend(rand.last.map(|value| value >> 1));
    }
    values.truncate(n);
    values
}

#[test]
fn the_draws_are_those_of_the_c_library() {
    // As every program on Linux prints them.
    assert_eq!(drawn(0, 5), [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915, 1_957_747_793]);
    let all = described(5000);
    for (calls, n) in [(0, 5000), (1, 100), (30, 31), (31, 32), (32, 33), (1000, 1), (4321, 600)] {
        assert_eq!(drawn(calls, n), all[calls as usize..calls as usize + n], "after {calls} calls");
    }
    for (calls, n, limit) in [(0, 5000, RAND_MAX / 2), (17, 1000, RAND_MAX / 100), (62, 31, 0), (9, 0, 0)] {
        let of_set = &all[calls as usize..(calls + n) as usize];
        let above = of_set.iter().filter(|value| u64::from(**value) > limit).count() as u64;
        assert_eq!(CRand::at(calls).count_above(n, limit), above);
    }
}

#[test]
fn draws_far_behind_are_those_of_two_steps() {
    // What comes after 2⁴⁰ calls and 100 more is what comes 100 later.
    let far = 1_u64 << 40;
    assert_eq!(drawn(far, 200)[100..], drawn(far + 100, 100));
    assert_ne!(drawn(far, 100), drawn(0, 100));
}

proptest! {
    #[test]
    fn exactly_the_requested_number_of_members_is_below_a_bound(seed: u64, n in 2_u64..3000, share in 0.0..1.0_f64) {
        let count = ((n as f64 * share) as u64).clamp(1, n - 1);
        let mut keys: Vec<_> = (0..n).map(|i| key(seed, i)).collect();
        let bound = bound(seed, n, count);
        prop_assert_eq!(keys.iter().filter(|key| **key < bound).count() as u64, count);
        keys.sort_unstable();
        keys.dedup();
        prop_assert_eq!(keys.len() as u64, n);
    }
}

/// More files of a larger share are further files: a tree that is repaired keeps all others.
#[test]
fn a_larger_share_has_the_files_of_a_smaller_one() {
    for layout_seed in [1, 2] {
        let of = |percent| Present::new(500, percent, 0, layout_seed, 7);
        let has = |present: Present| (0..500).map(|i| present.has(i)).collect();
        let all: Vec<Vec<bool>> = (0..=100).map(|percent| has(of(percent))).collect();
        for (less, more) in all.iter().zip(&all[1..]) {
            assert!(less.iter().zip(more).all(|(less, more)| !less || *more));
        }
        for (percent, has) in (0..).zip(&all) {
            assert_eq!(has.iter().filter(|has| **has).count() as u64, of(percent).count(500), "{percent} %");
        }
    }
}

#[test]
fn another_layout_seed_gives_the_exact_share_and_never_nothing_of_something() {
    let count = |n, percent| Present::new(n, percent, 0, 2, 7).count(n);
    let counts = [(10, 50), (10, 80), (3, 50), (1, 1), (1000, 37), (5, 0), (5, 100), (0, 50)];
    assert_eq!(counts.map(|(n, percent)| count(n, percent)), [5, 8, 2, 1, 370, 0, 5, 0]);
}
