//! The report of a run on one screen: the heading, a row for each flowop with its latency histogram, the warnings, the
//! result. `-v` writes the whole report instead ([`super::text`]).
//!
//! The result and the warnings come last, where the eyes are. On a terminal rows are left out and counted until the report
//! fits: first those that are no I/O, then those that took the least time. On a pipe all are there.

use super::columns::{FigureRow, figures_on, headings_on, percentiles_note};
use super::histogram::Axis;
use super::text::{
    FlowopLabels, conditions, detail_lines, ended, file_set_lines, never_ran, open_loop, so_far, with_rows,
};
use super::{Report, ReportInfo, conclusion, hosts, replay, requests};
use crate::result::hdr;
use crate::result::snapshot::Dist;
use crate::result::{Document, FlowopResult, Run};
use crate::util::count::count;
use crate::util::table::{Align, Table};
use crate::util::wrap::{WIDTH, fill, fill_list};
use std::io::{self, Write};

/// The size of a screen in columns and lines. A pipe has no last line.
#[derive(Clone, Copy, Debug)]
pub struct ReportSize {
    /// Columns.
    pub width: usize,
    /// Lines; `None` for a pipe.
    pub height: Option<usize>,
}

impl ReportSize {
    /// What is assumed of a pipe.
    pub(crate) const PIPE: Self = Self { width: WIDTH, height: None };
}

/// `--format text` of a run.
pub(crate) struct ScreenReport {
    /// The size of the screen when the report is written.
    pub size: fn() -> ReportSize,
}

/// The narrowest screen for which lines are broken.
const MIN_WIDTH: usize = 60;
/// The widest screen that is filled.
const MAX_WIDTH: usize = 160;
/// The least width of histograms. Narrower ones are left out.
const MIN_AXIS_WIDTH: usize = 14;
/// The greatest width of histograms.
const MAX_AXIS_WIDTH: usize = 64;
/// The details that are results.
const RESULTS: [&str; 3] = ["phases", "transactions", "commands"];
/// The end of a run as it is usual.
const BY_TIME: &str = "time";
/// The file sets that are shown.
const MAX_FILE_SETS: usize = 3;
/// The lines of a screen that requests leave to warnings and the result.
const LINES_BELOW_REQUESTS: usize = 12;
/// The rows that are shown on the lowest of screens.
const MIN_ROWS: usize = 4;

impl Report for ScreenReport {
    fn info(&self) -> ReportInfo {
        ReportInfo { has_warnings: true, ..ReportInfo::for_people("text", super::text::ABOUT) }
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        // The others are not examined for each of many runs.
        let part = document.with_run(index);
        let shown = &*super::format::visible(&part);
        let Some(run) = shown.runs.first() else { return Ok(()) };
        if index > 0 {
            writeln!(out)?;
        }
        let by = match run.ended_by.as_str() {
            "" | BY_TIME => String::new(),
            by => format!(" ({by})"),
        };
        let ended = ended(shown, run, (document.runs.len() > 1).then_some(index + 1)) + &by;
        self.write(shown, run, &ended, true, out)
    }

    /// Writes no warnings, since they refer to the whole run.
    fn interim(&self, document: &Document, apart: bool, out: &mut dyn Write) -> io::Result<()> {
        let document = &*super::format::visible(document);
        let Some(run) = document.runs.first() else { return Ok(()) };
        self.write(document, run, &so_far(document, run, apart), false, out)?;
        writeln!(out)
    }
}

impl ScreenReport {
    fn write(
        &self,
        document: &Document,
        run: &Run,
        title: &str,
        has_ended: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let ReportSize { width, height } = (self.size)();
        let width = width.clamp(MIN_WIDTH, MAX_WIDTH);
        let lines = |text: &str| fill_list(text, width) + "\n";
        let mut above = lines(&format!("{title}, {}", conditions(document, run, false).join(", ")));
        for line in document.annotations().map(|(name, text)| format!("  {name}: {text}")) {
            above += &(fill(&line, width, "    ") + "\n");
        }
        let sets = file_set_lines(document, run);
        sets.iter().take(MAX_FILE_SETS).for_each(|line| above += &lines(&format!("  {line}")));
        if let Some(others) = sets.len().checked_sub(MAX_FILE_SETS).filter(|others| *others > 0) {
            above += &format!("  … {} (-v)\n", count(others as u64, "other file set"));
        }
        let mut below = percentiles_note(run, width).map(|note| note + "\n").unwrap_or_default().into_bytes();
        hosts::write(run, &mut below)?;
        let left = height.map(|height| height.saturating_sub(above.lines().count() + LINES_BELOW_REQUESTS));
        let requests = requests::table(run, width, left.map_or(usize::MAX, |left| left.max(MIN_ROWS)));
        match &requests {
            Some(requests) => above += &format!("\n{requests}"),
            None => open_loop(run, &mut below)?,
        }
        let is_shown = |name: &str| RESULTS.contains(&name) || run.replay.is_some() && replay::SHOWN.contains(&name);
        for (name, line) in detail_lines(run).iter().filter(|(name, _)| is_shown(name)) {
            below.extend(lines(&format!("{name}: {line}")).into_bytes());
        }
        below.extend(replay::differences(run, width).into_bytes());
        // The last line of the screen is the prompt's, and four lines of the table are no rows.
        let idle = usize::from(with_rows(run).1 > 0);
        let taken = above.lines().count() + String::from_utf8_lossy(&below).lines().count() + 5 + idle;
        let left = height.map(|height| height.saturating_sub(taken));
        let end_within = |most: Option<usize>| match has_ended {
            true => conclusion::text(width, most, document, run),
            false => String::new(),
        };
        let end_beside = |rows: usize| end_within(left.map(|left| left.saturating_sub(rows)));
        // The steps of requests are shown if all of them fit, with all warnings. Else one line counts them, in place of
        // the four lines of the table.
        let all_fit = left.is_none_or(|left| run.flowops.len() + end_within(None).lines().count() <= left);
        let drops_steps = requests.is_some() && !all_fit;
        let end = match drops_steps {
            true => end_within(left.map(|left| left + 3)),
            false => end_beside(run.flowops.len().min(MIN_ROWS)),
        };
        let rows = left.map_or(usize::MAX, |left| left.saturating_sub(end.lines().count()).max(MIN_ROWS));
        out.write_all(above.as_bytes())?;
        if drops_steps {
            writeln!(out, "… {} (-v)", count(run.flowops.len() as u64, "flowop"))?;
        } else if let Some(table) = replay::table(run) {
            write!(out, "\n{table}")?;
        } else if !run.flowops.is_empty() {
            write!(out, "\n{}", table(run, width, rows))?;
        }
        out.write_all(&below)?;
        out.write_all(end.as_bytes())
    }
}

/// The flowops with their figures and histograms, as wide as the screen; at most `rows` flowops.
fn table(run: &Run, width: usize, rows: usize) -> String {
    let names = FlowopLabels::of(run);
    let (shown, left_out, idle) = longest(run, rows);
    let cells =
        |name: String, row: FigureRow| -> Vec<String> { std::iter::once(name).chain(figures_on(width, row)).collect() };
    let of_flowop = |flowop: &FlowopResult| cells(names.short(flowop), flowop.into());
    let dist = |flowop: &FlowopResult| hdr::decode(&flowop.histogram).ok().filter(|dist| dist.count > 0);
    let rows: Vec<(Vec<String>, Option<Dist>)> = shown.iter().map(|f| (of_flowop(f), dist(f))).collect();
    let all = cells("all I/O".to_owned(), (&run.summary).into());

    let figures = headings_on(width).map(|heading| (heading, Align::Right));
    let headings = std::iter::once(("flowop", Align::Left)).chain(figures);
    let mut plain = Table::new(headings.clone());
    rows.iter().for_each(|(cells, _)| _ = plain.row(cells.clone()));
    plain.row(all.clone());
    let others = (left_out > 0).then(|| format!("… {left_out} more (-v)"));
    others.iter().for_each(|others| _ = plain.row([others.clone()]));
    let taken = plain.render_compact(0).lines().map(|line| line.chars().count()).max().unwrap_or(0) + 2;
    let space = width.saturating_sub(taken).min(MAX_AXIS_WIDTH);
    let axis = Axis::of(rows.iter().filter_map(|(_, dist)| dist.as_ref()), space)
        .filter(|axis| space >= MIN_AXIS_WIDTH && axis.width() <= space);
    let labels = axis.map(|axis| axis.labels(space)).unwrap_or_default();
    let mut table = Table::new(headings.chain([(labels.as_str(), Align::Left)]));
    let of_io = shown.iter().filter(|flowop| flowop.class.is_io()).count();
    for (n, (mut cells, dist)) in rows.into_iter().enumerate() {
        // What is no I/O stands below the sum.
        if n == of_io {
            table.row(all.clone());
        }
        cells.push(axis.zip(dist).map(|(axis, dist)| axis.draw(&dist)).unwrap_or_default());
        table.row(cells);
    }
    if of_io == shown.len() {
        table.row(all);
    }
    others.into_iter().for_each(|others| _ = table.row([others]));
    table.render_compact(0) + &never_ran(idle).map(|line| format!("… {line}\n")).unwrap_or_default()
}

/// The time that the operations of a flowop took.
pub(crate) fn time_of(flowop: &FlowopResult) -> f64 {
    flowop.ops as f64 * flowop.latency_ns.mean.unwrap_or(0.0)
}

/// The flowops of a run that took the most time, at most `most` of them, in the order of the script; and the number of
/// the others, and of those that never ran. I/O comes first.
pub(super) fn longest(run: &Run, most: usize) -> (Vec<&FlowopResult>, usize, usize) {
    let (mut shown, idle) = with_rows(run);
    let left_out = shown.len().saturating_sub(most);
    shown.sort_by(|(_, a), (_, b)| b.class.is_io().cmp(&a.class.is_io()).then(time_of(b).total_cmp(&time_of(a))));
    shown.truncate(most);
    shown.sort_by_key(|(place, flowop)| (!flowop.class.is_io(), *place));
    (shown.into_iter().map(|(_, flowop)| flowop).collect(), left_out, idle)
}

#[cfg(test)]
mod tests {
    use super::{ReportSize, ScreenReport};
    use crate::report::text::Text;
    use crate::report::to_string;
    use crate::result::fixture::fixture;
    use crate::result::{Document, FlowopResult, Note, NoteCode, OpenLoop, ThreadRequests};

    /// A run of 16 flowops.
    fn long_run() -> Document {
        let mut document = fixture();
        let run = &mut document.runs[0];
        let like = run.flowops[0].clone();
        let named = |n: u64| FlowopResult {
            name: format!("deliver.{n}"),
            latency_ns: crate::result::Latency { mean: Some(1e6 * n as f64), ..like.latency_ns },
            ..like.clone()
        };
        run.flowops.extend((1..=13).map(named));
        document
    }

    /// The size of a screen, and the columns and lines that a report may have on it.
    type Limits = (fn() -> ReportSize, usize, usize);

    const AT: [Limits; 4] = [
        (|| ReportSize { width: 80, height: Some(24) }, 80, 24),
        (|| ReportSize { width: 100, height: Some(30) }, 100, 30),
        (|| ReportSize { width: 120, height: Some(40) }, 120, 40),
        (|| ReportSize { width: 200, height: Some(50) }, 160, 50),
    ];

    #[test]
    fn a_report_fits_its_screen() {
        for (size, width, height) in AT {
            let text = to_string(&ScreenReport { size }, &long_run());
            let wide = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(wide <= width && wide + 30 > width.min(120), "{wide} of {width} columns:\n{text}");
            assert!(text.lines().count() < height, "{height} lines:\n{text}");
            assert!(
                text.ends_with('\n') && text.lines().last().is_some_and(|line| line.starts_with("result: ")),
                "{text}"
            );
        }
    }

    #[test]
    fn the_rows_of_the_least_time_are_counted() {
        let text = to_string(&ScreenReport { size: AT[0].0 }, &long_run());
        let counted = text.lines().find_map(|line| line.strip_prefix("… ")?.split(' ').next()?.parse::<usize>().ok());
        let shown = text.lines().filter(|line| line.starts_with("deliver")).count();
        assert!(counted.is_some_and(|left_out| left_out + shown >= 13), "{text}");
        assert!(text.contains("deliver.13 ") && !text.contains("deliver.1 "), "{text}");
        let on_pipe = to_string(&ScreenReport { size: || ReportSize::PIPE }, &long_run());
        assert_eq!(on_pipe.lines().filter(|line| line.starts_with("deliver")).count(), 13, "{on_pipe}");
    }

    #[test]
    fn of_many_flowops_that_never_ran_none_has_a_row() {
        for (idle, is_shown) in [(10, true), (11, false)] {
            let mut document = long_run();
            let like = document.runs[0].flowops[0].clone();
            let never = |n| FlowopResult { name: format!("never{n}"), ops: 0, errors: [].into(), ..like.clone() };
            document.runs[0].flowops.extend((0..idle).map(never));
            for text in [to_string(&ScreenReport { size: || ReportSize::PIPE }, &document), to_string(&Text, &document)]
            {
                assert_eq!(text.contains("\nnever1 "), is_shown, "{text}");
                assert_eq!(text.contains("\n… 11 other flowops never ran"), !is_shown, "{text}");
                assert!(text.contains("deliver.1 "), "{text}");
            }
        }
    }

    #[test]
    fn a_long_note_is_wrapped() {
        let mut document = long_run();
        document.note = Some("a word and another ".repeat(20));
        let text = to_string(&ScreenReport { size: AT[0].0 }, &document);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn no_warning_is_left_out() {
        let mut document = long_run();
        let note = |n: usize| Note { code: format!("code{n}"), message: "something happened to the run".into() };
        document.runs[0].warnings.extend((0..30).map(note));
        let text = to_string(&ScreenReport { size: AT[0].0 }, &document);
        assert_eq!(text.matches("warning[code").count(), 30, "{text}");
        assert!(text.lines().filter(|line| line.starts_with("deliver")).count() >= 1, "{text}");
    }

    /// First what makes the figures wrong, of which nothing is left out.
    #[test]
    fn the_last_warnings_are_counted_where_they_do_not_fit() {
        let mut document = long_run();
        let note = |code: NoteCode| code.note("something that takes a line");
        let codes = [NoteCode::ScriptNote, NoteCode::WarmedUp, NoteCode::Stopped, NoteCode::Exhausted];
        document.runs[0].warnings = codes.into_iter().flat_map(|code| [note(code), note(code)]).collect();
        let text = to_string(&ScreenReport { size: AT[0].0 }, &document);
        assert_eq!(text.lines().count(), 23, "{text}");
        let rows = text.lines().filter(|line| line.starts_with("deliver") || line.starts_with("shadow")).count();
        assert!(rows >= 4, "{text}");
        let number = |code: NoteCode| text.matches(&format!("warning[{}]", code.name())).count();
        assert_eq!(codes.map(number)[1..], [0, 0, 2], "{text}");
        let shown = text.matches("warning[").count();
        let all = document.runs[0].warnings.len() + 2;
        assert!(text.contains(&format!("\n… {} more warnings (-v)\n", all - shown)), "{text}");
        let places: Vec<_> = ["warning[exhausted]", "warning[errors]", "… "].map(|start| text.rfind(start)).into();
        assert!(places.is_sorted() && places[0].is_some(), "{text}");
        for whole in [to_string(&ScreenReport { size: || ReportSize::PIPE }, &document), to_string(&Text, &document)] {
            let codes = ["exhausted", "errors", "stopped", "warmed_up", "few_for_percentiles", "script_note"];
            let places: Vec<_> = codes.iter().map(|code| whole.find(&format!("warning[{code}]"))).collect();
            assert!(places.is_sorted() && places[0].is_some(), "{whole}");
            assert_eq!(whole.matches("warning[").count(), all, "{whole}");
        }
    }

    /// Requests come first, and the steps only where all of them fit.
    #[test]
    fn a_report_of_open_loops_fits_its_screen() {
        let mut document = long_run();
        let run = &mut document.runs[0];
        let requests = |n: usize| ThreadRequests { thread: format!("clients{n}"), ..ThreadRequests::default() };
        run.open_loop = Some(OpenLoop { threads: (0..12).map(requests).collect(), ..OpenLoop::default() });
        for (size, width, height) in AT {
            let text = to_string(&ScreenReport { size }, &document);
            assert!(text.lines().count() < height, "{height} lines:\n{text}");
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            assert!(text.contains("\nrequests ") && text.contains("\nclients0 "), "{text}");
            assert_eq!(text.contains("\n… 16 flowops (-v)\n"), !text.contains("\nflowop "), "{text}");
        }
        let lowest = to_string(&ScreenReport { size: AT[0].0 }, &document);
        assert!(lowest.contains(" more (-v)\n") && !lowest.contains("\nflowop "), "{lowest}");
        let highest = to_string(&ScreenReport { size: AT[3].0 }, &document);
        assert!(highest.contains("\nflowop ") && highest.contains("\nclients11 "), "{highest}");
        // Warnings take the room of the steps.
        document.runs[0].warnings = vec![NoteCode::WarmedUp.note("a line"); 20];
        let full = to_string(&ScreenReport { size: AT[0].0 }, &document);
        assert!(full.lines().count() == 23 && full.contains(" more warnings (-v)\n"), "{full}");
    }

    #[test]
    fn screens() {
        insta::assert_snapshot!("screen_80", to_string(&ScreenReport { size: AT[0].0 }, &fixture()));
        insta::assert_snapshot!("screen_120", to_string(&ScreenReport { size: AT[2].0 }, &long_run()));
    }
}
