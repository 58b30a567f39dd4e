//! Comma-separated values (RFC 4180) with one row per run: the format of histories. `--append` adds such rows to a file.

use super::columns::{FigureRow, csv_headings};
use super::csv::{cells, headings, row};
use super::names::file_systems;
use super::{Report, ReportInfo};
use crate::result::{Document, PercentilePlace, Run};
use std::io::{self, Write};

/// `--format csv-runs`.
pub(crate) struct CsvRuns;

/// The data of a row.
struct RunRow<'a> {
    document: &'a Document,
    number: usize,
    run: &'a Run,
}

/// A column: its heading, whether its cells are text, and a function that returns its cell for a row.
type RunColumn = (&'static str, bool, fn(&RunRow) -> String);

/// The columns before the figures.
const BEFORE: &[RunColumn] = &[
    ("started_at", true, |r| r.run.started_at.clone()),
    ("label", true, |r| r.document.label.clone().unwrap_or_default()),
    ("note", true, |r| r.document.note.clone().unwrap_or_default()),
    ("script", true, |r| r.document.script.path.clone()),
    ("script_sha256", true, |r| r.document.script.sha256.clone()),
    ("run", false, |r| r.number.to_string()),
    ("state", true, |r| r.run.state.name().to_owned()),
    ("seconds", false, |r| r.run.measured_seconds.to_string()),
    ("processes", false, |r| r.run.processes.to_string()),
    ("threads", false, |r| r.run.threads.to_string()),
    ("engine", true, |r| r.run.engine.clone()),
    ("cache_state", true, |r| r.run.cache_state.name().to_owned()),
    ("file_systems", true, |r| file_systems(r.run).join(" ")),
];

/// Those after them.
const AFTER: &[RunColumn] = &[
    ("seed", false, |r| r.document.seed.to_string()),
    ("host", true, |r| hosts(r.document, r.run)),
    ("kernel", true, |r| r.document.environment.uname.release.clone()),
    ("version", true, |r| version(r.document)),
    ("warnings", true, |r| r.run.warnings.iter().map(|note| note.code.as_str()).collect::<Vec<_>>().join(" ")),
];

impl Report for CsvRuns {
    fn info(&self) -> ReportInfo {
        ReportInfo::for_programs("csv-runs", "comma-separated values, one row per run, as `--append` writes them")
    }

    fn begin(&self, _: &Document, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(header_line().as_bytes())
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        write_row(out, [], document, index)
    }
}

/// Returns the header line, with its end.
pub(crate) fn header_line() -> String {
    let figures = csv_headings(PercentilePlace::Metrics, |column| column.of_all.is_some());
    let headings: Vec<String> = headings(BEFORE).chain(figures).chain(headings(AFTER)).collect();
    format!("{}\r\n", headings.join(","))
}

fn write_row(
    out: &mut dyn Write,
    place: impl IntoIterator<Item = (bool, String)>,
    document: &Document,
    index: usize,
) -> io::Result<()> {
    let Some(run) = document.runs.get(index) else { return Ok(()) };
    let of = RunRow { document, number: index + 1, run };
    let figures = FigureRow::from(&run.summary);
    let figures = figures.csv(PercentilePlace::Metrics).map(|cell| (false, cell));
    row(out, place.into_iter().chain(cells(BEFORE, &of)).chain(figures).chain(cells(AFTER, &of)))
}

/// The place of a run in an experiment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExperimentRun<'a> {
    /// The name of the experiment.
    pub experiment: &'a str,
    /// The arm, as in `DIR:ARM`; empty for a single arm.
    pub arm: &'a str,
    /// The number of the run, from 1.
    pub number: usize,
}

/// Returns the header line of a table of the runs of experiments, with its end.
pub(crate) fn experiment_header() -> String {
    format!("experiment,arm,experiment_run,{}", header_line())
}

pub(crate) fn experiment_row(
    of: ExperimentRun<'_>,
    document: &Document,
    index: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let place = [(true, of.experiment.to_owned()), (true, of.arm.to_owned()), (false, of.number.to_string())];
    write_row(out, place, document, index)
}

/// Returns the names of the hosts of a run.
fn hosts(document: &Document, run: &Run) -> String {
    if run.hosts.is_empty() {
        return document.environment.uname.nodename.clone();
    }
    run.hosts.iter().map(|host| host.host.as_str()).collect::<Vec<_>>().join(" ")
}

/// Returns the version of the program, and its commit if it is known.
fn version(document: &Document) -> String {
    let commit = document.tool.commit.as_ref().map(|commit| format!(" {commit}"));
    format!("{}{}", document.tool.version, commit.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{CsvRuns, ExperimentRun, experiment_header, experiment_row};
    use crate::report::to_string;
    use crate::result::fixture::{fixture, of_ranks};

    #[test]
    fn one_row_per_run_with_all_columns() {
        let mut document = fixture();
        document.note = Some("=1+1\nof \"two\"".to_owned());
        document.runs.push(document.runs[0].clone());
        let text = to_string(&CsvRuns, &document);
        let rows: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(text.lines().next(), super::header_line().lines().next());
        assert_eq!((rows.len(), rows[2].split(',').count()), (3, rows[0].split(',').count()));
        assert!(rows[1].contains(",\"'=1+1\\nof \"\"two\"\"\",oltp_sync.wml,"), "{}", rows[1]);
        assert!(rows[1].contains(",1,complete,60,") && rows[2].contains(",2,complete,60,"), "{text}");
        assert!(to_string(&CsvRuns, &of_ranks()).contains(",h1 h2,") && text.contains(",bench,"), "{text}");
        // The row of a run of an experiment begins with its place.
        let mut bytes = Vec::new();
        let of = ExperimentRun { experiment: "=mail", arm: "fs=ext4,n=1", number: 7 };
        experiment_row(of, &document, 1, &mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), format!("'=mail,\"fs=ext4,n=1\",7,{}\r\n", rows[2]));
        assert_eq!(experiment_header(), format!("experiment,arm,experiment_run,{}\r\n", rows[0]));
    }
}
