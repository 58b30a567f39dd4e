//! Runs by a launcher of several processes, such as `mpirun`: starting it, and being one of its processes.
//!
//! A command that several processes would do again, or whose files they would all remove, is refused.

use super::args::CliCommand;
use crate::diag::{Failure, Status};
use crate::hosts::{HostList, Starter, whole_path};
use crate::os::signals;
use crate::ranks::Launch;
#[cfg(feature = "mpi")]
use crate::ranks::{Others as _, RankGroup};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
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

/// Runs the launcher of ranks on these hosts, each of which has this command line. Returns its status.
pub(super) fn start(hosts: &HostList) -> Result<u8, Failure> {
    if let Some(Launch { command, .. }) = launch() {
        return Err(Failure::wrong(
            format!("`--hosts` starts the ranks itself, also under `{command}`"),
            "omit one of them",
        ));
    }
    let (interrupt, _) = signals::install_handlers();
    let _kept = signals::Kept::begin();
    let signal = || interrupt.load(SeqCst);
    let ended = Starter::find().and_then(|starter| {
        starter.check_builds(hosts, &|| signal() > 0)?;
        let mut words = with_whole_paths(std::env::args_os().skip(1).collect());
        let is_command = words.first().is_some_and(|word| word == "run");
        words.insert(usize::from(is_command), "--as-rank".into());
        starter.run(hosts, &words, &signal)
    });
    match u8::try_from(signal()) {
        Ok(signal) if signal > 0 => Err(Failure::unexplained(Status::Interrupted(signal))),
        _ => ended,
    }
}

/// The options whose directory is that of file sets.
const PLACES: [&str; 2] = ["--dir", "--below"];

/// The same command line with whole paths of these directories.
fn with_whole_paths(mut words: Vec<OsString>) -> Vec<OsString> {
    let mut is_path = false;
    for word in &mut words {
        let after = |option: &&str| word.as_bytes().strip_prefix(option.as_bytes())?.strip_prefix(b"=");
        let path = if is_path { Some(word.as_bytes()) } else { PLACES.iter().find_map(after) };
        is_path = !is_path && PLACES.iter().any(|option| word == option);
        let Some(path) = path else { continue };
        if let Some(whole) = whole_path(Path::new(OsStr::from_bytes(path))) {
            let option = &word.as_bytes()[..word.len() - path.len()];
            *word = OsString::from_vec([option, whole.as_os_str().as_bytes()].concat());
        }
    }
    words
}

/// Connects this process with the others that a launcher started with it. `None` if it is alone.
#[cfg(feature = "mpi")]
pub(super) fn connect(interrupt: &Arc<AtomicUsize>) -> Result<Option<Arc<RankGroup>>, String> {
    let Some(Launch { command, size, .. }) = launch() else { return Ok(None) };
    signals::take_passed_on();
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
            // An experiment shows this line of a run that fails.
            format!(
                "`{command}` started {size} processes, each of which would run the whole workload: use `wmlrun-mpi`, of \
                 the package wmlrun-mpi"
            ),
            format!("this build has no MPI; without `{command}` it runs as one process"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn directories_are_the_same_on_a_host_without_the_current_one() {
        let parent = |path: PathBuf| path.parent().map(Path::to_owned).unwrap_or_default();
        // As the shell names it.
        let here = parent(whole_path(Path::new("d")).unwrap_or_default()).display().to_string();
        let above = parent(std::env::current_dir().unwrap_or_default()).display().to_string();
        let words = [
            "x.wml",
            "--dir",
            "d",
            "--below=b",
            "--set",
            "dir=d",
            "--dir=.././d/../e",
            "--dir=/d/..",
            "--dirt=d",
            "--json",
            "j",
        ];
        let whole = with_whole_paths(words.map(OsString::from).to_vec());
        let expected = format!(
            "x.wml --dir {here}/d --below={here}/b --set dir=d --dir={above}/d/../e --dir=/d/.. --dirt=d --json j"
        );
        assert_eq!(whole.join(" ".as_ref()).display().to_string(), expected);
        let odd = ["--dir", "--dir", "--dir="].map(OsString::from).to_vec();
        assert_eq!(with_whole_paths(odd), [OsString::from("--dir"), format!("{here}/--dir").into(), "--dir=".into()]);
        // A name that is no text stays as it is.
        let name = with_whole_paths(vec![OsString::from_vec(b"--dir=\xff".to_vec())]);
        assert_eq!(name[0].as_bytes(), [format!("--dir={here}/").as_bytes(), b"\xff"].concat());
    }
}
