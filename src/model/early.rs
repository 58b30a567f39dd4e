//! Attributes that Filebench reads when a definition executes, and not when a run starts: names, `fd`, `srcfd` and
//! `target`.
//!
//! [`mark`] marks them where the difference shows: in a text that sets one of their variables again. [`fixed`] replaces
//! them by their values when the definition executes. All others stay late, so that a variable can be set after its
//! definition, in a script and at a prompt. Deliberately absent: the names of file sets that flowops refer to, which
//! Filebench looks up when a process starts.

use super::expr::{self, Expr};
use super::rebound;
use super::visit::{self, CommandPart};
use super::{Attrs, Command, CommandKind, CompositeDef, Local, Scope, SetBy, scope};
use crate::source::Spanned;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// The attributes.
pub(super) const EARLY: &[&str] = &["name", "fd", "srcfd", "target"];

/// Marks the attributes whose variables the text sets again after the definition.
pub(super) fn mark(commands: &mut [Command]) {
    // Variables that later commands set.
    let mut later = HashSet::new();
    for command in commands.iter_mut().rev() {
        // What a loop sets, its next pass sets again.
        if matches!(command.kind, CommandKind::ForEach { .. }) {
            note_sets(command, &mut later);
        }
        mark_definition(command, &later);
        note_sets(command, &mut later);
    }
}

/// Adds the variables that a command sets, with those in a loop.
fn note_sets(command: &Command, later: &mut HashSet<String>) {
    for command in visit::all(std::slice::from_ref(command)) {
        visit::parts(&command.kind, &mut |part| match part {
            CommandPart::Set(name) | CommandPart::SetField(name) if !later.contains(&name.node) => {
                later.insert(name.node.clone());
            }
            _ => {}
        });
    }
}

fn mark_definition(command: &mut Command, later: &HashSet<String>) {
    if let CommandKind::ForEach { body, .. } = &mut command.kind {
        body.iter_mut().for_each(|command| mark_definition(command, later));
        return;
    }
    each_attrs(&mut command.kind, &mut |attrs, parameters| {
        for used in attrs.items.iter_mut().filter(|used| EARLY.contains(&used.attr.name)) {
            let (mut is_set_again, mut is_parameter) = (false, false);
            expr::variables(&used.value, &mut |variable, _| {
                is_set_again |= later.contains(&variable.name);
                is_parameter |= parameters.iter().any(|parameter| parameter.name.node == variable.name);
            });
            // A parameter has its value at the use of the composite.
            used.early = is_set_again && !is_parameter;
        }
    });
}

/// Calls `each` with the attributes in a definition, and with the parameters that hide variables in them.
fn each_attrs(kind: &mut CommandKind, each: &mut dyn FnMut(&mut Attrs, &[Local])) {
    match kind {
        CommandKind::DefineFileset(def) => each(&mut Arc::make_mut(def).attrs, &[]),
        CommandKind::DefineProcess(def) => {
            let def = Arc::make_mut(def);
            each(&mut def.attrs, &[]);
            for thread in &mut def.threads {
                each(&mut thread.attrs, &[]);
                thread.flowops.iter_mut().for_each(|flowop| each(&mut flowop.attrs, &[]));
            }
        }
        CommandKind::DefineFlowop(def) => {
            let CompositeDef { parameters, attrs, flowops, .. } = Arc::make_mut(def);
            let parameters: &[Local] = parameters;
            each(attrs, parameters);
            flowops.iter_mut().for_each(|flowop| each(&mut flowop.attrs, parameters));
        }
        _ => {}
    }
}

/// Whether a command has something marked.
fn is_marked(kind: &CommandKind) -> bool {
    let mut found = false;
    visit::parts(kind, &mut |part| {
        if let CommandPart::Attr(used, _) = part {
            found |= used.early;
        }
    });
    found
}

/// Whether a loop of these commands makes definitions with a name for each value, all for later runs.
pub(crate) fn makes_names(body: &[Command]) -> bool {
    rebound::only_defines(body) && visit::all(body).any(|command| is_marked(&command.kind))
}

/// Returns a command with the current values of what is marked in it. `None` if nothing is. A variable that is not set
/// yet stays late.
///
/// The result is boxed because loops execute commands by recursion, on a stack that may be small.
pub(crate) fn fixed(kind: &CommandKind, scope: &mut Scope) -> Option<Box<CommandKind>> {
    if !is_marked(kind) {
        return None;
    }
    let mut kind = Box::new(kind.clone());
    each_attrs(&mut kind, &mut |attrs, _| {
        attrs.items.iter_mut().filter(|used| used.early).for_each(|used| fix(&mut used.value, scope));
    });
    Some(kind)
}

/// Replaces an expression by its value, if it has one.
fn fix(value: &mut Spanned<Expr>, scope: &mut Scope) {
    if let Ok(now) = expr::eval(value, scope) {
        scope.note_fixed(value);
        value.node = scope::literal(now);
    }
}

/// Returns the commands of a text as their execution makes them. Variables of loops count as unknown.
pub(super) fn executed<'a>(commands: &'a [Command], scope: &Scope) -> Cow<'a, [Command]> {
    if !visit::all(commands).any(|command| is_marked(&command.kind)) {
        return Cow::Borrowed(commands);
    }
    Cow::Owned(executed_with(commands, &mut scope.clone()))
}

fn executed_with(commands: &[Command], scope: &mut Scope) -> Vec<Command> {
    let executed = |command: &Command| {
        let mut kind = fixed(&command.kind, scope).map_or_else(|| command.kind.clone(), |kind| *kind);
        match &mut kind {
            CommandKind::ForEach { name, body, .. } => {
                let _ = scope.unset(&name.node);
                *body = executed_with(body, scope);
            }
            // An error of a setting is reported where it matters.
            CommandKind::Set { name, value } => drop(scope.set(&name.node, value.clone(), SetBy::Script)),
            CommandKind::SetField { name, field, value } => {
                scope.set_field(&name.node, field.clone(), value.clone());
            }
            _ => {}
        }
        Command { span: command.span, kind }
    };
    commands.iter().map(executed).collect()
}
