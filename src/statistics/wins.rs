//! Wins: which of two sides is better in each of several tests, and by which factor.

use super::Direction;
use serde::Serialize;

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
    /// The ratio of the greater to the smaller value, at least 1.
    pub factor: f64,
}

/// Returns the outcome of a test with these values, or `None` unless both are finite and above 0, and so is their ratio. Two
/// zeros are a draw.
pub fn outcome(a: f64, b: f64, direction: Direction) -> Option<TestOutcome> {
    if a == 0.0 && b == 0.0 {
        return Some(TestOutcome { winner: TestWinner::Draw, factor: 1.0 });
    }
    let is_usable = |value: f64| value.is_finite() && value > 0.0;
    if !is_usable(a) || !is_usable(b) {
        return None;
    }
    let factor = (a / b).max(b / a);
    if factor.is_infinite() {
        return None;
    }
    let a_is_better = (a > b) == (direction == Direction::HigherIsBetter);
    let winner = match (factor < DRAW, a_is_better) {
        (true, _) => TestWinner::Draw,
        (false, true) => TestWinner::A,
        (false, false) => TestWinner::B,
    };
    Some(TestOutcome { winner, factor })
}

/// Returns the factor by which `x` is better than `y`: x/y of rates, y/x of times. Returns `None` unless both are finite and
/// above 0, and so is the factor.
pub fn improvement(x: f64, y: f64, direction: Direction) -> Option<f64> {
    let (x, y) = if direction == Direction::HigherIsBetter { (x, y) } else { (y, x) };
    let is_usable = |value: &f64| value.is_finite() && *value > 0.0;
    Some(x).zip(Some(y)).filter(|(x, y)| is_usable(x) && is_usable(y)).map(|(x, y)| x / y).filter(is_usable)
}

/// The tests that one side wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WonTests {
    /// Their number.
    pub tests: u64,
    /// The arithmetic mean of their factors; null without a test.
    pub mean_factor: Option<f64>,
}

impl WonTests {
    /// Counts tests with these factors.
    pub fn of(factors: &[f64]) -> Self {
        // The sum of finite factors may be infinite.
        let parts = factors.iter().map(|factor| factor / factors.len() as f64);
        let mean_factor = (!factors.is_empty()).then(|| parts.sum());
        Self { tests: factors.len() as u64, mean_factor }
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
        let factors: Vec<f64> =
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
        for (x, y) in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (1.0, -1.0), (1e300, 1e-300), (1e-300, 1e300)] {
            assert_eq!((improvement(x, y, HIGHER), improvement(y, x, LOWER)), (None, None), "{x} {y}");
        }
    }

    #[test]
    fn two_zeros_are_a_draw_and_one_has_no_factor() {
        let draw = TestOutcome { winner: TestWinner::Draw, factor: 1.0 };
        assert_eq!(outcome(0.0, 0.0, HIGHER), Some(draw));
        assert_eq!((outcome(0.0, 1.0, HIGHER), outcome(1.0, 0.0, HIGHER)), (None, None));
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
    fn a_lower_latency_wins_and_a_value_of_0_has_no_outcome() {
        let winner = |a, b, direction| outcome(a, b, direction).map(|found| found.winner);
        assert_eq!(winner(2.0, 1.0, Direction::LowerIsBetter), Some(TestWinner::B));
        assert_eq!(winner(1.0, 2.0, Direction::LowerIsBetter), Some(TestWinner::A));
        assert_eq!(winner(1.0, 1.0, HIGHER), Some(TestWinner::Draw));
        assert_eq!(
            (winner(1.0, 1.0499, HIGHER), winner(1.0, 1.05, HIGHER)),
            (Some(TestWinner::Draw), Some(TestWinner::B))
        );
        assert_eq!((winner(0.0, 1.0, HIGHER), winner(1.0, f64::INFINITY, HIGHER)), (None, None));
        assert_eq!(wins(&[]), Wins::default());
        assert_eq!(outcome(1e-300, 1e300, HIGHER), None);
        assert!(WonTests::of(&[1e308; 3]).mean_factor.is_some_and(f64::is_finite));
    }
}
