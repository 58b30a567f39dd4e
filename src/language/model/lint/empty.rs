//! Warns of reads of files that stay empty: they have no size, or are created without content, and no flowop writes to
//! them. Random reads of files without a size are the subject of `sizes`.

use super::{Subject, Use, exhausted};
use crate::diag::{Code, Diagnostic};
use crate::model::FilesetDef;
use crate::source::Span;
use crate::spec::{Flowop, IoDirection, Role};
use std::collections::{HashMap, HashSet};

pub(super) fn reads(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let bodies: Vec<Vec<Use<'_>>> = subject.threads().map(|(_, thread)| subject.body(thread)).collect();
    if subject.loads {
        return;
    }
    let Some(filled) = filled(&bodies) else { return };
    let makes = |used: &&Use<'_>| used.moved().is_none() && used.is(Role::MakesFile);
    let made: HashSet<String> = bodies.iter().flatten().filter(makes).filter_map(|u| u.text("filesetname")).collect();
    let mut reported = HashSet::new();
    for body in &bodies {
        let slots = NamedSlots::new(body);
        for used in body.iter().filter(|used| used.is(Role::UsesSlot) && used.flowop.spec.is_some_and(is_read)) {
            let Some(name) = slots.set_of(used).filter(|name| !filled.contains(name)) else { continue };
            let Some(set) = subject.fileset(&name) else { continue };
            let Some((at, help)) = stays_empty(subject, set, used, made.contains(&name)) else { continue };
            let message = format!("`{}` reads files of `{name}`, which are empty", used.label());
            if reported.insert(name) {
                let report = Diagnostic::warning(Code::EmptyFile, used.flowop.span, message);
                found.push(report.also(at, "nothing gives them content").help(help));
            }
        }
    }
}

fn is_read(spec: &Flowop) -> bool {
    spec.direction == IoDirection::Read
}

/// Whether a flowop may give a file content, or take all of it away and leave that unknown: any operation with a size
/// that is no read.
fn may_fill(spec: &Flowop) -> bool {
    let sized = spec.uses.contains(&"iosize") || spec.is(Role::TakesSpace);
    spec.class.is_io() && !is_read(spec) && sized
}

/// The file sets whose files may get content from a flowop. `None` if it may be any set.
fn filled(bodies: &[Vec<Use<'_>>]) -> Option<HashSet<String>> {
    let mut sets = HashSet::new();
    for body in bodies {
        let slots = NamedSlots::new(body);
        for used in body {
            let spec = used.flowop.spec?;
            let unknown = |attr: &&str| used.has(attr) && used.text(attr).is_none();
            if spec.is(Role::RunsCommand) || ["filesetname", "toset"].iter().any(unknown) {
                return None;
            }
            if let Some((_, to)) = used.moved() {
                sets.insert(to);
            }
            if may_fill(spec) && (used.has("filesetname") || used.has("fd")) {
                sets.insert(slots.set_of(used)?);
            }
        }
    }
    Some(sets)
}

/// For each slot that flowops of a thread name together with a set: the only such set, or `None` if there are several.
struct NamedSlots(HashMap<u64, Option<String>>);

impl NamedSlots {
    fn new(body: &[Use<'_>]) -> Self {
        let mut sets: HashMap<u64, Option<String>> = HashMap::new();
        for (slot, set) in body.iter().filter_map(|used| Some((used.int("fd")?, used.text("filesetname")?))) {
            let known = sets.entry(slot).or_insert_with(|| Some(set.clone()));
            known.take_if(|other| *other != set);
        }
        Self(sets)
    }

    /// The set that a flowop works on: the one that it names, or the only one that flowops with its slot name.
    fn set_of(&self, used: &Use<'_>) -> Option<String> {
        if used.has("filesetname") {
            return used.text("filesetname");
        }
        let slot = used.int("fd").filter(|slot| *slot > 0)?;
        self.0.get(&slot)?.clone()
    }
}

/// Returns why all files of a set are empty unless a flowop writes to them, as a place in its definition and a help.
/// `None` if they are not, or it is not certain. `made`: whether a flowop creates files of it.
fn stays_empty(subject: &Subject<'_>, set: &FilesetDef, used: &Use<'_>, made: bool) -> Option<(Span, &'static str)> {
    if ["sizetable", "symlinks", "reuse", "trusttree"].iter().any(|attr| set.attrs.get(attr).is_some()) {
        return None;
    }
    let size = match set.attrs.get("size") {
        Some(_) => super::int(&set.attrs, "size", &subject.scope),
        None => Some(set.dialect.semantics().default_size),
    };
    // None of its files exists at first: either a flowop makes them, or `exhausted` reports it.
    let none_exists = exhausted::starts_empty(subject, set);
    let created_empty = exhausted::is_created_empty(subject, set);
    if size == Some(0) && (!none_exists || made) {
        let at = set.attrs.get("size").map_or(set.span, |size| size.value.span);
        (!used.flag("random")).then_some((at, "give the files a `size`, or write to them before"))
    } else if created_empty || (none_exists && made) {
        Some((set.span, "add `prealloc` to the file set, or write to the files before: a new file is empty"))
    } else {
        None
    }
}
