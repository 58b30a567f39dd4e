//! Warns of file sets that a run exhausts: their files are only removed, or only made until all exist.
//!
//! A script that ends after a number of operations (`finishoncount`, `set mode quit`) may do so on purpose, and is not
//! reported.

use super::{Subject, Use};
use crate::diag::{Code, Diagnostic};
use crate::model::{FilesetDef, ModelValue};
use crate::spec::{Dialect, Role};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Roles of flowops that make and remove the files of a set, or its empty directories.
struct Turnover {
    makes: Role,
    removes: Role,
    needs: Option<Role>,
    what: &'static str,
    /// The attribute with the number of them in a set.
    counted: &'static str,
}

impl Turnover {
    /// Whether the flowop makes or removes one of a set.
    fn is_of(&self, used: &Use<'_>, set: &str) -> bool {
        used.is_for(set, self.makes) || used.is_for(set, self.removes)
    }
}

const FILES: Turnover = Turnover {
    makes: Role::MakesFile,
    removes: Role::RemovesFile,
    needs: Some(Role::NeedsFile),
    what: "file",
    counted: "entries",
};

const DIRECTORIES: Turnover = Turnover {
    makes: Role::MakesDirectory,
    removes: Role::RemovesDirectory,
    needs: None,
    what: "leaf directory",
    counted: "leafdirs",
};

pub(super) fn exhausted(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.loads {
        return;
    }
    let bodies: Vec<(bool, Vec<Use<'_>>)> =
        subject.threads().map(|(_, t)| (t.attrs.get("mix").is_some(), subject.body(t))).collect();
    // An unknown set may be any set.
    let unknown = |u: &Use<'_>| ["filesetname", "toset"].iter().any(|attr| u.has(attr) && u.text(attr).is_none());
    if bodies.iter().any(|(_, body)| body.iter().any(unknown)) {
        return;
    }
    let index = SetIndex::new(&bodies);
    for set in &subject.filesets {
        let Some(name) = super::text(&set.attrs, "name", &subject.scope) else { continue };
        for turnover in [&FILES, &DIRECTORIES] {
            one(subject, set, &name, turnover, &index, found);
        }
    }
}

/// The flowops of all threads by the file set that they work on.
struct SetIndex<'b> {
    bodies: &'b [(bool, Vec<Use<'b>>)],
    /// Body and flowop by set, in source order.
    of: HashMap<String, Vec<(usize, &'b Use<'b>)>>,
    /// The first `deletefile` of each body that only names a slot. It may work on any set.
    by_slot: BTreeMap<usize, &'b Use<'b>>,
}

impl<'b> SetIndex<'b> {
    fn new(bodies: &'b [(bool, Vec<Use<'b>>)]) -> Self {
        let (mut of, mut by_slot) = (HashMap::<String, Vec<_>>::new(), BTreeMap::new());
        for (b, (_, body)) in bodies.iter().enumerate() {
            for used in body {
                if let Some((_, to)) = used.moved() {
                    of.entry(to).or_default().push((b, used));
                }
                match used.text("filesetname") {
                    Some(set) => of.entry(set).or_default().push((b, used)),
                    None if used.is(Role::RemovesFile) => drop(by_slot.entry(b).or_insert(used)),
                    None => {}
                }
            }
        }
        Self { bodies, of, by_slot }
    }
}

fn one(
    subject: &Subject<'_>,
    set: &FilesetDef,
    name: &str,
    turnover: &Turnover,
    index: &SetIndex<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let works = index.of.get(name).map_or(&[][..], Vec::as_slice);
    let of = |role: Role| works.iter().map(|(_, u)| *u).find(move |u| u.is_for(name, role));
    // It is unknown from which set a `deletefile` by slot removes files.
    let by_slot = if turnover.removes == Role::RemovesFile { index.by_slot.first_key_value() } else { None };
    let by_slot = by_slot.map(|(_, used)| *used);
    let (maker, named, needer) = (of(turnover.makes), of(turnover.removes), turnover.needs.and_then(of));
    let remover = by_slot.or(named);
    let warn = |used: &Use<'_>, message: String, help: &str| {
        Diagnostic::warning(Code::ExhaustedFileset, used.flowop.span, message).help(help)
    };
    let what = turnover.what;
    // A `deletefile` by slot may keep a set from filling up, and is never reported as the cause.
    let culprit = remover.filter(|u| u.has("filesetname"));
    if let Some(used) = needer.or(maker).or(culprit)
        && can_have_none(subject, set, turnover)
    {
        let message = format!("`{}` works on a {what} of `{name}`, which has 0 `{}`", used.label(), turnover.counted);
        let help = format!("give their number: `{}=1000`; a set without it is empty", turnover.counted);
        found.push(warn(used, message, &help));
        return;
    }
    if let (None, Some(used)) = (maker, needer.or(culprit))
        && starts_empty(subject, set)
    {
        let message = format!("`{}` needs a {what} of `{name}`, which has none, and nothing makes one", used.label());
        found.push(warn(used, message, "add `prealloc` to the file set, or a flowop that makes its files"));
        return;
    }
    // A thread without files ends, and the run goes on as long as other threads do.
    let mut at_work: BTreeSet<usize> = works.iter().filter(|(_, u)| turnover.is_of(u, name)).map(|(b, _)| *b).collect();
    let slots = if by_slot.is_some() { index.by_slot.len() } else { 0 };
    let apart = at_work.iter().filter(|b| slots == 0 || !index.by_slot.contains_key(b)).count();
    let others = apart + slots < index.bodies.len();
    if subject.ends_by_itself() || others {
        return;
    }
    match (maker, culprit) {
        (Some(used), None) if remover.is_none() => {
            let message = format!("`{}` makes one {what} of `{name}` after another until all exist", used.label());
            let help = "add a flowop that removes them, or end the run by `finishoncount` or `set mode quit alldone`";
            found.push(warn(used, message, help));
        }
        (None, Some(used)) => {
            let message = format!("`{}` removes one {what} of `{name}` after another until none is left", used.label());
            let help = "add a flowop that makes them, or end the run by `finishoncount` or `set mode quit alldone`";
            found.push(warn(used, message, help));
        }
        (Some(_), _) if by_slot.is_none() => {
            // A single thread makes and removes files.
            if let (Some(body), true) = (at_work.pop_first(), at_work.is_empty()) {
                uneven(name, turnover, &index.bodies[body], found);
            }
        }
        (Some(_), _) => {}
        (None, None) => {}
    }
}

/// Reports a thread that makes more files than it removes, or the other way round.
fn uneven(name: &str, turnover: &Turnover, (mix, body): &(bool, Vec<Use<'_>>), found: &mut Vec<Diagnostic>) {
    if *mix {
        return;
    }
    let names = |u: &Use<'_>| ["filesetname", "toset"].iter().any(|attr| u.text(attr).as_deref() == Some(name));
    let of_set = |u: &&Use<'_>| names(u) && turnover.is_of(u, name);
    let count = |role: Role| {
        let times = body.iter().filter(of_set).filter(|u| u.is_for(name, role)).map(|u| u.times);
        times.into_iter().try_fold(0_u64, |sum, one| sum.checked_add(one?))
    };
    let (Some(made), Some(removed)) = (count(turnover.makes), count(turnover.removes)) else { return };
    if made == removed {
        return;
    }
    let role = if made > removed { turnover.makes } else { turnover.removes };
    if let Some(used) = body.iter().filter(of_set).find(|u| u.is_for(name, role)) {
        found.push(
            Diagnostic::warning(
                Code::ExhaustedFileset,
                used.flowop.span,
                format!("each iteration creates {made} of the files of `{name}`, and removes {removed}"),
            )
            .help("create as many as are removed, or end the run by `finishoncount` or `set mode quit alldone`"),
        );
    }
}

/// Whether no file of the set exists when a run starts.
pub(super) fn starts_empty(subject: &Subject<'_>, set: &FilesetDef) -> bool {
    !(set.single && set.dialect == Dialect::Sun) && is_not_preallocated(subject, set)
}

/// Whether the file of a `define file` exists when a run starts, without content, as in Filebench up to 1.4.
pub(super) fn is_created_empty(subject: &Subject<'_>, set: &FilesetDef) -> bool {
    set.single && set.dialect == Dialect::Sun && is_not_preallocated(subject, set)
}

fn is_not_preallocated(subject: &Subject<'_>, set: &FilesetDef) -> bool {
    let prealloc = match set.attrs.get("prealloc") {
        None => Some(0),
        Some(used) => crate::model::eval(&used.value, &subject.scope).ok().as_ref().and_then(ModelValue::as_u64),
    };
    prealloc == Some(0)
}

/// Whether a set can't have any file, or any empty directory.
fn can_have_none(subject: &Subject<'_>, set: &FilesetDef, turnover: &Turnover) -> bool {
    if set.single || set.attrs.get("sizetable").is_some() {
        // `define file` has one file and no empty directory.
        return set.single && turnover.counted == "leafdirs";
    }
    match set.attrs.get(turnover.counted) {
        None => true,
        Some(_) => super::int(&set.attrs, turnover.counted, &subject.scope) == Some(0),
    }
}
