//! Doubts about a script that would run: one file for each lint or small family, one line each in [`TABLE`].
//!
//! In: a model without errors, and the variables that others have set. Out: warnings. A lint speaks only of what is certain
//! from the text: values are asked for as they are at the end of it (late binding), and where one can't be told, or a name is
//! made by a variable, it keeps silent. What a run would find out itself is told here before anything is made.
//! Deliberately absent: random draws, trees, rates of a machine.

mod exhausted;
mod names;
mod rates;
mod semaphores;
mod shell;
mod sizes;
mod slots;
mod variables;

pub(crate) use variables::read_beside_load;

use super::expr::{Lookup, ModelValue, eval};
use super::{
    Attrs, Command, CommandKind, CompositeDef, FilesetDef, FlowopDef, Locals, Model, ProcessDef, QuitMode, Scope,
    SetBy, ThreadDef,
};
use crate::diag::{self, Code, Diagnostic};
use crate::source::Span;
use crate::spec::Role;
use std::collections::HashMap;
use std::sync::Arc;

/// One lint.
pub struct Lint {
    /// What it warns of.
    pub code: Code,
    /// Whether it is worth telling before a run, not only by `wmlrun check`: what it warns of spoils the run.
    pub spoils: bool,
    find: fn(&Subject<'_>, &mut Vec<Diagnostic>),
}

/// Flowops of the largest script that is looked at.
const LARGEST: u64 = 1 << 17;

/// Composites in composites that are counted; more is a circle.
const DEEPEST: usize = 32;

/// All lints.
pub const TABLE: &[Lint] = &[
    Lint { code: Code::UnusedVariable, spoils: false, find: variables::unused },
    Lint { code: Code::Shadowed, spoils: false, find: variables::shadowed },
    Lint { code: Code::RepeatedName, spoils: false, find: names::repeated },
    Lint { code: Code::DeadSemaphore, spoils: true, find: semaphores::dead },
    Lint { code: Code::ExhaustedFileset, spoils: true, find: exhausted::exhausted },
    Lint { code: Code::SmallFile, spoils: true, find: sizes::small },
    Lint { code: Code::SlotUse, spoils: true, find: slots::misused },
    Lint { code: Code::RateTooHigh, spoils: true, find: rates::too_high },
    Lint { code: Code::RunsShell, spoils: false, find: shell::commands },
    Lint { code: Code::WritesFile, spoils: false, find: shell::writes },
];

/// All doubts about a model that has no errors, in the order of the text.
///
/// `scope` is what is set before the script begins: `$dir`, and the command line's `--set`. With `before_run` only those that
/// spoil the run.
pub fn lint(model: &Model, scope: &Scope, before_run: bool) -> Vec<Diagnostic> {
    let subject = Subject::new(model, scope);
    let mut found = Vec::new();
    if subject.size() > LARGEST {
        // What is generated on such a scale is not read by anyone, and each lint would unroll it again.
        return found;
    }
    for lint in TABLE.iter().filter(|lint| lint.spoils || !before_run) {
        let mut own = Vec::new();
        (lint.find)(&subject, &mut own);
        own.into_iter().for_each(|d| diag::push(&mut found, d));
    }
    found.sort_by_key(|d| (d.primary.span.file, d.primary.span.start));
    found.dedup();
    found
}

/// What a script does besides its runs: commands of the shell, files that it writes.
pub(crate) fn effects(commands: &[Command], scope: &Scope) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    shell::find(commands, &mut found);
    shell::written(commands, scope, &mut found);
    found
}

/// What lints look at.
struct Subject<'a> {
    commands: &'a [Command],
    /// The variables as they are at the end of the script.
    scope: Scope,
    filesets: Vec<&'a Arc<FilesetDef>>,
    processes: Vec<&'a Arc<ProcessDef>>,
    composites: Vec<&'a Arc<CompositeDef>>,
    /// The last composite of each name.
    composite_of: HashMap<&'a str, &'a Arc<CompositeDef>>,
    /// The first file set of each name.
    fileset_of: HashMap<String, &'a Arc<FilesetDef>>,
    /// What ends a run besides its time.
    mode: QuitMode,
    /// Another script is loaded, of which nothing is known here.
    loads: bool,
}

impl<'a> Subject<'a> {
    fn new(model: &'a Model, scope: &Scope) -> Self {
        let mut subject = Self {
            commands: &model.commands,
            scope: scope.clone(),
            filesets: Vec::new(),
            processes: Vec::new(),
            composites: Vec::new(),
            composite_of: HashMap::new(),
            fileset_of: HashMap::new(),
            mode: QuitMode::default(),
            loads: false,
        };
        subject.gather(&model.commands);
        subject.composite_of = subject.composites.iter().map(|c| (c.name.node.as_str(), *c)).collect();
        for set in &subject.filesets {
            if let Some(name) = text(&set.attrs, "name", &subject.scope) {
                subject.fileset_of.entry(name).or_insert(set);
            }
        }
        subject
    }

    /// Flowops of all threads, those of composites counted at each use.
    fn size(&self) -> u64 {
        let mut known = HashMap::new();
        self.threads().fold(0, |sum: u64, (_, t)| sum.saturating_add(self.size_of(&t.flowops, 0, &mut known)))
    }

    fn size_of(&self, flowops: &'a [FlowopDef], depth: usize, known: &mut HashMap<&'a str, u64>) -> u64 {
        flowops.iter().fold(0, |sum: u64, flowop| {
            let name = flowop.kind.node.as_str();
            let own = match (known.get(name), self.composite_of.get(name)) {
                (Some(own), _) => *own,
                (None, Some(composite)) if depth < DEEPEST => {
                    let own = self.size_of(&composite.flowops, depth + 1, known);
                    known.insert(name, own);
                    own
                }
                _ => 1,
            };
            sum.saturating_add(own)
        })
    }

    fn gather(&mut self, commands: &'a [Command]) {
        for command in commands {
            match &command.kind {
                // What can't be set was told as an error where it matters.
                CommandKind::Set { name, value } => drop(self.scope.set(&name.node, value.clone(), SetBy::Script)),
                CommandKind::SetField { name, field, value } => {
                    self.scope.set_field(&name.node, field.clone(), value.clone());
                }
                CommandKind::SetMode(mode) => self.mode = *mode,
                CommandKind::DefineFileset(def) => self.filesets.push(def),
                CommandKind::DefineProcess(def) => self.processes.push(def),
                CommandKind::DefineFlowop(def) => self.composites.push(def),
                CommandKind::Load(_) => self.loads = true,
                CommandKind::ForEach { name, body, .. } => {
                    // It has several values: none that can be told.
                    self.scope.unset(&name.node);
                    self.gather(body);
                }
                _ => {}
            }
        }
    }

    fn composite(&self, name: &str) -> Option<&'a Arc<CompositeDef>> {
        self.composite_of.get(name).copied()
    }

    /// The file set of that name; `None` also if any is named by a variable.
    fn fileset(&self, name: &str) -> Option<&'a Arc<FilesetDef>> {
        self.fileset_of.get(name).copied()
    }

    /// All threads with their processes.
    fn threads(&self) -> impl Iterator<Item = (&'a ProcessDef, &'a ThreadDef)> {
        self.processes.iter().flat_map(|p| p.threads.iter().map(move |t| (&***p, t)))
    }

    /// The flowops of a thread in the order of its loop, composites unrolled; how often each is done in an iteration, where that is
    /// certain.
    fn body(&self, thread: &'a ThreadDef) -> Vec<Use<'a>> {
        let mut uses = Vec::new();
        self.unroll(&thread.flowops, &self.scope, Some(1), "", 0, &mut uses);
        uses
    }

    fn unroll(
        &self,
        flowops: &'a [FlowopDef],
        scope: &dyn super::scope::LookupDebug,
        times: Option<u64>,
        prefix: &str,
        depth: usize,
        uses: &mut Vec<Use<'a>>,
    ) {
        for flowop in flowops {
            let own = if flowop.attrs.get("iters").is_some() { int(&flowop.attrs, "iters", scope) } else { Some(1) };
            let times = times.zip(own).and_then(|(a, b)| a.checked_mul(b));
            let name = text(&flowop.attrs, "name", scope).map(|name| format!("{prefix}{name}"));
            let Some(composite) = self.composite(&flowop.kind.node) else {
                uses.push(Use::new(flowop, name, (times, own), scope));
                continue;
            };
            // A circle, or a composite in hundreds of composites, was told as an error or is nothing for a lint.
            if depth >= 8 || uses.len() > 10_000 {
                return;
            }
            let mut values = Vec::new();
            for parameter in &composite.parameters {
                let given = flowop.locals.iter().rev().find(|l| l.name.node == parameter.name.node);
                let value = given.and_then(|l| l.value.as_ref()).or(parameter.value.as_ref());
                if let Some(Ok(value)) = value.map(|v| eval(v, scope)) {
                    values.push((parameter.name.node.clone(), value));
                }
            }
            let inner = Locals { values, outer: scope };
            let body =
                if composite.attrs.get("iters").is_some() { int(&composite.attrs, "iters", &inner) } else { Some(1) };
            let times = times.zip(body).and_then(|(a, b)| a.checked_mul(b));
            // Of a mix each flowop is done now and then.
            let times = times.filter(|_| composite.attrs.get("mix").is_none());
            let prefix = format!("{}.", name.unwrap_or_default());
            self.unroll(&composite.flowops, &inner, times, &prefix, depth + 1, uses);
        }
    }

    /// Whether anything ends a run, or a thread, by what was done.
    fn ends_by_itself(&self) -> bool {
        let finishes = |f: &FlowopDef| f.spec.is_some_and(|spec| spec.is(Role::Finishes));
        self.mode != QuitMode::Timeout
            || self.threads().any(|(_, t)| t.flowops.iter().any(finishes))
            || self.composites.iter().any(|c| c.flowops.iter().any(finishes))
    }
}

/// A flowop in the loop of a thread.
struct Use<'a> {
    flowop: &'a FlowopDef,
    /// Its name in results, if that can be told.
    name: Option<String>,
    /// How often in an iteration, if that is certain.
    times: Option<u64>,
    /// How often in a row, if that is certain.
    iters: Option<u64>,
    /// Its attributes with their values; `None`: one that can't be told.
    values: Vec<(&'static str, Option<ModelValue>, Span)>,
}

impl<'a> Use<'a> {
    fn new(
        flowop: &'a FlowopDef,
        name: Option<String>,
        (times, iters): (Option<u64>, Option<u64>),
        scope: &dyn Lookup,
    ) -> Self {
        let values =
            flowop.attrs.iter().map(|used| (used.attr.name, eval(&used.value, scope).ok(), used.value.span)).collect();
        Self { flowop, name, times, iters, values }
    }

    fn kind(&self) -> &'a str {
        &self.flowop.kind.node
    }

    /// Whether its flowop has that role. One whose answer is an error only asks.
    fn is(&self, role: Role) -> bool {
        let asks = self.has("missing") || self.has("expect");
        !asks && self.flowop.spec.is_some_and(|spec| spec.is(role))
    }

    fn has(&self, attr: &str) -> bool {
        self.values.iter().any(|(n, _, _)| *n == attr)
    }

    fn value(&self, attr: &str) -> Option<&ModelValue> {
        self.values.iter().rev().find(|(n, _, _)| *n == attr)?.1.as_ref()
    }

    fn at(&self, attr: &str) -> Span {
        self.values.iter().rev().find(|(n, _, _)| *n == attr).map_or(self.flowop.span, |(_, _, s)| *s)
    }

    fn int(&self, attr: &str) -> Option<u64> {
        self.value(attr).and_then(whole)
    }

    /// A switch; one that can't be told is taken for on.
    fn flag(&self, attr: &str) -> bool {
        match self.value(attr) {
            None => self.has(attr),
            Some(ModelValue::Bool(on)) => *on,
            Some(ModelValue::Int(n)) => *n != 0,
            Some(ModelValue::Text(word)) => super::fit::switch(word).unwrap_or(true),
            Some(_) => true,
        }
    }

    fn text(&self, attr: &str) -> Option<String> {
        self.value(attr).map(ModelValue::print)
    }

    /// How a message calls it.
    fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.kind().to_owned())
    }
}

fn whole(value: &ModelValue) -> Option<u64> {
    match value {
        ModelValue::Int(n) => u64::try_from(*n).ok(),
        ModelValue::Bool(on) => Some(u64::from(*on)),
        _ => None,
    }
}

/// An attribute's whole number, if it is written and can be told.
fn int(attrs: &Attrs, name: &str, scope: &dyn Lookup) -> Option<u64> {
    attrs.get(name).and_then(|used| eval(&used.value, scope).ok()).as_ref().and_then(whole)
}

/// An attribute's text, if it is written and can be told.
fn text(attrs: &Attrs, name: &str, scope: &dyn Lookup) -> Option<String> {
    attrs.get(name).and_then(|used| eval(&used.value, scope).ok()).map(|value| value.print())
}
