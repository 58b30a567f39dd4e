//! Warns of definitions in a loop without a run: the variable of the loop is read when a run starts, in each definition
//! with its last value, as in Filebench.
//!
//! Deliberately absent: attributes that are read at the definition (`early`), and values that are set only after a
//! definition, which is the purpose of late binding.

use super::early::EARLY;
use super::expr;
use super::visit::{self, CommandPart};
use super::{Command, CommandKind};
use crate::diag::{self, Code, Diagnostic};
use crate::source::Span;
use std::collections::HashSet;

/// Reports definitions in loops that read the variable of the loop when a run starts.
pub(super) fn check(commands: &[Command], found: &mut Vec<Diagnostic>) {
    for command in visit::all(commands) {
        if let CommandKind::ForEach { name, body, .. } = &command.kind {
            loops(&name.node, body, found);
        }
    }
}

/// Reports the definitions in a loop without a run that read its variable.
fn loops(variable: &str, body: &[Command], found: &mut Vec<Diagnostic>) {
    if !only_defines(body) {
        return;
    }
    for command in body.iter().filter(|command| is_definition(&command.kind)) {
        if let Some((_, at)) = late_reads(&command.kind).into_iter().find(|(name, _)| *name == variable) {
            let message = format!("`${variable}` is read when a run starts, and has its last value then");
            let help = "put the `run` into the loop, or write a definition for each value";
            diag::push(found, Diagnostic::warning(Code::Ignored, at, message).help(help));
        }
    }
}

/// Whether commands only define and set.
pub(super) fn only_defines(commands: &[Command]) -> bool {
    visit::all(commands).all(|command| is_definition(&command.kind) || only_sets(&command.kind))
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

/// The variables that attributes of a definition read when a run starts, and where: not the parameters of a composite.
fn late_reads(kind: &CommandKind) -> Vec<(&str, Span)> {
    let mut parameters = HashSet::new();
    let mut read = Vec::new();
    visit::parts(kind, &mut |part| match part {
        CommandPart::Parameter(parameter) => _ = parameters.insert(parameter.name.node.as_str()),
        CommandPart::Attr(used, _) if !EARLY.contains(&used.attr.name) => {
            expr::variables(&used.value, &mut |variable, span| read.push((variable.name.as_str(), span)));
        }
        _ => {}
    });
    read.retain(|(name, _)| !parameters.contains(name));
    read
}
