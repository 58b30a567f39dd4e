//! The advice of an unclear comparison: what would give a verdict.

use super::{Comparison, RunOrder};
use crate::util::count::grouped;

/// Returns what to do to get a verdict, as a note of one line.
pub(super) fn advice(comparison: &Comparison, order: RunOrder) -> String {
    let made = comparison.a.sample.n + comparison.b.sample.n;
    let is_known = comparison.ratio.low.is_finite();
    let more = match comparison.runs_needed {
        Some(needed) if needed > made => {
            let option = match order {
                RunOrder::Blocks => format!(" (`--blocks {}`)", needed.div_ceil(4)),
                RunOrder::Paired => format!(" (`--resume DIR --repeats {}`)", needed.div_ceil(2)),
                RunOrder::Alternated | RunOrder::Separate => String::new(),
            };
            format!("make about {} runs instead of {made}{option}", grouped(needed))
        }
        Some(_) => {
            format!("B/A is near the tolerance: make more than {made} runs, or use a larger `--tolerance`")
        }
        None if is_known => "to call equal sides not worse, thousands of runs would be needed".to_owned(),
        None => "make more runs".to_owned(),
    };
    match comparison.validity.is_of_replays {
        true => format!("for a verdict: {more}; an idle machine reduces the variation"),
        false => format!("for a verdict: {more}; longer runs (`--runtime`) or an idle machine reduce the variation"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::build::tests::{comparer, runs};
    use super::RunOrder;
    use crate::comparison::Runs;
    use crate::import::Observation;

    /// Returns the notes of a comparison of equal runs, of which the first `disturbed` on each side were disturbed.
    fn notes(n: usize, spread: f64, disturbed: usize) -> String {
        let side = |turn: usize| -> Vec<Observation> {
            let mut found = runs("ops", n, 100.0, spread);
            found.rotate_left(turn % n);
            found.iter_mut().take(disturbed).for_each(|run| run.disturbed = true);
            found
        };
        let (a, b) = (side(0), side(5));
        let runs = Runs { a: &a, b: &b, order: RunOrder::Blocks };
        comparer("ops").compare(&runs).unwrap().notes.join("\n")
    }

    #[test]
    fn a_replay_is_no_longer_than_its_trace() {
        let side = |turn: usize| -> Vec<Observation> {
            let mut found = runs("ops", 8, 100.0, 0.1);
            found.rotate_left(turn);
            found.iter_mut().for_each(|run| run.is_replay = true);
            found
        };
        let (a, b) = (side(0), side(5));
        let runs = Runs { a: &a, b: &b, order: RunOrder::Blocks };
        let text = comparer("ops").compare(&runs).unwrap().notes.join("\n");
        assert!(text.contains("an idle machine reduces the variation") && !text.contains("--runtime"), "{text}");
    }

    #[test]
    fn an_unclear_comparison_says_what_to_do() {
        let text = notes(8, 0.1, 0);
        assert!(text.contains("runs instead of 16 (`--blocks ") && text.contains("idle machine reduce"), "{text}");
        let text = notes(8, 0.1, 3);
        assert!(
            text.contains("used the processors or devices during 6 of 16 runs: repeat on an idle machine"),
            "{text}"
        );
        let text = notes(8, 0.9, 0);
        assert!(text.contains("to call equal sides not worse, thousands of runs would be needed"), "{text}");
        assert!(notes(2, 0.1, 0).contains("for a verdict: make more runs"), "{}", notes(2, 0.1, 0));
        // That other programs disturbed the runs is a note of every verdict.
        let text = notes(24, 0.001, 3);
        assert!(
            !text.contains("for a verdict") && text.contains("used the processors or devices during 6 of 48 runs"),
            "{text}"
        );
    }
}
