//! The existing members of a set, and the lock-free picking of one of them. A member is a file or a leaf directory.
//!
//! **State.** Each member has two bits: *exists* and *busy*. A word holds the bits of 32 members, so that one
//! compare-and-swap tests and changes both bits of a member. A thread that sets the busy bit owns the member until it
//! clears the bit. Above the words is a tree of counts of existing members, with 64 children per node. It is used to
//! skip ranges without candidates, and to pick uniformly where candidates are rare.
//!
//! **Counts and bits.** A count is updated after the bit that it summarizes, so a search by counts may miss a member
//! that was created a moment ago. The search then finds no candidate, and the caller waits for a change
//! (`Members::wait_change`). Changes are announced after the counts are updated, so this wait ends immediately. A
//! pick never relies on counts alone: only a successful test of the bits selects a member.
//!
//! **Rotation in batches.** All threads share one rotation over the set: a counter of positions, whose remainder modulo
//! the size of the set is the index to start at. A thread claims up to `MAX_BATCH` positions with one atomic
//! addition, and then works through them without further writes to the counter. This avoids one contended
//! read-modify-write per pick, and gives a thread adjacent members, whose bits share cache lines. The cost is that
//! the order is a rotation only up to the batches that threads hold; `BATCH_DIVISOR` limits these to a quarter of the
//! set.
//!
//! **Fast path.** If all members exist and no flowop of the plan creates or removes one, [`Members::freeze`] selects a
//! mode in which the position is the answer: a pick reads no bits and writes nothing shared except the counter, and
//! divides only once per batch. It is inlined; claiming a batch is not, to keep the inlined code small. Together with
//! two other changes this reduced a `statfile` from 360 to 312 instructions.
//!
//! Names, directories and the disk are not known here.

use crate::random::mix;
use crossbeam::utils::CachePadded;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;
use wml_os::{Errno, futex};

/// Members per word. Each has an *exists* bit in the lower half of the word and a *busy* bit in the upper half.
const PER_WORD: u64 = 32;
/// Children of a node in the tree of counts. The children of a lowest node are words.
const FANOUT: usize = 64;
/// Members below a lowest node.
const PER_NODE: u64 = PER_WORD * FANOUT as u64;
/// Maximum number of positions of the rotation that a thread claims at once.
const MAX_BATCH: u64 = 64;
/// The batches of all threads together cover at most this fraction of a set (one quarter), so that the order remains
/// close to a rotation. With more threads than that allows, a batch is a single position.
const BATCH_DIVISOR: u64 = 4;
/// Maximum number of random probes before a uniform pick uses the counts, and of attempts with the counts.
const MAX_TRIES: u32 = 6;

/// Bit of [`Members::change`] that is set while a thread may be waiting.
const WAITERS: u32 = 1;

/// Which members are candidates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Want {
    Existing = 0,
    /// Members that do not exist.
    Absent = 1,
}

/// How a member is chosen among the candidates.
#[derive(Debug)]
pub enum How<'a> {
    /// The next candidate in the rotation that all threads share.
    Rotate(&'a mut Rotor),
    /// The next candidate in a rotation private to the thread, which starts at the first member (`opennext`).
    Own(&'a mut OwnRotor),
    /// The candidate with this index, otherwise the next higher one, otherwise the lowest one. The index is taken
    /// modulo the size of the set.
    Index(u64),
    /// A candidate chosen uniformly by these 64 random bits.
    Uniform(u64),
    /// The candidate at this distance behind the member that was created last, otherwise the next one farther behind.
    /// As names are given in rotation, a member farther behind was created earlier. See `Members::keep_order`.
    Behind(u64),
}

/// A thread's claimed positions in the shared rotations of one set: one rotation over existing and one over absent
/// members.
///
/// A thread uses one rotor per set. With a rotor per flowop the files would not be visited in the order of their
/// indices when there is only one thread.
#[derive(Clone, Default, Debug)]
pub struct Rotor {
    claims: [ClaimedRange; 2],
}

/// The claimed positions `at..end`. Positions increase without bound; the index is the position modulo the size of the
/// set.
#[derive(Clone, Copy, Default, Debug)]
struct ClaimedRange {
    at: u64,
    end: u64,
    /// The index at position `at`, maintained on the fast path only. It makes one division per batch sufficient.
    index: u64,
}

/// A thread's position in its private rotation, which starts at the first member.
#[derive(Clone, Default, Debug)]
pub struct OwnRotor {
    at: u64,
}

/// The result of a pick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Picked {
    /// The member with this index.
    File(u64),
    /// There are candidates, but all of them are busy.
    AllBusy,
    /// There is no candidate.
    None,
}

/// How the set changes during a run.
mod mode {
    /// Flowops create or remove members.
    pub(super) const LIVE: u8 = 0;
    /// No flowop creates or removes members.
    pub(super) const FROZEN: u8 = 1;
    /// No flowop creates or removes members, and all members exist.
    pub(super) const FULL: u8 = 2;
}

/// The files or the leaf directories of a file set.
#[derive(Debug)]
pub struct Members {
    n: u64,
    words: Box<[AtomicU64]>,
    /// The tree of counts by level: `counts[0]` has one node per [`PER_NODE`] members, each higher level one node
    /// per [`FANOUT`] nodes of the level below. The top level has at most [`FANOUT`] nodes.
    counts: Vec<Box<[AtomicI32]>>,
    /// Positions that a thread claims at once.
    batch: AtomicU64,
    /// One of the constants of [`mode`].
    mode: AtomicU8,
    /// The next unclaimed positions of the shared rotations, indexed by [`Want`].
    cursors: [CachePadded<AtomicU64>; 2],
    /// The futex word for waiting threads: a change counter in the upper 31 bits, and [`WAITERS`] in the lowest bit.
    ///
    /// Both are in one word because `FUTEX_WAIT` compares the whole word: a thread can't go to sleep between a change
    /// of the counter and the wake-up.
    change: CachePadded<AtomicU32>,
}

impl Members {
    /// Creates a set of `n` members. None of them exists.
    pub fn new(n: u64) -> Self {
        let words = n.div_ceil(PER_WORD) as usize;
        let mut counts = Vec::new();
        let mut nodes = words.div_ceil(FANOUT).max(1);
        loop {
            counts.push((0..nodes).map(|_| AtomicI32::new(0)).collect());
            if nodes <= FANOUT {
                break;
            }
            nodes = nodes.div_ceil(FANOUT);
        }
        Self {
            n,
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            counts,
            batch: AtomicU64::new(1),
            mode: AtomicU8::new(mode::LIVE),
            cursors: Default::default(),
            change: CachePadded::default(),
        }
    }

    /// Sets which members exist, and clears all busy bits. Must be called before the run: no other thread may use the
    /// set.
    pub fn load(&self, exists: impl Fn(u64) -> bool) {
        for level in &self.counts {
            level.iter().for_each(|node| node.store(0, Ordering::Relaxed));
        }
        for (w, word) in self.words.iter().enumerate() {
            let first = w as u64 * PER_WORD;
            let bits = (first..self.n.min(first + PER_WORD))
                .fold(0_u64, |bits, i| bits | (u64::from(exists(i)) << (i - first)));
            word.store(bits, Ordering::Relaxed);
            self.count(w, bits.count_ones() as i32);
        }
        self.mode.store(mode::LIVE, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Returns the number of members, existing or not.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// True if the set has no members.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Sets the number of threads that share the set, which determines the batch size.
    ///
    /// In a set that is large compared to the number of threads, each thread claims batches of positions and works on
    /// adjacent members, whose bits are in its processor's cache.
    pub fn set_threads(&self, threads: u64) {
        self.batch.store((self.n / (threads.max(1) * BATCH_DIVISOR)).clamp(1, MAX_BATCH), Ordering::Relaxed);
    }

    /// Declares that no flowop of this run creates or removes members. Picks then write nothing but the shared position
    /// counters, and set no busy bits.
    pub fn freeze(&self) {
        let full = self.n_existing() == self.n;
        self.mode.store(if full { mode::FULL } else { mode::FROZEN }, Ordering::Relaxed);
    }

    /// Declares that flowops of this run create or remove members. A pick may then hold a member.
    pub fn thaw(&self) {
        self.mode.store(mode::LIVE, Ordering::Relaxed);
    }

    /// Returns the number of existing members. Exact only while no thread creates or removes members.
    pub fn n_existing(&self) -> u64 {
        let top = self.counts.last().map_or(&[][..], |top| top);
        top.iter().map(|node| i64::from(node.load(Ordering::Relaxed))).sum::<i64>().max(0) as u64
    }

    /// True if member `i` exists.
    pub fn exists(&self, i: u64) -> bool {
        self.word(i).load(Ordering::Acquire) & (1 << (i % PER_WORD)) != 0
    }

    /// Picks a candidate that is not busy.
    ///
    /// With `hold` the member is marked busy, and belongs to the caller until [`Members::release`] or
    /// `Members::set_exists`. Without `hold`, or in a frozen set, other threads may pick it too.
    #[inline]
    pub fn pick(&self, want: Want, how: How<'_>, hold: bool) -> Picked {
        let mode = self.mode.load(Ordering::Relaxed);
        if mode == mode::FULL && want == Want::Existing && self.n > 0 {
            return Picked::File(self.pick_fast(how));
        }
        self.pick_slow(want, how, hold && mode == mode::LIVE)
    }

    /// Picks a member of a set in mode [`mode::FULL`]: the position in the order is the result.
    #[inline]
    fn pick_fast(&self, how: How<'_>) -> u64 {
        match how {
            How::Rotate(rotor) => self.next_fast(rotor),
            How::Own(own) => {
                let i = if own.at < self.n { own.at } else { 0 };
                own.at = i + 1;
                i
            }
            How::Index(i) => i % self.n,
            How::Uniform(bits) => below(bits, self.n),
            How::Behind(distance) => self.behind(distance),
        }
    }

    /// Returns the next member in the shared rotation of a set in which all members exist throughout the run. `None`
    /// for all other sets, which need [`Members::pick`].
    #[inline]
    pub(crate) fn next_if_full(&self, rotor: &mut Rotor) -> Option<u64> {
        (self.mode.load(Ordering::Relaxed) == mode::FULL && self.n > 0).then(|| self.next_fast(rotor))
    }

    /// Returns the next member in the shared rotation of a set in mode [`mode::FULL`]. Divides only when it claims a
    /// batch.
    #[inline]
    fn next_fast(&self, rotor: &mut Rotor) -> u64 {
        let claim = &mut rotor.claims[Want::Existing as usize];
        if claim.at == claim.end {
            *claim = self.claim_batch(Want::Existing);
        }
        let index = claim.index;
        claim.at += 1;
        claim.index = if index + 1 == self.n { 0 } else { index + 1 };
        index
    }

    /// Picks a member by its bits.
    fn pick_slow(&self, want: Want, how: How<'_>, hold: bool) -> Picked {
        if self.n == 0 {
            return Picked::None;
        }
        match how {
            How::Rotate(rotor) => {
                let claim = &mut rotor.claims[want as usize];
                if claim.at == claim.end {
                    *claim = self.claim_batch(want);
                }
                let from = claim.at % self.n;
                let picked = self.seek(want, from, hold);
                if let Picked::File(i) = picked {
                    let next = claim.at + if i >= from { i - from } else { i + self.n - from } + 1;
                    if next > claim.end {
                        // There are no more candidates in this batch, nor between its end and `next`: move the shared
                        // counter forward, so that other threads do not search there again.
                        self.cursors[want as usize].fetch_max(next, Ordering::Relaxed);
                        claim.end = next;
                    }
                    claim.at = next;
                }
                picked
            }
            How::Own(own) => {
                let picked = self.seek(want, if own.at < self.n { own.at } else { 0 }, hold);
                if let Picked::File(i) = picked {
                    own.at = i + 1;
                }
                picked
            }
            How::Index(i) => self.seek(want, i % self.n, hold),
            How::Uniform(bits) => self.pick_uniform(want, bits, hold),
            How::Behind(distance) => self.pick_behind(want, distance, hold),
        }
    }

    /// Claims the next batch of positions. Not inlined: it runs once per batch, and its division and atomic addition
    /// would enlarge the code of every pick.
    #[inline(never)]
    fn claim_batch(&self, want: Want) -> ClaimedRange {
        let batch = self.batch.load(Ordering::Relaxed);
        let at = self.cursors[want as usize].fetch_add(batch, Ordering::Relaxed);
        ClaimedRange { at, end: at + batch, index: at % self.n }
    }

    /// Picks a candidate uniformly.
    ///
    /// Probes a few members at random first: a probe that hits a candidate is uniform over all candidates. If
    /// candidates are too rare for that, chooses one by its rank, which is uniform too. Under contention the last
    /// resort is a linear search from a random index, which is not exactly uniform.
    fn pick_uniform(&self, want: Want, bits: u64, hold: bool) -> Picked {
        let mut bits = bits;
        for n in 1..=MAX_TRIES {
            let i = below(bits, self.n);
            if self.take(i / PER_WORD, 1 << (i % PER_WORD), want, hold, &mut false).is_some() {
                return Picked::File(i);
            }
            bits = mix(bits, u64::from(n));
        }
        for n in 1..=MAX_TRIES {
            let Some((w, bit)) = self.select_by_rank(want, bits) else { break };
            if self.take(w as u64, 1 << bit, want, hold, &mut false).is_some() {
                return Picked::File(w as u64 * PER_WORD + u64::from(bit));
            }
            bits = mix(bits, u64::from(n));
        }
        self.seek(want, below(bits, self.n), hold)
    }

    /// Returns word and bit of the candidate, busy or not, whose rank is chosen by `bits`. `None` when there is no
    /// candidate, or when the counts changed during the search.
    fn select_by_rank(&self, want: Want, bits: u64) -> Option<(usize, u32)> {
        let top = self.counts.len() - 1;
        let total: u64 = (0..self.counts[top].len()).map(|k| self.candidates(want, top, k)).sum();
        if total == 0 {
            return None;
        }
        let mut rank = below(bits, total);
        let mut first = 0;
        for level in (0..=top).rev() {
            let end = self.counts[level].len().min(if level == top { usize::MAX } else { first + FANOUT });
            let node = (first..end).find(|&k| {
                let count = self.candidates(want, level, k);
                let found = rank < count;
                rank -= if found { 0 } else { count };
                found
            })?;
            first = node * FANOUT;
        }
        (first..self.words.len().min(first + FANOUT)).find_map(|w| {
            let mut all = matching(self.words[w].load(Ordering::Acquire), want) & self.valid(w);
            let count = u64::from(all.count_ones());
            if rank >= count {
                rank -= count;
                return None;
            }
            for _ in 0..rank {
                all &= all - 1;
            }
            Some((w, all.trailing_zeros()))
        })
    }

    /// Searches for the first candidate at or after `from`, and then from the start of the set.
    fn seek(&self, want: Want, from: u64, hold: bool) -> Picked {
        let mut busy = false;
        let found =
            self.seek_in(want, from, self.n, hold, &mut busy).or_else(|| self.seek_in(want, 0, from, hold, &mut busy));
        match found {
            Some(i) => Picked::File(i),
            None if busy => Picked::AllBusy,
            None => Picked::None,
        }
    }

    /// Searches `from..to` for the first candidate. Sets `busy` if a candidate was skipped because it is busy.
    fn seek_in(&self, want: Want, from: u64, to: u64, hold: bool, busy: &mut bool) -> Option<u64> {
        let mut w = (from / PER_WORD) as usize;
        let mut mask = u32::MAX << (from % PER_WORD);
        let end = to.div_ceil(PER_WORD) as usize;
        while w < end {
            if w + 1 == end && !to.is_multiple_of(PER_WORD) {
                mask &= u32::MAX >> (PER_WORD - to % PER_WORD);
            }
            if let Some(bit) = self.take(w as u64, mask, want, hold, busy) {
                return Some(w as u64 * PER_WORD + u64::from(bit));
            }
            mask = u32::MAX;
            w += 1;
            if w.is_multiple_of(FANOUT) {
                w = self.next_node(want, w / FANOUT)? * FANOUT;
            }
        }
        None
    }

    /// Returns the first lowest node at or after `at` that has candidates, busy or not.
    fn next_node(&self, want: Want, mut at: usize) -> Option<usize> {
        let top = self.counts.len() - 1;
        let mut level = 0;
        loop {
            let nodes = self.counts[level].len();
            let end = if level == top { nodes } else { nodes.min((at / FANOUT + 1) * FANOUT) };
            match (at..end).find(|&k| self.candidates(want, level, k) > 0) {
                Some(k) if level == 0 => return Some(k),
                Some(k) => {
                    level -= 1;
                    at = k * FANOUT;
                }
                None if level == top || end == nodes => return None,
                None => {
                    // No candidates in the rest of this group: continue one level up. This can also happen in a group
                    // whose parent counts candidates, since counts change concurrently.
                    at = end / FANOUT;
                    level += 1;
                }
            }
        }
    }

    /// Takes the first candidate among the masked members of a word, and marks it busy if `hold` is set. Sets `busy`
    /// when there are candidates but all are busy.
    #[inline]
    fn take(&self, w: u64, mask: u32, want: Want, hold: bool, busy: &mut bool) -> Option<u32> {
        let mask = mask & self.valid(w as usize);
        let word = &self.words[w as usize];
        let mut seen = word.load(Ordering::Acquire);
        loop {
            let found = matching(seen, want) & mask;
            let free = found & !(seen >> PER_WORD) as u32;
            if free == 0 {
                *busy |= found != 0;
                return None;
            }
            let bit = free.trailing_zeros();
            if !hold {
                return Some(bit);
            }
            let taken = seen | 1 << (u64::from(bit) + PER_WORD);
            // `seen` contains both bits of the member: the swap succeeds only if it is still a candidate and not busy.
            match word.compare_exchange_weak(seen, taken, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(bit),
                Err(now) => seen = now,
            }
        }
    }

    /// Releases a held member unchanged. Returns whether this wrote to shared memory, which it does not in a frozen
    /// set.
    #[inline]
    pub fn release(&self, i: u64) -> bool {
        let live = self.mode.load(Ordering::Relaxed) == mode::LIVE;
        if live {
            self.word(i).fetch_and(!(1 << (i % PER_WORD + PER_WORD)), Ordering::SeqCst);
            self.notify_waiters();
        }
        live
    }

    /// Records that a held member was created or removed, and releases it.
    #[inline]
    pub(crate) fn set_exists(&self, i: u64, exists: bool) {
        let (bit, busy) = (1 << (i % PER_WORD), 1 << (i % PER_WORD + PER_WORD));
        let word = self.word(i);
        let change = |word: u64| if exists { word | bit } else { word & !bit } & !busy;
        let mut seen = word.load(Ordering::Relaxed);
        while let Err(now) = word.compare_exchange_weak(seen, change(seen), Ordering::SeqCst, Ordering::Relaxed) {
            seen = now;
        }
        if (seen & bit != 0) != exists {
            self.count((i / PER_WORD) as usize, if exists { 1 } else { -1 });
        }
        self.notify_waiters();
    }

    /// Returns the current epoch for [`Members::wait_change`], and registers a waiter.
    ///
    /// The caller must take the epoch, **then pick once more**, and wait only if that pick fails.
    pub(crate) fn epoch(&self) -> u32 {
        let epoch = self.change.fetch_or(WAITERS, Ordering::SeqCst) | WAITERS;
        // Pairs with the sequentially consistent operations before `notify_waiters` (Dekker's pattern): either the pick
        // after this fence sees a concurrent change, or the changing thread sees the `WAITERS` bit and wakes this one.
        fence(Ordering::SeqCst);
        epoch
    }

    /// Sleeps until a member is created, removed or released after `epoch` was taken, for at most `limit`. Returns
    /// `false` only on a timeout.
    pub(crate) fn wait_change(&self, epoch: u32, limit: Duration) -> bool {
        futex::wait(&self.change, epoch, Some(limit)) != Err(Errno::TIMEDOUT)
    }

    /// Wakes all waiting threads.
    pub(crate) fn wake_all(&self) {
        self.change.fetch_add(2, Ordering::SeqCst);
        futex::wake(&self.change, u32::MAX);
    }

    /// Wakes the threads that wait for a change. Without waiters this is one load of a cache line that no thread
    /// writes.
    ///
    /// Memory ordering: the change was made by read-modify-writes with sequentially consistent ordering, and this load
    /// has the same ordering. A waiter has a fence between its epoch and its picks (see [`Members::epoch`]). Therefore
    /// no fence is needed here; it would cost as much as three read-modify-writes.
    #[inline]
    fn notify_waiters(&self) {
        let seen = self.change.load(Ordering::SeqCst);
        // If the swap fails, another thread changed the word: threads that had registered before were woken by that
        // change, and threads that register now see this one.
        if seen & WAITERS != 0
            // Adding 1 clears the `WAITERS` bit and increments the counter.
            && self.change.compare_exchange(seen, seen.wrapping_add(1), Ordering::SeqCst, Ordering::Relaxed).is_ok()
        {
            futex::wake(&self.change, u32::MAX);
        }
    }

    /// Adds `by` to the counts of all nodes above word `w`.
    fn count(&self, w: usize, by: i32) {
        let mut node = w / FANOUT;
        for level in &self.counts {
            level[node].fetch_add(by, Ordering::SeqCst);
            node /= FANOUT;
        }
    }

    /// Returns the number of candidates, busy or not, below a node. Inexact while other threads change counts, which
    /// may even be negative for a moment.
    #[inline]
    fn candidates(&self, want: Want, level: usize, node: usize) -> u64 {
        let existing = i64::from(self.counts[level][node].load(Ordering::Relaxed));
        let count = match want {
            Want::Existing => existing,
            Want::Absent => {
                let size = PER_NODE << (6 * level);
                size.min(self.n.saturating_sub(node as u64 * size)) as i64 - existing
            }
        };
        count.max(0) as u64
    }

    /// Returns the mask of the bits of a word that represent members: all bits, except in the last word.
    #[inline]
    fn valid(&self, w: usize) -> u32 {
        let members = self.n - w as u64 * PER_WORD;
        if members >= PER_WORD { u32::MAX } else { (1 << members) - 1 }
    }

    /// Returns the word that contains the bits of member `i`.
    #[inline]
    fn word(&self, i: u64) -> &AtomicU64 {
        &self.words[(i / PER_WORD) as usize]
    }

    /// Returns the heap memory used, in bytes.
    pub(super) fn memory(&self) -> u64 {
        (self.words.len() * 8 + self.counts.iter().map(|level| level.len() * 4).sum::<usize>()) as u64
    }
}

/// Returns the mask of the candidates of a word, busy or not. In the last word it may contain bits that represent no
/// member.
#[inline]
fn matching(word: u64, want: Want) -> u32 {
    match want {
        Want::Existing => word as u32,
        Want::Absent => !(word as u32),
    }
}

/// Maps 64 random bits to a number below `n`: the upper half of their product.
#[inline]
fn below(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

#[path = "members_by_age.rs"]
mod by_age;

#[cfg(test)]
#[path = "members_tests.rs"]
mod tests;
