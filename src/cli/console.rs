//! The front end of scripts and the shell: reports on standard output, messages on standard error.

use super::bars::Bars;
use super::live::LiveScreen;
use super::live_stream::LiveStream;
use super::screen::{error_size, report_size, stderr_width, stdout_width};
use super::stdout::{Stdout, to_stderr};
use crate::diag::{self, Diagnostic, Diagnostics, Failure, Reason};
use crate::disk::prepare::Progress;
use crate::report::live::LiveEvent;
use crate::report::{Report, json};
use crate::result::environment::MountInfo;
use crate::result::ranks::RanksInterval;
use crate::result::snapshot::Snapshot;
use crate::result::warnings;
use crate::result::{Document, Run};
use crate::runtime::Tick;
use crate::session::Front;
use crate::source::SourceMap;
use crate::util::{count, printable, secrets, size, wrap};
use std::io::Write;
use std::time::Duration;

/// Prints an error, and its help if there is any, to standard error.
pub(super) fn error(text: &str, help: Option<&str>) {
    coded_error(None, text, help);
}

fn coded_error<'a>(code: Option<&str>, text: &str, help: impl IntoIterator<Item = &'a str>) {
    let code = code.map_or(String::new(), |c| format!("[{c}]"));
    notice(&format!("error{code}: {}", printable::short(text, MAX_MESSAGE_CHARS)));
    for help in help.into_iter().filter(|help| !help.is_empty()) {
        notice(&format!("  = help: {}", printable::short(help, MAX_MESSAGE_CHARS)));
    }
}

/// Prints why a command failed. Returns its exit status.
pub(super) fn failure(failure: &Failure) -> u8 {
    for reason in &failure.reasons {
        match reason {
            Reason::Stated { code, message, help } => {
                coded_error(code.as_deref(), message, help.iter().map(String::as_str));
            }
            Reason::Script(Diagnostics { map, found }) => diagnostics(map, found),
        }
    }
    failure.status.code()
}

/// The exit status of a command, whose failure is printed.
pub(super) fn status(done: Result<u8, Failure>) -> u8 {
    done.unwrap_or_else(|failed| failure(&failed))
}

/// The amount of output on standard error, besides errors and warnings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verbosity {
    /// No progress and no notes.
    Quiet,
    /// Progress and notes.
    Normal,
    /// In addition, a line for each phase of the preparation.
    Verbose,
}

/// Maximum number of diagnostics that are printed in full.
const MAX_DIAGNOSTICS: usize = 50;

/// Maximum length of a printed message, in characters: more than the longest path.
const MAX_MESSAGE_CHARS: usize = 6000;

/// Maximum number of threads that are named as still being in a system call.
const MAX_STRAGGLERS: usize = 5;

/// Prints diagnostics with excerpts of the source.
pub(super) fn diagnostics(map: &SourceMap, found: &[Diagnostic]) {
    let on_terminal = |columns| diag::Style::Terminal { colours: diag::wants_colours(), columns };
    let style = stderr_width().map_or(diag::Style::Plain, on_terminal);
    let text = diag::render(map, &found[..found.len().min(MAX_DIAGNOSTICS)], style);
    to_stderr(&secrets::hidden(&text));
    if found.len() > MAX_DIAGNOSTICS {
        notice(&format!("… and {} more messages", count::grouped((found.len() - MAX_DIAGNOSTICS) as u64)));
    }
}

/// Prints lines to standard output, with control characters escaped. [`Stdout`] records write errors for the exit
/// status.
pub(super) fn print_lines(text: &str) {
    let _ = Stdout.write_all(format!("{}\n", printable::lines(&secrets::hidden(text))).as_bytes());
}

/// Prints lines like [`print_lines`]. On a terminal, long lines are broken between words.
pub(super) fn print_wrapped(text: &str) {
    let _ = Stdout.write_all(format!("{}\n", wrap::message(&printable::lines(text), stdout_width())).as_bytes());
}

/// Prints lines to standard error, with control characters escaped. On a terminal, long lines are broken between words.
pub(super) fn notice(text: &str) {
    to_stderr(&format!("{}\n", wrap::message(&printable::lines(&secrets::hidden(text)), stderr_width())));
}

/// Ends a live stream, and reports lines that are missing. Returns whether it could be written.
pub(super) fn end_stream(stream: LiveStream) -> bool {
    let (dropped, written) = stream.finish();
    if dropped > 0 {
        let lines = count::count(dropped, "line");
        notice(&format!("note: the live stream lacks {lines}: its reader did not take them in time"));
    }
    if let Err(e) = &written {
        error(&format!("can't write the live stream: {e}"), Some("give `--live` another path"));
    }
    written.is_ok()
}

/// Describes file systems: names the first three, and counts the rest.
fn describe_mounts(mounts: &[MountInfo]) -> String {
    const NAMED: usize = 3;
    let name = |m: &MountInfo| {
        let memory = if m.in_memory() { "; measures memory, not storage" } else { "" };
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

/// True if the progress of runs is shown. Programs that read the output of Filebench often get both streams in
/// one, and would take a rate of the progress for the result.
fn has_progress(report: &dyn Report) -> bool {
    !report.info().of_filebench || stderr_width().is_some()
}

/// The front end that prints to the terminal.
pub(super) struct Console {
    report: &'static dyn Report,
    quiet: bool,
    /// Whether an output such as `--json -` uses standard output; the report then goes to standard error.
    stdout_taken: bool,
    /// Whether the report has a beginning, such as the headings of a table, which that of another document may have.
    begins: bool,
    /// Whether the report has the beginning of the current run.
    has_started: bool,
    progress: Bars,
    live: LiveScreen,
    /// The live stream of `--live`.
    stream: Option<LiveStream>,
    /// The errors so far, if other ranks may have the same.
    errors: Option<String>,
}

impl Console {
    pub(super) fn new(report: &'static dyn Report, verbosity: Verbosity) -> Self {
        let quiet = verbosity == Verbosity::Quiet;
        let shows = if has_progress(report) { verbosity } else { Verbosity::Quiet };
        let (live, progress) = (LiveScreen::new(shows == Verbosity::Quiet), Bars::new(shows));
        Self {
            report,
            quiet,
            stdout_taken: false,
            begins: true,
            has_started: false,
            progress,
            live,
            stream: None,
            errors: None,
        }
    }

    /// Joins the report to that of another document, if `follows` and its format is one for programs that can be joined.
    pub(super) fn after_another(self, follows: bool) -> Self {
        let begins = !(follows && self.report.info().for_programs && !self.report.info().stands_alone);
        Self { begins, ..self }
    }

    /// Writes a live stream of each run.
    pub(super) fn with_stream(self, stream: Option<LiveStream>) -> Self {
        Self { stream, ..self }
    }

    /// Collects the errors as text.
    #[cfg(feature = "mpi")]
    pub(super) fn collecting(self) -> Self {
        Self { errors: Some(String::new()), ..self }
    }

    /// The errors that were collected.
    #[cfg(feature = "mpi")]
    pub(super) fn collected(self) -> String {
        self.errors.unwrap_or_default()
    }

    /// Ends the live stream. Returns the exit status: 1 if it could not be written.
    pub(super) fn end_stream(&mut self) -> u8 {
        u8::from(self.stream.take().is_some_and(|stream| !end_stream(stream)))
    }

    /// Sends the report to standard error instead of standard output, if `taken`.
    pub(super) fn without_stdout(self, taken: bool) -> Self {
        Self { stdout_taken: taken, ..self }
    }

    /// Writes a part of the report, with a buffer, so that it takes few writes.
    fn report(&self, write: &mut dyn FnMut(&dyn Report, &mut dyn Write) -> std::io::Result<()>) {
        let out: &mut dyn Write = if self.stdout_taken { &mut std::io::stderr() } else { &mut Stdout };
        let mut out = std::io::BufWriter::with_capacity(1 << 16, out);
        // `Stdout` records its errors for the exit status; errors of standard error are ignored.
        let _ = write(self.report, &mut out).and_then(|()| out.flush());
        let _ = out.into_parts();
    }
}

impl Front for Console {
    fn columns(&self) -> Option<usize> {
        if self.report.info().for_programs || self.stdout_taken { stderr_width() } else { stdout_width() }
    }

    fn rows(&self) -> Option<usize> {
        let size = if self.report.info().for_programs || self.stdout_taken { error_size() } else { report_size() };
        size.height
    }

    fn line(&mut self, text: &str) {
        self.live.clear();
        if self.report.info().for_programs || self.stdout_taken { notice(text) } else { print_lines(text) }
    }

    fn overview(&mut self, text: &str) {
        self.live.clear();
        // Programs that read the output of Filebench do not know the table.
        if self.report.info().of_filebench { notice(text) } else { self.line(text) }
    }

    fn script_line(&mut self, text: &str) {
        self.live.clear();
        if self.report.info().for_programs || self.stdout_taken {
            // The prefix distinguishes output of the script from the program's own messages.
            for line in text.split('\n') {
                notice(&format!("script: {line}"));
            }
        } else {
            print_lines(text);
        }
    }

    fn note(&mut self, text: &str) {
        self.live.clear();
        if !self.quiet {
            notice(&format!("note: {}", printable::short(text, MAX_MESSAGE_CHARS)));
        }
    }

    fn warnings(&mut self, map: &SourceMap, found: &[Diagnostic]) {
        if !found.is_empty() {
            diagnostics(map, found);
        }
    }

    fn remains(&mut self, text: &str) {
        // Nothing follows the last line of Filebench, whose trees remain without a message.
        if !self.report.info().of_filebench {
            self.note(text);
        }
    }

    fn failed(&mut self, failed: &Failure) {
        self.progress.finish();
        self.live.clear();
        failure(failed);
        if let Some(errors) = &mut self.errors {
            errors.push_str(&failed.text());
        }
    }

    fn warning(&mut self, text: &str, help: &str) {
        notice(&format!("warning: {text}\n  = help: {help}"));
    }

    fn begin(&mut self, document: &Document) {
        if self.begins {
            self.report(&mut |report, out| report.begin(document, out));
        }
    }

    fn end(&mut self, document: &Document) {
        self.report(&mut |report, out| report.end(document, out));
    }

    fn run_started(&mut self, document: &Document, run: &Run, length: Option<Duration>, time: &str) {
        self.progress.finish();
        if let Some(stream) = &mut self.stream {
            stream.start_run(document.runs.len() + 1);
            stream.write(&LiveEvent::Started { document, run, seconds: length.map(|length| length.as_secs_f64()) });
        }
        if self.quiet || !has_progress(self.report) {
            return;
        }
        let bytes: u64 = run.filesets.iter().map(|f| f.bytes).sum();
        // In a changed root directory (chroot), the kernel lists no mount for it.
        let is_unknown = run.environment.mounts.is_empty() && bytes > 0 && run.engine != "null";
        let place =
            if is_unknown { "an unknown file system".to_owned() } else { describe_mounts(&run.environment.mounts) };
        notice(&format!(
            "running {time}: {}, {} on {place}, {}",
            count::count(run.processes, "process"),
            count::count(run.threads, "thread"),
            size::format(bytes),
        ));
    }

    fn run_ticks(&mut self, run: &Run, tick: &Tick<'_>, ranks: Option<&RanksInterval>) {
        if let Some(stream) = &mut self.stream {
            let errors = tick.running.measured().flowops.iter().map(Snapshot::failed).sum();
            stream.write(&LiveEvent::Interval { number: stream.number(), run, errors, ranks });
        }
        self.live.tick(run, tick, ranks);
    }

    fn last_interval(&mut self, run: &Run, errors: u64) {
        if let Some(stream) = &mut self.stream {
            stream.write(&LiveEvent::Interval { number: stream.number(), run, errors, ranks: None });
        }
    }

    fn run_ended(&mut self, document: &Document) {
        self.live.clear();
        if let Some(stream) = &mut self.stream {
            stream.write(&LiveEvent::Ended { document });
        }
        let last = document.runs.len().saturating_sub(1);
        // Programs that read the output of Filebench count its lines from the end, also where both streams are one.
        if self.report.info().of_filebench {
            self.print_notices(document);
            self.report_run(document, last);
        } else {
            self.report_run(document, last);
            self.print_notices(document);
        }
    }

    fn check_outputs(&self) -> std::io::Result<()> {
        self.stream.as_ref().map_or(Ok(()), LiveStream::check_in_place)
    }

    fn result_aside(&mut self, document: &Document) {
        let _ = json::Json.end(document, &mut std::io::stderr());
    }

    fn interim(&mut self, document: &Document, run: &Run, apart: bool) {
        self.live.clear();
        let document = Document { runs: vec![run.clone()], ..document.clone() };
        self.start_report(&document, 0);
        self.report(&mut |report, out| report.interim(&document, apart, out));
    }

    fn progress(&self) -> &dyn Progress {
        &self.progress
    }
}

impl Console {
    /// Writes what precedes the figures of a run, once.
    fn start_report(&mut self, document: &Document, index: usize) {
        if !std::mem::replace(&mut self.has_started, true) {
            self.report(&mut |report, out| report.started(document, index, out));
        }
    }

    /// Writes the report of a run that has ended.
    fn report_run(&mut self, document: &Document, index: usize) {
        self.start_report(document, index);
        self.report(&mut |report, out| report.run(document, index, out));
        self.has_started = false;
    }

    /// Prints what there is to say about the last run beside its report: warnings that the report lacks, how the run
    /// failed, and threads that are still in a call.
    fn print_notices(&mut self, document: &Document) {
        let Some(run) = document.runs.last() else { return };
        if !self.report.info().has_warnings {
            for (message, advice) in warnings::unfulfilled(document, run) {
                notice(&format!("warning: {}", printable::short(&message, MAX_MESSAGE_CHARS)));
                if let Some(advice) = advice {
                    notice(&format!("  = help: {}", printable::short(advice, MAX_MESSAGE_CHARS)));
                }
            }
        }
        // The formats of Filebench are read by people too, and have no place for warnings.
        if self.report.info().of_filebench {
            let codes = warnings::other_codes(document, run);
            if !codes.is_empty() {
                notice(&format!("note: warnings of the run, for `wmlrun explain`: {}", codes.join(", ")));
            }
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
            error("no operation was completed", Some("see the warnings in the report; `iters=0` also has this effect"));
        } else if run.state != crate::result::RunState::Complete {
            error(&format!("the run did not complete: {}", run.ended_by), None);
        }
        for s in run.stragglers.iter().take(MAX_STRAGGLERS) {
            let path = s.path.as_ref().map_or(String::new(), |path| format!(" on {}", printable::line(path)));
            let place = s.wait_channel.as_ref().map_or(String::new(), |w| format!(", in the kernel at {w}"));
            let rank = s.rank.map_or(String::new(), |rank| format!("rank {rank}, "));
            notice(&format!(
                "note: {} ({rank}process {}, thread {}) is still in a system call{path}{place}",
                printable::line(&s.flowop),
                s.instance + 1,
                s.thread + 1
            ));
        }
        if let Some(more @ 1..) = run.stragglers.len().checked_sub(MAX_STRAGGLERS) {
            notice(&format!("note: also still in a system call: {}", count::count(more as u64, "other thread")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::describe_mounts;
    use crate::result::environment::MountInfo;

    #[test]
    fn every_file_system_is_named_or_counted() {
        let mount = |n: usize| {
            let kind = if n == 1 { "tmpfs" } else { "ext4" };
            MountInfo { kind: kind.to_owned(), source: format!("dev{n}"), ..MountInfo::default() }
        };
        let described = |n: usize| describe_mounts(&(0..n).map(mount).collect::<Vec<_>>());
        let memory = "tmpfs (dev1; measures memory, not storage)";
        assert_eq!(described(0), "no file system");
        assert_eq!(described(1), "ext4 (dev0)");
        assert_eq!(described(2), format!("ext4 (dev0) and {memory}"));
        assert_eq!(described(3), format!("ext4 (dev0), {memory} and ext4 (dev2)"));
        assert_eq!(described(5), format!("ext4 (dev0), {memory}, ext4 (dev2) and 2 more"));
    }
}
