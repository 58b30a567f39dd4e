//! Watches that file systems answer before a run and after it: a thread of its own, since the one that asked them waits.
//!
//! Before a run it says what is waited for, and ends the program when nothing has moved for `--prepare-timeout`, or at the first
//! signal. After a run it leaves what can't be removed where it is. During a run nobody waits for a file system but the threads
//! that are measured.

use super::console::{error, notice};
use crate::disk::quiesce;
use crate::measure::{Stage, Waiting, Watch};
use crate::os::{blocked, signals, steps};
use crate::util::duration;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Nothing has moved for so long: it is said.
const SAID: Duration = Duration::from_secs(5);
/// And said again so often.
const AGAIN: Duration = Duration::from_secs(30);
/// What a file system is given after a signal.
const AFTER_SIGNAL: Duration = Duration::from_secs(1);
/// What it is given while trees are removed.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// What to do about a file system that does not answer.
const HELP: &str = "look whether its server or device is there (`dmesg`); `--prepare-timeout` says how long to wait";

/// Starts the watch of a session. Where no thread can be had, there is none.
pub(super) fn start(watch: &Arc<Watch>, interrupt: Arc<AtomicUsize>, limit: Option<Duration>, quiet: bool) {
    let mut dog = Watchdog {
        watch: Arc::downgrade(watch),
        interrupt,
        limit,
        quiet,
        seen: None,
        idle: Duration::ZERO,
        said: SAID,
    };
    let spawned = std::thread::Builder::new().name("watchdog".to_owned()).stack_size(128 << 10).spawn(move || {
        signals::block_ending_signals();
        while let Some(watch) = dog.watch.upgrade() {
            dog.look(&watch);
            drop(watch);
            std::thread::sleep(LOOK);
        }
    });
    drop(spawned);
}

struct Watchdog {
    watch: Weak<Watch>,
    interrupt: Arc<AtomicUsize>,
    limit: Option<Duration>,
    quiet: bool,
    /// What was waited for at the last look, the steps done then, and what the disks had to write.
    seen: Option<(u64, u64, u64)>,
    /// For how long nothing has moved. Counted by looks, so that time in which this program was stopped is not in it.
    idle: Duration,
    /// When it is said that nothing moves.
    said: Duration,
}

impl Watchdog {
    fn look(&mut self, watch: &Watch) {
        let Some(now) = watch.now() else {
            (self.seen, self.idle, self.said) = (None, Duration::ZERO, SAID);
            return;
        };
        let to_write = if now.is_quiescing { quiesce::dirty_bytes() } else { 0 };
        let seen = Some((now.number, steps::counted(), to_write));
        if seen != self.seen {
            (self.seen, self.idle, self.said) = (seen, Duration::ZERO, SAID);
            return;
        }
        self.idle += LOOK;
        // One that the waiting thread can't take is pending.
        let pending = signals::pending().map_or(0, |signal| signal as usize);
        let signal = self.interrupt.load(SeqCst).max(pending);
        match now.stage {
            Stage::Prepare if signal != 0 && self.idle >= AFTER_SIGNAL => {
                notice(&format!("note: interrupted while {}: {}", now.what, silent(&now, self.idle)));
                leave(&now, 128 + signal as u8);
            }
            Stage::Prepare if self.limit.is_some_and(|limit| self.idle >= limit) => {
                error(&format!("{}: {}", now.what, silent(&now, self.idle)), Some(HELP));
                leave(&now, 3);
            }
            Stage::Prepare if self.idle >= self.said => {
                self.said += AGAIN;
                if !self.quiet {
                    notice(&format!("note: waiting, {}: {}", now.what, silent(&now, self.idle)));
                }
            }
            Stage::CleanUp if self.idle >= if pending > 0 { AFTER_SIGNAL } else { CLEAN_UP } => {
                let paths: Vec<String> = now.paths.iter().map(|path| path.display().to_string()).collect();
                error(
                    &format!("{}: {}; left where it is: {}", now.what, silent(&now, self.idle), paths.join(", ")),
                    Some("`wmlrun clean` removes it when the file system answers again"),
                );
                leave(&now, if signal != 0 { 128 + signal as u8 } else { now.status.max(1) });
            }
            _ => {}
        }
    }
}

/// Which file does not come back, and since when.
fn silent(now: &Waiting, idle: Duration) -> String {
    // Before any set has its path, whatever call holds the program is on the file system that is to be measured.
    let here =
        |held: &blocked::Blocked| now.paths.is_empty() || now.paths.iter().any(|path| held.path.starts_with(path));
    let held = blocked::all().into_iter().find(here);
    let path = held.map(|b| b.path).or_else(|| now.paths.first().cloned());
    let path = path.map_or_else(|| "the file system".to_owned(), |path| path.display().to_string());
    format!("{path} has not answered for {}", duration::seconds(idle.as_secs_f64()))
}

/// The end of the program. Threads that were left behind in their calls are named, and nobody waits for them.
pub(super) fn end(watch: &Watch, status: u8) -> u8 {
    let left = watch.leftovers();
    if left.is_empty() {
        return status;
    }
    last_words(&left);
    signals::exit_now(status)
}

/// Ends the program at once: nobody who waits for a file system could end it.
fn leave(now: &Waiting, status: u8) -> ! {
    last_words(&now.paths);
    signals::exit_now(status)
}

/// The last that is said where threads are in calls that the kernel may not let go of: the program is gone when it does.
fn last_words(paths: &[std::path::PathBuf]) {
    let process = std::process::id();
    for held in blocked::all().into_iter().filter(|b| paths.iter().any(|path| b.path.starts_with(path))).take(5) {
        notice(&format!(
            "note: thread {} of process {process} is still in its call on {}; the process is gone when the kernel lets go of it",
            held.tid,
            held.path.display()
        ));
    }
}
