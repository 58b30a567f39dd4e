//! Progress of preparation: a progress bar on a terminal, else a line for each file set and one every two seconds.

use super::console::{Verbosity, notice};
use crate::disk::prepare::{Phase, Progress};
use crate::util::{ascii, count, printable, size};
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Draws the progress of population on standard error.
pub(super) struct Bars {
    verbosity: Verbosity,
    terminal: bool,
    state: Mutex<Bar>,
    /// The phases of this preparation that have had a line.
    announced: Mutex<HashSet<String>>,
}

#[derive(Default)]
struct Bar {
    drawn: Option<ProgressBar>,
    what: String,
    files: u64,
    bytes: u64,
    since: Option<Instant>,
    last: Option<Instant>,
}

/// Time between two progress lines if standard error is not a terminal.
const EVERY: Duration = Duration::from_secs(2);

impl Bars {
    /// Creates progress output on standard error. Draws nothing if quiet; if verbose, prints a line for each phase.
    pub(super) fn new(verbosity: Verbosity) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { verbosity, terminal, state: Mutex::default(), announced: Mutex::default() }
    }

    /// Ends the output about a preparation.
    pub(super) fn finish(&self) {
        self.announced.lock().clear();
        self.clear();
    }

    /// Removes the bar from the terminal.
    fn clear(&self) {
        if let Some(bar) = self.state.lock().drawn.take() {
            bar.finish_and_clear();
        }
    }
}

fn files_of(n: u64) -> String {
    if n == 1 { "1 file".to_owned() } else { format!("{} files", count::grouped(n)) }
}

/// Returns the style of a bar: `known` if the total is known (`bounded`), else `open`. If the library rejects the
/// template, returns the library's default style.
fn style(known: &str, open: &str, bounded: bool) -> ProgressStyle {
    let style = ProgressStyle::with_template(if bounded { known } else { open });
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    if ascii::is_wanted() { style.progress_chars("##.").tick_chars("|/-\\ ") } else { style }
}

impl Progress for Bars {
    fn started(&self, set: &str, phase: Phase, files: u64, bytes: u64) {
        if self.verbosity == Verbosity::Quiet {
            return;
        }
        self.clear();
        let set = &*printable::line(set);
        let mut state = self.state.lock();
        let what = phase.doing(set);
        let amount =
            if phase.is_long() { format!(": {}, {}", files_of(files), size::format(bytes)) } else { String::new() };
        // Each process instance may have sets of the same names.
        let is_first = self.announced.lock().insert(what.clone());
        *state = Bar { what, files, bytes, since: Some(Instant::now()), ..Bar::default() };
        if self.verbosity == Verbosity::Verbose || (phase.is_long() && !self.terminal && is_first) {
            notice(&format!("{}{amount}", state.what));
        }
        if self.terminal {
            let bar = ProgressBar::new(if bytes > 0 { bytes } else { files });
            bar.set_style(style("{bar:20} {eta:>3} left, {wide_msg}", "{spinner} {wide_msg}", files > 0 || bytes > 0));
            bar.set_message(format!("{}{amount}", state.what));
            state.drawn = Some(bar);
        } else if phase.is_long() {
            state.last = Some(Instant::now());
        }
    }

    fn advanced(&self, files: u64, bytes: u64) {
        let mut state = self.state.lock();
        let Some(since) = state.since.filter(|_| self.verbosity != Verbosity::Quiet) else { return };
        let seconds = since.elapsed().as_secs_f64().max(1e-9);
        let rate = if state.bytes > 0 {
            format!("{} a second", size::format((bytes as f64 / seconds) as u64))
        } else {
            format!("{} files a second", count::grouped((files as f64 / seconds) as u64))
        };
        if let Some(bar) = &state.drawn {
            bar.set_position(if state.bytes > 0 { bytes } else { files });
            bar.set_message(format!("{}: {} of {}, {rate}", state.what, count::grouped(files), files_of(state.files)));
        } else if !self.terminal && state.last.is_some_and(|t| t.elapsed() >= EVERY) {
            state.last = Some(Instant::now());
            let part = if state.bytes > 0 {
                bytes as f64 / state.bytes as f64
            } else {
                files as f64 / state.files.max(1) as f64
            };
            let left = (part > 0.0).then(|| format!(", {:.0} s left", seconds * (1.0 - part) / part));
            notice(&format!("{}: {:.0} %, {rate}{}", state.what, part * 100.0, left.unwrap_or_default()));
        }
    }
}
