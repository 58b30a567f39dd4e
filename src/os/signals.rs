//! Signal handlers. The first SIGINT (^C), SIGTERM or SIGHUP sets a number that other code checks; the second one ends
//! the program. A signal that was ignored when the program started (`nohup`, background jobs of a script) stays
//! ignored. SIGXCPU, the limit on processor time, sets the number too. SIGXFSZ is caught and has no effect, so that the
//! call that exceeds the limit on file size returns an error.

use super::child;
use crossbeam::channel::RecvTimeoutError;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ};
use signal_hook::low_level;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What the second signal breaks off: nothing is cleaned up after it.
#[derive(Clone, Copy, Debug)]
pub enum BrokenOff {
    Preparation,
    Run,
    Recording,
    Command,
}

/// The messages of the second signal, in the order of [`BrokenOff`].
const IMMEDIATE_EXIT_NOTES: [&[u8]; 4] = [
    b"\nnote: exited immediately: file sets that were created remain (`wmlrun clean DIR` removes them)\n",
    b"\nnote: exited immediately: the measurement is lost, created files remain (`wmlrun clean DIR` removes them)\n",
    b"\nnote: exited immediately: the trace lacks its end\n",
    b"\nnote: exited immediately\n",
];

static BREAKS_OFF: AtomicUsize = AtomicUsize::new(BrokenOff::Preparation as usize);

/// The first signal; 0 before any signal.
static RECEIVED: AtomicUsize = AtomicUsize::new(0);

/// The exit status for a status of the program, if another one is expected of it.
static STATUS: OnceLock<fn(u8) -> u8> = OnceLock::new();

/// Sets the function that gives the exit status for a status of the program, if a signal ends it.
pub fn set_status(of: fn(u8) -> u8) {
    // Set once, when the program starts.
    let _ = STATUS.set(of);
}

/// The number of [`Kept`].
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// While it lives, the program has something to finish after a signal: files to remove, a result to write. Its own code
/// then ends the program. Otherwise a thread does, soon after the first signal, whatever the program is doing.
#[derive(Debug)]
pub struct Kept(());

impl Kept {
    /// Begins the time in which the first signal does not end the program by itself.
    pub fn begin() -> Self {
        KEPT.fetch_add(1, SeqCst);
        Self(())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, SeqCst);
    }
}

/// How often the thread looks for a signal, and for how long the program may go on after one.
const LISTEN_INTERVAL: Duration = Duration::from_millis(100);
const LISTEN_GRACE: Duration = Duration::from_millis(800);

/// The message of the thread that ends the program.
const INTERRUPTED_NOTE: &[u8] = b"\nnote: interrupted\n";

/// Starts the thread that ends the program after the first signal, if nothing else does and nothing is kept. It opens no
/// file and takes no lock, so that no file system and no long computation delays it. If it can't be started, a second
/// signal ends the program.
fn listen() {
    let listen = || {
        block_ending_signals();
        let mut waited = Duration::ZERO;
        loop {
            std::thread::sleep(LISTEN_INTERVAL);
            let Some(signal) = unanswered().filter(|_| KEPT.load(SeqCst) == 0) else {
                waited = Duration::ZERO;
                continue;
            };
            waited += LISTEN_INTERVAL;
            if waited >= LISTEN_GRACE {
                // An error (the reader is gone) does not matter: the program ends in any case.
                let _ = rustix::io::write(rustix::stdio::stderr(), INTERRUPTED_NOTE);
                let status = 128 + signal;
                exit_now(STATUS.get().map_or(status, |of| of(status)));
            }
        }
    };
    drop(std::thread::Builder::new().stack_size(SIGNAL_STACK).spawn(listen));
}

/// Returns a signal that has arrived, while no command is running: whoever waits for a command ends it first. To be called
/// by a thread that has called [`block_ending_signals`].
pub fn unanswered() -> Option<u8> {
    let signal = received().or_else(|| pending().and_then(|signal| u8::try_from(signal).ok()));
    signal.filter(|_| !child::is_running())
}

/// Records what a second signal would break off from now on.
pub fn second_breaks_off(what: BrokenOff) {
    BREAKS_OFF.store(what as usize, SeqCst);
}

/// Returns the first signal that the handlers have received. `None` before any signal, and without handlers.
pub fn received() -> Option<u8> {
    u8::try_from(RECEIVED.load(SeqCst)).ok().filter(|signal| *signal > 0)
}

/// The same signal within this many milliseconds counts as the first one: `timeout` signals its child and then the
/// group.
const SAME_SIGNAL_MS: u64 = 300;

/// The stack size in bytes of the thread that forwards signals.
const SIGNAL_STACK: usize = 64 << 10;

/// The number of `SIGTERM`, as the handlers store it.
pub const TERMINATE: usize = SIGTERM as usize;

/// The first signal and its time; 0 before any signal.
#[derive(Default, Debug)]
pub struct FirstSignal(AtomicU64);

/// The meaning of a signal in the order of signals.
#[derive(PartialEq, Eq, Debug)]
enum Order {
    First,
    /// The first signal, delivered a second time.
    Repeated,
    Second,
}

impl FirstSignal {
    /// Resets it, so that the next signal is a first one.
    pub fn clear(&self) {
        self.0.store(0, SeqCst);
        RECEIVED.store(0, SeqCst);
    }

    /// Classifies a signal that arrives at `now`, in milliseconds. Signal and time are in one word, so that two threads
    /// that handle a signal at the same moment agree on which is the first.
    fn order(&self, signal: i32, now: u64) -> Order {
        let (signal, bits) = (signal as u64, u8::BITS);
        match self.0.compare_exchange(0, now << bits | signal, SeqCst, SeqCst) {
            Ok(_) => Order::First,
            Err(first) if first & 0xff == signal && now < (first >> bits) + SAME_SIGNAL_MS => Order::Repeated,
            Err(_) => Order::Second,
        }
    }
}

/// Counts SIGCONT signals.
static CONTINUED: AtomicUsize = AtomicUsize::new(0);

/// Returns how often the program was stopped and continued (SIGCONT).
pub fn times_continued() -> usize {
    CONTINUED.load(SeqCst)
}

/// Whether a signal came by a launcher of several processes, which leaves all of them their time to end.
static PASSED_ON: AtomicBool = AtomicBool::new(false);

/// True if the signal that ends this process was passed on to it, as to all others that a launcher has started.
pub fn is_passed_on() -> bool {
    PASSED_ON.load(SeqCst)
}

/// The signal by which launchers such as `mpirun` pass this one on to their processes. They do not end by it.
pub(crate) fn passing_on(signal: usize) -> i32 {
    if signal == SIGINT as usize { SIGUSR1 } else { SIGUSR2 }
}

/// Takes SIGUSR1 for SIGINT, and SIGUSR2 for SIGTERM: a launcher has passed them on.
pub fn take_passed_on() {
    use rustix::process::{Signal, getpid, kill_process};
    for (taken, meant) in [(SIGUSR1, Signal::INT), (SIGUSR2, Signal::TERM)] {
        let handler = move || {
            PASSED_ON.store(true, SeqCst);
            // To the process: this thread may block it.
            let _ = kill_process(getpid(), meant);
        };
        // SAFETY: the handler stores to an atomic and sends a signal, which is allowed in a signal handler.
        //
        // If it can't be installed, the signal ends the process.
        let _ = unsafe { low_level::register(taken, handler) };
    }
}

/// Sends SIGINT to this process, as ^C does. A read from the terminal ends.
pub fn interrupt_self() {
    // To the process, not to the calling thread. The call can't fail: the process exists and may signal itself.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
}

/// Kills all commands and ends the program immediately, without any cleanup.
pub fn exit_now(status: u8) -> ! {
    child::kill_all();
    low_level::exit(i32::from(status))
}

/// Returns the set of signals that end the program.
fn ending_signals() -> libc::sigset_t {
    // SAFETY: an all-zero `sigset_t` is a valid, empty set.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // SAFETY: the pointer is to a live set, and the signal number is valid.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// Blocks the signals that end the program in the calling thread, which may then call [`pending`].
pub fn block_ending_signals() {
    let set = ending_signals();
    // SAFETY: the pointer is to a live set. The call changes the mask of the calling thread only.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Returns a signal that was sent to the process and not yet handled. To be called by a thread that has called
/// [`block_ending_signals`]: the kernel delivers a signal to the main thread first, even if a system call blocks that
/// thread indefinitely.
pub fn pending() -> Option<i32> {
    // SAFETY: an all-zero `sigset_t` is a valid value, which the kernel overwrites.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live set.
    unsafe { libc::sigpending(&raw mut set) };
    // SAFETY: the pointer is to a live set, and the signal numbers are valid.
    [SIGINT, SIGTERM, SIGHUP].into_iter().find(|signal| unsafe { libc::sigismember(&raw const set, *signal) } == 1)
}

/// Returns the milliseconds of the monotonic clock. May be called in a signal handler.
fn milliseconds() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// True if a signal is ignored now.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero `sigaction` is a valid value, which the kernel overwrites.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live value. A null pointer for the new action only queries the current one.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Does long work so that a signal stops it: sets the flag that is passed to `work` when `interrupt`, the number of
/// [`install_handlers`], is set.
pub fn interruptible<T>(interrupt: &AtomicUsize, work: impl FnOnce(&AtomicBool) -> T) -> T {
    let stop = AtomicBool::new(false);
    let (done, finished) = crossbeam::channel::bounded::<()>(0);
    std::thread::scope(|scope| {
        let flag = &stop;
        // If the thread can't be started, the work proceeds, and only a second signal ends it early.
        let _ = std::thread::Builder::new().stack_size(SIGNAL_STACK).spawn_scoped(scope, move || {
            while finished.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
                if interrupt.load(SeqCst) != 0 {
                    flag.store(true, SeqCst);
                }
            }
        });
        let result = work(&stop);
        drop(done);
        result
    })
}

/// What [`install_handlers`] has returned.
static HANDLERS: OnceLock<(Arc<AtomicUsize>, Arc<FirstSignal>)> = OnceLock::new();

/// Installs the signal handlers, once. Returns a number that is set to the first signal, and the record of the first signal.
/// After both are reset, the next signal is a first one again.
pub fn install_handlers() -> (Arc<AtomicUsize>, Arc<FirstSignal>) {
    HANDLERS.get_or_init(handlers).clone()
}

fn handlers() -> (Arc<AtomicUsize>, Arc<FirstSignal>) {
    let number = Arc::new(AtomicUsize::new(0));
    let first = Arc::new(FirstSignal::default());
    if is_ignored(libc::SIGCHLD) {
        // The kernel would remove ended programs at once, and their status with them.
        //
        // SAFETY: the default action of SIGCHLD does nothing.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
    listen();
    // SAFETY: the handler only increments an atomic.
    let _ = unsafe { low_level::register(SIGCONT, || _ = CONTINUED.fetch_add(1, SeqCst)) };
    for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)) {
        let (number, first) = (Arc::clone(&number), Arc::clone(&first));
        let handler = move || {
            match first.order(signal, milliseconds()) {
                Order::First => {
                    number.store(signal as usize, SeqCst);
                    RECEIVED.store(signal as usize, SeqCst);
                }
                Order::Repeated => {}
                Order::Second => {
                    let note = IMMEDIATE_EXIT_NOTES[BREAKS_OFF.load(SeqCst)];
                    // An error (the reader is gone) does not matter: the program ends in any case.
                    let _ = rustix::io::write(rustix::stdio::stderr(), note);
                    child::kill_all();
                    low_level::exit(128 + signal);
                }
            }
        };
        // SAFETY: the handler stores to atomics, reads a clock, writes to a descriptor, sends signals and exits, all of
        // which is allowed in a signal handler.
        //
        // If the handler can't be installed, the signal keeps its default action, which ends the process.
        let _ = unsafe { low_level::register(signal, handler) };
    }
    // The kernel repeats SIGXCPU every second until the hard limit kills the process, so it never counts as a second
    // signal.
    let limit = Arc::clone(&number);
    let over = move || {
        let _ = limit.compare_exchange(0, SIGXCPU as usize, SeqCst, SeqCst);
    };
    // SAFETY: one handler stores to an atomic, the other does nothing. SIGXFSZ has a handler instead of being ignored
    // because started programs would inherit that it is ignored.
    unsafe {
        let _ = low_level::register(SIGXCPU, over);
        let _ = low_level::register(SIGXFSZ, || ());
    }
    (number, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_signal_within_the_interval_counts_once() {
        let first = FirstSignal::default();
        assert_eq!(first.order(SIGTERM, 5), Order::First);
        assert_eq!(first.order(SIGTERM, 5), Order::Repeated);
        assert_eq!(first.order(SIGTERM, 4 + SAME_SIGNAL_MS), Order::Repeated);
        assert_eq!(first.order(SIGINT, 5), Order::Second);
        assert_eq!(first.order(SIGTERM, 5 + SAME_SIGNAL_MS), Order::Second);
        first.clear();
        assert_eq!(first.order(SIGINT, 9_000), Order::First);
    }
}
