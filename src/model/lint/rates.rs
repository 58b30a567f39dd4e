//! Warns of rates that are impossible because of the delays of a loop.

use super::{Subject, Use};
use crate::diag::{Code, Diagnostic};
use crate::model::{CommandKind, ModelValue, eval};
use crate::spec::Role;

pub(super) fn too_high(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (_, thread) in subject.threads() {
        let Some(used) = thread.attrs.get("rate") else { continue };
        let Some(rate) = eval(&used.value, &subject.scope).ok().as_ref().and_then(ModelValue::as_f64) else { continue };
        let Some(seconds) = sleeps(&subject.body(thread), thread.attrs.get("mix").is_some()) else { continue };
        if rate > 0.0 && seconds as f64 * rate > 1.0 {
            found.push(
                Diagnostic::warning(
                    Code::RateTooHigh,
                    used.value.span,
                    format!("`rate={rate}`, but each iteration of the thread sleeps {seconds} s"),
                )
                .help("lower the rate, start more threads, or leave the `delay` out: `rate=` waits already"),
            );
        }
    }
    events(subject, found);
}

/// The least number of seconds that an iteration sleeps.
fn sleeps(body: &[Use<'_>], mix: bool) -> Option<u64> {
    if mix {
        return None;
    }
    let delays = body.iter().filter(|u| u.is(Role::Sleeps));
    delays.map(|u| u.times?.checked_mul(u.int("value")?)).try_fold(0_u64, |sum, one| sum.checked_add(one?))
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
        let number = |attrs: &crate::model::Attrs| match attrs.get("instances") {
            None => Some(1),
            Some(_) => super::int(attrs, "instances", &subject.scope),
        };
        let mix = thread.attrs.get("mix").is_some();
        let threads = number(&process.attrs).zip(number(&thread.attrs)).and_then(|(p, t)| p.checked_mul(t.max(1)));
        match (taken, sleeps(&body, mix), threads) {
            (Some(0), _, _) => {}
            (Some(taken), Some(seconds @ 1..), Some(threads)) => most += taken as f64 * threads as f64 / seconds as f64,
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
