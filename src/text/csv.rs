//! Cells of CSV.

use super::printable;

/// Returns text as a cell, without its quotes: control characters are escaped, so that a cell is one line, and a text that
/// a spreadsheet would interpret as a formula is prefixed with `'`.
pub fn text(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    format!("{}{}", if formula { "'" } else { "" }, printable::line(cell))
}

/// Quotes a cell if it contains a separator, a quote or a line break.
pub fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

/// Text as a finished cell.
pub fn cell(content: &str) -> String {
    quoted(&text(content))
}
