//! Reads a script or an experiment file that the command line names: a regular file or a pipe, such as that of
//! `<(command)` in a shell.
//!
//! A blocking `open` or `read` of a pipe would go on after a signal, so a pipe is polled, and the first signal ends the
//! wait for its writer. The same holds for standard input.

use crate::os::{fd, handle, signals};
use crate::session::library;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// The maximum time to wait for a program that opens a pipe for writing: a person may have to start it.
const WRITER_TIMEOUT: Duration = Duration::from_mins(1);

/// The interval at which a pipe without a writer is read again. The kernel does not report the arrival of a writer.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The interval at which signals are looked for while a writer has the pipe open. A signal may arrive just before the
/// wait, which it then does not end.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(200);

/// The text of the error after a signal. It is not of the kind `Interrupted`, after which a read is repeated.
const INTERRUPTED: &str = "a signal ended the wait for its writer";

/// Reads a regular file, or a pipe until its last writer has closed it. Follows symbolic links. Returns an error for any
/// other file type, and for a text that is longer than a script may be.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    match handle::open_input(path)? {
        Some(file) if handle::is_regular(&file) => library::read_bytes(file),
        Some(pipe) => library::read_bytes(PipeText { pipe: &pipe, opened: Instant::now(), has_begun: false }),
        None if path.is_dir() => Err(ErrorKind::IsADirectory.into()),
        None => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file")),
    }
}

/// Returns the exit status if a script can't be read: that of the signal that ended the wait for it, if there was one.
pub(super) fn unread_status() -> u8 {
    signals::received().map_or(2, |signal| 128_u8.saturating_add(signal))
}

/// Reads standard input to its end. Other programs may share its mode, so it stays blocking, and is polled.
pub(super) fn read_standard_input() -> io::Result<Vec<u8>> {
    // Not through the buffer of the standard library, whose contents a poll does not see.
    library::read_bytes(StandardInput(File::from(io::stdin().as_fd().try_clone_to_owned()?)))
}

/// Standard input, whose wait a signal ends.
struct StandardInput(File);

impl Read for StandardInput {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        loop {
            if signals::received().is_some() {
                return Err(io::Error::other(INTERRUPTED));
            }
            if fd::wait_readable(self.0.as_raw_fd(), SIGNAL_INTERVAL) {
                return self.0.read(part);
            }
        }
    }
}

/// The text in a pipe that was opened without waiting for a writer.
struct PipeText<'a> {
    pipe: &'a File,
    opened: Instant,
    /// Whether a part of the text has been read.
    has_begun: bool,
}

impl Read for PipeText<'_> {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        loop {
            if signals::received().is_some() {
                return Err(io::Error::other(INTERRUPTED));
            }
            match self.pipe.read(part) {
                // Before the first writer has opened the pipe, a read also returns its end.
                Ok(0) if self.has_begun || handle::has_hung_up(self.pipe) => return Ok(0),
                Ok(0) if self.opened.elapsed() > WRITER_TIMEOUT => {
                    return Err(io::Error::new(ErrorKind::TimedOut, "no program writes to this pipe"));
                }
                Ok(0) => std::thread::sleep(POLL_INTERVAL),
                Ok(n) => {
                    self.has_begun = true;
                    return Ok(n);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    fd::wait_readable(self.pipe.as_raw_fd(), SIGNAL_INTERVAL);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
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
                assert!(read(path).unwrap() == expected.as_bytes());
            });
        }
    }

    #[test]
    fn other_file_types_are_not_opened() {
        for (path, kind) in [("/dev/zero", ErrorKind::InvalidInput), ("/dev", ErrorKind::IsADirectory)] {
            assert_eq!(read(Path::new(path)).unwrap_err().kind(), kind, "{path}");
        }
    }
}
