//! Compiles definitions and variables to a plan.

use super::lower::lower;
use super::pace::pace;
use super::program::{Draft, Pending, Unroller};
use super::values::{evaluate, exact_values, quantity, seconds};
use super::{FlowopInfo, Pace, PhaseTimes, Plan, Process, filesets, phases};
use crate::fileset::FilesetSpec;
use crate::random;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use wml_language::diag::{self, Code, Diagnostic};
use wml_language::model::{
    Attrs, CompositeDef, Evaluated, FilesetDef, Lookup, ModelValue, ProcessDef, QuitMode, Scope,
};
use wml_language::source::Span;
use wml_language::spec::{Attr, Dialect, Role, SpecTable};

/// The definitions of a session.
#[derive(Clone, Default, Debug)]
pub struct Definitions {
    /// In the order of definition.
    pub filesets: Vec<Arc<FilesetDef>>,
    /// In the order of definition.
    pub processes: Vec<Arc<ProcessDef>>,
    /// In the order of definition. A later one of a name counts.
    pub composites: Vec<Arc<CompositeDef>>,
    /// Kinds and names of all definitions so far, including replaced ones.
    defined: HashSet<(&'static str, String)>,
    /// The statements whose names depend on variables, and whether a run has used what the statement made last.
    varying: HashMap<Span, bool>,
}

impl Definitions {
    /// Adds a file set, and removes one of the same name, unless another statement of the text has made it, which is an
    /// error of the plan. If the name depends on a variable, the statement may be executed again, in a loop. It then
    /// replaces the set that it made for an earlier run. If its name is read when a run starts, it replaces every set
    /// that it made: all would have one name.
    pub fn add_fileset(&mut self, def: Arc<FilesetDef>) {
        let name = def.attrs.name();
        let before = self.note_statement(&def.attrs, def.span);
        if before == Some(true) || (before.is_some() && name.is_none()) {
            self.filesets.retain(|other| other.span != def.span);
        }
        if self.is_again("fileset", name.as_deref()) {
            let is_sibling = |other: &FilesetDef| other.span.file == def.span.file && other.span != def.span;
            self.filesets.retain(|other| other.attrs.name() != name || is_sibling(other));
        }
        self.filesets.push(def);
    }

    /// Adds a process, and removes one of the same name that it `replaces`. If the name depends on a variable, it
    /// removes those that the same statement has made for earlier runs: a loop without a run makes several processes.
    pub fn add_process(&mut self, def: Arc<ProcessDef>, replaces: impl Fn(&ProcessDef) -> bool) {
        let name = def.attrs.name();
        if self.note_statement(&def.attrs, def.span) == Some(true) {
            self.processes.retain(|other| other.span != def.span);
        }
        if self.is_again("process", name.as_deref()) {
            self.processes.retain(|other| other.attrs.name() != name || !replaces(other));
        }
        self.processes.push(def);
    }

    /// Adds a composite flowop, and removes one of the same name.
    pub fn add_composite(&mut self, def: Arc<CompositeDef>) {
        if self.is_again("flowop", Some(&def.name.node)) {
            self.composites.retain(|other| other.name.node != def.name.node);
        }
        self.composites.push(def);
    }

    /// Notes that a run uses the definitions.
    pub fn note_run(&mut self) {
        self.varying.values_mut().for_each(|used| *used = true);
    }

    /// Notes that a statement has made a definition. Returns whether a run has used the one that it made before. `None`
    /// if it made none, or if its name depends on no variable.
    fn note_statement(&mut self, attrs: &Attrs, span: Span) -> Option<bool> {
        let depends = attrs.name().is_none() || attrs.get("name").is_some_and(|name| name.early);
        if depends { self.varying.insert(span, false) } else { None }
    }

    /// Whether a definition of that name may exist already.
    fn is_again(&mut self, what: &'static str, name: Option<&str>) -> bool {
        name.is_some_and(|name| !self.defined.insert((what, name.to_owned())))
    }
}

/// Options of a run that definitions do not hold.
#[derive(Clone, Copy, Default, Debug)]
pub struct CompileOptions<'a> {
    /// `set mode quit …`.
    pub mode: QuitMode,
    /// The event generator's rate.
    pub event_rate: Option<u64>,
    /// The directory below which the paths of file sets are. `None`: they are as they are written.
    pub below: Option<&'a Path>,
}

/// Most instances of a process or thread. A larger number is a mistake.
const MOST: u64 = 1 << 20;

/// Most flowops of a plan. Those of composites count at each use.
const MOST_FLOWOPS: usize = 1 << 17;

/// Most file sets of a plan. Each directory of a list counts.
const MOST_FILESETS: usize = 1 << 17;

/// Most file sets of process instances, whose number a single number in a script decides.
const MOST_OWN_FILESETS: usize = 1 << 12;

/// Compiles a plan. Returns it with the warnings, or all errors.
pub fn compile(
    definitions: &Definitions,
    scope: &Scope,
    table: &SpecTable,
    options: CompileOptions<'_>,
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut found = Vec::new();
    let mut filesets: Vec<FilesetSpec> = Vec::new();
    let mut places = Vec::new();
    let mut wrong_sets = false;
    for def in &definitions.filesets {
        let parts = filesets::parts(def, scope, options.below, &mut found);
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
    filesets::set_draws(&mut filesets);
    let mut drafts = Vec::new();
    let mut unroller = Unroller::new(table, &definitions.composites, MOST_FLOWOPS);
    for def in &definitions.filesets {
        let of_set = || format!("file set {}", def.attrs.name().unwrap_or_default());
        unroller.exact.extend(exact_values(&def.attrs, Attr::takes_fraction, scope, of_set));
    }
    for (p, def) in definitions.processes.iter().enumerate() {
        drafts.push(process(p, def, &mut unroller, scope, &mut found));
    }
    if wml_language::diag::has_errors(&found) && unroller.is_exhausted() {
        // In a truncated program, targets of earlier flowops may be missing.
        return Err(found);
    }
    let (mut heads, mut threads) = (Vec::new(), Vec::new());
    let given: HashSet<String> = drafts.iter().map(|(head, _)| head.name.clone()).collect();
    let mut taken = HashMap::new();
    for (mut head, own) in drafts {
        head.name = numbered_name(head.name, &mut taken, &given);
        heads.push(head);
        threads.push(own);
    }
    let (filesets, places) = match sets_of_instances(filesets, &places, &heads, &threads) {
        Ok(sets) => sets,
        Err(at) => {
            let message = format!("process instances with more than {MOST_OWN_FILESETS} file sets together");
            let report = Diagnostic::error(Code::OutOfRange, at, message);
            found.push(report.help("start fewer instances, or leave out `perinstance`"));
            return Err(found);
        }
    };
    same_roots(&filesets, &places, &mut found);
    let flowops = number(&threads);
    warn_without_instances(definitions, &heads, &mut found);
    let mut plan = lower(heads, threads, flowops, filesets, scope, options, &mut found);
    plan.exact = std::mem::take(&mut unroller.exact);
    too_many_threads(definitions, &plan, &mut found);
    phases::check(definitions, &plan, &mut found);
    if wml_language::diag::has_errors(&found) {
        if wrong_sets {
            // A set with an error counts as defined, so that its uses are not reported.
            found.retain(|d| d.code != Code::UnknownFileset);
        }
        found.sort_by_key(|d| (d.primary.span.file, d.primary.span.start));
        found.dedup();
        Err(found)
    } else {
        Ok((plan, found))
    }
}

/// Replaces each set with `perinstance` by one for each instance of the largest process that uses it. Returns the sets
/// and the places of their definitions. An error is the place of the definition that makes too many.
fn sets_of_instances(
    filesets: Vec<FilesetSpec>,
    places: &[Span],
    heads: &[Process],
    threads: &[Vec<DraftThread>],
) -> Result<(Vec<FilesetSpec>, Vec<Span>), Span> {
    if filesets.iter().all(|spec| spec.instance.is_none()) {
        return Ok((filesets, places.to_vec()));
    }
    let mut instances = HashMap::<String, u32>::new();
    for (head, own) in heads.iter().zip(threads) {
        let pending = || own.iter().flat_map(|thread| &thread.pending);
        let named = ["filesetname", "toset"];
        let named = named.into_iter().flat_map(|attr| pending().filter_map(move |p| p.values.text(attr)));
        for name in named {
            let most = instances.entry(name).or_default();
            *most = head.instances.max(*most);
        }
    }
    let (mut all, mut at, mut left) = (Vec::new(), Vec::new(), MOST_OWN_FILESETS);
    for (spec, place) in filesets.into_iter().zip(places) {
        if spec.instance.is_none() {
            all.push(spec);
            at.push(*place);
            continue;
        }
        let instances = instances.get(&spec.name).map_or(1, |n| (*n).max(1));
        left = left.checked_sub(instances as usize).ok_or(*place)?;
        all.extend((0..instances).map(|own| FilesetSpec { instance: Some(own), ..spec.clone() }));
        at.extend((0..instances).map(|_| *place));
    }
    Ok((all, at))
}

/// Reports sets that share a directory: the files of one would be foreign files of the other. `places`: of the
/// definitions.
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

/// Reports too many threads: each number of instances may be allowed and their product may not.
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

/// Warns if no process has an instance: the run would do nothing until its time is up.
fn warn_without_instances(definitions: &Definitions, processes: &[Process], found: &mut Vec<Diagnostic>) {
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
pub(super) struct DraftThread {
    pub(super) values: Evaluated,
    pub(super) name: String,
    pub(super) drafts: Vec<Draft>,
    pub(super) pending: Vec<Pending>,
    pub(super) pace: Option<Pace>,
    pub(super) dialect: Dialect,
}

fn process<'a>(
    p: usize,
    def: &'a ProcessDef,
    unroller: &mut Unroller<'a>,
    scope: &Scope,
    found: &mut Vec<Diagnostic>,
) -> (Process, Vec<DraftThread>) {
    let values = evaluate(&def.attrs, scope, found);
    let of_process = || format!("process {}", values.text("name").unwrap_or_default());
    unroller.exact.extend(exact_values(&def.attrs, Attr::takes_fraction, scope, of_process));
    let instances = count(&values, "instances", 1, scope, p as u64, found);
    let nice = nice(&values, scope, p as u64, found);
    let head = Process {
        name: values.text("name").unwrap_or_default(),
        instances: instances as u32,
        nice,
        phase: u32::try_from(values.int("phase", 1)).unwrap_or(u32::MAX),
        times: PhaseTimes { length: seconds(&values, "for", found), start: seconds(&values, "start", found) },
        dialect: def.dialect,
        threads: Vec::new(),
    };
    let mut threads: Vec<DraftThread> = Vec::new();
    let evaluated: Vec<Evaluated> = def.threads.iter().map(|thread| evaluate(&thread.attrs, scope, found)).collect();
    let given: HashSet<String> = evaluated.iter().filter_map(|values| values.text("name")).collect();
    let mut taken = HashMap::new();
    unroller.set_transaction(values.text("transaction"));
    for (thread, values) in def.threads.iter().zip(evaluated) {
        let name = values.text("name").unwrap_or_default();
        let name = numbered_name(name, &mut taken, &given);
        let of_thread = format!("thread {name}");
        unroller.exact.extend(exact_values(&thread.attrs, Attr::takes_fraction, scope, || of_thread.clone()));
        let (drafts, pending) = unroller.thread(&thread.flowops, &values, scope, found);
        let pace = pace(&thread.attrs, &values, scope, found);
        threads.push(DraftThread { values, name, drafts, pending, pace, dialect: def.dialect });
    }
    known_transaction(&values, &threads, found);
    (head, threads)
}

/// Evaluates `nice=`, which may be negative. The kernel has 40 levels: a larger number is a mistake.
fn nice(values: &Evaluated, scope: &dyn Lookup, salt: u64, found: &mut Vec<Diagnostic>) -> i32 {
    let Some((value, span)) = values.get("nice") else { return 0 };
    let added = match value {
        ModelValue::Int(n) => Ok(*n),
        ModelValue::Float(x) => Ok(x.round() as i64),
        other => quantity(other, span, scope)
            .map(|q| i64::try_from(q.draw(&mut random::stream(0, &[2, salt]))).unwrap_or(i64::MAX)),
    };
    match added {
        Ok(n @ -40..=40) => return n as i32,
        Ok(n) => found.push(
            Diagnostic::error(Code::OutOfRange, span, format!("`nice` can't be {n}"))
                .help("give a number from -40 to 40, which is added to the niceness; the sum is limited to -20 to 19"),
        ),
        Err(d) => found.push(d),
    }
    0
}

/// Reports a transaction that is neither a flowop nor a composite of the process.
fn known_transaction(values: &Evaluated, threads: &[DraftThread], found: &mut Vec<Diagnostic>) {
    let Some((value, span)) = values.get("transaction") else { return };
    let name = value.print();
    let pending = || threads.iter().flat_map(|thread| &thread.pending);
    if name.is_empty() || wml_language::diag::has_errors(found) || pending().any(|f| f.transaction && f.name == name) {
        return;
    }
    let d = Diagnostic::error(Code::UnknownTarget, span, format!("no flowop of the process is called `{name}`"));
    // The name of a composite is the prefix of the names of its flowops.
    let composites = pending().filter_map(|f| f.name.rsplit_once('.').map(|(outer, _)| outer));
    let d = d.near_miss(&name, pending().map(|f| f.name.as_str()).chain(composites));
    found.push(d.or_help("`transaction=` takes the `name=` of a flowop of its threads"));
}

/// Returns the name of a process or thread, with a number appended if there is one of that name already, because
/// results are distinguished by names. `taken`: the last number of each name; `given`: names in the script, which are
/// not generated.
fn numbered_name(name: String, taken: &mut HashMap<String, usize>, given: &HashSet<String>) -> String {
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

/// Evaluates a number of instances.
pub(super) fn count(
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

fn number(processes: &[Vec<DraftThread>]) -> Vec<FlowopInfo> {
    let mut flowops = Vec::new();
    for (p, threads) in processes.iter().enumerate() {
        for (t, thread) in threads.iter().enumerate() {
            flowops.extend(thread.pending.iter().enumerate().map(|(index, f)| FlowopInfo {
                process: p,
                thread: t,
                index,
                name: f.name.clone(),
                composites: f.composites.clone(),
                kind: f.spec.name,
                class: f.spec.class,
                direction: f.spec.direction,
                sets: Vec::new(),
                transaction: f.transaction,
                may_starve: f.spec.may_starve() && f.values.flag("maystarve"),
                runs_command: f.spec.is(Role::RunsCommand),
                takes_space: f.spec.is(Role::TakesSpace),
                is_buffered: f.spec.is(Role::Buffers),
                claims_events: f.spec.is(Role::TakesEvent) || f.spec.is(Role::TakesEvents),
                finishes: f.spec.is(Role::Finishes),
                span: f.span,
            }));
        }
    }
    flowops
}
