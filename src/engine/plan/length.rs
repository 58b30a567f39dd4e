//! How long a run lasts, as far as its plan says.

use super::compile::Definitions;
use super::phases::{EndCause, definitions_of_phases, ends};
use super::{Plan, Process, Thread};
use std::time::Duration;
use wml_language::diag::{Code, Diagnostic};
use wml_language::model::QuitMode;
use wml_text::count::count;

/// Says how long a run with this limit lasts: `for 10 s in 2 phases`.
pub fn how_long(plan: &Plan, limit: Option<Duration>) -> String {
    let phases = phases_length(plan);
    match (limit, phases) {
        (Some(limit), _) if phases.is_none_or(|length| limit <= length) => format!("for {} s", limit.as_secs_f64()),
        (_, Some(length)) => {
            let phases = if plan.phases.len() > 1 {
                format!(" in {}", count(plan.phases.len() as u64, "phase"))
            } else {
                String::new()
            };
            format!("for {} s{phases}", length.as_secs_f64())
        }
        _ if endless(plan, &ends(plan)).is_some() => "without a time limit, and nothing else ends it".to_owned(),
        _ => "until its work is done".to_owned(),
    }
}

/// The time after which the last phase ends at the latest, if each ends after a time (`for=`).
fn phases_length(plan: &Plan) -> Option<Duration> {
    let times = plan.phase_times();
    definitions_of_phases(plan).keys().try_fold(Duration::ZERO, |end, phase| {
        let times = times[phase];
        Some(end.max(times.start.unwrap_or_default()) + times.length?)
    })
}

/// Returns the first thread definition because of which a run without a limit never ends. `ends`: what can end each.
pub(super) fn endless<'a>(plan: &'a Plan, ends: &[EndCause]) -> Option<(&'a Process, &'a Thread)> {
    let runs = || plan.threads().zip(ends).filter(|((process, _), _)| process.instances > 0);
    let needs_all = plan.mode == QuitMode::AllDone || runs().all(|(_, end)| *end == EndCause::Nothing);
    let is_counted =
        runs().any(|((process, _), end)| matches!(end, EndCause::Count(_)) && !ends_thread_only(plan, process));
    runs().find(|(_, end)| needs_all && !is_counted && **end == EndCause::Nothing).map(|(definition, _)| definition)
}

/// Warns of a run without a limit that nothing ends. `definitions`: those that the plan is made of.
pub fn never_ended(definitions: &Definitions, plan: &Plan) -> Option<Diagnostic> {
    let (_, endless) = endless(plan, &ends(plan))?;
    let defined = definitions.processes.iter().flat_map(|process| &process.threads);
    let (_, def) = plan.threads().zip(defined).find(|((_, thread), _)| std::ptr::eq(*thread, endless))?;
    let message = format!("nothing ends thread `{}`, and so nothing ends the run", endless.name);
    let help = "give its process `for=SECONDS`, the thread a `finishoncount`, or the command line `--runtime SECONDS`";
    Some(Diagnostic::warning(Code::NeverEnds, def.span, message).help(help))
}

/// True if a count ends only its thread, not the run.
pub(super) fn ends_thread_only(plan: &Plan, process: &Process) -> bool {
    plan.mode == QuitMode::AllDone && !process.dialect.semantics().finish_ends_run
}
