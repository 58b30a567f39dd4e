//! The front end that writes to the terminal: reports to standard output, everything else to standard error.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the place that prints")]

use crate::diag::{self, Diagnostic};
use crate::fileset::prepare::{Phase, Progress};
use crate::report::Report;
use crate::runtime::Tick;
use crate::session::Front;
use crate::source::SourceMap;
use crate::stats::result::{Document, Run};
use crate::util::{count, size};
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Prints an error, and what to do about it.
pub(super) fn error(text: &str, help: Option<&str>) {
    coded_error(None, text, help);
}

fn coded_error(code: Option<&str>, text: &str, help: Option<&str>) {
    let code = code.map_or(String::new(), |c| format!("[{c}]"));
    eprintln!("error{code}: {text}");
    if let Some(help) = help.filter(|h| !h.is_empty()) {
        eprintln!("  = help: {help}");
    }
}

/// A text of nothing but errors is not drawn to its end.
const MOST: usize = 100;

/// Prints diagnostics as pictures of the source.
pub(super) fn diagnostics(map: &SourceMap, found: &[Diagnostic]) {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let style = if colour { diag::Style::Colour } else { diag::Style::Plain };
    eprint!("{}", diag::render(map, &found[..found.len().min(MOST)], style));
    if found.len() > MOST {
        eprintln!("… and {} more", found.len() - MOST);
    }
}

/// A line on standard output; a reader that has gone is no error.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// The front end of scripts and of the shell.
pub(super) struct Console {
    report: &'static dyn Report,
    quiet: bool,
    progress: Bars,
}

impl Console {
    pub(super) fn new(report: &'static dyn Report, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { report, quiet, progress: Bars { quiet, terminal, state: Mutex::default() } }
    }

    pub(super) fn begin(&self, document: &Document) {
        let _ = self.report.begin(document, &mut std::io::stdout());
    }

    pub(super) fn end(&self, document: &Document) {
        let _ = self.report.end(document, &mut std::io::stdout());
        let _ = std::io::stdout().flush();
    }
}

impl Front for Console {
    fn line(&mut self, text: &str) {
        say(text);
    }

    fn note(&mut self, text: &str) {
        if !self.quiet {
            eprintln!("note: {text}");
        }
    }

    fn diagnostics(&mut self, map: &SourceMap, found: &[Diagnostic]) {
        diagnostics(map, found);
    }

    fn error(&mut self, code: Option<&str>, text: &str, help: Option<&str>) {
        self.progress.finish();
        coded_error(code, text, help);
    }

    fn run_started(&mut self, document: &Document, run: &Run, seconds: Option<f64>) {
        self.progress.finish();
        if self.quiet {
            return;
        }
        let memory = document.environment.memory.total;
        let bytes: u64 = run.filesets.iter().map(|f| f.bytes).sum();
        let place = document.environment.mounts.first().map_or("no file system".to_owned(), |m| {
            let memory = if m.in_memory() { ", so that memory is measured" } else { "" };
            format!("{} ({}{memory})", m.kind, m.source)
        });
        let multiple = if memory > 0 { bytes as f64 / memory as f64 } else { 0.0 };
        let time = seconds.map_or("until it is done".to_owned(), |s| format!("for {s} s"));
        eprintln!(
            "running {time}: {}, {} on {place}, {} = {multiple:.2} × memory",
            count::count(run.processes, "process"),
            count::count(run.threads, "thread"),
            size::format(bytes),
        );
        self.progress.run(seconds);
    }

    fn run_ticks(&mut self, run: &Run, tick: &Tick<'_>) {
        if self.quiet {
            return;
        }
        let Some(piece) = run.intervals.last() else { return };
        let io = run.flowops.iter().zip(&piece.flowops).filter(|(f, _)| f.class.is_io());
        let (ops, bytes) = io.fold((0, 0), |(o, b), (_, p)| (o + p.ops, b + p.bytes));
        let rate = |n: u64| n as f64 / piece.seconds.max(1e-9);
        let text = format!("{} ops/s, {}/s", count::grouped(rate(ops) as u64), size::format(rate(bytes) as u64));
        self.progress.tick(tick.elapsed_ns, run.requested_seconds, &text);
    }

    fn run_ended(&mut self, document: &Document) {
        self.progress.finish();
        let index = document.runs.len().saturating_sub(1);
        let _ = self.report.run(document, index, &mut std::io::stdout());
        let _ = std::io::stdout().flush();
        let Some(run) = document.runs.last() else { return };
        if let Some(failure) = &run.failure {
            let place = failure.flowop.as_ref().map_or(String::new(), |f| {
                let line = failure.line.map_or(String::new(), |l| format!(" (line {l})"));
                format!("flowop {f}{line}: ")
            });
            let path = failure.path.as_ref().map_or(String::new(), |p| format!(": {p}"));
            let errno = failure.errno.as_ref().map_or(String::new(), |e| format!(" ({e})"));
            error(&format!("{place}{}{errno}{path}", failure.what), Some(&failure.help));
        } else if run.state != crate::stats::result::State::Complete {
            error(&format!("the run did not end as it should: {}", run.ended_by), None);
        }
        for s in &run.stragglers {
            let place = s.wait_channel.as_ref().map_or(String::new(), |w| format!(", in the kernel at {w}"));
            eprintln!(
                "note: {} (process {}, thread {}) has not come back from its call{place}",
                s.flowop,
                s.instance + 1,
                s.thread + 1
            );
        }
    }

    fn interim(&mut self, document: &Document, run: &Run) {
        self.progress.finish();
        let document = Document { runs: vec![run.clone()], ..document.clone() };
        let _ = self.report.interim(&document, &mut std::io::stdout());
    }

    fn progress(&self) -> &dyn Progress {
        &self.progress
    }
}

/// Progress of population and of runs: a bar on a terminal, a line every few seconds elsewhere.
struct Bars {
    quiet: bool,
    terminal: bool,
    state: Mutex<Bar>,
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

/// Elsewhere than on a terminal, a line is printed so often.
const EVERY: Duration = Duration::from_secs(2);

impl Bars {
    fn finish(&self) {
        if let Some(bar) = self.state.lock().drawn.take() {
            bar.finish_and_clear();
        }
    }

    fn run(&self, seconds: Option<f64>) {
        if self.quiet || !self.terminal {
            return;
        }
        let mut state = self.state.lock();
        let bar = ProgressBar::new(seconds.map_or(0, |s| (s * 1000.0) as u64));
        bar.set_style(style("{bar:30} {elapsed} of {msg}", "{elapsed} {msg}", seconds.is_some()));
        state.drawn = Some(bar);
    }

    fn tick(&self, elapsed_ns: u64, seconds: Option<f64>, text: &str) {
        let mut state = self.state.lock();
        if let Some(bar) = &state.drawn {
            bar.set_position(elapsed_ns / 1_000_000);
            let of = seconds.map_or(String::new(), |s| format!("{s} s: "));
            bar.set_message(format!("{of}{text}"));
        } else if !self.terminal && state.last.is_none_or(|t| t.elapsed() >= EVERY) {
            state.last = Some(Instant::now());
            eprintln!("{:7.1} s: {text}", elapsed_ns as f64 / 1e9);
        }
    }
}

/// A style whose text is known to be right; should it not be, the library's own.
fn style(known: &str, open: &str, bounded: bool) -> ProgressStyle {
    ProgressStyle::with_template(if bounded { known } else { open }).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Progress for Bars {
    fn started(&self, set: &str, phase: Phase, files: u64, bytes: u64) {
        if self.quiet {
            return;
        }
        self.finish();
        let mut state = self.state.lock();
        let what = match phase {
            Phase::Scan => format!("looking through {set}"),
            Phase::Remove => format!("removing the old {set}"),
            Phase::Compare => format!("comparing {set}"),
            Phase::Populate => format!("making {set}"),
            Phase::Warm => format!("reading {set} into memory"),
            Phase::Evict => format!("evicting {set} from memory"),
            Phase::Settle => "letting the disks come to rest".to_owned(),
        };
        let amount = if phase == Phase::Populate {
            format!(": {}, {}", count::count(files, "file"), size::format(bytes))
        } else {
            String::new()
        };
        *state = Bar { what, files, bytes, since: Some(Instant::now()), ..Bar::default() };
        if self.terminal {
            let bar = ProgressBar::new(if bytes > 0 { bytes } else { files });
            bar.set_style(style("{bar:30} {msg} {eta} left", "{spinner} {msg}", files > 0 || bytes > 0));
            bar.set_message(format!("{}{amount}", state.what));
            state.drawn = Some(bar);
        } else if phase == Phase::Populate {
            state.last = Some(Instant::now());
            eprintln!("{}{amount}", state.what);
        }
    }

    fn advanced(&self, files: u64, bytes: u64) {
        let mut state = self.state.lock();
        let Some(since) = state.since.filter(|_| !self.quiet) else { return };
        let seconds = since.elapsed().as_secs_f64().max(1e-9);
        let rate = if state.bytes > 0 {
            format!("{}/s", size::format((bytes as f64 / seconds) as u64))
        } else {
            format!("{} files/s", count::grouped((files as f64 / seconds) as u64))
        };
        if let Some(bar) = &state.drawn {
            bar.set_position(if state.bytes > 0 { bytes } else { files });
            bar.set_message(format!(
                "{}: {} of {} files, {rate}",
                state.what,
                count::grouped(files),
                count::grouped(state.files)
            ));
        } else if !self.terminal && state.last.is_some_and(|t| t.elapsed() >= EVERY) {
            state.last = Some(Instant::now());
            let part = if state.bytes > 0 {
                bytes as f64 / state.bytes as f64
            } else {
                files as f64 / state.files.max(1) as f64
            };
            let left = if part > 0.0 { seconds * (1.0 - part) / part } else { 0.0 };
            eprintln!("{}: {:.0} %, {rate}, {left:.0} s left", state.what, part * 100.0);
        }
    }
}
