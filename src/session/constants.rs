//! Evaluates the texts and values of a script's commands before anything runs, as far as its variables are certain.
//! An `echo` that divides by zero would otherwise end the script after hours of runs.
//!
//! Not certain are variables that a loop, a loaded text, the environment or a measurement sets. Deliberately absent:
//! values of definitions, which the plan evaluates.

use super::only_defines;
use crate::diag::{Code, Diagnostic};
use crate::model::visit::{self, CommandPart};
use crate::model::{self, Command, CommandKind, Expr, Lookup, ModelValue, Scope, SetBy, TextPart, Unset, expr};
use crate::source::{SourceMap, Spanned};

/// Most steps and bytes of text that are spent on a script.
const MOST_WORK: u64 = 1 << 24;

/// Most errors that are reported.
const MOST_ERRORS: usize = 100;

/// Returns the errors that the commands of a whole script would have when they are reached. `scope`: the variables before
/// the script; `map`: its texts.
pub(super) fn constant_errors(commands: &[Command], scope: &Scope, map: &SourceMap) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    if commands.iter().all(|command| only_defines(&command.kind)) {
        return found;
    }
    let mut scope = scope.clone();
    let mut work = 0;
    for command in commands {
        if !only_defines(&command.kind) {
            work += scope.spent();
            scope.renew_budget();
        }
        if work > MOST_WORK || found.len() >= MOST_ERRORS {
            break;
        }
        let mut own = Vec::new();
        let is_certain = follow(&command.kind, &mut scope, &mut own);
        // The variables may have other values later.
        for d in model::with_provenance(own, &scope, map) {
            if !found.iter().any(|other| is_same(other, &d)) {
                found.push(d);
            }
        }
        if !is_certain {
            break;
        }
    }
    found
}

/// Whether two errors are one, which is found in two places.
pub(super) fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    one.message == other.message && one.primary.span == other.primary.span
}

/// Adds the errors of a command, and follows the variables that it sets. Returns false if nothing is certain after it.
fn follow(kind: &CommandKind, scope: &mut Scope, found: &mut Vec<Diagnostic>) -> bool {
    let fixed = model::early::fixed(kind, scope);
    match fixed.as_deref().unwrap_or(kind) {
        CommandKind::Quit | CommandKind::Load(_) => false,
        CommandKind::Set { name, value, .. } => {
            if !expr::has_plain_variables(value) {
                return forget(&name.node, scope);
            }
            match scope.set(&name.node, value.clone(), SetBy::Script) {
                Ok(()) => true,
                Err(d) => {
                    found.extend(Some(d).filter(|d| d.code != Code::UndefinedVariable));
                    forget(&name.node, scope)
                }
            }
        }
        CommandKind::SetField { name, field, value } => {
            if !expr::has_plain_variables(value) {
                return forget(&name.node, scope);
            }
            scope.set_field(&name.node, field.clone(), value.clone());
            true
        }
        CommandKind::ForEach { name, body, .. } => {
            let mut is_certain = forget(&name.node, scope);
            for inner in visit::all(body) {
                is_certain &= match &inner.kind {
                    CommandKind::Set { name, .. }
                    | CommandKind::SetField { name, .. }
                    | CommandKind::ForEach { name, .. } => forget(&name.node, scope),
                    CommandKind::Quit | CommandKind::Load(_) => false,
                    _ => true,
                };
            }
            is_certain
        }
        kind => {
            visit::parts(kind, &mut |part| match part {
                CommandPart::Value(value) | CommandPart::Shown(value) | CommandPart::Shell(value) => {
                    found.extend(error_of(value, scope, model::eval));
                }
                CommandPart::Time(value) => found.extend(error_of(value, scope, model::eval_exact)),
                _ => {}
            });
            true
        }
    }
}

/// Makes a variable one that is not set. Returns false if it is predefined: its value would count again.
fn forget(name: &str, scope: &mut Scope) -> bool {
    while matches!(scope.unset(name), Unset::Restored(_)) {}
    scope.predefined(name).is_none()
}

/// The error of a value, or of a variable of a text. Variables that are not set may be so for the check only.
fn error_of(
    value: &Spanned<Expr>,
    scope: &Scope,
    eval: fn(&Spanned<Expr>, &dyn Lookup) -> Result<ModelValue, Diagnostic>,
) -> Option<Diagnostic> {
    let of_variable = |part: &TextPart| match part {
        TextPart::Variable(variable) => Some(Spanned::new(Expr::Text(vec![part.clone()]), variable.span)),
        TextPart::Text(_) => None,
    };
    let values: Vec<Spanned<Expr>> = match &value.node {
        Expr::Text(parts) => parts.iter().filter_map(of_variable).collect(),
        _ => vec![value.clone()],
    };
    let is_set = |value: &Spanned<Expr>| {
        let mut all = true;
        expr::variables(value, &mut |variable, _| {
            all &= scope.binding(&variable.name).is_some() || scope.predefined(&variable.name).is_some();
        });
        all
    };
    let certain = values.iter().filter(|value| expr::has_plain_variables(value) && is_set(value));
    certain.filter_map(|value| eval(value, scope).err()).find(|d| d.code != Code::UndefinedVariable)
}
