//! Numbers of variable length: 7 bits a byte, the lowest first. Numbers below 0 are folded between those above.

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, mut n: u128) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Takes a number of at most 66 bits. `None` if there is none.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u128> {
    let mut n = 0u128;
    for shift in (0..70).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        n |= u128::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

/// The difference of two numbers, folded.
pub(crate) fn difference(now: u64, before: u64) -> u128 {
    let n = now.wrapping_sub(before) as i64;
    u128::from((n as u64) << 1 ^ (n >> 63) as u64)
}

/// The number that differs by this from the one before.
pub(crate) fn sum(before: u64, difference: u128) -> u64 {
    let n = difference as u64;
    before.wrapping_add(n >> 1 ^ (n & 1).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut bytes = Vec::new();
        let all = [0, 1, 127, 128, u128::from(u64::MAX), u128::from(u64::MAX) + 2];
        all.iter().for_each(|n| put(&mut bytes, *n));
        let mut rest = bytes.as_slice();
        assert_eq!(all.map(|_| take(&mut rest).unwrap_or(9)), all);
        assert_eq!((take(&mut rest), take(&mut &[0xff; 20][..])), (None, None));
        for (now, before) in [(0, 0), (5, 3), (3, 5), (0, u64::MAX), (u64::MAX, 0), (1 << 63, 0)] {
            assert_eq!(sum(before, difference(now, before)), now);
        }
        assert_eq!((difference(4, 5), difference(6, 5)), (1, 2));
    }
}
