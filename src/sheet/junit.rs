//! The checks of a sheet as `JUnit` XML, which the servers of continuous integration read. A check without a verdict is a
//! test that was skipped.

use super::{CheckOutcome, Sheet};
use wml_text::printable;

pub fn write(sheet: &Sheet) -> String {
    let suite = attribute(&sheet.title);
    let class = if sheet.class.is_empty() { suite.clone() } else { attribute(&sheet.class) };
    let [failed, unclear] = [CheckOutcome::Failed, CheckOutcome::Unclear].map(|outcome| sheet.count(outcome));
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    text += &format!(
        "  <testsuite name=\"{suite}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{unclear}\">\n",
        sheet.checks.len()
    );
    for check in &sheet.checks {
        let (name, message) = (attribute(&check.name), attribute(&check.text));
        let outcome = match check.outcome {
            CheckOutcome::Failed => format!("<failure message=\"{message}\"/>"),
            CheckOutcome::Unclear => format!("<skipped message=\"{message}\"/>"),
            CheckOutcome::Passed => format!("<system-out>{message}</system-out>"),
        };
        text += &format!("    <testcase classname=\"{class}\" name=\"{name}\">{outcome}</testcase>\n");
    }
    text + "  </testsuite>\n</testsuites>\n"
}

/// A text in which XML sees no markup. It has no control character, which XML forbids.
fn attribute(text: &str) -> String {
    let text = printable::line(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
