//! Lowers flowops to operations: resolves names of file sets and targets, builds operations from attributes, and adds
//! up the needs of each thread.

use super::compile::{CompileOptions, DraftThread, count};
use super::program::Draft;
use super::values::{exact_quantity, quantity};
use super::{FlowopInfo, Plan, PlanStep, Process, Thread, filesets, stonewall};
use crate::exec::UnitKind;
use crate::fileset::{FilesetSpec, Want};
use crate::flowop::{self, Args, Effects, Resolver, SetInfo, TargetInfo};
use crate::random::Quantity;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use wml_language::diag::{self, Code, Diagnostic, Severity};
use wml_language::model::{ModelValue, Scope};
use wml_language::source::Span;

/// Bytes of the largest I/O: the kernel moves no more in one call.
const LARGEST_IO: u64 = 1 << 31;

/// Bytes of the largest buffer of a thread: more than the memory of any machine, so that sums of buffers do not overflow.
const LARGEST_BUFFER: u64 = 1 << 44;

/// Most flowops that all `target=`s of a plan mean together.
const MOST_TARGETS: usize = 1 << 22;

/// The names that flowops can refer to.
#[derive(Default)]
struct Index {
    /// The first file set of each name.
    filesets: HashMap<String, usize>,
    /// Flowops by their full name.
    flowops: HashMap<String, Vec<usize>>,
    /// Flowops in composites by the last part of their name.
    inner: HashMap<String, Vec<usize>>,
    /// The first flowop in each composite. A search of all flowops for each wrong target would be quadratic.
    first_inner: HashMap<String, usize>,
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
                for (end, _) in flowop.name.match_indices('.') {
                    let path = &flowop.name[..end];
                    for name in [path, path.rsplit_once('.').map_or(path, |(_, last)| last)] {
                        index.first_inner.entry(name.to_owned()).or_insert(id);
                    }
                }
            }
        }
        index
    }

    /// The flowops that `target=` means: those with that name, else those in composites.
    fn targets(&self, name: &str) -> &[usize] {
        self.flowops.get(name).or_else(|| self.inner.get(name)).map_or(&[], Vec::as_slice)
    }
}

/// The names that the flowops of one thread can refer to.
struct LoweredNames<'a> {
    filesets: &'a [FilesetSpec],
    flowops: &'a [FlowopInfo],
    index: &'a Index,
    /// Remaining number of targets.
    targets_left: &'a Cell<usize>,
    scope: &'a Scope,
    first: usize,
    count: usize,
}

impl Resolver for LoweredNames<'_> {
    fn fileset(&self, name: &str) -> Option<SetInfo> {
        let id = *self.index.filesets.get(name)?;
        let spec = &self.filesets[id];
        let parts = &self.filesets[filesets::parts_of(self.filesets, id)];
        Some(SetInfo {
            id,
            name: spec.name.clone(),
            entries: parts.iter().map(|part| part.entries).sum(),
            leafdirs: parts.iter().map(|part| part.leafdirs).sum(),
            parts: parts.len(),
            own_sets: self.filesets[id..]
                .iter()
                .take_while(|own| own.instance.is_some() && own.name == spec.name)
                .count() as u32,
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

    fn inner_flowop(&self, composite: &str) -> Option<String> {
        self.index.first_inner.get(composite).map(|id| self.flowops[*id].name.clone())
    }

    fn quantity(&self, value: &ModelValue, span: Span) -> Result<Quantity, Diagnostic> {
        quantity(value, span, self.scope)
    }

    fn exact_quantity(&self, value: &ModelValue, span: Span) -> Result<Quantity, Diagnostic> {
        exact_quantity(value, span, self.scope)
    }
}

/// Makes a plan of drafts. Errors go to `found`.
pub(super) fn lower(
    heads: Vec<Process>,
    threads: Vec<Vec<DraftThread>>,
    mut flowops: Vec<FlowopInfo>,
    filesets: Vec<FilesetSpec>,
    scope: &Scope,
    options: CompileOptions<'_>,
    found: &mut Vec<Diagnostic>,
) -> Plan {
    let mut first = 0;
    let mut processes = Vec::new();
    let followed = threads.iter().flatten().map(|draft| stonewall::followed(&draft.values)).collect();
    let index = Index::new(&filesets, &flowops);
    let targets_left = Cell::new(MOST_TARGETS);
    let mut excused = HashSet::new();
    for (p, (mut head, own)) in heads.into_iter().zip(threads).enumerate() {
        for (t, draft) in own.into_iter().enumerate() {
            let count = draft.pending.len();
            let names = LoweredNames {
                filesets: &filesets,
                flowops: &flowops,
                index: &index,
                targets_left: &targets_left,
                scope,
                first,
                count,
            };
            let salt = ((p as u64) << 32) | t as u64;
            let errors = found.len();
            let (mut thread, sets) = lower_thread(draft, &names, scope, salt, found);
            if head.instances == 0 && excuse(found, errors, &head.name, &mut excused) {
                // Without some of its flowops the program is incomplete, and no thread executes it.
                thread.steps.clear();
            }
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
        found.insert(0, report.help("give flowops different names: `target=` means all of one name"));
    }
    let mut plan = Plan {
        filesets,
        processes,
        flowops,
        mode: options.mode,
        event_rate: options.event_rate,
        event_shares: BTreeMap::new(),
        rank_rates: Vec::new(),
        exact: Vec::new(),
        phases: Vec::new(),
    };
    plan.phases = plan.own_phases();
    let own = plan.own_rates();
    // A single rank agrees with itself.
    let _ = plan.share_rates(&[own], 0);
    leave_to_create(&mut plan);
    stonewall::resolve(&mut plan, followed, found);
    plan
}

/// Turns the errors from index `first` on, those of a process without an instance, into warnings: in Filebench each
/// instance looks up its names when it starts. Each mistake has one warning, however many flowops repeat it. `excused`:
/// the messages of earlier ones. Returns whether there are any errors.
fn excuse(found: &mut Vec<Diagnostic>, first: usize, process: &str, excused: &mut HashSet<String>) -> bool {
    let mut any = false;
    for mut diagnostic in found.split_off(first) {
        if diagnostic.severity == Severity::Error {
            any = true;
            if !excused.insert(diagnostic.message.clone()) {
                continue;
            }
            diagnostic.severity = Severity::Warning;
            diagnostic.code = Code::NoInstances;
            diagnostic.message.push_str(&format!("; process `{process}` has no instance, so that this has no effect"));
        }
        found.push(diagnostic);
    }
    any
}

/// An empty file that would exist before the run is not created if the script has a `createfile` for it.
fn leave_to_create(plan: &mut Plan) {
    if !plan.filesets.iter().any(|spec| spec.empty) {
        return;
    }
    let made: HashSet<usize> = plan
        .threads()
        .flat_map(|(_, thread)| &thread.effects.makes)
        .filter(|(_, want, kind)| (*want, *kind) == (Want::Existing, UnitKind::File))
        .map(|(set, ..)| *set)
        .collect();
    for (set, spec) in plan.filesets.iter_mut().enumerate() {
        let named = set - spec.instance.unwrap_or(0) as usize;
        if spec.empty && made.contains(&named) {
            (spec.prealloc, spec.empty) = (0, false);
        }
    }
}

fn lower_thread(
    draft: DraftThread,
    names: &LoweredNames<'_>,
    scope: &Scope,
    salt: u64,
    found: &mut Vec<Diagnostic>,
) -> (Thread, Vec<Vec<usize>>) {
    let mut together = ThreadNeeds::default();
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
            values: pending.values,
            resolver: names,
        };
        match flowop::build(&args) {
            Ok(op) => {
                let one = spread(op.effects(), names.filesets);
                if one.exact_buffer > LARGEST_IO {
                    let message = format!("an I/O of {} bytes", one.exact_buffer);
                    let report = Diagnostic::error(Code::OutOfRange, pending.span, message);
                    diag::push(found, report.help(format!("one call moves at most {LARGEST_IO} bytes")));
                }
                own.push(SlotSets {
                    named: one.sets.clone(),
                    slot: one.slot,
                    rotates: one.rotating > 0,
                    after: one.left_in_slot.clone(),
                });
                in_slots.extend(one.makes_in_slot.map(|made| (local, made)));
                together.join(one);
                ops.push(Some(op));
            }
            Err(d) => {
                // An attribute with a wrong value, which has been reported, counts as not given. An error of the flowop as
                // a whole, such as that it lacks an attribute, may be the consequence.
                if !(args.values.incomplete && d.primary.span == args.span) {
                    diag::push(found, d);
                }
                own.push(SlotSets::default());
                ops.push(None);
            }
        }
    }
    let steps = draft
        .drafts
        .into_iter()
        .filter_map(|step| {
            Some(match step {
                Draft::Op { local, iters } => PlanStep::Op { local, iters, op: ops[local].clone()? },
                Draft::Step(step) => step,
            })
        })
        .collect();
    let mut worked = worked_on(&own);
    for (local, (want, kind)) in in_slots {
        for set in left_in_slots_of(&own, local) {
            if !worked[local].contains(&set) {
                worked[local].push(set);
            }
        }
        let makes = worked[local].iter().map(|set| (*set, want, kind)).collect();
        together.join(Effects { makes, ..Effects::default() });
    }
    let effects = together.all;
    let memsize = draft.values.int("memsize", 0);
    if memsize > LARGEST_BUFFER {
        let at = draft.values.get("memsize").map_or(Span::default(), |(_, s)| s);
        let report = Diagnostic::error(Code::OutOfRange, at, format!("`memsize` can't be {memsize} bytes"));
        diag::push(found, report.help(format!("at most {LARGEST_BUFFER} are possible")));
    }
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
        let message = format!("thread `{}` has 0 instances, and one is started nevertheless", draft.name);
        found.push(
            Diagnostic::warning(Code::NoInstances, span, message)
                .help("Filebench does so too; to have none, leave the thread out, or give its process `instances=0`"),
        );
    }
    let thread = Thread {
        name: draft.name,
        instances: instances.max(1) as u32,
        memsize,
        pace: draft.pace,
        has_rate: ["rate", "totalrate"].iter().any(|name| draft.values.get(name).is_some()),
        stonewall: stonewall::time(&draft.values, found),
        iterations_of: None,
        ioprio: Some(draft.values.int("ioprio", 8)).filter(|n| *n < 8).map(|n| n as u8),
        steps,
        first: names.first,
        count: ops.len(),
        effects,
    };
    (thread, worked)
}

/// Extends the needs of a flowop from the first part of a set in several directories to all parts.
fn spread(mut one: Effects, filesets: &[FilesetSpec]) -> Effects {
    let parts = |first: usize| filesets::parts_of(filesets, first);
    // All fields, so that a new one with numbers of sets is not forgotten.
    let Effects {
        makes,
        sets,
        moves,
        moved,
        left_in_slot,
        by_age,
        links,
        makes_in_slot: _,
        buffer: _,
        exact_buffer: _,
        whole_files: _,
        slot: _,
        max_fd: _,
        rotating: _,
        direct: _,
        units: _,
        aio: _,
        sends: _,
        measures: _,
        totals: _,
        highwater: _,
        latch: _,
        wakes: _,
        preserves: _,
        non_blocking: _,
    } = &mut one;
    for numbers in [sets, moves, left_in_slot, by_age, links] {
        *numbers = numbers.iter().copied().flat_map(parts).collect();
    }
    *moved = moved.iter().copied().flat_map(|(from, to)| parts(from).zip(parts(to))).collect();
    let of_parts = |(set, want, kind)| parts(set).map(move |part| (part, want, kind));
    *makes = makes.iter().copied().flat_map(of_parts).collect();
    one
}

/// The slot of a flowop and the file sets that it has to do with.
#[derive(Default)]
struct SlotSets {
    named: Vec<usize>,
    /// Its slot; 0: none named.
    slot: usize,
    /// Whether it uses one slot after another.
    rotates: bool,
    /// The set of the file that it leaves in the slot, if not those that it names.
    after: Vec<usize>,
}

/// Returns the file sets that each flowop of a thread works on, given the sets that it names and its slot. A flowop
/// that names none uses the sets of the nearest flowop before it in the loop with that slot.
fn worked_on(own: &[SlotSets]) -> Vec<Vec<usize>> {
    // Two iterations of the loop: a later flowop precedes an earlier one in the next iteration.
    let mut openers: HashMap<usize, usize> = HashMap::new();
    let mut worked = vec![Vec::new(); own.len()];
    for at in (0..own.len()).chain(0..own.len()) {
        let SlotSets { named, slot, .. } = &own[at];
        if !named.is_empty() {
            worked[at].clone_from(named);
            openers.insert(*slot, at);
        } else if let Some(opener) = openers.get(slot).filter(|_| *slot > 0) {
            let opener = &own[*opener];
            worked[at].clone_from(if opener.after.is_empty() { &opener.named } else { &opener.after });
        }
    }
    worked
}

/// Returns the file sets of which the flowops of a thread may leave a file in a slot of one of them.
fn left_in_slots_of(own: &[SlotSets], at: usize) -> Vec<usize> {
    let is_slot = |of: &&SlotSets| of.slot > 0 || of.rotates;
    let shares = |of: &&SlotSets| of.slot == own[at].slot || of.rotates || own[at].rotates;
    let left = own.iter().filter(is_slot).filter(shares);
    left.flat_map(|of| if of.after.is_empty() { &of.named } else { &of.after }).copied().collect()
}

/// Adds up the needs of a thread's flowops.
#[derive(Default)]
struct ThreadNeeds {
    all: Effects,
    makes: HashSet<(usize, Want, UnitKind)>,
    sets: HashSet<usize>,
    moves: HashSet<usize>,
    moved: HashSet<(usize, usize)>,
    by_age: HashSet<usize>,
    links: HashSet<usize>,
}

impl ThreadNeeds {
    fn join(&mut self, one: Effects) {
        let all = &mut self.all;
        let Effects {
            makes,
            sets,
            moves,
            moved,
            by_age,
            links,
            buffer,
            exact_buffer,
            max_fd,
            rotating,
            direct,
            aio,
            sends,
            measures,
            totals,
            highwater,
            latch,
            // These concern a single flowop.
            makes_in_slot: _,
            left_in_slot: _,
            slot: _,
            units: _,
            whole_files: _,
            wakes: _,
            preserves: _,
            non_blocking: _,
        } = one;
        all.makes.extend(makes.into_iter().filter(|made| self.makes.insert(*made)));
        all.sets.extend(sets.into_iter().filter(|set| self.sets.insert(*set)));
        all.moves.extend(moves.into_iter().filter(|set| self.moves.insert(*set)));
        all.moved.extend(moved.into_iter().filter(|pair| self.moved.insert(*pair)));
        all.by_age.extend(by_age.into_iter().filter(|set| self.by_age.insert(*set)));
        all.links.extend(links.into_iter().filter(|set| self.links.insert(*set)));
        all.exact_buffer = all.exact_buffer.max(exact_buffer);
        all.buffer = all.buffer.max(buffer);
        all.max_fd = all.max_fd.max(max_fd);
        all.rotating = all.rotating.max(rotating);
        all.direct |= direct;
        all.aio = match (all.aio, aio) {
            (Some(a), Some(b)) => Some(a.with(b)),
            (a, b) => a.or(b),
        };
        all.sends |= sends;
        all.measures |= measures;
        all.totals |= totals;
        all.latch |= latch;
        all.highwater = all.highwater.or(highwater);
    }
}
