//! Reads a pipe that was opened without waiting for a writer, with limits on the time to wait for one and for its data.
//!
//! A blocking `open` or `read` of a pipe would go on after a signal, so the pipe is polled, and the first signal ends
//! the wait.

use super::{fd, handle, signals};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// The interval at which a pipe without a writer is read again. The kernel does not report the arrival of a writer.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The interval at which signals are looked for while a writer has the pipe open. A signal may arrive just before the
/// wait, which it then does not end.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(200);

/// Returns an error after a signal. It is not of the kind `Interrupted`, after which a read is repeated.
fn check_signals() -> io::Result<()> {
    match signals::received() {
        Some(_) => Err(io::Error::other("a signal ended the wait for its writer")),
        None => Ok(()),
    }
}

/// The maximum times to wait.
#[derive(Clone, Copy, Debug)]
pub struct PipeLimits {
    /// For a program that opens the pipe for writing.
    pub writer: Duration,
    /// For data while a program has the pipe open; `None` without a limit.
    pub data: Option<Duration>,
}

/// A pipe that [`handle::open_input`] has opened. Its end is that of its last writer.
#[derive(Debug)]
pub struct Pipe<'a> {
    file: &'a File,
    limits: PipeLimits,
    /// The time of the last data, or of the opening.
    since: Instant,
    had_writer: bool,
}

impl<'a> Pipe<'a> {
    /// Returns the reader of a pipe that was just opened.
    pub fn new(file: &'a File, limits: PipeLimits) -> Self {
        Self { file, limits, since: Instant::now(), had_writer: false }
    }
}

impl Read for Pipe<'_> {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        loop {
            check_signals()?;
            match self.file.read(part) {
                // Before the first writer has opened the pipe, a read also returns its end.
                Ok(0) if self.had_writer || handle::has_hung_up(self.file) => return Ok(0),
                Ok(0) if self.since.elapsed() > self.limits.writer => {
                    return Err(io::Error::new(ErrorKind::TimedOut, "no program writes to this pipe"));
                }
                Ok(0) => std::thread::sleep(POLL_INTERVAL),
                Ok(n) => {
                    (self.had_writer, self.since) = (true, Instant::now());
                    return Ok(n);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.had_writer = true;
                    if let Some(limit) = self.limits.data.filter(|limit| self.since.elapsed() > *limit) {
                        let why = format!("no data from this pipe for {} s", limit.as_secs());
                        return Err(io::Error::new(ErrorKind::TimedOut, why));
                    }
                    fd::wait_readable(self.file.as_raw_fd(), SIGNAL_INTERVAL);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// Standard input, whose wait a signal ends. Other programs may share its mode, so it stays blocking, and is polled.
#[derive(Debug)]
pub struct StandardInput(File);

impl StandardInput {
    /// Opens it. Not through the buffer of the standard library, whose contents a poll does not see.
    pub fn open() -> io::Result<Self> {
        Ok(Self(File::from(io::stdin().as_fd().try_clone_to_owned()?)))
    }
}

impl Read for StandardInput {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        loop {
            check_signals()?;
            if fd::wait_readable(self.0.as_raw_fd(), SIGNAL_INTERVAL) {
                return self.0.read(part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::process::Command;

    const LIMITS: PipeLimits = PipeLimits { writer: Duration::from_mins(1), data: None };

    #[test]
    fn a_pipe_is_read_to_the_end_of_its_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let text = "é 1\n".repeat(100_000);
        for parts in [vec![text.as_str(), text.as_str()], vec![]] {
            let expected = parts.concat();
            std::thread::scope(|scope| {
                let path = &path;
                scope.spawn(move || {
                    // Opening the pipe waits for its reader, which waits for data.
                    let mut pipe = OpenOptions::new().write(true).open(path).unwrap();
                    for part in parts {
                        std::thread::sleep(Duration::from_millis(50));
                        pipe.write_all(part.as_bytes()).unwrap();
                    }
                });
                let pipe = handle::open_input(path).unwrap().unwrap();
                let mut found = String::new();
                Pipe::new(&pipe, LIMITS).read_to_string(&mut found).unwrap();
                assert!(found == expected);
            });
        }
    }

    #[test]
    fn a_pipe_without_a_writer_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let pipe = handle::open_input(&path).unwrap().unwrap();
        let limits = PipeLimits { writer: Duration::from_millis(1), data: None };
        let error = Pipe::new(&pipe, limits).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_writer_without_data_is_given_up() {
        let (reader, _writer) = io::pipe().unwrap();
        // Opened again by its name, it has a mode of its own.
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        let pipe = handle::open_input(path.as_ref()).unwrap().unwrap();
        let limits = PipeLimits { writer: Duration::from_mins(1), data: Some(Duration::from_millis(1)) };
        let error = Pipe::new(&pipe, limits).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
