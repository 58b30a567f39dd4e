//! Errors and warnings about a script: as data ([`Diagnostic`]), and rendered as text ([`render()`]). And the failure of a
//! command ([`Failure`]).
//!
//! Only `render.rs` uses the drawing library. Not in here: anything about the language. The stage that finds an error
//! writes its message.
//!
//! Messages are in lower case, with names in backticks and without a full stop. The message states what is wrong, the
//! help states what to do.

mod code;
mod failure;
mod render;
mod status;
mod suggest;

pub use code::Code;
pub use failure::{Diagnostics, Failure, Reason};
pub use render::{Style, render, texts, wants_colours};
pub use status::Status;
pub use suggest::{did_you_mean, meant, nearest, similar_path};

use crate::source::Span;

/// The severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// The script runs, but probably not as intended.
    Warning,
    /// The script does not run.
    Error,
}

/// A marked range of the source with a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The marked range.
    pub span: Span,
    /// The text beside the mark; may be empty.
    pub text: String,
}

/// One error or warning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The code, which `wmlrun explain CODE` explains.
    pub code: Code,
    /// The message: what is wrong.
    pub message: String,
    /// The position of the error.
    pub primary: Label,
    /// Other positions that are relevant.
    pub secondary: Vec<Label>,
    /// Help messages: what to do.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// Creates an error at `span`.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, span, message)
    }

    /// Creates a warning at `span`.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, span, message)
    }

    fn new(severity: Severity, code: Code, span: Span, message: impl Into<String>) -> Self {
        let primary = Label { span, text: String::new() };
        Self { severity, code, message: message.into(), primary, secondary: Vec::new(), help: Vec::new() }
    }

    /// Sets the text beside the primary mark.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.primary.text = text.into();
        self
    }

    /// Adds a secondary mark with a text.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// Adds a help message.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// Adds a help unless there is one already, such as a suggestion for a misspelt name.
    #[must_use]
    pub fn or_help(self, text: impl Into<String>) -> Self {
        if self.help.is_empty() { self.help(text) } else { self }
    }

    /// Adds the help ``did you mean `$…`?`` if a known variable has a similar name. Names are given without `$`.
    #[must_use]
    pub fn near_variable<'a>(self, written: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match nearest(written, known) {
            Some(name) => self.help(format!("did you mean `${name}`?")),
            None => self,
        }
    }

    /// Adds the help ``did you mean `…`?`` if a known name is similar, or the only one that begins or ends so.
    #[must_use]
    pub fn near_miss<'a>(self, written: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match meant(written, known) {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self,
        }
    }
}

/// The maximum number of diagnostics of one text or plan. A generated text can cause one for each byte.
pub const MOST: usize = 1000;

/// Appends a diagnostic if fewer than [`MOST`] were found. Errors are appended up to twice that number.
pub fn push(found: &mut Vec<Diagnostic>, diagnostic: Diagnostic) {
    if found.len() < MOST || (found.len() < 2 * MOST && diagnostic.severity == Severity::Error) {
        found.push(diagnostic);
    }
}

/// True if any diagnostic is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.severity == Severity::Error)
}
