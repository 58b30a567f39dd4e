//! Warns of variables that are never read, and of parameters that hide a variable of the same name.

use super::Subject;
use crate::diag::{self, Code, Diagnostic};
use crate::model::expr;
use crate::model::visit::{self, CommandPart};
use crate::model::{Command, CommandKind};
use crate::source::Span;
use indexmap::{IndexMap, IndexSet};
use std::collections::HashSet;

/// Number of names that are compared with those that are read.
const NEAR_MISSES: usize = 100;

/// Variables that scripts of Filebench set for the wrapper that runs them, or for a script that loads them.
const FOR_OTHERS: &[&str] = &["dir", "runtime", "stats", "filesystem", "description"];

/// Reports each variable that is set and never read, once.
pub(super) fn unused(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.loads {
        return;
    }
    let (mut set, mut read) = (Vec::new(), IndexSet::new());
    gather(subject.commands, &mut set, &mut read);
    let mut reported = IndexSet::new();
    for (name, span) in set {
        if found.len() >= diag::MOST {
            break;
        }
        if FOR_OTHERS.contains(&name) || read.contains(name) || !reported.insert(name) {
            continue;
        }
        let near = if found.len() < NEAR_MISSES { read.as_slice() } else { Default::default() };
        let d = Diagnostic::warning(Code::UnusedVariable, span, format!("nothing reads `${name}`"))
            .near_variable(name, near.iter().copied());
        diag::push(found, d.or_help("leave it out, or use it"));
    }
}

pub fn read_variables(commands: &[Command]) -> HashSet<String> {
    let mut read = IndexSet::new();
    gather(commands, &mut Vec::new(), &mut read);
    read.into_iter().map(str::to_owned).collect()
}

/// Returns the variables that a script reads itself if it loads one text, and those that are set for others. `None` if
/// it loads none or several.
pub fn read_beside_load(commands: &[Command]) -> Option<HashSet<String>> {
    let loads = commands.iter().filter(|c| matches!(c.kind, CommandKind::Load(_))).count();
    let others = || FOR_OTHERS.iter().map(|name| (*name).to_owned());
    (loads == 1).then(|| read_variables(commands).into_iter().chain(others()).collect())
}

/// Reports each parameter of a composite with the name of a variable.
pub(super) fn shadowed(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.composites.iter().all(|composite| composite.parameters.is_empty()) {
        return;
    }
    let (mut set, mut read) = (Vec::new(), IndexSet::new());
    gather(subject.commands, &mut set, &mut read);
    let mut first_of = IndexMap::new();
    for (name, span) in set {
        first_of.entry(name).or_insert(span);
    }
    for composite in &subject.composites {
        for parameter in &composite.parameters {
            let name = &parameter.name.node;
            // A parameter without a default takes the variable of its name if it is not given, so that the same name is
            // meant.
            let Some(first) = first_of.get(name.as_str()) else { continue };
            if parameter.value.is_some() {
                found.push(
                    Diagnostic::warning(
                        Code::Shadowed,
                        parameter.name.span,
                        format!("inside `{}`, `${name}` is not the variable of that name", composite.name.node),
                    )
                    .also(*first, "the variable")
                    .help("give the parameter another name"),
                );
            }
        }
    }
}

type Reads<'a> = IndexSet<&'a str>;

/// Collects the variables that commands set, each with its place, and those that they read.
fn gather<'a>(commands: &'a [Command], set: &mut Vec<(&'a str, Span)>, read: &mut Reads<'a>) {
    for command in visit::all(commands) {
        visit::parts(&command.kind, &mut |part| {
            match part {
                CommandPart::Set(name) => set.push((&name.node, name.span)),
                // A parameter without a value takes the variable of its name where it is not given.
                CommandPart::Parameter(parameter) => _ = read.insert(&parameter.name.node),
                // `$p` alone passes the variable of that name on.
                CommandPart::Argument(argument) if argument.value.is_none() => _ = read.insert(&argument.name.node),
                _ => {}
            }
            let values = part.value();
            values.into_iter().for_each(|value| expr::variables(value, &mut |v, _| _ = read.insert(&v.name)));
        });
    }
}
