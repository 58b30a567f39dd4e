//! A sheet for GitHub: an annotation for each check that did not pass, and the Markdown of the step's summary. The
//! annotations are in a comment, so that one text is both.

use super::{CheckOutcome, Sheet, SheetCheck, markdown};

pub fn write(sheet: &Sheet) -> String {
    annotations(sheet) + &markdown::write(sheet)
}

/// The annotations, each a line; empty without any.
pub fn annotations(sheet: &Sheet) -> String {
    let mut lines = String::new();
    for (at, check) in sheet.checks.iter().enumerate() {
        let kind = match check.outcome {
            CheckOutcome::Passed => continue,
            CheckOutcome::Failed => "error",
            CheckOutcome::Unclear => "warning",
        };
        // What is unclear of many for one reason is one line.
        let is_like = |other: &&SheetCheck| other.outcome == CheckOutcome::Unclear && other.text == check.text;
        if check.outcome == CheckOutcome::Unclear && sheet.checks[..at].iter().any(|other| is_like(&other)) {
            continue;
        }
        let others = match check.outcome {
            CheckOutcome::Unclear => sheet.checks[at + 1..].iter().filter(is_like).count(),
            _ => 0,
        };
        let others = if others > 0 { format!(" and {others} more") } else { String::new() };
        let title =
            escaped(&format!("{}: {}{others}", sheet.title, check.name)).replace(':', "%3A").replace(',', "%2C");
        lines += &format!("::{kind} title={title}::{}\n", escaped(&check.text));
    }
    if lines.is_empty() { lines } else { format!("<!--\n{lines}-->\n\n") }
}

/// A text that ends neither the line nor the comment.
fn escaped(text: &str) -> String {
    let mut text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    // Of three dashes two are left.
    while text.contains("--") {
        text = text.replace("--", "- -");
    }
    text
}
