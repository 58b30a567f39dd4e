//! The front end of a rank other than 0: it collects the errors, which rank 0 prints, and shows only what rank 0 does not
//! have.

use super::console;
use crate::diag::{self, Diagnostic, Severity};
use crate::report::{Report, json};
use crate::result::Document;
use crate::session::Front;
use crate::source::SourceMap;
use std::fmt::Write;

/// Collects errors as text.
pub(super) struct RankFront {
    /// The number and the host of the rank.
    name: String,
    /// The errors so far, each on lines of its own.
    pub(super) errors: String,
}

impl RankFront {
    /// Creates the front end of a rank with this name.
    pub(super) fn new(name: String) -> Self {
        Self { name, errors: String::new() }
    }

    /// Adds an error and its help.
    pub(super) fn add(&mut self, code: Option<&str>, text: &str, help: Option<&str>) {
        let code = code.map_or(String::new(), |code| format!("[{code}]"));
        // A write to a string can't fail.
        let _ = writeln!(self.errors, "error{code}: {text}");
        if let Some(help) = help.filter(|help| !help.is_empty()) {
            let _ = writeln!(self.errors, "  = help: {help}");
        }
    }
}

impl Front for RankFront {
    fn line(&mut self, _: &str) {}

    fn note(&mut self, _: &str) {}

    fn diagnostics(&mut self, map: &SourceMap, found: &[Diagnostic]) {
        let errors: Vec<Diagnostic> = found.iter().filter(|d| d.severity == Severity::Error).cloned().collect();
        self.errors.push_str(&diag::render(map, &errors, diag::Style::Plain));
    }

    fn result_kept(&mut self, text: &str) {
        console::notice(&format!("{}: {text}", self.name));
    }

    fn result_aside(&mut self, document: &Document) {
        let _ = json::Json.end(document, &mut std::io::stderr());
    }

    fn error(&mut self, code: Option<&str>, text: &str, help: Option<&str>) {
        self.add(code, text, help);
    }
}
