//! Reads a script or an experiment file that the command line names: a regular file, standard input, or a pipe, such as
//! that of `<(command)` in a shell. Writes a script back.
//!
//! The first signal ends the wait for the writer of a pipe.

use crate::diag::{Failure, Status};
use crate::os::OFlags;
use crate::os::held_dir::HeldDir;
use crate::os::pipe::{Pipe, PipeLimits, StandardInput};
use crate::os::{handle, signals};
use crate::output;
use crate::session::library;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
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

/// Replaces a script file atomically with its formatted text. Follows a symbolic link.
pub(super) fn write_back(found: &library::FoundScript, text: &str) -> Result<(), Failure> {
    let Some(path) = &found.path else {
        let help = "`wmlrun show NAME > FILE` makes a copy that can be edited";
        return Err(Failure::wrong(format!("{} is not a file", found.name), help));
    };
    if text == found.text {
        return Ok(());
    }
    let held = HeldDir::of_file(path).and_then(|(dir, name)| {
        // Replacing needs write access to the directory only. Refuse it if the file itself is not writable.
        dir.open_file(&name, OFlags::WRONLY)?;
        Ok((dir, name))
    });
    let refuse = |e: std::io::Error, status| {
        Failure::new(status, format!("can't write {}: {e}", found.name), "the file was not changed")
    };
    let (dir, name) = held.map_err(|e| {
        // Not an error of the system: such as a link of another user.
        let status = if e.raw_os_error().is_none() { Status::Refused } else { Status::Failed };
        refuse(e, status)
    })?;
    output::replace_in(&dir, &name, &mut |out| out.write_all(text.as_bytes())).map_err(|e| refuse(e, Status::Failed))
}

/// True if a file is a profile of Filebench, by its name.
pub(super) fn is_profile(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "prof")
}

/// Returns the profile of a name without its ending, as Filebench accepted it. `None` if there is a file of the name itself
/// or no profile.
pub(super) fn profile_named(name: &Path) -> Option<PathBuf> {
    let mut file = name.as_os_str().to_owned();
    file.push(".prof");
    (!name.exists()).then(|| PathBuf::from(file)).filter(|file| file.is_file())
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
