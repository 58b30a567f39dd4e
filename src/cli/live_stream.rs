//! The output of the live stream (`--live`): lines about a run for dashboards, written while it is in progress.
//!
//! A thread of its own writes them, since a file system may not answer and the reader of a pipe may be slow. A reader may
//! close the pipe at any time. Lines that the reader does not take in time are dropped.

use crate::measure::with_timeout;
use crate::os::held_dir::HeldDir;
use crate::output::{Appender, FileIdentity, Target};
use crate::report::live::{LiveEvent, LiveFormat};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of lines that wait for the reader before further ones are dropped.
const QUEUE_LENGTH: usize = 256;

/// The time limit for opening the file.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// The time that the reader has to take the last lines.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two checks whether the last lines are written.
const END_PAUSE: Duration = Duration::from_millis(5);

/// An open live stream.
pub(super) struct LiveStream {
    format: &'static LiveFormat,
    /// The directory of the file; `None` for a pipe or device.
    directory: Option<HeldDir>,
    lines: SyncSender<Vec<u8>>,
    writer: JoinHandle<io::Result<()>>,
    /// The number of the run in progress, from 1.
    number: usize,
    dropped: u64,
}

impl LiveStream {
    /// Opens the stream to a path; `-` is standard output. `scripts` are files that are read. An existing file that is no
    /// such stream is refused unless `force` is set.
    pub(super) fn open(
        format: &'static LiveFormat,
        path: &Path,
        force: bool,
        scripts: &[FileIdentity],
    ) -> io::Result<Self> {
        let (asked, scripts) = (path.to_owned(), scripts.to_vec());
        let target = with_timeout(OPEN_TIMEOUT, move || {
            Target::open(&asked, &scripts)?.recognizing(format.is_own).unless_foreign(force)
        });
        let no_answer = || Err(io::Error::new(ErrorKind::TimedOut, "its file system does not answer"));
        target.unwrap_or_else(no_answer).and_then(|target| {
            let (lines, queue) = sync_channel(QUEUE_LENGTH);
            let writer = std::thread::Builder::new().name("live".to_owned());
            let directory = target.directory().cloned();
            let writer = writer.spawn(move || write_lines(Appender::new(target), &queue))?;
            Ok(Self { format, directory, lines, writer, number: 0, dropped: 0 })
        })
    }

    /// Returns an error if the directory of the file is no longer at its path.
    pub(super) fn check_in_place(&self) -> io::Result<()> {
        self.directory.as_ref().map_or(Ok(()), HeldDir::check_in_place)
    }

    /// Sets the number of the run in progress.
    pub(super) fn start_run(&mut self, number: usize) {
        self.number = number;
    }

    /// Returns the number of the run in progress.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Writes the line of an event without waiting.
    pub(super) fn write(&mut self, event: &LiveEvent<'_>) {
        match self.lines.try_send((self.format.line)(event)) {
            // After an error nothing more is written; the end reports it.
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => self.dropped += 1,
        }
    }

    /// Waits until the last lines are written. Returns the number of lines that were dropped, and whether the others could
    /// be written.
    pub(super) fn finish(self) -> (u64, io::Result<()>) {
        let Self { lines, writer, dropped, .. } = self;
        drop(lines);
        let until = Instant::now() + END_TIMEOUT;
        while !writer.is_finished() && Instant::now() < until {
            std::thread::sleep(END_PAUSE);
        }
        if !writer.is_finished() {
            return (dropped, Err(io::Error::new(ErrorKind::TimedOut, "no process takes the last lines")));
        }
        (dropped, writer.join().unwrap_or_else(|_| Err(io::Error::other("its thread has panicked"))))
    }
}

/// Writes lines until there are no more, or the reader has closed the pipe.
fn write_lines(mut out: Appender, queue: &Receiver<Vec<u8>>) -> io::Result<()> {
    for line in queue.iter().filter(|line| !line.is_empty()) {
        match out.append(&mut |out| out.write_all(&line)) {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}
