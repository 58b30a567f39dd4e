//! No report at all: for those who read the JSON file only.

use super::Report;

/// `--format none`.
pub struct NoReport;

impl Report for NoReport {
    fn name(&self) -> &'static str {
        "none"
    }

    fn about(&self) -> &'static str {
        "no report (with --json)"
    }
}
