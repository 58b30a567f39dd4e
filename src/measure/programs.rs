//! Commands that a script starts: `system` and `stats command`.

use super::collector::{Collector, unkillable};
use super::{Front, Runner};
use crate::os::child::Group;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

impl Runner {
    /// `stats command`: starts a collector instead of the running one. Shows a note if it can't be started.
    pub fn collect(&mut self, command: &str, front: &mut dyn Front) {
        // Only one at a time, as in Filebench.
        self.end_collector(front);
        // The command may change the trees at any time.
        self.invalidate_stamps();
        match Collector::start(command, &self.results_dir()) {
            Ok(collector) => self.collector = Some(collector),
            Err(e) => front.note(&format!("can't start `{command}`: {e}")),
        }
    }

    /// Ends the collector if there is one.
    pub(crate) fn end_collector(&mut self, front: &mut dyn Front) {
        if let Some(text) = self.collector.take().and_then(Collector::end) {
            front.note(&text);
        }
    }

    /// `system`: runs a command and returns its exit status. A signal ends the command; then the result is `None`.
    pub fn run_command(&mut self, command: &str, front: &mut dyn Front) -> io::Result<Option<ExitStatus>> {
        let status = self.run_to_end(command, front)?;
        self.trees.caches_dropped |= status.is_some_and(|status| status.success()) && drops_inodes(command);
        Ok(status)
    }

    fn run_to_end(&mut self, command: &str, front: &mut dyn Front) -> io::Result<Option<ExitStatus>> {
        const POLL_INTERVAL: Duration = Duration::from_millis(50);
        const GRACE: Duration = Duration::from_secs(1);
        // The command may change the trees, and mount file systems over them.
        self.invalidate_stamps();
        // As in Filebench, `stats directory` sets the directory of later commands too.
        let dir = self.outputs.stats_dir.is_some().then(|| self.results_dir());
        let mut group = Group::start(command, false, dir.as_deref())?;
        loop {
            if let Some(status) = group.wait(POLL_INTERVAL)? {
                return Ok(Some(status));
            }
            if self.signal() != 0 {
                if !group.end(GRACE) {
                    front.note(&unkillable(group.id()));
                }
                return Ok(None);
            }
        }
    }
}

/// Returns whether a command seems to drop the dentries and inodes of the machine: it names `drop_caches`, and not only
/// with a 1, which stands for the page cache.
fn drops_inodes(command: &str) -> bool {
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
