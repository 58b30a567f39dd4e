//! Runs by a launcher of several processes, such as `mpirun`: starting it, and being one of its processes.
//!
//! A command that several processes would do again, or whose files they would all remove, is refused.

use super::args::CliCommand;
use crate::diag::{Failure, Status};
use crate::hosts::{HostList, Starter};
use crate::os::signals;
use crate::ranks::Launch;
#[cfg(feature = "mpi")]
use crate::ranks::{Others as _, RankGroup};
use std::ffi::OsString;
use std::sync::atomic::Ordering::SeqCst;
#[cfg(feature = "mpi")]
use std::sync::{Arc, atomic::AtomicUsize};

/// Returns the launch of this process by a launcher of several.
fn launch() -> Option<Launch> {
    Launch::detect(|name| std::env::var(name).ok())
}

/// True if a launcher started this process as one of several.
pub(super) fn is_one_of_several() -> bool {
    launch().is_some()
}

/// Becomes the launcher of ranks on these hosts, each of which has this command line. Returns only if that fails.
pub(super) fn start(hosts: &HostList) -> Failure {
    if let Some(Launch { command, .. }) = launch() {
        return Failure::wrong(
            format!("`--hosts` starts the ranks itself, also under `{command}`"),
            "omit one of them",
        );
    }
    let (interrupt, _) = signals::install_handlers();
    let _kept = signals::Kept::begin();
    let signal = || interrupt.load(SeqCst);
    let started = Starter::find().and_then(|starter| {
        starter.check_builds(hosts, &|| signal() > 0)?;
        let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
        let is_command = words.first().is_some_and(|word| word == "run");
        words.insert(usize::from(is_command), "--as-rank".into());
        Ok(starter.start(hosts, &words))
    });
    match u8::try_from(signal()) {
        Ok(signal) if signal > 0 => Failure::unexplained(Status::Interrupted(signal)),
        _ => started.unwrap_or_else(|failure| failure),
    }
}

/// Connects this process with the others that a launcher started with it. `None` if it is alone.
#[cfg(feature = "mpi")]
pub(super) fn connect(interrupt: &Arc<AtomicUsize>) -> Result<Option<Arc<RankGroup>>, String> {
    let Some(Launch { command, size, .. }) = launch() else { return Ok(None) };
    let group = crate::ranks::connect(Arc::clone(interrupt))?;
    // Each process would be rank 0, and run the whole workload.
    if size > 1 && group.hosts().len() == 1 {
        return Err(format!(
            "`{command}` started {size} processes, but MPI connects this one with no other: the launcher belongs to \
             another MPI library than the one that wmlrun was built with"
        ));
    }
    Ok(Some(Arc::new(group)))
}

/// Refuses a command that must not run in each process of a launcher. The first process says why, once for all of them.
/// `command` is `None` for a script or the shell.
pub(super) fn check(command: Option<&CliCommand>) -> Result<(), Failure> {
    let (Some(work), Some(Launch { command, size, rank })) = (work(command), launch()) else { return Ok(()) };
    if matches!(work, Work::Run) && cfg!(feature = "mpi") {
        return Ok(());
    }
    if rank > 0 {
        return Err(Failure::unexplained(Status::Script));
    }
    let (what, help) = match work {
        Work::Experiment(name) => (
            format!("`{command}` started {size} processes, each of which would make the whole experiment"),
            format!(
                "start `wmlrun {name}` once; the place for a command that starts each run is \
                 `--launch '{command} -n {size} …'`"
            ),
        ),
        Work::Run => (
            format!("`{command}` started {size} processes, each of which would run the whole workload"),
            format!(
                "this build has no MPI: start `wmlrun-mpi`, leave `{command}` to `--hosts`, or start one process without it"
            ),
        ),
        Work::Runs => (
            format!("`{command}` started {size} processes, each of which would do the whole work"),
            format!("start wmlrun once, without `{command}`"),
        ),
        Work::Removal(name) => (
            format!("`{command}` started {size} processes, each of which would remove the same files"),
            format!("start `wmlrun {name}` once, without `{command}`"),
        ),
    };
    Err(Failure::wrong(what, help))
}

/// The work of a command that only one process may do.
enum Work {
    /// It runs a script, which several processes can do together.
    Run,
    /// It runs workloads in this process.
    Runs,
    /// It starts runs as child processes. Has the name of the command.
    Experiment(&'static str),
    /// It removes files. Has the name of the command.
    Removal(&'static str),
}

/// Returns the work of a command; `None` if several processes may execute it.
fn work(command: Option<&CliCommand>) -> Option<Work> {
    let Some(command) = command else { return Some(Work::Run) };
    let work = match command {
        CliCommand::Run { .. } => Work::Run,
        CliCommand::Repl { .. }
        | CliCommand::Batch { .. }
        | CliCommand::Age(_)
        | CliCommand::Record(_)
        | CliCommand::Fidelity(_)
        | CliCommand::Replay(_) => Work::Runs,
        CliCommand::Repeat(args) if args.floor => Work::Experiment("repeat --floor"),
        CliCommand::Repeat(_) => Work::Experiment("repeat"),
        CliCommand::Ab(_) => Work::Experiment("ab"),
        CliCommand::Sweep(_) => Work::Experiment("sweep"),
        CliCommand::Experiment(_) => Work::Experiment("experiment"),
        CliCommand::Clean { logs, .. } => Work::Removal(if *logs { "clean --logs" } else { "clean" }),
        CliCommand::Check { .. }
        | CliCommand::Init { .. }
        | CliCommand::Fmt { .. }
        | CliCommand::Plan { .. }
        | CliCommand::Compare(_)
        | CliCommand::Report { .. }
        | CliCommand::History { .. }
        | CliCommand::Trace { .. }
        | CliCommand::List { .. }
        | CliCommand::Show { .. }
        | CliCommand::Doctor { .. }
        | CliCommand::Explain { .. }
        | CliCommand::Learn { .. }
        | CliCommand::Setup { .. } => return None,
    };
    Some(work)
}
