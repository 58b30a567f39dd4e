//! Warns of file slots that are opened twice, closed without being open, or used for two file sets. Two iterations of
//! each loop are simulated: an error there occurs in every run.

use super::{Subject, Use};
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::spec::Role;
use std::collections::HashMap;

/// The state of a slot.
#[derive(Clone)]
enum SlotUse {
    /// Open, with a file of that set if it is known, since the flowop at this place.
    Open(Option<String>, Span),
    /// Closed, with the set of its last file.
    Closed(Option<String>),
    Unknown,
}

pub(super) fn misused(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (_, thread) in subject.threads() {
        if thread.attrs.get("mix").is_some() {
            continue;
        }
        let body = subject.body(thread);
        // Threads with unknown slots are skipped.
        if body.iter().any(|u| u.has("fd") && u.int("fd").is_none()) {
            continue;
        }
        let mut slots: HashMap<u64, SlotUse> = HashMap::new();
        for iteration in 0..2 {
            for used in &body {
                if let Some(d) = step(used, &mut slots, iteration) {
                    found.push(d);
                    // Errors that follow from this one are not reported.
                    slots.insert(used.int("fd").unwrap_or(0), SlotUse::Unknown);
                }
            }
        }
    }
}

fn step(used: &Use<'_>, slots: &mut HashMap<u64, SlotUse>, iteration: u32) -> Option<Diagnostic> {
    let fd = used.int("fd").unwrap_or(0);
    let certain = used.times.is_some() && !used.flag("opennext");
    let slot = slots.entry(fd).or_insert(SlotUse::Closed(None));
    if fd == 0 || used.times == Some(0) {
        return None;
    }
    if !certain {
        *slot = SlotUse::Unknown;
        return None;
    }
    let set = used.text("filesetname");
    let warn = |message: String| Diagnostic::warning(Code::SlotUse, used.flowop.span, message);
    match slot.clone() {
        SlotUse::Unknown => {}
        SlotUse::Open(_, since) if used.is(Role::OpensSlot) => {
            let again = if iteration == 0 { "is still open" } else { "is still open from the previous iteration" };
            return Some(
                warn(format!("`{}` opens slot {fd}, which {again}", used.label()))
                    .also(since, "opened here")
                    .help("close it first, or use another `fd=`"),
            );
        }
        SlotUse::Closed(_) if used.is(Role::OpensSlot) => {
            if used.iters > Some(1) {
                let message = format!("`{}` opens slot {fd} several times in a row", used.label());
                return Some(warn(message).help("close it in between, or use `opennext`"));
            }
            *slot = SlotUse::Open(set, used.flowop.span);
        }
        SlotUse::Closed(_) if used.is(Role::ClosesSlot) => {
            let message = format!("`{}` closes slot {fd}, which is not open", used.label());
            return Some(
                warn(message).help("open it first: a `closefile` needs an `openfile` or `createfile` before it"),
            );
        }
        SlotUse::Open(held, _) if used.is(Role::ClosesSlot) => {
            *slot = SlotUse::Closed(held);
            if used.iters > Some(1) {
                let message = format!("`{}` closes slot {fd} several times in a row", used.label());
                return Some(warn(message).help("leave `iters=` out"));
            }
        }
        SlotUse::Open(held, since) if used.is(Role::UsesSlot) => {
            if let (Some(held), Some(wanted)) = (held, set)
                && held != wanted
            {
                return Some(
                    warn(format!("`{}` works on `{wanted}`, and slot {fd} holds a file of `{held}`", used.label()))
                        .also(since, "opened here")
                        .help("use another `fd=` for each file set"),
                );
            }
        }
        SlotUse::Closed(held) if used.is(Role::UsesSlot) => {
            let Some(wanted) = set else {
                let message = format!("`{}` works on slot {fd}, which is not open", used.label());
                return Some(warn(message).help("open it first, or add `filesetname=`"));
            };
            if let Some(held) = held.filter(|held| *held != wanted) {
                let message =
                    format!("`{}` works on `{wanted}`, and slot {fd} is that of a file of `{held}`", used.label());
                return Some(warn(message).help("use another `fd=` for each file set"));
            }
            *slot = SlotUse::Open(Some(wanted), used.flowop.span);
        }
        SlotUse::Closed(_) if used.is(Role::NeedsSlot) => {
            let message = format!("`{}` works on slot {fd}, which is not open", used.label());
            return Some(warn(message).help("open or write the file first"));
        }
        SlotUse::Open(_, since) if used.moved().is_some() => *slot = SlotUse::Open(used.text("toset"), since),
        SlotUse::Closed(_) if used.moved().is_some() => *slot = SlotUse::Closed(used.text("toset")),
        SlotUse::Closed(_) if used.is(Role::FreesSlot) => *slot = SlotUse::Closed(None),
        SlotUse::Open(_, since) if used.is(Role::FreesSlot) => *slot = SlotUse::Open(None, since),
        SlotUse::Open(..) | SlotUse::Closed(_) => {}
    }
    None
}
