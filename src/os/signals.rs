//! ^C, SIGTERM and SIGHUP: the first one raises a number that others look at, the second one ends the program. What was ignored
//! when the program started (`nohup`, jobs in the background of a script) stays ignored. A limit on processor time raises the number
//! too; one on the size of files is an error of the call that passes it, and no signal.

use super::child;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::low_level;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// Said by the second signal, which lets nobody clean up.
const LAST_WORD: &[u8] = b"\nnote: ended at once: what was measured is lost, and files that were made stay (`wmlrun clean DIR` removes them)\n";

/// The same signal within so many milliseconds is the first one again: `timeout` sends it to its child and then to the group.
const SAME_SIGNAL_MS: u64 = 300;

/// The first signal that came, and when; nothing while none has.
#[derive(Default, Debug)]
pub struct FirstSignal(AtomicU64);

/// Which one a signal is.
#[derive(PartialEq, Eq, Debug)]
enum Order {
    First,
    /// The first, sent twice.
    Repeated,
    Second,
}

impl FirstSignal {
    /// Forgets it: the next signal is a first one.
    pub fn clear(&self) {
        self.0.store(0, SeqCst);
    }

    /// Which one a signal is that comes at `now`, in milliseconds. Signal and time are one word, so that two threads that hear a
    /// signal each at the same moment agree on which was first.
    fn order(&self, signal: i32, now: u64) -> Order {
        let (signal, bits) = (signal as u64, u8::BITS);
        match self.0.compare_exchange(0, now << bits | signal, SeqCst, SeqCst) {
            Ok(_) => Order::First,
            Err(first) if first & 0xff == signal && now < (first >> bits) + SAME_SIGNAL_MS => Order::Repeated,
            Err(_) => Order::Second,
        }
    }
}

/// How often the program was stopped and went on.
static CONTINUED: AtomicUsize = AtomicUsize::new(0);

/// How often the program was stopped and went on, as far as signals tell.
pub fn continued() -> usize {
    CONTINUED.load(SeqCst)
}

/// Sends this program what ^C sends: a read from the terminal ends.
pub fn interrupt_self() {
    // To the process, not to the thread that says it. One's own process is there, and may be sent signals.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
}

/// Ends the program at once, with all that it has started: nothing is cleaned up, and nobody is waited for.
pub fn exit_now(status: u8) -> ! {
    child::end_all();
    low_level::exit(i32::from(status))
}

/// The signals that end the program.
fn ending() -> libc::sigset_t {
    // SAFETY: an all-zero set is a valid one to be emptied, and only that is written to.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // SAFETY: the pointer is to a live set.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// The calling thread takes no signal that ends the program, and may look at [`pending`].
pub fn only_look() {
    let set = ending();
    // SAFETY: the pointer is to a live set; the mask is the calling thread's.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// A signal that came and that nobody has heard, seen from a thread of [`only_look`]: the kernel gives it to the first thread, even
/// if a call holds that for ever.
pub fn pending() -> Option<i32> {
    // SAFETY: an all-zero set is a valid one, and the kernel fills it.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live set.
    unsafe { libc::sigpending(&raw mut set) };
    // SAFETY: the pointer is to a live set.
    [SIGINT, SIGTERM, SIGHUP].into_iter().find(|signal| unsafe { libc::sigismember(&raw const set, *signal) } == 1)
}

/// Milliseconds of the monotonic clock. May be called in a signal handler.
fn milliseconds() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// Whether a signal is ignored now.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero sigaction is a valid one, and the kernel fills it.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live value; nothing is set.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Listens: a number that becomes the signal's when one comes, and what the first one arms. Lowered again, the next signal is
/// a first one.
pub fn listen() -> (Arc<AtomicUsize>, Arc<FirstSignal>) {
    let number = Arc::new(AtomicUsize::new(0));
    let first = Arc::new(FirstSignal::default());
    // SAFETY: the handler stores to an atomic.
    let _ = unsafe { low_level::register(SIGCONT, || _ = CONTINUED.fetch_add(1, SeqCst)) };
    for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)) {
        let (number, first) = (Arc::clone(&number), Arc::clone(&first));
        let heard = move || {
            match first.order(signal, milliseconds()) {
                Order::First => number.store(signal as usize, SeqCst),
                Order::Repeated => {}
                Order::Second => {
                    // A reader that has gone is no reason to stay.
                    let _ = rustix::io::write(rustix::stdio::stderr(), LAST_WORD);
                    child::end_all();
                    low_level::exit(128 + signal);
                }
            }
        };
        // SAFETY: the handler stores to atomics, reads a clock, writes and exits: all of that may be done in a signal handler.
        //
        // A signal that can't be listened to keeps its default, which ends the process: nothing is lost by going on.
        let _ = unsafe { low_level::register(signal, heard) };
    }
    // The kernel repeats it each second until the hard limit kills: it is never a second signal.
    let limit = Arc::clone(&number);
    let over = move || {
        let _ = limit.compare_exchange(0, SIGXCPU as usize, SeqCst, SeqCst);
    };
    // SAFETY: the handlers store to an atomic, or do nothing. A handler, and not ignored: programs that are started get the default.
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
    fn the_same_signal_at_once_is_one() {
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
