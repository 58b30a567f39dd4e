//! Reads a variable in a script: `$name`, `$(NAME)`, `${name}`, `$rv.field`. Deliberately absent: whether it is set.

use super::ast::{Variable, VariableForm};
use crate::spec::attrs;

/// Bytes after an unclosed `${` that are searched for its end. No name is that long, and an unbounded search would be
/// quadratic.
const BRACKET_REACH: usize = 128;

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// The name of a variable without the `_` at its end, which are text: `$n_$m` is `$n`, a `_`, and `$m`, as in Filebench.
fn without_underscores(name: &str) -> &str {
    let trimmed = name.trim_end_matches('_');
    if trimmed.is_empty() { name } else { trimmed }
}

/// Reads the variable whose `$` is at `at`. Returns it and its end, or as an error the end of the malformed variable.
pub(super) fn read_variable(text: &str, at: usize) -> Result<(Variable, usize), usize> {
    let name_end = |from: usize, inside: fn(char) -> bool| {
        text[from..].find(|c: char| !inside(c)).map_or(text.len(), |at| from + at)
    };
    let start = at + 1;
    let (form, close, inside): (_, _, fn(char) -> bool) = match text[start..].chars().next() {
        Some('{') => (VariableForm::Brace, '}', |c| in_name(c) || c == '.'),
        Some('(') => (VariableForm::Paren, ')', in_name),
        Some(c) if starts_name(c) => {
            let end = start + without_underscores(&text[start..name_end(start, in_name)]).len();
            let name = text[start..end].to_owned();
            let dotted = text[end..].strip_prefix('.').map(|_| &text[end + 1..name_end(end + 1, in_name)]);
            let field = dotted.filter(|field| attrs::fields().any(|known| known == *field)).map(str::to_owned);
            let end = end + field.as_ref().map_or(0, |field| field.len() + 1);
            return Ok((Variable { form: VariableForm::Plain, name, field }, end));
        }
        Some(c) if c.is_ascii_digit() => return Err(name_end(start, in_name)),
        _ => return Err(start),
    };
    let start = start + 1;
    let end = name_end(start, inside);
    if text[end..].starts_with(close) && text[start..].starts_with(starts_name) {
        return Ok((Variable { form, name: text[start..end].to_owned(), field: None }, end + 1));
    }
    let reach =
        text[start..].char_indices().map(|(i, c)| (start + i, c)).take_while(|(i, _)| i - start < BRACKET_REACH);
    let closed = reach.take_while(|(_, c)| !matches!(c, '\n' | '"')).find(|(_, c)| *c == close);
    Err(closed.map_or(start, |(i, _)| i + 1))
}
