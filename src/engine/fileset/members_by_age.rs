//! Picks by age. Names are given in rotation, so a member farther behind the position of the rotation over absent
//! members was created earlier. A member that existed when the rotation passed it is older than its neighbours. No time
//! is stored for any member.

use super::{Members, PER_NODE, PER_WORD, Picked, Want, matching};
use std::sync::atomic::Ordering;

impl Members {
    /// Declares that members are picked by their age ([`How::Behind`](super::How::Behind)): threads claim single
    /// positions instead of batches, so that members are created in the order of the rotation. To be called after
    /// [`Members::set_threads`].
    pub(crate) fn keep_order(&self) {
        self.batch.store(1, Ordering::Relaxed);
    }

    /// Returns the index at a distance behind the member that was created last. Where none was created, the last member
    /// counts as the newest.
    pub(super) fn behind(&self, distance: u64) -> u64 {
        let next = self.cursors[Want::Absent as usize].load(Ordering::Relaxed) % self.n;
        (next + self.n - 1 - distance % self.n) % self.n
    }

    /// Picks the candidate at a distance behind the newest member, otherwise the next one farther behind.
    pub(super) fn pick_behind(&self, want: Want, distance: u64, hold: bool) -> Picked {
        self.seek_back(want, self.behind(distance), hold)
    }

    /// Searches for the last candidate at or before `from`, and then from the end of the set.
    fn seek_back(&self, want: Want, from: u64, hold: bool) -> Picked {
        let mut busy = false;
        let found = self
            .seek_back_in(want, 0, from + 1, hold, &mut busy)
            .or_else(|| self.seek_back_in(want, from + 1, self.n, hold, &mut busy));
        match found {
            Some(i) => Picked::File(i),
            None if busy => Picked::AllBusy,
            None => Picked::None,
        }
    }

    /// Searches `from..to` for the last candidate. Sets `busy` if a candidate was skipped because it is busy.
    fn seek_back_in(&self, want: Want, from: u64, to: u64, hold: bool, busy: &mut bool) -> Option<u64> {
        let mut end = to;
        while end > from {
            let w = (end - 1) / PER_WORD;
            let first = w * PER_WORD;
            let below_end = u32::MAX >> (PER_WORD - (end - first));
            let mask = below_end & (u32::MAX << (from.max(first) - first));
            let mut candidates = matching(self.words[w as usize].load(Ordering::Acquire), want) & mask;
            while candidates != 0 {
                let bit = candidates.ilog2();
                if self.take(w, 1 << bit, want, hold, busy).is_some() {
                    return Some(first + u64::from(bit));
                }
                candidates &= !(1 << bit);
            }
            end = first;
            // Skip whole nodes without candidates.
            while end > from
                && end.is_multiple_of(PER_NODE)
                && self.candidates(want, 0, (end / PER_NODE - 1) as usize) == 0
            {
                end -= PER_NODE;
            }
        }
        None
    }
}
