//! The command-line front end: parses the arguments, runs a command, and prints its output.
//!
//! Exit status: 0 success, 1 failed or stuck run, 2 wrong usage or script, 3 refused by the environment, 130/143
//! interrupted. Not here: the implementation of WML commands (`session`) and report formats (`report`).

mod args;
mod arms;
mod bars;
mod console;
mod curves;
mod experiment_args;
mod experiments;
mod info;
mod live;
mod pages;
mod stages;
mod stdout;
mod watchdog;

use crate::batch;
use crate::engine;
use crate::measure::{Required, WarmupLength};
use crate::os::signals;
use crate::report;
use crate::session::{Front, Session, Settings, Status, library};
use args::{CliCommand, OnError, RunArgs};
use console::{Console, Verbosity};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Runs the command line that the process was started with. Returns the exit status.
pub fn main() -> ExitCode {
    crate::os::limits::save_address_space();
    match args::parse() {
        Ok(cli) => ExitCode::from(stdout::finish(dispatch(cli))),
        Err(code) => ExitCode::from(stdout::finish(code)),
    }
}

fn dispatch(cli: args::Cli) -> u8 {
    let script = cli.script.or(cli.file);
    match (cli.command, script) {
        (None, Some(script)) => find(&script).map_or(2, |found| run(&found, &cli.run)),
        (None, None) if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => repl(None, &cli.run),
        (None, None) if std::io::stdin().is_terminal() => nothing_to_run(),
        // `wmlrun << END` and `wmlrun < script` run the script, as in Filebench 1.4.
        (None, None) => match find("-") {
            Some(found) if found.text.trim().is_empty() => nothing_to_run(),
            found => found.map_or(2, |found| run(&found, &cli.run)),
        },
        (Some(command), _) => match command {
            CliCommand::Run { script, run: args } => find(&script).map_or(2, |found| run(&found, &args)),
            CliCommand::Repl { script, run } => repl(script.as_deref(), &run),
            CliCommand::Check { scripts, dump, dialect, set } => stages::check(&scripts, dump, dialect, &set),
            CliCommand::Fmt { scripts, write, check } => stages::fmt(&scripts, write, check),
            CliCommand::Plan { script, list, run } => plan(&script, list, &run),
            CliCommand::Batch { profile, run } => run_batch(&profile, &run),
            CliCommand::Repeat(args) => experiments::repeat(&args),
            CliCommand::Ab(args) => experiments::ab(&args),
            CliCommand::Floor(args) => experiments::floor(&args),
            CliCommand::Compare(args) => experiments::compare(&args),
            CliCommand::Prune { dirs } => dirs.iter().map(|dir| experiments::prune(dir)).max().unwrap_or_default(),
            CliCommand::Sweep(args) => curves::sweep(&args),
            CliCommand::Ort { file, method, format } => curves::ort(&file, method, format),
            CliCommand::Report { paths, output } => pages::report(&paths, output.as_deref()),
            CliCommand::List { what } => info::list(&what),
            CliCommand::Show { name } => info::show(&name),
            CliCommand::Explain { code } => info::explain(&code),
            CliCommand::Clean { dirs } => dirs.iter().map(|dir| info::clean(dir)).max().unwrap_or_default(),
            CliCommand::Completions { shell } => info::completions(&shell),
            CliCommand::Man { dir } => info::manual(&dir),
        },
    }
}

/// Finds a script by its name: a file, `-` for standard input, or a personality. Returns `None` after it has printed
/// an error.
fn find(name: &str) -> Option<library::FoundScript> {
    find_for(name, &mut |text, help| console::error(text, Some(help)))
}

/// Finds a script by its name. Returns `None` after it has passed an error and its help to `refuse`.
fn find_for(name: &str, refuse: &mut dyn FnMut(&str, &str)) -> Option<library::FoundScript> {
    if name == "-" {
        return match library::read_bytes(std::io::stdin()) {
            Ok(bytes) => Some(library::FoundScript::new("<stdin>".to_owned(), bytes, None)),
            Err(e) => {
                refuse(&format!("can't read standard input: {e}"), "give the script as a file");
                None
            }
        };
    }
    match library::find_named(name) {
        Ok(found) => Some(found),
        Err(library::NotFound::Unreadable(path, e)) => {
            refuse(&format!("{} can't be read: {e}", path.display()), library::help(&e));
            None
        }
        Err(library::NotFound::Nowhere(near)) => {
            let help = near
                .map_or("`wmlrun list` lists the shipped personalities".to_owned(), |n| format!("did you mean `{n}`?"));
            refuse(&format!("no file or personality is named `{name}`"), &help);
            None
        }
    }
}

fn run(found: &library::FoundScript, args: &RunArgs) -> u8 {
    let settings = settings(args);
    let (interrupt, _) = signals::install_handlers();
    let Some(mut console) = console_for(&settings, args.format, args.verbosity()) else { return 2 };
    let mut session = watched(settings, &interrupt, args.quiet);
    let scripts: Vec<PathBuf> = found.path.iter().cloned().collect();
    let mut status = session.runner.open_outputs(&scripts, &mut console);
    if status == Status::Done {
        console.begin(&session.runner.document);
        status = session.script(&found.name, &found.text, &mut console);
        console.end(&session.runner.document);
    }
    session.runner.note_status(status);
    let watch = session.watch();
    let status = session.finish(&mut console).max(status).code();
    watchdog::end(&watch, status)
}

/// Creates a session and starts its watchdog thread.
fn watched(settings: Settings, interrupt: &Arc<AtomicUsize>, quiet: bool) -> Session {
    let limit = settings.prepare_timeout;
    let session = Session::new(settings, Arc::clone(interrupt));
    watchdog::start(&session.watch(), Arc::clone(interrupt), limit, quiet);
    session
}

fn run_batch(profile: &std::path::Path, args: &RunArgs) -> u8 {
    let settings = settings(args);
    if stdout_taken(&settings).is_none() {
        return 2;
    }
    let mut host = TerminalHost {
        settings: &settings,
        format: args.format,
        verbosity: args.verbosity(),
        interrupt: signals::install_handlers().0,
    };
    batch::run(profile, &settings, &mut host)
}

/// The command line's implementation of [`batch::BatchHost`].
struct TerminalHost<'a> {
    settings: &'a Settings,
    format: &'static dyn report::Report,
    verbosity: Verbosity,
    interrupt: Arc<AtomicUsize>,
}

impl batch::BatchHost for TerminalHost<'_> {
    fn front(&mut self) -> Box<dyn Front> {
        let console = console_for(self.settings, self.format, self.verbosity);
        Box::new(console.unwrap_or_else(|| Console::new(self.format, self.verbosity)))
    }

    fn session(&mut self, settings: Settings) -> Session {
        watched(settings, &self.interrupt, false)
    }

    fn interrupt(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.interrupt)
    }
}

/// Returns whether `--json` or `--trace` writes to standard output, so that the report must not. If both do, prints an
/// error and returns `None`.
fn stdout_taken(settings: &Settings) -> Option<bool> {
    let is_stdout =
        |path: &Path| ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|p| path == Path::new(p));
    let outputs = settings.json.iter().chain(settings.trace.iter().map(|(path, _)| path));
    match outputs.filter(|path| is_stdout(path)).count() {
        2 => {
            console::error("`--json` and `--trace` both go to standard output", Some("give one of them a file"));
            None
        }
        n => Some(n > 0),
    }
}

/// Creates the console for the report and the messages. With `--json -` a report in JSON is suppressed, since it would
/// repeat the same text. Returns `None` after it has printed an error.
fn console_for(settings: &Settings, format: &'static dyn report::Report, verbosity: Verbosity) -> Option<Console> {
    let taken = stdout_taken(settings)?;
    let none = report::find("none").filter(|_| taken && format.name() == "json");
    Some(Console::new(none.unwrap_or(format), verbosity).without_stdout(taken))
}

fn plan(script: &str, list: bool, args: &RunArgs) -> u8 {
    let settings = settings(args);
    let Some(found) = find(script) else { return 2 };
    let mut console = Console::new(report::TABLE[0], args.verbosity());
    let mut session = Session::new(settings, signals::install_handlers().0);
    stages::plan(&mut session, &found, list, &mut console)
}

/// Prints the error that there is no script. Returns the exit status.
fn nothing_to_run() -> u8 {
    console::error(
        "no script given",
        Some("`wmlrun SCRIPT` runs a script, `wmlrun list` lists the shipped ones; see also `wmlrun --help`"),
    );
    2
}

fn repl(script: Option<&str>, args: &RunArgs) -> u8 {
    let settings = settings(args);
    let found = match script.map(find) {
        Some(None) => return 2,
        Some(found) => found,
        None => None,
    };
    let Some(mut console) = console_for(&settings, args.format, args.verbosity()) else { return 2 };
    let (number, first) = signals::install_handlers();
    let mut session = watched(settings, &number, args.quiet);
    let watch = session.watch();
    let scripts: Vec<PathBuf> = found.iter().filter_map(|f| f.path.clone()).collect();
    let status = session.runner.open_outputs(&scripts, &mut console);
    if status != Status::Done {
        return status.code();
    }
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let script = found.as_ref().map(|f| (f.name.as_str(), f.text.as_str()));
    let status = crate::prompt::run(session, script, terminal, crate::prompt::Signals { first }, &mut console);
    watchdog::end(&watch, status.code())
}

/// Converts the options to settings, with defaults for those that were not given.
fn settings(args: &RunArgs) -> Settings {
    let RunArgs { workload, .. } = args;
    let mut sets = workload.set.clone();
    if let Some(dir) = &workload.dir {
        sets.push(("dir".to_owned(), dir.clone()));
    }
    let defaults = Settings::default();
    Settings {
        runtime: workload.runtime,
        sets,
        seed: workload.seed.unwrap_or_else(fresh_seed),
        layout_seed: workload.layout_seed,
        warmup: workload.warmup.unwrap_or(WarmupLength::NONE),
        interval: workload.interval.unwrap_or(defaults.interval),
        dialect: workload.dialect,
        engine: workload.engine.unwrap_or(engine::DEFAULT),
        populate_threads: workload.populate_threads.map_or(defaults.populate_threads, usize::from),
        pin: workload.pin,
        cold: workload.cold,
        quiesce: !workload.no_quiesce,
        mkdir: workload.mkdir,
        required: Required { types: workload.require_fs.clone(), mount: workload.require_mount.clone() },
        as_is: workload.as_is,
        prepare_timeout: workload
            .prepare_timeout
            .map_or(defaults.prepare_timeout, |t| Some(t).filter(|t| !t.is_zero())),
        keep: workload.keep,
        clean: workload.clean,
        adopt: workload.adopt,
        count_errors: workload.on_error == OnError::Count,
        allow_system: workload.allow_system,
        allow_device: workload.allow_device.clone(),
        digest: workload.digest,
        trace: workload.trace.clone(),
        json: args.json.clone(),
        record_env: workload.record_env,
        redact: workload.redact,
        results: args.results.clone().unwrap_or(defaults.results),
        allow_write: workload.allow_write.clone(),
        allow_drop_caches: workload.allow_drop_caches,
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
    }
}

/// Returns a new random seed of at most 44 bits, short enough to be typed.
fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) >> 20
}
