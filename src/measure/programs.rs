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
        const POLL_INTERVAL: Duration = Duration::from_millis(50);
        const GRACE: Duration = Duration::from_secs(1);
        // The command may change the trees, and mount file systems over them.
        self.invalidate_stamps();
        let mut group = Group::start(command, false, None)?;
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
