//! A watchdog thread that detects file systems that do not answer before and after a run.
//!
//! It needs a separate thread, since the main thread is blocked in the system call. Before a run it reports what the
//! program waits for. It ends the program after `--prepare-timeout` without progress, or after the first signal. After
//! a run it gives up file sets that can't be removed. During a run it does nothing, since only the measured threads
//! wait for a file system.
//!
//! An experiment, whose runs are processes of their own, has a simpler one.

use super::called_as;
use super::console::{error, notice};
use crate::disk::quiesce;
use crate::measure::{Stage, Waiting, Watch};
use crate::os::{blocked, signals, steps};
use crate::util::duration;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Polling interval.
const POLL: Duration = Duration::from_millis(100);
/// Time without progress before the first notice.
const FIRST_NOTICE: Duration = Duration::from_secs(5);
/// Time between further notices.
const NOTICE_INTERVAL: Duration = Duration::from_secs(30);
/// Time without progress after a signal before the program ends.
const SIGNAL_GRACE: Duration = Duration::from_secs(1);
/// Time without progress before the removal of file sets is given up.
const CLEAN_UP_LIMIT: Duration = Duration::from_secs(10);

/// The help of the error that a file system does not answer.
const HELP: &str = "check the file system's server or device (`dmesg`); `--prepare-timeout` sets how long to wait";

/// Starts the watchdog of a session. Does nothing if no thread can be created. `rank`: what its messages begin with, the
/// name of a rank other than 0.
pub(super) fn start(
    watch: &Arc<Watch>,
    interrupt: Arc<AtomicUsize>,
    limit: Option<Duration>,
    quiet: bool,
    rank: String,
) {
    let mut watchdog = Watchdog {
        rank,
        watch: Arc::downgrade(watch),
        interrupt,
        limit,
        quiet,
        seen: None,
        idle: Duration::ZERO,
        next_notice: FIRST_NOTICE,
    };
    spawn(move || {
        while let Some(watch) = watchdog.watch.upgrade() {
            watchdog.poll(&watch);
            drop(watch);
            std::thread::sleep(POLL);
        }
    });
}

/// Starts a watchdog thread. Does nothing if no thread can be created.
fn spawn(watch: impl FnOnce() + Send + 'static) {
    let watch = || {
        signals::block_ending_signals();
        watch();
    };
    drop(std::thread::Builder::new().name("watchdog".to_owned()).stack_size(128 << 10).spawn(watch));
}

/// Starts a thread that ends an experiment after a signal that the main thread does not handle, because a system call blocks
/// it or it computes. Between the runs the main thread asks the file systems for their mounts and free space, and writes
/// them back. Each event of the journal is on the disk, so that the experiment loses nothing; a shell loses the runs that it
/// has not saved. `help` says how to continue. The thread lives as long as what is returned: the shell outlives its
/// experiments.
pub(super) fn start_between_runs(help: String) -> Arc<()> {
    let experiment = Arc::new(());
    let is_going = Arc::downgrade(&experiment);
    spawn(move || {
        let mut unhandled = Duration::ZERO;
        while is_going.strong_count() > 0 {
            std::thread::sleep(POLL);
            let Some(signal) = signals::unanswered() else {
                unhandled = Duration::ZERO;
                continue;
            };
            unhandled += POLL;
            if unhandled >= SIGNAL_GRACE {
                let is_blocked = signals::pending().is_some();
                let what = if is_blocked { "interrupted, but a file system does not answer" } else { "interrupted" };
                error(what, Some(&help));
                signals::exit_now(128 + signal);
            }
        }
    });
    experiment
}

struct Watchdog {
    /// The name of a rank other than 0, with which its messages begin; rank 0 does not print these.
    rank: String,
    watch: Weak<Watch>,
    interrupt: Arc<AtomicUsize>,
    limit: Option<Duration>,
    quiet: bool,
    /// State at the last poll: number of the wait, steps done, dirty bytes. `None` if the session did not wait.
    seen: Option<(u64, u64, u64)>,
    /// Time without progress. Counted in polls, so that it excludes time in which this program was stopped.
    idle: Duration,
    /// Value of `idle` at which the next notice is printed.
    next_notice: Duration,
}

impl Watchdog {
    fn poll(&mut self, watch: &Watch) {
        let Some(now) = watch.now() else {
            (self.seen, self.idle, self.next_notice) = (None, Duration::ZERO, FIRST_NOTICE);
            return;
        };
        let to_write = if now.is_quiescing { quiesce::dirty_bytes() } else { 0 };
        let seen = Some((now.number, steps::counted(), to_write));
        if seen != self.seen {
            (self.seen, self.idle, self.next_notice) = (seen, Duration::ZERO, FIRST_NOTICE);
            return;
        }
        self.idle += POLL;
        // A signal that the blocked main thread can't handle stays pending.
        let pending = signals::pending().map_or(0, |signal| signal as usize);
        let signal = self.interrupt.load(SeqCst).max(pending);
        match now.stage {
            Stage::Prepare if signal != 0 && self.idle >= SIGNAL_GRACE => {
                notice(&format!(
                    "note: {}interrupted while {}: {}",
                    self.rank,
                    now.what,
                    unresponsive(&now, self.idle)
                ));
                exit_blocked(&now, 128 + signal as u8);
            }
            Stage::Prepare if self.limit.is_some_and(|limit| self.idle >= limit) => {
                error(&format!("{}{}: {}", self.rank, now.what, unresponsive(&now, self.idle)), Some(HELP));
                exit_blocked(&now, 3);
            }
            Stage::Prepare if self.idle >= self.next_notice => {
                self.next_notice += NOTICE_INTERVAL;
                if !self.quiet {
                    notice(&format!("note: {}still {}: {}", self.rank, now.what, unresponsive(&now, self.idle)));
                }
            }
            Stage::CleanUp if self.idle >= if pending > 0 { SIGNAL_GRACE } else { CLEAN_UP_LIMIT } => {
                let paths: Vec<String> = now.paths.iter().map(|path| path.display().to_string()).collect();
                error(
                    &format!(
                        "{}{}: {}; not removed: {}",
                        self.rank,
                        now.what,
                        unresponsive(&now, self.idle),
                        paths.join(", ")
                    ),
                    Some("remove it with `wmlrun clean` when the file system answers again"),
                );
                exit_blocked(&now, if signal != 0 { 128 + signal as u8 } else { now.status.max(1) });
            }
            _ => {}
        }
    }
}

/// Describes the path on which a system call is blocked, and for how long.
fn unresponsive(now: &Waiting, idle: Duration) -> String {
    // While no file set has a path yet, any blocked call is on the file system to be measured.
    let here =
        |held: &blocked::Blocked| now.paths.is_empty() || now.paths.iter().any(|path| held.path.starts_with(path));
    let held = blocked::all().into_iter().find(here);
    let path = held.map(|b| b.path).or_else(|| now.paths.first().cloned());
    let path = path.map_or_else(|| "the file system".to_owned(), |path| path.display().to_string());
    format!("{path} has not answered for {}", duration::seconds(idle.as_secs_f64()))
}

/// Returns `status` if no thread is blocked in a system call. Otherwise names the blocked threads and ends the program
/// without waiting for them.
pub(super) fn end(watch: &Watch, status: u8) -> u8 {
    let left = watch.leftovers();
    if left.is_empty() {
        return status;
    }
    print_blocked_threads(&left);
    signals::exit_now(called_as::status(status))
}

/// Ends the program at once. The main thread can't, since it is blocked in a system call.
fn exit_blocked(now: &Waiting, status: u8) -> ! {
    print_blocked_threads(&now.paths);
    signals::exit_now(called_as::status(status))
}

/// Prints the threads that are blocked in system calls below `paths`, at most five. The kernel removes the process only
/// when these calls return.
fn print_blocked_threads(paths: &[std::path::PathBuf]) {
    let process = std::process::id();
    for held in blocked::all().into_iter().filter(|b| paths.iter().any(|path| b.path.starts_with(path))).take(5) {
        notice(&format!(
            "note: thread {} of process {process} is still in a system call on {}; the process ends when it returns",
            held.tid,
            held.path.display()
        ));
    }
}
