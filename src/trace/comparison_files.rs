//! The files whose figures differ between two traces.

use super::comparison::{SMALL_SHARE, TraceComparison, is_same};
use super::summary::TraceSummary;
use super::summary_sheet::known_time;
use super::used_files::FileFigures;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use wml_sheet::{Media, SheetColumn, SheetTable};
use wml_text::count::{count, grouped};
use wml_text::size;

/// The rows of the table.
const ROWS: usize = 10;

/// The letters that temporary names of a kind have in common, at least.
const BEGIN: usize = 3;

/// A file of both traces, or of one. Pairs are A and B.
#[derive(Debug, Serialize)]
pub struct ComparedFile {
    path: String,
    calls: [u64; 2],
    bytes_read: [u64; 2],
    bytes_written: [u64; 2],
    syncs: [u64; 2],
    /// `None` if the recorders differ.
    seconds: Option<[f64; 2]>,
    #[serde(skip)]
    time: [u64; 2],
}

/// The files of a trace by their names. If each trace is about one directory, by those below it: it may be another one.
fn named<'s>(side: &'s TraceSummary, other: &TraceSummary) -> BTreeMap<&'s str, &'s FileFigures> {
    let dir = match (side.header.under.as_slice(), other.header.under.as_slice()) {
        ([dir], [others]) if dir != others => Some(dir.as_str()),
        _ => None,
    };
    let name = |path: &'s String| {
        let below = dir.and_then(|dir| path.strip_prefix(dir));
        match below.map(|below| (below, below.trim_start_matches('/'))) {
            Some(("", _)) => ".",
            Some((below, name)) if below.starts_with('/') => name,
            _ => path,
        }
    };
    side.all_files.iter().map(|(path, figures)| (name(path), figures)).collect()
}

/// True if two names differ as temporary ones do, such as `tmp_idx_q3XhLf`.
fn are_temporary(a: &str, b: &str) -> bool {
    const RANDOM: usize = 4;
    let bytes = || a.bytes().zip(b.bytes());
    let begin = bytes().take_while(|(a, b)| a == b).count();
    let end = bytes().rev().take_while(|(a, b)| a == b).count();
    a.len() == b.len() && begin + end + RANDOM <= a.len()
}

/// Takes out temporary files of one side that have the like on the other: in the same directory, and used as often.
fn drop_temporary(sides: &mut [BTreeMap<&str, &FileFigures>; 2]) {
    let [a, b] = sides;
    let key = |name: &str, figures: &FileFigures| {
        let start = name.rfind('/').map_or(0, |at| at + 1) + BEGIN;
        let start = name.get(..start).map(str::to_owned);
        start.map(|start| (start, name.len(), figures.calls, figures.syncs))
    };
    let mut alike: HashMap<_, Vec<&str>> = HashMap::new();
    for (name, figures) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
        alike.entry(key(name, figures)).or_default().push(name);
    }
    let of_a: Vec<_> =
        a.iter().filter(|(name, _)| !b.contains_key(*name)).map(|(name, f)| (*name, key(name, f))).collect();
    for (name, key) in of_a.into_iter().filter(|(_, key)| key.is_some()) {
        let Some(found) = alike.get_mut(&key) else { continue };
        if let Some(at) = found.iter().rposition(|other| are_temporary(name, other)) {
            a.remove(name);
            b.remove(found.swap_remove(at));
        }
    }
}

impl TraceComparison<'_> {
    /// Why files can't be compared, if they can't.
    pub(crate) fn without_files(&self) -> Option<String> {
        let mut sides = self.sides.iter().zip(["A", "B"]);
        sides.find_map(|(side, letter)| match side {
            side if side.header.hashes_names => Some(format!("the names of {letter} are hidden")),
            side if side.all_files.is_empty() && side.paths > 0 => Some(format!("{letter} has too many")),
            _ => None,
        })
    }

    /// The files that differ by what they are used for, and not by more work: first those that are synced more or less often,
    /// then those with the greatest part of the calls or of the time.
    pub(crate) fn files(&self) -> Vec<ComparedFile> {
        let [a, b] = self.sides;
        if self.without_files().is_some() {
            return Vec::new();
        }
        let mut sides = [named(a, b), named(b, a)];
        drop_temporary(&mut sides);
        let names = sides[0].keys().chain(sides[1].keys().filter(|name| !sides[0].contains_key(*name)));
        let mut found: Vec<(bool, f64, ComparedFile)> = names.filter_map(|name| self.file(name, &sides)).collect();
        found.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then_with(|| a.2.path.cmp(&b.2.path)));
        found.into_iter().map(|(.., file)| file).collect()
    }

    /// A file, if it differs: whether in its syncs, and how much.
    fn file(&self, name: &str, sides: &[BTreeMap<&str, &FileFigures>; 2]) -> Option<(bool, f64, ComparedFile)> {
        let figures = sides.each_ref().map(|side| side.get(name).map_or_else(FileFigures::default, |found| **found));
        let of = |of: fn(&FileFigures) -> u64| figures.each_ref().map(of);
        let (calls, time, syncs) = (of(|f| f.calls), of(|f| f.time), of(|f| f.syncs));
        let (bytes_read, bytes_written) = (of(|f| f.read), of(|f| f.written));
        let work = self.work.unwrap_or(1.0);
        let other_bytes = |[a, b]: [u64; 2]| a != b && !is_same(b as f64 / (a as f64 * work));
        let is_synced = self.differs(syncs);
        if !(is_synced || self.differs(calls) || other_bytes(bytes_read) || other_bytes(bytes_written)) {
            return None;
        }
        let of_time = if self.has_times() { self.change(time, TraceSummary::time) } else { 0.0 };
        let changed = self.change(calls, TraceSummary::calls).max(of_time);
        let share = |n: usize| figures[n].calls as f64 / self.sides[n].calls().max(1) as f64;
        let is_much = is_synced || changed >= SMALL_SHARE || share(0).max(share(1)) >= SMALL_SHARE;
        let seconds = self.has_times().then(|| time.map(|ns| ns as f64 / 1e9));
        let path = name.to_owned();
        let file = ComparedFile { path, calls, bytes_read, bytes_written, syncs, seconds, time };
        is_much.then_some((is_synced, changed, file))
    }

    /// The first of them as a table, without columns that have zeros alone.
    pub(crate) fn file_table(&self, files: &[ComparedFile]) -> SheetTable {
        type Column = (&'static str, Media, fn(&ComparedFile) -> [u64; 2], fn(u64) -> String);
        let columns: [Column; 6] = [
            ("calls", Media::ALL, |file| file.calls, grouped),
            // A terminal has no room for both.
            (
                "bytes",
                Media::TEXT,
                |file| [0, 1].map(|n| file.bytes_read[n].saturating_add(file.bytes_written[n])),
                size::format,
            ),
            ("read", Media::RICH, |file| file.bytes_read, size::format),
            ("written", Media::RICH, |file| file.bytes_written, size::format),
            ("syncs", Media::ALL, |file| file.syncs, grouped),
            ("time", Media::ALL, |file| file.time, known_time),
        ];
        let shown = &files[..files.len().min(ROWS)];
        let is_used = |(name, _, of, _): &&Column| {
            (*name != "time" || self.has_times()) && shown.iter().any(|file| of(file) != [0, 0])
        };
        let columns: Vec<&Column> = columns.iter().filter(is_used).collect();
        let headings = columns.iter().flat_map(|(name, media, ..)| {
            [format!("{name} A"), "B".to_owned()].map(|heading| SheetColumn::numbers(&heading).only(*media))
        });
        let headings = headings.chain([SheetColumn::words("path")]);
        let mut table = SheetTable { is_compact: true, ..SheetTable::of("Files that differ", headings) };
        for file in shown {
            let cells = columns.iter().flat_map(|(_, _, of, text)| of(file).map(text));
            table.row(cells.chain([file.path.clone()]));
        }
        if let Some(more @ 1..) = files.len().checked_sub(ROWS) {
            table.below.push(format!("{} with smaller differences.", count(more as u64, "other file")));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_no_difference_and_others_are() {
        let figures = [1, 2].map(|calls| FileFigures { calls, ..FileFigures::default() });
        let [once, twice] = figures.each_ref();
        let all = [
            ["d/tmp_idx_q3XhLf", "d/tmp_idx_aaaaaa"],
            ["d/tmp_idx_Zb5aB7", "d/tmp_idx_bbbbbb"],
            ["d/data1", "d/data2"],
        ];
        let mut sides = [0, 1].map(|n| all.iter().map(|names| (names[n], once)).collect::<BTreeMap<_, _>>());
        sides[0].insert("tmpabcdef", once);
        sides[1].insert("tmpghijkl", twice);
        sides[1].insert("e/tmp_idx_cccccc", once);
        drop_temporary(&mut sides);
        let left = sides.map(|side| side.into_keys().collect::<Vec<_>>());
        assert_eq!(left, [vec!["d/data1", "tmpabcdef"], vec!["d/data2", "e/tmp_idx_cccccc", "tmpghijkl"]]);
        for (a, b) in [("tmpabcdef", "tmpabcdeg"), ("tmpabc", "tmpabcdefg"), ("", "")] {
            assert!(!are_temporary(a, b), "{a} {b}");
        }
    }
}
