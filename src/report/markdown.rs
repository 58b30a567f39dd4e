//! The Markdown report, for issues, pull requests and notes: a table of flowops, and the warnings.
//!
//! Tables use GitHub's syntax (`| a | b |`). Names are escaped, so that they contain no markup.

use super::columns::{figures, headings};
use super::names::heading;
use super::{Report, ReportInfo};
use crate::result::{Document, FlowopResult, Run};
use crate::result::{warning_order, warnings};
use crate::util::duration::seconds;
use crate::util::markdown::literal;
use std::io::{self, Write};

/// `--format markdown`.
pub(crate) struct Markdown;

impl Report for Markdown {
    fn info(&self) -> ReportInfo {
        ReportInfo {
            has_warnings: true,
            ..ReportInfo::for_programs(
                "markdown",
                "a Markdown table of the flowops, and warnings, for issues and notes",
            )
        }
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = document.runs.get(index) else { return Ok(()) };
        let state = run.state.name().replace('_', " ");
        let of = if document.runs.len() > 1 { format!(", run {}", index + 1) } else { String::new() };
        writeln!(
            out,
            "### {}{of}: {state} after {}\n",
            literal(&heading(document, run)),
            seconds(run.measured_seconds)
        )?;
        for (name, text) in document.annotations() {
            writeln!(out, "- {name}: {}", literal(text))?;
        }
        for set in &run.filesets {
            let place = warnings::mount_of(run, &set.path).map_or(set.path.as_str(), |mount| &mount.kind);
            writeln!(out, "- {} on {}", literal(&set.name), literal(place))?;
        }
        let (tool, kernel) = (&document.tool.version, &document.environment.uname.release);
        writeln!(out, "- wmlrun {}, kernel {}, seed {}\n", literal(tool), literal(kernel), document.seed)?;
        table(run, out)?;
        for limit in &run.limits {
            writeln!(out, "\n- limit {}: {}", literal(&limit.title()), literal(&limit.text))?;
        }
        for warning in warning_order::listed(document, run) {
            writeln!(out, "\n> **Warning:** {}", literal(&warning.message))?;
        }
        writeln!(out)
    }
}

fn table(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    if run.flowops.is_empty() {
        return writeln!(out, "No flowop was measured.");
    }
    writeln!(out, "| flowop | {} |", headings().join(" | "))?;
    writeln!(out, "|---|{}", "---:|".repeat(headings().len()))?;
    let name = |f: &FlowopResult| format!("{}/{}/{}", f.process, f.thread, f.name);
    let (io, other): (Vec<_>, Vec<_>) = run.flowops.iter().partition(|f| f.class.is_io());
    let row = |f: &FlowopResult| {
        let cells = figures(f);
        format!("| {} | {} |", literal(&name(f)), cells.join(" | "))
    };
    io.into_iter().try_for_each(|flowop| writeln!(out, "{}", row(flowop)))?;
    writeln!(out, "| **all I/O** | {} |", figures(&run.summary).join(" | "))?;
    other.into_iter().try_for_each(|flowop| writeln!(out, "{}", row(flowop)))
}

#[cfg(test)]
mod tests {
    use super::{Markdown, headings};
    use crate::report::to_string;
    use crate::result::fixture::fixture;

    #[test]
    fn names_mention_nobody() {
        let mut document = fixture();
        document.runs[0].flowops[0].name = "@name".to_owned();
        document.runs[0].filesets[0].name = "# <b>".to_owned();
        let text = to_string(&Markdown, &document);
        assert!(text.contains("/@<!-- -->name |") && text.contains("- \\# &lt;b> on "), "{text}");
    }

    #[test]
    fn every_row_has_all_columns() {
        let mut document = fixture();
        document.runs[0].flowops[0].name = "a|b".to_owned();
        let text = to_string(&Markdown, &document);
        let cells = |line: &str| line.replace(r"\|", "").matches('|').count();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(rows.len() > 3 && rows.iter().all(|row| cells(row) == 2 + headings().len()), "{text}");
    }
}
