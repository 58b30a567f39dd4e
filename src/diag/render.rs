//! Draws diagnostics. The only file that knows the drawing library.

use super::Diagnostic;
use crate::source::SourceMap;

/// How to draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Letters only: for files and pipes.
    Plain,
    /// With colours, for a terminal.
    Colour,
}

/// All of them, as a person reads them.
pub fn render(_map: &SourceMap, diagnostics: &[Diagnostic], _style: Style) -> String {
    diagnostics.iter().map(|d| format!("{}: {}\n", d.code.number(), d.message)).collect()
}
