//! The journal of an experiment: an append-only file with one event on each line. Each event is on the disk before the
//! experiment continues.

use crate::os::fd;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// An event of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event {
    /// The experiment was started.
    Begun {
        /// The digest of `experiment.toml`.
        experiment: String,
        /// The time, RFC 3339.
        time: String,
    },
    /// The experiment was resumed.
    Resumed {
        /// The time, RFC 3339.
        time: String,
        /// The changed conditions that were accepted with `--anyway`.
        changed: Vec<String>,
    },
    /// A command before or after a run succeeded.
    Hook {
        /// The number of the run, from 1.
        run: u64,
        /// The name of the hook.
        name: String,
        /// The duration of the command.
        seconds: f64,
    },
    /// A run was started.
    Started {
        /// The number of the run, from 1.
        run: u64,
        /// The index of its arm.
        arm: u64,
        /// The speed of the negative control before the run; `None` unless two arms are compared.
        control: Option<f64>,
        /// The time, RFC 3339.
        time: String,
    },
    /// A run is complete and its result is written.
    Finished {
        /// The number of the run.
        run: u64,
        /// The duration, including commands; `None` when the experiment was interrupted before the end of the run was
        /// recorded.
        seconds: Option<f64>,
    },
    /// A run of a load curve failed. The failure is a result of its level.
    Failed {
        /// The number of the run.
        run: u64,
        /// The reason.
        why: String,
    },
    /// The experiment was interrupted, or stopped because a run or a command failed.
    Stopped {
        /// The reason.
        why: String,
        /// The time, RFC 3339.
        time: String,
    },
    /// The experiment is complete.
    Ended {
        /// The time, RFC 3339.
        time: String,
    },
}

/// An open and locked journal.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
}

impl Journal {
    /// Opens or creates the journal, locks it and reads its events. An incomplete last line, which a crash may leave,
    /// is removed. Returns an error when another process has locked the journal, or when a line is not an event.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Vec<Event>)> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        fd::lock(file.as_raw_fd()).map_err(|_| io::Error::other("another process is using it"))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::End(0))?;
        }
        let event = |(n, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|e| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("line {} of the journal is not an event: {e}", n + 1),
                )
            })
        };
        let events = text[..whole].lines().enumerate().map(event).collect::<io::Result<_>>()?;
        Ok((Self { file }, events))
    }

    /// Appends an event and returns when it is on the disk.
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
    fn an_incomplete_last_line_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let (mut journal, events) = Journal::open(&path).unwrap();
        assert!(events.is_empty() && Journal::open(&path).is_err(), "the journal is locked");
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
