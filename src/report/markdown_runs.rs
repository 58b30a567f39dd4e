//! A table in Markdown with one row per run: an overview of several results, for mails, issues and notes.
//!
//! Names are escaped, so that they contain no markup. Not in here: the figures of flowops (`markdown`).

use super::columns::{figures, headings};
use super::names::{file_systems, script_name, workload};
use super::{Report, ReportInfo};
use crate::result::{Document, NoteCode, Run, RunState};
use crate::util::duration::seconds;
use crate::util::markdown::literal;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// `--format markdown-runs`.
pub(crate) struct MarkdownRuns;

impl MarkdownRuns {
    /// Returns the row of a result without a run, such as one that was refused.
    fn without_run(document: &Document) -> String {
        let name = workload(document, &Run::default()).unwrap_or_else(|| script_name(document));
        format!("| {} (no run) | - | - |{}\n", literal(&name), " - |".repeat(headings().len()))
    }
}

impl Report for MarkdownRuns {
    fn info(&self) -> ReportInfo {
        ReportInfo::for_programs("markdown-runs", "a Markdown table, one row per run: an overview of several results")
    }

    fn begin(&self, _: &Document, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "| workload | files on | time | {} |", headings().join(" | "))?;
        writeln!(out, "|---|---|---:|{}", "---:|".repeat(headings().len()))
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = document.runs.get(index) else { return Ok(()) };
        let figures = figures(&run.summary).join(" | ");
        let (name, places) = (name(document, run, index), file_systems(run).join(", "));
        let places = if places.is_empty() { "-" } else { &places };
        let time = seconds(run.measured_seconds);
        writeln!(out, "| {} | {} | {time} | {figures} |", literal(&name), literal(places))
    }

    fn end(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        if document.runs.is_empty() { out.write_all(Self::without_run(document).as_bytes()) } else { Ok(()) }
    }
}

/// Returns the name of a run: the workload of a profile or the name of the script, the label of the result, the number of
/// the run if there are several, and how it ended if it is not complete or threads ended early.
fn name(document: &Document, run: &Run, index: usize) -> String {
    let workload = workload(document, run);
    let mut name = workload.clone().unwrap_or_else(|| script_name(document));
    // The workloads of a batch, or of a suite, have one label.
    if let Some(label) = &document.label {
        name += &format!(", {label}");
    }
    if workload.is_none() && document.runs.len() > 1 {
        name += &format!(", run {}", index + 1);
    }
    let state = Some(run.state).filter(|state| *state != RunState::Complete).map(RunState::name);
    let codes: BTreeSet<&str> =
        run.warnings.iter().filter_map(NoteCode::of).filter(|c| c.is_unfulfilled()).map(NoteCode::name).collect();
    let marks: Vec<String> = state.into_iter().chain(codes).map(|mark| mark.replace('_', " ")).collect();
    if !marks.is_empty() {
        name += &format!(" ({})", marks.join(", "));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{MarkdownRuns, headings};
    use crate::report::{to_string, write_all};
    use crate::result::fixture::fixture;
    use crate::result::{NoteCode, RunState};

    fn row(document: &crate::result::Document) -> String {
        to_string(&MarkdownRuns, document).lines().nth(2).unwrap_or_default().to_owned()
    }

    #[test]
    fn a_row_has_the_name_of_the_workload() {
        let mut document = fixture();
        document.label = None;
        for (path, says) in [
            ("/a/oltp_sync.wml", "| oltp_sync | "),
            ("/a/results/mail/thisrun.f", "| mail | "),
            ("varmail (shipped)", "| varmail (shipped) | "),
            ("", "| run | "),
        ] {
            document.script.path = path.to_owned();
            assert!(row(&document).starts_with(says), "{path}: {}", row(&document));
        }
        document.label = Some("a|b".to_owned());
        document.runs[0].workload = Some("web".to_owned());
        assert!(row(&document).starts_with("| web, a\\|b | "), "{}", row(&document));
        document.runs[0].workload = None;
        document.runs[0].state = RunState::Failed;
        document.runs[0].warnings = vec![NoteCode::Exhausted.note("no file"); 2];
        document.runs.push(document.runs[0].clone());
        assert!(
            row(&document).starts_with("| run, a\\|b, run 1 (failed, exhausted) | ext4 | 60.0 s | "),
            "{}",
            row(&document)
        );
    }

    #[test]
    fn several_results_are_one_table() {
        let document = fixture();
        let mut out = Vec::new();
        assert!(write_all(&MarkdownRuns, &[&document, &document], &mut out).is_ok());
        let text = String::from_utf8_lossy(&out).into_owned();
        let rows: Vec<&str> = text.lines().collect();
        let cells = |row: &str| row.replace("\\|", "").matches('|').count();
        assert!(rows.len() == 4 && rows.iter().all(|row| cells(row) == 4 + headings().len()), "{text}");
    }
}
