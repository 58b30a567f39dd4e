//! Values that are typed outside a script: on the command line and in a profile.
//!
//! Such a value is read as the right side of `set $name =`, with the same parser and the same checks; anything else is
//! a text.

use super::Session;
use crate::diag::{Diagnostic, Failure, has_errors};
use crate::model::{self, Command, CommandKind, Expr, Known, SetBy, TextPart};
use crate::source::{SourceMap, Span, Spanned};
use crate::spec::{Dialect, SpecTable};

/// A value that was typed outside a script.
#[derive(Clone, Debug)]
pub(crate) struct TypedValue {
    /// The value. Its spans are those of the text that it was typed in.
    pub(crate) value: Spanned<Expr>,
    /// Whether a script must quote it, because it is a text and not an expression of the language.
    pub(crate) quoted: bool,
}

/// Reads the value at `at` for a variable. A malformed random variable is an error, not a text; the list of errors is
/// empty if `name` can't be the name of a variable.
pub(crate) fn typed_value(
    map: &SourceMap,
    table: &SpecTable,
    name: &str,
    at: Span,
) -> Result<TypedValue, Vec<Diagnostic>> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(good) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Vec::new());
    }
    let value = map.slice(at);
    let as_text = || {
        let text = Expr::Text(vec![TextPart::Text(value.to_owned())]);
        TypedValue { value: Spanned::new(text, at), quoted: true }
    };
    // A directory is no number, even if its name looks like a calculation.
    if name == "dir" && !value.contains(['$', '"']) {
        return Ok(as_text());
    }
    // The value keeps its place in the text, so that all spans of the statement's value are right as they are.
    // Without brackets, which would take more room, a name can't end in `_`. The name here is not used.
    let stem = name.trim_end_matches('_');
    let statement = format!("set ${stem}{}=", "x".repeat(name.len() - stem.len()));
    let room = (at.start as usize).saturating_sub(statement.len());
    let text = format!("{:room$}{statement}{value}", "");
    let length = text.len();
    let statements = SourceMap::with_only(at.file, text);
    let known = Known { open: true, ..Known::default() };
    let (model, found) = model::check(&statements, at.file, table, Some(Dialect::Fsl), &known);
    if let ([Command { kind: CommandKind::Set { value, .. }, .. }], false) =
        (model.commands.as_slice(), has_errors(&found))
    {
        // What begins with `#` in a script is a comment, but here a part of the value.
        let rest = statements.slice(Span::new(at.file, value.span.end as usize, length));
        return Ok(if rest.contains('#') { as_text() } else { TypedValue { value: value.clone(), quoted: false } });
    }
    if ["randvar(", "cvar("].iter().any(|call| value.trim_start().starts_with(call)) {
        return Err(found);
    }
    Ok(as_text())
}

impl Session {
    /// Sets the variables of the command line, which no `set` changes.
    pub fn apply_sets(&mut self) -> Result<(), Failure> {
        for (name, value) in self.runner.settings.sets.clone() {
            let shown = format!("--set {name}={value}");
            let (start, end) = (shown.len() - value.len(), shown.len());
            let file = self.map.add("<command line>", shown);
            let typed = typed_value(&self.map, &self.table, &name, Span::new(file, start, end));
            let typed = typed.map_err(|found| match found.is_empty() {
                true => Failure::wrong(
                    format!("`--set {name}={value}` is not an assignment"),
                    "write `--set NAME=VALUE`, such as `--set nfiles=10k`",
                ),
                false => self.wrong(found),
            })?;
            self.set_typed(&name, typed, SetBy::CommandLine)?;
        }
        Ok(())
    }

    /// Sets a variable to a typed value.
    pub(crate) fn set_typed(&mut self, name: &str, typed: TypedValue, by: SetBy) -> Result<(), Failure> {
        self.scope.set(name, typed.value, by).map_err(|found| self.wrong(vec![found]))
    }
}
