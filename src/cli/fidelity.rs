//! `wmlrun fidelity`: runs a program and its script in pairs, each recorded, and says how far the script is from it. A trace
//! may stand for the runs of the program.

use super::console::{notice, print_lines};
use super::recording::{Recording, named, opened, record_once};
use super::recording_args::{FidelityArgs, RecordArgs};
use super::recording_overhead::{ended, execute_before};
use super::script_input::write_back;
use super::shell_text;
use crate::comparison::AsJson as _;
use crate::diag::Failure;
use crate::learn::{Fidelity, FidelityVerdict, TracedRun, TracedSide, TransactionEnd, learn};
use crate::measure::mount;
use crate::os::held_dir::HeldDir;
use crate::os::signals::{self, BrokenOff};
use crate::os::{proc, quiesce};
use crate::result::Document;
use crate::session::library;
use crate::sheet::text;
use crate::trace::{TraceError, TraceSummary};
use crate::util::count::count;
use crate::util::{json, printable, timestamp};
use crate::version::VERSION;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The directory of the script's files, below that of the program.
const BELOW: &str = "wmlrun-fidelity";
/// The exit status if a row is outside of its limit, and if a row is unclear.
const OUTSIDE: u8 = 10;
const UNCLEAR: u8 = 11;
/// How often a run is made again if calls are lost in its trace.
const TRIES: usize = 3;
/// How much longer a script that ends by itself may take than its program: then it hangs.
const PATIENCE: f64 = 10.0;
/// The last lines of what a script printed that a failure has.
const LINES: usize = 8;

/// Compares a program with its script.
pub(super) fn fidelity(args: &FidelityArgs, script: &library::FoundScript) -> Result<u8, Failure> {
    signals::install_handlers();
    let _kept = signals::Kept::begin();
    signals::second_breaks_off(BrokenOff::Command);
    if script.path.is_none() && (args.write || args.script == "-") {
        let help = "`wmlrun show NAME > FILE` makes a file of a personality";
        return Err(Failure::wrong(format!("{} is not a file", script.name), help));
    }
    // The script runs in another directory.
    let path = script.path.as_deref().and_then(|path| std::path::absolute(path).ok());
    let word = path.map_or_else(|| args.script.clone().into(), OsString::from);
    let end = TransactionEnd::in_script(&script.text);
    let ends_itself = script.text.lines().any(|line| line.trim() == "set mode quit alldone");
    let mut compared = Compared { args, script: word, end, ends_itself, traced: None, seconds: None };
    let mut pairs: Vec<(TracedRun, TracedRun)> = Vec::new();
    let planned = usize::try_from(args.pairs).unwrap_or(usize::MAX);
    let mut fidelity = Fidelity::of(&pairs, planned);
    while pairs.len() < planned && !fidelity.is_decided() {
        let Some(pair) = compared.pair(pairs.len())? else { break };
        pairs.push(pair);
        fidelity = Fidelity::of(&pairs, planned);
        let (inside, outside) = (fidelity.count(FidelityVerdict::Inside), fidelity.count(FidelityVerdict::Outside));
        let rows = count(fidelity.rows.len() as u64, "row");
        notice(&format!("pair {}: {inside} inside, {outside} outside of {rows}", pairs.len()));
    }
    if let (0, Some(signal)) = (pairs.len(), signals::received()) {
        return Ok(128 + signal);
    }
    let command = match &args.trace {
        Some(trace) => trace.display().to_string(),
        None => {
            let words: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            shell_text::joined(&words)
        }
    };
    let text = match args.json {
        true => fidelity.document().json(),
        false => text::write(&fidelity.sheet(&script.name, &command)),
    };
    print_lines(text.trim_end());
    if let Some(signal) = signals::received() {
        return Ok(128 + signal);
    }
    if args.write {
        let when = conditions(args, &command, pairs.len());
        write_back(script, &fidelity.in_header(&script.text, &when, &args.set))?;
    }
    Ok(match fidelity.verdict() {
        FidelityVerdict::Inside => 0,
        FidelityVerdict::Outside => OUTSIDE,
        FidelityVerdict::Unknown => UNCLEAR,
    })
}

/// A comparison that goes on.
struct Compared<'a> {
    args: &'a FidelityArgs,
    /// The script, as a word of a command line.
    script: OsString,
    end: Option<TransactionEnd>,
    /// True if the script ends when all of its threads have, as those that `learn` writes of a program that ends.
    ends_itself: bool,
    /// The run of a trace that is given.
    traced: Option<TracedRun>,
    /// How long the program ran last, and whether it is a series of transactions.
    seconds: Option<(f64, bool)>,
}

impl Compared<'_> {
    /// Makes a pair of runs: the program is first in every other one. `None` if a signal ended it.
    fn pair(&mut self, number: usize) -> Result<Option<(TracedRun, TracedRun)>, Failure> {
        let early = if number % 2 == 1 { self.script()? } else { None };
        if signals::received().is_some() {
            return Ok(None);
        }
        let Some(program) = self.program(number == 0)? else { return Ok(None) };
        let script = match early {
            Some(script) => Some(script),
            None => self.script()?,
        };
        Ok(script.map(|script| (program, script)))
    }

    /// A run of the program. The first one may say what ends a transaction, if the script does not end as the program does.
    fn program(&mut self, is_first: bool) -> Result<Option<TracedRun>, Failure> {
        if self.traced.is_some() {
            return Ok(self.traced.clone());
        }
        let run = || {
            execute_before(self.args.before.as_deref())?;
            // As before each run of a script: what was written before does not slow this run.
            let _ = quiesce::quiesce(&[&self.args.dir], &AtomicBool::new(false));
            run_program(self.args)
        };
        let mut program = match &self.args.trace {
            Some(trace) => recorded_before(trace)?,
            None => retried(run, |program| program)?,
        };
        if signals::received().is_some() {
            return Ok(None);
        }
        if is_first && self.end.is_none() && !self.ends_itself {
            let learned = learn(BufReader::new(&mut program.trace), VERSION);
            self.end = learned.ok().and_then(|learned| learned.transaction);
        }
        let read = TracedRun::read(BufReader::new(&mut program.trace), TracedSide::Program, self.end.as_ref());
        let run = read.map_err(unreadable)?;
        self.check(&run, "program", is_first)?;
        self.seconds = Some((program.seconds, !run.is_whole));
        self.traced = self.args.trace.is_some().then(|| run.clone());
        Ok(Some(run))
    }

    /// A run of the script: to its end, or for as long as the program ran.
    fn script(&self) -> Result<Option<TracedRun>, Failure> {
        let (seconds, is_series) = self.seconds.unwrap_or_default();
        let to_end = self.ends_itself || !is_series;
        let length = if to_end { seconds * PATIENCE + 60.0 } else { seconds };
        let run = || run_script(self.args, &self.script, length, to_end);
        let (mut script, dir) = retried(run, |(script, _)| script)?;
        if signals::received().is_some() {
            return Ok(None);
        }
        let side = TracedSide::Script { dir: dir.as_os_str().as_bytes() };
        let end = self.end.as_ref().filter(|_| is_series);
        let run = TracedRun::read(BufReader::new(&mut script.trace), side, end).map_err(unreadable)?;
        self.check(&run, "script", false)?;
        Ok(Some(run))
    }

    /// Fails if a side makes no transactions that end as the header says.
    fn check(&self, run: &TracedRun, side: &str, is_told: bool) -> Result<(), Failure> {
        let Some(end) = &self.end else { return Ok(()) };
        if run.is_whole {
            let help = "name another call at `# Transaction:` in the script's header, or learn the script anew";
            return Err(Failure::wrong(format!("the {side} makes no transactions that end with {end}"), help));
        }
        if run.is_of_any_set && is_told {
            notice(&format!(
                "note: the {side} has no files of that name: a transaction ends with each such call ({end})"
            ));
        }
        Ok(())
    }
}

/// What is recorded of a command.
fn recorded(args: &FidelityArgs, dir: PathBuf, command: Vec<OsString>) -> Result<Recording, Failure> {
    let of = RecordArgs {
        output: Some(temporary()),
        under: vec![dir],
        by: args.by.clone(),
        command,
        is_temporary: true,
        ..RecordArgs::default()
    };
    record_once(&of)
}

/// A trace of the program, in place of a run. Its length is that of the trace.
fn recorded_before(trace: &Path) -> Result<Recording, Failure> {
    let summary = TraceSummary::read(opened(trace)?).map_err(named(trace))?;
    if !summary.missing().is_empty() {
        let text = format!("{}: the trace is incomplete", trace.display());
        return Err(Failure::wrong(text, "record the program again"));
    }
    let seconds = Duration::from_nanos(summary.span).as_secs_f64();
    Ok(Recording { status: 0, seconds, is_complete: true, trace: opened(trace)?.into_inner() })
}

/// Makes a run again if calls are lost in its trace, as on a busy machine.
fn retried<T>(make: impl Fn() -> Result<T, Failure>, recording: impl Fn(&T) -> &Recording) -> Result<T, Failure> {
    for _ in 0..TRIES {
        let made = make()?;
        if recording(&made).is_complete || signals::received().is_some() {
            return Ok(made);
        }
    }
    let help = "end other programs, or compare shorter runs";
    Err(Failure::failed(format!("calls are lost in {TRIES} traces of a run"), help))
}

/// The words of a command that a shell executes by this text, with `$0` for a word and `"$@"` for the command.
fn by_shell(text: String, word: OsString, command: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let shell = ["/bin/sh".into(), "-c".into(), text.into(), word];
    shell.into_iter().chain(command).collect()
}

/// Runs the program. Standard output is for the table.
fn run_program(args: &FidelityArgs) -> Result<Recording, Failure> {
    let command = by_shell("exec \"$@\" >&2".to_owned(), "sh".into(), args.command.iter().cloned());
    let recording = recorded(args, args.dir.clone(), command)?;
    match recording.status {
        0 => Ok(recording),
        _ if signals::received().is_some() => Ok(recording),
        status => Err(ended("itself", status)),
    }
}

/// Runs the script in a directory of its own, so that its annotations are in the trace. Returns its recording, and the directory.
fn run_script(
    args: &FidelityArgs,
    script: &OsStr,
    seconds: f64,
    to_end: bool,
) -> Result<(Recording, PathBuf), Failure> {
    let below = args.dir.join(BELOW);
    let can_not = |error: io::Error| {
        let help = format!("`wmlrun clean {0}; rmdir {0}` removes what an earlier run left", below.display());
        Failure::refused(format!("{}: {error}", below.display()), help)
    };
    let (dir, name) = HeldDir::of_entry(&below).map_err(can_not)?;
    if dir.make_dir(&name).map_err(can_not)?.is_none() {
        return Err(can_not(io::ErrorKind::AlreadyExists.into()));
    }
    let own = std::fs::canonicalize(&below).map_err(can_not)?;
    let (holder, prefix) = HeldDir::of_entry(&temporary()).map_err(can_not)?;
    let output = || holder.temporary(prefix.clone()).map_err(can_not);
    let (result, log) = (output()?, output()?);
    // Files without names, by the links to descriptors of this process.
    let link = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let to = format!(">{} 2>{}", link(result.file()), link(log.file()));
    let text = format!("cd \"$0\" && export WMLRUN_MARK=1 && exec \"$@\" {to}");
    let program = std::env::current_exe().map_err(can_not)?;
    let mut command: Vec<OsString> = vec![program.into(), "run".into(), script.into()];
    let seconds = format!("{seconds:.3}");
    command.extend(["--runtime", &seconds, "--json", "-", "--clean", "--dir"].map(OsString::from));
    command.push(own.clone().into());
    command.extend(args.set.iter().flat_map(|set| ["--set".into(), OsString::from(set)]));
    let recording = recorded(args, own.clone(), by_shell(text, own.clone().into(), command));
    dir.remove_empty_dir(&name);
    let recording = recording?;
    if signals::received().is_some() {
        return Ok((recording, own));
    }
    let read = |mut file: &File| {
        let mut bytes = Vec::new();
        let done = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
        done.map(|_| bytes).map_err(can_not)
    };
    if recording.status != 0 {
        let log = library::text(read(log.file())?);
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
        let what = format!("the script ended with status {}:\n{last}", recording.status);
        return Err(Failure::failed(what, format!("run it alone: `wmlrun run {}`", args.script)));
    }
    let document: Document = json::from_bytes(&read(result.file())?)
        .map_err(|error| Failure::failed(format!("the script's result: {}", json::reason(&error)), ""))?;
    if to_end && document.runs.last().is_some_and(|run| run.ended_by == "time") {
        let help = "a program without transactions is compared from its start to its end: let the script end where \
                    it does, by `finishoncount` and `set mode quit alldone`";
        return Err(Failure::wrong(format!("the script did not end within {seconds} s"), help));
    }
    Ok((recording, own))
}

/// Where temporary files are, with the beginning of their names.
fn temporary() -> PathBuf {
    std::env::temp_dir().join(BELOW)
}

fn unreadable(error: TraceError) -> Failure {
    Failure::failed(error.message, error.help)
}

/// Where and when pairs were compared, in a sentence.
fn conditions(args: &FidelityArgs, command: &str, pairs: usize) -> String {
    let [system, _, release, ..] = proc::uname();
    let on = mount(&args.dir).map_or_else(String::new, |mount| format!(" on {}", mount.kind));
    let now = timestamp::now();
    let day = now.split('T').next().unwrap_or_default();
    let of = match args.trace {
        Some(_) => format!("{} beside the trace", count(pairs as u64, "run")),
        None => format!("{} of runs of", count(pairs as u64, "pair")),
    };
    format!("{of} `{}`{on}, {system} {release}, {day}, wmlrun {VERSION}.", printable::line(command))
}
