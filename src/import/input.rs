//! Reads the text of a file or a pipe, with limits on its length and on the time to wait.

use super::ImportError;
use crate::os::pipe::{Pipe, PipeLimits};
use crate::os::{handle, reading};
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::time::Duration;

/// The maximum length of a text, in bytes. A result with a histogram for each of thousands of flowops is shorter.
const MAX_LENGTH: u64 = 256 << 20;

/// The maximum times to wait for the program that writes to a pipe.
const LIMITS: PipeLimits = PipeLimits { writer: Duration::from_secs(5), data: Some(Duration::from_mins(1)) };

/// Reads the text of a regular file or a pipe. Bytes that are not UTF-8 become replacement characters. Returns an error
/// when the text is longer than [`MAX_LENGTH`], or when a pipe has no writer or no data for too long.
pub(crate) fn read(path: &Path) -> Result<String, ImportError> {
    let io = |error| ImportError::Io { path: path.to_owned(), error };
    let form = |why: &str| ImportError::Form { path: path.to_owned(), why: why.to_owned() };
    let file = handle::open_input(path).map_err(io)?.ok_or_else(|| form("it is neither a regular file nor a pipe"))?;
    if handle::is_regular(&file) {
        return match reading::read_open(&file, MAX_LENGTH) {
            Err(e) if e.kind() == ErrorKind::FileTooLarge => Err(form(&e.to_string())),
            bytes => bytes.map(text_of).map_err(io),
        };
    }
    let mut bytes = Vec::new();
    Pipe::new(&file, LIMITS).take(MAX_LENGTH + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > MAX_LENGTH {
        return Err(form("it has more than 256 MiB"));
    }
    Ok(text_of(bytes))
}

/// Reads the text of a regular file, such as those of a results folder. See [`read`]. Returns an error at once for a
/// pipe, whose writer may never come.
pub(crate) fn read_file(path: &Path) -> Result<String, ImportError> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::FileTooLarge => {
            ImportError::Form { path: path.to_owned(), why: error.to_string() }
        }
        _ => ImportError::Io { path: path.to_owned(), error },
    };
    Ok(text_of(reading::read(path, MAX_LENGTH).map_err(failed)?))
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::process::Command;

    #[test]
    fn a_pipe_is_read_to_the_end_of_its_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let text = "é 1\n".repeat(100_000);
        let writer = {
            let (path, text) = (path.clone(), text.clone());
            // Opening the pipe waits for its reader.
            std::thread::spawn(move || std::fs::write(path, text).unwrap())
        };
        assert_eq!(read(&path).unwrap(), text);
        writer.join().unwrap();
    }

    #[test]
    fn other_file_types_are_not_opened() {
        for path in ["/dev/zero", "/dev", "/dev/null"] {
            assert!(read(Path::new(path)).unwrap_err().to_string().contains("neither"), "{path}");
            assert!(matches!(read_file(Path::new(path)), Err(ImportError::Form { .. })), "{path}");
        }
        assert!(matches!(read(Path::new("/nowhere")), Err(ImportError::Io { .. })));
    }
}
