//! The command of `stats command`, which runs during the measurement until the next `stats snap`.
//!
//! It runs in a process group of its own, and only that group is ended. Filebench 1.4 ended every process of the user.

use crate::os::child::Group;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// A running command.
#[derive(Debug)]
pub(crate) struct Collector {
    group: Group,
}

impl Collector {
    /// Starts a command with the shell in the results directory, as Filebench does with `stats directory`. Its output
    /// goes to standard error, separate from the results.
    pub(crate) fn start(command: &str, dir: &Path) -> io::Result<Self> {
        Ok(Self { group: Group::start(command, true, Some(dir))? })
    }

    /// Ends the command and the processes that it has started. Returns a message if that fails, or if the command had
    /// failed by itself, such as one that is not installed.
    pub(crate) fn end(mut self) -> Option<String> {
        let before = self.group.wait(Duration::ZERO).ok().flatten();
        if !self.group.end(GRACE) {
            return Some(unkillable(self.group.id()));
        }
        let failed = before.filter(|status| !status.success())?;
        Some(format!("the command of `stats command` failed during the measurement: {failed}"))
    }
}

/// Returns the message on a command that can't be ended.
pub(crate) fn unkillable(process: i32) -> String {
    format!("process {process} is still in a system call that can't be interrupted; it is left behind")
}
