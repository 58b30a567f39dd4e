//! Warns of file sets that a run exhausts: their files are only removed, or only made until all exist.
//!
//! Threads of different phases never work at the same time, so that each phase is looked at alone. A script may mean its
//! threads to end like this, and is then not reported: if it ends them after a number of operations (`finishoncount`),
//! declares it (`maystarve`), or ends the run or the phase with its threads (`set mode quit`). The last does not hold for
//! a flowop that a mix draws: the threads end with work left to do.

use super::{Subject, Use};
use crate::diag::{Code, Diagnostic};
use crate::model::{FilesetDef, FlowopDef, ModelValue, ProcessDef, QuitMode, ThreadDef};
use crate::spec::{Dialect, Role};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use wml_text::count;

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

/// The loop of a thread definition.
struct Body<'a> {
    phase: u64,
    /// Whether the phase ends after a time (`for=`).
    is_timed: bool,
    /// Whether the thread ends after some operations or iterations.
    ends: bool,
    uses: Vec<Use<'a>>,
}

impl<'a> Body<'a> {
    fn of(subject: &Subject<'a>, process: &'a ProcessDef, thread: &'a ThreadDef) -> Self {
        let known = |attr: &str| super::int(&process.attrs, attr, &subject.scope);
        let finishes = |f: &FlowopDef| f.spec.is_some_and(|spec| spec.is(Role::Finishes));
        let uses = subject.body(thread);
        Self {
            phase: if process.attrs.get("phase").is_some() { known("phase").unwrap_or(u64::MAX) } else { 1 },
            is_timed: process.attrs.get("for").is_some() && known("for") != Some(0),
            ends: ["stonewall", "iterationsof"].iter().any(|attr| thread.attrs.get(attr).is_some())
                || uses.iter().any(|used| finishes(used.flowop)),
            uses,
        }
    }
}

pub(super) fn exhausted(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.loads {
        return;
    }
    let bodies: Vec<Body<'_>> = subject.threads().map(|(process, thread)| Body::of(subject, process, thread)).collect();
    // An unknown set may be any set.
    let unknown = |u: &Use<'_>| ["filesetname", "toset"].iter().any(|attr| u.has(attr) && u.text(attr).is_none());
    if bodies.iter().any(|body| body.uses.iter().any(unknown)) {
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
    bodies: &'b [Body<'b>],
    /// Body and flowop by set, in source order.
    of: HashMap<String, Vec<(usize, &'b Use<'b>)>>,
    /// The first `deletefile` of each body that only names a slot. It may work on any set.
    by_slot: BTreeMap<usize, &'b Use<'b>>,
    /// The phases of those.
    slot_phases: BTreeSet<u64>,
}

impl<'b> SetIndex<'b> {
    fn new(bodies: &'b [Body<'b>]) -> Self {
        let (mut of, mut by_slot) = (HashMap::<String, Vec<_>>::new(), BTreeMap::new());
        for (b, body) in bodies.iter().enumerate() {
            for used in &body.uses {
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
        let slot_phases = by_slot.keys().map(|b| bodies[*b].phase).collect();
        Self { bodies, of, by_slot, slot_phases }
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
    let mut phases: BTreeMap<u64, Vec<(&Body<'_>, &Use<'_>)>> = BTreeMap::new();
    for (b, used) in works {
        phases.entry(index.bodies[*b].phase).or_default().push((&index.bodies[*b], used));
    }
    for (phase, works) in phases {
        let by_slot = turnover.removes == Role::RemovesFile && index.slot_phases.contains(&phase);
        in_phase(subject, name, turnover, (&works, by_slot), found);
    }
}

/// Reports a set whose files the threads of a phase only make, or only remove, or make and remove in different numbers.
/// `works`: the flowops of the phase that work on it. `by_slot`: a `deletefile` of the phase names no set.
fn in_phase(
    subject: &Subject<'_>,
    name: &str,
    turnover: &Turnover,
    (works, by_slot): (&[(&Body<'_>, &Use<'_>)], bool),
    found: &mut Vec<Diagnostic>,
) {
    let of = |role: Role| works.iter().copied().find(|(_, used)| used.is_for(name, role));
    let (action, (body, used)) = match (of(turnover.makes), of(turnover.removes)) {
        (Some(maker), None) if !by_slot => ("makes", maker),
        (None, Some(remover)) => ("removes", remover),
        (Some((body, _)), Some(_)) if !by_slot => {
            // A single thread makes and removes files.
            if works.iter().all(|(other, used)| std::ptr::eq(*other, body) || !turnover.is_of(used, name)) {
                uneven(subject, name, turnover, body, found);
            }
            return;
        }
        _ => return,
    };
    if is_meant(subject, body, used) {
        return;
    }
    let what = turnover.what;
    let (end, offset) = if action == "makes" { ("all exist", "removes them") } else { ("none is left", "makes them") };
    let message = format!("`{}` {action} one {what} of `{name}` after another until {end}", used.label());
    found.push(
        Diagnostic::warning(Code::ExhaustedFileset, used.flowop.span, message)
            .help(format!("add a flowop that {offset}, or {}", other_end(subject, used))),
    );
}

/// What a script writes that means its threads to end when no file is left.
fn other_end(subject: &Subject<'_>, used: &Use<'_>) -> &'static str {
    if used.is_drawn || subject.mode != QuitMode::Timeout {
        "end the threads by `finishoncount`, or declare it with `maystarve`"
    } else {
        "end the run by `finishoncount` or `set mode quit alldone`"
    }
}

/// Whether the script means the thread to end when no file is left for a flowop.
fn is_meant(subject: &Subject<'_>, body: &Body<'_>, used: &Use<'_>) -> bool {
    let ends = match subject.mode {
        QuitMode::AllDone => body.ends,
        // What ends a thread ends the run.
        QuitMode::Timeout | QuitMode::FirstDone => subject.ends_by_itself(),
    };
    let ends_with_threads = subject.mode != QuitMode::Timeout && !body.is_timed && !used.is_drawn;
    ends || ends_with_threads || used.flag("maystarve")
}

/// Reports a thread that makes more files than it removes, or the other way round.
fn uneven(subject: &Subject<'_>, name: &str, turnover: &Turnover, body: &Body<'_>, found: &mut Vec<Diagnostic>) {
    let names = |u: &Use<'_>| ["filesetname", "toset"].iter().any(|attr| u.text(attr).as_deref() == Some(name));
    let of_set = |u: &&Use<'_>| names(u) && turnover.is_of(u, name);
    let mean = |role: Role| {
        let own = body.uses.iter().filter(of_set).filter(|u| u.is_for(name, role));
        own.map(|u| u.mean).sum::<Option<f64>>()
    };
    let (Some(made), Some(removed)) = (mean(turnover.makes), mean(turnover.removes)) else { return };
    // Weights may have been rounded.
    if (made - removed).abs() <= 1e-6 * made.max(removed) {
        return;
    }
    let role = if made > removed { turnover.makes } else { turnover.removes };
    let Some(used) = body.uses.iter().filter(of_set).find(|u| u.is_for(name, role)) else { return };
    if is_meant(subject, body, used) {
        return;
    }
    let each = if used.is_drawn { "an average iteration" } else { "each iteration" };
    let number = |mean: f64| if mean.fract() == 0.0 { format!("{mean}") } else { count::measured(mean) };
    let (made, removed) = (number(made), number(removed));
    let message = format!("{each} creates {made} of the files of `{name}`, and removes {removed}");
    let help = format!("create as many as are removed, or {}", other_end(subject, used));
    found.push(Diagnostic::warning(Code::ExhaustedFileset, used.flowop.span, message).help(help));
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
