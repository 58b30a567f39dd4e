//! Detection of times at which the whole program was stopped, by a signal or for lack of a processor.

use wml_os::{Clock, signals};

/// A wait that returns this much too late means that the program was stopped by a signal; in nanoseconds.
const STOPPED_NS: u64 = 1_000_000_000;

/// A wait that returns this much too late without a signal means that the program was frozen or had no processor.
const FROZEN_NS: u64 = 5_000_000_000;

/// Detects times at which the whole program was stopped: the controller returns late from a wait.
pub(super) struct StopDetector {
    /// When the current wait is due to return, in ticks.
    pub(super) due: u64,
    /// How often the program had been stopped and continued, at the last check.
    continued: usize,
    /// The unexplained delay of a wait, and the tick of its return. The signal that explains it may be delivered a
    /// moment later.
    late_ns: u64,
    returned: u64,
}

impl StopDetector {
    pub(super) fn new(now: u64) -> Self {
        Self { due: now, continued: signals::times_continued(), late_ns: 0, returned: now }
    }

    /// Returns the time for which the program was stopped since the last check, in nanoseconds.
    pub(super) fn update(&mut self, clock: &Clock, now: u64) -> u64 {
        let late_ns = clock.ns(self.due, now.max(self.due));
        if late_ns >= STOPPED_NS || clock.ns(self.returned, now) >= STOPPED_NS {
            (self.late_ns, self.returned) = (late_ns, now);
        }
        self.due = now;
        let continued = signals::times_continued();
        let has_continued = std::mem::replace(&mut self.continued, continued) != continued;
        if self.late_ns >= FROZEN_NS || (self.late_ns >= STOPPED_NS && has_continued) {
            std::mem::take(&mut self.late_ns)
        } else {
            0
        }
    }
}
