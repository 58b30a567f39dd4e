//! The verdicts on simulated nights, with fixed seeds. The figures are in docs/statistics.md.

#![allow(clippy::unwrap_used)]

use super::{Direction, NightState, NightVerdict, NightWatch, judge_nights, night_limit};
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;

/// The tests of a suite, and the simulated series.
const TESTS: usize = 36;
const SERIES: usize = 200;
const NIGHTS: usize = 60;

/// The nights of quiet tests with a coefficient of variation, as logarithms.
fn quiet(seed: u64, tests: usize, variation: f64) -> Vec<Vec<f64>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut night = || (1.0 + variation * rng.sample::<f64, _>(StandardNormal)).ln();
    (0..tests).map(|_| (0..NIGHTS).map(|_| night()).collect()).collect()
}

/// The verdicts of some nights, from 0, on all tests. What was worse before the first of them is not known.
fn course(suite: &[Vec<f64>], nights: Range<usize>) -> impl Iterator<Item = Vec<NightVerdict>> {
    let mut watch = NightWatch::new(suite.len(), Direction::HigherIsBetter);
    nights.map(move |night| watch.see(&suite.iter().map(|nights| &nights[..=night]).collect::<Vec<_>>()))
}

/// The verdicts of a night, from 0, on all tests.
fn judged(suite: &[Vec<f64>], night: usize) -> Vec<NightVerdict> {
    judge_nights(&suite.iter().map(|nights| &nights[..=night]).collect::<Vec<_>>(), Direction::HigherIsBetter)
}

/// For each of [`SERIES`] series that change from a night on, the number of nights until the state is one of these; `None`
/// if it never is. Each is one of a suite of `tests` whose others are quiet.
fn found_after(
    tests: usize,
    variation: f64,
    change: impl Fn(usize) -> f64,
    begin: usize,
    states: &[NightState],
) -> Vec<Option<usize>> {
    let of_series = |n: usize| {
        let mut suite = quiet(n as u64, tests, variation);
        suite[0].iter_mut().enumerate().for_each(|(night, value)| *value += change(night));
        let mut found = course(&suite, begin - 5..NIGHTS).skip(5);
        found.position(|found| states.contains(&found[0].state)).map(|nights| nights + 1)
    };
    (0..SERIES).map(of_series).collect()
}

fn middle(mut found: Vec<Option<usize>>) -> usize {
    found.sort_by_key(|nights| nights.unwrap_or(usize::MAX));
    found[found.len() / 2].unwrap_or(usize::MAX)
}

const FOUND: [NightState; 2] = [NightState::Worse, NightState::Drifting];

/// The shares of quiet nights with a test that is worse or drifting, and with a suspect.
fn false_alarms(tests: usize, suites: usize, variation: f64) -> [f64; 2] {
    let mut seen = [0; 2];
    for n in 0..suites {
        let suite = quiet(1000 + n as u64, tests, variation);
        for found in course(&suite, 0..NIGHTS) {
            let has = |states: &[NightState]| found.iter().any(|verdict| states.contains(&verdict.state));
            seen[0] += usize::from(has(&FOUND));
            seen[1] += usize::from(has(&[NightState::Suspect]));
        }
    }
    seen.map(|nights| nights as f64 / (suites * NIGHTS) as f64)
}

#[test]
fn at_most_one_quiet_night_in_twenty_has_a_test_that_is_worse() {
    for (tests, suites) in [(TESTS, 20), (1, SERIES)] {
        for variation in [0.03, 0.05] {
            let [worse, suspect] = false_alarms(tests, suites, variation);
            assert!(worse <= 0.05 && suspect <= 0.05, "{tests} tests, {variation}: {worse} {suspect}");
        }
    }
}

/// The spread of a test is not that of its loss.
#[test]
fn a_loss_of_the_first_nights_does_not_hide_itself() {
    let with_loss = |n: u64, loss: f64| {
        let mut suite = quiet(6000 + n, 12, 0.02);
        suite[0][3..].iter_mut().for_each(|night| *night += loss);
        suite
    };
    // Made again in the night of the suspect, it is the same as a night later.
    let again = |suite: &[Vec<f64>]| {
        let mut nights = suite[0][3..].iter();
        let mut begun: Vec<Vec<f64>> = suite.iter().map(|nights| nights[..3].to_vec()).collect();
        confirmed(&mut begun, |test| if test == 0 { *nights.next().unwrap() } else { suite[test][3] })[0].state
    };
    let suites: Vec<Vec<Vec<f64>>> = (0..20).map(|n| with_loss(n, 0.7_f64.ln())).collect();
    let worse = |states: &[NightState]| states.iter().filter(|state| **state == NightState::Worse).count();
    let at = |night: usize| suites.iter().map(|suite| judged(suite, night)[0].state).collect::<Vec<_>>();
    let [first, second, third] = [at(3), at(4), at(5)];
    assert!(first.iter().all(|state| *state == NightState::Suspect), "{first:?}");
    assert!(worse(&second) >= 10 && !second.contains(&NightState::Unknown), "{second:?}");
    assert_eq!(worse(&third), 20, "{third:?}");
    assert_eq!(suites.iter().map(|suite| again(suite)).collect::<Vec<_>>(), second);
    let mut exact = with_loss(0, 0.0);
    exact[0] = vec![0.0, 0.0, 0.0, -0.357, -0.357];
    assert_eq!([judged(&exact, 4)[0].state, again(&exact)], [NightState::Worse; 2]);
}

/// Appends a night to each test of a suite, then once more to each suspect, as `--confirm` does. Returns the verdicts.
fn confirmed(suite: &mut [Vec<f64>], mut night: impl FnMut(usize) -> f64) -> Vec<NightVerdict> {
    let judge = |suite: &[Vec<f64>]| {
        judge_nights(&suite.iter().map(Vec::as_slice).collect::<Vec<_>>(), Direction::HigherIsBetter)
    };
    suite.iter_mut().enumerate().for_each(|(test, nights)| nights.push(night(test)));
    let found = judge(suite);
    let suspects: Vec<usize> = (0..suite.len()).filter(|n| found[*n].state == NightState::Suspect).collect();
    suspects.iter().for_each(|test| suite[*test].push(night(*test)));
    if suspects.is_empty() { found } else { judge(suite) }
}

#[test]
fn a_suspect_that_is_made_again_finds_a_loss_at_once_and_no_more_false_ones() {
    let (mut worse, mut at_once) = (0, 0);
    for n in 0..10_u64 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2000 + n);
        let mut night = |share: f64| share.ln() + (1.0 + 0.03 * rng.sample::<f64, _>(StandardNormal)).ln();
        let mut suite = vec![Vec::new(); TESTS];
        for _ in 0..NIGHTS {
            let found = confirmed(&mut suite, |_| night(1.0));
            worse += usize::from(found.iter().any(|verdict| FOUND.contains(&verdict.state)));
        }
        let found = confirmed(&mut suite, |test| night(if test == 0 { 0.85 } else { 1.0 }));
        at_once += usize::from(FOUND.contains(&found[0].state));
    }
    assert!(worse * 20 <= 10 * NIGHTS && at_once >= 5, "{worse} nights, {at_once} losses");
}

#[test]
fn a_loss_of_15_percent_is_found_soon() {
    for tests in [TESTS, 1] {
        for (variation, most) in [(0.03, 2), (0.05, 4)] {
            let loss = |night: usize| if night >= 20 { 0.85_f64.ln() } else { 0.0 };
            let found = middle(found_after(tests, variation, loss, 20, &FOUND));
            assert!(found <= most, "{tests} tests, {variation}: {found} nights");
        }
    }
}

#[test]
fn a_slow_loss_drifts() {
    let falling = |night: usize| 0.99_f64.ln() * (night as f64 - 19.0).max(0.0);
    for tests in [TESTS, 1] {
        for (variation, most) in [(0.03, 12), (0.05, 20)] {
            let found = middle(found_after(tests, variation, falling, 20, &[NightState::Drifting]));
            assert!(found <= most, "{tests} tests, {variation}: {found} nights");
        }
    }
}

#[test]
fn one_bad_night_is_never_worse() {
    for loss in [0.9_f64, 0.7, 0.4, 0.01] {
        for n in 0..SERIES as u64 {
            let mut suite = quiet(n, 4, 0.03);
            // A second night may confirm a suspect, and a loss stays one.
            if course(&suite, 20..30).last().unwrap()[0].state != NightState::Same {
                continue;
            }
            let before: Vec<Vec<NightVerdict>> = course(&suite, 20..NIGHTS).skip(10).collect();
            suite[0][30] += loss.ln();
            let after: Vec<Vec<NightVerdict>> = course(&suite, 20..NIGHTS).skip(10).collect();
            for (night, (before, after)) in before.iter().zip(&after).enumerate() {
                let is_new = FOUND.contains(&after[0].state) && !FOUND.contains(&before[0].state);
                // A night less, or a low one, may tip a later verdict on many others.
                let is_of_it = is_new && (night == 0 || loss < 0.8 && after[0].since >= Some(29));
                assert!(!is_of_it, "series {n}, loss {loss}, night {night} after it: {:?}", after[0]);
            }
            let state = after[0][0].state;
            assert!(loss > 0.8 || state == NightState::Suspect, "series {n}, loss {loss}: {state:?}");
        }
    }
}

/// A series of one test, from parts of nights with a level; every second night is a little above it, the others below.
fn levels(parts: &[(usize, f64)]) -> Vec<f64> {
    let nights = parts.iter().flat_map(|(nights, level)| vec![*level; *nights]);
    nights.enumerate().map(|(n, level)| level + if n % 2 == 0 { 0.01 } else { -0.01 }).collect()
}

fn one(nights: &[f64]) -> NightVerdict {
    judge_nights(&[nights], Direction::HigherIsBetter).remove(0)
}

#[test]
fn the_reference_follows_a_gain_and_not_a_loss() {
    let lost = one(&levels(&[(20, 0.0), (25, -0.2)]));
    assert_eq!((lost.state, lost.since), (NightState::Worse, Some(20)));
    assert!(lost.change.is_some_and(|ratio| (ratio - (-0.2_f64).exp()).abs() < 0.01), "{lost:?}");
    // It is worse until the old level is back, and then it is not.
    assert_eq!(one(&levels(&[(20, 0.0), (25, -0.2), (5, 0.0)])).state, NightState::Same);
    let gained = one(&levels(&[(20, 0.0), (25, 0.2)]));
    assert_eq!(gained.state, NightState::Same);
    assert!((gained.reference - 0.2).abs() < 0.02, "{gained:?}");
    assert_eq!(one(&levels(&[(20, 0.0), (25, 0.2), (3, 0.0)])).since, Some(45));
    // Two good nights raise no expectation.
    assert_eq!(one(&levels(&[(20, 0.0), (2, 0.2), (9, 0.0)])).state, NightState::Same);
}

/// The verdicts of each night on one test.
fn each(nights: &[f64]) -> Vec<NightVerdict> {
    course(&[nights.to_vec()], 0..nights.len()).map(|mut found| found.remove(0)).collect()
}

/// Fails unless a test that was found worse stays so from then on, since the same night and against the same reference.
fn stays_worse(found: &[NightVerdict]) {
    let first = found.iter().position(|verdict| verdict.state == NightState::Worse).unwrap();
    for (night, verdict) in found.iter().enumerate().skip(first) {
        assert!(FOUND.contains(&verdict.state), "night {night}: {verdict:?}");
        if verdict.state == NightState::Worse {
            let kept = |of: &NightVerdict| (of.since, of.reference.to_bits());
            assert_eq!(kept(verdict), kept(&found[first]), "night {night}");
        }
    }
}

#[test]
fn what_is_worse_stays_worse_until_it_is_back() {
    let series = |parts: &[(usize, f64)]| {
        let parts: Vec<(usize, f64)> = parts.iter().map(|(nights, level)| (*nights, level.ln())).collect();
        each(&levels(&parts))
    };
    for good in [4, 6, 8, 20] {
        let found = series(&[(good, 99_000.0), (3, 31_000.0), (8, 1300.0)]);
        stays_worse(&found);
        let last = found.last().unwrap();
        assert_eq!(last.since, Some(good), "{last:?}");
        assert!(good < 8 || last.steps == [good + 3], "{last:?}");
    }
    // Some nights are much worse than others.
    let figures = [99e3, 91e3, 104e3, 97e3, 88e3, 101e3, 31e3, 30e3, 1303.0, 14_500.0, 31e3, 900.0, 9320.0, 22e3, 2e3];
    stays_worse(&each(&figures.map(f64::ln)));
    let mut back = figures.to_vec();
    back.extend([96e3, 103e3, 99e3, 94e3]);
    assert_eq!(each(&back.iter().map(|figure: &f64| figure.ln()).collect::<Vec<_>>()).last().unwrap().since, None);
    // The verdict of a night is that of its whole course.
    let nights = figures.map(f64::ln);
    assert_eq!(Some(&one(&nights)), each(&nights).last());
}

#[test]
fn a_loss_that_stays_or_grows_is_never_called_the_same() {
    let mut worse = 0;
    for n in 0..SERIES as u64 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7000 + n);
        let spread = [0.03, 0.1, 0.25][n as usize % 3];
        let (good, bad) = (rng.random_range(4..25), rng.random_range(2..12));
        let level = |night: usize| match night {
            night if night < good => 0.0,
            night if night < good + bad => -1.1,
            _ => -1.1 - 0.8 * (n % 4) as f64,
        };
        let nights: Vec<f64> =
            (0..NIGHTS).map(|night| level(night) + spread * rng.sample::<f64, _>(StandardNormal)).collect();
        // What was found before the loss is another matter.
        let found = each(&nights).split_off(good);
        if found.iter().any(|verdict| verdict.state == NightState::Worse) {
            worse += 1;
            stays_worse(&found);
        }
    }
    assert!(worse > SERIES * 9 / 10, "{worse}");
}

#[test]
fn few_nights_say_what_could_be_seen() {
    assert_eq!(one(&[]).state, NightState::Unknown);
    assert_eq!((one(&[0.0]).state, one(&[0.0]).detectable), (NightState::Unknown, None));
    // With the spread of other tests the second night says something.
    let suite = quiet(1, TESTS, 0.03);
    let found = judged(&suite, 1);
    assert!(found.iter().all(|verdict| verdict.detectable.is_some_and(|loss| (0.1..0.3).contains(&loss))), "{found:?}");
    // A night of half the figure is a suspect, although one test alone has no spread.
    let mut suite = suite;
    suite[3][1] -= 0.7;
    assert_eq!(judged(&suite, 1)[3].state, NightState::Suspect);
}

/// A test that varies much has a limit too.
#[test]
fn a_great_loss_of_a_noisy_test_is_a_suspect() {
    let mut suite = quiet(3, TESTS, 0.03);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    suite[0].iter_mut().for_each(|night| *night = 0.45 * rng.sample::<f64, _>(StandardNormal));
    suite[0][40] = -7.0;
    assert_eq!(judged(&suite, 40)[0].state, NightState::Suspect);
    // The tail of a rate is longer below, and has an end; that of a latency is not.
    let limits = |half| [Direction::HigherIsBetter, Direction::LowerIsBetter].map(|of| night_limit(half, of));
    assert!((limits(0.3)[0] - 0.7_f64.ln()).abs() < 1e-12);
    assert_eq!((limits(0.3)[1], limits(3.0)), (-0.3, [-3.0; 2]));
}

/// Nights of a suite in which every third test has one of these spreads.
fn mixed(seed: u64, tests: usize, spreads: [f64; 3]) -> Vec<Vec<f64>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut nights = |spread: f64| (0..7).map(|_| spread * rng.sample::<f64, _>(StandardNormal)).collect();
    (0..tests).map(|n| nights(spreads[n % 3])).collect()
}

/// The share of the first quiet nights of mixed suites of 12 tests with a suspect.
fn early_suspects(spreads: [f64; 3]) -> f64 {
    let suites = (0..100).map(|n| mixed(5000 + n, 12, spreads));
    let is_seen = |suite: &[Vec<f64>], night: usize| {
        judged(suite, night).iter().any(|verdict| verdict.state == NightState::Suspect)
    };
    let seen: usize = suites.map(|suite| (1..7).filter(|night| is_seen(&suite, *night)).count()).sum();
    seen as f64 / 600.0
}

#[test]
fn tests_that_do_not_vary_say_nothing_about_others() {
    let suite = mixed(9, 12, [0.0, 0.0, 0.1]);
    let found = judged(&suite, 6);
    assert!(found.iter().all(|verdict| verdict.state != NightState::Suspect), "{found:?}");
    let [paced, varying] = [&found[0], &found[2]].map(|verdict| verdict.last.high / verdict.last.low);
    assert!(paced > 1.1 && varying > 1.3, "{paced} {varying}");
    for (spreads, most) in [([0.0, 0.02, 0.02], 0.05), ([0.0, 0.0, 0.1], 0.05), ([0.02, 0.05, 0.1], 0.08)] {
        let suspects = early_suspects(spreads);
        assert!(suspects <= most, "{spreads:?}: {suspects}");
    }
}
