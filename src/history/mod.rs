//! Histories: the results of tests that are run each night, in a folder of plain files, and a verdict on each night.
//!
//! Input: observations. Output: lines of files, and a document with its sheet. Not in here: the statistics of the verdict
//! (`statistics`), and how results are read (`import`).

mod export;
mod folder;
mod line;
mod night_report;
mod night_sheet;
mod tests_of_nights;

pub use folder::{AddedRuns, HistoryFolder, NewRuns};
pub use line::{AcceptedLevel, HistoryRun, KEPT_METRICS, NightName};
pub use night_report::{NightReport, NightTest};
pub use night_sheet::SHOWN_NIGHTS;
pub use tests_of_nights::{History, TestName};
