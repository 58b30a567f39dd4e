//! Which files a trace is about. Of many, those of a directory are one.

use super::call::TracedCall;
use super::kind::CallClass;
use super::paths::{PathId, PathTable};
use std::collections::HashMap;
use std::ops::AddAssign;

/// The most files that are kept apart while a trace is read.
const MOST_FILES: usize = 1 << 17;
/// The rows of a table.
const ROWS: usize = 10;
/// Beside directories what has less than such a part is left out.
const SMALLEST: u128 = 1000;

/// What was done with a file, or with all below a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFigures {
    pub calls: u64,
    pub read: u64,
    pub written: u64,
    pub syncs: u64,
    /// In all calls together, in nanoseconds.
    pub time: u64,
    /// True if it stands for all below a directory.
    pub is_sum: bool,
    pub(crate) depth: usize,
}

impl AddAssign for FileFigures {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.read = self.read.saturating_add(other.read);
        self.written = self.written.saturating_add(other.written);
        self.syncs += other.syncs;
        self.time = self.time.saturating_add(other.time);
        self.is_sum |= other.is_sum;
        self.depth = other.depth;
    }
}

/// The files of calls.
#[derive(Clone, Debug)]
pub(crate) struct UsedFiles {
    files: HashMap<PathId, FileFigures>,
    /// What is deeper counts for its directory.
    deepest: usize,
}

impl Default for UsedFiles {
    fn default() -> Self {
        Self { files: HashMap::new(), deepest: usize::MAX }
    }
}

impl UsedFiles {
    /// Counts a call for its file; what it copies also for the other.
    pub(crate) fn add(&mut self, call: &TracedCall, paths: &PathTable) {
        let class = call.kind.get().class;
        let bytes = call.bytes().unwrap_or(0);
        if let Some(path) = call.path {
            let (read, written) = if class == CallClass::Write { (0, bytes) } else { (bytes, 0) };
            let (syncs, time) = (u64::from(class.syncs() || call.is_synchronous()), call.duration);
            self.count(path, FileFigures { calls: 1, read, written, syncs, time, ..FileFigures::default() }, paths);
        }
        if let Some(path) = call.second_path.filter(|_| class == CallClass::Copy) {
            self.count(path, FileFigures { written: bytes, ..FileFigures::default() }, paths);
        }
    }

    fn count(&mut self, path: PathId, figures: FileFigures, paths: &PathTable) {
        if let Some(known) = self.files.get_mut(&path) {
            *known += FileFigures { is_sum: known.is_sum, depth: known.depth, ..figures };
            return;
        }
        let (mut at, mut depth) = (path, paths.depth(path));
        let is_sum = depth > self.deepest;
        while depth > self.deepest {
            (at, depth) = (paths.parent(at), depth - 1);
        }
        *self.files.entry(at).or_default() += FileFigures { is_sum, depth, ..figures };
        while self.files.len() > MOST_FILES && self.fold(0, paths) {}
    }

    /// Counts the deepest for their directories. False if none is below a directory of this depth.
    fn fold(&mut self, least: usize, paths: &PathTable) -> bool {
        let deepest = self.files.values().map(|figures| figures.depth).max().unwrap_or(0);
        if deepest <= least {
            return false;
        }
        self.deepest = deepest - 1;
        let below: Vec<(PathId, FileFigures)> = self.files.extract_if(|_, figures| figures.depth == deepest).collect();
        for (path, figures) in below {
            let sum = FileFigures { is_sum: true, depth: deepest - 1, ..figures };
            *self.files.entry(paths.parent(path)).or_default() += sum;
        }
        true
    }

    /// All files, with their names; none if some are counted for directories.
    pub(crate) fn all(&self, paths: &PathTable) -> Vec<(String, FileFigures)> {
        let files = self.files.iter().filter(|_| self.deepest == usize::MAX);
        files.map(|(path, figures)| (name_of(*path, paths), *figures)).collect()
    }

    /// The files with most of the time, or of the calls if no times are known. If ten have less than half of it, directories.
    pub(crate) fn most_used(mut self, paths: &PathTable) -> Vec<(String, FileFigures)> {
        let has_times = self.files.values().any(|figures| figures.time > 0);
        let weight = |figures: &FileFigures| if has_times { (figures.time, figures.calls) } else { (figures.calls, 0) };
        loop {
            let mut all: Vec<(PathId, FileFigures)> = self.files.iter().map(|(path, of)| (*path, *of)).collect();
            all.sort_by_key(|(path, figures)| (std::cmp::Reverse(weight(figures)), *path));
            let sum = |of: &[(PathId, FileFigures)]| -> u128 {
                of.iter().map(|(_, figures)| u128::from(weight(figures).0)).sum()
            };
            let whole = sum(&all);
            all.truncate(ROWS);
            if sum(&all) * 2 < whole && self.fold(1, paths) {
                continue;
            }
            let is_folded = self.deepest < usize::MAX;
            all.retain(|(_, figures)| !is_folded || u128::from(weight(figures).0) * SMALLEST >= whole);
            let named = |(path, figures): (PathId, FileFigures)| {
                let text = name_of(path, paths);
                let end = if figures.is_sum && !text.ends_with('/') { "/" } else { "" };
                (text + end, figures)
            };
            return all.into_iter().map(named).collect();
        }
    }
}

fn name_of(path: PathId, paths: &PathTable) -> String {
    match path {
        PathId::UNKNOWN => "(an unknown directory)".to_owned(),
        path => String::from_utf8_lossy(&paths.path(path)).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::KindId;

    fn call(name: &str, bytes: i64, duration: u64, path: PathId, second_path: Option<PathId>) -> TracedCall {
        let kind = KindId::named(name).unwrap_or_default();
        TracedCall { kind, result: bytes, duration, path: Some(path), second_path, ..TracedCall::default() }
    }

    #[test]
    fn the_files_with_most_of_the_time_come_first() {
        let mut paths = PathTable::new();
        let mut file = |name: &str| paths.resolve(PathId::ROOT, name.as_bytes());
        let (db, journal, dir) = (file("/db/a"), file("/db/a-journal"), file("/db"));
        let calls = [
            call("pread64", 100, 5, db, None),
            call("pwrite64", 30, 6, journal, None),
            call("fdatasync", 0, 50, journal, None),
            call("fsync", 0, 20, dir, None),
            call("sendfile", 7, 1, db, Some(journal)),
        ];
        let mut files = UsedFiles::default();
        calls.iter().for_each(|call| files.add(call, &paths));
        let rows = files.most_used(&paths);
        let shown = rows.iter().map(|(path, f)| (path.as_str(), f.calls, f.read, f.written, f.syncs, f.time));
        let expected = [("/db/a-journal", 2, 0, 37, 1, 56), ("/db", 1, 0, 0, 1, 20), ("/db/a", 2, 107, 0, 0, 6)];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn of_many_files_directories_are_shown() {
        let mut paths = PathTable::new();
        let mut files = UsedFiles::default();
        for n in 0..MOST_FILES as u64 + 5000 {
            let path = paths.resolve(PathId::ROOT, format!("/tree/d{}/f{n}", n % 3).as_bytes());
            files.add(&call("stat", 0, 1, path, None), &paths);
        }
        let top = paths.resolve(PathId::ROOT, b"/tree");
        files.add(&call("stat", 0, 1000, top, None), &paths);
        files.add(&call("stat", 0, 100, PathId::ROOT, None), &paths);
        let rows = files.most_used(&paths);
        let names: Vec<&str> = rows.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(names, ["/tree/d0/", "/tree/d1/", "/tree/d2/", "/tree"]);
        let calls: u64 = rows.iter().map(|(_, figures)| figures.calls).sum();
        assert_eq!(calls, MOST_FILES as u64 + 5001);
        // Evenly spread over many directories.
        let mut files = UsedFiles::default();
        for n in 0..500 {
            let path = paths.resolve(PathId::ROOT, format!("/tree/d{n}/f").as_bytes());
            files.add(&call("stat", 0, 1, path, None), &paths);
        }
        let rows = files.most_used(&paths);
        assert_eq!(rows.iter().map(|(path, f)| (path.as_str(), f.calls)).collect::<Vec<_>>(), [("/tree/", 500)]);
    }
}
