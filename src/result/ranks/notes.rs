//! The notes of several ranks: equal ones once, and a text that names the ranks if not all have them.

use super::RankRun;
use crate::rank_on_host;
use crate::{Note, warnings};
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of different texts with one code. Texts with a measured value differ on every rank.
const MAX_TEXTS: usize = 4;

/// The largest number of ranks that a text names.
const MAX_RANKS: usize = 8;

/// Returns the notes of all ranks, in the order of their first occurrence. Warnings that are derived from a result are
/// left out: they are derived from the merged one.
pub(super) fn merged(ranks: &[RankRun]) -> Vec<Note> {
    let mut notes: Vec<(&Note, BTreeSet<u64>)> = Vec::new();
    for rank in ranks {
        for note in rank.run.warnings.iter().filter(|note| !warnings::is_derived(note)) {
            match notes.iter_mut().find(|(known, _)| *known == note) {
                Some((_, have)) => drop(have.insert(rank.rank)),
                None => notes.push((note, BTreeSet::from([rank.rank]))),
            }
        }
    }
    let mut merged = Vec::new();
    let mut texts: BTreeMap<&str, usize> = BTreeMap::new();
    for (note, have) in &notes {
        let shown = texts.entry(&note.code).or_default();
        *shown += 1;
        if *shown <= MAX_TEXTS {
            merged.push(Note { code: note.code.clone(), message: prefixed(ranks, have, &note.message) });
        }
    }
    for (code, found) in texts.into_iter().filter(|(_, found)| *found > MAX_TEXTS) {
        let others = notes.iter().filter(|(note, _)| note.code == code).skip(MAX_TEXTS);
        let have: BTreeSet<u64> = others.flat_map(|(_, have)| have).copied().collect();
        let message = format!("{} more notes of this kind", found - MAX_TEXTS);
        merged.push(Note { code: code.to_owned(), message: prefixed(ranks, &have, &message) });
    }
    merged
}

/// Returns a text with the ranks that have it before it; without them if all have it.
pub(super) fn prefixed(ranks: &[RankRun], have: &BTreeSet<u64>, text: &str) -> String {
    if ranks.iter().all(|rank| have.contains(&rank.rank)) {
        text.to_owned()
    } else {
        format!("{}: {text}", names(ranks, have))
    }
}

/// Names some of the ranks: by their hosts if all ranks of these hosts are among them.
fn names(ranks: &[RankRun], have: &BTreeSet<u64>) -> String {
    let hosts: BTreeSet<&str> =
        ranks.iter().filter(|rank| have.contains(&rank.rank)).map(|rank| rank.host.as_str()).collect();
    let on_hosts = || ranks.iter().filter(|rank| hosts.contains(rank.host.as_str()));
    if on_hosts().count() > 1 && on_hosts().all(|rank| have.contains(&rank.rank)) {
        return format!("on {}", list(hosts.iter().map(|host| format!("`{host}`"))));
    }
    if let (Some(rank), 1, Some(host)) = (have.first(), have.len(), hosts.first()) {
        return rank_on_host(rank, host);
    }
    format!("ranks {}", list(have.iter().map(u64::to_string)))
}

/// Joins the first texts by commas.
fn list(texts: impl ExactSizeIterator<Item = String>) -> String {
    let more = texts.len().saturating_sub(MAX_RANKS);
    let shown: Vec<String> = texts.take(MAX_RANKS).collect();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    /// Returns ranks on `h1`, `h1`, `h2` and `h2`, with these notes.
    fn ranks(notes: [&[(&str, &str)]; 4]) -> Vec<RankRun> {
        let note = |(code, message): &(&str, &str)| Note { code: (*code).to_owned(), message: (*message).to_owned() };
        let rank = |(n, notes): (usize, &[(&str, &str)])| RankRun {
            rank: n as u64,
            host: if n < 2 { "h1" } else { "h2" }.to_owned(),
            run: Run { warnings: notes.iter().map(note).collect(), ..Run::default() },
            ..RankRun::default()
        };
        notes.into_iter().enumerate().map(rank).collect()
    }

    fn texts(notes: [&[(&str, &str)]; 4]) -> Vec<String> {
        merged(&ranks(notes)).into_iter().map(|note| note.message).collect()
    }

    #[test]
    fn a_note_names_the_ranks_that_have_it() {
        let note = &[("exhausted", "ended early")][..];
        assert_eq!(texts([note, note, note, note]), ["ended early"]);
        assert_eq!(texts([&[], &[], note, note]), ["on `h2`: ended early"]);
        assert_eq!(texts([&[], note, &[], &[]]), ["rank 1 on `h1`: ended early"]);
        assert_eq!(texts([&[], note, note, &[]]), ["ranks 1, 2: ended early"]);
        assert_eq!(texts([note, note, &[], note]), ["ranks 0, 1, 3: ended early"]);
    }

    #[test]
    fn derived_warnings_are_left_out() {
        assert!(texts([&[("short_run", "short")], &[], &[], &[]]).is_empty());
    }

    #[test]
    fn texts_that_differ_on_each_rank_are_limited() {
        let notes = [&[("stopped", "1 s"), ("stopped", "2 s")][..], &[("stopped", "3 s")], &[("stopped", "4 s")]];
        let [a, b, c] = notes;
        let found = texts([a, b, c, &[("stopped", "5 s"), ("stopped", "6 s")]]);
        assert_eq!(found.len(), MAX_TEXTS + 1);
        assert_eq!(found[4], "rank 3 on `h2`: 2 more notes of this kind");
    }
}
