//! ^C and SIGTERM: the first one asks the session to end, the second one ends the process.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// A number that becomes the signal's when one comes.
pub(super) fn listen() -> Arc<AtomicUsize> {
    listen_again().0
}

/// The same, and what the first signal arms: lowered, the next one is a first one again.
pub(super) fn listen_again() -> (Arc<AtomicUsize>, Arc<AtomicBool>) {
    let number = Arc::new(AtomicUsize::new(0));
    let second = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal arms what the second one triggers. A signal that can't be listened to keeps its
        // default, which ends the process: nothing is lost by going on.
        let _ = flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&second));
        let _ = flag::register(signal, Arc::clone(&second));
        let _ = flag::register_usize(signal, Arc::clone(&number), signal as usize);
    }
    (number, second)
}
