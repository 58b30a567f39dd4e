//! Unrolls the body of a thread: composites become ranges of steps, arguments become values, and every flowop with
//! counters gets its number. Names are resolved later, when all flowops of all threads are known.

use super::PlanStep;
use super::values::{ExactValue, evaluate, evaluate_flowop, exact_values};
use crate::flowop::{self, MEASURE, TRANSACTION};
use crate::random::Quantity;
use std::sync::Arc;
use wml_language::diag::{self, Code, Diagnostic};
use wml_language::model::composites::{self, Composites, NestingFault, Unrolled};
use wml_language::model::scope::LookupDebug;
use wml_language::model::{CompositeDef, Evaluated, FlowopDef, eval, eval_exact};
use wml_language::source::Span;
use wml_language::spec::{Attr, Class, Flowop, Role, SpecTable};

/// A flowop whose names are not resolved yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) name: String,
    /// The names of the uses of composites that it is in, the outermost first.
    pub(super) composites: Vec<String>,
    pub(super) spec: &'static Flowop,
    pub(super) values: Evaluated,
    /// Whether each of its operations is, or ends, a transaction.
    pub(super) transaction: bool,
    pub(super) span: Span,
}

/// A step whose flowop is still pending.
#[derive(Debug)]
pub(super) enum Draft {
    Op { local: usize, iters: Quantity },
    Step(PlanStep),
}

/// How a mix draws its flowops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mix {
    /// With replacement, by weight.
    Drawn,
    /// Without replacement, from as many draws as the weights add up to.
    Shuffled,
}

impl Mix {
    fn of(values: &Evaluated) -> Option<Self> {
        values.flag("mix").then(|| if values.flag("shuffle") { Self::Shuffled } else { Self::Drawn })
    }
}

/// The largest weight in a shuffled mix.
const MOST_OF_A_LAP: f64 = 1e6;

/// The flowops besides those of `Class::Sync` that wait for something which a thread that waits for the group may have, or
/// for I/O of their own thread.
const WAITING: [&str; 2] = ["lock", "aiowait"];

/// Bytes of the longest name of a flowop, including those of its composites.
const LONGEST_NAME: usize = 1024;

/// Unrolls bodies of threads.
pub(super) struct Unroller<'a> {
    table: &'a SpecTable,
    composites: Composites<'a>,
    /// Remaining number of flowops and composites.
    left: usize,
    exhausted: bool,
    /// The name, in results, of the flowop or composite that is a transaction of the process.
    transaction: Option<String>,
    /// The names of the uses of composites around the current flowop, the outermost first.
    uses: Vec<String>,
    /// Number of composites with `group` so far, of all threads.
    groups: usize,
    /// The name of the composite with `group` that the current flowop is in.
    group: Option<String>,
    drafts: Vec<Draft>,
    pending: Vec<Pending>,
    /// The exact values so far, of all threads.
    pub(super) exact: Vec<ExactValue>,
}

impl<'a> Unroller<'a> {
    /// Returns an unroller for at most `most` flowops, of all threads together.
    pub(super) fn new(table: &'a SpecTable, composites: &'a [Arc<CompositeDef>], most: usize) -> Self {
        let composites = Composites::new(composites.iter().map(|composite| &**composite));
        Self {
            table,
            composites,
            left: most,
            exhausted: false,
            transaction: None,
            uses: Vec::new(),
            groups: 0,
            group: None,
            drafts: Vec::new(),
            pending: Vec::new(),
            exact: Vec::new(),
        }
    }

    /// Whether there were more flowops than that.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Sets the transaction of the process whose threads follow.
    pub(super) fn set_transaction(&mut self, name: Option<String>) {
        self.transaction = name.filter(|name| !name.is_empty());
    }

    /// Unrolls the body of a thread with these attributes.
    pub(super) fn thread(
        &mut self,
        flowops: &'a [FlowopDef],
        values: &Evaluated,
        scope: &dyn LookupDebug,
        found: &mut Vec<Diagnostic>,
    ) -> (Vec<Draft>, Vec<Pending>) {
        let measure = self.begin_measure(values, None, found);
        let mut level = Level { mix: self.begin_mix(values), measure, ..Level::default() };
        let composites = self.composites.clone();
        composites::unroll(&mut ThreadBody { own: self, found }, &composites, flowops, &mut level, scope);
        self.end_mix(level.mix);
        self.end_measure(level.measure);
        (std::mem::take(&mut self.drafts), std::mem::take(&mut self.pending))
    }

    /// Begins a mix, if these attributes ask for one.
    fn begin_mix(&mut self, values: &Evaluated) -> Option<MixDraft> {
        let how = Mix::of(values)?;
        let choose = self.drafts.len();
        self.drafts.push(Draft::Step(PlanStep::Jump(0)));
        Some(MixDraft { how, choose, sum: 0.0, upto: Vec::new(), starts: Vec::new(), jumps: Vec::new() })
    }

    /// Ends a mix, now that the places of its flowops are known.
    fn end_mix(&mut self, mix: Option<MixDraft>) {
        let Some(MixDraft { how, choose, upto, starts, jumps, .. }) = mix else { return };
        let end = self.drafts.len();
        for jump in jumps {
            self.drafts[jump] = Draft::Step(PlanStep::Jump(end));
        }
        self.drafts[choose] = Draft::Step(PlanStep::Choose { upto, starts, end, shuffled: how == Mix::Shuffled });
    }

    /// Begins what `measure=` measures, if these attributes have it: an iteration of a thread, or the use of a
    /// composite of this name. Returns the number of its row.
    fn begin_measure(
        &mut self,
        values: &Evaluated,
        used_as: Option<&str>,
        found: &mut Vec<Diagnostic>,
    ) -> Option<usize> {
        let (_, span) = values.get("measure")?;
        let own = values.text("measure").filter(|name| !name.is_empty())?;
        // Within a composite, names of rows begin with that of its use.
        let outer = used_as.and_then(|name| name.rsplit_once('.'));
        let name = outer.map_or_else(|| own.clone(), |(outer, _)| format!("{outer}.{own}"));
        if name.len() > LONGEST_NAME {
            let report = Diagnostic::error(Code::OutOfRange, span, format!("a name of {} bytes", name.len()));
            diag::push(found, report.help(format!("at most {LONGEST_NAME} are possible")));
            return None;
        }
        let local = self.pending.len();
        let transaction = self.transaction.as_ref() == Some(&name);
        let (composites, values) = (self.uses.clone(), Evaluated::default());
        self.pending.push(Pending { name, composites, spec: &MEASURE, values, transaction, span });
        let (iters, op) = (Quantity::Const(1), flowop::measure_start());
        self.drafts.push(Draft::Step(PlanStep::Op { local, iters, op }));
        Some(local)
    }

    /// Ends what `measure=` measures.
    fn end_measure(&mut self, row: Option<usize>) {
        self.drafts.extend(row.map(|local| Draft::Op { local, iters: Quantity::Const(1) }));
    }

    fn operation(&mut self, pending: Pending, iters: Quantity) {
        self.drafts.push(Draft::Op { local: self.pending.len(), iters });
        self.pending.push(pending);
    }

    fn open(&mut self, name: Option<String>, iters: Quantity) -> usize {
        self.drafts.push(Draft::Step(PlanStep::Enter { name, iters, leave: 0 }));
        self.drafts.len() - 1
    }

    fn close(&mut self, enter: usize) {
        let here = self.drafts.len();
        self.drafts.push(Draft::Step(PlanStep::Leave { enter }));
        if let Draft::Step(PlanStep::Enter { leave, .. }) = &mut self.drafts[enter] {
            *leave = here;
        }
    }
}

/// What the flowops within one use of a composite have in common.
#[derive(Default)]
struct Level {
    /// The name of the use in results; `None` for the body of a thread.
    name: Option<String>,
    /// Indices of the steps that begin the use and, if the composite repeats its body, the body.
    enter: usize,
    nested: Option<usize>,
    /// Index of the step at which a `group` gathers.
    gather: Option<usize>,
    /// The row of its `measure=`.
    measure: Option<usize>,
    mix: Option<MixDraft>,
}

/// A mix whose flowops are being unrolled.
struct MixDraft {
    how: Mix,
    /// Index of its [`PlanStep::Choose`].
    choose: usize,
    sum: f64,
    upto: Vec<f64>,
    starts: Vec<usize>,
    /// Indices of the steps that end its flowops.
    jumps: Vec<usize>,
}

impl MixDraft {
    /// Begins with a flowop, whose steps follow.
    fn add(&mut self, flowop: &FlowopDef, start: usize, scope: &dyn LookupDebug) -> Result<(), Diagnostic> {
        self.starts.push(start);
        let weight = self.weight(flowop, scope);
        self.sum += *weight.as_ref().unwrap_or(&0.0);
        self.upto.push(self.sum);
        weight.map(|_| ())
    }

    fn weight(&self, flowop: &FlowopDef, scope: &dyn LookupDebug) -> Result<f64, Diagnostic> {
        let Some(used) = flowop.attrs.get("weight") else { return Ok(1.0) };
        // How often a flowop comes in a lap is a whole number.
        let value = if self.how == Mix::Shuffled { eval } else { eval_exact }(&used.value, scope)?;
        let wrong = |message: String| Diagnostic::error(Code::WrongType, used.value.span, message);
        match value.as_f64().filter(|weight| *weight >= 0.0) {
            None => Err(wrong(format!("`weight` is {}", value.print())).help("give a number from 0 up")),
            Some(weight) if self.how == Mix::Shuffled && (weight.fract() != 0.0 || weight > MOST_OF_A_LAP) => {
                Err(wrong(format!("`weight` is {weight} in a shuffled mix"))
                    .help("give whole numbers up to a million: each is how often the flowop comes in a lap"))
            }
            Some(weight) => Ok(weight),
        }
    }
}

/// A flowop or composite of a body, evaluated.
struct Evaluation {
    values: Evaluated,
    /// Its name in results.
    name: String,
    iters: Quantity,
}

/// The body of a thread that is being unrolled.
struct ThreadBody<'b, 'a> {
    own: &'b mut Unroller<'a>,
    found: &'b mut Vec<Diagnostic>,
}

impl<'a> Unrolled<'a> for ThreadBody<'_, 'a> {
    type Level = Level;
    type Use = Evaluation;

    fn begin(&mut self, flowop: &'a FlowopDef, level: &mut Level, scope: &dyn LookupDebug) -> Option<Evaluation> {
        if let Some(Err(d)) = level.mix.as_mut().map(|mix| mix.add(flowop, self.own.drafts.len(), scope)) {
            self.found.push(d);
        }
        let Some(left) = self.own.left.checked_sub(1) else {
            self.own.exhausted = true;
            let message = "the threads of the script have too many flowops, those of composites counted at each use";
            let report = Diagnostic::error(Code::OutOfRange, flowop.span, message);
            self.found.push(report.help("at most 131072 are possible; `iters=` repeats a flowop without another one"));
            return None;
        };
        self.own.left = left;
        let values = evaluate_flowop(flowop, scope, self.found);
        let own = values.text("name").unwrap_or_default();
        let name = level.name.as_ref().map_or_else(|| own.clone(), |outer| format!("{outer}.{own}"));
        if name.len() > LONGEST_NAME {
            let message = format!("a flowop whose name has {} bytes, those of its composites included", name.len());
            let report = Diagnostic::error(Code::OutOfRange, flowop.span, message);
            diag::push(self.found, report.help(format!("at most {LONGEST_NAME} are possible")));
            return None;
        }
        let is_drawn = level.mix.as_ref().is_some_and(|mix| mix.how == Mix::Drawn);
        let is_exact = |attr: &Attr| match (attr.name, flowop.spec) {
            ("weight", _) => is_drawn,
            (_, Some(spec)) => spec.has_attr(attr.name) && spec.takes_fraction(attr),
            (_, None) => false,
        };
        self.own.exact.extend(exact_values(&flowop.attrs, is_exact, scope, || format!("flowop {name}")));
        match values.get("iters").map(|(v, span)| super::values::quantity(v, span, scope)) {
            None => Some(Evaluation { values, name, iters: Quantity::Const(1) }),
            Some(Ok(iters)) => Some(Evaluation { values, name, iters }),
            Some(Err(d)) => {
                self.found.push(d);
                None
            }
        }
    }

    fn built_in(&mut self, flowop: &'a FlowopDef, used: Evaluation, _: &dyn LookupDebug) {
        let Some(spec) = flowop.spec else {
            let written = &flowop.kind.node;
            let message = format!("no flowop is called `{written}`");
            let d = Diagnostic::error(Code::UnknownFlowop, flowop.kind.span, message)
                .near_miss(written, self.own.table.flowops.iter().map(|f| f.name));
            self.found.push(d.or_help("`wmlrun list flowops` shows them all"));
            return;
        };
        self.refuse_wait_in_group(flowop, spec);
        let Evaluation { values, name, iters } = used;
        let transaction = self.own.transaction.as_ref() == Some(&name) || spec.is(Role::EndsTransaction);
        let composites = self.own.uses.clone();
        self.own.operation(Pending { name, composites, spec, values, transaction, span: flowop.span }, iters);
    }

    fn enter(
        &mut self,
        flowop: &'a FlowopDef,
        composite: &'a CompositeDef,
        used: Evaluation,
        scope: &dyn LookupDebug,
        wrong: Vec<Diagnostic>,
    ) -> Level {
        self.found.extend(wrong);
        unknown_arguments(flowop, composite, self.found);
        let own = evaluate(&composite.attrs, scope, self.found);
        let body_iters = match own.get("iters").map(|(v, span)| super::values::quantity(v, span, scope)) {
            Some(iters) => iters.map_err(|d| self.found.push(d)).ok(),
            None => None,
        };
        let own_name = used.values.text("name").unwrap_or_default();
        let enter = self.own.open(Some(own_name.clone()), used.iters);
        let measure = self.own.begin_measure(&own, Some(&used.name), self.found);
        let gather = self.gather(&own, flowop, &used.name);
        let nested = body_iters.map(|iters| self.own.open(None, iters));
        self.own.uses.push(own_name);
        Level { name: Some(used.name), enter, nested, gather, measure, mix: self.own.begin_mix(&own) }
    }

    fn leave(&mut self, flowop: &'a FlowopDef, level: Level) {
        let Level { name, enter, nested, gather, measure, mix } = level;
        self.own.uses.pop();
        self.own.end_mix(mix);
        nested.into_iter().for_each(|nested| self.own.close(nested));
        gather.into_iter().for_each(|gather| self.release(gather));
        if let Some(name) = name.filter(|name| self.own.transaction.as_ref() == Some(name)) {
            let (composites, values) = (self.own.uses.clone(), Evaluated::default());
            let span = flowop.span;
            let ends = Pending { name, composites, spec: &TRANSACTION, values, transaction: true, span };
            self.own.operation(ends, Quantity::Const(1));
        }
        self.own.end_measure(measure);
        self.own.close(enter);
    }

    fn refuse(&mut self, flowop: &'a FlowopDef, fault: NestingFault) {
        let (kind, at) = (&flowop.kind.node, flowop.kind.span);
        let report = match fault {
            NestingFault::ContainsItself => {
                Diagnostic::error(Code::ContainsItself, at, format!("flowop `{kind}` contains itself"))
                    .help("put other flowops into it: one that is made of several can hold others, but not itself")
            }
            NestingFault::TooDeep(most) => {
                let message = format!("composite flowop `{kind}` is inside {most} others, one within another");
                Diagnostic::error(Code::OutOfRange, at, message)
                    .help(format!("at most {most} are possible: put the flowops of some directly into the outer ones"))
            }
        };
        diag::push(self.found, report);
    }

    fn end(&mut self, level: &mut Level) {
        if let Some(mix) = &mut level.mix {
            mix.jumps.push(self.own.drafts.len());
            self.own.drafts.push(Draft::Step(PlanStep::Jump(0)));
        }
    }

    fn is_done(&self) -> bool {
        self.own.exhausted
    }
}

impl ThreadBody<'_, '_> {
    /// Begins the shared part of a composite with `group`. Returns the index of its step.
    fn gather(&mut self, values: &Evaluated, flowop: &FlowopDef, name: &str) -> Option<usize> {
        if !values.flag("group") {
            return None;
        }
        if let Some(outer) = &self.own.group {
            let message = format!("`group` of `{name}` is within that of `{outer}`");
            let report = Diagnostic::error(Code::OutOfRange, flowop.span, message);
            diag::push(self.found, report.help("leave out one of them: a group has no other in it"));
            return None;
        }
        self.own.group = Some(name.to_owned());
        self.own.drafts.push(Draft::Step(PlanStep::Gather { group: self.own.groups, release: 0 }));
        self.own.groups += 1;
        Some(self.own.drafts.len() - 1)
    }

    /// Ends the shared part that begins at `gather`.
    fn release(&mut self, gather: usize) {
        let here = self.own.drafts.len();
        self.own.group = None;
        self.own.drafts.push(Draft::Step(PlanStep::Release));
        if let Draft::Step(PlanStep::Gather { release, .. }) = &mut self.own.drafts[gather] {
            *release = here;
        }
    }

    /// Reports a flowop that waits for another thread within a `group`: that thread may wait for the group.
    fn refuse_wait_in_group(&mut self, flowop: &FlowopDef, spec: &Flowop) {
        let Some(group) = self.own.group.as_ref().filter(|_| spec.class == Class::Sync || WAITING.contains(&spec.name))
        else {
            return;
        };
        let message = format!("`{}` in `{group}`, which has `group`", spec.name);
        let report = Diagnostic::error(Code::OutOfRange, flowop.span, message);
        diag::push(self.found, report.help("put it before or after that composite flowop"));
    }
}

/// Reports arguments for which a composite has no parameter.
fn unknown_arguments(flowop: &FlowopDef, composite: &CompositeDef, found: &mut Vec<Diagnostic>) {
    for local in &flowop.locals {
        if !composite.parameters.iter().any(|p| p.name.node == local.name.node) {
            let names = composite.parameters.iter().map(|p| p.name.node.as_str());
            let d = Diagnostic::error(
                Code::UnknownAttribute,
                local.name.span,
                format!("`{}` has no parameter `${}`", composite.name.node, local.name.node),
            )
            .near_variable(&local.name.node, names);
            found.push(d.or_help(format!("give `define flowop name={}` the parameter", composite.name.node)));
        }
    }
}
