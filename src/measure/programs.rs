//! Programs that a script starts: `system` and `stats command`.

use super::collector::{Collector, left_behind};
use super::{Front, Runner};
use crate::os::child::Group;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

impl Runner {
    /// `stats command`: starts a collector in place of the one that runs, and notes it if it can't be started.
    pub fn collect(&mut self, command: &str, front: &mut dyn Front) {
        // Only one at a time, as in Filebench.
        self.end_collector(front);
        match Collector::start(command, &self.results_dir()) {
            Ok(collector) => self.collector = Some(collector),
            Err(e) => front.note(&format!("`{command}` can't be started: {e}")),
        }
    }

    /// Ends the collector, if there is one.
    pub(crate) fn end_collector(&mut self, front: &mut dyn Front) {
        if let Some(text) = self.collector.take().and_then(Collector::end) {
            front.note(&text);
        }
    }

    /// `system`: runs a command to its end, or to the first signal, which ends it too: then `None`.
    pub fn run_command(&mut self, command: &str, front: &mut dyn Front) -> io::Result<Option<ExitStatus>> {
        const LOOK: Duration = Duration::from_millis(50);
        const SOON: Duration = Duration::from_secs(1);
        // It may do anything to the trees, and mount others.
        self.distrust_sets();
        let mut group = Group::start(command, false, None)?;
        loop {
            if let Some(status) = group.wait(LOOK)? {
                return Ok(Some(status));
            }
            if self.signal() != 0 {
                if !group.end(SOON) {
                    front.note(&left_behind(group.id()));
                }
                return Ok(None);
            }
        }
    }
}
