//! A `semblock` that nobody posts to, a `block` that nobody wakes: their threads wait to the end of the run.

use super::Subject;
use crate::diag::{Code, Diagnostic};
use std::collections::HashSet;

pub(super) fn dead(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let bodies: Vec<_> = subject.threads().map(|(_, thread)| subject.body(thread)).collect();
    let all = || bodies.iter().flatten();
    // A target, or a name, that can't be told may be any.
    if subject.loads || all().any(|u| (u.has("target") && u.text("target").is_none()) || u.name.is_none()) {
        return;
    }
    for (waits, wakes, what) in [("semblock", "sempost", "posts to"), ("block", "wakeup", "wakes")] {
        let targets: HashSet<String> = all().filter(|u| u.kind() == wakes).filter_map(|u| u.text("target")).collect();
        for waiting in all().filter(|u| u.kind() == waits) {
            let name = waiting.label();
            let inner = name.rsplit('.').next();
            if targets.contains(&name) || inner.is_some_and(|inner| targets.contains(inner)) {
                continue;
            }
            // Without a number of posts to wait for there is nothing to wait for.
            if waits == "semblock" && waiting.int("value").unwrap_or(u64::from(waiting.has("value"))) == 0 {
                continue;
            }
            found.push(
                Diagnostic::warning(
                    Code::DeadSemaphore,
                    waiting.flowop.span,
                    format!("nothing {what} `{name}`, so that its thread waits to the end of the run"),
                )
                .help(format!("add a `flowop {wakes} name=…,target={name}` to another thread")),
            );
        }
    }
}
