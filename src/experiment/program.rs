//! Starts this program for a run and waits for its end, and finds the reason why a run failed.
//!
//! Not in here: what is done before and after a run, and what a failure does to the experiment (`runner`).

use super::folder::{Folder, FolderError};
use super::runner::{ExperimentError, ExperimentHost};
use crate::os::child::Group;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The time that a run has to end after it was signalled.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// Executes the program for a run of an arm. Returns an error when it fails or the experiment is interrupted.
pub(super) fn run_program(
    folder: &Folder,
    number: usize,
    arm: usize,
    seed: u64,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let experiment = &folder.experiment;
    let program = host.program().display().to_string();
    let mut words: Vec<String> = experiment.launch.clone();
    words.push(program);
    words.extend(experiment.arms[arm].words.iter().cloned());
    if !words.iter().any(|word| word == "--seed" || word.starts_with("--seed=")) {
        words.push(format!("--seed={seed}"));
    }
    words.push(format!("--json={}", folder.result(number).display()));
    // The file of a run that is repeated may have any content.
    words.push("--force".to_owned());
    words.push(format!("--results={}", folder.files(number).display()));
    words.push("--format=none".to_owned());
    let log = folder.log(number);
    let io = |error| FolderError::Io { path: log.clone(), error };
    let file = File::create(&log).map_err(io)?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(file.try_clone().map_err(io)?).stderr(file);
    let mut group = Group::spawn(command).map_err(|e| ExperimentError::Failed {
        why: format!("can't start `{}`: {e}", words[0]),
        help: "check the program that `--launch` names".to_owned(),
        status: 3,
    })?;
    loop {
        match group.wait(Duration::from_millis(100)).map_err(io)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                if let Some(signal) = host.interrupted() {
                    return Err(ExperimentError::Interrupted(signal));
                }
                let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
                return Err(failed(folder, number, status.to_string(), code));
            }
            None => {}
        }
        if let Some(signal) = host.interrupted() {
            group.end(END_TIMEOUT);
            return Err(ExperimentError::Interrupted(signal));
        }
    }
}

/// Makes the error of a failed run.
pub(super) fn failed(folder: &Folder, number: usize, why: String, status: u8) -> ExperimentError {
    ExperimentError::Failed {
        why: format!("run {number} failed: {}", reason(folder, number).unwrap_or(why)),
        help: format!("see {}", folder.log(number).display()),
        status,
    }
}

/// Returns the last error message in a run's output, or `None` when there is none.
pub(super) fn reason(folder: &Folder, number: usize) -> Option<String> {
    let text = std::fs::read_to_string(folder.log(number)).ok()?;
    let line = text.lines().rev().find(|line| line.starts_with("error"))?;
    Some(line.strip_prefix("error: ").unwrap_or(line).to_owned())
}
