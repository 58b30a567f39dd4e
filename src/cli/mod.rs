//! The command-line front end: parses the arguments, runs a command, and prints its output.
//!
//! Exit status: 0 success, 1 failed or stuck run or unwritten output, 2 wrong usage or script, 3 refused by the
//! environment, 10, 11 and 12 the verdict worse, unclear and invalid, 129, 130 and 143 interrupted. Not here: the implementation of WML commands (`session`) and report formats (`report`).

mod age;
mod args;
mod arms;
mod bars;
mod called_as;
mod choices;
mod compare;
mod compare_args;
mod completion;
mod console;
mod curves;
mod doctor;
mod editor;
mod examples;
mod explain;
mod experiment_args;
mod experiment_block;
mod experiment_file;
mod experiment_host;
mod experiment_outputs;
mod experiment_permission;
mod experiment_scale;
mod experiments;
mod failed_command;
mod fidelity;
mod floors;
mod history;
mod history_args;
mod info;
mod init;
mod last_results;
mod launched;
mod lists;
mod live;
mod live_stream;
mod option_values;
mod man;
mod neighbours;
mod page_files;
mod pages;
mod program_help;
#[cfg(feature = "mpi")]
mod ranked;
mod recording;
mod recording_args;
mod recording_overhead;
mod run_options;
mod run_tables;
mod scaled_names;
mod screen;
mod script_input;
mod shell_text;
mod stages;
mod stdout;
mod unit;
mod usage;
mod watchdog;
mod wins;

use crate::batch;
use crate::diag::Failure;
use crate::import::{self, MetricLimit};
use crate::measure::{Outputs, RunJudge, Watch};
use crate::os::held_dir::{DirGuard, HeldDir};
use crate::os::{limits, signals};
use crate::output::{FileIdentity, file_id};
use crate::prompt::{ShellArms, ShellHost};
use crate::report;
use crate::report::screen::ScreenReport;
use crate::report::text::Text;
use crate::result::{Document, LimitOutcome, RunState};
use crate::session::{Front, Session, Settings, Status, library};
use crate::util::secrets;
use args::{CliCommand, OutputArgs, RunArgs, SetUp};
use compare_args::CompareForm;
use console::{Console, Verbosity};
use option_values::{LiveOutput, is_stdout};
use recording_args::ReplayArgs;
use screen::{error_size, report_size};
use script_input::{find, profile_named};
use stages::PlanForm;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Runs the command line that the process was started with. Returns the exit status.
pub fn main() -> ExitCode {
    if let Some(status) = info::answer_shell() {
        return ExitCode::from(finish(status));
    }
    limits::save_address_space();
    signals::set_status(called_as::status);
    let status = on_enough_stack(|| {
        finish(match args::parse() {
            Ok(cli) => console::status(dispatch(cli)),
            Err(e) => usage::print(&e),
        })
    });
    ExitCode::from(called_as::status(status))
}

/// Flushes standard output and reports an error of it. Returns the exit status, which is `code` without an error.
fn finish(code: u8) -> u8 {
    match stdout::flushed() {
        Some(error) => {
            console::error(&format!("can't write to standard output: {error}"), None);
            stdout::after_error(code)
        }
        None => code,
    }
}

/// Stack in bytes that the program needs at most: blocks may be nested 64 deep, and are visited by recursion.
const ENOUGH_STACK: u64 = 1 << 20;

/// Returns the result of `work`. If the limit of the main thread's stack is too small (`ulimit -s`), another thread does
/// the work; else the main thread does, since the kernel delivers signals to it first, and a signal is to end its reads.
fn on_enough_stack(work: fn() -> u8) -> u8 {
    if limits::stack().is_none_or(|stack| stack >= ENOUGH_STACK) {
        return work();
    }
    let Ok(worker) = std::thread::Builder::new().stack_size(ENOUGH_STACK as usize).spawn(work) else {
        return work();
    };
    // Signals are then delivered to the other thread.
    signals::block_ending_signals();
    // A panic has been reported.
    worker.join().unwrap_or(101)
}

fn dispatch(cli: args::Cli) -> Result<u8, Failure> {
    if cli.command.is_some() {
        called_as::executes_command();
    }
    launched::check(cli.command.as_ref())?;
    let script = cli.script.or(cli.file);
    match (cli.command, script) {
        (None, Some(script)) => run(&script, &cli.run),
        (None, None) if launched::is_one_of_several() => run("-", &cli.run),
        (None, None) if cli.run.hosts.is_some() && !std::io::stdin().is_terminal() => run("-", &cli.run),
        (None, None) if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => repl(None, &cli.run),
        (None, None) if std::io::stdin().is_terminal() => Err(nothing_to_run()),
        // `wmlrun << END` and `wmlrun < script` run the script, as in Filebench 1.4.
        (None, None) => match find("-")? {
            found if found.text.trim().is_empty() => Err(nothing_to_run()),
            found => run_found(&found, &cli.run, &signals::install_handlers().0),
        },
        (Some(command), _) => match command {
            CliCommand::Run { script, run: args } => run(&script, &args),
            CliCommand::Repl { script, run } => repl(script.as_deref(), &run),
            CliCommand::Init { file, files, load, reads, sync, io } => {
                init::init(&file, [files, load, reads, sync, io])
            }
            CliCommand::Check { scripts, dump, differences, dialect, set } => {
                Ok(stages::check(&scripts, dump, differences, dialect, &set))
            }
            CliCommand::Fmt { scripts, write, check } => stages::fmt(&scripts, write, check),
            CliCommand::Plan { script, list, settings, quiet, verbose } => {
                let form = match (list, verbose) {
                    (true, _) => PlanForm::Files,
                    (false, true) => PlanForm::Program,
                    (false, false) => PlanForm::Outline,
                };
                plan(&script, form, settings.0, quiet)
            }
            CliCommand::Batch { profile, only, settings, output } => run_batch(&profile, &only, &settings.0, &output),
            CliCommand::Repeat(args) if args.floor => floors::floor(&args),
            CliCommand::Repeat(args) => experiments::repeat(&args),
            CliCommand::Ab(args) => experiments::ab(&args),
            CliCommand::Compare(args) => match recording::compare(&args)? {
                Some(status) => Ok(status),
                None => match args.form()? {
                    CompareForm::Sides(sides) => compare::compare(&args, &sides),
                    CompareForm::Curve(method, format) => curves::ort(&args.a, method, format),
                    CompareForm::Tests(format) => wins::compare(&args, format),
                },
            },
            CliCommand::Experiment(args) => experiment_file::experiment(&args),
            CliCommand::Sweep(args) => curves::sweep(&args),
            CliCommand::Report { paths, output, format, verbose, metrics, beside, title, pictures, force } => {
                let format = pages::wanted_format(&paths, format, verbose, output.is_some() || pictures.is_some())?;
                let paths = paths.iter().map(|path| last_results::resolved(path)).collect::<Result<Vec<_>, _>>()?;
                let metrics = (&metrics[..], beside.as_deref());
                pages::report(&paths, metrics, &pages::PageOutputs { output, title, pictures, force }, format)
            }
            CliCommand::History { what } => history::history(what),
            CliCommand::Record(args) => recording::record(&args),
            CliCommand::Trace { what } => recording::trace(&what),
            CliCommand::Learn { traces, incomplete } => recording::learn(&traces, incomplete),
            CliCommand::Fidelity(args) => fidelity::fidelity(&args, &find(&args.script)?),
            CliCommand::Replay(args) => replay(&args),
            CliCommand::Age(args) => age::age(&args),
            CliCommand::List { what } => lists::list(what.as_deref()),
            CliCommand::Show { name, fidelity } => info::show(&name, fidelity),
            CliCommand::Doctor { dir, hosts } => doctor::doctor(dir.as_deref(), hosts.as_ref()),
            CliCommand::Explain { words } => explain::explain(&words.join(" ")),
            CliCommand::Clean { dirs, logs } => {
                let clean =
                    |dir: &PathBuf| if logs { console::status(experiments::prune(dir)) } else { info::clean(dir) };
                Ok(dirs.iter().map(clean).max().unwrap_or_default())
            }
            CliCommand::Setup { what } => match what {
                SetUp::Completions { shell } => Ok(info::completions(&shell)),
                SetUp::Man { dir } => info::manual(&dir),
                SetUp::Editor { editor } => Ok(editor::print(editor)),
                // The protocol has no other channel here than standard input and output.
                SetUp::Lsp { stdio: _ } => editor::serve(),
            },
        },
    }
}

/// Prepares a run that an experiment has started. Its output is kept beside its result, and its files are in a directory
/// that the experiment holds. Returns a guard of that directory.
fn enter_experiment(args: &RunArgs) -> Result<Option<DirGuard>, Failure> {
    let Some(fd) = args.of_experiment else { return Ok(None) };
    // The experiment reads the status.
    called_as::executes_command();
    if !args.settings.0.record_env {
        secrets::hide();
    }
    let dir = args.settings.0.json.as_deref().and_then(Path::parent).filter(|_| fd >= 0);
    let Some(dir) = dir else { return Ok(None) };
    let known = HeldDir::inherited(fd, dir).and_then(|dir| dir.make_known());
    known.map(Some).map_err(|e| Failure::refused(format!("the directory {} of the experiment: {e}", dir.display()), ""))
}

/// Runs a script, as one of several ranks if a launcher started this process as one of several.
fn run(script: &str, args: &RunArgs) -> Result<u8, Failure> {
    if let Some(hosts) = args.hosts.as_ref().filter(|_| !args.as_rank) {
        return launched::start(hosts);
    }
    let _known = enter_experiment(args)?;
    let (interrupt, _) = signals::install_handlers();
    #[cfg(feature = "mpi")]
    if let Some(group) = launched::connect(&interrupt)
        .map_err(|e| Failure::refused(format!("the ranks can't be connected: {e}"), "check the installation of MPI"))?
    {
        return Ok(ranked::run(script, args, &group, &interrupt));
    }
    let found = find(script).map_err(|failure| match usage::meant_command(script, &args::full_command()) {
        Some(near) => failure.help(format!("for the command `{near}`, see `wmlrun {near} --help`")),
        None => failure,
    })?;
    run_found(&found, args, &interrupt)
}

/// Runs a script in this process alone.
fn run_found(found: &library::FoundScript, args: &RunArgs, interrupt: &Arc<AtomicUsize>) -> Result<u8, Failure> {
    arms::check_limits(found, &args.settings.0, &args.limits.fail_if)?;
    let scripts: Vec<PathBuf> = found.path.iter().cloned().collect();
    run_here(args, &scripts, interrupt, |session, front| session.script(&found.name, &found.text, front))
}

/// Replays a trace.
fn replay(args: &ReplayArgs) -> Result<u8, Failure> {
    let run = args.run_args();
    let _known = enter_experiment(&run)?;
    let (interrupt, _) = signals::install_handlers();
    run_here(&run, std::slice::from_ref(&args.trace), &interrupt, |session, front| {
        Failure::outcome(session.runner.replay(&args.trace, front)?.status)
    })
}

/// Does work in this process alone. `read`: the files that it reads.
fn run_here(
    args: &RunArgs,
    read: &[PathBuf],
    interrupt: &Arc<AtomicUsize>,
    work: impl FnOnce(&mut Session, &mut dyn Front) -> Result<(), Failure>,
) -> Result<u8, Failure> {
    let settings = run_settings(args);
    let mut console = console_of(args, &settings, read)?;
    let ended = run_session(settings, read, interrupt, args.output.quiet, &mut console, work);
    Ok(end_run(ended, args, &mut console))
}

/// A session that has ended.
struct EndedSession {
    /// What the watchdog watches.
    watch: Arc<Watch>,
    /// The exit status.
    status: u8,
    outputs: Outputs,
}

/// Does work in a session of its own. `read`: the files that it reads.
fn run_session(
    settings: Settings,
    read: &[PathBuf],
    interrupt: &Arc<AtomicUsize>,
    quiet: bool,
    front: &mut dyn Front,
    work: impl FnOnce(&mut Session, &mut dyn Front) -> Result<(), Failure>,
) -> EndedSession {
    let mut session = watched(settings, interrupt, quiet);
    let mut status = front.status(session.runner.outputs.open_outputs(read));
    if status == Status::Done {
        front.begin(&session.runner.outputs.document);
        let done = work(&mut session, front);
        status = front.status(done);
        session.runner.end_script(status);
        front.end(&session.runner.outputs.document);
    }
    session.runner.watch.note_status(status);
    let watch = session.watch();
    let (ended, outputs) = session.finish_with_result(front);
    EndedSession { watch, status: ended.max(status).code(), outputs }
}

/// Keeps the result of a script, and ends the live stream and the watchdog. Returns the exit status.
fn end_run(ended: EndedSession, args: &RunArgs, console: &mut Console) -> u8 {
    let EndedSession { watch, status, outputs } = ended;
    let status = LimitOutcome::status(outputs.document.runs.iter().flat_map(|run| &run.limits), status);
    // That of an experiment is in its folder.
    let is_kept = args.of_experiment.is_none() && !args.settings.0.redact;
    let kept = if is_kept { last_results::keep(outputs, watch.signal()) } else { Ok(()) };
    if let Some(why) = kept.err().filter(|_| args.output.verbosity() == Verbosity::Verbose) {
        console.remains(&format!("the result is not kept for `wmlrun report last`: {why}"));
    }
    watchdog::end(&watch, status.max(console.end_stream()))
}

/// Creates a session and starts its watchdog thread.
fn watched(settings: Settings, interrupt: &Arc<AtomicUsize>, quiet: bool) -> Session {
    let limit = settings.prepare_timeout;
    let rank = match settings.together.rank() {
        0 => String::new(),
        rank => settings.together.name_of(rank) + ": ",
    };
    let session = Session::new(settings, Arc::clone(interrupt));
    watchdog::start(&session.watch(), Arc::clone(interrupt), limit, quiet, rank);
    session
}

fn run_batch(profile: &Path, only: &[String], settings: &Settings, output: &OutputArgs) -> Result<u8, Failure> {
    let taken = stdout_taken(settings, None)?;
    let mut host = TerminalHost {
        stdout_taken: taken,
        format: report_of(output, taken),
        verbosity: output.verbosity(),
        interrupt: signals::install_handlers().0,
    };
    let named = profile_named(profile);
    batch::run(named.as_deref().unwrap_or(profile), settings, only, &mut host).map(|()| 0)
}

/// The command line's implementation of [`batch::BatchHost`].
struct TerminalHost {
    stdout_taken: bool,
    format: &'static dyn report::Report,
    verbosity: Verbosity,
    interrupt: Arc<AtomicUsize>,
}

impl batch::BatchHost for TerminalHost {
    fn front(&mut self, follows: bool) -> Box<dyn Front> {
        Box::new(console_for(self.stdout_taken, self.format, self.verbosity).after_another(follows))
    }

    fn session(&mut self, settings: Settings) -> Session {
        watched(settings, &self.interrupt, self.verbosity == Verbosity::Quiet)
    }

    fn interrupt(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.interrupt)
    }
}

/// True if an output, such as that of `--json`, is standard output, so that the report must not be. An error if several
/// outputs are.
fn stdout_taken(settings: &Settings, live: Option<&Path>) -> Result<bool, Failure> {
    let trace = settings.trace.as_ref().map(|(path, _)| path.as_path());
    let outputs = [("--json", settings.json.as_deref()), ("--trace", trace), ("--live", live)];
    let names: Vec<&str> =
        outputs.iter().filter(|(_, path)| path.is_some_and(is_stdout)).map(|(name, _)| *name).collect();
    if let [first, second, ..] = names[..] {
        let text = format!("`{first}` and `{second}` both go to standard output");
        return Err(Failure::wrong(text, "give one of them a file"));
    }
    Ok(!names.is_empty())
}

/// Creates the console of a command with its live stream.
fn console_of(args: &RunArgs, settings: &Settings, scripts: &[PathBuf]) -> Result<Console, Failure> {
    let live = args.live.as_ref();
    let taken = stdout_taken(settings, live.map(|live| live.path.as_path()))?;
    let format = report_of(&args.output, taken);
    let console = console_for(taken, format, args.output.verbosity());
    let scripts: Vec<FileIdentity> = scripts.iter().filter_map(|path| file_id(path)).collect();
    let open = |live: &LiveOutput| live.open(args.settings.0.force, &scripts);
    Ok(console.with_stream(live.map(open).transpose()?))
}

/// The report of a run. As text it is the whole with `-v`, else as much as the screen holds; the screen is standard error
/// if standard output is `taken`.
fn report_of(output: &OutputArgs, taken: bool) -> &'static dyn report::Report {
    if output.format.name() != "text" {
        return output.format;
    }
    match output.verbosity() {
        Verbosity::Verbose => &Text,
        _ if taken => &ScreenReport { size: error_size },
        _ => &ScreenReport { size: report_size },
    }
}

/// Creates the console for the report and the messages. If standard output is `taken`, a report in JSON is suppressed,
/// since with `--json -` it would repeat the same text.
fn console_for(taken: bool, format: &'static dyn report::Report, verbosity: Verbosity) -> Console {
    let none = report::find("none").filter(|_| taken && format.name() == "json");
    Console::new(none.unwrap_or(format), verbosity).without_stdout(taken)
}

fn plan(script: &str, form: PlanForm, settings: Settings, quiet: bool) -> Result<u8, Failure> {
    let found = find(script)?;
    let verbosity = if quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let mut console = Console::new(report::TABLE[0], verbosity);
    let mut session = Session::new(settings, signals::install_handlers().0);
    stages::plan(&mut session, &found, form, &mut console)
}

/// The error that there is no script.
fn nothing_to_run() -> Failure {
    let help = "`wmlrun SCRIPT` runs a script, `wmlrun list` lists the shipped ones; see also `wmlrun --help`";
    Failure::wrong("no script given", help)
}

fn repl(script: Option<&str>, args: &RunArgs) -> Result<u8, Failure> {
    if args.hosts.is_some() {
        return Err(Failure::wrong("the shell runs on one host", "give `--hosts` with a script"));
    }
    let settings = run_settings(args);
    let found = script.map(find).transpose()?;
    let scripts: Vec<PathBuf> = found.iter().filter_map(|f| f.path.clone()).collect();
    let mut console = console_of(args, &settings, &scripts)?;
    let (number, first) = signals::install_handlers();
    let mut session = watched(settings, &number, args.output.quiet);
    let watch = session.watch();
    session.runner.outputs.open_outputs(&scripts)?;
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let script = found.as_ref().map(|f| (f.name.as_str(), f.text.as_str()));
    let host = Box::new(TerminalShell { quiet: args.output.quiet, force: args.settings.0.force });
    let status = crate::prompt::run(session, script, terminal, crate::prompt::Signals { first }, host, &mut console);
    Ok(watchdog::end(&watch, status.code().max(console.end_stream())))
}

/// The command line's implementation of [`ShellHost`].
struct TerminalShell {
    quiet: bool,
    force: bool,
}

impl ShellHost for TerminalShell {
    fn page(&mut self, document: Document, output: &Path) -> Result<(), Failure> {
        pages::page_of_run(document, output, self.force)
    }

    fn ab(&mut self, arms: &ShellArms) -> Result<(), Failure> {
        experiments::ab(&args::comparison_of_shell(arms, self.quiet)?).map(drop)
    }
}

/// The settings of a command that runs scripts in this process.
fn run_settings(args: &RunArgs) -> Settings {
    let live = args.live.as_ref().map(|live| live.path.clone());
    Settings { live, judge: judge(&args.limits.fail_if), ..args.settings.0.clone() }
}

/// Tells of each complete run whether it keeps these limits.
fn judge(limits: &[MetricLimit]) -> RunJudge {
    let limits = limits.to_vec();
    RunJudge::new(move |document, run| {
        if limits.is_empty() || run.state != RunState::Complete {
            return Vec::new();
        }
        let observation = import::of_run(document, run, "");
        limits.iter().map(|limit| limit.judge("", &[&observation], |_| None)).collect()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::io_engine;
    use crate::session::COMPILED;
    use crate::session::SilentFront;
    use std::time::Duration;

    /// How many plans a script with one run compiles. With `dir` its files are there, or else in a fresh directory.
    fn compiled(script: &str, engine: &str, dir: Option<&Path>) -> u32 {
        let settings = Settings {
            engine: io_engine::find(engine).unwrap(),
            runtime: Some(Duration::from_millis(10)),
            sets: dir.iter().map(|dir| ("dir".to_owned(), dir.display().to_string())).collect(),
            quiesce: false,
            allow_system: true,
            ..Settings::default()
        };
        let before = COMPILED.get();
        let mut session = Session::new(settings, Arc::default());
        // On a busy machine so short a run may do nothing.
        let _ = session.script("x.wml", script, &mut SilentFront::default());
        assert_eq!(session.runner.outputs.document.runs.len(), 1);
        session.finish(&mut SilentFront::default());
        COMPILED.get() - before
    }

    #[test]
    fn a_run_has_one_plan() {
        let script = "define fileset name=s,path=$dir,entries=2,size=1k,prealloc\n\
                      define process name=p { thread name=t { flowop statfile name=st,filesetname=s } }\n";
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(compiled(script, "null", None), 1);
        assert_eq!(compiled(script, "posix", Some(dir.path())), 1);
        assert_eq!(compiled(script, "posix", None), 1);
        // The command is another one in each directory.
        let listed = script.replace("flowop statfile", "flowop command name=c,value=\"ls $dir\" flowop statfile");
        assert_eq!(compiled(&listed, "posix", None), 2);
        // `create files` has one too: variables may be set between them.
        assert_eq!(compiled(&format!("{script}create files\nrun 1\n"), "posix", Some(dir.path())), 2);
    }
}
