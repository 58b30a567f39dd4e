//! Wins: which of two sides is better in each of several tests, and by which factor.

use super::Direction;
use serde::Serialize;
use std::cmp::Ordering;

/// The factor below which a test is a draw.
pub const DRAW: f64 = 1.05;

/// The side that is better in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TestWinner {
    /// The first side.
    A,
    /// The second side.
    B,
    /// Neither.
    Draw,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TestOutcome {
    /// The side that is better.
    pub winner: TestWinner,
    /// The ratio of the greater to the smaller value, at least 1; null unless both are above 0 or equal.
    pub factor: Option<f64>,
}

/// Returns the outcome of a test with these values, or `None` unless both are finite. Equal values are a draw; one that is
/// not above 0 may win or lose, without a factor.
pub fn outcome(a: f64, b: f64, direction: Direction) -> Option<TestOutcome> {
    if !a.is_finite() || !b.is_finite() {
        return None;
    }
    let factor = match a.partial_cmp(&b) {
        Some(Ordering::Equal) => Some(1.0),
        _ => Some((a / b).max(b / a)).filter(|ratio| a > 0.0 && b > 0.0 && ratio.is_finite()),
    };
    let a_is_better = (a > b) == (direction == Direction::HigherIsBetter);
    let winner = match factor {
        Some(factor) if factor < DRAW => TestWinner::Draw,
        _ if a_is_better => TestWinner::A,
        _ => TestWinner::B,
    };
    Some(TestOutcome { winner, factor })
}

/// Returns the factor by which `x` is better than `y`: x/y of rates, y/x of times. Returns `None` unless it is finite, and
/// the one below the line above 0; it is 0 only if the other one is.
pub fn improvement(x: f64, y: f64, direction: Direction) -> Option<f64> {
    let (x, y) = if direction == Direction::HigherIsBetter { (x, y) } else { (y, x) };
    let is_usable = x.is_finite() && x >= 0.0 && y.is_finite() && y > 0.0;
    Some(x / y).filter(|factor| is_usable && factor.is_finite() && (*factor > 0.0 || x == 0.0))
}

/// The tests that one side wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WonTests {
    /// Their number.
    pub tests: u64,
    /// The arithmetic mean of those of their factors that are known; null without any.
    pub mean_factor: Option<f64>,
    /// The number of these factors.
    #[serde(skip)]
    pub factors: u64,
}

impl WonTests {
    /// Counts tests with these factors.
    pub fn of(factors: &[Option<f64>]) -> Self {
        let known = || factors.iter().flatten();
        let count = known().count() as u64;
        // The sum of finite factors may be infinite.
        let mean_factor = (count > 0).then(|| known().map(|factor| factor / count as f64).sum());
        Self { tests: factors.len() as u64, mean_factor, factors: count }
    }
}

/// The sums over several tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Wins {
    /// The tests that the first side wins.
    pub a: WonTests,
    /// The tests that the second side wins.
    pub b: WonTests,
    /// The number of tests whose factor is below [`DRAW`].
    pub draws: u64,
    /// The number of tests without an outcome.
    pub without_outcome: u64,
}

/// Counts the outcomes of tests.
pub fn wins(outcomes: &[Option<TestOutcome>]) -> Wins {
    let won = |side: TestWinner| {
        let factors: Vec<Option<f64>> =
            outcomes.iter().flatten().filter(|found| found.winner == side).map(|found| found.factor).collect();
        WonTests::of(&factors)
    };
    Wins {
        a: won(TestWinner::A),
        b: won(TestWinner::B),
        draws: won(TestWinner::Draw).tests,
        without_outcome: outcomes.iter().filter(|found| found.is_none()).count() as u64,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::float_cmp)]
    use super::*;

    const HIGHER: Direction = Direction::HigherIsBetter;

    #[test]
    fn an_improvement_is_a_factor_of_rates_or_of_times() {
        const LOWER: Direction = Direction::LowerIsBetter;
        assert_eq!((improvement(3.0, 2.0, HIGHER), improvement(3.0, 2.0, LOWER)), (Some(1.5), Some(2.0 / 3.0)));
        // All of a rate is lost.
        assert_eq!((improvement(0.0, 5.0, HIGHER), improvement(5.0, 0.0, LOWER)), (Some(0.0), Some(0.0)));
        for (x, y) in [(1.0, 0.0), (0.0, 0.0), (f64::NAN, 1.0), (1.0, -1.0), (1e300, 1e-300), (1e-300, 1e300)] {
            assert_eq!((improvement(x, y, HIGHER), improvement(y, x, LOWER)), (None, None), "{x} {y}");
        }
    }

    #[test]
    fn two_zeros_are_a_draw_and_one_loses_without_a_factor() {
        let draw = TestOutcome { winner: TestWinner::Draw, factor: Some(1.0) };
        assert_eq!((outcome(0.0, 0.0, HIGHER), outcome(-2.0, -2.0, HIGHER)), (Some(draw), Some(draw)));
        let won = |winner| Some(TestOutcome { winner, factor: None });
        assert_eq!(outcome(0.0, 5.0, HIGHER), won(TestWinner::B));
        assert_eq!(outcome(5.0, 0.0, HIGHER), won(TestWinner::A));
        assert_eq!(outcome(0.0, 5.0, Direction::LowerIsBetter), won(TestWinner::A));
        assert_eq!(outcome(-3.0, -2.0, HIGHER), won(TestWinner::B));
        let found = wins(&[outcome(0.0, 5.0, HIGHER), outcome(1.0, 2.0, HIGHER), outcome(5.0, 0.0, HIGHER)]);
        assert_eq!(
            (found.a, found.b),
            (WonTests::of(&[None]), WonTests { tests: 2, mean_factor: Some(2.0), factors: 1 })
        );
        assert_eq!(WonTests::of(&[None]), WonTests { tests: 1, mean_factor: None, factors: 0 });
    }

    /// The figures and the sums of a published comparison of two file systems by fourteen tests.
    #[test]
    fn the_sums_of_a_published_comparison() {
        let unknown = f64::NAN;
        let figures = [
            (486.0, 145.9),
            (4.56, 0.87),
            (27.3, 50.1),
            (674.8, 612.9),
            (unknown, 17.5),
            (2.21, 0.85),
            (204.3, 257.2),
            (698.2, 298.3),
            (42.8, 100.4),
            (0.118, 0.116),
            (0.427, 0.074),
            (264.8, 266.8),
            (unknown, 0.117),
            (56.4, 386.7),
        ];
        let found = wins(&figures.map(|(a, b)| outcome(a, b, HIGHER)));
        assert_eq!((found.a.tests, found.b.tests, found.draws, found.without_outcome), (6, 4, 2, 2));
        let mean = |side: WonTests| (side.mean_factor.unwrap() * 100.0).round() / 100.0;
        assert_eq!((mean(found.a), mean(found.b)), (3.40, 3.07));
    }

    #[test]
    fn a_lower_latency_wins() {
        let winner = |a, b, direction| outcome(a, b, direction).map(|found| found.winner);
        assert_eq!(winner(2.0, 1.0, Direction::LowerIsBetter), Some(TestWinner::B));
        assert_eq!(winner(1.0, 2.0, Direction::LowerIsBetter), Some(TestWinner::A));
        assert_eq!(winner(1.0, 1.0, HIGHER), Some(TestWinner::Draw));
        assert_eq!(
            (winner(1.0, 1.0499, HIGHER), winner(1.0, 1.05, HIGHER)),
            (Some(TestWinner::Draw), Some(TestWinner::B))
        );
        assert_eq!((winner(f64::NAN, 1.0, HIGHER), winner(1.0, f64::INFINITY, HIGHER)), (None, None));
        assert_eq!(wins(&[]), Wins::default());
        assert_eq!(outcome(1e-300, 1e300, HIGHER), Some(TestOutcome { winner: TestWinner::B, factor: None }));
        assert!(WonTests::of(&[Some(1e308); 3]).mean_factor.is_some_and(f64::is_finite));
    }
}
