//! The display of an experiment on a terminal: a block that is redrawn in place, with the runs done and left and the
//! figures of each arm so far.
//!
//! It gives no verdict and no interval of a ratio: who watches until a result pleases would see one too often.

use super::screen::{Screen, ScreenSize, bars, fit, measure_text_width, part_bar};
use crate::analysis::SampleSummary;
use crate::comparison::figure;
use crate::experiment::{ArmSoFar, Standing, time_left};
use crate::util::count::{measured, or_dash};
use crate::util::printable;
use std::time::{Duration, Instant};

/// The block of an experiment.
pub(super) struct ExperimentBlock {
    screen: Screen,
    shown: Option<Shown>,
    drawn: Instant,
}

/// What the block shows.
struct Shown {
    name: String,
    run: String,
    /// The share of runs that are done, 0 to 1.
    part: f64,
    remaining: Option<Duration>,
    arms: Vec<ArmSoFar>,
    /// What there is to say about all runs.
    so_far: String,
    since: Instant,
}

impl ExperimentBlock {
    /// The block of an experiment whose notes go to standard error; `None` if that is no terminal.
    pub(super) fn new() -> Option<Self> {
        Some(Self { screen: Screen::of_stderr()?, shown: None, drawn: Instant::now() })
    }

    /// Shows how far an experiment is.
    pub(super) fn show(&mut self, standing: &Standing<'_>) {
        self.shown = Some(Shown::of(standing));
        self.draw();
    }

    /// Draws the time left again, once a second.
    pub(super) fn tick(&mut self) {
        if self.drawn.elapsed() >= Duration::from_secs(1) {
            self.draw();
        }
    }

    /// Draws what is shown.
    pub(super) fn draw(&mut self) {
        self.drawn = Instant::now();
        if let Some(shown) = &self.shown {
            let lines = shown.lines(shown.since.elapsed(), self.screen.size());
            self.screen.draw(&lines);
        }
    }

    /// Erases the block, so that other text can be printed. [`ExperimentBlock::draw`] draws it again.
    pub(super) fn clear(&mut self) {
        self.screen.draw(&[]);
    }
}

impl Drop for ExperimentBlock {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The least width of a column of figures.
const FIGURE: usize = 9;

impl Shown {
    fn of(standing: &Standing<'_>) -> Self {
        let experiment = standing.experiment();
        let (done, disturbed) = (standing.done(), standing.disturbed());
        let mut so_far = Vec::new();
        so_far.extend(standing.ratio().map(|ratio| format!("B/A {ratio:.3} so far")));
        so_far.extend(standing.precision());
        if disturbed > 0 {
            so_far.push(format!("{disturbed} of {done} runs disturbed"));
        }
        Self {
            name: format!("{} {}", experiment.kind().command(), printable::line(&experiment.name)),
            run: standing.run(),
            part: done as f64 / standing.expected().max(1) as f64,
            remaining: standing.remaining(),
            arms: standing.arms(),
            so_far: so_far.join("; "),
            since: Instant::now(),
        }
    }

    /// The lines of the block: fewer than the terminal's rows, each at most as wide as the terminal. `waited` is the time
    /// since the run began.
    fn lines(&self, waited: Duration, size: ScreenSize) -> Vec<String> {
        let left = self.remaining.map(|left| format!("  {}", time_left(left.saturating_sub(waited))));
        let left = left.unwrap_or_default();
        let mut lines =
            vec![format!("{}  {}  {}{left}", self.name, self.run, part_bar(self.part, size.width.min(80) / 4))];
        // The heading, and the row that counts what has no room.
        let room = size.height.saturating_sub(lines.len() + 4).max(1);
        if self.arms.iter().any(|arm| arm.values.len() + arm.failed > 0) {
            let metrics = self.metric();
            let shown = &self.arms[..self.arms.len().min(room)];
            let widest = shown
                .iter()
                .map(|arm| printable::line(&arm.title).chars().count())
                .chain([metrics.chars().count()])
                .max();
            let width = widest.unwrap_or(0).min((size.width / 3).max(8));
            let bars = size.width.saturating_sub(width + 2 * FIGURE + 8 + 2);
            lines.push(format!("{}{:>FIGURE$}{:>FIGURE$}{:>6}", cell(metrics, width), "mean", "spread", "runs"));
            lines.extend(shown.iter().map(|arm| format!("{}{}", cell(&arm.title, width), row(arm, bars))));
            if shown.len() < self.arms.len() {
                lines.push(format!("… and {} more", self.arms.len() - shown.len()));
            }
        }
        if !self.so_far.is_empty() {
            lines.push(self.so_far.clone());
        }
        lines.truncate(size.height.saturating_sub(1).max(1));
        lines.iter().map(|line| fit(line, size.width)).collect()
    }

    /// The metric of all arms; empty if they have several.
    fn metric(&self) -> &str {
        match &self.arms[..] {
            [first, rest @ ..] if rest.iter().all(|arm| arm.metric == first.metric) => &first.metric,
            _ => "",
        }
    }
}

/// A text in a column of this width, without its middle if it is too long.
fn cell(text: &str, width: usize) -> String {
    let text = fit(&printable::within(text, width.max(2)), width);
    format!("{text}{}", " ".repeat(width.saturating_sub(measure_text_width(&text))))
}

/// The mean of an arm's runs, their relative standard deviation, their number, and the last of them as bars.
fn row(arm: &ArmSoFar, width: usize) -> String {
    let n = arm.values.len();
    let sample = SampleSummary::of(&arm.values);
    let mean = sample.map_or(f64::NAN, |sample| sample.mean);
    let spread = sample.filter(|sample| n > 1 && sample.mean > 0.0);
    let spread = or_dash(spread, |of| format!("{} %", measured(100.0 * of.variance.sqrt() / of.mean)));
    let failed = if arm.failed > 0 { format!("  {} failed", arm.failed) } else { String::new() };
    let last = arm.values[n.saturating_sub(width)..].iter().copied();
    // From the least: a bar from 0 shows no difference of a few per cent.
    let low = last.clone().fold(f64::INFINITY, f64::min);
    format!("{:>FIGURE$}{spread:>FIGURE$}{n:>6}  {}{failed}", figure(&arm.metric, mean), bars(last, low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(title: &str, values: &[f64], failed: usize) -> ArmSoFar {
        ArmSoFar { title: title.to_owned(), metric: "ops".to_owned(), values: values.to_vec(), failed }
    }

    fn shown(arms: Vec<ArmSoFar>) -> Shown {
        Shown {
            name: "ab varmail".to_owned(),
            run: "run 8 of 32 (B)".to_owned(),
            part: 7.0 / 32.0,
            remaining: Some(Duration::from_secs(90)),
            arms,
            so_far: "B/A 1.777 so far; 2 of 7 runs disturbed".to_owned(),
            since: Instant::now(),
        }
    }

    fn lines(shown: &Shown, width: usize, height: usize) -> Vec<String> {
        shown.lines(Duration::from_secs(2), ScreenSize { width, height })
    }

    #[test]
    fn two_arms_and_their_ratio() {
        let arms =
            vec![arm("A", &[6_310.0, 6_710.0, 6_500.0, 6_400.0], 0), arm("B", &[11_580.0, 11_020.0, 12_300.0], 1)];
        insta::assert_snapshot!(lines(&shown(arms), 80, 24).join("\n"));
    }

    #[test]
    fn nothing_is_said_of_no_runs() {
        let before =
            Shown { so_far: String::new(), remaining: None, ..shown(vec![arm("A", &[], 0), arm("B", &[], 0)]) };
        assert_eq!(lines(&before, 80, 24), ["ab varmail  run 8 of 32 (B)  ████░░░░░░░░░░░░░░░░"]);
    }

    #[test]
    fn it_fits_every_terminal() {
        let arms =
            |n: usize| (0..n).map(|n| arm(&format!("fs=ext4 \x1b[2J nthreads={n}"), &[1e9; 300], n % 2)).collect();
        for width in [1, 8, 20, 79, 80, 200] {
            for height in [1, 2, 3, 5, 24, 50] {
                for n in [1, 2, 40] {
                    let lines = lines(&shown(arms(n)), width, height);
                    assert!(lines.len() <= (height - 1).max(1), "{n} arms on {width} × {height}: {lines:#?}");
                    assert!(lines.iter().all(|line| measure_text_width(line) <= width && !line.contains('\x1b')));
                }
            }
        }
        assert!(lines(&shown(arms(40)), 80, 24).contains(&"… and 21 more".to_owned()));
    }
}
