//! The errors of a rank as text, which rank 0 compares: it prints those of other ranks that differ from its own.

use crate::diag::{self, Diagnostic, Diagnostics, Failure, Reason, Severity};
use std::fmt::Write;

/// The errors of a rank as text, each on lines of its own.
#[derive(Default)]
pub(super) struct RankErrors(pub(super) String);

impl RankErrors {
    /// Adds the reasons of a failure.
    pub(super) fn add(&mut self, failure: &Failure) {
        for reason in &failure.reasons {
            match reason {
                Reason::Stated { code, message, help } => {
                    let code = code.as_ref().map_or(String::new(), |code| format!("[{code}]"));
                    // A write to a string can't fail.
                    let _ = writeln!(self.0, "error{code}: {message}");
                    for help in help {
                        let _ = writeln!(self.0, "  = help: {help}");
                    }
                }
                Reason::Script(Diagnostics { map, found }) => {
                    let errors: Vec<Diagnostic> =
                        found.iter().filter(|d| d.severity == Severity::Error).cloned().collect();
                    self.0.push_str(&diag::render(map, &errors, diag::Style::Plain));
                }
            }
        }
    }
}
