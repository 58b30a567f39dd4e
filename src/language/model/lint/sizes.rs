//! Warns of random I/O that is larger than its file or working set.

use super::Subject;
use crate::diag::{Code, Diagnostic};
use crate::model::FilesetDef;

pub(super) fn small(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (_, thread) in subject.threads() {
        for used in subject.body(thread).iter().filter(|u| u.has("random") && u.flag("random")) {
            let Some(iosize) = used.int("iosize").filter(|n| *n > 0) else { continue };
            let set = used.text("filesetname").and_then(|name| subject.fileset(&name));
            let size = set.and_then(|set| constant_size(subject, set));
            let workingset = used.int("workingset").filter(|n| *n > 0);
            let Some(room) = workingset.or(size) else { continue };
            if iosize > room {
                let what = if workingset.is_some() { "working set" } else { "file" };
                let mut d = Diagnostic::warning(
                    Code::SmallFile,
                    used.at("iosize"),
                    format!("`{}` does {iosize} bytes at random in a {what} of {room} bytes", used.label()),
                );
                if let Some(set) = set.filter(|_| what == "file") {
                    d = d.also(set.attrs.get("size").map_or(set.span, |used| used.value.span), "its size");
                }
                found.push(d.help("make `iosize` smaller or the file larger"));
            }
        }
    }
}

/// The size of the files of a set, if it is the same for all.
fn constant_size(subject: &Subject<'_>, set: &FilesetDef) -> Option<u64> {
    let semantics = set.dialect.semantics();
    let gamma = match set.attrs.get("filesizegamma") {
        Some(_) => super::int(&set.attrs, "filesizegamma", &subject.scope)?,
        None if set.single => 0,
        None => semantics.fileset_size_gamma,
    };
    if gamma > 0 || set.attrs.get("sizetable").is_some() {
        return None;
    }
    match set.attrs.get("size") {
        Some(_) => super::int(&set.attrs, "size", &subject.scope),
        None => Some(semantics.default_size),
    }
}
