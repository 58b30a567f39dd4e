//! Which files are there right now, and which are being changed: two bits a file, and the picking of files by them.
//!
//! Everything is lock-free. A file's two bits lie in one word with those of 31 others, so that one compare-and-swap sees
//! *there* and *busy* together: who sets the busy bit has the file to itself until it clears it. Above the words stands a tree
//! of counts of existing files, 64 children to a node, by which rare states are found and uniform picks are made.
//!
//! The counts follow the bits a moment later, so a search by counts may miss a file that was made just now. It then reports
//! that there is none, and the caller waits for a change ([`Members::wait_change`]): the change is announced after the counts
//! are right, so the wait ends at once. Counts may be off, bits never are: only bits decide who gets a file.
//!
//! Nothing here knows names, directories or the disk.

use crate::os::{Errno, futex};
use crate::random::mix;
use crossbeam::utils::CachePadded;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

/// Files in a word: each has a bit in the lower half (there) and one in the upper half (busy).
const IN_WORD: u64 = 32;
/// Children of a node of the counts; the lowest nodes count so many words.
const FANOUT: usize = 64;
/// Files of a lowest node.
const IN_NODE: u64 = IN_WORD * FANOUT as u64;
/// The largest piece of the shared order that a thread takes at once.
const MAX_BATCH: u64 = 64;
/// Threads hold no more than one in so many of a set's positions at once, so that the order is still a rotation.
const HELD: u64 = 4;
/// Random tries before a uniform pick goes by the counts.
const TRIES: u32 = 6;

/// Somebody waits for a change.
const AWAITED: u32 = 1;

/// Which files are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Want {
    /// Such as are there.
    Existing = 0,
    /// Such as are not.
    Absent = 1,
}

/// How one is chosen among them.
#[derive(Debug)]
pub enum How<'a> {
    /// The next in the order that all threads share.
    Rotate(&'a mut Rotor),
    /// The next in an order of the thread's own, from the first file on (`opennext`).
    Own(&'a mut OwnRotor),
    /// That index, else the next higher one, else the lowest. Indices beyond the set start over.
    Index(u64),
    /// Any with equal chance; the number is 64 random bits.
    Uniform(u64),
}

/// A thread's place in the shared order of one file set. A thread needs one for each set (not one for each step: with one
/// thread the files then come in the order of their indices).
#[derive(Clone, Default, Debug)]
pub struct Rotor {
    lanes: [Lane; 2],
}

/// Positions `at..end` that this thread has claimed. They count on for ever; the index is the position modulo the set.
#[derive(Clone, Copy, Default, Debug)]
struct Lane {
    at: u64,
    end: u64,
    /// The index of `at`, where all are there: so that one division is enough for a piece.
    index: u64,
}

/// A thread's own order: starts at the first file.
#[derive(Clone, Default, Debug)]
pub struct OwnRotor {
    at: u64,
}

/// What came of a pick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Picked {
    /// This one.
    File(u64),
    /// There are some, and a step holds each of them.
    AllBusy,
    /// There is none.
    None,
}

/// How the set is used in this run.
mod mode {
    /// Steps make or remove files.
    pub(super) const LIVE: u8 = 0;
    /// None does.
    pub(super) const FROZEN: u8 = 1;
    /// None does, and all files are there.
    pub(super) const FULL: u8 = 2;
}

/// The files, or the leaf directories, of a set.
#[derive(Debug)]
pub struct Members {
    n: u64,
    words: Box<[AtomicU64]>,
    /// `counts[0]` has a node for every [`IN_NODE`] files, `counts[1]` one for 64 of those, up to a level of at most 64 nodes.
    counts: Vec<Box<[AtomicI32]>>,
    batch: AtomicU64,
    mode: AtomicU8,
    /// Where the shared orders stand: one over existing files, one over absent ones.
    cursors: [CachePadded<AtomicU64>; 2],
    /// Announces changes to those who wait for one. It counts in twos; the lowest bit says that somebody took the number and
    /// may be asleep on it. Both are one word so that nobody can fall asleep between the two.
    change: CachePadded<AtomicU32>,
}

impl Members {
    /// `n` members, none of them there.
    pub fn new(n: u64) -> Self {
        let words = n.div_ceil(IN_WORD) as usize;
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

    /// Sets who is there. Before the run only: no other thread may use the set.
    pub fn load(&self, there: impl Fn(u64) -> bool) {
        for level in &self.counts {
            level.iter().for_each(|node| node.store(0, Ordering::Relaxed));
        }
        for (w, word) in self.words.iter().enumerate() {
            let first = w as u64 * IN_WORD;
            let bits =
                (first..self.n.min(first + IN_WORD)).fold(0_u64, |bits, i| bits | (u64::from(there(i)) << (i - first)));
            word.store(bits, Ordering::Relaxed);
            self.count(w, bits.count_ones() as i32);
        }
        self.mode.store(mode::LIVE, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// How many members there are, existing or not.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Whether there is no member at all.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// So many threads share the set: where it is large against them, each takes pieces of the shared order, and works on
    /// neighbours, whose bits lie in its processor's cache.
    pub fn set_threads(&self, threads: u64) {
        self.batch.store((self.n / (threads.max(1) * HELD)).clamp(1, MAX_BATCH), Ordering::Relaxed);
    }

    /// No step of this run makes or removes members. Picks then write to nothing but the shared order, and hold nothing.
    pub fn freeze(&self) {
        let full = self.n_existing() == self.n;
        self.mode.store(if full { mode::FULL } else { mode::FROZEN }, Ordering::Relaxed);
    }

    /// Steps of this run make or remove members: a pick may hold one.
    pub fn thaw(&self) {
        self.mode.store(mode::LIVE, Ordering::Relaxed);
    }

    /// Members that are there; exact when nobody is making or removing any.
    pub fn n_existing(&self) -> u64 {
        let top = self.counts.last().map_or(&[][..], |top| top);
        top.iter().map(|node| i64::from(node.load(Ordering::Relaxed))).sum::<i64>().max(0) as u64
    }

    /// Whether member `i` is there.
    pub fn exists(&self, i: u64) -> bool {
        self.word(i).load(Ordering::Acquire) & (1 << (i % IN_WORD)) != 0
    }

    /// Picks a member that nobody holds. With `hold` it is the caller's until [`Members::release`] or
    /// [`Members::set_exists`]; without, others may pick it too.
    #[inline]
    pub fn pick(&self, want: Want, how: How<'_>, hold: bool) -> Picked {
        let mode = self.mode.load(Ordering::Relaxed);
        if mode == mode::FULL && want == Want::Existing && self.n > 0 {
            return Picked::File(self.pick_full(how));
        }
        self.pick_some(want, how, hold && mode == mode::LIVE)
    }

    /// All are there and stay: the place in the order is the answer.
    #[inline]
    fn pick_full(&self, how: How<'_>) -> u64 {
        match how {
            How::Rotate(rotor) => self.next(rotor),
            How::Own(own) => {
                let i = if own.at < self.n { own.at } else { 0 };
                own.at = i + 1;
                i
            }
            How::Index(i) => i % self.n,
            How::Uniform(bits) => below(bits, self.n),
        }
    }

    /// The next in the shared order of a set that is all there and stays so; `None` for any other set.
    #[inline]
    pub fn next_of_all(&self, rotor: &mut Rotor) -> Option<u64> {
        (self.mode.load(Ordering::Relaxed) == mode::FULL && self.n > 0).then(|| self.next(rotor))
    }

    #[inline]
    fn next(&self, rotor: &mut Rotor) -> u64 {
        let lane = &mut rotor.lanes[Want::Existing as usize];
        if lane.at == lane.end {
            *lane = self.claim(Want::Existing);
        }
        let index = lane.index;
        lane.at += 1;
        lane.index = if index + 1 == self.n { 0 } else { index + 1 };
        index
    }

    fn pick_some(&self, want: Want, how: How<'_>, hold: bool) -> Picked {
        if self.n == 0 {
            return Picked::None;
        }
        match how {
            How::Rotate(rotor) => {
                let lane = &mut rotor.lanes[want as usize];
                if lane.at == lane.end {
                    *lane = self.claim(want);
                }
                let from = lane.at % self.n;
                let picked = self.seek(want, from, hold);
                if let Picked::File(i) = picked {
                    let next = lane.at + if i >= from { i - from } else { i + self.n - from } + 1;
                    if next > lane.end {
                        // Nothing is left in our piece, nor up to `next`: others need not look there again.
                        self.cursors[want as usize].fetch_max(next, Ordering::Relaxed);
                        lane.end = next;
                    }
                    lane.at = next;
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
        }
    }

    #[inline(never)]
    fn claim(&self, want: Want) -> Lane {
        let batch = self.batch.load(Ordering::Relaxed);
        let at = self.cursors[want as usize].fetch_add(batch, Ordering::Relaxed);
        Lane { at, end: at + batch, index: at % self.n }
    }

    /// A few tries at random, which is uniform over the candidates whenever one is hit; where they are rare, one by its rank,
    /// which is uniform too.
    fn pick_uniform(&self, want: Want, bits: u64, hold: bool) -> Picked {
        let mut bits = bits;
        for n in 1..=TRIES {
            let i = below(bits, self.n);
            if self.take(i / IN_WORD, 1 << (i % IN_WORD), want, hold, &mut false).is_some() {
                return Picked::File(i);
            }
            bits = mix(bits, u64::from(n));
        }
        for n in 1..=TRIES {
            let Some((w, bit)) = self.select(want, bits) else { break };
            if self.take(w as u64, 1 << bit, want, hold, &mut false).is_some() {
                return Picked::File(w as u64 * IN_WORD + u64::from(bit));
            }
            bits = mix(bits, u64::from(n));
        }
        self.seek(want, below(bits, self.n), hold)
    }

    /// The candidate, busy or not, whose rank is chosen by `bits`; `None` if there is none, or the counts are moving.
    fn select(&self, want: Want, bits: u64) -> Option<(usize, u32)> {
        let top = self.counts.len() - 1;
        let total: u64 = (0..self.counts[top].len()).map(|k| self.wanted(want, top, k)).sum();
        if total == 0 {
            return None;
        }
        let mut rank = below(bits, total);
        let mut first = 0;
        for level in (0..=top).rev() {
            let end = self.counts[level].len().min(if level == top { usize::MAX } else { first + FANOUT });
            let node = (first..end).find(|&k| {
                let here = self.wanted(want, level, k);
                let found = rank < here;
                rank -= if found { 0 } else { here };
                found
            })?;
            first = node * FANOUT;
        }
        (first..self.words.len().min(first + FANOUT)).find_map(|w| {
            let mut all = matching(self.words[w].load(Ordering::Acquire), want) & self.valid(w);
            let here = u64::from(all.count_ones());
            if rank >= here {
                rank -= here;
                return None;
            }
            for _ in 0..rank {
                all &= all - 1;
            }
            Some((w, all.trailing_zeros()))
        })
    }

    /// The first candidate from `from` on, then from the start.
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

    /// The first candidate in a range.
    fn seek_in(&self, want: Want, from: u64, to: u64, hold: bool, busy: &mut bool) -> Option<u64> {
        let mut w = (from / IN_WORD) as usize;
        let mut mask = u32::MAX << (from % IN_WORD);
        let end = to.div_ceil(IN_WORD) as usize;
        while w < end {
            if w + 1 == end && !to.is_multiple_of(IN_WORD) {
                mask &= u32::MAX >> (IN_WORD - to % IN_WORD);
            }
            if let Some(bit) = self.take(w as u64, mask, want, hold, busy) {
                return Some(w as u64 * IN_WORD + u64::from(bit));
            }
            mask = u32::MAX;
            w += 1;
            if w.is_multiple_of(FANOUT) {
                w = self.next_node(want, w / FANOUT)? * FANOUT;
            }
        }
        None
    }

    /// The first lowest node from `at` on that has candidates, busy or not.
    fn next_node(&self, want: Want, mut at: usize) -> Option<usize> {
        let top = self.counts.len() - 1;
        let mut level = 0;
        loop {
            let nodes = self.counts[level].len();
            let end = if level == top { nodes } else { nodes.min((at / FANOUT + 1) * FANOUT) };
            match (at..end).find(|&k| self.wanted(want, level, k) > 0) {
                Some(k) if level == 0 => return Some(k),
                Some(k) => {
                    level -= 1;
                    at = k * FANOUT;
                }
                None if level == top || end == nodes => return None,
                None => {
                    // The rest of this group has none. (Nor may a group have any whose parent says so: the counts are moving.)
                    at = end / FANOUT;
                    level += 1;
                }
            }
        }
    }

    /// Takes the first candidate among the masked bits of a word, and holds it if asked to.
    #[inline]
    fn take(&self, w: u64, mask: u32, want: Want, hold: bool, busy: &mut bool) -> Option<u32> {
        let mask = mask & self.valid(w as usize);
        let word = &self.words[w as usize];
        let mut seen = word.load(Ordering::Acquire);
        loop {
            let there = matching(seen, want) & mask;
            let free = there & !(seen >> IN_WORD) as u32;
            if free == 0 {
                *busy |= there != 0;
                return None;
            }
            let bit = free.trailing_zeros();
            if !hold {
                return Some(bit);
            }
            let taken = seen | 1 << (u64::from(bit) + IN_WORD);
            // Both bits of the file were in `seen`: the swap succeeds only if the file still is as wanted and free.
            match word.compare_exchange_weak(seen, taken, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(bit),
                Err(now) => seen = now,
            }
        }
    }

    /// Gives a held member back as it was. Whether that took writing to shared memory: not where nothing is ever held.
    #[inline]
    pub fn release(&self, i: u64) -> bool {
        let live = self.mode.load(Ordering::Relaxed) == mode::LIVE;
        if live {
            self.word(i).fetch_and(!(1 << (i % IN_WORD + IN_WORD)), Ordering::SeqCst);
            self.announce();
        }
        live
    }

    /// Says that a held member was made, or removed, and gives it back.
    #[inline]
    pub fn set_exists(&self, i: u64, there: bool) {
        let (bit, busy) = (1 << (i % IN_WORD), 1 << (i % IN_WORD + IN_WORD));
        let word = self.word(i);
        let change = |word: u64| if there { word | bit } else { word & !bit } & !busy;
        let mut seen = word.load(Ordering::Relaxed);
        while let Err(now) = word.compare_exchange_weak(seen, change(seen), Ordering::SeqCst, Ordering::Relaxed) {
            seen = now;
        }
        if (seen & bit != 0) != there {
            self.count((i / IN_WORD) as usize, if there { 1 } else { -1 });
        }
        self.announce();
    }

    /// The number of the current state of things, for [`Members::wait_change`]. Take it, **look again**, then wait.
    pub fn epoch(&self) -> u32 {
        let epoch = self.change.fetch_or(AWAITED, Ordering::SeqCst) | AWAITED;
        // With the order in `announce`: either the picks after this see the change, or the change sees that it is awaited.
        fence(Ordering::SeqCst);
        epoch
    }

    /// Sleeps until something was made, removed or given back since `epoch` was taken, at most `limit`. Returns `false` only if
    /// the time ran out.
    pub fn wait_change(&self, epoch: u32, limit: Duration) -> bool {
        futex::wait(&self.change, epoch, Some(limit)) != Err(Errno::TIMEDOUT)
    }

    /// Wakes everybody who waits.
    pub fn wake_all(&self) {
        self.change.fetch_add(2, Ordering::SeqCst);
        futex::wake(&self.change, u32::MAX);
    }

    /// Tells those who wait. While nobody does it is a look at a line that nobody writes.
    ///
    /// What is announced was written by read-modify-writes in sequentially consistent order, and so is this look: no fence is
    /// needed here, which costs as much as three of them, since the one in `epoch` stands between its number and the picks.
    #[inline]
    fn announce(&self) {
        let seen = self.change.load(Ordering::SeqCst);
        // A failed swap means that it moved since: whoever asked before was woken, whoever asks now sees our change.
        if seen & AWAITED != 0
            && self.change.compare_exchange(seen, seen.wrapping_add(1), Ordering::SeqCst, Ordering::Relaxed).is_ok()
        {
            futex::wake(&self.change, u32::MAX);
        }
    }

    /// Adds to the counts above a word.
    fn count(&self, w: usize, by: i32) {
        let mut node = w / FANOUT;
        for level in &self.counts {
            level[node].fetch_add(by, Ordering::SeqCst);
            node /= FANOUT;
        }
    }

    /// Candidates below a node. While counts move they may be off, and even below zero.
    #[inline]
    fn wanted(&self, want: Want, level: usize, node: usize) -> u64 {
        let there = i64::from(self.counts[level][node].load(Ordering::Relaxed));
        let count = match want {
            Want::Existing => there,
            Want::Absent => {
                let size = IN_NODE << (6 * level);
                size.min(self.n.saturating_sub(node as u64 * size)) as i64 - there
            }
        };
        count.max(0) as u64
    }

    /// The bits of a word that stand for members: all but in the last one.
    #[inline]
    fn valid(&self, w: usize) -> u32 {
        let left = self.n - w as u64 * IN_WORD;
        if left >= IN_WORD { u32::MAX } else { (1 << left) - 1 }
    }

    #[inline]
    fn word(&self, i: u64) -> &AtomicU64 {
        &self.words[(i / IN_WORD) as usize]
    }

    /// Memory taken, in bytes.
    pub(super) fn memory(&self) -> u64 {
        (self.words.len() * 8 + self.counts.iter().map(|level| level.len() * 4).sum::<usize>()) as u64
    }
}

/// The bits of a word that are as wanted, busy or not. In the last word some of them stand for nothing.
#[inline]
fn matching(word: u64, want: Want) -> u32 {
    match want {
        Want::Existing => word as u32,
        Want::Absent => !(word as u32),
    }
}

/// A number below `n` from 64 random bits: the upper half of the product.
#[inline]
fn below(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
#[path = "members_tests.rs"]
mod tests;
