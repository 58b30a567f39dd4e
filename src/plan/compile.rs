//! Definitions and variables to a plan.

use super::program::{Draft, Pending, Unroller};
use super::values::{Evaluated, evaluate, quantity};
use super::{FlowopInfo, Pace, Plan, Process, Step, Thread, filesets};
use crate::diag::{Code, Diagnostic};
use crate::fileset::FilesetSpec;
use crate::flowop::{self, Args, Effects, SetInfo, TargetInfo, World};
use crate::model::{CompositeDef, FilesetDef, Lookup, ProcessDef, QuitMode, Scope, Value};
use crate::random::{self, Quantity};
use crate::source::Span;
use crate::spec::{Dialect, SpecTable};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What a session has defined so far.
#[derive(Clone, Default, Debug)]
pub struct Definitions {
    /// In the order of definition.
    pub filesets: Vec<Arc<FilesetDef>>,
    /// In the order of definition.
    pub processes: Vec<Arc<ProcessDef>>,
    /// In the order of definition; a later one of a name wins.
    pub composites: Vec<Arc<CompositeDef>>,
}

/// What else a run is to be like.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// `set mode quit …`.
    pub mode: QuitMode,
    /// The event generator's rate.
    pub event_rate: Option<u64>,
}

/// More than this of anything is a slip of the pen.
const MOST: u64 = 1 << 20;

/// The plan, or all that is wrong. Warnings come with the plan.
pub fn compile(
    definitions: &Definitions,
    scope: &Scope,
    table: &SpecTable,
    options: Options,
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut found = Vec::new();
    let mut filesets: Vec<FilesetSpec> = Vec::new();
    let mut places = Vec::new();
    for def in &definitions.filesets {
        let parts = filesets::parts(def, scope, &mut found).unwrap_or_default();
        places.extend(parts.iter().map(|_| def.span));
        filesets.extend(parts);
    }
    same_roots(&filesets, &places, &mut found);
    if crate::diag::has_errors(&found) {
        // A set that can't be told makes every flowop that names it look wrong.
        return Err(found);
    }
    let mut drafts = Vec::new();
    for (p, def) in definitions.processes.iter().enumerate() {
        drafts.push(process(p, def, definitions, scope, table, &mut found));
    }
    let (mut heads, mut threads) = (Vec::new(), Vec::new());
    for (head, own) in drafts {
        heads.push(head);
        threads.push(own);
    }
    let flowops = number(&threads);
    nobody_works(definitions, &heads, &mut found);
    let plan = lower(heads, threads, flowops, filesets, scope, options, &mut found);
    if crate::diag::has_errors(&found) {
        if plan.filesets.len() < definitions.filesets.len() {
            // A set with a mistake in it is there all the same: that it is not found is no mistake of its users.
            found.retain(|d| d.code != Code::UnknownFileset);
        }
        found.sort_by_key(|d| (d.primary.span.file, d.primary.span.start));
        found.dedup();
        Err(found)
    } else {
        Ok((plan, found))
    }
}

/// Two sets in one directory would be one another's foreign files. `places` are those of the definitions.
fn same_roots(specs: &[FilesetSpec], places: &[Span], found: &mut Vec<Diagnostic>) {
    for (i, spec) in specs.iter().enumerate() {
        if let Some(first) = specs[..i].iter().position(|other| other.root() == spec.root()) {
            let message = format!("a second file set in `{}`", spec.root().display());
            let report = Diagnostic::error(Code::Duplicate, places[i], message);
            found.push(if places[first] == places[i] {
                report.help("name each directory of the list once")
            } else {
                report.also(places[first], "the first").help("give one of them another name or path")
            });
        }
    }
}

/// Processes without an instance are right, but if there are no others, the run does nothing, and takes its time for it.
fn nobody_works(definitions: &Definitions, processes: &[Process], found: &mut Vec<Diagnostic>) {
    let Some(first) = definitions.processes.first() else { return };
    if processes.iter().any(|p| p.instances > 0) {
        return;
    }
    let at = first.attrs.get("instances").map_or(first.span, |used| used.value.span);
    found.push(
        Diagnostic::warning(Code::NoInstances, at, "no process has an instance: the run does nothing to its end")
            .help("give one of them `instances=1` or more"),
    );
}

/// A thread whose flowops are not lowered yet.
struct DraftThread {
    values: Evaluated,
    name: String,
    drafts: Vec<Draft>,
    pending: Vec<Pending>,
    dialect: Dialect,
}

fn process(
    p: usize,
    def: &ProcessDef,
    definitions: &Definitions,
    scope: &Scope,
    table: &SpecTable,
    found: &mut Vec<Diagnostic>,
) -> (Process, Vec<DraftThread>) {
    let values = evaluate(&def.attrs, scope, found);
    let instances = count(&values, "instances", 1, scope, p as u64, found);
    let nice = match values.get("nice") {
        Some((Value::Negative(n), _)) => -(*n as i64),
        Some(_) => values.int("nice", 0) as i64,
        None => 0,
    };
    let head = Process {
        name: values.text("name").unwrap_or_default(),
        instances: instances as u32,
        nice: nice.clamp(-40, 40) as i32,
        dialect: def.dialect,
        threads: Vec::new(),
    };
    let mut threads: Vec<DraftThread> = Vec::new();
    let evaluated: Vec<Evaluated> = def.threads.iter().map(|thread| evaluate(&thread.attrs, scope, found)).collect();
    let given: HashSet<String> = evaluated.iter().filter_map(|values| values.text("name")).collect();
    let mut taken = HashMap::new();
    for (thread, values) in def.threads.iter().zip(evaluated) {
        let mut unroller =
            Unroller { table, composites: &definitions.composites, drafts: Vec::new(), pending: Vec::new() };
        unroller.thread(&thread.flowops, values.flag("mix"), scope, found);
        let (drafts, pending) = (unroller.drafts, unroller.pending);
        let name = values.text("name").unwrap_or_default();
        let name = unlike(name, &mut taken, &given);
        threads.push(DraftThread { values, name, drafts, pending, dialect: def.dialect });
    }
    (head, threads)
}

/// The name of a thread, with a number behind it if the process has one of that name already: results are told apart by
/// names. `taken`: the last number of each; `given`: names of the script, which nobody else gets.
fn unlike(name: String, taken: &mut HashMap<String, usize>, given: &HashSet<String>) -> String {
    let last = taken.entry(name.clone()).or_default();
    *last += 1;
    while *last > 1 {
        let numbered = format!("{name}-{last}");
        if !given.contains(&numbered) {
            return numbered;
        }
        *last += 1;
    }
    name
}

/// A number of instances.
fn count(
    values: &Evaluated,
    name: &str,
    default: u64,
    scope: &dyn Lookup,
    salt: u64,
    found: &mut Vec<Diagnostic>,
) -> u64 {
    let Some((value, span)) = values.get(name) else { return default };
    match quantity(value, span, scope) {
        Ok(q) => {
            let n = q.draw(&mut random::stream(0, &[1, salt]));
            if n > MOST {
                found.push(
                    Diagnostic::error(Code::OutOfRange, span, format!("`{name}` can't be {n}"))
                        .help(format!("at most {MOST} are possible")),
                );
            }
            n.min(MOST)
        }
        Err(d) => {
            found.push(d);
            default
        }
    }
}

/// Gives every flowop its number.
fn number(processes: &[Vec<DraftThread>]) -> Vec<FlowopInfo> {
    let mut flowops = Vec::new();
    for (p, threads) in processes.iter().enumerate() {
        for (t, thread) in threads.iter().enumerate() {
            flowops.extend(thread.pending.iter().enumerate().map(|(index, f)| FlowopInfo {
                process: p,
                thread: t,
                index,
                name: f.name.clone(),
                kind: f.spec.name,
                class: f.spec.class,
                way: f.spec.way,
                sets: Vec::new(),
                span: f.span,
            }));
        }
    }
    flowops
}

/// What the flowops of one thread can refer to.
struct Names<'a> {
    filesets: &'a [FilesetSpec],
    flowops: &'a [FlowopInfo],
    scope: &'a Scope,
    first: usize,
    count: usize,
}

impl World for Names<'_> {
    fn fileset(&self, name: &str) -> Option<SetInfo> {
        let id = self.filesets.iter().position(|f| f.name == name)?;
        let spec = &self.filesets[id];
        let parts = &self.filesets[filesets::parts_of(self.filesets, id)];
        Some(SetInfo {
            id,
            name: spec.name.clone(),
            entries: parts.iter().map(|part| part.entries).sum(),
            readonly: spec.readonly,
            writeonly: spec.writeonly,
        })
    }

    fn targets(&self, name: &str) -> Vec<TargetInfo> {
        let full = |f: &FlowopInfo| f.name == name;
        let inner = |f: &FlowopInfo| f.name.rsplit('.').next() == Some(name);
        let exact = self.flowops.iter().any(full);
        self.flowops
            .iter()
            .enumerate()
            .filter(|(_, f)| if exact { full(f) } else { inner(f) })
            .map(|(id, f)| TargetInfo {
                id,
                kind: f.kind,
                local: (self.first..self.first + self.count).contains(&id).then(|| id - self.first),
            })
            .collect()
    }

    fn quantity(&self, value: &Value, span: Span) -> Result<Quantity, Diagnostic> {
        quantity(value, span, self.scope)
    }
}

fn lower(
    heads: Vec<Process>,
    threads: Vec<Vec<DraftThread>>,
    mut flowops: Vec<FlowopInfo>,
    filesets: Vec<FilesetSpec>,
    scope: &Scope,
    options: Options,
    found: &mut Vec<Diagnostic>,
) -> Plan {
    let mut first = 0;
    let mut processes = Vec::new();
    for (p, (mut head, own)) in heads.into_iter().zip(threads).enumerate() {
        for (t, draft) in own.into_iter().enumerate() {
            let count = draft.pending.len();
            let names = Names { filesets: &filesets, flowops: &flowops, scope, first, count };
            let salt = ((p as u64) << 32) | t as u64;
            let (thread, sets) = lower_thread(draft, &names, scope, salt, found);
            head.threads.push(thread);
            for (info, sets) in flowops[first..first + count].iter_mut().zip(sets) {
                info.sets = sets;
            }
            first += count;
        }
        processes.push(head);
    }
    Plan { filesets, processes, flowops, mode: options.mode, event_rate: options.event_rate }
}

fn lower_thread(
    draft: DraftThread,
    names: &Names<'_>,
    scope: &Scope,
    salt: u64,
    found: &mut Vec<Diagnostic>,
) -> (Thread, Vec<Vec<usize>>) {
    let mut effects = Effects::default();
    let mut ops = Vec::new();
    let mut own = Vec::new();
    let mut in_slots = Vec::new();
    for (local, pending) in draft.pending.into_iter().enumerate() {
        let args = Args {
            name: &pending.name,
            spec: pending.spec,
            dialect: draft.dialect,
            span: pending.span,
            id: names.first + local,
            values: pending.values.values,
            world: names,
        };
        let op = flowop::lower(pending.spec.name).map(|lower| lower(&args));
        match op {
            Some(Ok(op)) => {
                let one = spread(op.effects(), names.filesets);
                own.push((one.sets.clone(), one.max_fd));
                in_slots.extend(one.makes_in_slot.map(|made| (local, made)));
                join(&mut effects, one);
                ops.push(Some(op));
            }
            Some(Err(d)) => {
                found.push(d);
                own.push((Vec::new(), 0));
                ops.push(None);
            }
            None => {
                own.push((Vec::new(), 0));
                ops.push(None);
            }
        }
    }
    let steps = draft
        .drafts
        .into_iter()
        .filter_map(|step| {
            Some(match step {
                Draft::Op { local, iters } => Step::Op { local, iters, op: ops[local].clone()? },
                Draft::Enter { iters, leave } => Step::Enter { iters, leave },
                Draft::Leave { enter } => Step::Leave { enter },
                Draft::Choose { upto, starts, end } => Step::Choose { upto, starts, end },
                Draft::Jump(to) => Step::Jump(to),
            })
        })
        .collect();
    let memsize = draft.values.int("memsize", 0);
    if memsize > 0 && effects.exact_buffer > memsize {
        let at = draft.values.get("memsize").map_or(Span::default(), |(_, s)| s);
        let largest = effects.exact_buffer;
        found.push(
            Diagnostic::error(
                Code::OutOfRange,
                at,
                format!("`memsize` is {memsize} bytes, and an I/O of this thread {largest}"),
            )
            .help("make `memsize` at least as large as the largest `iosize`, or 0"),
        );
    }
    let worked = worked_on(&own);
    for (local, (want, kind)) in in_slots {
        let makes = worked[local].iter().map(|set| (*set, want, kind)).collect();
        join(&mut effects, Effects { makes, ..Effects::default() });
    }
    let instances = count(&draft.values, "instances", 1, scope, salt, found);
    if let (0, Some((_, span))) = (instances, draft.values.get("instances")) {
        let message = format!("thread `{}` has 0 instances, and one is started all the same", draft.name);
        found.push(
            Diagnostic::warning(Code::NoInstances, span, message)
                .help("Filebench does so too; to have none, leave the thread out, or give its process `instances=0`"),
        );
    }
    let thread = Thread {
        name: draft.name,
        instances: instances.max(1) as u32,
        memsize,
        pace: pace(&draft.values, found),
        ioprio: Some(draft.values.int("ioprio", 8)).filter(|n| *n < 8).map(|n| n as u8),
        steps,
        first: names.first,
        count: ops.len(),
        effects,
    };
    (thread, worked)
}

/// What a flowop needs of a set that lies in several directories it needs of each part.
fn spread(mut one: Effects, filesets: &[FilesetSpec]) -> Effects {
    let parts = |first: usize| filesets::parts_of(filesets, first);
    one.sets = one.sets.into_iter().flat_map(parts).collect();
    one.moves = one.moves.into_iter().flat_map(parts).collect();
    one.makes =
        one.makes.into_iter().flat_map(|(set, want, kind)| parts(set).map(move |part| (part, want, kind))).collect();
    one
}

/// The file sets that each flowop of a thread works on, from those that it names and its slot: one that names none goes on with
/// what the nearest flowop before it, round the loop, has in that slot.
fn worked_on(own: &[(Vec<usize>, usize)]) -> Vec<Vec<usize>> {
    let before = |at: usize| (1..own.len()).map(move |back| &own[(at + own.len() - back) % own.len()]);
    own.iter()
        .enumerate()
        .map(|(at, (sets, slot))| {
            let opener = || before(at).find(|(sets, of)| !sets.is_empty() && of == slot);
            if sets.is_empty() && *slot > 0 {
                opener().map_or_else(Vec::new, |(sets, _)| sets.clone())
            } else {
                sets.clone()
            }
        })
        .collect()
}

/// `rate=` and `arrival=`. A rate of 0 is none.
fn pace(values: &Evaluated, found: &mut Vec<Diagnostic>) -> Option<Pace> {
    let poisson = match values.get("arrival").map(|(v, span)| (v.print(), span)) {
        None => false,
        Some((word, _)) if word == "constant" => false,
        Some((word, _)) if word == "poisson" => true,
        Some((word, span)) => {
            found.push(
                Diagnostic::error(Code::WrongType, span, format!("`arrival` is `{word}`"))
                    .help("it is `constant` or `poisson`"),
            );
            false
        }
    };
    let (value, span) = values.get("rate")?;
    match value.as_f64() {
        // More a second than there are nanoseconds is a slip of the pen, and would be no pace.
        Some(rate) if (0.0..=1e9).contains(&rate) => (rate > 0.0).then_some(Pace { rate, poisson }),
        _ => {
            found
                .push(Diagnostic::error(Code::OutOfRange, span, format!("`rate` can't be {}", value.print())).help(
                    "give how often a second the thread is to go through its flowops: 0 (no rate) to 1000000000",
                ));
            None
        }
    }
}

/// What two flowops need together.
fn join(all: &mut Effects, one: Effects) {
    for made in one.makes {
        if !all.makes.contains(&made) {
            all.makes.push(made);
        }
    }
    for set in one.sets {
        if !all.sets.contains(&set) {
            all.sets.push(set);
        }
    }
    for set in one.moves {
        if !all.moves.contains(&set) {
            all.moves.push(set);
        }
    }
    all.exact_buffer = all.exact_buffer.max(one.exact_buffer);
    all.buffer = all.buffer.max(one.buffer);
    all.max_fd = all.max_fd.max(one.max_fd);
    all.opennext |= one.opennext;
    all.direct |= one.direct;
    all.aio = match (all.aio, one.aio) {
        (Some(a), Some(b)) => Some(a.with(b)),
        (a, b) => a.or(b),
    };
    all.totals |= one.totals;
    all.latch |= one.latch;
    all.highwater = all.highwater.or(one.highwater);
}
