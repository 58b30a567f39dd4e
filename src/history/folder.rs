//! The folder of a history: a file for each year, to which lines are appended.
//!
//! Who changes a file holds the lock of the folder. A reader takes none: lines are appended by one call, and files replaced
//! as a whole. A line that can't be read is left out with a note.

use super::line::{AcceptedLevel, HistoryLine, HistoryRun, LINES_SCHEMA, NightName, StoredConditions};
use super::tests_of_nights::{History, TestName};
use crate::import::{Metric, Observation};
use crate::os::OFlags;
use crate::os::held_dir::HeldDir;
use crate::os::reading;
use crate::output::{TableFile, replace_in};
use crate::util::count::count;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The file that is locked during changes.
const LOCK: &str = "lock";

/// The directory of the results of what was made again.
const SECOND: &str = "again";

/// The ending of the file of a year.
const ENDING: &str = ".jsonl";

/// The maximum length of a file in bytes. That of a year of a hundred tests is shorter.
const MAX_LENGTH: u64 = 256 << 20;

/// The beginning of the lines of runs and conditions, up to what tells them from others.
const RUN: &str = "{\"run\":{\"id\":\"";
const CONDITIONS: &str = "{\"conditions\":{\"digest\":\"";

/// The folder of a history, held open.
pub struct HistoryFolder {
    dir: HeldDir,
}

/// What was added, and what was there before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddedRuns {
    pub added: u64,
    pub known: u64,
    /// The number of those added that other programs disturbed.
    pub disturbed: u64,
}

/// Runs with their conditions, by the year of their nights.
#[derive(Default)]
pub struct NewRuns(BTreeMap<String, Vec<(StoredConditions, HistoryRun)>>);

impl NewRuns {
    /// Adds a run. Returns whether it has one of the metrics.
    pub fn push(&mut self, run: &Observation, night: &NightName, of: &TestName, wanted: &[Metric]) -> bool {
        let Some(found) = HistoryRun::of(run, night, &of.test, &of.place, wanted) else { return false };
        self.0.entry(year(&night.date)).or_default().push(found);
        true
    }
}

/// The year of a night.
fn year(night: &str) -> String {
    night.split('-').next().unwrap_or_default().to_owned()
}

/// A line with its end.
fn written(line: &HistoryLine) -> io::Result<String> {
    Ok(serde_json::to_string(line)? + "\n")
}

/// What tells the lines of a file from each other that begin like this.
fn keys<'a>(text: &'a str, beginning: &str) -> BTreeSet<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(beginning)?.split('"').next()).collect()
}

impl HistoryFolder {
    /// Opens a history.
    pub fn open(path: &Path) -> io::Result<Self> {
        let found = Self { dir: HeldDir::open(path)? };
        match found.years()?.is_empty() {
            true => Err(io::Error::new(ErrorKind::NotFound, "it has no result")),
            false => Ok(found),
        }
    }

    /// Opens a history, or an empty folder, which is created if it is missing. Fails if it has other files.
    pub fn create(path: &Path) -> io::Result<Self> {
        let found = Self { dir: HeldDir::create(path)?.0 };
        let is_own = |name: &OsStr| name == LOCK || name.to_str().is_some_and(|name| name.ends_with(ENDING));
        let is_foreign =
            || Ok(found.years()?.is_empty() && found.dir.entries()?.iter().any(|entry| !is_own(&entry.name)));
        // A writer that holds the lock may be making the first file.
        let has_lock = || Ok::<_, io::Error>(found.dir.entries()?.iter().any(|entry| entry.name == LOCK));
        match is_foreign()? && (!has_lock()? || found.alone(is_foreign)?) {
            true => Err(io::Error::new(ErrorKind::AlreadyExists, "it has files, and no history")),
            false => Ok(found),
        }
    }

    /// The names of the files, in the order of their years.
    fn years(&self) -> io::Result<Vec<String>> {
        let is_year = |name: &String| {
            name.strip_suffix(ENDING).is_some_and(|year| year.len() == 4 && year.bytes().all(|b| b.is_ascii_digit()))
        };
        let names = self.dir.entries()?.into_iter().filter_map(|entry| entry.name.into_string().ok());
        let mut found: Vec<String> = names.filter(is_year).collect();
        found.sort_unstable();
        Ok(found)
    }

    /// The paths of the files.
    pub fn files(&self) -> io::Result<Vec<PathBuf>> {
        Ok(self.years()?.iter().map(|name| self.dir.path().join(name)).collect())
    }

    /// The text of a file; empty if it does not exist.
    fn text(&self, name: &str) -> io::Result<String> {
        let file = match self.dir.open_file(OsStr::new(name), OFlags::RDONLY) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(String::new()),
            file => file?,
        };
        let bytes = reading::read_open(&file, MAX_LENGTH)?;
        String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, format!("{name} is not UTF-8")))
    }

    /// Does what changes files, while nobody else does.
    fn alone<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let lock = self.dir.open_file(OsStr::new(LOCK), OFlags::WRONLY | OFlags::CREATE)?;
        // Closing the file releases the lock.
        lock.lock()?;
        work()
    }

    /// Appends lines to the file of a year.
    fn append(&self, year: &str, lines: &str) -> io::Result<()> {
        let header = written(&HistoryLine::Schema(LINES_SCHEMA.to_owned()))?;
        let path = self.dir.path().join(format!("{year}{ENDING}"));
        TableFile::open(&path, &header, &[])?.append(&mut |out| out.write_all(lines.as_bytes()))
    }

    /// Adds runs. Those that are there already are not added again.
    pub fn add(&self, runs: NewRuns) -> io::Result<AddedRuns> {
        self.alone(|| {
            let mut found = AddedRuns::default();
            for (year, runs) in runs.0 {
                let text = self.text(&format!("{year}{ENDING}"))?;
                let [mut ids, mut digests] =
                    [RUN, CONDITIONS].map(|of| keys(&text, of).into_iter().map(str::to_owned).collect::<BTreeSet<_>>());
                let mut lines = String::new();
                for (conditions, run) in runs {
                    if !ids.insert(run.id.clone()) {
                        found.known += 1;
                        continue;
                    }
                    if digests.insert(conditions.digest.clone()) {
                        lines += &written(&HistoryLine::Conditions(conditions))?;
                    }
                    found.added += 1;
                    found.disturbed += u64::from(run.disturbed);
                    lines += &written(&HistoryLine::Run(run))?;
                }
                if !lines.is_empty() {
                    self.append(&year, &lines)?;
                }
            }
            Ok(found)
        })
    }

    /// The path for the results of what is made again in a night. It does not exist.
    pub(crate) fn second_results(&self, name: &str) -> io::Result<PathBuf> {
        let dir = self.dir.enter_or_make(OsStr::new(SECOND))?;
        let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}.{n}")));
        for name in names {
            if dir.find(OsStr::new(&name))?.is_none() {
                return Ok(dir.path().join(name));
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Keeps that the level of a test is a new one since a night, after what was accepted before.
    pub fn accept(&self, level: AcceptedLevel) -> io::Result<()> {
        let line = written(&HistoryLine::Accepted(level))?;
        self.alone(|| {
            let last = self.years()?.pop().unwrap_or_default();
            self.append(last.trim_end_matches(ENDING), &line)
        })
    }

    /// Removes the runs for which this is true; with `of` also what was accepted of that test. Returns their number.
    pub fn forget(&self, of: Option<&TestName>, is_it: impl Fn(&HistoryRun) -> bool) -> io::Result<u64> {
        self.alone(|| {
            let mut forgotten = 0;
            for name in self.years()? {
                let text = self.text(&name)?;
                let mut removed = 0;
                let is_kept = |line: &&str| match serde_json::from_str(line) {
                    Ok(HistoryLine::Run(run)) if is_it(&run) => {
                        removed += 1;
                        false
                    }
                    Ok(HistoryLine::Accepted(level)) => of.is_none_or(|of| !of.is(&level.test, &level.place)),
                    _ => true,
                };
                let kept: String = text.split_inclusive('\n').filter(is_kept).collect();
                if kept.len() < text.len() {
                    replace_in(&self.dir, OsStr::new(&name), &mut |out| out.write_all(kept.as_bytes()))?;
                }
                forgotten += removed;
            }
            Ok(forgotten)
        })
    }

    /// Reads the lines of all years, or of the last ones.
    pub fn read(&self, years: usize) -> io::Result<History> {
        let mut history = History::default();
        let names = self.years()?;
        for name in &names[names.len().saturating_sub(years)..] {
            let text = self.text(name)?;
            // What is being appended has no end yet.
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            let mut unread = 0;
            for line in text[..whole].lines().filter(|line| !line.is_empty()) {
                match serde_json::from_str(line) {
                    Ok(line) => history.take(line),
                    Err(_) => unread += 1,
                }
            }
            if unread > 0 {
                history.notes.push(format!("{name}: {} can't be read", count(unread, "line")));
            }
        }
        Ok(history)
    }
}
