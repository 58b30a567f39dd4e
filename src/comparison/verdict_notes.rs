//! Notes on the test of a verdict: the order of the runs, intervals of few runs, a drift of the machine, and disturbed runs.

use super::numbers::{confidence, ratio};
use super::tested::{RunOrder, TestedRatio};
use crate::analysis::{Disturbance, DisturbanceCheck, Estimate, STRICT_LEVEL, fewest_on_each_side, fewest_pairs};

/// The note on runs of which not even Student's interval can be given.
pub(super) const TOO_FEW: &str =
    "too few runs for an interval: each side needs two, and interleaved runs need two blocks";

/// The note on runs that were made independently of each other.
pub(super) const NOT_INTERLEAVED: &str = "not interleaved: the interval allows for a linear drift of the machine over all runs \
    in the order of their times, and for no other change of it; `wmlrun ab` alternates the runs";

/// The note on sides of different days.
pub(super) const OF_OTHER_DAYS: &str =
    "not interleaved: the ratio includes any change of the machine between the two sides";

/// The note on runs that alternated without blocks.
pub(super) const ALTERNATED: &str = "the runs of both sides alternated: a drift of the machine widens the interval";

/// Returns the note on an interval that says nothing, or that is not by ranks because the runs are too few.
pub(super) fn on_interval(tested: &TestedRatio, order: RunOrder, level: f64) -> Option<String> {
    if tested.ratio().low.is_nan() {
        let text = "the interval of B/A excludes neither a hundredth nor a hundredfold, which says nothing: the runs are too \
            few, or vary too much";
        return Some(text.to_owned());
    }
    let pairs_of_block = if order == RunOrder::Blocks { 2 } else { 1 };
    match tested {
        TestedRatio::Interleaved(found) if found.student.is_some() => Some(format!(
            "too few blocks for an interval by ranks, which needs {} blocks for {}: it is Student's, which one slow run \
             widens much",
            fewest_pairs(level).div_ceil(pairs_of_block),
            confidence(level)
        )),
        TestedRatio::Ordered(found) if !found.is_by_ranks => Some(format!(
            "too few runs for an interval by ranks, for which {} on each side are enough at {}: it is Welch's, which one \
             slow run widens much",
            fewest_on_each_side(level),
            confidence(level)
        )),
        _ => None,
    }
}

/// Returns the note on a verdict that a drift of the machine may explain. `alone` has the interval without one.
pub(super) fn on_trend(alone: Estimate) -> String {
    format!(
        "without a drift of the machine B/A would be {}, but a linear drift over all runs may explain it: alternate the runs \
         (`wmlrun ab`)",
        ratio(alone)
    )
}

/// Returns the note on a verdict on interleaved runs that other programs disturbed, while the control is unknown.
pub(super) fn on_check(check: DisturbanceCheck, holds: bool, disturbance: Disturbance) -> String {
    let with = match check {
        DisturbanceCheck::Unequal => return on_half(disturbance),
        DisturbanceCheck::Undisturbed(blocks) => format!("the {blocks} undisturbed blocks alone"),
        DisturbanceCheck::Strict => {
            format!("too few blocks are undisturbed, and the {} interval of all", confidence(STRICT_LEVEL))
        }
    };
    match (check, holds) {
        (DisturbanceCheck::Undisturbed(_), true) => format!("{with} give the same verdict; the control is unknown"),
        (DisturbanceCheck::Undisturbed(_), false) => {
            format!("{with} do not give this verdict, and the control is unknown: repeat on an idle machine")
        }
        (_, true) => format!("{with} gives the same verdict; the control is unknown"),
        (_, false) => format!("{with} does not give this verdict; the control is unknown: repeat on an idle machine"),
    }
}

/// Returns the note on sides that other programs may have made different, while the control is unknown.
pub(super) fn on_half(disturbance: Disturbance) -> String {
    let Disturbance { disturbed: [a, b], runs: [of_a, of_b] } = disturbance;
    format!(
        "other programs disturbed {a} of {of_a} runs of A and {b} of {of_b} of B, and the control is unknown: they may be the \
         whole difference; repeat on an idle machine"
    )
}
