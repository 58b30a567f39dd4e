//! Suggests the known name that a misspelt name was probably meant to be.

/// Maximum length in bytes of a misspelt name. For longer names no suggestion is made.
const LONGEST_NAME: usize = 64;

/// Maximum number of known names that are compared with a misspelt one. Only generated texts have more.
const MOST_NAMES: usize = 4096;

/// Returns the known name that is most similar to `written`, or `None` when no name is similar enough. A name is
/// similar enough if it differs only in case, or if its edit distance is at most a third of the length of `written`. An
/// insertion, a deletion, a substitution and a transposition of adjacent characters count as one edit each. Of several
/// names with the same distance, the one with the closest length is returned, then the alphabetically first.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > LONGEST_NAME {
        return None;
    }
    let limit = written.chars().count().max(3) / 3;
    let written_letters = letter_set(written);
    known
        .into_iter()
        .filter(|name| *name != written && name.len().abs_diff(written.len()) <= 4 * limit)
        .take(MOST_NAMES)
        .filter_map(|name| distance(written, written_letters, name, limit).map(|d| (d, name)))
        .min_by_key(|(d, name)| (*d, name.len().abs_diff(written.len()), *name))
        .map(|(_, name)| name)
}

/// Returns the edit distance of two names, or `None` when it exceeds `limit`.
fn distance(written: &str, written_letters: u64, name: &str, limit: usize) -> Option<usize> {
    if name.eq_ignore_ascii_case(written) {
        return Some(0);
    }
    // Each letter that only one of the names contains needs an edit. This lower bound excludes most names without
    // computing the edit distance: a script of 10 MB of unknown commands is checked in 1 s instead of 7 s.
    let name_letters = letter_set(name);
    let least = (written_letters & !name_letters).count_ones().max((name_letters & !written_letters).count_ones());
    if least as usize > limit {
        return None;
    }
    Some(strsim::osa_distance(written, name)).filter(|d| *d <= limit)
}

/// Returns the set of a name's letters as a bit mask. Several letters may share a bit.
fn letter_set(name: &str) -> u64 {
    name.chars().fold(0, |bits, letter| bits | 1 << (u32::from(letter) % 64))
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_similar_names_are_suggested() {
        let known = ["fileset", "filesize", "iosize", "name"];
        assert_eq!(nearest("filset", known), Some("fileset"));
        assert_eq!(nearest("iosiez", known), Some("iosize"));
        assert_eq!(nearest("bar", ["chr"]), None);
        assert_eq!(nearest("NAME", known), Some("name"));
        assert_eq!(nearest("name", ["name"]), None);
    }
}
