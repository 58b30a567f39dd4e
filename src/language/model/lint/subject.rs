//! The definitions and variables of a script, as the lints see them.

use crate::diag::Diagnostic;
use crate::model::composites::{self, Composites, NestingFault, Unrolled};
use crate::model::expr::{Lookup, eval, eval_exact};
use crate::model::scope::LookupDebug;
use crate::model::visit;
use crate::model::{
    AttrUse, Attrs, Command, CommandKind, CompositeDef, Evaluated, FilesetDef, FlowopDef, Model, ModelValue,
    ProcessDef, QuitMode, Scope, SetBy, ThreadDef,
};
use crate::source::Span;
use crate::spec::Role;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Flowops of the largest script that is linted.
pub(super) const LARGEST: u64 = 1 << 17;

/// The definitions and variables of a script, as the lints see them.
#[derive(Default)]
pub(super) struct Subject<'a> {
    pub(super) commands: &'a [Command],
    /// The variables as they are at the end of the script.
    pub(super) scope: Scope,
    pub(super) filesets: Vec<&'a Arc<FilesetDef>>,
    pub(super) processes: Vec<&'a Arc<ProcessDef>>,
    pub(super) composites: Vec<&'a Arc<CompositeDef>>,
    /// By name.
    pub(super) composite_of: Composites<'a>,
    /// The first file set of each name.
    fileset_of: HashMap<String, &'a Arc<FilesetDef>>,
    /// What ends a run before its time.
    pub(super) mode: QuitMode,
    /// Whether the script loads another one, whose definitions are unknown here.
    pub(super) loads: bool,
    /// The answer of [`Subject::ends_by_itself`], which each file set asks for.
    pub(super) ends: OnceCell<bool>,
}

impl<'a> Subject<'a> {
    /// `executed`: the commands of the model, with the values that Filebench reads at a definition.
    pub(super) fn new(model: &'a Model, executed: &'a [Command], scope: &Scope) -> Self {
        let mut subject = Self { commands: &model.commands, scope: scope.clone(), ..Self::default() };
        subject.gather(executed);
        subject.composite_of = Composites::new(subject.composites.iter().map(|composite| &***composite));
        for set in &subject.filesets {
            if let Some(name) = text(&set.attrs, "name", &subject.scope) {
                subject.fileset_of.entry(name).or_insert(set);
            }
        }
        subject
    }

    pub(super) fn gather(&mut self, commands: &'a [Command]) {
        for command in visit::all(commands) {
            match &command.kind {
                // An error of a setting is reported where it matters.
                CommandKind::Set { name, value, .. } => drop(self.scope.set(&name.node, value.clone(), SetBy::Script)),
                CommandKind::SetField { name, field, value } => {
                    self.scope.set_field(&name.node, field.clone(), value.clone());
                }
                CommandKind::SetMode(mode) => self.mode = *mode,
                CommandKind::DefineFileset(def) => self.filesets.push(def),
                CommandKind::DefineProcess(def) => self.processes.push(def),
                CommandKind::DefineFlowop(def) => self.composites.push(def),
                CommandKind::Load(_) => self.loads = true,
                // Its value differs between iterations, so that it counts as unknown.
                CommandKind::ForEach { name, .. } => _ = self.scope.unset(&name.node),
                _ => {}
            }
        }
    }

    /// The file set of that name.
    pub(super) fn fileset(&self, name: &str) -> Option<&'a Arc<FilesetDef>> {
        self.fileset_of.get(name).copied()
    }

    /// All threads with their processes.
    pub(super) fn threads(&self) -> impl Iterator<Item = (&'a ProcessDef, &'a ThreadDef)> {
        self.processes.iter().flat_map(|p| p.threads.iter().map(move |t| (&***p, t)))
    }

    /// Whether anything ends a thread after a number of operations.
    pub(super) fn ends_by_itself(&self) -> bool {
        let finishes = |f: &FlowopDef| f.spec.is_some_and(|spec| spec.is(Role::Finishes));
        *self.ends.get_or_init(|| {
            self.threads().any(|(_, t)| t.flowops.iter().any(finishes))
                || self.composites.iter().any(|c| c.flowops.iter().any(finishes))
        })
    }

    /// The flowops of a thread in the order of its loop, with composites unrolled.
    pub(super) fn body(&self, thread: &'a ThreadDef) -> Vec<Use<'a>> {
        let mut uses = Uses { all: Vec::new(), budget: LARGEST };
        let mut level = UsesLevel {
            times: Some(1),
            mean: Some(1.0),
            mix: MixWeights::of(&thread.attrs, &thread.flowops, &self.scope),
            is_drawn: false,
            prefix: String::new(),
        };
        composites::unroll(&mut uses, &self.composite_of, &thread.flowops, &mut level, &self.scope);
        uses.all
    }
}

/// The flowops of a loop.
struct Uses<'a> {
    all: Vec<Use<'a>>,
    /// Remaining number of flowops and composites.
    budget: u64,
}

/// What the flowops of a composite have in common.
struct UsesLevel {
    /// Executions in an iteration of the thread, if that is certain.
    times: Option<u64>,
    /// Executions in an iteration of the thread on average, if that is known.
    mean: Option<f64>,
    /// The mix that draws one of them, if there is one.
    mix: Option<MixWeights>,
    /// Whether a mix around them is drawn from.
    is_drawn: bool,
    /// What precedes their names in results.
    prefix: String,
}

#[derive(Clone, Copy)]
struct MixWeights {
    /// Their sum, if they are known and not all 0.
    sum: Option<f64>,
}

impl MixWeights {
    /// The mix of the flowops of a thread or composite with these attributes, if it is one.
    fn of(attrs: &Attrs, flowops: &[FlowopDef], scope: &dyn Lookup) -> Option<Self> {
        let weights = flowops.iter().map(|flowop| weight(&flowop.attrs, scope));
        let sum = || weights.sum::<Option<f64>>().filter(|sum| *sum > 0.0);
        let used = attrs.get("mix")?;
        let is_on = eval(&used.value, scope).ok().and_then(|value| value.as_switch()).unwrap_or(true);
        is_on.then(|| Self { sum: sum() })
    }
}

/// The value of `weight=`, if it is known.
pub(super) fn weight(attrs: &Attrs, scope: &dyn Lookup) -> Option<f64> {
    let Some(used) = attrs.get("weight") else { return Some(1.0) };
    eval_exact(&used.value, scope).ok()?.as_f64()
}

/// A flowop or composite of a loop.
struct Counted {
    name: Option<String>,
    times: Option<u64>,
    mean: Option<f64>,
    is_drawn: bool,
    iters: Option<u64>,
}

/// The value of `iters=`, if it is certain.
pub(super) fn iters(attrs: &Attrs, scope: &dyn Lookup) -> Option<u64> {
    if attrs.get("iters").is_some() { int(attrs, "iters", scope) } else { Some(1) }
}

impl<'a> Unrolled<'a> for Uses<'a> {
    type Level = UsesLevel;
    type Use = Counted;

    fn begin(&mut self, flowop: &'a FlowopDef, level: &mut UsesLevel, scope: &dyn LookupDebug) -> Option<Counted> {
        self.budget -= 1;
        let iters = iters(&flowop.attrs, scope);
        // The number of draws of each flowop of a mix is unknown.
        let times = level.times.filter(|_| level.mix.is_none());
        let times = times.zip(iters).and_then(|(a, b)| a.checked_mul(b));
        let share = level.mix.map_or(Some(1.0), |mix| Some(weight(&flowop.attrs, scope)? / mix.sum?));
        let mean = level.mean.zip(share).zip(iters).map(|((mean, share), iters)| mean * share * iters as f64);
        let is_drawn = level.is_drawn || level.mix.is_some();
        let name = text(&flowop.attrs, "name", scope).map(|name| format!("{}{name}", level.prefix));
        Some(Counted { name, times, mean, is_drawn, iters })
    }

    fn built_in(&mut self, flowop: &'a FlowopDef, used: Counted, scope: &dyn LookupDebug) {
        self.all.push(Use::new(flowop, used, scope));
    }

    fn enter(
        &mut self,
        _: &'a FlowopDef,
        composite: &'a CompositeDef,
        used: Counted,
        scope: &dyn LookupDebug,
        _: Vec<Diagnostic>,
    ) -> UsesLevel {
        let iters = iters(&composite.attrs, scope);
        UsesLevel {
            times: used.times.zip(iters).and_then(|(a, b)| a.checked_mul(b)),
            mean: used.mean.zip(iters).map(|(mean, iters)| mean * iters as f64),
            mix: MixWeights::of(&composite.attrs, &composite.flowops, scope),
            is_drawn: used.is_drawn,
            prefix: format!("{}.", used.name.unwrap_or_default()),
        }
    }

    fn leave(&mut self, _: &'a FlowopDef, _: UsesLevel) {}
    fn refuse(&mut self, _: &'a FlowopDef, _: NestingFault) {}
    fn end(&mut self, _: &mut UsesLevel) {}

    fn is_done(&self) -> bool {
        self.budget == 0
    }
}

/// A flowop in the loop of a thread.
pub(super) struct Use<'a> {
    pub(super) flowop: &'a FlowopDef,
    /// Its name in results, if that is known.
    pub(super) name: Option<String>,
    /// Executions in an iteration, if that is certain.
    pub(super) times: Option<u64>,
    /// Executions in an iteration on average, if that is known.
    pub(super) mean: Option<f64>,
    /// Whether a mix draws it.
    pub(super) is_drawn: bool,
    /// Executions in a row, if that is certain.
    pub(super) iters: Option<u64>,
    /// The attributes whose value is known.
    pub(super) known: Evaluated,
}

impl<'a> Use<'a> {
    fn new(flowop: &'a FlowopDef, used: Counted, scope: &dyn Lookup) -> Self {
        let Counted { name, times, mean, is_drawn, iters } = used;
        let is_exact = |attr| flowop.spec.is_some_and(|spec| spec.takes_fraction(attr));
        let value = |used: &AttrUse| {
            let eval = if is_exact(used.attr) { eval_exact } else { eval };
            Some((used.attr.name, eval(&used.value, scope).ok()?, used.value.span))
        };
        let known = Evaluated { values: flowop.attrs.iter().filter_map(value).collect(), incomplete: false };
        Self { flowop, name, times, mean, is_drawn, iters, known }
    }

    pub(super) fn kind(&self) -> &'a str {
        &self.flowop.kind.node
    }

    /// Whether its flowop has that role. A flowop that expects an error has no role: it changes nothing. A file without a
    /// name is none of the set.
    pub(super) fn is(&self, role: Role) -> bool {
        let asks = self.has("missing") || self.has("expect");
        let nameless = role == Role::MakesFile && self.flag("tmpfile");
        !asks && !nameless && self.flowop.spec.is_some_and(|spec| spec.is(role))
    }

    /// The sets that a flowop moves a file between, if they are two: from the first to the second.
    pub(super) fn moved(&self) -> Option<(String, String)> {
        let (from, to) = (self.text("filesetname")?, self.text("toset")?);
        (self.is(Role::MovesFile) && from != to).then_some((from, to))
    }

    /// Whether its flowop has that role for the files of a set. One that moves a file to another set removes it from
    /// the first and makes it in the second, where with `over` it replaces one.
    pub(super) fn is_for(&self, set: &str, role: Role) -> bool {
        match self.moved() {
            None => self.is(role),
            Some((from, _)) if from == set => matches!(role, Role::RemovesFile | Role::NeedsFile),
            Some(_) if self.flag("over") => role == Role::NeedsFile,
            Some(_) => role == Role::MakesFile,
        }
    }

    pub(super) fn has(&self, attr: &str) -> bool {
        self.flowop.attrs.get(attr).is_some()
    }

    pub(super) fn at(&self, attr: &str) -> Span {
        self.flowop.attrs.get(attr).map_or(self.flowop.span, |used| used.value.span)
    }

    pub(super) fn int(&self, attr: &str) -> Option<u64> {
        self.known.get(attr).and_then(|(value, _)| value.as_u64())
    }

    /// A switch. One of unknown value counts as on.
    pub(super) fn flag(&self, attr: &str) -> bool {
        self.known.get(attr).map_or_else(|| self.has(attr), |(value, _)| value.as_switch().unwrap_or(true))
    }

    pub(super) fn text(&self, attr: &str) -> Option<String> {
        self.known.text(attr)
    }

    /// Its name in messages.
    pub(super) fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.kind().to_owned())
    }
}

/// The whole number of an attribute, if it is written and known.
pub(super) fn int(attrs: &Attrs, name: &str, scope: &dyn Lookup) -> Option<u64> {
    attrs.get(name).and_then(|used| eval(&used.value, scope).ok()).as_ref().and_then(ModelValue::as_u64)
}

/// The text of an attribute, if it is written and known.
pub(super) fn text(attrs: &Attrs, name: &str, scope: &dyn Lookup) -> Option<String> {
    attrs.get(name).and_then(|used| eval(&used.value, scope).ok()).map(|value| value.print())
}
