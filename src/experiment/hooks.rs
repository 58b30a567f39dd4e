//! Commands between runs: a table of when each runs, and how it is run.

use crate::os::child::Group;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A point at which a command may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Its option, without the dashes.
    pub name: &'static str,
    /// Whether it runs before the run, or after it.
    pub before: bool,
    /// The arm it belongs to; `None`: every run.
    pub arm: Option<usize>,
    /// One line for the help.
    pub about: &'static str,
}

/// Every hook. Before a run the common one comes first, after it last.
pub const HOOKS: [Hook; 6] = [
    Hook { name: "before", before: true, arm: None, about: "Run this command before each run" },
    Hook { name: "before-a", before: true, arm: Some(0), about: "Run this command before each run of A" },
    Hook { name: "before-b", before: true, arm: Some(1), about: "Run this command before each run of B" },
    Hook { name: "after-a", before: false, arm: Some(0), about: "Run this command after each run of A" },
    Hook { name: "after-b", before: false, arm: Some(1), about: "Run this command after each run of B" },
    Hook { name: "after", before: false, arm: None, about: "Run this command after each run" },
];

/// The commands of an experiment by the names of their hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hooks(pub BTreeMap<String, String>);

impl Hooks {
    /// The commands before, or after, a run of an arm, in their order.
    pub(super) fn of(&self, before: bool, arm: usize) -> Vec<(&'static str, &str)> {
        let runs = |hook: &&Hook| hook.before == before && hook.arm.is_none_or(|of| of == arm);
        HOOKS.iter().filter(runs).filter_map(|hook| Some((hook.name, self.0.get(hook.name)?.as_str()))).collect()
    }
}

/// What a command did.
#[derive(Debug)]
pub(super) enum HookEnd {
    /// It succeeded, after so long.
    Done(Duration),
    /// It ended otherwise, in words.
    Failed(String),
    /// The user ended the experiment meanwhile.
    Interrupted,
}

/// Runs a command by the shell; what it prints goes to `log`. A command that is still running after `limit` is ended with all that
/// it has started; one that has succeeded may leave processes of its own.
pub(super) fn run(text: &str, log: &Path, limit: Duration, interrupted: &dyn Fn() -> bool) -> io::Result<HookEnd> {
    let file = File::create(log)?;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(text).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let began = Instant::now();
    let mut group = Group::spawn(shell)?;
    loop {
        if let Some(status) = group.wait(Duration::from_millis(50))? {
            return Ok(match status.success() {
                true => HookEnd::Done(began.elapsed()),
                false => HookEnd::Failed(status.to_string()),
            });
        }
        if interrupted() {
            group.end(Duration::from_secs(5));
            return Ok(HookEnd::Interrupted);
        }
        if began.elapsed() > limit {
            group.end(Duration::from_secs(5));
            return Ok(HookEnd::Failed(format!("it ran for more than {} s", limit.as_secs())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_of_an_arm_run_inside_the_common_ones() {
        let hooks = Hooks(HOOKS.iter().map(|hook| (hook.name.to_owned(), hook.name.to_owned())).collect());
        let names = |before, arm| hooks.of(before, arm).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(true, 1), ["before", "before-b"]);
        assert_eq!(names(false, 0), ["after-a", "after"]);
        assert!(Hooks::default().of(true, 0).is_empty());
    }
}
