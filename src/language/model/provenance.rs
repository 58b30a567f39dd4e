//! Provenance of values: an error in a value is reported where a variable is used, and is often made where it was set.
//!
//! In: diagnostics about values, and the variables. Out: the same diagnostics, with the place where the value was set.
//! A place on the command line is the primary one, because the script is right without it. Deliberately absent: the
//! errors themselves. The session and the plan find them.

use super::{Scope, SetBy, expr};
use crate::diag::{Code, Diagnostic, Label};
use crate::source::{SourceMap, Span};
use crate::syntax::ast::TextPart;
use crate::syntax::{self, Token};

/// Length of a chain of variables up to which a value is followed.
const DEEPEST: usize = 16;

/// Variables, and the texts in which they were set.
struct Values<'a> {
    scope: &'a Scope,
    map: &'a SourceMap,
}

/// Adds to diagnostics about values the place where each value was set.
pub fn with_provenance(found: Vec<Diagnostic>, scope: &Scope, map: &SourceMap) -> Vec<Diagnostic> {
    Values { scope, map }.merged(found)
}

impl Values<'_> {
    /// Adds the places, and merges diagnostics about one value.
    fn merged(&self, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let mut merged: Vec<Diagnostic> = Vec::with_capacity(found.len());
        for diagnostic in found {
            let diagnostic = self.provenance(diagnostic);
            // A wrong value of the command line is one error, however often it is used.
            let same =
                |d: &&mut Diagnostic| d.message == diagnostic.message && d.primary.span == diagnostic.primary.span;
            match merged.iter_mut().find(same) {
                Some(first) => first.secondary.extend(diagnostic.secondary),
                None => merged.push(diagnostic),
            }
        }
        merged
    }

    fn provenance(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        let about_values =
            [Code::WrongType, Code::OutOfRange, Code::BadExpression, Code::BadDistribution, Code::NoInstances];
        if !about_values.contains(&diagnostic.code) {
            return diagnostic;
        }
        let Some((at, by)) = self.set_at(diagnostic.primary.span) else { return diagnostic };
        if by == SetBy::CommandLine {
            let used = std::mem::replace(&mut diagnostic.primary.span, at);
            diagnostic.secondary.push(Label { span: used, text: "used here".to_owned() });
            diagnostic
        } else if at.end > at.start && diagnostic.secondary.iter().all(|label| label.span != at) {
            diagnostic.also(at, "its value comes from here")
        } else {
            diagnostic
        }
    }

    /// Returns where the variable at a place was set, and by whom. Of several variables, the one of the command line is
    /// chosen if there is one.
    fn set_at(&self, place: Span) -> Option<(Span, SetBy)> {
        if self.scope.is_fixed(place) {
            // Its variable may have another value by now.
            return self.scope.origin_of_fixed(place);
        }
        let names = names_in(&syntax::lex(place.file, self.map.slice(place)));
        let sources: Vec<(Span, SetBy)> = names.iter().filter_map(|name| self.source_of(name, 0)).collect();
        let typed = sources.iter().find(|(_, by)| *by == SetBy::CommandLine);
        // In an expression with several variables it is unknown which one is wrong.
        typed.or(sources.first().filter(|_| names.len() == 1)).copied()
    }

    fn source_of(&self, name: &str, depth: usize) -> Option<(Span, SetBy)> {
        let binding = self.scope.binding(name)?;
        let mut inner = Vec::new();
        expr::variables(&binding.value, &mut |variable, _| inner.push(variable.name.as_str()));
        let from = inner.iter().filter(|_| depth < DEEPEST).filter_map(|name| self.source_of(name, depth + 1));
        let from: Vec<_> = from.collect();
        let typed = from.iter().find(|(_, by)| *by == SetBy::CommandLine);
        typed.or(from.first().filter(|_| inner.len() == 1)).copied().or(Some((binding.value.span, binding.by)))
    }
}

/// Returns the variables of a value: a variable, an expression with one operator, or a string. If the text is longer, the
/// error is not in a value.
fn names_in(lexed: &syntax::Lexed) -> Vec<String> {
    let tokens: Vec<&Token> = lexed.tokens.iter().map(|(token, _)| token).collect();
    match tokens.as_slice() {
        [Token::Variable(variable)] => vec![variable.name.clone()],
        [left, Token::Operator(_), right] => {
            let name = |token: &&Token| match token {
                Token::Variable(variable) => Some(variable.name.clone()),
                _ => None,
            };
            [*left, *right].iter().filter_map(name).collect()
        }
        [Token::Text(parts)] => {
            let name = |part: &TextPart| match part {
                TextPart::Variable(variable) => Some(variable.node.name.clone()),
                TextPart::Text(_) => None,
            };
            parts.iter().filter_map(name).collect()
        }
        _ => Vec::new(),
    }
}
