//! Warns of random I/O that is larger than its file or working set, and of a Zipf distribution over another number of
//! items than there are files to pick by `indexed=`.

use super::Subject;
use crate::diag::{Code, Diagnostic};
use crate::model::{FilesetDef, ModelValue, RandomCall, eval_exact};
use crate::spec::Role;
use std::cmp::Ordering;
use wml_text::count::count;

/// The items of a Zipf distribution without `items=`.
const ITEMS: f64 = 1000.0;

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

pub(super) fn items(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (process, thread) in subject.threads() {
        if process.dialect.semantics().indexed_scaled {
            continue;
        }
        for used in &subject.body(thread) {
            let Some((ModelValue::Random(random), _)) = used.known.get("indexed") else { continue };
            let value = |name: &str| eval_exact(random.field(name)?, &subject.scope).ok();
            let kind = value("type").filter(|_| random.call == RandomCall::Randvar);
            let is_zipf = kind.is_some_and(|kind| kind.print() == "zipf");
            // Such values are no numbers of files, or of a part of them only.
            let is_moved = ["lower", "unit"].iter().any(|name| random.field(name).is_some());
            let of_directories = [Role::MakesDirectory, Role::RemovesDirectory].iter().any(|role| used.is(*role));
            if !is_zipf || is_moved || of_directories {
                continue;
            }
            let items = match random.field("items") {
                Some(_) => value("items").and_then(|items| items.as_f64()),
                None => Some(ITEMS),
            };
            let set = used.text("filesetname").and_then(|name| Some((subject.fileset(&name)?, name)));
            let files = set.as_ref().and_then(|(set, _)| super::int(&set.attrs, "entries", &subject.scope));
            let (Some(items), Some(files), Some((set, name))) = (items, files, set) else { continue };
            let (items, span) = (items as u64, random.field("items").map_or(random.span, |items| items.span));
            let effect = match items.cmp(&files) {
                Ordering::Equal => continue,
                Ordering::Greater => "several items are the same file",
                Ordering::Less => "the others are never picked",
            };
            let message = format!("{} for the {} of `{name}`: {effect}", count(items, "item"), count(files, "file"));
            let d = Diagnostic::warning(Code::ItemsOfFiles, span, message);
            let entries = set.attrs.get("entries").map_or(set.span, |used| used.value.span);
            found.push(d.also(entries, "its files").help("give the random variable `items=` with the number of files"));
        }
    }
}
