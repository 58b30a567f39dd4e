//! `stats command`: a command that runs beside the measurement until the next `stats snap`.
//!
//! It is started in a process group of its own, and that group is all that is ended: Filebench 1.4 ended every process of the
//! user.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What the command is given to end by itself after it was asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// A command that runs.
#[derive(Debug)]
pub(super) struct Collector {
    child: Child,
}

impl Collector {
    /// Starts it by the shell. What it prints goes to standard error, beside the results.
    pub(super) fn start(command: &str) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).process_group(0).stdin(Stdio::null()).stdout(io::stderr());
        Ok(Self { child: shell.spawn()? })
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Ends it and whatever it has started.
impl Drop for Collector {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}
