//! ^C and SIGTERM: the first one raises a number that others look at, the second one ends the program. A limit on processor time raises
//! the number too; one on the size of files is an error of the call that passes it, and no signal.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::low_level;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// Said by the second signal, which lets nobody clean up.
const LAST_WORD: &[u8] = b"\nnote: ended at once; files that were made stay (`wmlrun clean DIR` removes them)\n";

/// Listens: a number that becomes the signal's when one comes, and what the first one arms. Lowered again, the next signal is
/// a first one.
pub fn listen() -> (Arc<AtomicUsize>, Arc<AtomicBool>) {
    let number = Arc::new(AtomicUsize::new(0));
    let armed = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let (number, armed) = (Arc::clone(&number), Arc::clone(&armed));
        let heard = move || {
            if armed.swap(true, SeqCst) {
                // A reader that has gone is no reason to stay.
                let _ = rustix::io::write(rustix::stdio::stderr(), LAST_WORD);
                low_level::exit(128 + signal);
            }
            number.store(signal as usize, SeqCst);
        };
        // SAFETY: the handler stores to atomics, writes and exits: all of that may be done in a signal handler.
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
    (number, armed)
}
