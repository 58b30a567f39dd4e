//! Composite flowops: looked up by name, and unrolled.
//!
//! [`unroll`] walks over the flowops of a body, those of composites at each use, with the variables that hold there. A plan makes steps
//! of them and reports errors, lints count them and ignore what can't be evaluated.

use super::scope::{LookupDebug, constant};
use super::{CompositeDef, FlowopDef, Locals};
use crate::diag::Diagnostic;
use crate::source::Spanned;
use std::collections::HashMap;

/// Composites within composites.
const DEEPEST: usize = 32;

/// Why a composite is not entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NestingFault {
    /// It is a part of itself.
    ContainsItself,
    /// It is the innermost of too many composites within one another: this many are possible.
    TooDeep(usize),
}

/// The composites of a script by name; of several of one name the last.
#[derive(Clone, Debug, Default)]
pub struct Composites<'a>(HashMap<&'a str, &'a CompositeDef>);

impl<'a> Composites<'a> {
    /// In the order of definition.
    pub fn new(all: impl Iterator<Item = &'a CompositeDef>) -> Self {
        Self(all.map(|composite| (composite.name.node.as_str(), composite)).collect())
    }

    /// The composite that a flowop uses; `None` if it is a built-in one, or unknown.
    pub fn of(&self, flowop: &FlowopDef) -> Option<&'a CompositeDef> {
        self.0.get(flowop.kind.node.as_str()).copied().filter(|_| flowop.spec.is_none())
    }
}

impl Composites<'_> {
    /// The number of flowops in these bodies, composites included, which count with their body at each use.
    pub fn size<'f>(&self, bodies: impl Iterator<Item = &'f [FlowopDef]>) -> u64 {
        let mut known = HashMap::new();
        bodies.fold(0, |sum, flowops| sum.saturating_add(self.size_below(flowops, 0, &mut known)))
    }

    /// `known`: the sizes of composites so far, since the bodies may be nested exponentially.
    fn size_below(&self, flowops: &[FlowopDef], depth: usize, known: &mut HashMap<String, u64>) -> u64 {
        flowops.iter().fold(0, |sum: u64, flowop| {
            let own = match self.of(flowop).filter(|_| depth < DEEPEST) {
                None => 0,
                Some(composite) => known.get(&composite.name.node).copied().unwrap_or_else(|| {
                    let size = self.size_below(&composite.flowops, depth + 1, known);
                    known.insert(composite.name.node.clone(), size);
                    size
                }),
            };
            sum.saturating_add(own).saturating_add(1)
        })
    }
}

/// What is made of the flowops of a body.
pub trait Unrolled<'a> {
    /// What the flowops within one use of a composite, or of the body itself, have in common.
    type Level;
    /// A use of a flowop, evaluated.
    type Use;

    /// Begins with a flowop, built-in or composite. It is skipped if that is `None`.
    fn begin(&mut self, flowop: &'a FlowopDef, level: &mut Self::Level, scope: &dyn LookupDebug) -> Option<Self::Use>;
    /// A flowop that is no composite.
    fn built_in(&mut self, flowop: &'a FlowopDef, used: Self::Use, scope: &dyn LookupDebug);
    /// Begins with the flowops of a composite. `scope`: its parameters, in front of the variables around it. `wrong`: errors of
    /// its arguments.
    fn enter(
        &mut self,
        flowop: &'a FlowopDef,
        composite: &'a CompositeDef,
        used: Self::Use,
        scope: &dyn LookupDebug,
        wrong: Vec<Diagnostic>,
    ) -> Self::Level;
    /// Ends a composite.
    fn leave(&mut self, flowop: &'a FlowopDef, level: Self::Level);
    /// A composite that is not entered.
    fn refuse(&mut self, flowop: &'a FlowopDef, fault: NestingFault);
    /// Ends with a flowop, also with a skipped one.
    fn end(&mut self, level: &mut Self::Level);
    /// Whether the walk ends here.
    fn is_done(&self) -> bool;
}

/// Walks over the flowops of a body.
pub fn unroll<'a, U: Unrolled<'a>>(
    to: &mut U,
    composites: &Composites<'a>,
    flowops: &'a [FlowopDef],
    level: &mut U::Level,
    scope: &dyn LookupDebug,
) {
    below(to, composites, flowops, level, scope, &mut Vec::new());
}

fn below<'a, U: Unrolled<'a>>(
    to: &mut U,
    composites: &Composites<'a>,
    flowops: &'a [FlowopDef],
    level: &mut U::Level,
    scope: &dyn LookupDebug,
    around: &mut Vec<&'a CompositeDef>,
) {
    for flowop in flowops {
        if to.is_done() {
            return;
        }
        if let Some(used) = to.begin(flowop, level, scope) {
            match composites.of(flowop) {
                None => to.built_in(flowop, used, scope),
                Some(composite) if around.iter().any(|outer| std::ptr::eq(*outer, composite)) => {
                    to.refuse(flowop, NestingFault::ContainsItself);
                }
                Some(_) if around.len() >= DEEPEST => to.refuse(flowop, NestingFault::TooDeep(DEEPEST)),
                Some(composite) => {
                    let (inner, wrong) = bind(flowop, composite, scope);
                    let mut own = to.enter(flowop, composite, used, &inner, wrong);
                    around.push(composite);
                    below(to, composites, &composite.flowops, &mut own, &inner, around);
                    around.pop();
                    to.leave(flowop, own);
                }
            }
        }
        to.end(level);
    }
}

/// The variables within one use of a composite: arguments of the use, else defaults of the definition. A parameter with neither is
/// looked up outside, where a variable of its name may be. Also returns the errors of values.
fn bind<'s>(flowop: &FlowopDef, composite: &CompositeDef, outer: &'s dyn LookupDebug) -> (Locals<'s>, Vec<Diagnostic>) {
    let (mut values, mut wrong) = (Vec::new(), Vec::new());
    for parameter in &composite.parameters {
        let name = &parameter.name.node;
        let given = flowop.locals.iter().rev().find(|local| local.name.node == *name);
        let Some(value) = given.and_then(|local| local.value.as_ref()).or(parameter.value.as_ref()) else { continue };
        match constant(value, outer) {
            Ok(now) => values.push((name.clone(), Spanned::new(now, value.span))),
            Err(d) => wrong.push(d),
        }
    }
    (Locals { values, outer }, wrong)
}
