//! What became of threads that did not work to the end, in words for the report: what the figures alone do not show.
//!
//! In: a plan, and a run that has ended. Out: notes. Deliberately absent: doubts that can be found in a stored result
//! (`result::warnings`), and whether the run as a whole went well (`record`).

use super::names::place;
use crate::model::QuitMode;
use crate::plan::Plan;
use crate::result::{FlowopResult, Note};
use crate::runtime::{Ended, Running};
use crate::util::count::count;
use crate::util::duration;
use std::time::Duration;

/// Threads that waited for others all the time, and threads for which no file was left.
pub(crate) fn on_threads(plan: &Plan, running: &Running, ended: &Ended, figures: &[FlowopResult]) -> Vec<Note> {
    let mut notes = Vec::new();
    if *ended == Ended::Time {
        for (flowop, threads) in running.held() {
            let message = format!(
                "{} waited in `{}` to the end, and came through not once; see who posts to it or wakes it, and how often",
                count(threads, "thread"),
                place(plan, flowop)
            );
            notes.push(Note { code: "waited_to_the_end".to_owned(), message });
        }
    }
    for (flowop, threads) in running.exhausted() {
        // In the other modes a run is meant to end so, but hardly before anything was done.
        if plan.mode == QuitMode::Timeout || figures.get(flowop).is_some_and(|f| f.ops == 0) {
            notes.push(Note { code: "exhausted".to_owned(), message: exhausted(plan, flowop, threads) });
        }
    }
    notes
}

/// Time in which the program did not run, and what could not be looked at.
pub(crate) fn on_waits(running: &Running) -> Vec<Note> {
    const ANSWER: Duration = Duration::from_secs(5);
    let mut notes = Vec::new();
    let stopped = running.stopped();
    if !stopped.is_zero() {
        let message = format!(
            "the program was stopped for at least {}, which is in the measured time; measure again without `SIGSTOP`",
            duration::seconds(stopped.as_secs_f64())
        );
        notes.push(Note { code: "stopped".to_owned(), message });
    }
    if running.waits_for_space(ANSWER) {
        let message = "the free space was not checked: the file system did not answer within 5 s".to_owned();
        notes.push(Note { code: "not_looked_at".to_owned(), message });
    }
    notes
}

fn exhausted(plan: &Plan, flowop: usize, threads: u64) -> String {
    let info = &plan.flowops[flowop];
    let sets: Vec<_> = info.sets.iter().filter_map(|set| plan.filesets.get(*set)).collect();
    let whole = sets.iter().filter(|set| set.part == 0);
    let names: Vec<String> = whole.map(|set| format!("`{}`", set.name)).collect();
    let of = if names.is_empty() { String::new() } else { format!(" of {}", names.join(" and ")) };
    let advice = if !sets.is_empty() && sets.iter().all(|set| set.entries + set.leafdirs == 0) {
        "the set has 0 entries: say with `entries=` how many files it has"
    } else if plan.mode == QuitMode::Timeout {
        "give the set more `entries`, another `prealloc`, or a flowop that makes up for what this one takes; \
         a run that is meant to end so says `set mode quit alldone`"
    } else {
        "give the set another `prealloc`; what a run before it left is there still, unless `shutdown filesets` removed it"
    };
    let (threads, place) = (count(threads, "thread"), super::names::place(plan, flowop));
    format!("{threads} ended early: `{place}` found no usable file{of}; {advice}")
}
