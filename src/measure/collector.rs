//! The command of `stats command`, which runs beside the measurement until the next `stats snap`.
//!
//! It is started in a process group of its own, and that group is all that is ended: Filebench 1.4 ended every process of the
//! user.

use crate::os::child::Group;
use std::io;
use std::path::Path;
use std::time::Duration;

/// What the command is given to end by itself after it was asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Collector {
    group: Group,
}

impl Collector {
    /// Starts it by the shell in the directory where results lie, as Filebench's `stats directory` has it. What it prints goes to
    /// standard error, beside the results.
    pub(crate) fn start(command: &str, dir: &Path) -> io::Result<Self> {
        Ok(Self { group: Group::start(command, true, Some(dir))? })
    }

    /// Ends it and whatever it has started. If that can't be ended: what to say of it.
    pub(crate) fn end(mut self) -> Option<String> {
        (!self.group.end(PATIENCE)).then(|| left_behind(self.group.id()))
    }
}

/// What is said of a command that can't be ended.
pub(crate) fn left_behind(process: i32) -> String {
    format!("process {process} is still in a call that can't be ended, and is left behind")
}
