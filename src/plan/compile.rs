//! Definitions and variables to a plan.

use super::program::{Draft, Pending, Unroller};
use super::values::{Evaluated, evaluate, quantity};
use super::{FlowopInfo, Pace, Plan, Process, Step, Thread, filesets};
use crate::diag::{self, Code, Diagnostic};
use crate::fileset::{FilesetSpec, Want};
use crate::flowop::{self, Args, Effects, Kind, SetInfo, TargetInfo, World};
use crate::model::{CompositeDef, FilesetDef, Lookup, ProcessDef, QuitMode, Scope, Value};
use crate::random::{self, Quantity};
use crate::source::Span;
use crate::spec::{Dialect, SpecTable};
use std::cell::Cell;
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
    /// Names that were defined at some time, by what they are of.
    defined: HashSet<(&'static str, String)>,
}

impl Definitions {
    /// Adds a file set, in the place of one of the same name.
    pub fn add_fileset(&mut self, def: Arc<FilesetDef>) {
        let name = |def: &FilesetDef| def.attrs.constant_text("name").map(|name| name.node);
        let own = name(&def);
        if self.is_again("fileset", own.as_deref()) {
            self.filesets.retain(|other| name(other) != own);
        }
        self.filesets.push(def);
    }

    /// Adds a process, in the place of one of the same name.
    pub fn add_process(&mut self, def: Arc<ProcessDef>) {
        let name = |def: &ProcessDef| def.attrs.constant_text("name").map(|name| name.node);
        let own = name(&def);
        if self.is_again("process", own.as_deref()) {
            self.processes.retain(|other| name(other) != own);
        }
        self.processes.push(def);
    }

    /// Adds a composite flowop, in the place of one of the same name.
    pub fn add_composite(&mut self, def: Arc<CompositeDef>) {
        if self.is_again("flowop", Some(&def.name.node)) {
            self.composites.retain(|other| other.name.node != def.name.node);
        }
        self.composites.push(def);
    }

    /// Whether something of that name may be there already.
    fn is_again(&mut self, what: &'static str, name: Option<&str>) -> bool {
        name.is_some_and(|name| !self.defined.insert((what, name.to_owned())))
    }
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

/// Flowops of a plan, those of composites counted at each use.
const MOST_FLOWOPS: usize = 1 << 17;

/// File sets of a plan, each directory of a list counted.
const MOST_FILESETS: usize = 1 << 17;

/// Flowops that all `target=` of a plan mean together.
const MOST_TARGETS: usize = 1 << 22;

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
    let mut wrong_sets = false;
    for def in &definitions.filesets {
        let parts = filesets::parts(def, scope, &mut found);
        wrong_sets |= parts.is_none();
        let parts = parts.unwrap_or_default();
        if filesets.len() + parts.len() > MOST_FILESETS {
            let message = format!("a script with more than {MOST_FILESETS} file sets");
            diag::push(
                &mut found,
                Diagnostic::error(Code::OutOfRange, def.span, message)
                    .help("one file set of many directories takes the place of many with one"),
            );
            break;
        }
        places.extend(parts.iter().map(|_| def.span));
        filesets.extend(parts);
    }
    same_roots(&filesets, &places, &mut found);
    let mut drafts = Vec::new();
    let mut unroller = Unroller::new(table, &definitions.composites, MOST_FLOWOPS);
    for (p, def) in definitions.processes.iter().enumerate() {
        drafts.push(process(p, def, &mut unroller, scope, &mut found));
    }
    if crate::diag::has_errors(&found) && unroller.is_exhausted() {
        // A program that is cut off has no targets for what was before.
        return Err(found);
    }
    let (mut heads, mut threads) = (Vec::new(), Vec::new());
    for (head, own) in drafts {
        heads.push(head);
        threads.push(own);
    }
    let flowops = number(&threads);
    nobody_works(definitions, &heads, &mut found);
    let plan = lower(heads, threads, flowops, filesets, scope, options, &mut found);
    too_many_threads(definitions, &plan, &mut found);
    if crate::diag::has_errors(&found) {
        if wrong_sets {
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
    let mut roots = HashMap::new();
    for (i, spec) in specs.iter().enumerate() {
        let root = spec.root();
        if let Some(first) = roots.get(&root).copied() {
            let first: usize = first;
            let message = format!("a second file set in `{}`", root.display());
            let report = Diagnostic::error(Code::Duplicate, places[i], message);
            diag::push(
                found,
                if places[first] == places[i] {
                    report.help("name each directory of the list once")
                } else {
                    report.also(places[first], "the first").help("give one of them another name or path")
                },
            );
        } else {
            roots.insert(root, i);
        }
    }
}

/// Instances multiply: each number may be right and their product is not.
fn too_many_threads(definitions: &Definitions, plan: &Plan, found: &mut Vec<Diagnostic>) {
    let mut threads = 0_u64;
    for (process, def) in plan.processes.iter().zip(&definitions.processes) {
        let own: u64 = process.threads.iter().map(|t| u64::from(t.instances)).sum();
        threads = threads.saturating_add(u64::from(process.instances).saturating_mul(own.max(1)));
        if threads > MOST {
            let at = def.attrs.get("instances").map_or(def.span, |used| used.value.span);
            let message = format!("the processes up to this one have {threads} threads together");
            let report = Diagnostic::error(Code::OutOfRange, at, message);
            found.push(report.help(format!("at most {MOST} are possible")));
            return;
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
    unroller: &mut Unroller<'_>,
    scope: &Scope,
    found: &mut Vec<Diagnostic>,
) -> (Process, Vec<DraftThread>) {
    let values = evaluate(&def.attrs, scope, found);
    let instances = count(&values, "instances", 1, scope, p as u64, found);
    let nice = match values.get("nice") {
        Some((Value::Int(n), _)) => *n,
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
        let (drafts, pending) = unroller.thread(&thread.flowops, values.flag("mix"), scope, found);
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

/// What flowops can refer to, by name.
#[derive(Default)]
struct Index {
    /// The first file set of each name.
    filesets: HashMap<String, usize>,
    /// Flowops by their whole name.
    flowops: HashMap<String, Vec<usize>>,
    /// Those in composites by the last part of it.
    inner: HashMap<String, Vec<usize>>,
}

impl Index {
    fn new(filesets: &[FilesetSpec], flowops: &[FlowopInfo]) -> Self {
        let mut index = Self::default();
        for (id, set) in filesets.iter().enumerate() {
            index.filesets.entry(set.name.clone()).or_insert(id);
        }
        for (id, flowop) in flowops.iter().enumerate() {
            index.flowops.entry(flowop.name.clone()).or_default().push(id);
            if let Some((_, last)) = flowop.name.rsplit_once('.') {
                index.inner.entry(last.to_owned()).or_default().push(id);
            }
        }
        index
    }

    /// The flowops that `target=` means: those of that name, else those in composites.
    fn targets(&self, name: &str) -> &[usize] {
        self.flowops.get(name).or_else(|| self.inner.get(name)).map_or(&[], Vec::as_slice)
    }
}

/// What the flowops of one thread can refer to.
struct Names<'a> {
    filesets: &'a [FilesetSpec],
    flowops: &'a [FlowopInfo],
    index: &'a Index,
    /// Targets that may still be named.
    targets_left: &'a Cell<usize>,
    scope: &'a Scope,
    first: usize,
    count: usize,
}

impl World for Names<'_> {
    fn fileset(&self, name: &str) -> Option<SetInfo> {
        let id = *self.index.filesets.get(name)?;
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
        let targets = self.index.targets(name);
        let left = self.targets_left.get().saturating_sub(targets.len());
        self.targets_left.set(left);
        if left == 0 {
            return Vec::new();
        }
        let info = |&id: &usize| TargetInfo {
            id,
            kind: self.flowops[id].kind,
            local: (self.first..self.first + self.count).contains(&id).then(|| id - self.first),
        };
        targets.iter().map(info).collect()
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
    let index = Index::new(&filesets, &flowops);
    let targets_left = Cell::new(MOST_TARGETS);
    for (p, (mut head, own)) in heads.into_iter().zip(threads).enumerate() {
        for (t, draft) in own.into_iter().enumerate() {
            let count = draft.pending.len();
            let names = Names {
                filesets: &filesets,
                flowops: &flowops,
                index: &index,
                targets_left: &targets_left,
                scope,
                first,
                count,
            };
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
    if targets_left.get() == 0
        && let Some(at) = flowops.first()
    {
        let message = format!("the flowops of the script have more than {MOST_TARGETS} targets together");
        let report = Diagnostic::error(Code::OutOfRange, at.span, message);
        found.insert(0, report.help("give flowops names of their own: `target=` means all of one name"));
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
    let mut together = Together::default();
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
                together.join(one);
                ops.push(Some(op));
            }
            Some(Err(d)) => {
                diag::push(found, d);
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
    let worked = worked_on(&own);
    for (local, (want, kind)) in in_slots {
        let makes = worked[local].iter().map(|set| (*set, want, kind)).collect();
        together.join(Effects { makes, ..Effects::default() });
    }
    let effects = together.all;
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
    // Twice round the loop: what stands behind a flowop is before it in the iteration after.
    let mut openers: HashMap<usize, usize> = HashMap::new();
    let mut worked = vec![Vec::new(); own.len()];
    for at in (0..own.len()).chain(0..own.len()) {
        let (sets, slot) = &own[at];
        if !sets.is_empty() {
            worked[at].clone_from(sets);
            openers.insert(*slot, at);
        } else if let Some(opener) = openers.get(slot).filter(|_| *slot > 0) {
            worked[at].clone_from(&own[*opener].0);
        }
    }
    worked
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

/// What the flowops of a thread need together.
#[derive(Default)]
struct Together {
    all: Effects,
    makes: HashSet<(usize, Want, Kind)>,
    sets: HashSet<usize>,
    moves: HashSet<usize>,
}

impl Together {
    fn join(&mut self, one: Effects) {
        let all = &mut self.all;
        all.makes.extend(one.makes.into_iter().filter(|made| self.makes.insert(*made)));
        all.sets.extend(one.sets.into_iter().filter(|set| self.sets.insert(*set)));
        all.moves.extend(one.moves.into_iter().filter(|set| self.moves.insert(*set)));
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
}
