//! Starts this program for a run and waits for its end, and finds the reason why a run failed.
//!
//! Not in here: what is done before and after a run, and what a failure does to the experiment (`runner`).

use super::commands::{end_of, said};
use super::folder::Folder;
use super::folder_error::FolderError;
use super::hooks::MAX_OUTPUT;
use super::host::{ExperimentError, ExperimentHost};
use crate::os::child::Group;
use crate::os::{OFlags, signals};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// The environment variable that starts this program in the place of another one. Runs of experiments are its own.
pub const NAME_VARIABLE: &str = "WMLRUN_AS";

/// The time that a run has to end after it was signalled.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// The number of bytes at the end of a run's output in which the reason of a failure is looked for. They are kept if the
/// output becomes too long.
const LAST_OUTPUT: u64 = 64 << 10;

/// Executes the program for a run of an arm. Returns an error when it fails or the experiment is interrupted.
pub(super) fn run_program(
    folder: &Folder,
    number: usize,
    arm: usize,
    seed: u64,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let experiment = &folder.experiment;
    let own = &experiment.arms[arm].words;
    let mut words: Vec<OsString> = experiment.launch.iter().map(OsString::from).collect();
    words.push(host.program().into());
    words.extend(host.command(own).map(OsString::from));
    words.extend(own.iter().map(OsString::from));
    if !experiment.launch.iter().chain(own).any(|word| word == "--seed" || word.starts_with("--seed=")) {
        words.push(format!("--seed={seed}").into());
    }
    // A folder may have any name.
    let with_path = |option: &str, path: &Path| {
        let mut word = OsString::from(option);
        word.push(path);
        word
    };
    words.push(with_path("--json=", &folder.result(number)));
    // The file of a run that is repeated may have any content.
    words.push("--force".into());
    words.push(with_path("--results=", &folder.files(number)));
    words.push("--format=none".into());
    // A program that starts it may close all descriptors, or start it on another host.
    let runs = Some(folder.runs_dir()).filter(|_| experiment.launch.is_empty());
    let word = runs.map_or("--of-experiment".to_owned(), |dir| format!("--of-experiment={}", dir.as_fd().as_raw_fd()));
    words.push(word.into());
    let log = folder.log(number);
    let io = |error| FolderError::Io { path: log.clone(), error };
    // So that the run continues at the new end if the file is shortened. It does not exist yet.
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    let file = folder.runs_dir().open_file(log.file_name().unwrap_or_default(), flags).map_err(io)?;
    let copy = || file.try_clone().map_err(io);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(copy()?).stderr(copy()?).env_remove(NAME_VARIABLE);
    let help = match experiment.launch.is_empty() {
        true => "check the limits of processes and memory; `--resume` continues the experiment",
        false => "check the program that `--launch` names",
    };
    signals::second_breaks_off(signals::BrokenOff::Run);
    let mut group = Group::spawn_with(command, runs.map(AsFd::as_fd)).map_err(|e| ExperimentError::Failed {
        why: format!("can't start `{}`: {e}", words[0].display()),
        help: help.to_owned(),
        status: 3,
    })?;
    loop {
        let ended = group.wait(Duration::from_millis(100)).map_err(io)?;
        // The run itself does not depend on its output.
        let _ = shorten(&file, &log);
        match ended {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                if let Some(signal) = host.interrupted() {
                    return Err(ExperimentError::Interrupted(signal));
                }
                return Err(failed_with(folder, number, status));
            }
            None => host.waits(),
        }
        if let Some(signal) = host.interrupted() {
            group.end(END_TIMEOUT);
            return Err(ExperimentError::Interrupted(signal));
        }
    }
}

/// Shortens the output of a run to its end if it is longer than that of a command may be: the programs that a script
/// starts may print without end.
fn shorten(mut file: &File, log: &Path) -> io::Result<()> {
    if file.metadata()?.len() <= MAX_OUTPUT {
        return Ok(());
    }
    let end = end_of(log, LAST_OUTPUT)?;
    file.set_len(0)?;
    let note = format!("(the output was longer than {} MiB, and this is its end)\n", MAX_OUTPUT >> 20);
    file.write_all((note + &end).as_bytes())
}

/// Makes the error of a run whose program ended with this status.
fn failed_with(folder: &Folder, number: usize, status: ExitStatus) -> ExperimentError {
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        // The statuses of a shell, a launcher or the dynamic loader for a program that it can't execute.
        Some(126 | 127) => ExperimentError::Failed {
            why: format!("run {number} can't be started: {status}{}", said(&folder.log(number))),
            help: see_log(folder, number),
            status: 3,
        },
        code => failed(folder, number, status.to_string(), code.unwrap_or(1)),
    }
}

/// Returns the help that names the output of a run.
fn see_log(folder: &Folder, number: usize) -> String {
    format!("see {}", folder.log(number).display())
}

/// Makes the error of a failed run.
pub(super) fn failed(folder: &Folder, number: usize, why: String, status: u8) -> ExperimentError {
    ExperimentError::Failed {
        why: format!("run {number} failed: {}", reason(folder, number).unwrap_or(why)),
        help: see_log(folder, number),
        status,
    }
}

/// Returns the last error message in a run's output, with its code at the end, or `None` when there is none.
pub(super) fn reason(folder: &Folder, number: usize) -> Option<String> {
    let text = end_of(&folder.log(number), LAST_OUTPUT).ok()?;
    let line = text.lines().rev().find(|line| line.starts_with("error"))?;
    let coded = || {
        let (code, message) = line.strip_prefix("error[")?.split_once("]: ")?;
        Some(format!("{message} ({code})"))
    };
    Some(coded().unwrap_or_else(|| line.strip_prefix("error: ").unwrap_or(line).to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::{self, OpenOptions};

    #[test]
    fn a_long_output_is_shortened_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let file = OpenOptions::new().append(true).create(true).open(&log).unwrap();
        let mut of_run = file.try_clone().unwrap();
        of_run.write_all(&vec![b'x'; MAX_OUTPUT as usize]).unwrap();
        shorten(&file, &log).unwrap();
        assert_eq!(fs::metadata(&log).unwrap().len(), MAX_OUTPUT);
        of_run.write_all(b"\nerror: \xff\n").unwrap();
        shorten(&file, &log).unwrap();
        of_run.write_all(b"more\n").unwrap();
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.starts_with("(the output was longer than 16 MiB, and this is its end)\nxxx"), "{text:.99}");
        assert!(text.ends_with("xxx\nerror: \u{fffd}\nmore\n") && text.len() < 2 * LAST_OUTPUT as usize);
        assert_eq!(end_of(&log, 4).unwrap(), "ore\n");
        assert_eq!(end_of(&log, 1 << 20).unwrap(), text);
    }
}
