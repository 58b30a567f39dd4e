//! The terminal: its size, and a block of lines on it that is redrawn in place.

use super::stdout::to_stderr;
use crate::report::histogram::{self, EIGHTHS};
use crate::report::screen::ReportSize;
use crate::util::ascii;
use std::fmt::Write as _;
use terminal::{Term, truncate_str};

pub(super) use terminal::measure_text_width;
#[cfg(test)]
pub(super) use terminal::strip_ansi_codes;

/// Returns the width of the terminal to which standard output goes, in columns; `None` if it does not go to one.
pub(super) fn stdout_width() -> Option<usize> {
    width(&Term::stdout())
}

/// Returns the width of the terminal to which standard error goes, in columns; `None` if it does not go to one.
pub(super) fn stderr_width() -> Option<usize> {
    width(&Term::stderr())
}

fn width(term: &Term) -> Option<usize> {
    term.is_term().then(|| usize::from(term.size().1))
}

/// The size of the screen to which standard output goes.
pub(super) fn report_size() -> ReportSize {
    size_of(&Term::stdout())
}

/// The size of the screen to which standard error goes.
pub(super) fn error_size() -> ReportSize {
    size_of(&Term::stderr())
}

fn size_of(term: &Term) -> ReportSize {
    if !term.is_term() {
        return ReportSize::PIPE;
    }
    let (height, width) = term.size();
    ReportSize { width: width.into(), height: Some(height.into()) }
}

/// The size that is assumed if that of the terminal is unknown.
const DEFAULT_SIZE: ScreenSize = ScreenSize { width: 80, height: 24 };

/// The size of a terminal, in columns and rows.
#[derive(Clone, Copy)]
pub(super) struct ScreenSize {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// A block of lines above the cursor of a terminal.
pub(super) struct Screen {
    term: Term,
    drawn: usize,
}

impl Screen {
    /// The terminal to which standard error goes; `None` if it is none that can move its cursor.
    pub(super) fn of_stderr() -> Option<Self> {
        let term = Term::stderr();
        let able = term.is_term() && std::env::var_os("TERM").is_some_and(|t| t != "dumb");
        able.then_some(Self { term, drawn: 0 })
    }

    /// Returns the size of the terminal.
    pub(super) fn size(&self) -> ScreenSize {
        let size = |(rows, columns): (u16, u16)| ScreenSize { width: usize::from(columns), height: usize::from(rows) };
        self.term.size_checked().map_or(DEFAULT_SIZE, size)
    }

    /// Replaces the previous block by `lines`, in one write to avoid flicker.
    pub(super) fn draw(&mut self, lines: &[String]) {
        if lines.is_empty() && self.drawn == 0 {
            return;
        }
        // ASCII may be wider.
        let width = self.size().width;
        let ascii: Option<Vec<String>> =
            ascii::is_wanted().then(|| lines.iter().map(|line| fit(&ascii::of(line), width)).collect());
        to_stderr(&redraw(self.drawn, ascii.as_deref().unwrap_or(lines)));
        self.drawn = lines.len();
    }
}

/// Returns the text that replaces the last `drawn` lines by `lines` and leaves the cursor after them. It erases line by
/// line: some terminals move a block that is erased as a whole into their scrollback.
fn redraw(drawn: usize, lines: &[String]) -> String {
    let mut text = String::from("\r");
    if drawn > 0 {
        let _ = write!(text, "\x1b[{drawn}A");
    }
    for line in lines {
        text.push_str(line);
        text.push_str("\x1b[K\n");
    }
    let rest = drawn.saturating_sub(lines.len());
    text.push_str(&"\x1b[K\n".repeat(rest));
    text.push_str("\x1b[K");
    if rest > 0 {
        let _ = write!(text, "\x1b[{rest}A");
    }
    text
}

/// Truncates a line to `width` columns and keeps its colour escapes complete.
pub(super) fn fit(line: &str, width: usize) -> String {
    if measure_text_width(line) <= width { line.to_owned() } else { truncate_str(line, width, "…").into_owned() }
}

/// A bar for each value in one line, from `low` to the highest of them.
pub(super) fn bars(values: impl Iterator<Item = f64> + Clone, low: f64) -> String {
    let most = values.clone().fold(0.0, f64::max);
    let height = |value: f64| match value {
        value if value <= 0.0 => 0,
        value => (((value - low) / (most - low) * EIGHTHS as f64).ceil() as usize).clamp(1, EIGHTHS),
    };
    histogram::bars(&values.map(height).collect::<Vec<_>>(), 1).concat()
}

/// `done` of `all` as a bar of `columns` columns.
pub(super) fn part_bar(part: f64, columns: usize) -> String {
    let done = (part.clamp(0.0, 1.0) * columns as f64).round() as usize;
    "█".repeat(done) + &"░".repeat(columns - done)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cursor is left where the next text begins.
    #[test]
    fn redraw_erases_the_previous_block() {
        let line = |text: &str| text.to_owned();
        assert_eq!(redraw(0, &[line("a"), line("b")]), "\ra\x1b[K\nb\x1b[K\n\x1b[K");
        assert_eq!(redraw(2, &[line("c")]), "\r\x1b[2Ac\x1b[K\n\x1b[K\n\x1b[K\x1b[1A");
        assert_eq!(redraw(1, &[]), "\r\x1b[1A\x1b[K\n\x1b[K\x1b[1A");
    }
}
