//! Commands that a script starts: `system`, and `stats command`, which runs during the measurement until the next
//! `stats snap`.
//!
//! Each runs in a process group of its own, and only that group is ended. Filebench 1.4 ended every process of the user.

use super::Front;
use super::watch::Watch;
use crate::os::child::Group;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
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
fn unkillable(process: i32) -> String {
    format!("process {process} is still in a system call that can't be interrupted; it is left behind")
}

/// Runs a command in a directory and returns its exit status. A signal ends the command; then the result is `None`.
pub(crate) fn run(
    command: &str,
    dir: Option<&Path>,
    watch: &Watch,
    front: &mut dyn Front,
) -> io::Result<Option<ExitStatus>> {
    const POLL_INTERVAL: Duration = Duration::from_millis(50);
    const GRACE: Duration = Duration::from_secs(1);
    let mut group = Group::start(command, false, dir)?;
    loop {
        if let Some(status) = group.wait(POLL_INTERVAL)? {
            return Ok(Some(status));
        }
        if watch.signal() != 0 {
            if !group.end(GRACE) {
                front.note(&unkillable(group.id()));
            }
            return Ok(None);
        }
    }
}

/// True if a command seems to drop the dentries and inodes of the machine: it names `drop_caches`, and not only
/// with a 1, which stands for the page cache.
pub(crate) fn drops_inodes(command: &str) -> bool {
    let words = command.split(|c: char| !c.is_ascii_alphanumeric());
    let has = |number: &str| words.clone().any(|word| word == number);
    let (pages, inodes) = (has("1"), has("2") || has("3"));
    command.contains("drop_caches") && (inodes || !pages)
}

#[cfg(test)]
mod tests {
    use super::drops_inodes;

    #[test]
    fn commands_that_drop_inodes_are_recognised() {
        for command in [
            "echo 3 > /proc/sys/vm/drop_caches",
            "sync; echo 2 | sudo tee /proc/sys/vm/drop_caches",
            "sysctl -w vm.drop_caches=3",
            "/root/bin/drop_caches.sh",
            "sleep 1; sysctl vm.drop_caches=3",
        ] {
            assert!(drops_inodes(command), "{command}");
        }
        for command in ["echo 1 > /proc/sys/vm/drop_caches", "sysctl vm.drop_caches=1", "sync", "echo 3 > file"] {
            assert!(!drops_inodes(command), "{command}");
        }
    }
}
