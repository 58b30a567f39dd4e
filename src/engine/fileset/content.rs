//! The data written to files: never zeros, and no two equal 4 KiB blocks unless copies are requested.
//!
//! A buffer is filled once with random bytes. Before each write, each 4 KiB block of it receives a stamp that no other
//! block of the session has. This touches one cache line per block, and prevents file systems that compress or
//! deduplicate from storing less than was written.

use crate::random::{self, mix};
use rand::RngExt;
use std::sync::Arc;

/// Size in bytes of the unit in which data is unique. File systems do not deduplicate smaller units.
pub const BLOCK: usize = 4096;
/// Size of a stamp in bytes: an identifier of the writer, and a count of the blocks that it wrote.
const STAMP: usize = 16;
/// Number of distinct blocks from which copies are made.
const ORIGINALS: usize = 64;
/// The byte that fills the compressible part of a block. Not zero, since some devices discard zeros.
const FILLER: u8 = 0x20;

/// Identifiers of the independent random streams that are derived from a seed.
mod purpose {
    pub(super) const FILL: u64 = 0xf111;
    pub(super) const STAMPS: u64 = 0x57a3;
    pub(super) const COPIES: u64 = 0xc0b1;
}

/// How much less than its size a file system can store of data.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Redundancy {
    /// Fraction of each 4 KiB block that is one repeated byte, 0 to 1.
    pub compress: f64,
    /// Fraction of the 4 KiB blocks that are copies of other blocks, 0 to 1.
    pub dedupe: f64,
}

/// The data of all file sets with the same redundancy. The threads that write it share the blocks that they copy.
#[derive(Clone, Debug, Default)]
pub struct DataSource {
    redundancy: Redundancy,
    copies: Option<Copies>,
}

impl DataSource {
    /// Creates the source. Different seeds give different blocks to copy.
    pub fn new(redundancy: Redundancy, seed: u64) -> Self {
        Self { redundancy, copies: Copies::new(redundancy, seed) }
    }

    pub(crate) fn redundancy(&self) -> Redundancy {
        self.redundancy
    }

    /// Fills a buffer, as [`fill`] does. Each part of it is to be stamped before it is written.
    pub fn fill(&self, buf: &mut [u8], seed: u64) {
        fill(buf, seed, self.redundancy.compress);
    }

    /// Creates the stamper of one thread, as [`Stamper::new`] does, which also makes the copies. They are as
    /// compressible as the other blocks.
    pub(crate) fn stamper(&self, seed: u64, thread: u64) -> Stamper {
        Stamper { copies: self.copies.clone(), ..Stamper::new(seed, thread) }
    }
}

/// Fills a buffer with random bytes. The last `compress` (0 to 1) of each 4 KiB block, and of a shorter one at the end,
/// is one repeated byte.
pub fn fill(buf: &mut [u8], seed: u64, compress: f64) {
    let mut rng = random::stream(seed, &[purpose::FILL]);
    for block in buf.chunks_mut(BLOCK) {
        let (head, tail) = block.split_at_mut(random_part(compress, block.len()));
        rng.fill(head);
        tail.fill(FILLER);
    }
}

/// Returns the number of random bytes of a block of `len` bytes: at least the size of a stamp.
fn random_part(compress: f64, len: usize) -> usize {
    let random = (len as f64 * (1.0 - compress.clamp(0.0, 1.0))).round() as usize;
    random.clamp(STAMP.min(len), len)
}

/// Makes the blocks that a thread writes unique.
#[derive(Clone, Debug)]
pub(crate) struct Stamper {
    id: u64,
    count: u64,
    copies: Option<Copies>,
}

/// Blocks that are written repeatedly.
#[derive(Clone, Debug)]
struct Copies {
    /// A block is a copy if its hash is at most this.
    below: u64,
    originals: Arc<[u8]>,
}

impl Copies {
    /// Makes the blocks that are copied. `None` if no block is to be a copy.
    fn new(redundancy: Redundancy, seed: u64) -> Option<Self> {
        let Redundancy { compress, dedupe } = redundancy;
        (dedupe > 0.0).then(|| {
            let mut originals = vec![0; ORIGINALS * BLOCK];
            fill(&mut originals, mix(seed, purpose::COPIES), compress);
            Self { below: (dedupe.min(1.0) * u64::MAX as f64) as u64, originals: originals.into() }
        })
    }
}

impl Stamper {
    /// Creates the stamper of one thread. Different threads and different seeds produce different stamps.
    pub(crate) fn new(seed: u64, thread: u64) -> Self {
        Self { id: mix(mix(seed, purpose::STAMPS), thread), count: 0, copies: None }
    }

    /// True if some blocks become copies, so that [`Stamper::stamp_unique`] does not suffice.
    pub(crate) fn has_copies(&self) -> bool {
        self.copies.is_some()
    }

    /// Continues as if this many blocks had been stamped before.
    #[must_use]
    pub(crate) fn after(self, blocks: u64) -> Self {
        Self { count: blocks, ..self }
    }

    /// Stamps the data that is about to be written. Must be called before each write of the buffer.
    #[inline]
    pub(crate) fn stamp(&mut self, buf: &mut [u8]) {
        if self.copies.is_some() { self.stamp_slow(buf) } else { self.stamp_unique(buf) }
    }

    /// Does the same for a stamper without copies, which the caller has checked.
    #[inline]
    pub(crate) fn stamp_unique(&mut self, buf: &mut [u8]) {
        for block in buf.chunks_mut(BLOCK) {
            self.count += 1;
            put(block, self.id, self.count);
        }
    }

    /// Stamps each block or replaces it by a copy. Cold: few file sets request copies, and a call keeps `stamp` small
    /// enough to inline.
    #[cold]
    fn stamp_slow(&mut self, buf: &mut [u8]) {
        for block in buf.chunks_mut(BLOCK) {
            self.count += 1;
            let hash = mix(self.id, self.count);
            match &self.copies {
                Some(copies) if hash <= copies.below => {
                    let at = (mix(hash, 1) as usize % ORIGINALS) * BLOCK;
                    block.copy_from_slice(&copies.originals[at..at + block.len()]);
                }
                _ => put(block, self.id, self.count),
            }
        }
    }
}

/// Writes a stamp into a block. A block that is shorter than a stamp receives the bytes that vary most.
#[inline]
fn put(block: &mut [u8], id: u64, count: u64) {
    // Mix the count into all bits: the stamp then resembles the random data around it, instead of being mostly zero
    // bytes.
    let first = (count ^ id.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    if let Some(stamp) = block.first_chunk_mut::<STAMP>() {
        stamp[..8].copy_from_slice(&first);
        stamp[8..].copy_from_slice(&id.to_le_bytes());
    } else {
        let n = block.len().min(8);
        block[..n].copy_from_slice(&first[8 - n..]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::naive_bytecount, reason = "a few blocks")]
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_blocks_differ_and_none_is_zero() {
        let mut seen = HashSet::new();
        for thread in 0..3 {
            let mut buf = vec![0; 256 * 1024];
            fill(&mut buf, 1, 0.0);
            let mut stamper = Stamper::new(1, thread);
            for _ in 0..10 {
                stamper.stamp(&mut buf);
                for block in buf.chunks(BLOCK) {
                    assert!(seen.insert(block.to_vec()), "two blocks are equal");
                    assert!(block.iter().filter(|&&b| b == 0).count() < 100);
                }
            }
        }
    }

    #[test]
    fn partial_blocks_are_stamped() {
        let mut stamper = Stamper::new(5, 0);
        let mut seen = HashSet::new();
        for len in [3, 9, 16, 100, 5000] {
            let mut buf = vec![7; len];
            stamper.stamp(&mut buf);
            let mut again = vec![7; len];
            stamper.stamp(&mut again);
            assert_ne!(buf, again);
            assert!(seen.insert(buf) && seen.insert(again));
        }
    }

    #[test]
    fn a_stamper_continues_at_any_block() {
        let stamped = |mut stamper: Stamper, blocks: usize| {
            let mut buf = vec![7; blocks * BLOCK];
            stamper.stamp(&mut buf);
            buf
        };
        let whole = stamped(Stamper::new(5, 0), 4);
        assert_eq!(whole[3 * BLOCK..], stamped(Stamper::new(5, 0).after(3), 1));
        assert_ne!(whole[3 * BLOCK..], stamped(Stamper::new(5, 0), 1));
    }

    #[test]
    fn the_requested_fraction_is_compressible() {
        let mut buf = vec![0; BLOCK * 8];
        fill(&mut buf, 3, 0.75);
        Stamper::new(3, 1).stamp(&mut buf);
        for block in buf.chunks(BLOCK) {
            assert!(block[1024..].iter().all(|&b| b == FILLER));
            assert!(block[..1024].iter().filter(|&&b| b == FILLER).count() < 50);
        }
    }

    #[test]
    fn a_short_block_is_as_compressible_as_a_whole_one() {
        for len in [1000, 2048, 6000] {
            let mut buf = vec![0; len];
            fill(&mut buf, 3, 0.5);
            let compressible = buf.iter().filter(|&&b| b == FILLER).count();
            assert!((len / 2..len / 2 + 100).contains(&compressible), "{compressible} of {len} bytes");
        }
        let mut tiny = [0; 9];
        fill(&mut tiny, 3, 1.0);
        assert!(tiny.iter().any(|&b| b != FILLER));
    }

    #[test]
    fn threads_copy_the_blocks_of_their_source() {
        let source = DataSource::new(Redundancy { compress: 0.5, dedupe: 1.0 }, 3);
        let written = |thread: u64| {
            let mut buf = vec![0; BLOCK * 1000];
            source.fill(&mut buf, thread);
            source.stamper(3, thread).stamp(&mut buf);
            buf.chunks(BLOCK).map(<[u8]>::to_vec).collect::<HashSet<_>>()
        };
        assert_eq!(written(1), written(2));
        assert_eq!(written(1).len(), ORIGINALS);
        assert!(written(1).iter().all(|block| block[BLOCK / 2..].iter().all(|&b| b == FILLER)));
    }

    #[test]
    fn the_requested_fraction_consists_of_copies() {
        let source = DataSource::new(Redundancy { compress: 0.0, dedupe: 0.5 }, 3);
        let mut buf = vec![0; BLOCK * 4000];
        source.fill(&mut buf, 3);
        source.stamper(3, 1).stamp(&mut buf);
        let different: HashSet<&[u8]> = buf.chunks(BLOCK).collect();
        assert!((1900..2200).contains(&different.len()), "{} of 4000 differ", different.len());
        let mut other = vec![0; BLOCK * 4000];
        source.fill(&mut other, 4);
        source.stamper(3, 2).stamp(&mut other);
        assert!(other.chunks(BLOCK).filter(|b| different.contains(b)).count() > 1900, "copies are shared by threads");
    }
}
