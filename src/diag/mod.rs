//! Diagnostics: what is wrong with a script, as data, and how a person is shown it.
//!
//! In: codes, spans, words. Out: a [`Diagnostic`]; [`render()`] draws it. One file knows the drawing library (`render.rs`).
//! Deliberately absent: any knowledge of the language; who finds a mistake writes its words.
//!
//! Wording: lower case, names in backticks, no final stop. The message says what is, the help says what to do.

mod code;
mod render;
mod suggest;

pub use code::{Code, explain};
pub use render::{Style, render};
pub use suggest::nearest;

use crate::source::Span;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Runs, and probably not as meant.
    Warning,
    /// Does not run.
    Error,
}

/// A place in the source with a word about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there; may be empty.
    pub text: String,
}

/// One mistake or doubt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// What kind: `wmlrun explain CODE` tells more.
    pub code: Code,
    /// What is wrong.
    pub message: String,
    /// Where it is.
    pub primary: Label,
    /// Other places that matter.
    pub secondary: Vec<Label>,
    /// What to do.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, span, message)
    }

    /// A warning at `span`.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, span, message)
    }

    fn new(severity: Severity, code: Code, span: Span, message: impl Into<String>) -> Self {
        let primary = Label { span, text: String::new() };
        Self { severity, code, message: message.into(), primary, secondary: Vec::new(), help: Vec::new() }
    }

    /// Words beside the mark.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.primary.text = text.into();
        self
    }

    /// A second place.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// What to do about it.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// `did you mean $…`, where a variable of a near name is known; names are without `$`.
    #[must_use]
    pub fn near_variable<'a>(self, written: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match nearest(written, known) {
            Some(name) => self.help(format!("did you mean `${name}`?")),
            None => self,
        }
    }

    /// `did you mean …`, where a near miss is known.
    #[must_use]
    pub fn near_miss<'a>(self, written: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match nearest(written, known) {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self,
        }
    }
}

/// Diagnostics that are kept of one text or plan. Of generated ones there are as many as bytes, and nobody reads them.
pub const MOST: usize = 1000;

/// Keeps a diagnostic, unless there are very many: then at most as many errors again, and no warnings.
pub fn push(found: &mut Vec<Diagnostic>, diagnostic: Diagnostic) {
    if found.len() < MOST || (found.len() < 2 * MOST && diagnostic.severity == Severity::Error) {
        found.push(diagnostic);
    }
}

/// Whether any of them is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.severity == Severity::Error)
}
