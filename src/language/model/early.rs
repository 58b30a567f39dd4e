//! Values that Filebench reads when a command executes, and not when a run starts: names, `fd`, `srcfd` and `target` of
//! definitions, a variable that `set` copies (`set $a=$b`), and in 1.5 the parameters of random variables.
//!
//! `set_early` marks them where the difference shows: in a text that sets one of their variables again. [`fixed`]
//! replaces them by their values when the command executes. All others stay late, so that a variable can be set after
//! the command that reads it, in a script and at a prompt. Deliberately absent: the names of file sets that flowops
//! refer to, which Filebench looks up when a process starts.

use super::expr::{self, Expr};
use super::rebound;
use super::visit::{self, CommandPart};
use super::{Attrs, Command, CommandKind, CompositeDef, Local, Object, Scope, SetBy, scope};
use crate::source::Spanned;
use crate::spec::Dialect;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// The attributes.
pub(super) const EARLY: &[&str] = &["name", "fd", "srcfd", "target"];

/// Marks the attributes and parameters whose variables the text sets again.
pub(super) fn set_early(commands: &mut [Command], dialect: Dialect) {
    // Variables that later commands set before the next run. Filebench 1.5 executes nothing after a run, and a second
    // one fails in 1.4: that a script changes a definition from run to run is an extension.
    let mut later = HashSet::new();
    // Those that `set` sets: 1.5 has no loops.
    let mut by_set = HashSet::new();
    for command in commands.iter_mut().rev() {
        // What a loop sets, its next pass sets again.
        if matches!(command.kind, CommandKind::ForEach { .. }) {
            note_sets(command, &mut later);
        }
        mark_definition(command, &later);
        if let CommandKind::Set { value: Spanned { node: Expr::Var(variable), .. }, copies, .. } = &mut command.kind {
            *copies = later.contains(&variable.name);
        }
        note_sets(command, &mut later);
        if starts_run(command) {
            later.clear();
            by_set.clear();
        }
        if let (CommandKind::Set { name, value, .. }, Dialect::Fsl) = (&mut command.kind, dialect) {
            mark_parameters(value, &by_set);
            by_set.insert(name.node.clone());
        }
    }
}

/// Whether a command, or one in its loop, starts processes.
fn starts_run(command: &Command) -> bool {
    let starts = |kind: &CommandKind| {
        matches!(kind, CommandKind::Run { .. } | CommandKind::PsRun { .. } | CommandKind::Create(Object::Processes))
    };
    visit::all(std::slice::from_ref(command)).any(|command| starts(&command.kind))
}

/// Marks the parameters of a random variable that read one of these variables.
fn mark_parameters(value: &mut Spanned<Expr>, later: &HashSet<String>) {
    let Expr::Random(random) = &mut value.node else { return };
    let random = Arc::make_mut(random);
    for (at, (_, parameter)) in random.fields.iter().enumerate() {
        let mut is_set_again = false;
        expr::variables(parameter, &mut |variable, _| is_set_again |= later.contains(&variable.name));
        if is_set_again {
            random.early.push(at);
        }
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
    let mut found = matches!(kind, CommandKind::Set { copies: true, .. });
    visit::parts(kind, &mut |part| match part {
        CommandPart::Attr(used, _) => found |= used.early,
        CommandPart::Value(Spanned { node: Expr::Random(random), .. }) => found |= !random.early.is_empty(),
        _ => {}
    });
    found
}

/// Whether a loop of these commands makes definitions with a name for each value, all for later runs.
pub fn makes_names(body: &[Command]) -> bool {
    rebound::only_defines(body) && visit::all(body).any(|command| is_marked(&command.kind))
}

/// Returns a command with the current values of what is marked in it. `None` if nothing is. A variable that is not set
/// yet stays late.
///
/// The result is boxed because loops execute commands by recursion, on a stack that may be small.
pub fn fixed(kind: &CommandKind, scope: &mut Scope) -> Option<Box<CommandKind>> {
    if !is_marked(kind) {
        return None;
    }
    let mut kind = Box::new(kind.clone());
    each_attrs(&mut kind, &mut |attrs, _| {
        attrs.items.iter_mut().filter(|used| used.early).for_each(|used| fix(&mut used.value, scope));
    });
    if let CommandKind::Set { name, value, copies } = &mut *kind {
        if std::mem::take(copies) {
            fix_copy(&name.node, value, scope);
        }
        fix_parameters(&name.node, value, scope);
    }
    Some(kind)
}

/// Replaces the variable that is copied by its value.
fn fix_copy(name: &str, value: &mut Spanned<Expr>, scope: &mut Scope) {
    if scope.reads_environment(value) {
        scope.note_environment(name);
    }
    fix(value, scope);
}

/// Replaces the marked parameters of a random variable by their values.
fn fix_parameters(name: &str, value: &mut Spanned<Expr>, scope: &mut Scope) {
    let Expr::Random(random) = &mut value.node else { return };
    let random = Arc::make_mut(random);
    for at in std::mem::take(&mut random.early) {
        let Some((_, parameter)) = random.fields.get_mut(at) else { continue };
        let read = parameter.clone();
        fix(parameter, scope);
        // Results mask the variable, whose expression no longer shows where its value is from.
        if scope.reads_environment(&read) {
            scope.note_environment(name);
        }
    }
}

/// Replaces an expression by its value, if it has one.
fn fix(value: &mut Spanned<Expr>, scope: &mut Scope) {
    if let Ok(now) = scope::constant(value, scope) {
        scope.note_fixed(value);
        value.node = now;
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
            CommandKind::Set { name, value, .. } => drop(scope.set(&name.node, value.clone(), SetBy::Script)),
            CommandKind::SetField { name, field, value } => {
                scope.set_field(&name.node, field.clone(), value.clone());
            }
            _ => {}
        }
        Command { span: command.span, kind }
    };
    commands.iter().map(executed).collect()
}
