//! Hooks: the commands before and after runs, and their execution.

use crate::import::CommandTimes;
use crate::os::OFlags;
use crate::os::child::{CpuTimes, Group};
use crate::os::held_dir::HeldDir;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub use crate::import::HookTime;

/// A point of an experiment at which a command can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The name of its option, without the dashes.
    pub name: &'static str,
    /// Whether it runs before or after the run.
    pub time: HookTime,
    /// The index of the arm to whose runs it applies; `None` for all runs.
    pub arm: Option<usize>,
    /// The description for `--help`, one line.
    pub about: &'static str,
}

/// All hooks, in the order of execution: before a run the hook of all runs is the first, after a run it is the last.
pub const HOOKS: [Hook; 6] = [
    Hook {
        name: "before",
        time: HookTime::Before,
        arm: None,
        about: "Run this command before each run, before all others",
    },
    Hook {
        name: "before-a",
        time: HookTime::Before,
        arm: Some(0),
        about: "Run this command before each run of A, after that of `--before`",
    },
    Hook {
        name: "before-b",
        time: HookTime::Before,
        arm: Some(1),
        about: "Run this command before each run of B, after that of `--before`",
    },
    Hook {
        name: "after-a",
        time: HookTime::After,
        arm: Some(0),
        about: "Run this command after each run of A, before that of `--after`",
    },
    Hook {
        name: "after-b",
        time: HookTime::After,
        arm: Some(1),
        about: "Run this command after each run of B, before that of `--after`",
    },
    Hook {
        name: "after",
        time: HookTime::After,
        arm: None,
        about: "Run this command after each run, after all others",
    },
];

/// The commands of an experiment, by the names of their hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hooks(pub BTreeMap<String, String>);

impl Hooks {
    /// Returns the commands before or after a run of an arm, in the order of execution, with the names of their hooks.
    pub(super) fn of(&self, time: HookTime, arm: usize) -> Vec<(&'static str, &str)> {
        let runs = |hook: &&Hook| hook.time == time && hook.arm.is_none_or(|of| of == arm);
        HOOKS.iter().filter(runs).filter_map(|hook| Some((hook.name, self.0.get(hook.name)?.as_str()))).collect()
    }
}

/// The maximum length of a command's output, in bytes. A command that prints more fails.
pub(super) const MAX_OUTPUT: u64 = 16 << 20;

/// The result of a command.
#[derive(Debug)]
pub(super) enum HookEnd {
    /// The command succeeded and took these times.
    Done(CommandTimes),
    /// The command failed, for this reason.
    Failed(String),
    /// The experiment was interrupted while the command was running.
    Interrupted,
}

/// Runs a command with the shell and these environment variables, and writes its output to `log`. A command that runs
/// longer than `limit` or prints more than 16 MiB is ended, with all processes that it has started. A command that
/// succeeds may leave processes running.
pub(super) fn run(
    text: &str,
    variables: &[(String, String)],
    log: &Path,
    limit: Duration,
    interrupted: &dyn Fn() -> bool,
) -> io::Result<HookEnd> {
    let (dir, name) = HeldDir::of_entry(log)?;
    let file = dir.open_file(&name, OFlags::WRONLY | OFlags::CREATE)?;
    file.set_len(0)?;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(text).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
    shell.envs(variables.iter().map(|(name, value)| (name, value)));
    let prints_too_much = || file.metadata().is_ok_and(|meta| meta.len() > MAX_OUTPUT);
    let too_much = || -> io::Result<HookEnd> {
        file.set_len(MAX_OUTPUT)?;
        Ok(HookEnd::Failed(format!("it printed more than {} MiB", MAX_OUTPUT >> 20)))
    };
    let began = Instant::now();
    let mut group = Group::spawn(shell)?;
    loop {
        if let Some(status) = group.wait(Duration::from_millis(50))? {
            if prints_too_much() {
                return too_much();
            }
            return Ok(match status.success() {
                true => HookEnd::Done(times(began, group.times())),
                false => HookEnd::Failed(status.to_string()),
            });
        }
        if interrupted() {
            group.end(Duration::from_secs(5));
            return Ok(HookEnd::Interrupted);
        }
        if prints_too_much() {
            group.end(Duration::ZERO);
            return too_much();
        }
        if began.elapsed() > limit {
            group.end(Duration::from_secs(5));
            return Ok(HookEnd::Failed(format!("it ran for more than {} s", limit.as_secs_f64())));
        }
    }
}

/// The times of a command that has just ended.
fn times(began: Instant, used: CpuTimes) -> CommandTimes {
    let seconds = |ns: u64| Some(ns as f64 / 1e9);
    CommandTimes {
        seconds: began.elapsed().as_secs_f64(),
        user: seconds(used.user_ns),
        system: seconds(used.system_ns),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn hooks_of_an_arm_run_inside_the_common_ones() {
        let hooks = Hooks(HOOKS.iter().map(|hook| (hook.name.to_owned(), hook.name.to_owned())).collect());
        let names = |time, arm| hooks.of(time, arm).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(HookTime::Before, 1), ["before", "before-b"]);
        assert_eq!(names(HookTime::After, 0), ["after-a", "after"]);
        assert!(Hooks::default().of(HookTime::Before, 0).is_empty());
        assert!(HOOKS.iter().all(|hook| HookTime::of_hook(hook.name) == hook.time));
    }

    #[test]
    fn the_output_of_a_command_goes_through_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let (log, precious) = (dir.path().join("log"), dir.path().join("precious"));
        std::fs::write(&precious, "mine").unwrap();
        std::os::unix::fs::symlink(&precious, &log).unwrap();
        let run = || run("echo said", &[], &log, Duration::from_mins(1), &|| false);
        run().unwrap_err();
        assert_eq!(std::fs::read(&precious).unwrap(), b"mine");
        std::fs::remove_file(&log).unwrap();
        for _ in 0..2 {
            let HookEnd::Done(times) = run().unwrap() else { panic!("it failed") };
            // A shell that starts and ends needs some of both, in microseconds.
            assert!(times.user.unwrap() + times.system.unwrap() > 0.0, "{times:?}");
            assert_eq!(std::fs::read(&log).unwrap(), b"said\n");
        }
    }
}
