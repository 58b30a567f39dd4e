//! Live display of a run: a block that is redrawn in place on a terminal, else one line per interval.
//!
//! Reads the intervals of the timeline and writes to standard error. The thread that waits for the end of the run draws
//! it, so that no operation is delayed. It measures nothing itself: the report has the exact figures.

use super::console::notice;
use super::screen::{self, Screen, ScreenSize, fit, part_bar};
use crate::diag::wants_colours;
use crate::result::ranks::{RankRate, RanksInterval};
use crate::result::{FlowopCounter, FlowopResult, Interval, Run};
use crate::runtime::Tick;
use crate::util::count::{count, grouped, measured};
use crate::util::duration::{latency, seconds};
use crate::util::{printable, size};

/// Counters of a flowop that the timeline does not record.
#[derive(Clone, Copy, Default, Debug)]
struct TroubleCounts {
    errors: u64,
    starved_ns: u64,
}

/// Number of rows of the block that show no flowop: progress, totals, column titles. Several ranks have one more.
const HEADER_ROWS: usize = 3;

/// Width of a row's four numbers, ten columns each.
const NUMBERS_WIDTH: usize = 40;

/// Displays runs while they are in progress.
pub(super) struct LiveScreen {
    /// The terminal; `None` if lines are printed instead.
    screen: Option<Screen>,
    quiet: bool,
    colour: bool,
}

impl LiveScreen {
    /// Creates the display. It draws on standard error if that is a terminal that can move its cursor.
    pub(super) fn new(quiet: bool) -> Self {
        let screen = if quiet { None } else { Screen::of_stderr() };
        Self { screen, quiet, colour: wants_colours() }
    }

    /// Updates the display after an interval. `ranks`: the interval of all ranks, if there are several.
    pub(super) fn tick(&mut self, run: &Run, tick: &Tick<'_>, ranks: Option<&RanksInterval>) {
        if self.quiet {
            return;
        }
        let elapsed = tick.elapsed_ns as f64 / 1e9;
        let counters = tick.running.measured().flowops;
        let trouble: Vec<TroubleCounts> = counters
            .iter()
            .map(|s| TroubleCounts { errors: s.failed(), starved_ns: s[FlowopCounter::StarvedTime] })
            .collect();
        match &mut self.screen {
            Some(screen) => {
                let lines = block(run, elapsed, &trouble, ranks, screen.size(), self.colour);
                screen.draw(&lines);
            }
            None => notice(&log_line(run, elapsed, &trouble, ranks)),
        }
    }

    /// Erases the block so that other text can be printed. The next tick draws it again.
    pub(super) fn clear(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.draw(&[]);
        }
    }
}

/// Totals of the I/O flowops in the last interval, and errors and starvation since the start.
#[derive(Default)]
struct LiveTotals {
    ops_per_s: f64,
    bytes_per_s: f64,
    mean_ns: Option<f64>,
    errors: u64,
    /// Share of all threads' time since the start that was spent waiting for a usable file, 0 to 1.
    starved: f64,
    /// Index of the flowop that waited longest; `None` if none waited.
    most_starved: Option<usize>,
}

impl LiveTotals {
    fn of(run: &Run, elapsed: f64, trouble: &[TroubleCounts]) -> Self {
        let errors = trouble.iter().map(|t| t.errors).sum();
        let starved_ns: u64 = trouble.iter().map(|t| t.starved_ns).sum();
        let threads = run.threads.max(1) as f64;
        let starved = starved_ns as f64 / 1e9 / (elapsed.max(1e-9) * threads);
        let most_starved = (0..trouble.len()).max_by_key(|i| trouble[*i].starved_ns).filter(|_| starved_ns > 0);
        let Some(interval) = run.intervals.last() else {
            return Self { errors, starved, most_starved, ..Self::default() };
        };
        let io = || run.flowops.iter().zip(&interval.flowops).filter(|(f, _)| f.class.is_io()).map(|(_, p)| p);
        let ops: u64 = io().map(|p| p.ops).sum();
        let bytes: u64 = io().map(|p| p.bytes).sum();
        let time: f64 = io().filter_map(|p| Some(p.mean_ns? * p.ops as f64)).sum();
        let length = interval.seconds.max(1e-9);
        Self {
            ops_per_s: ops as f64 / length,
            bytes_per_s: bytes as f64 / length,
            mean_ns: (ops > 0).then(|| time / ops as f64),
            errors,
            starved,
            most_starved,
        }
    }

    /// Replaces the totals of this rank by those of all ranks. Starvation stays that of this rank.
    fn with_ranks(self, ranks: Option<&RanksInterval>) -> Self {
        let Some(all) = ranks else { return self };
        Self {
            ops_per_s: all.ops_per_s,
            bytes_per_s: all.bytes_per_s,
            mean_ns: all.mean_ns,
            errors: all.errors,
            ..self
        }
    }
}

/// Returns the part of the view about the ranks: how many report their progress, if not all, and the extremes.
fn ranks_text(all: &RanksInterval) -> String {
    let ranks = count(all.ranks as u64, "rank");
    let mut text = if all.reporting < all.ranks { format!("{} of {ranks}", all.reporting) } else { ranks };
    if let (Some(slowest), Some(fastest)) = (&all.slowest, &all.fastest)
        && slowest.rank != fastest.rank
    {
        let of = |rate: &RankRate| {
            let (host, rate_text) = (printable::line(&rate.host), grouped(rate.ops_per_s as u64));
            format!("rank {} on {host}, {rate_text} operations a second", rate.rank)
        };
        text.push_str(&format!("; slowest: {}; fastest: {}", of(slowest), of(fastest)));
    }
    text
}

/// Returns the line of an interval for output that is not a terminal. A program that reads a report gets it in the same
/// text if both streams are one; therefore it has no figure with a unit of a report, such as `9 ops/s`.
fn log_line(run: &Run, elapsed: f64, trouble: &[TroubleCounts], ranks: Option<&RanksInterval>) -> String {
    let current = LiveTotals::of(run, elapsed, trouble).with_ranks(ranks);
    let mut line = format!(
        "{elapsed:7.1} s: at {} operations and {} per second, each taking {}",
        grouped(current.ops_per_s as u64),
        size::format(current.bytes_per_s as u64),
        latency(current.mean_ns.unwrap_or(f64::NAN))
    );
    if current.errors > 0 {
        line.push_str(&format!(", {} errors", grouped(current.errors)));
    }
    if current.starved >= 0.001 {
        line.push_str(&format!(", {:.1} % starved", current.starved * 100.0));
    }
    if let Some(ranks) = ranks {
        line.push_str(&format!("; {}", ranks_text(ranks)));
    }
    line
}

/// Returns the lines of the block: fewer than the terminal's rows, each at most as wide as the terminal.
fn block(
    run: &Run,
    elapsed: f64,
    trouble: &[TroubleCounts],
    ranks: Option<&RanksInterval>,
    size: ScreenSize,
    colour: bool,
) -> Vec<String> {
    let ScreenSize { width, height } = size;
    let paint = |code: &str, text: String| if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text };
    let current = LiveTotals::of(run, elapsed, trouble).with_ranks(ranks);
    let mut lines = vec![progress(run, elapsed, width)];
    let mut totals = format!(
        "{} ops/s   {}/s   mean {}",
        grouped(current.ops_per_s as u64),
        size::format(current.bytes_per_s as u64),
        latency(current.mean_ns.unwrap_or(f64::NAN))
    );
    if current.errors > 0 {
        totals.push_str(&format!("   {}", paint("31", format!("{} errors", grouped(current.errors)))));
    }
    if let Some(flowop) = current.most_starved.filter(|_| current.starved >= 0.001) {
        let text =
            format!("{:.1} % starved, most in {}", current.starved * 100.0, printable::line(&run.flowops[flowop].name));
        totals.push_str(&format!("   {}", paint("33", text)));
    }
    lines.push(totals);
    lines.extend(ranks.map(ranks_text));
    // The flowops of the other ranks are not known yet.
    let title = if ranks.is_some() { "flowop of rank 0" } else { "flowop" };
    let name = |f: &FlowopResult| printable::line(&format!("{}/{}/{}", f.process, f.thread, f.name)).into_owned();
    let names: Vec<String> = run.flowops.iter().map(name).collect();
    let widest = names.iter().map(|n| n.chars().count()).max().unwrap_or(0).max(title.len());
    let name_width = widest.min((width / 3).max(8));
    let spark_width =
        width.saturating_sub(name_width + NUMBERS_WIDTH + 2).min(run.intervals.len().max("over time".len()));
    let max_rows = height.saturating_sub(1 + HEADER_ROWS + usize::from(ranks.is_some()));
    let shown = shown_flowops(run, max_rows);
    let head = format!("{title:name_width$}{:>10}{:>10}{:>10}{:>10}  {}", "ops/s", "MiB/s", "p50", "p99", "over time");
    lines.push(paint("1", fit(&head, width)));
    for &i in &shown {
        lines.push(row(run, i, &names[i], name_width, spark_width));
    }
    if shown.len() < run.flowops.len() {
        let rest = (0..run.flowops.len()).filter(|i| !shown.contains(i));
        let ops: f64 = rest.filter_map(|i| rate(run.intervals.last()?, i)).sum();
        lines.push(format!("… and {} more: {} ops/s", run.flowops.len() - shown.len(), measured(ops)));
    }
    lines.truncate(height.saturating_sub(1).max(1));
    lines.iter().map(|line| fit(line, width)).collect()
}

/// Returns the progress line: `12.0 s of 60.0 s ███░░░ 20 %, 48.0 s left`.
fn progress(run: &Run, elapsed: f64, width: usize) -> String {
    const BAR: usize = 30;
    let Some(total) = run.requested_seconds.filter(|t| *t > 0.0) else {
        return seconds(elapsed);
    };
    let part = (elapsed / total).clamp(0.0, 1.0);
    let long = BAR.min(width / 3);
    format!(
        "{} of {}  {}  {:.0} %, {} left",
        seconds(elapsed),
        seconds(total),
        part_bar(part, long),
        part * 100.0,
        seconds((total - elapsed).max(0.0))
    )
}

/// Returns the indices of the flowops to show in `max_rows` rows, in script order. If not all fit, I/O flowops take
/// precedence, and among them those with the most operations; one row is reserved for the count of the others.
fn shown_flowops(run: &Run, max_rows: usize) -> Vec<usize> {
    let all = 0..run.flowops.len();
    if run.flowops.len() <= max_rows {
        return all.collect();
    }
    let ops = |i: usize| run.intervals.iter().filter_map(|p| p.flowops.get(i)).map(|p| p.ops).sum::<u64>();
    let mut ranked: Vec<(bool, u64, usize)> = all.map(|i| (run.flowops[i].class.is_io(), ops(i), i)).collect();
    ranked.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then(a.2.cmp(&b.2)));
    let mut shown: Vec<usize> = ranked.into_iter().take(max_rows.saturating_sub(1)).map(|(_, _, i)| i).collect();
    shown.sort_unstable();
    shown
}

fn row(run: &Run, i: usize, name: &str, name_width: usize, spark_width: usize) -> String {
    let last = run.intervals.last();
    let interval = last.and_then(|p| p.flowops.get(i));
    let number = |n: Option<u64>| latency(n.map_or(f64::NAN, |ns| ns as f64));
    let mib = last.zip(interval).map_or(0.0, |(p, f)| f.bytes as f64 / size::MIB / p.seconds.max(1e-9));
    let long = name.chars().count();
    // Keep the end of a long name: it has the flowop's name.
    let name = if long > name_width {
        std::iter::once('…').chain(name.chars().skip(long + 1 - name_width)).collect()
    } else {
        name.to_owned()
    };
    let mut line = format!(
        "{name:name_width$}{:>10}{:>10}{:>10}{:>10}  ",
        measured(last.and_then(|p| rate(p, i)).unwrap_or(0.0)),
        if interval.is_some_and(|p| p.bytes > 0) { measured(mib) } else { "-".to_owned() },
        number(interval.and_then(|p| p.p50_ns)),
        number(interval.and_then(|p| p.p99_ns)),
    );
    line.push_str(&sparkline(run, i, spark_width));
    line
}

fn rate(interval: &Interval, flowop: usize) -> Option<f64> {
    interval.flowops.get(flowop).map(|p| p.ops as f64 / interval.seconds.max(1e-9))
}

/// A bar chart of the rates of the last `width` intervals.
fn sparkline(run: &Run, flowop: usize, width: usize) -> String {
    let from = run.intervals.len().saturating_sub(width);
    screen::bars(run.intervals[from..].iter().filter_map(|p| rate(p, flowop)), 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::screen::measure_text_width;
    use crate::result::{FlowopClass, IntervalFlowop};

    /// Returns a run of `flowops` flowops after `intervals` intervals, with values that depend on their indices.
    fn run(flowops: usize, intervals: usize) -> Run {
        let identity = |i: usize| FlowopResult {
            process: ["shadow", "databasewriter"][i % 2].to_owned(),
            thread: "thread".to_owned(),
            name: format!("flowop{}", i + 1),
            class: if i % 3 == 2 { FlowopClass::Sync } else { FlowopClass::Io },
            ..FlowopResult::default()
        };
        let interval = |t: usize| Interval {
            t: t as f64,
            seconds: 1.0,
            flowops: (0..flowops)
                .map(|i| {
                    let ops = (1000 * (i + 1) * (t % 7) / 2) as u64;
                    let some = |ns: u64| (ops > 0).then_some(ns);
                    IntervalFlowop {
                        name: String::new(),
                        ops,
                        bytes: if i % 3 == 2 { 0 } else { ops * 2048 },
                        mean_ns: some(0).map(|_| 3_000.0 + i as f64),
                        p50_ns: some(2_100 + 100 * i as u64),
                        p99_ns: some(1_500_000 * (i as u64 + 1)),
                    }
                })
                .collect(),
        };
        Run {
            requested_seconds: Some(60.0),
            threads: 10,
            flowops: (0..flowops).map(identity).collect(),
            intervals: (1..=intervals).map(interval).collect(),
            ..Run::default()
        }
    }

    fn drawn(flowops: usize, size: (usize, usize), colour: bool) -> Vec<String> {
        drawn_of_ranks(flowops, size, colour, None)
    }

    fn drawn_of_ranks(
        flowops: usize,
        size: (usize, usize),
        colour: bool,
        ranks: Option<&RanksInterval>,
    ) -> Vec<String> {
        let size = ScreenSize { width: size.0, height: size.1 };
        let mut trouble = vec![TroubleCounts::default(); flowops];
        trouble[1] = TroubleCounts { errors: 3, starved_ns: 6_000_000_000 };
        block(&run(flowops, 12), 12.0, &trouble, ranks, size, colour)
    }

    #[test]
    fn block_layouts() {
        for (flowops, size) in [(3, (80, 24)), (40, (80, 24)), (3, (200, 50)), (40, (200, 50))] {
            let name = format!("live_{flowops}_{}x{}", size.0, size.1);
            insta::assert_snapshot!(name, drawn(flowops, size, false).join("\n"));
        }
    }

    /// The interval of four ranks, one of which is silent.
    fn of_ranks() -> RanksInterval {
        let rate = |rank, ops_per_s| Some(RankRate { rank, host: format!("h{rank}\x1b[2J"), ops_per_s });
        RanksInterval {
            ranks: 4,
            reporting: 3,
            ops: 30_000,
            ops_per_s: 30_000.0,
            bytes: 3 << 30,
            bytes_per_s: f64::from(3 << 20),
            mean_ns: Some(5_000.0),
            errors: 7,
            slowest: rate(2, 9_000.4),
            fastest: rate(0, 11_000.0),
        }
    }

    #[test]
    fn ranks_are_shown_as_sums_and_extremes() {
        let line = log_line(&run(3, 12), 12.0, &[TroubleCounts::default(); 3], Some(&of_ranks()));
        let text = "   12.0 s: at 30,000 operations and 3.0 MiB per second, each taking 5.00 µs, 7 errors; 3 of 4 ranks; slowest: rank 2 on h2";
        assert!(line.starts_with(text) && !line.contains('\x1b'), "{line}");
        let lines = drawn_of_ranks(3, (120, 24), false, Some(&of_ranks()));
        assert!(lines[1].starts_with("30,000 ops/s   3.0 MiB/s   mean 5.00 µs   7 errors"), "{lines:#?}");
        assert!(
            lines[2].starts_with("3 of 4 ranks; slowest: rank 2 on h2")
                && lines[2].contains("9,000 operations a second; fastest")
        );
        assert!(lines[3].starts_with("flowop of rank 0"), "{lines:#?}");
        let same = RanksInterval { reporting: 4, slowest: of_ranks().fastest, ..of_ranks() };
        assert_eq!(ranks_text(&same), "4 ranks");
    }

    #[test]
    fn the_block_fits_every_terminal() {
        for width in [1, 8, 20, 79, 80, 81, 200] {
            for height in [1, 2, 3, 5, 24, 50] {
                for flowops in [2, 3, 40] {
                    for colour in [false, true] {
                        for ranks in [None, Some(&of_ranks())] {
                            let lines = drawn_of_ranks(flowops, (width, height), colour, ranks);
                            assert!(lines.len() <= (height - 1).max(1), "{flowops} flowops on {width} × {height}");
                            assert!(lines.iter().all(|l| measure_text_width(l) <= width), "{lines:#?}");
                        }
                    }
                }
            }
        }
    }

    /// Without its escapes, the coloured block equals the plain one.
    #[test]
    fn colour_changes_no_text() {
        let (with, without) = (drawn(3, (80, 24), true), drawn(3, (80, 24), false));
        assert!(without.iter().all(|l| !l.contains('\x1b')));
        assert!(with.iter().any(|l| l.contains('\x1b')));
        let bare: Vec<String> = with.iter().map(|l| crate::cli::screen::strip_ansi_codes(l).into_owned()).collect();
        assert_eq!(bare, without);
    }

    #[test]
    fn log_lines_show_totals_and_errors() {
        let trouble = [
            TroubleCounts::default(),
            TroubleCounts { errors: 3, starved_ns: 6_000_000_000 },
            TroubleCounts::default(),
        ];
        let line = log_line(&run(3, 12), 12.0, &trouble, None);
        assert_eq!(
            line,
            "   12.0 s: at 7,500 operations and 14.6 MiB per second, each taking 3.00 µs, 3 errors, 5.0 % starved"
        );
        let nothing = log_line(&Run::default(), 0.0, &[], None);
        assert_eq!(nothing, "    0.0 s: at 0 operations and 0 B per second, each taking -");
    }
}
