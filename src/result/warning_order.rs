//! The order in which reports list the warnings of a run. Not here: their conditions (`warning_rules`) and texts
//! (`warnings`).

use super::warnings::{Warning, is_derived, of};
use super::{Document, Run};

/// What a warning is about: the most serious first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// The run did not do what was asked for, or the figures leave out a part of it. No report leaves these out.
    Wrong,
    /// Other programs, the kernel or the device disturbed the run.
    Disturbed,
    /// Which cache was measured.
    Cache,
    /// How to get better figures.
    Advice,
}

/// The codes of all warnings and notes, in the order of a report.
#[rustfmt::skip]
const ORDER: [(WarningKind, &[&str]); 4] = [
    (WarningKind::Wrong, &["not_mounted", "exhausted", "waited_to_the_end", "ended_in_warmup", "unstable", "errors",
        "not_complete", "no_operations", "phase_not_started", "phase_not_complete", "phase_late", "other_cache_state",
        "ranks_overlap", "late_ops", "starved"]),
    (WarningKind::Disturbed, &["stopped", "stalled", "processor_bound", "shared_devices", "not_quiesced",
        "wakeup_latency", "unsteady", "not_steady"]),
    (WarningKind::Cache, &["memory_file_system", "fits_in_memory", "cache_unknown", "warmed_up", "not_looked_at"]),
    (WarningKind::Advice, &["short_run", "warmup_not_steady", "few_operations", "few_for_percentiles", "tool_bound",
        "shared_descriptors", "not_compared", "script_note"]),
];

/// A warning as a report lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedWarning {
    pub kind: WarningKind,
    /// What `wmlrun explain` knows.
    pub code: String,
    pub message: String,
    /// What to do; a note has none.
    pub advice: Option<&'static str>,
}

/// Returns the warnings of a run, those that its figures show and its notes, in the order of a report.
pub fn listed(document: &Document, run: &Run) -> Vec<ListedWarning> {
    let derived = of(document, run);
    let derived =
        derived.iter().map(|warning| (warning.code().to_owned(), warning.message(), Some(Warning::advice(warning))));
    let notes = run.warnings.iter().filter(|note| !is_derived(note));
    let all = derived.chain(notes.map(|note| (note.code.clone(), note.message.clone(), None)));
    let mut found: Vec<(usize, ListedWarning)> = all
        .map(|(code, message, advice)| {
            let (place, kind) = place_of(&code);
            (place, ListedWarning { kind, code, message, advice })
        })
        .collect();
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, warning)| warning).collect()
}

/// What a code is about; `None` for one of another version.
pub fn kind_of(code: &str) -> Option<WarningKind> {
    Some(place_of(code)).filter(|(place, _)| *place > 0).map(|(_, kind)| kind)
}

/// Returns the place of a code in the order, and its kind. A code of another version stands before all: it may say that
/// the figures are wrong.
fn place_of(code: &str) -> (usize, WarningKind) {
    let codes = ORDER.iter().flat_map(|(kind, codes)| codes.iter().map(move |code| (*code, *kind)));
    let known = (1..).zip(codes).find(|(_, (known, _))| *known == code);
    known.map_or((0, WarningKind::Wrong), |(place, (_, kind))| (place, kind))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fixture;
    use super::super::warnings::{CODES, unfulfilled};
    use super::super::{Note, NoteCode};
    use super::{ORDER, WarningKind, listed, place_of};

    #[test]
    fn every_code_has_one_place() {
        let mut all: Vec<&str> = ORDER.iter().flat_map(|(_, codes)| codes.iter().copied()).collect();
        let mut known: Vec<&str> = CODES.into_iter().chain(NoteCode::ALL.map(NoteCode::name)).collect();
        all.sort_unstable();
        known.sort_unstable();
        assert_eq!(all, known);
    }

    #[test]
    fn warnings_of_another_order_are_sorted() {
        let mut document = fixture();
        let note = |code: &str| Note { code: code.to_owned(), message: code.to_owned() };
        document.runs[0].warnings =
            ["script_note", "warmed_up", "of_another_version", "stopped", "exhausted"].map(note).into();
        document.runs[0].measured_seconds = 4.0;
        let found = listed(&document, &document.runs[0]);
        let codes: Vec<&str> = found.iter().map(|warning| warning.code.as_str()).collect();
        let sorted = ["of_another_version", "exhausted", "errors", "stopped", "warmed_up", "short_run"];
        assert_eq!(codes[..6], sorted, "{codes:?}");
        assert_eq!(codes.last(), Some(&"script_note"));
    }

    /// Formats without warnings print those, so a report must not leave them out.
    #[test]
    fn what_was_not_done_as_asked_is_never_left_out() {
        let document = fixture();
        for code in NoteCode::ALL {
            let mut run = document.runs[0].clone();
            let before = unfulfilled(&document, &run).len();
            run.warnings.push(code.note("something"));
            if unfulfilled(&document, &run).len() > before {
                assert_eq!(place_of(code.name()).1, WarningKind::Wrong, "{}", code.name());
            }
        }
        for code in ["errors", "phase_not_started", "phase_late", "no_operations", "unstable", "not_complete"] {
            assert_eq!(place_of(code).1, WarningKind::Wrong, "{code}");
        }
    }
}
