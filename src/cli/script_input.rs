//! Reads a script or an experiment file that the command line names: a regular file, standard input, or a pipe, such as
//! that of `<(command)` in a shell.
//!
//! The first signal ends the wait for the writer of a pipe.

use crate::diag::Status;
use crate::os::pipe::{Pipe, PipeLimits, StandardInput};
use crate::os::{handle, signals};
use crate::session::library;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

/// A person may have to start the program that writes to a pipe, or may type its text.
const LIMITS: PipeLimits = PipeLimits { writer: Duration::from_mins(1), data: None };

/// Reads a regular file, or a pipe until its last writer has closed it. Follows symbolic links. Returns an error for any
/// other file type, and for a text that is longer than a script may be.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    match handle::open_input(path)? {
        Some(file) if handle::is_regular(&file) => library::read_bytes(file),
        Some(pipe) => library::read_bytes(Pipe::new(&pipe, LIMITS)),
        None if path.is_dir() => Err(ErrorKind::IsADirectory.into()),
        None => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file")),
    }
}

/// Reads standard input to its end.
pub(super) fn read_standard_input() -> io::Result<Vec<u8>> {
    library::read_bytes(StandardInput::open()?)
}

/// The outcome if a script can't be read: that of the signal that ended the wait for it, if there was one.
pub(super) fn unread_status() -> Status {
    signals::received().map_or(Status::Script, Status::Interrupted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn other_file_types_are_not_opened() {
        for (path, kind) in [("/dev/zero", ErrorKind::InvalidInput), ("/dev", ErrorKind::IsADirectory)] {
            assert_eq!(read(Path::new(path)).unwrap_err().kind(), kind, "{path}");
        }
    }
}
