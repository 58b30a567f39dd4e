//! The journal of an experiment: an append-only file with one event on each line. Each event is on the disk before the
//! experiment continues.

use super::hooks::HookTime;
use super::origin::FolderOrigin;
use crate::import::folder::JOURNAL;
use crate::import::{CommandTimes, RecordTimes};
use crate::os::held_dir::HeldDir;
use crate::os::{Errno, OFlags, fd, reading};
use crate::util::json;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// The maximum length of a journal in bytes. That of a hundred thousand runs is shorter.
const MAX_LENGTH: u64 = 256 << 20;

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
        /// The ID of the boot; empty when it is unknown.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        boot: String,
        /// Where the folder was made; absent in experiments of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<FolderOrigin>,
    },
    /// The experiment was resumed.
    Resumed {
        /// The time, RFC 3339.
        time: String,
        /// The changed conditions that were accepted with `--anyway`.
        changed: Vec<String>,
        /// The ID of the boot; empty when it is unknown.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        boot: String,
    },
    /// A run of the search for the peak of a sweep ended.
    Searched {
        /// The value of the variable.
        value: f64,
        /// The offered rate in requests per second.
        offered: f64,
        /// The achieved rate.
        achieved: f64,
        /// The duration of the run.
        seconds: f64,
    },
    /// The description was changed: more runs are requested than before, or the values of a sweep are known.
    Extended {
        /// The digest of the new `experiment.toml`.
        experiment: String,
        /// The time, RFC 3339.
        time: String,
    },
    /// A command before or after a run was started.
    HookStarted {
        /// The number of the run, from 1.
        run: u64,
        /// The name of the hook.
        name: String,
        /// The index of the run's arm; absent if the order of the runs gives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arm: Option<u64>,
    },
    /// A command before or after a run succeeded.
    Hook {
        /// The number of the run, from 1.
        run: u64,
        /// The name of the hook.
        name: String,
        #[serde(flatten)]
        times: CommandTimes,
    },
    /// A command before or after a run failed.
    HookFailed {
        /// The number of the run, from 1.
        run: u64,
        /// The name of the hook.
        name: String,
        /// The reason.
        why: String,
    },
    /// The commands whose output is recorded after a run succeeded.
    Recorded {
        /// The number of the run, from 1.
        run: u64,
        #[serde(flatten)]
        times: RecordTimes,
    },
    /// The used space of the file systems of a run was recorded.
    Space {
        /// The number of the run, from 1.
        run: u64,
        /// Whether it was before or after the run.
        #[serde(rename = "before")]
        time: HookTime,
        /// The used space in bytes.
        used: u64,
    },
    /// A run was started.
    Started {
        /// The number of the run, from 1.
        run: u64,
        /// The index of its arm.
        arm: u64,
        /// The speed of the negative control before the run; `None` if the experiment measures none: only
        /// `ab` and `repeat` do.
        control: Option<f64>,
        /// The mounts of the arm's file sets, after the commands before the run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mounts: Vec<String>,
        /// The time, RFC 3339.
        time: String,
    },
    /// The script of a run has written files, and the run has ended.
    Files {
        /// The number of the run, from 1.
        run: u64,
        /// Their paths below the directory of the run's files. That of a directory ends with a slash.
        paths: Vec<String>,
    },
    /// A run is complete and its result is written.
    Finished {
        /// The number of the run.
        run: u64,
        /// The duration, including commands; `None` when the experiment was interrupted before the end of the run was
        /// recorded.
        seconds: Option<f64>,
        /// The speed of the negative control after the run; `None` without a control, and when the experiment was
        /// interrupted after the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        control: Option<f64>,
    },
    /// A run of a load curve or of a factorial experiment failed. The failure is a result of its arm.
    Failed {
        /// The number of the run.
        run: u64,
        /// The reason.
        why: String,
    },
    /// Other programs disturbed a run, so that it is made again. The result of this attempt is not used.
    Retried {
        /// The number of the run.
        run: u64,
        /// The duration of the attempt, including commands; 0 when it is unknown.
        seconds: f64,
    },
    /// The results of this run and of all later runs are not used, because the result of this run can't be read. These
    /// runs are made again.
    Dropped {
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

impl Event {
    /// Returns the digest of a description of the experiment that was valid from this event on.
    pub(super) fn description(&self) -> Option<&str> {
        match self {
            Self::Begun { experiment, .. } | Self::Extended { experiment, .. } => Some(experiment),
            _ => None,
        }
    }

    /// Returns the number of the run that the event is about; `None` when it is about the experiment.
    pub(super) fn run(&self) -> Option<u64> {
        match self {
            Self::HookStarted { run, .. }
            | Self::Hook { run, .. }
            | Self::HookFailed { run, .. }
            | Self::Recorded { run, .. }
            | Self::Space { run, .. }
            | Self::Started { run, .. }
            | Self::Files { run, .. }
            | Self::Finished { run, .. }
            | Self::Failed { run, .. }
            | Self::Retried { run, .. }
            | Self::Dropped { run, .. } => Some(*run),
            Self::Begun { .. }
            | Self::Resumed { .. }
            | Self::Searched { .. }
            | Self::Extended { .. }
            | Self::Stopped { .. }
            | Self::Ended { .. } => None,
        }
    }
}

/// Reads the events of a journal without locking it. Lines that are not events are ignored, such as the last line of an
/// experiment that is in progress.
pub(super) fn events_of(path: &Path) -> io::Result<Vec<Event>> {
    let bytes = reading::read(path, MAX_LENGTH)?;
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(|line| event(line).ok()).collect())
}

/// Reads a line. Returns an error if it is not an event; the numbers of runs begin at 1.
fn event(line: &[u8]) -> Result<Event, String> {
    let event: Event = json::from_bytes(line).map_err(|e| json::reason(&e))?;
    if event.run() == Some(0) { Err("it is about run 0".to_owned()) } else { Ok(event) }
}

/// An open and locked journal.
#[derive(Debug)]
pub(super) struct Journal {
    file: LockedJournal,
    /// The length of the complete lines, in bytes.
    len: u64,
}

impl Journal {
    /// Opens or creates the journal of a folder, locks it and reads its events. An incomplete last line, which a crash may leave,
    /// is removed. Returns an error when another process has locked the journal, or when a line is not an event.
    pub(super) fn open(folder: &HeldDir) -> io::Result<(Self, Vec<Event>)> {
        let file = folder.open_file(JOURNAL.as_ref(), OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
        let file = LockedJournal::new(file)?;
        let bytes = reading::read_open(&file.0, MAX_LENGTH)?;
        let len = complete(&bytes).len();
        if len < bytes.len() {
            file.0.set_len(len as u64)?;
        }
        let invalid = |n: usize, why: String| {
            let text = format!("line {} of the journal is not an event: {why}", n + 1);
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        // The incomplete line was removed before: it may end inside a character.
        let lines = bytes[..len].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate();
        let events = lines.map(|(n, line)| event(line).map_err(|why| invalid(n, why))).collect::<io::Result<_>>()?;
        Ok((Self { file, len: len as u64 }, events))
    }

    /// Returns where the folder of this journal was made, if that is now.
    pub(super) fn origin(&self, folder: &Path) -> io::Result<FolderOrigin> {
        FolderOrigin::of(&self.file.0, folder)
    }

    /// Appends an event and returns when it is on the disk. On an error the incomplete line is removed.
    pub(super) fn write(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let written = self.file.0.write_all(&line).and_then(|()| self.file.0.sync_data());
        match written {
            Ok(()) => self.len += line.len() as u64,
            Err(_) => self.file.0.set_len(self.len)?,
        }
        written
    }
}

/// The file of a journal, locked until it is dropped.
#[derive(Debug)]
pub(super) struct LockedJournal(File);

impl LockedJournal {
    /// Locks an open journal. Returns an error when another process has locked it.
    fn new(file: File) -> io::Result<Self> {
        match fd::lock(file.as_raw_fd()) {
            Ok(()) => Ok(Self(file)),
            Err(Errno::WOULDBLOCK) => Err(io::Error::other("another process is using it")),
            Err(error) => Err(error.into()),
        }
    }

    /// Locks the journal at `path`, and leaves it unchanged. Returns an error when another process has locked it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // NFS locks only files that are open for writing.
        let (folder, name) = HeldDir::of_entry(path)?;
        Self::new(folder.open_file(&name, OFlags::RDWR)?)
    }
}

impl Drop for LockedJournal {
    fn drop(&mut self) {
        fd::release_lock(self.0.as_raw_fd());
    }
}

/// Returns the complete lines of a journal. The last line is incomplete if it does not end, or has a null byte: after a
/// power failure the end of a file may consist of null bytes, which no event contains.
fn complete(bytes: &[u8]) -> &[u8] {
    let lines = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let whole = &bytes[..lines(bytes)];
    let last = whole.len().checked_sub(1).map_or(0, |end| lines(&whole[..end]));
    if whole[last..].contains(&0) { &whole[..last] } else { whole }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let folder = HeldDir::open(dir.path()).unwrap();
        let (journal, _) = Journal::open(&folder).unwrap();
        // As a program has one that is being started.
        let _copy = journal.file.0.try_clone().unwrap();
        drop(journal);
        assert!(Journal::open(&folder).is_ok());
    }

    #[test]
    fn the_time_of_the_used_space_is_a_switch() {
        for (time, before) in [(HookTime::Before, true), (HookTime::After, false)] {
            let event = Event::Space { run: 1, time, used: 5 };
            let line = format!("{{\"event\":\"space\",\"run\":1,\"before\":{before},\"used\":5}}");
            assert_eq!(serde_json::to_string(&event).unwrap(), line);
            assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
        }
    }

    #[test]
    fn the_times_of_a_command_are_fields_of_its_event() {
        let times = CommandTimes { seconds: 2.5, user: Some(1.5), system: Some(0.25) };
        for (times, line) in
            [(times, ",\"user\":1.5,\"system\":0.25"), (CommandTimes { seconds: 2.5, ..CommandTimes::default() }, "")]
        {
            let event = Event::Hook { run: 1, name: "after".to_owned(), times };
            let line = format!("{{\"event\":\"hook\",\"run\":1,\"name\":\"after\",\"seconds\":2.5{line}}}");
            assert_eq!(serde_json::to_string(&event).unwrap(), line);
            assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
        }
    }

    #[test]
    fn an_incomplete_last_line_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, folder) = (dir.path().join(JOURNAL), HeldDir::open(dir.path()).unwrap());
        let (mut journal, events) = Journal::open(&folder).unwrap();
        assert!(events.is_empty() && Journal::open(&folder).is_err(), "the journal is locked");
        let failed = |run| Event::Failed { run, why: "can't open `é🦀`".to_owned() };
        journal.write(&failed(1)).unwrap();
        journal.write(&failed(2)).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (mut journal, events) = Journal::open(&folder).unwrap();
            let lines = whole[..cut].split(|byte| *byte == b'\n').count() - 1;
            assert_eq!(events, [failed(1), failed(2)][..lines]);
            journal.write(&failed(9)).unwrap();
            drop(journal);
            let after = std::fs::read(&path).unwrap();
            assert_eq!(Journal::open(&folder).unwrap().1.len(), lines + 1);
            // A block that was never written has null bytes.
            std::fs::write(&path, [&after[..], &[0; 40]].concat()).unwrap();
            assert_eq!(Journal::open(&folder).unwrap().1.len(), lines + 1);
            std::fs::write(&path, [&after[..], &[0; 40], b"\"}\n"].concat()).unwrap();
            assert_eq!(Journal::open(&folder).unwrap().1.len(), lines + 1);
            assert_eq!(std::fs::read(&path).unwrap(), after);
        }
        std::fs::write(&path, "hello\n").unwrap();
        assert!(Journal::open(&folder).unwrap_err().to_string().contains("line 1"));
    }
}
