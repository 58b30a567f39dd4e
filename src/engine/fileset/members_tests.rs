//! Tests of picking: order, rare candidates, uniformity, and concurrency.
#![allow(clippy::unwrap_used)]

use super::{How, Members, OwnRotor, Picked, Rotor, Want};
use crate::random::mix;
use statrs::distribution::{ChiSquared, ContinuousCDF};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

fn members(n: u64, there: impl Fn(u64) -> bool) -> Members {
    let members = Members::new(n);
    members.load(there);
    members
}

fn rotate(members: &Members, want: Want, rotor: &mut Rotor) -> Picked {
    members.pick(want, How::Rotate(rotor), false)
}

#[test]
fn one_thread_gets_the_files_in_order() {
    for n in [1, 5, 31, 32, 33, 1000, 5000, 200_000] {
        for frozen in [false, true] {
            let set = members(n, |_| true);
            set.set_threads(1);
            if frozen {
                set.freeze();
            }
            let mut rotor = Rotor::default();
            for i in 0..2 * n {
                assert_eq!(rotate(&set, Want::Existing, &mut rotor), Picked::File(i % n), "{n}");
            }
            assert_eq!(rotate(&set, Want::Absent, &mut rotor), Picked::None);
        }
    }
}

#[test]
fn rotation_visits_each_candidate_once_per_cycle() {
    for n in [100, 10_000, 300_000] {
        let rare = |i: u64| mix(7, i).is_multiple_of(97);
        let expected: Vec<u64> = (0..n).filter(|&i| rare(i)).collect();
        for want in [Want::Existing, Want::Absent] {
            let set = members(n, |i| rare(i) == (want == Want::Existing));
            set.set_threads(2);
            let mut rotor = Rotor::default();
            for cycle in 0..3 {
                for &i in &expected {
                    assert_eq!(rotate(&set, want, &mut rotor), Picked::File(i), "{n} {want:?} cycle {cycle}");
                }
            }
        }
    }
}

#[test]
fn a_private_rotation_starts_at_the_first_file() {
    let set = members(6, |_| true);
    let mut shared = Rotor::default();
    assert_eq!(rotate(&set, Want::Existing, &mut shared), Picked::File(0));
    let mut own = OwnRotor::default();
    let picks: Vec<Picked> = (0..9).map(|_| set.pick(Want::Existing, How::Own(&mut own), false)).collect();
    assert_eq!(picks, [0, 1, 2, 3, 4, 5, 0, 1, 2].map(Picked::File));
}

#[test]
fn an_index_picks_it_or_the_next_higher_or_the_lowest() {
    let set = members(100, |i| i == 10 || i == 50);
    let at = |i| set.pick(Want::Existing, How::Index(i), false);
    assert_eq!([at(10), at(11), at(51), at(0), at(110)], [10, 50, 10, 10, 10].map(Picked::File));
}

#[test]
fn held_files_are_not_picked() {
    let set = members(3, |i| i < 2);
    let hold = |want| set.pick(want, How::Index(0), true);
    assert_eq!(hold(Want::Existing), Picked::File(0));
    assert_eq!(hold(Want::Existing), Picked::File(1));
    assert_eq!(hold(Want::Existing), Picked::AllBusy);
    assert_eq!(set.pick(Want::Existing, How::Uniform(5), false), Picked::AllBusy);
    assert_eq!(hold(Want::Absent), Picked::File(2));
    assert_eq!(hold(Want::Absent), Picked::AllBusy);
    set.release(0);
    set.set_exists(1, false);
    set.set_exists(2, true);
    assert_eq!(set.n_existing(), 2);
    assert_eq!((0..3).map(|i| set.exists(i)).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(hold(Want::Absent), Picked::File(1));
    let none = members(0, |_| true);
    assert_eq!(none.pick(Want::Existing, How::Uniform(5), true), Picked::None);
}

#[test]
fn a_single_candidate_is_found_at_every_index() {
    // 300,000 members need three levels of counts. Search for a single candidate from different start indices.
    let n = 300_000;
    for place in [0, 1, 31, 2047, 2048, 131_071, 131_072, 262_144, n - 1] {
        for want in [Want::Existing, Want::Absent] {
            let set = members(n, |i| (i == place) == (want == Want::Existing));
            for from in [0, 1, 32, 2048, 131_072, 150_000, n - 1] {
                assert_eq!(set.pick(want, How::Index(from), false), Picked::File(place), "{want:?} {place} {from}");
                assert_eq!(set.pick(want, How::Uniform(mix(3, from)), false), Picked::File(place));
            }
        }
    }
}

/// Returns the p-value of a chi-squared test that all counts have the same expectation.
fn p_even(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let chi: f64 = counts.iter().map(|&c| (c as f64 - mean).powi(2) / mean).sum();
    1.0 - ChiSquared::new((counts.len() - 1) as f64).unwrap().cdf(chi)
}

#[test]
fn uniform_picks_are_uniform_at_every_density() {
    for (n, share) in [(1000, 100), (1000, 50), (4000, 5), (40_000, 1), (500_000, 0)] {
        for want in [Want::Existing, Want::Absent] {
            // Share 0: ten in 20,000, and a cluster of 250.
            let rare = |i: u64| match share {
                0 => mix(1, i) % 20_000 < 10 || (7000..7250).contains(&i),
                share => mix(1, i) % 100 < share,
            };
            let set = members(n, |i| rare(i) == (want == Want::Existing));
            let candidates: Vec<u64> = (0..n).filter(|&i| rare(i)).collect();
            let mut counts = vec![0_u64; candidates.len()];
            for draw in 0..candidates.len() as u64 * 200 {
                let Picked::File(i) = set.pick(want, How::Uniform(mix(99, draw)), false) else { panic!("none picked") };
                counts[candidates.binary_search(&i).unwrap()] += 1;
            }
            let p = p_even(&counts);
            assert!(p > 1e-4, "{n} {share} {want:?}: p = {p}");
        }
    }
}

#[test]
fn concurrent_creations_and_removals_are_consistent() {
    const N: u64 = 500;
    const THREADS: u64 = 8;
    let set = members(N, |i| i % 2 == 0);
    set.set_threads(THREADS);
    // A model of the file system: 1 for an existing file. Detects a creation of an existing file and a removal of an
    // absent one.
    let disk: Vec<AtomicU8> = (0..N).map(|i| AtomicU8::new(u8::from(i % 2 == 0))).collect();
    let made = AtomicU64::new(0);
    let removed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for t in 0..THREADS {
            let (set, disk, made, removed) = (&set, &disk, &made, &removed);
            scope.spawn(move || {
                let mut rotor = Rotor::default();
                for op in 0..40_000_u64 {
                    let bits = mix(t, op);
                    let want = if bits & 1 == 0 { Want::Existing } else { Want::Absent };
                    let how = match bits >> 1 & 3 {
                        0 => How::Uniform(mix(bits, 1)),
                        1 => How::Index(mix(bits, 1)),
                        _ => How::Rotate(&mut rotor),
                    };
                    let Picked::File(i) = set.pick(want, how, true) else { continue };
                    let there = disk[i as usize].load(Ordering::SeqCst);
                    assert_eq!(there == 1, want == Want::Existing, "file {i} differs from the state");
                    if (bits >> 3).is_multiple_of(8) {
                        set.release(i);
                        continue;
                    }
                    assert_eq!(
                        disk[i as usize].swap(1 - there, Ordering::SeqCst),
                        there,
                        "file {i} was changed by two threads at once"
                    );
                    if there == 1 { removed } else { made }.fetch_add(1, Ordering::Relaxed);
                    set.set_exists(i, there == 0);
                }
            });
        }
    });
    let now: u64 = disk.iter().map(|d| u64::from(d.load(Ordering::SeqCst))).sum();
    assert_eq!(now, N / 2 + made.load(Ordering::SeqCst) - removed.load(Ordering::SeqCst));
    assert_eq!(set.n_existing(), now);
    assert!((0..N).all(|i| set.exists(i) == (disk[i as usize].load(Ordering::SeqCst) == 1)));
    // No file is still busy.
    let held =
        (0..now).filter(|_| matches!(set.pick(Want::Existing, How::Index(0), true), Picked::File(_))).count() as u64;
    assert_eq!(held, now);
}

#[test]
fn a_waiter_is_woken_by_a_change_and_by_a_stop() {
    let set = members(1, |_| false);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut got = 0;
            while !stop.load(Ordering::SeqCst) {
                let epoch = set.epoch();
                match set.pick(Want::Existing, How::Index(0), true) {
                    Picked::File(i) => {
                        set.set_exists(i, false);
                        got += 1;
                    }
                    // A lost wake-up fails this assertion after a minute.
                    _ if !stop.load(Ordering::SeqCst) => assert!(set.wait_change(epoch, Duration::from_mins(1))),
                    _ => {}
                }
            }
            got
        });
        for _ in 0..2000 {
            loop {
                let epoch = set.epoch();
                match set.pick(Want::Absent, How::Index(0), true) {
                    Picked::File(i) => break set.set_exists(i, true),
                    _ => assert!(set.wait_change(epoch, Duration::from_mins(1))),
                }
            }
        }
        loop {
            let epoch = set.epoch();
            if set.n_existing() == 0 && matches!(set.pick(Want::Absent, How::Index(0), false), Picked::File(_)) {
                break;
            }
            assert!(set.wait_change(epoch, Duration::from_mins(1)));
        }
        stop.store(true, Ordering::SeqCst);
        set.wake_all();
        assert_eq!(waiter.join().unwrap(), 2000);
    });
}

/// Creates the next absent member, as a flowop does.
fn create(members: &Members, rotor: &mut Rotor) -> u64 {
    let Picked::File(i) = members.pick(Want::Absent, How::Rotate(rotor), true) else { panic!("no absent member") };
    members.set_exists(i, true);
    i
}

#[test]
fn picks_by_age_count_back_from_the_newest_member() {
    let members = Members::new(10_000);
    members.set_threads(1);
    members.keep_order();
    let mut rotor = Rotor::default();
    let behind = |distance| members.pick(Want::Existing, How::Behind(distance), false);
    assert_eq!(behind(3), Picked::None);
    for i in 0..100 {
        assert_eq!(create(&members, &mut rotor), i);
        assert_eq!(behind(0), Picked::File(i));
    }
    assert_eq!(behind(40), Picked::File(59));
    // A distance to a member that does not exist yet: the next one farther behind is, around the end, the newest.
    assert_eq!(behind(100), Picked::File(99));
    // A member that is gone, or busy, gives way to the next older one.
    assert_eq!(members.pick(Want::Existing, How::Index(99), true), Picked::File(99));
    assert_eq!(behind(0), Picked::File(98));
    members.set_exists(99, false);
    assert_eq!((behind(0), behind(1)), (Picked::File(98), Picked::File(98)));
    // The only member, on the other side of the set.
    (0..99).filter(|i| *i != 7).for_each(|i| {
        assert_eq!(members.pick(Want::Existing, How::Index(i), true), Picked::File(i));
        members.set_exists(i, false);
    });
    for distance in [0, 91, 92, 93, 9_000] {
        assert_eq!(behind(distance), Picked::File(7), "{distance}");
    }
    assert_eq!(members.pick(Want::Existing, How::Behind(0), true), Picked::File(7));
    assert_eq!(behind(0), Picked::AllBusy);
}

#[test]
fn picks_by_age_in_a_complete_set_begin_at_its_end() {
    let members = Members::new(70);
    members.load(|_| true);
    for frozen in [false, true] {
        if frozen {
            members.freeze();
        }
        for distance in [0, 1, 69] {
            assert_eq!(members.pick(Want::Existing, How::Behind(distance), false), Picked::File(69 - distance));
        }
        assert_eq!(members.pick(Want::Existing, How::Behind(70), false), Picked::File(69));
    }
}
