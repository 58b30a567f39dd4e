//! Warns of variables that live processes do not follow: those keep the values that they have started with.
//!
//! Deliberately absent: the event rate, which they follow (`commands`).

use crate::diag::{Code, Diagnostic};
use crate::model::composites::Composites;
use crate::model::visit::{self, CommandPart};
use crate::model::{CompositeDef, Expr, FlowopDef, Local, ModelValue, Scope, expr};
use crate::plan::Definitions;
use crate::source::Spanned;
use std::collections::HashSet;

/// The variables that live processes have read.
#[derive(Default)]
pub(super) struct LiveVariables {
    /// Those of their definitions, and those that these depend on.
    read: HashSet<String>,
    /// Those of which a warning was given. It is given once in a session.
    reported: HashSet<String>,
}

impl LiveVariables {
    /// Notes what the processes that have started read.
    pub(super) fn note(&mut self, definitions: &Definitions, scope: &Scope) {
        let mut open = DirectReads::of(definitions, scope);
        while let Some(name) = open.pop() {
            if self.read.contains(&name) {
                continue;
            }
            if let Some(binding) = scope.binding(&name) {
                expr::variables(&binding.value, &mut |variable, _| open.push(variable.name.clone()));
            }
            self.read.insert(name);
        }
    }

    /// The processes end.
    pub(super) fn forget(&mut self) {
        self.read.clear();
    }

    /// Returns the value of a variable before a command that sets it. `None` if no live process has read it, or if the
    /// warning was given.
    pub(super) fn value(&self, name: &str, scope: &Scope) -> Option<ModelValue> {
        if !self.read.contains(name) || self.reported.contains(name) {
            return None;
        }
        scope.value(name)?.ok()
    }

    /// The warning if a command has changed a variable that live processes have read. `before`: its value then.
    pub(super) fn warning(
        &mut self,
        name: &Spanned<String>,
        before: Option<ModelValue>,
        scope: &Scope,
    ) -> Option<Diagnostic> {
        let before = before?;
        if let Some(Ok(now)) = scope.value(&name.node)
            && is_same(&now, &before)
        {
            return None;
        }
        self.reported.insert(name.node.clone());
        let message = format!("live processes keep the value of `${}` that they have started with", name.node);
        let help = "`shutdown processes` and `create processes` use the new value";
        Some(Diagnostic::warning(Code::KeptValue, name.span, message).help(help))
    }
}

/// Whether two values are the same, wherever they are written.
fn is_same(one: &ModelValue, other: &ModelValue) -> bool {
    match (one, other) {
        (ModelValue::Random(one), ModelValue::Random(other)) => {
            let mut fields = one.fields.iter().zip(&other.fields);
            one.call == other.call
                && one.fields.len() == other.fields.len()
                && fields.all(|(one, other)| one.0.node == other.0.node && one.1.node == other.1.node)
        }
        (one, other) => one == other,
    }
}

/// The variables that definitions read themselves.
struct DirectReads<'a> {
    scope: &'a Scope,
    names: Vec<String>,
}

impl<'a> DirectReads<'a> {
    fn of(definitions: &Definitions, scope: &'a Scope) -> Vec<String> {
        let mut reads = Self { scope, names: Vec::new() };
        definitions.filesets.iter().for_each(|def| visit::of_fileset(def, &mut |part| reads.part(part, &[])));
        let composites = Composites::new(definitions.composites.iter().map(|def| &**def));
        let (mut used, mut entered): (Vec<&CompositeDef>, HashSet<&str>) = (Vec::new(), HashSet::new());
        for process in &definitions.processes {
            visit::of_process(process, &mut |part| reads.part(part, &[]));
            for thread in &process.threads {
                used.extend(reads.defaults(&thread.flowops, &composites, &[]));
            }
        }
        while let Some(composite) = used.pop() {
            if entered.insert(&composite.name.node) {
                visit::of_composite(composite, &mut |part| reads.part(part, &composite.parameters));
                used.extend(reads.defaults(&composite.flowops, &composites, &composite.parameters));
            }
        }
        reads.names
    }

    /// Adds what a part reads. `hidden`: the parameters of its composite.
    fn part(&mut self, part: CommandPart<'_>, hidden: &[Local]) {
        match part {
            // Its default belongs to the scope outside.
            CommandPart::Parameter(parameter) => parameter.value.iter().for_each(|value| self.value(value, &[])),
            // `$p` alone passes the variable of that name on.
            CommandPart::Argument(Local { name, value: None }) => self.name(&name.node, hidden),
            part => part.value().into_iter().for_each(|value| self.value(value, hidden)),
        }
    }

    fn value(&mut self, value: &Spanned<Expr>, hidden: &[Local]) {
        expr::variables(value, &mut |variable, _| {
            if !self.scope.is_of_program(variable) {
                self.name(&variable.name, hidden);
            }
        });
    }

    fn name(&mut self, name: &str, hidden: &[Local]) {
        if !hidden.iter().any(|parameter| parameter.name.node == name) {
            self.names.push(name.to_owned());
        }
    }

    /// Returns the composites that flowops use, and adds what their parameters read: one that has no default and is not
    /// given takes the variable of its name.
    fn defaults<'d>(
        &mut self,
        flowops: &[FlowopDef],
        composites: &Composites<'d>,
        hidden: &[Local],
    ) -> Vec<&'d CompositeDef> {
        let mut used = Vec::new();
        for flowop in flowops {
            let Some(composite) = composites.of(flowop) else { continue };
            for parameter in composite.parameters.iter().filter(|parameter| parameter.value.is_none()) {
                if !flowop.locals.iter().any(|local| local.name.node == parameter.name.node) {
                    self.name(&parameter.name.node, hidden);
                }
            }
            used.push(composite);
        }
        used
    }
}
