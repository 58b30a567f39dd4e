//! Helpers that share the processors of the machine between the calls of all tests.
//!
//! The test runner has more threads than there are processors, because many tests mostly wait: for a server that hangs,
//! for a time limit, for the end of a run at a fixed rate. At most one call more than there are processors runs at once,
//! plus calls that mostly wait: each call also waits at times, and with one call per processor a quarter of the time of two
//! processors was idle.

use std::cell::Cell;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};

/// What a call takes of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    /// Next to nothing: it mostly waits.
    Idle,
    /// One of the places, of which there is one more than processors.
    Place,
    /// All places.
    Alone,
}

/// Places that are taken, and calls that wait for all of them.
struct Places {
    taken: usize,
    wanted_alone: usize,
}

static PLACES: Mutex<Places> = Mutex::new(Places { taken: 0, wanted_alone: 0 });
static CHANGED: Condvar = Condvar::new();
static COUNT: LazyLock<usize> = LazyLock::new(|| 1 + std::thread::available_parallelism().map_or(2, usize::from));

thread_local! {
    /// Calls of this test that run. Only the first waits: one that waits while its test holds a place might never get its own.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// A share of the machine, given back when dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    taken: usize,
}

impl Hold {
    /// Waits until there is room for such a call.
    pub(crate) fn take(share: Share) -> Self {
        let first = OWN.replace(OWN.get() + 1) == 0;
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = |places, full: &dyn Fn(&Places) -> bool| {
            CHANGED.wait_while(places, |places| full(places)).unwrap_or_else(PoisonError::into_inner)
        };
        let taken = match share {
            Share::Idle => 0,
            Share::Alone if first => {
                // Others then start nothing new, or their calls would follow one another for ever.
                places.wanted_alone += 1;
                places = wait(places, &|places| places.taken > 0);
                places.wanted_alone -= 1;
                *COUNT
            }
            Share::Place if first => {
                places = wait(places, &|places| places.taken >= *COUNT || places.wanted_alone > 0);
                1
            }
            Share::Alone | Share::Place => 1,
        };
        places.taken += taken;
        Self { taken }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Dropped in another thread than it was taken in, it counts for neither.
        OWN.set(OWN.get().saturating_sub(1));
        PLACES.lock().unwrap_or_else(PoisonError::into_inner).taken -= self.taken;
        CHANGED.notify_all();
    }
}
