//! No report, for callers that use only the JSON file.

use super::{Report, ReportInfo};

/// `--format none`.
pub(crate) struct NoReport;

impl Report for NoReport {
    fn info(&self) -> ReportInfo {
        ReportInfo::for_people("none", "no report (for use with --json)")
    }
}
