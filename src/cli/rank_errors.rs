//! The errors of a rank as text, which rank 0 compares: it prints those of other ranks that differ from its own.

use crate::diag::{self, Diagnostic, Severity};
use crate::source::SourceMap;
use std::fmt::Write;

/// The errors of a rank as text, each on lines of its own.
#[derive(Default)]
pub(super) struct RankErrors(pub(super) String);

impl RankErrors {
    /// Adds an error and its help.
    pub(super) fn add(&mut self, code: Option<&str>, text: &str, help: Option<&str>) {
        let code = code.map_or(String::new(), |code| format!("[{code}]"));
        // A write to a string can't fail.
        let _ = writeln!(self.0, "error{code}: {text}");
        if let Some(help) = help.filter(|help| !help.is_empty()) {
            let _ = writeln!(self.0, "  = help: {help}");
        }
    }

    /// Adds the errors among messages about a script.
    pub(super) fn add_diagnostics(&mut self, map: &SourceMap, found: &[Diagnostic]) {
        let errors: Vec<Diagnostic> = found.iter().filter(|d| d.severity == Severity::Error).cloned().collect();
        self.0.push_str(&diag::render(map, &errors, diag::Style::Plain));
    }
}
