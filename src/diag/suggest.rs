//! Near misses: the known name that a misspelt one was meant to be.

/// Bytes of the longest name that is compared with others: nobody misspells one in 64 letters.
const LONGEST: usize = 64;

/// Names that one is compared with; there are not more outside of generated texts.
const MOST: usize = 4096;

/// The known name nearest to `written`, if it is near enough to be offered: at most a third of the length away
/// (insertions, deletions, changes and swaps of neighbours count one each), or the same but for case.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > LONGEST {
        return None;
    }
    let limit = written.chars().count().max(3) / 3;
    known
        .into_iter()
        .filter(|name| *name != written && name.len().abs_diff(written.len()) <= 4 * limit)
        .take(MOST)
        .map(|name| (if name.eq_ignore_ascii_case(written) { 0 } else { distance(written, name) }, name))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, name)| (*d, name.len().abs_diff(written.len())))
        .map(|(_, name)| name)
}

/// Damerau's distance, restricted: no substring is edited twice.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // The row of this character, and of the two before it.
    let mut rows: [Vec<usize>; 3] = [vec![0; b.len() + 1], vec![0; b.len() + 1], (0..=b.len()).collect()];
    for i in 1..=a.len() {
        rows.rotate_left(1);
        let [before, last, row] = &mut rows;
        row[0] = i;
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row[j] = best;
        }
    }
    rows[2][b.len()]
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
