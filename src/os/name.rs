//! File names that are decimal numbers of at least eight digits, ready for a system call.
//!
//! The module is in `os` for its unchecked conversion to [`CStr`]. It does not know what the numbers mean.

use std::ffi::CStr;

/// A name of eight or more digits with its terminating zero byte, stored inline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    /// The digits, right-aligned, so that the terminating zero byte is always the last byte.
    text: [u8; LEN + 1],
    from: u8,
}

impl Default for Name {
    /// Returns the empty name, which no file has.
    ///
    /// Not derived: with `from` at the first of several zero bytes, [`Name::as_c`] would be undefined behaviour.
    #[inline]
    fn default() -> Self {
        Self { text: [0; LEN + 1], from: LEN as u8 }
    }
}

/// The number of digits of `u64::MAX`.
const LEN: usize = 20;
/// The least number of digits of a name.
const DIGITS: usize = 8;

impl Name {
    /// Returns the name of `n`: `00000042`. Numbers above 99,999,999 have more digits, as with `%08d`.
    #[inline]
    pub fn new(n: u64) -> Self {
        let mut text = [0; LEN + 1];
        if n < 100_000_000 {
            text[LEN - DIGITS..LEN].copy_from_slice(&eight_digits(n as u32));
            return Self { text, from: (LEN - DIGITS) as u8 };
        }
        Self::long(n, text)
    }

    #[cold]
    fn long(mut n: u64, mut text: [u8; LEN + 1]) -> Self {
        let mut from = LEN;
        while n > 0 {
            from -= 1;
            text[from] = b'0' + (n % 10) as u8;
            n /= 10;
        }
        Self { text, from: from as u8 }
    }

    /// Returns the name as a C string.
    #[inline]
    pub fn as_c(&self) -> &CStr {
        // SAFETY: the last byte of `text` is zero. `from` is at most the index of that byte, and the bytes between are
        // ASCII digits, so the slice has exactly one zero byte, at its end.
        unsafe { CStr::from_bytes_with_nul_unchecked(&self.text[self.from as usize..]) }
    }

    /// Returns the digits without the terminating zero byte.
    #[inline]
    pub fn digits(&self) -> &[u8] {
        &self.text[self.from as usize..LEN]
    }

    /// Returns the number of a name. `None` for zero and for a text that [`Name::new`] does not produce.
    pub fn parse(name: &[u8]) -> Option<u64> {
        if name.len() < DIGITS || name.len() > LEN || (name.len() > DIGITS && name[0] == b'0') {
            return None;
        }
        let mut n: u64 = 0;
        for &c in name {
            n = n.checked_mul(10)?.checked_add(u64::from(c.wrapping_sub(b'0')))?;
            if !c.is_ascii_digit() {
                return None;
            }
        }
        (n > 0).then_some(n)
    }
}

/// Converts `n`, below 100,000,000, to eight ASCII digits. Splits the number into halves, quarters and digits, in
/// parallel lanes of one word. Divides by multiplication with rounded-up reciprocals, which is exact for the few bits
/// in each lane.
#[inline]
fn eight_digits(n: u32) -> [u8; DIGITS] {
    let n = u64::from(n);
    let (high, low) = (n / 10_000, n % 10_000);
    let fours = high | (low << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = (fours - hundreds * 100) << 16 | hundreds;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = (twos - tens * 10) << 8 | tens;
    (ones | 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn every_name_is_the_number_in_eight_digits() {
        let mut n = 1_u64;
        while n < 100_000_000 {
            for k in [n - 1, n, n + 1] {
                assert_eq!(Name::new(k).as_c().to_bytes(), format!("{k:08}").as_bytes());
            }
            n += n / 7 + 1;
        }
        for k in 0..20_000_u64 {
            assert_eq!(Name::new(k * 4999).digits(), format!("{:08}", k * 4999).as_bytes());
        }
        for k in [99_999_999, 100_000_000, u64::MAX] {
            assert_eq!(Name::new(k).as_c().to_bytes(), format!("{k:08}").as_bytes());
        }
    }

    #[test]
    fn only_names_of_numbers_are_parsed() {
        assert_eq!(Name::parse(b"00000001"), Some(1));
        assert_eq!(Name::parse(b"123456789"), Some(123_456_789));
        for bad in ["", "1", "0000001", "00000000", "012345678", "0000001a", "00000001~", "99999999999999999999999"] {
            assert_eq!(Name::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
