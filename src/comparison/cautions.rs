//! The reasons to distrust a result that its answer names, and the notes that say the same at length.

use super::numbers::figure;
use super::tested::Runs;
use super::{ComparedSide, Comparison, conditions, different_workloads, notes, unlike, verdict_notes};
use crate::analysis::{ComparisonVerdict, DisturbanceCheck, STRICT_LEVEL, SampleSummary};
use crate::import::{Metric, Observation};
use crate::result::{LimitOutcome, warning_order};
use crate::sheet::{Answer, Usability};
use crate::util::count::{count, grouped};
use crate::util::printable;
use indexmap::IndexSet;
use serde::Serialize;

/// A reason to distrust a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caution {
    /// A part of a sentence.
    pub text: String,
    /// Whether the result may be used in spite of it.
    pub leaves: Usability,
    /// The notes that say the same.
    pub notes: Vec<String>,
    /// The code of the warning that it is about.
    code: Option<String>,
}

impl Caution {
    pub(super) fn new(leaves: Usability, text: impl Into<String>) -> Self {
        Self { text: text.into(), leaves, notes: Vec::new(), code: None }
    }

    /// A caution that is a note, in its own words.
    pub(crate) fn of_note(leaves: Usability, note: &str) -> Self {
        Self { notes: vec![note.to_owned()], ..Self::new(leaves, note) }
    }

    /// Leaves out a note that says the same.
    #[must_use]
    pub(super) fn instead_of(mut self, note: Option<String>) -> Self {
        self.notes.extend(note);
        self
    }
}

/// What else its sheet says of the runs of a document.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Validity {
    /// The limits of `--fail-if`, and whether each arm keeps them; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitOutcome>,
    /// Whether the experiment was interrupted, so that no run is in progress.
    #[serde(skip)]
    pub is_interrupted: bool,
    /// What ended the runs early; empty if nothing did.
    #[serde(skip)]
    pub ended_by: String,
    /// The reasons to distrust the result.
    #[serde(skip)]
    pub cautions: Vec<Caution>,
    /// Machine, file systems and versions, in lines.
    #[serde(skip)]
    pub conditions: Vec<String>,
    /// Whether runs replay a trace.
    #[serde(skip)]
    pub is_of_replays: bool,
}

impl Validity {
    /// That of complete runs: that runs were disturbed, and these cautions.
    pub(super) fn of(cautions: Vec<Caution>, sides: &[&[Observation]]) -> Self {
        let cautions = of_disturbed(sides).into_iter().chain(cautions).collect();
        Self { cautions, ..Self::of_runs(sides) }
    }

    /// That of these runs, without cautions.
    pub(super) fn of_runs(sides: &[&[Observation]]) -> Self {
        let is_of_replays = sides.iter().flat_map(|runs| runs.iter()).any(|run| run.is_replay);
        Self { conditions: conditions::lines(sides), is_of_replays, ..Self::default() }
    }
}

/// The most characters of a code of another version.
const LONGEST_CODE: usize = 40;

/// The most reasons that an answer names. The notes have the others.
const NAMED: usize = 3;

/// Adds the gravest reasons to an answer, and returns the notes that it does not replace.
pub(super) fn add(answer: &mut Answer, cautions: &[Caution], notes: &[String]) -> Vec<String> {
    // An empty one only replaces its notes: the sentence of the result says it.
    let (said, mut ordered): (Vec<&Caution>, Vec<&Caution>) =
        cautions.iter().partition(|caution| caution.text.is_empty());
    ordered.sort_by_key(|caution| std::cmp::Reverse(caution.leaves));
    let usability = answer.usability.into_iter().chain(cautions.iter().map(|caution| caution.leaves)).max();
    // The first word must not promise what the last sentence takes back.
    if answer.usability < usability && usability == Some(Usability::Unusable) {
        answer.result = format!("not usable; as measured, {}", answer.result);
    }
    answer.usability = usability;
    let named = &ordered[..ordered.len().min(NAMED)];
    answer.cautions.extend(named.iter().map(|caution| caution.text.clone()));
    let rest = &ordered[named.len()..];
    let is_of = |cautions: &[&Caution], note: &String| cautions.iter().any(|caution| caution.notes.contains(note));
    // A note stays if it also says what the answer has no room for.
    let is_left = |note: &&String| is_of(rest, note) || !is_of(named, note) && !is_of(&said, note);
    let has_note = |caution: &&Caution| caution.notes.iter().any(|note| notes.contains(note));
    let untold = rest.iter().filter(|caution| !has_note(caution)).map(|caution| format!("caution: {}", caution.text));
    notes.iter().filter(is_left).cloned().chain(untold).collect()
}

/// The code of runs that could not keep the offered rate.
pub(super) const UNSTABLE: &str = "unstable";

/// What a warning of a run means for a result, and what it leaves of it. `None` for codes that only inform.
fn of_code(code: &str) -> Option<(&'static str, Usability)> {
    Some(match code {
        "exhausted" => ("threads ended early because no file was left for them", Usability::Unusable),
        "waited_to_the_end" => ("threads waited to the end and did nothing", Usability::Unusable),
        "phase_not_complete" => ("phases were cut short", Usability::WithCaution),
        "phase_not_started" => ("phases did not start", Usability::Unusable),
        "ended_in_warmup" => ("the run ended in its warm-up", Usability::Unusable),
        "no_operations" => ("nothing was done", Usability::Unusable),
        "not_complete" => ("the run did not end as it should", Usability::Unusable),
        "errors" => ("operations failed", Usability::Unusable),
        UNSTABLE => (
            "the offered rate was not achieved, so that response times grow for as long as a run lasts",
            Usability::Unusable,
        ),
        "not_mounted" => ("no file system was mounted on the directory", Usability::WithCaution),
        "other_cache_state" => ("the cache was not in the state asked for", Usability::Unusable),
        "stopped" => ("wmlrun was stopped for a part of the time", Usability::WithCaution),
        "stalled" => ("the file system stalled", Usability::WithCaution),
        "starved" => ("threads waited for usable files", Usability::WithCaution),
        "late_ops" => ("operations were in flight at the end", Usability::WithCaution),
        "tool_bound" => ("wmlrun itself took a large part of the time", Usability::WithCaution),
        "wakeup_latency" => ("wake-ups took a large part of the response time", Usability::WithCaution),
        "not_quiesced" => ("earlier writes were not on the disk at the start", Usability::WithCaution),
        "fits_in_memory" => ("the files fit in memory, so that reads may be cached", Usability::WithCaution),
        "memory_file_system" => ("the files were in memory, not on storage", Usability::WithCaution),
        "ranks_overlap" => ("some ranks ran while others did not", Usability::WithCaution),
        "phase_late" => ("phases began late", Usability::WithCaution),
        "warmup_not_steady" => ("the warm-up did not become steady", Usability::WithCaution),
        "processor_bound" => ("the processors were fully busy", Usability::WithCaution),
        _ => return None,
    })
}

/// The reasons that runs of all sides give, without that of disturbed runs.
pub(super) fn of_runs(sides: &[&[Observation]]) -> Vec<Caution> {
    let all: u64 = sides.iter().map(|runs| runs.len() as u64).sum();
    let in_runs = |has: &dyn Fn(&Observation) -> bool| {
        let n = sides.iter().flat_map(|runs| runs.iter()).filter(|run| has(run)).count() as u64;
        if n == all { "in all runs".to_owned() } else { format!("in {} of {}", grouped(n), count(all, "run")) }
    };
    let codes: IndexSet<&String> = sides.iter().flat_map(|runs| runs.iter()).flat_map(|run| &run.warnings).collect();
    // One of another version may say that the figures are wrong.
    let is_unknown = |code: &String| warning_order::kind_of(code).is_none();
    let (unknown, known): (Vec<&String>, Vec<&String>) = codes.into_iter().partition(|code| is_unknown(code));
    // The note also has codes that only inform.
    let are_all = known.iter().all(|code| of_code(code).is_some());
    let note = notes::on_other_warnings(sides).filter(|_| are_all);
    let caution = |code: &String| {
        let (text, leaves) = of_code(code)?;
        let shown = printable::short(code, LONGEST_CODE);
        let text = format!("{} {text} (`{shown}`)", in_runs(&|run| run.warnings.contains(code)));
        Some(Caution { code: Some(code.clone()), ..Caution::new(leaves, text).instead_of(note.clone()) })
    };
    let mut found: Vec<Caution> = known.into_iter().filter_map(caution).collect();
    // A file from elsewhere may have any number of codes.
    if let Some(first) = unknown.first() {
        let runs = in_runs(&|run| run.warnings.iter().any(is_unknown));
        let (are, more) = match unknown.len() as u64 {
            1 => ("is an unknown warning".to_owned(), ""),
            n => (format!("are {} unknown warnings", grouped(n)), ", …"),
        };
        let text = format!("{runs} there {are} (`{}`{more})", printable::short(first, LONGEST_CODE));
        found.insert(0, Caution::new(Usability::WithCaution, text).instead_of(note));
    }
    let is_unsteady = |run: &Observation| run.unsteady;
    if sides.iter().flat_map(|runs| runs.iter()).any(is_unsteady) {
        let text = format!("{} the rate changed (`unsteady`)", in_runs(&is_unsteady));
        found.push(Caution::new(Usability::WithCaution, text).instead_of(notes::unsteady_note(sides)));
    }
    found
}

/// The reasons that the runs of a curve give. Beyond its peak no load can be kept, which is what a curve shows.
pub(super) fn of_curve(levels: &[&[Observation]]) -> Vec<Caution> {
    let is_unstable = |runs: &&&[Observation]| runs.iter().any(|run| run.warnings.iter().any(|code| code == UNSTABLE));
    let measured = || levels.iter().filter(|runs| runs.iter().any(|run| run.failure.is_none()));
    let beyond = measured().filter(is_unstable).count() as u64;
    let all = measured().count() as u64;
    let mut found = of_runs(levels);
    let is_about_it = |caution: &&mut Caution| caution.code.as_deref() == Some(UNSTABLE);
    if let Some(caution) = found.iter_mut().find(is_about_it).filter(|_| beyond < all) {
        let of = format!("{} of {}", grouped(beyond), count(all, "level"));
        caution.text = format!(
            "{of} offered more than was achieved (`{UNSTABLE}`), so that response times there grow with the run"
        );
        caution.leaves = Usability::WithCaution;
    }
    found
}

/// The number of disturbed runs, and that of all; `None` if no run was disturbed.
pub(super) fn disturbed_runs(sides: &[&[Observation]]) -> Option<(u64, u64)> {
    let of = |has: fn(&Observation) -> bool| sides.iter().flat_map(|runs| runs.iter()).filter(|run| has(run)).count();
    let (disturbed, all) = (of(|run| run.disturbed) as u64, of(|_| true) as u64);
    (disturbed > 0).then_some((disturbed, all))
}

/// How many runs were disturbed, as a part of a sentence.
pub(super) fn disturbed_text((disturbed, all): (u64, u64)) -> String {
    match disturbed == all {
        true => format!("other programs disturbed all {}", count(all, "run")),
        false => format!("other programs disturbed {} of {}", grouped(disturbed), count(all, "run")),
    }
}

/// Returns the end of a verdict on runs of which other programs disturbed half or more on a side, and not on the other.
/// Their effect may be the difference, or hide one.
pub(super) fn disturbed_side(comparison: &Comparison) -> Option<String> {
    let is_half = |side: &ComparedSide| 2 * side.disturbed >= side.sample.n;
    let (name, side) = match (is_half(&comparison.a), is_half(&comparison.b)) {
        (true, false) => ("A", &comparison.a),
        (false, true) => ("B", &comparison.b),
        _ => return None,
    };
    Some(format!("other programs disturbed {} of {} runs of {name}", grouped(side.disturbed), grouped(side.sample.n)))
}

/// The reason that disturbed runs give for distrusting their means: nothing shows what the other programs took.
pub(super) fn of_disturbed(sides: &[&[Observation]]) -> Option<Caution> {
    let (disturbed, all) = disturbed_runs(sides)?;
    let text = disturbed_text((disturbed, all));
    let (leaves, advice) = match 2 * disturbed >= all {
        true => (Usability::Unusable, ", so that they must be repeated on an idle machine"),
        false => (Usability::WithCaution, ""),
    };
    Some(Caution::new(leaves, text + advice).instead_of(notes::disturbed_note(sides)))
}

/// What the check of disturbed runs found: its kind, its note, and whether the verdict holds.
pub(super) type CheckedRuns = Option<(Option<DisturbanceCheck>, String, bool)>;

/// The reasons to distrust a verdict.
pub(super) fn of_comparison(
    comparison: &Comparison,
    runs: &Runs<'_>,
    metric: &Metric,
    checked: CheckedRuns,
) -> Vec<Caution> {
    let sides = [runs.a, runs.b];
    let mut found: Vec<Caution> = course(comparison, runs).into_iter().collect();
    if let Some(disturbed) = disturbed_runs(&sides) {
        found.push(on_disturbed(comparison, runs, disturbed_text(disturbed), checked));
    }
    found.extend(of_runs(&sides));
    let on_control = notes::on_control(comparison);
    if let Some(note) = on_control.filter(|_| !comparison.lacks_control()) {
        // The sentence of an invalid comparison says it.
        let is_said = comparison.verdict == ComparisonVerdict::Invalid;
        let text = if is_said { String::new() } else { note.replace(", see `control`", "") };
        found.push(Caution::new(Usability::WithCaution, text).instead_of(Some(note)));
    }
    for (note, text) in [
        (verdict_notes::NOT_INTERLEAVED, "the runs of A and B were not interleaved, and the machine may have changed"),
        (verdict_notes::OF_OTHER_DAYS, "A and B are of different days, and the machine may have changed"),
    ] {
        if comparison.notes.iter().any(|known| known == note) {
            found.push(Caution::new(Usability::WithCaution, text).instead_of(Some(note.to_owned())));
        }
    }
    let [a, b] = sides;
    let unlike = [notes::on_flowops(a, b), notes::on_conditions(a, b), unlike::on_run_times(a, b)];
    let few = notes::on_percentiles(&sides, std::slice::from_ref(metric));
    let notes = unlike.into_iter().flatten().chain(few);
    found.extend(notes.map(|note| Caution::of_note(Usability::WithCaution, &note)));
    let workloads = different_workloads(&comparison.differs);
    found.extend(workloads.map(|text| Caution::new(Usability::WithCaution, text)));
    found
}

/// The caution on interleaved runs of a machine that became another meanwhile, as a device does whose fast part is full: the
/// ratio holds for the mixture.
fn course(comparison: &Comparison, runs: &Runs<'_>) -> Option<Caution> {
    /// With fewer runs of a side in a third, the order of two thirds may be chance.
    const MIN_RUNS: usize = 3;
    /// The least change of both medians.
    const LEAST: f64 = 0.2;
    let side = |side: &ComparedSide| {
        let third = Some(side.values.len() / 3).filter(|third| *third >= MIN_RUNS)?;
        let [first, last] = [&side.values[..third], &side.values[side.values.len() - third..]];
        let [low, high] = [f64::min, f64::max].map(|end| [first, last].map(|runs| runs.iter().copied().reduce(end)));
        let is_apart = low[0] > high[1] || high[0] < low[1];
        let [first, last] = [SampleSummary::of(first)?.median, SampleSummary::of(last)?.median];
        (is_apart && (last / first - 1.0).abs() >= LEAST).then_some([first, last])
    };
    let [a, b] = [side(&comparison.a)?, side(&comparison.b)?];
    let is_alike = (a[0] < a[1]) == (b[0] < b[1]);
    let text = |[first, last]: [f64; 2]| {
        format!("{} to {}", figure(&comparison.metric, first), figure(&comparison.metric, last))
    };
    (runs.in_blocks() && is_alike).then(|| {
        let text = format!(
            "the machine changed during the runs: `{}` of A went from {}, of B from {}",
            comparison.metric,
            text(a),
            text(b)
        );
        Caution::new(Usability::WithCaution, text)
    })
}

/// The reason that disturbed runs give for distrusting a verdict. `text` has their number.
fn on_disturbed(comparison: &Comparison, runs: &Runs<'_>, text: String, checked: CheckedRuns) -> Caution {
    let note = notes::disturbed_note(&[runs.a, runs.b]);
    let text = disturbed_side(comparison).unwrap_or(text);
    let control = comparison.control.filter(|control| !control.moved && !control.is_unknown(comparison.tolerance));
    let (leaves, but, other) = match checked {
        Some((_, other, false)) => (Usability::Unusable, String::new(), Some(other)),
        Some((Some(DisturbanceCheck::Undisturbed(blocks)), other, true)) => (
            Usability::WithCaution,
            format!(", but the {blocks} undisturbed blocks alone give the same verdict"),
            Some(other),
        ),
        Some((_, other, true)) => {
            let level = super::confidence(STRICT_LEVEL);
            (Usability::WithCaution, format!(", but the {level} interval gives the same verdict"), Some(other))
        }
        None if control.is_some() => {
            let but = ", but the processors were equally fast for A and B";
            (Usability::WithCaution, but.to_owned(), None)
        }
        None => (Usability::WithCaution, String::new(), None),
    };
    Caution::new(leaves, text + &but).instead_of(note).instead_of(other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::result::NoteCode;
    use crate::result::warning_order::{WarningKind, kind_of};
    use crate::result::warnings::CODES;

    /// A result on a warm cache was used as one on a cold cache.
    #[test]
    fn what_was_not_done_as_asked_is_always_told() {
        let codes = || CODES.into_iter().chain(NoteCode::ALL.map(NoteCode::name));
        for code in codes().filter(|code| kind_of(code) == Some(WarningKind::Wrong)) {
            assert!(of_code(code).is_some(), "{code}");
        }
        assert_eq!(of_code("other_cache_state").unwrap().1, Usability::Unusable);
        assert_eq!(of_code("stopped").unwrap().1, Usability::WithCaution);
        assert!(of_code("warmed_up").is_none() && of_code("script_note").is_none());
        let run = Observation { warnings: vec!["of_another_version\n".to_owned()], ..Observation::default() };
        let found = of_runs(&[&[run]]);
        let text = "in all runs there is an unknown warning (`of_another_version\\n`)";
        assert_eq!((found[0].text.as_str(), found[0].leaves), (text, Usability::WithCaution));
    }

    #[test]
    fn a_caution_without_room_is_a_note() {
        let caution = |text: &str, note: &str| {
            Caution::new(Usability::WithCaution, text).instead_of(Some(note.to_owned()).filter(|note| !note.is_empty()))
        };
        let notes = ["of a", "of none", "of d", "said"].map(str::to_owned);
        let mut answer = Answer::default();
        let all = [("a", "of a"), ("", "said"), ("b", ""), ("c", ""), ("d", "of d"), ("e", "")];
        let left = add(&mut answer, &all.map(|(text, note)| caution(text, note)), &notes);
        assert_eq!(
            (&answer.cautions[..], &left[..]),
            (&["a", "b", "c"].map(str::to_owned)[..], &["of none", "of d", "caution: e"].map(str::to_owned)[..])
        );
    }
}
