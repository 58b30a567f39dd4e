//! Warns of a `semblock` without a post and a `block` without a `wakeup`: their threads wait to the end of the run.

use super::{Subject, Use};
use crate::diag::{Code, Diagnostic};
use crate::spec::Role;
use std::collections::{HashMap, HashSet};

pub(super) fn dead(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let bodies: Vec<_> = subject.threads().map(|(_, thread)| subject.body(thread)).collect();
    let all = || bodies.iter().flatten();
    // An unknown target or name may be any.
    if subject.loads || all().any(|u| (u.has("target") && u.text("target").is_none()) || u.name.is_none()) {
        return;
    }
    let mut targets: HashMap<&str, HashSet<String>> = HashMap::new();
    for used in all() {
        targets.entry(used.kind()).or_default().extend(used.text("target"));
    }
    for waiting in all() {
        let Some((kind, verb)) = awaited(waiting) else { continue };
        let name = waiting.label();
        let inner = name.rsplit('.').next();
        let is_target = |name: &str| targets.get(kind).is_some_and(|names| names.contains(name));
        if is_target(&name) || inner.is_some_and(is_target) {
            continue;
        }
        found.push(
            Diagnostic::warning(
                Code::DeadSemaphore,
                waiting.flowop.span,
                format!("nothing {verb} `{name}`, so that its thread waits to the end of the run"),
            )
            .help(format!("add a `flowop {kind} name=…,target={name}` to another thread")),
        );
    }
}

/// The type of flowop that this one waits for, and the verb for what that does to it.
fn awaited(used: &Use<'_>) -> Option<(&'static str, &'static str)> {
    let spec = used.flowop.spec?;
    // A flowop that waits for 0 posts does not wait.
    if spec.uses.contains(&"value") && used.int("value").unwrap_or(u64::from(used.has("value"))) == 0 {
        return None;
    }
    spec.roles.iter().find_map(|role| match role {
        Role::WaitsFor { kind, verb } => Some((*kind, *verb)),
        _ => None,
    })
}
