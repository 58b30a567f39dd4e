//! File sets that must run dry: files are taken from them, or made in them, and nothing turns that round.
//!
//! Scripts that end by what was done (`finishoncount`, `set mode quit`) do so on purpose, and are left in peace.

use super::{Subject, Use};
use crate::diag::{Code, Diagnostic};
use crate::model::FilesetDef;
use crate::spec::{Dialect, Role};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What flowops do to the files of a set, or to its empty directories.
struct Trade {
    makes: Role,
    removes: Role,
    needs: Option<Role>,
    thing: &'static str,
    /// The attribute that says how many a set has.
    counted: &'static str,
}

impl Trade {
    /// Whether the flowop makes or removes one.
    fn is_of(&self, used: &Use<'_>) -> bool {
        used.is(self.makes) || used.is(self.removes)
    }
}

const FILES: Trade = Trade {
    makes: Role::MakesFile,
    removes: Role::RemovesFile,
    needs: Some(Role::NeedsFile),
    thing: "file",
    counted: "entries",
};

const DIRECTORIES: Trade = Trade {
    makes: Role::MakesDirectory,
    removes: Role::RemovesDirectory,
    needs: None,
    thing: "leaf directory",
    counted: "leafdirs",
};

pub(super) fn exhausted(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.loads {
        return;
    }
    let bodies: Vec<(bool, Vec<Use<'_>>)> =
        subject.threads().map(|(_, t)| (t.attrs.get("mix").is_some(), subject.body(t))).collect();
    // A set that can't be told may be any.
    let unknown = |u: &Use<'_>| u.has("filesetname") && u.text("filesetname").is_none();
    if bodies.iter().any(|(_, body)| body.iter().any(unknown)) {
        return;
    }
    let index = SetIndex::new(&bodies);
    for set in &subject.filesets {
        let Some(name) = super::text(&set.attrs, "name", &subject.scope) else { continue };
        for trade in [&FILES, &DIRECTORIES] {
            one(subject, set, &name, trade, &index, found);
        }
    }
}

/// The flowops of all threads by the file set that they work on.
struct SetIndex<'b> {
    bodies: &'b [(bool, Vec<Use<'b>>)],
    /// By set: body and flowop, in order.
    of: HashMap<String, Vec<(usize, &'b Use<'b>)>>,
    /// The first `deletefile` that names only a slot, by body: it may work on any set.
    by_slot: BTreeMap<usize, &'b Use<'b>>,
}

impl<'b> SetIndex<'b> {
    fn new(bodies: &'b [(bool, Vec<Use<'b>>)]) -> Self {
        let (mut of, mut by_slot) = (HashMap::<String, Vec<_>>::new(), BTreeMap::new());
        for (b, (_, body)) in bodies.iter().enumerate() {
            for used in body {
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
    trade: &Trade,
    index: &SetIndex<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let works = index.of.get(name).map_or(&[][..], Vec::as_slice);
    let of = |role: Role| works.iter().map(|(_, u)| *u).find(move |u| u.is(role));
    // Whose files a `deletefile` by slot removes can't be told.
    let by_slot = if trade.removes == Role::RemovesFile { index.by_slot.first_key_value() } else { None };
    let by_slot = by_slot.map(|(_, used)| *used);
    let (maker, named, needer) = (of(trade.makes), of(trade.removes), trade.needs.and_then(of));
    let remover = by_slot.or(named);
    let warn = |used: &Use<'_>, message: String, help: &str| {
        Diagnostic::warning(Code::ExhaustedFileset, used.flowop.span, message).help(help)
    };
    let thing = trade.thing;
    // Whose files a `deletefile` by slot removes can't be told: it may be the cure, and is never the culprit.
    let culprit = remover.filter(|u| u.has("filesetname"));
    if let Some(used) = needer.or(maker).or(culprit)
        && has_room_for_none(subject, set, trade)
    {
        let message = format!("`{}` works on a {thing} of `{name}`, which has 0 `{}`", used.label(), trade.counted);
        let help = format!("say how many it has: `{}=1000`; a set without is empty", trade.counted);
        found.push(warn(used, message, &help));
        return;
    }
    if let (None, Some(used)) = (maker, needer.or(culprit))
        && nothing_there(subject, set)
    {
        let message = format!("`{}` needs a {thing} of `{name}`, which has none, and nothing makes one", used.label());
        found.push(warn(used, message, "add `prealloc` to the file set, or a flowop that makes its files"));
        return;
    }
    // A thread that has nothing left to do is done; the run goes on while there are others.
    let mut at_work: BTreeSet<usize> = works.iter().filter(|(_, u)| trade.is_of(u)).map(|(b, _)| *b).collect();
    let slots = if by_slot.is_some() { index.by_slot.len() } else { 0 };
    let apart = at_work.iter().filter(|b| slots == 0 || !index.by_slot.contains_key(b)).count();
    let others = apart + slots < index.bodies.len();
    if subject.ends_by_itself() || others {
        return;
    }
    match (maker, culprit) {
        (Some(used), None) if remover.is_none() => {
            let message = format!("`{}` makes one {thing} of `{name}` after another until all are there", used.label());
            let help = "add a flowop that removes them, or end the run by `finishoncount` or `set mode quit alldone`";
            found.push(warn(used, message, help));
        }
        (None, Some(used)) => {
            let message =
                format!("`{}` removes one {thing} of `{name}` after another until none is left", used.label());
            let help = "add a flowop that makes them, or end the run by `finishoncount` or `set mode quit alldone`";
            found.push(warn(used, message, help));
        }
        (Some(_), _) if by_slot.is_none() => {
            // One thread alone makes and removes.
            if let (Some(body), true) = (at_work.pop_first(), at_work.is_empty()) {
                uneven(name, trade, &index.bodies[body], found);
            }
        }
        (Some(_), _) => {}
        (None, None) => {}
    }
}

/// A thread makes and removes, and not as many of the one as of the other.
fn uneven(name: &str, trade: &Trade, (mix, body): &(bool, Vec<Use<'_>>), found: &mut Vec<Diagnostic>) {
    if *mix {
        return;
    }
    let trades = |u: &&Use<'_>| trade.is_of(u) && u.text("filesetname").as_deref() == Some(name);
    let count = |role: Role| {
        let times = body.iter().filter(trades).filter(|u| u.is(role)).map(|u| u.times);
        times.into_iter().try_fold(0_u64, |sum, one| sum.checked_add(one?))
    };
    let (Some(made), Some(removed)) = (count(trade.makes), count(trade.removes)) else { return };
    if made == removed {
        return;
    }
    let (more, role) = if made > removed { ("makes", trade.makes) } else { ("removes", trade.removes) };
    if let Some(used) = body.iter().filter(trades).find(|u| u.is(role)) {
        found.push(
            Diagnostic::warning(
                Code::ExhaustedFileset,
                used.flowop.span,
                format!("each iteration creates {made} and removes {removed} of the files of `{name}`: it {more} more"),
            )
            .help("make as many as are removed, or end the run by `finishoncount` or `set mode quit alldone`"),
        );
    }
}

/// Whether no file of the set is there when a run starts. Trees of other runs are kept with `reuse`.
fn nothing_there(subject: &Subject<'_>, set: &FilesetDef) -> bool {
    // The one file of a `define file` of Filebench up to 1.4 is there, empty.
    if set.single && set.dialect == Dialect::Sun {
        return false;
    }
    let prealloc = match set.attrs.get("prealloc") {
        None => Some(0),
        Some(used) => crate::model::eval(&used.value, &subject.scope).ok().as_ref().and_then(super::whole),
    };
    prealloc == Some(0)
}

/// Whether a set has none of what is counted, now or ever.
fn has_room_for_none(subject: &Subject<'_>, set: &FilesetDef, trade: &Trade) -> bool {
    if set.single || set.attrs.get("sizetable").is_some() {
        // `define file` is one file; one without leaf directories has none.
        return set.single && trade.counted == "leafdirs";
    }
    match set.attrs.get(trade.counted) {
        None => true,
        Some(_) => super::int(&set.attrs, trade.counted, &subject.scope) == Some(0),
    }
}
