//! Warns of definitions that do not have the value that a variable had where they were written: variables are read when a
//! run starts. Filebench reads names, `fd`, `srcfd` and `target` at the definition.
//!
//! Deliberately absent: values that are set only after a definition, which is the purpose of late binding.

use super::expr;
use super::visit::{self, CommandPart};
use super::{Command, CommandKind};
use crate::diag::{self, Code, Diagnostic};
use crate::source::Span;
use std::collections::{HashMap, HashSet};

/// Attributes that Filebench reads at the definition.
const EARLY: &[&str] = &["name", "fd", "srcfd", "target"];

/// Reports definitions in loops that read the variable of the loop, and variables that are set again after a name was
/// made of them.
pub(super) fn check(commands: &[Command], found: &mut Vec<Diagnostic>) {
    let mut set: HashSet<&str> = HashSet::new();
    let mut named: HashMap<&str, Span> = HashMap::new();
    for command in visit::all(commands) {
        match &command.kind {
            CommandKind::Set { name, .. } => {
                if let Some(at) = named.remove(name.node.as_str()) {
                    let message = format!("`${}` is set again, and names that were made of it change too", name.node);
                    let report =
                        Diagnostic::warning(Code::Ignored, name.span, message).also(at, "read when a run starts");
                    diag::push(found, report.help("use a variable of another name: only the last value counts"));
                }
                set.insert(&name.node);
            }
            CommandKind::ForEach { name, body, .. } => loops(&name.node, body, found),
            kind if is_definition(kind) => {
                for (variable, at) in reads(kind, &|attr| EARLY.contains(&attr)) {
                    if set.contains(variable) {
                        named.entry(variable).or_insert(at);
                    }
                }
            }
            // A run has read the variables.
            kind if !only_sets(kind) => named.clear(),
            _ => {}
        }
    }
}

/// Reports the definitions in a loop without a run that read its variable.
fn loops(variable: &str, body: &[Command], found: &mut Vec<Diagnostic>) {
    if visit::all(body).any(|command| !is_definition(&command.kind) && !only_sets(&command.kind)) {
        return;
    }
    for command in body.iter().filter(|command| is_definition(&command.kind)) {
        if let Some((_, at)) = reads(&command.kind, &|_| true).into_iter().find(|(name, _)| *name == variable) {
            let message = format!("`${variable}` is read when a run starts, and has its last value then");
            let help = "put the `run` into the loop, or write a definition for each value";
            diag::push(found, Diagnostic::warning(Code::Ignored, at, message).help(help));
        }
    }
}

fn is_definition(kind: &CommandKind) -> bool {
    matches!(kind, CommandKind::DefineFileset(_) | CommandKind::DefineProcess(_) | CommandKind::DefineFlowop(_))
}

fn only_sets(kind: &CommandKind) -> bool {
    matches!(
        kind,
        CommandKind::Set { .. }
            | CommandKind::SetField { .. }
            | CommandKind::SetMode(_)
            | CommandKind::ForEach { .. }
            | CommandKind::Echo(_)
            | CommandKind::Log(_)
            | CommandKind::Usage(_)
    )
}

/// The variables that attributes of a definition read, and where: not the parameters of a composite.
fn reads<'a>(kind: &'a CommandKind, wanted: &dyn Fn(&str) -> bool) -> Vec<(&'a str, Span)> {
    let mut parameters = HashSet::new();
    let mut read = Vec::new();
    visit::parts(kind, &mut |part| match part {
        CommandPart::Parameter(parameter) => _ = parameters.insert(parameter.name.node.as_str()),
        CommandPart::Attr(used, _) if wanted(used.attr.name) => {
            expr::variables(&used.value, &mut |variable, span| read.push((variable.name.as_str(), span)));
        }
        _ => {}
    });
    read.retain(|(name, _)| !parameters.contains(name));
    read
}
