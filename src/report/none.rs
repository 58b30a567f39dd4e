//! No report, for callers that use only the JSON file.

use super::Report;

/// `--format none`.
pub struct NoReport;

impl Report for NoReport {
    fn name(&self) -> &'static str {
        "none"
    }

    fn about(&self) -> &'static str {
        "no report (for use with --json)"
    }
}
