//! The body of a thread, unrolled: composites become stretches of steps, arguments become values, and every flowop that
//! counts gets its number. Names are resolved later, when all flowops of all threads are known.

use super::values::{Evaluated, evaluate};
use crate::diag::{self, Code, Diagnostic};
use crate::flowop::TRANSACTION;
use crate::model::scope::LookupDebug;
use crate::model::{CompositeDef, FlowopDef, Locals, ModelValue, eval};
use crate::random::Quantity;
use crate::source::Span;
use crate::spec::{Flowop, Role, SpecTable};
use std::collections::HashMap;
use std::sync::Arc;

/// Composites in composites in composites: more is a circle.
const DEEPEST: usize = 32;

/// A flowop whose names are not resolved yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) name: String,
    pub(super) spec: &'static Flowop,
    pub(super) values: Evaluated,
    /// Each of its operations is, or ends, a transaction.
    pub(super) transaction: bool,
    pub(super) span: Span,
}

/// A step whose flowop is still pending.
#[derive(Debug)]
pub(super) enum Draft {
    Op { local: usize, iters: Quantity },
    Enter { iters: Quantity, leave: usize },
    Leave { enter: usize },
    Choose { upto: Vec<f64>, starts: Vec<usize>, end: usize, shuffled: bool },
    Jump(usize),
}

/// How one flowop of several is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mix {
    /// Each time by its weight.
    Drawn,
    /// Without replacement, from as many as the weights add up to.
    Shuffled,
}

impl Mix {
    fn of(values: &Evaluated) -> Option<Self> {
        values.flag("mix").then(|| if values.flag("shuffle") { Self::Shuffled } else { Self::Drawn })
    }
}

/// The largest weight in a shuffled mix.
const MOST_OF_A_LAP: f64 = 1e6;

/// The longest name of a flowop with those of the composites around it, in bytes.
const LONGEST_NAME: usize = 1024;

/// What bodies are unrolled with.
pub(super) struct Unroller<'a> {
    table: &'a SpecTable,
    /// By name; of several of one name the last.
    composites: HashMap<&'a str, &'a CompositeDef>,
    /// Flowops and composites that may still be unrolled.
    left: usize,
    exhausted: bool,
    /// The flowop or composite that is a transaction of the process, as results call it.
    transaction: Option<String>,
    drafts: Vec<Draft>,
    pending: Vec<Pending>,
}

impl<'a> Unroller<'a> {
    /// One that unrolls so many flowops, of all threads together.
    pub(super) fn new(table: &'a SpecTable, composites: &'a [Arc<CompositeDef>], most: usize) -> Self {
        let composites = composites.iter().map(|c| (c.name.node.as_str(), &**c)).collect();
        Self {
            table,
            composites,
            left: most,
            exhausted: false,
            transaction: None,
            drafts: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Whether there were more flowops than it unrolls.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// The threads that follow are those of a process with this transaction.
    pub(super) fn set_transaction(&mut self, name: Option<String>) {
        self.transaction = name.filter(|name| !name.is_empty());
    }

    /// The body of a thread with these attributes.
    pub(super) fn thread(
        &mut self,
        flowops: &[FlowopDef],
        values: &Evaluated,
        scope: &dyn LookupDebug,
        found: &mut Vec<Diagnostic>,
    ) -> (Vec<Draft>, Vec<Pending>) {
        match Mix::of(values) {
            Some(how) => self.mixed(flowops, how, "", scope, 0, found),
            None => self.body(flowops, "", scope, 0, found),
        }
        (std::mem::take(&mut self.drafts), std::mem::take(&mut self.pending))
    }

    /// One flowop of these, drawn each time.
    fn mixed(
        &mut self,
        flowops: &[FlowopDef],
        how: Mix,
        prefix: &str,
        scope: &dyn LookupDebug,
        depth: usize,
        found: &mut Vec<Diagnostic>,
    ) {
        let choose = self.drafts.len();
        self.drafts.push(Draft::Jump(0));
        let (mut upto, mut starts, mut jumps) = (Vec::new(), Vec::new(), Vec::new());
        let mut sum = 0.0;
        for flowop in flowops {
            let weight = flowop.attrs.get("weight").map_or(Ok(1.0), |used| {
                let value = eval(&used.value, scope)?;
                value.as_f64().filter(|w| *w >= 0.0).ok_or_else(|| {
                    Diagnostic::error(Code::WrongType, used.value.span, format!("`weight` is {}", value.print()))
                        .help("give a number from 0 up")
                })
            });
            match weight {
                Ok(w) if how == Mix::Shuffled && (w.fract() != 0.0 || w > MOST_OF_A_LAP) => {
                    let at = flowop.attrs.get("weight").map_or(flowop.span, |used| used.value.span);
                    let d = Diagnostic::error(Code::WrongType, at, format!("`weight` is {w} in a shuffled mix"));
                    found.push(
                        d.help("give whole numbers up to a million: each is how often the flowop comes in a lap"),
                    );
                }
                Ok(w) => sum += w,
                Err(d) => found.push(d),
            }
            upto.push(sum);
            starts.push(self.drafts.len());
            self.body(std::slice::from_ref(flowop), prefix, scope, depth, found);
            jumps.push(self.drafts.len());
            self.drafts.push(Draft::Jump(0));
        }
        let end = self.drafts.len();
        for jump in jumps {
            self.drafts[jump] = Draft::Jump(end);
        }
        self.drafts[choose] = Draft::Choose { upto, starts, end, shuffled: how == Mix::Shuffled };
    }

    fn body(
        &mut self,
        flowops: &[FlowopDef],
        prefix: &str,
        scope: &dyn LookupDebug,
        depth: usize,
        found: &mut Vec<Diagnostic>,
    ) {
        for flowop in flowops {
            if self.exhausted {
                return;
            }
            self.flowop(flowop, prefix, scope, depth, found);
        }
    }

    fn flowop(
        &mut self,
        flowop: &FlowopDef,
        prefix: &str,
        scope: &dyn LookupDebug,
        depth: usize,
        found: &mut Vec<Diagnostic>,
    ) {
        let Some(left) = self.left.checked_sub(1) else {
            self.exhausted = true;
            let message = "the threads of the script have too many flowops, those of composites counted at each use";
            let report = Diagnostic::error(Code::OutOfRange, flowop.span, message);
            found.push(report.help("at most 131072 are possible; `iters=` repeats a flowop without another one"));
            return;
        };
        self.left = left;
        let values = evaluate(&flowop.attrs, scope, found);
        let name = format!("{prefix}{}", values.text("name").unwrap_or_default());
        if name.len() > LONGEST_NAME {
            let message = format!("a flowop whose name has {} bytes, those of its composites included", name.len());
            let report = Diagnostic::error(Code::OutOfRange, flowop.span, message);
            diag::push(found, report.help(format!("at most {LONGEST_NAME} are possible")));
            return;
        }
        let iters = match values.get("iters").map(|(v, span)| super::values::quantity(v, span, scope)) {
            None => Quantity::Const(1),
            Some(Ok(q)) => q,
            Some(Err(d)) => {
                found.push(d);
                return;
            }
        };
        if let Some(spec) = flowop.spec {
            let local = self.pending.len();
            let transaction = self.transaction.as_ref() == Some(&name) || spec.is(Role::EndsTransaction);
            self.pending.push(Pending { name, spec, values, transaction, span: flowop.span });
            self.drafts.push(Draft::Op { local, iters });
            return;
        }
        let Some(composite) = self.composites.get(flowop.kind.node.as_str()).copied() else {
            let d = Diagnostic::error(
                Code::UnknownFlowop,
                flowop.kind.span,
                format!("no flowop is called `{}`", flowop.kind.node),
            )
            .near_miss(&flowop.kind.node, self.table.flowops.iter().map(|f| f.name));
            found.push(if d.help.is_empty() { d.help("`wmlrun list flowops` shows them all") } else { d });
            return;
        };
        if depth >= DEEPEST {
            found.push(
                Diagnostic::error(
                    Code::ContainsItself,
                    flowop.kind.span,
                    format!("flowop `{}` contains itself", flowop.kind.node),
                )
                .help("put other flowops into it: one that is made of several can hold others, but not itself"),
            );
            return;
        }
        let locals = arguments(flowop, composite, scope, found);
        let inner = Locals { values: locals, outer: scope };
        let own = evaluate(&composite.attrs, &inner, found);
        let body_iters = match own.get("iters") {
            Some((v, span)) => super::values::quantity(v, span, &inner).map_err(|d| found.push(d)).ok(),
            None => None,
        };
        let enter = self.open(iters);
        let nested = body_iters.map(|iters| self.open(iters));
        let prefix = format!("{name}.");
        match Mix::of(&own) {
            Some(how) => self.mixed(&composite.flowops, how, &prefix, &inner, depth + 1, found),
            None => self.body(&composite.flowops, &prefix, &inner, depth + 1, found),
        }
        if let Some(nested) = nested {
            self.close(nested);
        }
        if self.transaction.as_ref() == Some(&name) {
            let local = self.pending.len();
            let (values, span) = (Evaluated::default(), flowop.span);
            self.pending.push(Pending { name, spec: &TRANSACTION, values, transaction: true, span });
            self.drafts.push(Draft::Op { local, iters: Quantity::Const(1) });
        }
        self.close(enter);
    }

    fn open(&mut self, iters: Quantity) -> usize {
        self.drafts.push(Draft::Enter { iters, leave: 0 });
        self.drafts.len() - 1
    }

    fn close(&mut self, enter: usize) {
        let here = self.drafts.len();
        self.drafts.push(Draft::Leave { enter });
        if let Draft::Enter { leave, .. } = &mut self.drafts[enter] {
            *leave = here;
        }
    }
}

/// The local variables of one use: what the use says, else what the definition says. A parameter with neither is looked for
/// outside, where a global of its name may be.
fn arguments(
    flowop: &FlowopDef,
    composite: &CompositeDef,
    scope: &dyn LookupDebug,
    found: &mut Vec<Diagnostic>,
) -> Vec<(String, ModelValue)> {
    let mut values: Vec<(String, ModelValue)> = Vec::new();
    for parameter in &composite.parameters {
        let given =
            flowop.locals.iter().rev().find(|l| l.name.node == parameter.name.node).and_then(|l| l.value.as_ref());
        let Some(value) = given.or(parameter.value.as_ref()) else { continue };
        match eval(value, scope) {
            Ok(v) => values.push((parameter.name.node.clone(), v)),
            Err(d) => found.push(d),
        }
    }
    for local in &flowop.locals {
        if !composite.parameters.iter().any(|p| p.name.node == local.name.node) {
            let names = composite.parameters.iter().map(|p| p.name.node.as_str());
            let d = Diagnostic::error(
                Code::UnknownAttribute,
                local.name.span,
                format!("`{}` has no parameter `${}`", composite.name.node, local.name.node),
            )
            .near_variable(&local.name.node, names);
            found.push(if d.help.is_empty() {
                d.help(format!("give `define flowop name={}` the parameter", composite.name.node))
            } else {
                d
            });
        }
    }
    values
}
