//! Warns of rates that are impossible because of the delays of a loop, and of limiters without `target=` in a process
//! with I/O of other threads, which they limit too.

use super::{Subject, Use};
use crate::diag::{Code, Diagnostic};
use crate::model::{Attrs, CommandKind, ModelValue, ProcessDef, ThreadDef, eval, eval_exact};
use crate::spec::Role;
use wml_text::count::count;

const LIMITERS: [&str; 3] = ["bwlimit", "iopslimit", "opslimit"];
/// How many threads a warning names.
const MOST_NAMED: usize = 3;

pub(super) fn too_high(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (process, thread) in subject.threads() {
        let rate_of = |name: &str| {
            let used = thread.attrs.get(name)?;
            Some((used, eval_exact(&used.value, &subject.scope).ok()?.as_f64()?))
        };
        let Some(seconds) = sleeps(&subject.body(thread), thread.attrs.get("mix").is_some()) else { continue };
        let help = "lower the rate, start more threads, or leave the `delay` out: a thread with a rate waits already";
        let too_high = |at, message: String| Diagnostic::warning(Code::RateTooHigh, at, message).help(help);
        if let Some((used, rate)) = rate_of("rate").filter(|(_, rate)| seconds * rate > 1.0) {
            let message = format!("`rate={rate}`, but each iteration of the thread sleeps {seconds} s");
            found.push(too_high(used.value.span, message));
        }
        if let Some((used, rate)) = rate_of("totalrate")
            && let Some(threads) = threads(subject, process, thread).filter(|n| seconds * rate > *n as f64)
        {
            let message = format!(
                "`totalrate={rate}`, but each iteration of the {} sleeps {seconds} s",
                count(threads, "thread")
            );
            found.push(too_high(used.value.span, message));
        }
    }
    events(subject, found);
}

/// The number of threads of a definition, if it is certain.
fn threads(subject: &Subject<'_>, process: &ProcessDef, thread: &ThreadDef) -> Option<u64> {
    let number = |attrs: &Attrs| match attrs.get("instances") {
        None => Some(1),
        Some(_) => super::int(attrs, "instances", &subject.scope),
    };
    number(&process.attrs)?.checked_mul(number(&thread.attrs)?.max(1))
}

/// The least number of seconds that an iteration sleeps.
fn sleeps(body: &[Use<'_>], mix: bool) -> Option<f64> {
    if mix {
        return None;
    }
    let delays = body.iter().filter(|u| u.is(Role::Sleeps));
    delays.map(|u| Some(u.times? as f64 * u.known.get("value")?.0.as_f64()?)).sum()
}

/// Compares the rate of the event generator with the threads that take its events, if all of them sleep.
fn events(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let rate = subject.commands.iter().rev().find_map(|c| match &c.kind {
        CommandKind::EventGen(Some(rate)) => Some(rate),
        _ => None,
    });
    let Some(rate) = rate else { return };
    let Some(wanted) = eval(rate, &subject.scope).ok().as_ref().and_then(ModelValue::as_f64) else { return };
    let mut most = 0.0;
    for (process, thread) in subject.threads() {
        let body = subject.body(thread);
        if body.iter().any(|u| u.is(Role::TakesEvents)) {
            // This flowop takes as many events as others have done operations.
            return;
        }
        let taken: Option<u64> = body
            .iter()
            .filter(|u| u.is(Role::TakesEvent))
            .map(|u| u.times)
            .try_fold(0, |sum: u64, one| sum.checked_add(one?));
        let mix = thread.attrs.get("mix").is_some();
        match (taken, sleeps(&body, mix), threads(subject, process, thread)) {
            (Some(0), _, _) => {}
            (Some(taken), Some(seconds), Some(threads)) if seconds > 0.0 => {
                most += taken as f64 * threads as f64 / seconds;
            }
            _ => return,
        }
    }
    if most > 0.0 && wanted > most {
        found.push(
            Diagnostic::warning(
                Code::RateTooHigh,
                rate.span,
                format!("{wanted} events a second, of which threads that sleep take at most {most} a second"),
            )
            .help("lower the rate, start more threads, or leave the `delay` out"),
        );
    }
}

pub(super) fn of_process(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for process in &subject.processes {
        let bodies: Vec<_> = process.threads.iter().map(|thread| (thread, subject.body(thread))).collect();
        let has_io = |thread: &ThreadDef| {
            let body = bodies.iter().find(|(other, _)| std::ptr::eq(*other, thread));
            body.is_some_and(|(_, uses)| uses.iter().any(|u| u.flowop.spec.is_some_and(|spec| spec.class.is_io())))
        };
        for (thread, uses) in &bodies {
            let limiters = uses.iter().filter(|used| LIMITERS.contains(&used.kind()) && !used.has("target"));
            let others = process.threads.iter().filter(|other| !std::ptr::eq(*other, *thread) && has_io(other));
            let names: Vec<String> = others
                .filter_map(|other| super::text(&other.attrs, "name", &subject.scope))
                .map(|name| format!("`{name}`"))
                .collect();
            for used in limiters.filter(|_| !names.is_empty()) {
                let more = if names.len() > MOST_NAMED { ", …" } else { "" };
                let shown = names[..names.len().min(MOST_NAMED)].join(", ");
                let message = format!(
                    "`{}` counts the operations of the whole process, those of {shown}{more} too",
                    used.label()
                );
                found.push(
                    Diagnostic::warning(Code::LimitsProcess, used.flowop.span, message)
                        .help("`target=FLOWOP` limits that flowop only"),
                );
            }
        }
    }
}
