//! What is written into files: never zeros, and no two 4 KiB blocks alike, unless copies are asked for.
//!
//! A buffer is filled once with random bytes; before each write every 4 KiB of it gets a stamp that no other block of the
//! session has. That costs one cache line a block and keeps a file system that compresses or deduplicates honest.

use crate::random::{self, mix};
use rand::RngExt;
use std::sync::Arc;

/// The block in which data is unique; file systems deduplicate no finer.
pub const BLOCK: usize = 4096;
/// Bytes of a stamp: who wrote, and the how-manieth block it was.
const STAMP: usize = 16;
/// How many different blocks the copies are of.
const ORIGINALS: usize = 64;
/// What the compressible part of a block consists of. Not zero: some devices throw zeros away unseen.
const FILLER: u8 = 0x20;

/// What draws from a seed, each for itself.
mod purpose {
    pub(super) const FILL: u64 = 0xf111;
    pub(super) const STAMPS: u64 = 0x57a3;
    pub(super) const COPIES: u64 = 0xc0b1;
}

/// Fills a buffer with random bytes; of each 4 KiB block the fraction `compress` at its end is one repeated byte.
pub fn fill(buf: &mut [u8], seed: u64, compress: f64) {
    let mut rng = random::stream(seed, &[purpose::FILL]);
    let random = random_part(compress);
    for block in buf.chunks_mut(BLOCK) {
        let (head, tail) = block.split_at_mut(random.min(block.len()));
        rng.fill(head);
        tail.fill(FILLER);
    }
}

/// Bytes of a block that stay random: at least the stamp.
fn random_part(compress: f64) -> usize {
    let random = (BLOCK as f64 * (1.0 - compress.clamp(0.0, 1.0))).round() as usize;
    random.max(STAMP)
}

/// Makes the blocks of a thread's writes unique.
#[derive(Clone, Debug)]
pub struct Stamper {
    id: u64,
    count: u64,
    copies: Option<Copies>,
}

/// Blocks that are written again and again.
#[derive(Clone, Debug)]
struct Copies {
    /// A block is a copy if its hash lies below this.
    below: u64,
    originals: Arc<[u8]>,
}

impl Stamper {
    /// The stamps of one thread. Two threads of one seed have no stamp in common, nor have two seeds.
    pub fn new(seed: u64, thread: u64) -> Self {
        Self { id: mix(mix(seed, purpose::STAMPS), thread), count: 0, copies: None }
    }

    /// Makes the fraction `share` of the blocks copies of a few blocks that all stampers of this `seed` have in common.
    /// These are as compressible as the rest.
    #[must_use]
    pub fn with_copies(mut self, share: f64, seed: u64, compress: f64) -> Self {
        if share > 0.0 {
            let mut originals = vec![0; ORIGINALS * BLOCK];
            fill(&mut originals, mix(seed, purpose::COPIES), compress);
            self.copies =
                Some(Copies { below: (share.min(1.0) * u64::MAX as f64) as u64, originals: originals.into() });
        }
        self
    }

    /// Stamps what is about to be written. Call it before each write of the buffer.
    #[inline]
    pub fn stamp(&mut self, buf: &mut [u8]) {
        if self.copies.is_some() {
            return self.stamp_or_copy(buf);
        }
        for block in buf.chunks_mut(BLOCK) {
            self.count += 1;
            put(block, self.id, self.count);
        }
    }

    #[cold]
    fn stamp_or_copy(&mut self, buf: &mut [u8]) {
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

/// Writes a stamp, or as much of it as there is room for: the part that changes comes first.
#[inline]
fn put(block: &mut [u8], id: u64, count: u64) {
    // Spread over all bits, so that a stamp looks like the data around it, and is not zero in most bytes.
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
    fn no_two_blocks_are_alike_and_none_is_zero() {
        let mut seen = HashSet::new();
        for thread in 0..3 {
            let mut buf = vec![0; 256 * 1024];
            fill(&mut buf, 1, 0.0);
            let mut stamper = Stamper::new(1, thread);
            for _ in 0..10 {
                stamper.stamp(&mut buf);
                for block in buf.chunks(BLOCK) {
                    assert!(seen.insert(block.to_vec()), "a block came twice");
                    assert!(block.iter().filter(|&&b| b == 0).count() < 100);
                }
            }
        }
    }

    #[test]
    fn pieces_that_are_not_whole_blocks_are_stamped_too() {
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
    fn the_asked_for_part_is_compressible() {
        let mut buf = vec![0; BLOCK * 8];
        fill(&mut buf, 3, 0.75);
        Stamper::new(3, 1).stamp(&mut buf);
        for block in buf.chunks(BLOCK) {
            assert!(block[1024..].iter().all(|&b| b == FILLER));
            assert!(block[..1024].iter().filter(|&&b| b == FILLER).count() < 50);
        }
    }

    #[test]
    fn the_asked_for_part_consists_of_copies() {
        let mut buf = vec![0; BLOCK * 4000];
        fill(&mut buf, 3, 0.0);
        Stamper::new(3, 1).with_copies(0.5, 3, 0.0).stamp(&mut buf);
        let different: HashSet<&[u8]> = buf.chunks(BLOCK).collect();
        assert!((1900..2200).contains(&different.len()), "{} of 4000 differ", different.len());
        let mut other = vec![0; BLOCK * 4000];
        fill(&mut other, 4, 0.0);
        Stamper::new(3, 2).with_copies(0.5, 3, 0.0).stamp(&mut other);
        assert!(other.chunks(BLOCK).filter(|b| different.contains(b)).count() > 1900, "copies are shared by threads");
    }
}
