//! Slots that are opened twice, closed without being open, or used for two file sets: two rounds of each loop are gone
//! through, and what fails there fails in every run.

use super::{Subject, Use};
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use std::collections::HashMap;

/// A slot as far as it is known.
#[derive(Clone)]
enum Slot {
    /// Open, with a file of that set (if it can be told), since there.
    Open(Option<String>, Span),
    /// Closed; the set of its last file.
    Closed(Option<String>),
    /// Something that can't be told has happened to it.
    Unknown,
}

/// Flowops that work on the file in a slot, and open one of their set if it is closed.
const ON_FILES: &[&str] = &[
    "read",
    "write",
    "readwholefile",
    "writewholefile",
    "appendfile",
    "appendfilerand",
    "aioread",
    "aiowrite",
    "bufread",
    "bufwrite",
    "mmapread",
    "mmapwrite",
    "truncate",
    "fallocate",
    "punchhole",
    "copyrange",
    "setxattr",
    "getxattr",
    "syncfs",
];

pub(super) fn misused(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (_, thread) in subject.threads() {
        if thread.attrs.get("mix").is_some() {
            continue;
        }
        let body = subject.body(thread);
        // A thread whose slots can't be told, and the first slot, which several flowops may mean by naming none.
        if body.iter().any(|u| u.has("fd") && u.int("fd").is_none()) {
            continue;
        }
        let mut slots: HashMap<u64, Slot> = HashMap::new();
        for round in 0..2 {
            for used in &body {
                if let Some(d) = step(used, &mut slots, round) {
                    found.push(d);
                    // What follows from a mistake is none of its own.
                    slots.insert(used.int("fd").unwrap_or(0), Slot::Unknown);
                }
            }
        }
    }
}

fn step(used: &Use<'_>, slots: &mut HashMap<u64, Slot>, round: u32) -> Option<Diagnostic> {
    let fd = used.int("fd").unwrap_or(0);
    let certain = used.times.is_some() && !used.flag("opennext");
    let slot = slots.entry(fd).or_insert(Slot::Closed(None));
    if fd == 0 || used.times == Some(0) {
        return None;
    }
    if !certain {
        *slot = Slot::Unknown;
        return None;
    }
    let set = used.text("filesetname");
    let warn = |message: String| Diagnostic::warning(Code::SlotUse, used.flowop.span, message);
    match (used.kind(), slot.clone()) {
        (_, Slot::Unknown) => {}
        ("openfile" | "createfile", Slot::Open(_, since)) => {
            let again = if round == 0 { "is still open" } else { "is still open from the round before" };
            return Some(
                warn(format!("`{}` opens slot {fd}, which {again}", used.label()))
                    .also(since, "opened here")
                    .help("close it first, or use another `fd=`"),
            );
        }
        ("openfile" | "createfile", Slot::Closed(_)) => {
            if used.iters > Some(1) {
                let message = format!("`{}` opens slot {fd} several times in a row", used.label());
                return Some(warn(message).help("close it in between, or use `opennext`"));
            }
            *slot = Slot::Open(set, used.flowop.span);
        }
        ("closefile", Slot::Closed(_)) => {
            let message = format!("`{}` closes slot {fd}, which is not open", used.label());
            return Some(
                warn(message).help("open it first: a `closefile` needs an `openfile` or `createfile` before it"),
            );
        }
        ("closefile", Slot::Open(held, _)) => {
            *slot = Slot::Closed(held);
            if used.iters > Some(1) {
                let message = format!("`{}` closes slot {fd} several times in a row", used.label());
                return Some(warn(message).help("leave `iters=` out"));
            }
        }
        (kind, Slot::Open(held, since)) if ON_FILES.contains(&kind) => {
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
        (kind, Slot::Closed(held)) if ON_FILES.contains(&kind) => {
            let Some(wanted) = set else {
                let message = format!("`{}` works on slot {fd}, which is not open", used.label());
                return Some(warn(message).help("open it first, or add `filesetname=`"));
            };
            if let Some(held) = held.filter(|held| *held != wanted) {
                let message =
                    format!("`{}` works on `{wanted}`, and slot {fd} is that of a file of `{held}`", used.label());
                return Some(warn(message).help("use another `fd=` for each file set"));
            }
            *slot = Slot::Open(Some(wanted), used.flowop.span);
        }
        ("fsync" | "fdatasync", Slot::Closed(_)) => {
            let message = format!("`{}` works on slot {fd}, which is not open", used.label());
            return Some(warn(message).help("open or write the file first"));
        }
        // `deletefile` forgets the file of its slot.
        ("deletefile", Slot::Closed(_)) => *slot = Slot::Closed(None),
        ("deletefile", Slot::Open(_, since)) => *slot = Slot::Open(None, since),
        _ => {}
    }
    None
}
