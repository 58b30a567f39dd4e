//! Variables that nothing reads, and parameters that hide a variable of the same name.

use super::Subject;
use crate::diag::{self, Code, Diagnostic};
use crate::model::expr::{self, Expr};
use crate::model::{Attrs, Command, CommandKind, FlowopDef, Stats};
use crate::source::{Span, Spanned};
use indexmap::{IndexMap, IndexSet};
use std::collections::HashSet;

/// Names that are compared with those that are read.
const NEAR_MISSES: usize = 100;

/// Variables that scripts of Filebench set for the wrapper that runs them, or for whoever loads them.
const FOR_OTHERS: &[&str] = &["dir", "runtime", "stats", "filesystem", "description"];

/// Warns once of each variable that is set and never read.
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
        diag::push(found, if d.help.is_empty() { d.help("leave it out, or use it") } else { d });
    }
}

/// The names of variables that a script reads which loads one text, and of those that are for others than the script.
/// `None` if it loads none or several.
pub(crate) fn read_beside_load(commands: &[Command]) -> Option<HashSet<String>> {
    let loads = commands.iter().filter(|c| matches!(c.kind, CommandKind::Load(_))).count();
    let mut read = IndexSet::new();
    gather(commands, &mut Vec::new(), &mut read);
    (loads == 1).then(|| read.into_iter().chain(FOR_OTHERS.iter().copied()).map(str::to_owned).collect())
}

/// Warns of each parameter of a composite that has the name of a variable.
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
            // Without a default a parameter that is not given *is* the variable of its name: that is meant.
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

/// What commands set, with its place, and what they read.
fn gather<'a>(commands: &'a [Command], set: &mut Vec<(&'a str, Span)>, read: &mut Reads<'a>) {
    for command in commands {
        match &command.kind {
            CommandKind::Set { name, value } => {
                set.push((&name.node, name.span));
                expression(value, read);
            }
            CommandKind::SetField { value, .. } => expression(value, read),
            CommandKind::ForEach { name, values, body } => {
                set.push((&name.node, name.span));
                values.iter().for_each(|v| expression(v, read));
                gather(body, set, read);
            }
            CommandKind::DefineFileset(def) => attributes(&def.attrs, read),
            CommandKind::DefineProcess(def) => {
                attributes(&def.attrs, read);
                for thread in &def.threads {
                    attributes(&thread.attrs, read);
                    thread.flowops.iter().for_each(|f| flowop(f, read));
                }
            }
            CommandKind::DefineFlowop(def) => {
                attributes(&def.attrs, read);
                for parameter in &def.parameters {
                    // A parameter without a value takes the variable of its name where it is not given.
                    read.insert(&parameter.name.node);
                    parameter.value.iter().for_each(|v| expression(v, read));
                }
                def.flowops.iter().for_each(|f| flowop(f, read));
            }
            CommandKind::Run { seconds: Some(e), .. }
            | CommandKind::Sleep(e)
            | CommandKind::Warmup(e)
            | CommandKind::System(e)
            | CommandKind::Echo(e)
            | CommandKind::Log(e)
            | CommandKind::Usage(e)
            | CommandKind::Load(e)
            | CommandKind::EventGen(Some(e))
            | CommandKind::Stats(
                Stats::Dump(e) | Stats::XmlDump(e) | Stats::MultiDump(e) | Stats::Directory(e) | Stats::Command(e),
            ) => expression(e, read),
            CommandKind::PsRun { period, seconds, .. } => {
                period.iter().chain(seconds).for_each(|e| expression(e, read));
            }
            CommandKind::FsCheck { path, fstype } => path.iter().chain(fstype).for_each(|e| expression(e, read)),
            _ => {}
        }
    }
}

fn expression<'a>(value: &'a Spanned<Expr>, read: &mut Reads<'a>) {
    expr::variables(value, &mut |v, _| {
        read.insert(&v.name);
    });
}

fn attributes<'a>(attrs: &'a Attrs, read: &mut Reads<'a>) {
    attrs.iter().for_each(|used| expression(&used.value, read));
}

fn flowop<'a>(flowop: &'a FlowopDef, read: &mut Reads<'a>) {
    attributes(&flowop.attrs, read);
    for local in &flowop.locals {
        // `$p` alone hands on the variable of that name.
        if local.value.is_none() {
            read.insert(&local.name.node);
        }
        local.value.iter().for_each(|v| expression(v, read));
    }
}
