//! Hashes: of texts, by SHA-256, and of numbers, by the finalizer of `SplitMix64`.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{self, Read};

/// The odd constant of `SplitMix64` (Steele, Lea and Flood 2014): 2^64 divided by the golden ratio.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns the SHA-256 digest of a text or of bytes in hexadecimal.
pub fn sha256(text: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(text))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut hex, b| {
        let _ = write!(hex, "{b:02x}");
        hex
    })
}

/// Returns the digest of what is read, to its end.
///
/// # Errors
/// If it can't be read.
pub fn sha256_of(mut input: impl Read) -> io::Result<String> {
    let (mut hasher, mut part) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match input.read(&mut part)? {
            0 => return Ok(hex(&hasher.finalize())),
            n => hasher.update(&part[..n]),
        }
    }
}

/// Computes `SplitMix64`'s finalizer: a bijection in which each input bit changes half of the output bits.
#[inline]
const fn finalise(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns a stateless hash of `seed` and `n`. Layouts are computed from it, so that the size of file `n` needs no file
/// before it.
///
/// For a given seed this is a bijection of `n`.
#[inline]
pub const fn mix(seed: u64, n: u64) -> u64 {
    // The seed is hashed first. Otherwise the streams of seeds that differ by a multiple of `GOLDEN` would overlap.
    finalise(finalise(seed ^ GOLDEN).wrapping_add(n.wrapping_mul(GOLDEN)))
}
