//! The journal of an experiment: a file that only grows, an event a line, each on the disk before the next thing happens.

use crate::os::fd;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event {
    /// The experiment was begun; with the digest of what was asked for.
    Begun {
        /// Of `experiment.toml`.
        experiment: String,
        /// RFC 3339.
        time: String,
    },
    /// It went on after an interruption.
    Resumed {
        /// RFC 3339.
        time: String,
        /// What was not as before, and was accepted.
        changed: Vec<String>,
    },
    /// A command between runs has succeeded.
    Hook {
        /// The run beside it, from 1.
        run: u64,
        /// Its option.
        name: String,
        /// How long it took.
        seconds: f64,
    },
    /// A run was started.
    Started {
        /// Its number, from 1.
        run: u64,
        /// The index of its arm.
        arm: u64,
        /// The speed of the control just before; absent of a single arm.
        control: Option<f64>,
        /// RFC 3339.
        time: String,
    },
    /// A run is complete, and its file is whole.
    Finished {
        /// Its number.
        run: u64,
        /// How long it took with all that belongs to it; absent if nobody saw its end.
        seconds: Option<f64>,
    },
    /// A run failed where that is a result of its own.
    Failed {
        /// Its number.
        run: u64,
        /// In words.
        why: String,
    },
    /// It was interrupted, or a run or a command failed: why.
    Stopped {
        /// In words.
        why: String,
        /// RFC 3339.
        time: String,
    },
    /// It is complete.
    Ended {
        /// RFC 3339.
        time: String,
    },
}

/// The journal, open and locked.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
}

impl Journal {
    /// Opens the journal, made if it is not there, and reads it. A line that a crash has cut off is taken off.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Vec<Event>)> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        fd::lock(file.as_raw_fd()).map_err(|_| io::Error::other("another process works on it"))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::End(0))?;
        }
        let event = |(n, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|e| {
                io::Error::new(io::ErrorKind::InvalidData, format!("line {} of the journal is no event: {e}", n + 1))
            })
        };
        let events = text[..whole].lines().enumerate().map(event).collect::<io::Result<_>>()?;
        Ok((Self { file }, events))
    }

    /// Writes an event, and returns when it is on the disk.
    pub(super) fn write(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_cut_line_is_taken_off_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let (mut journal, events) = Journal::open(&path).unwrap();
        assert!(events.is_empty() && Journal::open(&path).is_err(), "it is locked");
        let finished = |run| Event::Finished { run, seconds: Some(1.5) };
        journal.write(&finished(1)).unwrap();
        journal.write(&finished(2)).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (mut journal, events) = Journal::open(&path).unwrap();
            let lines = whole[..cut].split(|byte| *byte == b'\n').count() - 1;
            assert_eq!(events, [finished(1), finished(2)][..lines]);
            journal.write(&finished(9)).unwrap();
            drop(journal);
            assert_eq!(Journal::open(&path).unwrap().1.len(), lines + 1);
        }
        std::fs::write(&path, "hello\n").unwrap();
        assert!(Journal::open(&path).unwrap_err().to_string().contains("line 1"));
    }
}
