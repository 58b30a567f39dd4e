//! Notes on threads that did not work until the end of a run, which the figures alone do not show.
//!
//! The input is a plan and a run that has ended; the output is notes. Not here: warnings that can be derived from a
//! stored result (`result::warnings`), and the outcome of the run as a whole (`record`).

use super::names::qualified_name;
use crate::plan::Plan;
use crate::result::{FlowopResult, Note, NoteCode};
use crate::runtime::{Ended, Running};
use crate::util::count::count;
use crate::util::duration;
use std::time::Duration;

/// Returns notes on threads that waited for other threads all the time, and on threads that found no usable file.
pub(crate) fn thread_notes(plan: &Plan, running: &Running, ended: &Ended, figures: &[FlowopResult]) -> Vec<Note> {
    let mut notes = Vec::new();
    if *ended == Ended::Time {
        for (flowop, threads) in running.held() {
            let message = format!(
                "{} waited in `{}` to the end and never passed it; \
                 check which flowop posts to it or wakes it, and how often",
                count(threads, "thread"),
                qualified_name(plan, flowop)
            );
            notes.push(NoteCode::WaitedToTheEnd.note(message));
        }
    }
    for (flowop, threads) in running.exhausted() {
        // A thread may be meant to end like this, but not before anything was done.
        if !plan.flowops[flowop].may_starve || figures.get(flowop).is_some_and(|f| f.ops == 0) {
            notes.push(NoteCode::Exhausted.note(exhausted_text(plan, flowop, threads)));
        }
    }
    notes
}

/// Returns notes on time in which the program was stopped, and on free space that could not be checked.
pub(crate) fn interruption_notes(running: &Running) -> Vec<Note> {
    const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
    let mut notes = Vec::new();
    let stopped = running.stopped();
    if !stopped.is_zero() {
        let message = format!(
            "the program was stopped for at least {}, \
             which is included in the measured time; measure again without `SIGSTOP`",
            duration::seconds(stopped.as_secs_f64())
        );
        notes.push(NoteCode::Stopped.note(message));
    }
    if running.waits_for_space(ANSWER_TIMEOUT) {
        let message = "the free space was not checked: the file system was busy and did not answer within 5 s";
        notes.push(NoteCode::NotLookedAt.note(message));
    }
    notes
}

fn exhausted_text(plan: &Plan, flowop: usize, threads: u64) -> String {
    let info = &plan.flowops[flowop];
    let sets: Vec<_> = info.sets.iter().filter_map(|set| plan.filesets.get(*set)).collect();
    let whole = sets.iter().filter(|set| set.part == 0);
    let names: Vec<String> = whole.map(|set| format!("`{}`", set.name)).collect();
    let of = if names.is_empty() { String::new() } else { format!(" of {}", names.join(" and ")) };
    let advice = if !sets.is_empty() && sets.iter().all(|set| set.entries + set.leafdirs == 0) {
        "the set has 0 entries: set the number of files with `entries=`"
    } else if info.may_starve {
        "give the set another `prealloc`; files of an earlier run remain unless `shutdown filesets` removes them"
    } else {
        "give the set more `entries`, another `prealloc`, or a flowop that offsets this one; \
         if the thread is meant to end like this, give the flowop `maystarve`"
    };
    let all = plan.instances(flowop) as u64;
    let which = if threads < all { format!("{threads} of {all} threads") } else { count(threads, "thread") };
    format!("{which} ended early: `{}` found no usable file{of}; {advice}", qualified_name(plan, flowop))
}
