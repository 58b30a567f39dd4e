//! The front end that writes to the terminal: reports to standard output, everything else to standard error.

use super::bars::Bars;
use super::live::LiveScreen;
use super::stdout::Stdout;
use crate::diag::{self, Diagnostic};
use crate::disk::prepare::Progress;
use crate::report::{Report, json};
use crate::result::environment::MountInfo;
use crate::result::warnings;
use crate::result::{Document, Run};
use crate::runtime::Tick;
use crate::session::Front;
use crate::source::SourceMap;
use crate::util::{count, printable, size};
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Prints an error, and what to do about it.
pub(super) fn error(text: &str, help: Option<&str>) {
    coded_error(None, text, help);
}

fn coded_error(code: Option<&str>, text: &str, help: Option<&str>) {
    let code = code.map_or(String::new(), |c| format!("[{c}]"));
    notice(&format!("error{code}: {}", printable::short(text, MESSAGE)));
    if let Some(help) = help.filter(|h| !h.is_empty()) {
        notice(&format!("  = help: {}", printable::short(help, MESSAGE)));
    }
}

/// A text of nothing but errors is not drawn to its end.
const MOST: usize = 50;

/// Characters of a message that are shown: more than a path has.
const MESSAGE: usize = 6000;

/// Threads that have not come back are told one by one up to here.
const STRAGGLERS: usize = 5;

/// Prints diagnostics as pictures of the source.
pub(super) fn diagnostics(map: &SourceMap, found: &[Diagnostic]) {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let style = if colour { diag::Style::Colour } else { diag::Style::Plain };
    let _ = std::io::stderr().write_all(diag::render(map, &found[..found.len().min(MOST)], style).as_bytes());
    if found.len() > MOST {
        notice(&format!("… and {} more", count::grouped((found.len() - MOST) as u64)));
    }
}

/// Lines on standard output, without control characters. Whether they could be written is asked at the end.
pub(super) fn say(text: &str) {
    let _ = Stdout.write_all(format!("{}\n", printable::lines(text)).as_bytes());
}

/// Lines on standard error, without control characters, in one write, so that a run is disturbed as little as can be; a reader
/// that has gone is no error.
pub(super) fn notice(text: &str) {
    let _ = std::io::stderr().write_all(format!("{}\n", printable::lines(text)).as_bytes());
}

/// File systems in words, the first few of them.
fn places(mounts: &[MountInfo]) -> String {
    const NAMED: usize = 3;
    let name = |m: &MountInfo| {
        let memory = if m.in_memory() { ", so that memory is measured" } else { "" };
        format!("{} ({}{memory})", m.kind, printable::line(&m.source))
    };
    match mounts {
        [] => "no file system".to_owned(),
        [first @ .., last] if (1..NAMED).contains(&first.len()) => {
            format!("{} and {}", first.iter().map(name).collect::<Vec<_>>().join(", "), name(last))
        }
        _ => {
            let named: Vec<String> = mounts.iter().take(NAMED).map(name).collect();
            let more = mounts.len().saturating_sub(NAMED);
            named.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
        }
    }
}

/// The front end of scripts and of the shell.
pub(super) struct Console {
    report: &'static dyn Report,
    quiet: bool,
    /// Standard output belongs to `--json -` or `--trace -`: the report goes to standard error.
    taken: bool,
    progress: Bars,
    live: LiveScreen,
}

impl Console {
    pub(super) fn new(report: &'static dyn Report, quiet: bool) -> Self {
        Self { report, quiet, taken: false, progress: Bars::new(quiet), live: LiveScreen::new(quiet) }
    }

    /// Leaves standard output to another, if `taken`.
    pub(super) fn without_stdout(self, taken: bool) -> Self {
        Self { taken, ..self }
    }

    /// A part of the report, in one go.
    fn report(&self, write: &mut dyn FnMut(&dyn Report, &mut dyn Write) -> std::io::Result<()>) {
        let out: &mut dyn Write = if self.taken { &mut std::io::stderr() } else { &mut Stdout };
        let mut out = std::io::BufWriter::with_capacity(1 << 16, out);
        // Standard output remembers its errors; those of standard error change nothing.
        let _ = write(self.report, &mut out).and_then(|()| out.flush());
        let _ = out.into_parts();
    }
}

impl Front for Console {
    fn line(&mut self, text: &str) {
        self.live.clear();
        if self.report.for_programs() || self.taken { notice(text) } else { say(text) }
    }

    fn script_line(&mut self, text: &str) {
        self.live.clear();
        if self.report.for_programs() || self.taken {
            // Beside the program's own messages a script's words are told apart from them.
            for line in text.split('\n') {
                notice(&format!("script: {line}"));
            }
        } else {
            say(text);
        }
    }

    fn note(&mut self, text: &str) {
        self.live.clear();
        if !self.quiet {
            notice(&format!("note: {}", printable::short(text, MESSAGE)));
        }
    }

    fn diagnostics(&mut self, map: &SourceMap, found: &[Diagnostic]) {
        diagnostics(map, found);
    }

    fn error(&mut self, code: Option<&str>, text: &str, help: Option<&str>) {
        self.progress.finish();
        self.live.clear();
        coded_error(code, text, help);
    }

    fn warning(&mut self, text: &str, help: &str) {
        notice(&format!("warning: {text}\n  = help: {help}"));
    }

    fn begin(&mut self, document: &Document) {
        self.report(&mut |report, out| report.begin(document, out));
    }

    fn end(&mut self, document: &Document) {
        self.report(&mut |report, out| report.end(document, out));
    }

    fn run_started(&mut self, document: &Document, run: &Run, length: Option<Duration>) {
        self.progress.finish();
        if self.quiet {
            return;
        }
        let memory = document.environment.memory.total;
        let bytes: u64 = run.filesets.iter().map(|f| f.bytes).sum();
        let place = places(&run.environment.mounts);
        let multiple = if memory > 0 { bytes as f64 / memory as f64 } else { 0.0 };
        let time = length.map_or("until it is done".to_owned(), |length| format!("for {} s", length.as_secs_f64()));
        notice(&format!(
            "running {time}: {}, {} on {place}, {} = {multiple:.2} × memory",
            count::count(run.processes, "process"),
            count::count(run.threads, "thread"),
            size::format(bytes),
        ));
    }

    fn run_ticks(&mut self, run: &Run, tick: &Tick<'_>) {
        self.live.tick(run, tick);
    }

    fn run_ended(&mut self, document: &Document) {
        self.live.clear();
        let index = document.runs.len().saturating_sub(1);
        self.report(&mut |report, out| report.run(document, index, out));
        let Some(run) = document.runs.last() else { return };
        // A run of nothing looks like any other to who only reads figures, or an exit status.
        if !self.report.warns()
            && let Some(nothing) = warnings::nothing_done(document, run)
        {
            let (message, advice) = (nothing.message(), nothing.advice());
            notice(&format!("warning: {}", printable::short(&message, MESSAGE)));
            notice(&format!("  = help: {}", printable::short(advice, MESSAGE)));
        }
        if let Some(failure) = &run.failure {
            let place = failure.flowop.as_ref().map_or(String::new(), |f| {
                let line = failure.line.map_or(String::new(), |l| format!(" (line {l})"));
                format!("flowop {f}{line}: ")
            });
            let path = failure.path.as_ref().map_or(String::new(), |p| format!(": {p}"));
            let errno = failure.errno.as_ref().map_or(String::new(), |e| format!(" ({e})"));
            error(&format!("{place}{}{errno}{path}", failure.what), Some(&failure.help));
        } else if run.state == crate::result::RunState::NothingDone {
            error("nothing was done", Some("the report's warnings say why; a script may ask for nothing by `iters=0`"));
        } else if run.state != crate::result::RunState::Complete {
            error(&format!("the run did not end as it should: {}", run.ended_by), None);
        }
        for s in run.stragglers.iter().take(STRAGGLERS) {
            let path = s.path.as_ref().map_or(String::new(), |path| format!(" on {}", printable::line(path)));
            let place = s.wait_channel.as_ref().map_or(String::new(), |w| format!(", in the kernel at {w}"));
            notice(&format!(
                "note: {} (process {}, thread {}) is still in a call{path}{place}",
                printable::line(&s.flowop),
                s.instance + 1,
                s.thread + 1
            ));
        }
        if let Some(more @ 1..) = run.stragglers.len().checked_sub(STRAGGLERS) {
            notice(&format!("note: so are {}", count::count(more as u64, "other thread")));
        }
    }

    fn result_aside(&mut self, document: &Document) {
        let _ = json::Json.end(document, &mut std::io::stderr());
    }

    fn interim(&mut self, document: &Document, run: &Run, apart: bool) {
        self.live.clear();
        let document = Document { runs: vec![run.clone()], ..document.clone() };
        self.report(&mut |report, out| report.interim(&document, apart, out));
    }

    fn progress(&self) -> &dyn Progress {
        &self.progress
    }
}

#[cfg(test)]
mod tests {
    use super::places;
    use crate::result::environment::MountInfo;

    #[test]
    fn every_file_system_is_named_or_counted() {
        let mount = |n: usize| {
            let kind = if n == 1 { "tmpfs" } else { "ext4" };
            MountInfo { kind: kind.to_owned(), source: format!("dev{n}"), ..MountInfo::default() }
        };
        let said = |n: usize| places(&(0..n).map(mount).collect::<Vec<_>>());
        let memory = "tmpfs (dev1, so that memory is measured)";
        assert_eq!(said(0), "no file system");
        assert_eq!(said(1), "ext4 (dev0)");
        assert_eq!(said(2), format!("ext4 (dev0) and {memory}"));
        assert_eq!(said(3), format!("ext4 (dev0), {memory} and ext4 (dev2)"));
        assert_eq!(said(5), format!("ext4 (dev0), {memory}, ext4 (dev2) and 2 more"));
    }
}
