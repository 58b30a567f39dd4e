//! Reads a script or an experiment file that the command line names: a regular file, standard input, or a pipe, such as
//! that of `<(command)` in a shell. Writes a script back.
//!
//! The first signal ends the wait for the writer of a pipe.

use super::{console, recording};
use crate::diag::{self, Failure, Status};
use crate::experiment::suite;
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

/// Finds a script by its name: a file, `-` for standard input, or a personality. Notes that there is no file of the name.
pub(super) fn find(name: &str) -> Result<library::FoundScript, Failure> {
    let found = find_script(name)?;
    if found.path.is_none() && [".wml", ".f"].iter().any(|end| name.ends_with(end)) {
        console::notice(&format!("note: there is no file `{name}`: this is {}", found.name));
    }
    Ok(found)
}

/// The same without a note.
pub(super) fn find_script(name: &str) -> Result<library::FoundScript, Failure> {
    let wrong = |text: String, help: String| Err(Failure::new(unread_status(), text, help));
    if name == "-" {
        return match read_standard_input() {
            Ok(bytes) => Ok(library::FoundScript::new("<stdin>".to_owned(), bytes, None)),
            Err(e) => wrong(format!("can't read standard input: {e}"), "give the script as a file".to_owned()),
        };
    }
    match library::find_named(name, read) {
        Ok(found) if library::is_result(&found.text) => {
            let help = "`wmlrun report` shows results of wmlrun, `wmlrun compare` compares them with others";
            wrong(format!("{} is a result, not a script", found.name), help.to_owned())
        }
        Ok(found) if found.path.as_deref().is_some_and(is_profile) => {
            let help = format!("`wmlrun batch {}` runs its workloads", found.name);
            wrong(format!("{} is a profile of Filebench, not a script", found.name), help)
        }
        Ok(found) if found.path.as_deref().is_some_and(recording::is_trace) => {
            Err(recording::no_other(&found.name, "script"))
        }
        Ok(found) => Ok(found),
        // It is longer than a script may be.
        Err(library::NotFound::Unreadable(path, _)) if recording::is_trace(&path) => {
            Err(recording::no_other(&path.display().to_string(), "script"))
        }
        Err(library::NotFound::Unreadable(path, e)) => {
            wrong(format!("{} can't be read: {e}", path.display()), library::help(&e).to_owned())
        }
        Err(library::NotFound::Nowhere(_)) if suite(name).is_some() => {
            let (text, help) = library::instead_of_script(name);
            wrong(text, help)
        }
        Err(library::NotFound::Experiment) => {
            let (text, help) = library::instead_of_script(name);
            wrong(text, help)
        }
        Err(library::NotFound::Nowhere(_)) if profile_named(Path::new(name)).is_some() => {
            let help = format!("`wmlrun batch {name}` runs the workloads of {name}.prof");
            wrong(format!("no file or personality is named `{name}`"), help)
        }
        Err(library::NotFound::Nowhere(_)) if name.contains('/') => {
            wrong(format!("no file is named `{name}`"), library::missing_file_help(name))
        }
        Err(library::NotFound::Nowhere(near)) => {
            let all = "`wmlrun list` lists the shipped personalities";
            let help = diag::did_you_mean(near, || match name.contains('=') {
                true => format!("`--set {name}` sets a variable; {all}"),
                false => all.to_owned(),
            });
            wrong(format!("no file or personality is named `{name}`"), help)
        }
    }
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
