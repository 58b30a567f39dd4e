//! ^C and SIGTERM: the first one raises a number that others look at, the second one ends the program.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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
    (number, armed)
}
