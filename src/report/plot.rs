//! A run as charts for a terminal: the rate over time, and the latency histograms of its flowops.
//!
//! The shell's `plot` shows them. The figures are in the report.

use super::histogram::{Axis, EIGHTHS, bars};
use super::screen::{ReportSize, longest};
use super::text::FlowopLabels;
use crate::result::hdr;
use crate::result::snapshot::Dist;
use crate::result::{FlowopResult, Run};
use crate::util::count::measured;
use crate::util::duration::seconds;

/// The widest chart.
const MAX_WIDTH: usize = 160;
/// The narrowest one; a narrower screen breaks its lines.
const MIN_WIDTH: usize = 60;
/// The width of what stands to the left of a chart, with the blank behind it.
const LABEL: usize = 12;
/// The most columns for an interval.
const MAX_INTERVAL_WIDTH: usize = 8;
/// The height of the charts in lines.
const LINES: usize = 6;
/// The lines of a screen that are no histogram, if the rate is there: the command, the next prompt, headings, axes.
const OTHER_LINES: usize = LINES + 8;
/// The histograms that the lowest of screens has.
const MIN_HISTOGRAMS: usize = 3;

/// Draws the rate of all I/O over time, and a histogram for each flowop with as many as the screen holds: of others those
/// that took the least time are counted. `None` if the run has neither intervals nor operations.
pub fn all(run: &Run, size: ReportSize) -> Option<String> {
    let width = size.width.clamp(MIN_WIDTH, MAX_WIDTH);
    let is_io = |index: usize| run.flowops.get(index).is_some_and(|flowop| flowop.class.is_io());
    let rate = over_time(run, "all I/O", width, &is_io);
    let most = size.height.map_or(usize::MAX, |height| height.saturating_sub(OTHER_LINES).max(MIN_HISTOGRAMS));
    joined(rate, histograms(run, width, most))
}

/// Draws the rate of a flowop over time, and its histogram.
pub fn flowop(run: &Run, index: usize, size: ReportSize) -> Option<String> {
    let width = size.width.clamp(MIN_WIDTH, MAX_WIDTH);
    let flowop = run.flowops.get(index)?;
    let label = FlowopLabels::of(run).short(flowop);
    let rate = over_time(run, &label, width, &|other| other == index);
    let histogram = dist(flowop).and_then(|dist| {
        let axis = Axis::of([&dist], width - LABEL)?;
        let lines = axis.chart(&dist, LINES).into_iter().chain([axis.labels(width - LABEL)]);
        let heading = format!("{label}: latency (both scales logarithmic)\n");
        Some(lines.fold(heading, |text, line| text + &format!("{:LABEL$}{line}\n", "")))
    });
    joined(rate, histogram)
}

fn joined(rate: Option<String>, histograms: Option<String>) -> Option<String> {
    let all: Vec<String> = rate.into_iter().chain(histograms).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

/// The operations per second of these flowops over time. `None` if there are fewer than two intervals, or no operation.
fn over_time(run: &Run, what: &str, width: usize, is_shown: &dyn Fn(usize) -> bool) -> Option<String> {
    let ops = |flowops: &[crate::result::IntervalFlowop]| -> u64 {
        flowops.iter().enumerate().filter(|(index, _)| is_shown(*index)).map(|(_, flowop)| flowop.ops).sum()
    };
    let all: Vec<(f64, u64)> = run.intervals.iter().map(|i| (i.seconds, ops(&i.flowops))).collect();
    let space = width - LABEL;
    // A column has several intervals, or an interval several columns.
    let together = all.len().div_ceil(space).max(1);
    let wide = (space / all.len().max(1)).clamp(1, MAX_INTERVAL_WIDTH);
    let rate = |part: &[(f64, u64)]| {
        let (time, ops) = part.iter().fold((0.0, 0), |(time, ops), (s, n)| (time + s, ops + n));
        ops as f64 / time.max(1e-9)
    };
    let rates: Vec<f64> = all.chunks(together).flat_map(|part| vec![rate(part); wide]).collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    if all.len() < 2 || most <= 0.0 {
        return None;
    }
    let heights: Vec<usize> =
        rates.iter().map(|rate| (rate / most * (LINES * EIGHTHS) as f64).ceil() as usize).collect();
    let mut text = format!("{what}: operations per second\n");
    for (n, line) in bars(&heights, LINES).iter().enumerate() {
        let label = match n {
            0 => measured(most),
            n if n + 1 == LINES => "0".to_owned(),
            _ => String::new(),
        };
        let line = format!("{label:>label_width$} {line}", label_width = LABEL - 1);
        text += &(line.trim_end().to_owned() + "\n");
    }
    let end = seconds(all.iter().map(|(time, _)| time).sum());
    let space = rates.len().saturating_sub("0 s".len());
    text += &format!("{:LABEL$}0 s{:>space$}\n", "", format!(" {end}"));
    Some(text)
}

/// A histogram in a line for each of at most `most` flowops, on a common axis.
fn histograms(run: &Run, width: usize, most: usize) -> Option<String> {
    let names = FlowopLabels::of(run);
    let has_operations = run.flowops.iter().filter(|flowop| dist(flowop).is_some()).count();
    let (shown, ..) = longest(run, most);
    let drawn: Vec<(String, Dist)> = shown.into_iter().filter_map(|f| Some((names.short(f), dist(f)?))).collect();
    let wide = drawn.iter().map(|(name, _)| name.chars().count()).max()?;
    let space = width.saturating_sub(wide + 2);
    let axis = Axis::of(drawn.iter().map(|(_, dist)| dist), space)?;
    let mut text = "latency (both scales logarithmic)\n".to_owned();
    for (name, dist) in &drawn {
        text += &format!("{name:<wide$}  {}\n", axis.draw(dist));
    }
    text += &format!("{:wide$}  {}\n", "", axis.labels(space));
    if let Some(others) = has_operations.checked_sub(drawn.len()).filter(|others| *others > 0) {
        text += &format!("… {others} more (`plot NAME`)\n");
    }
    Some(text)
}

/// The latencies of a flowop, if it has operations.
fn dist(flowop: &FlowopResult) -> Option<Dist> {
    hdr::decode(&flowop.histogram).ok().filter(|dist| dist.count > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{all, flowop};
    use crate::report::screen::ReportSize;
    use crate::result::fixture::fixture;
    use crate::result::{Interval, IntervalFlowop, Run};

    /// A run of many intervals and flowops; the rate grows.
    fn run(intervals: u64, flowops: usize, least: u64) -> Run {
        let mut run = fixture().runs.remove(0);
        let like = run.flowops[0].clone();
        let name = |n: usize| format!("deliver-new-mail-to-a-box-{n}");
        run.flowops = (0..flowops).map(|n| crate::result::FlowopResult { name: name(n), ..like.clone() }).collect();
        let of = |ops: u64| IntervalFlowop { ops, ..IntervalFlowop::default() };
        run.intervals = (1..=intervals)
            .map(|n| Interval {
                t: n as f64,
                seconds: 1.0,
                flowops: (0..flowops).map(|_| of(least + 10 * n)).collect(),
            })
            .collect();
        run
    }

    #[test]
    fn charts_fit_their_screen() {
        for (width, height) in [(60, 24), (80, 24), (100, 30), (200, 50)] {
            for (intervals, flowops) in [(2, 1), (8, 16), (1000, 3)] {
                let (run, size) = (run(intervals, flowops, 3_000_000), ReportSize { width, height: Some(height) });
                for text in [all(&run, size).unwrap(), flowop(&run, 0, size).unwrap()] {
                    assert!(text.lines().count() + 2 <= height, "{width}x{height}:\n{text}");
                    assert!(text.lines().all(|line| line.chars().count() <= width), "{width}x{height}:\n{text}");
                    assert!(text.contains('█') && text.contains("operations per second"), "{text}");
                }
            }
        }
    }

    #[test]
    fn the_charts_of_a_run() {
        insta::assert_snapshot!(all(&run(8, 2, 0), ReportSize::PIPE).unwrap());
    }

    #[test]
    fn flowops_without_room_are_counted() {
        let text = all(&run(4, 16, 0), ReportSize { width: 80, height: Some(24) }).unwrap();
        let shown = text.lines().filter(|line| line.starts_with("deliver")).count();
        assert!(text.contains(&format!("… {} more", 16 - shown)), "{text}");
    }

    /// The rate needs two intervals, a histogram an operation.
    #[test]
    fn what_a_run_lacks_is_not_drawn() {
        let mut run = run(1, 2, 0);
        let text = all(&run, ReportSize::PIPE).unwrap();
        assert!(text.starts_with("latency") && !text.contains("per second"), "{text}");
        run.flowops.iter_mut().for_each(|flowop| flowop.histogram.clear());
        assert_eq!((all(&run, ReportSize::PIPE), flowop(&run, 0, ReportSize::PIPE)), (None, None));
    }
}
