//! Standard output that records its first write error, and standard error.
//!
//! All output to standard output uses [`Stdout`]. A closed pipe is not an error. Any other error is reported once, when
//! the program ends, and makes the exit status 1, unless it says already that something failed.
//!
//! On a terminal without UTF-8 both show ASCII.

use crate::util::ascii;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::LazyLock;

/// The first write error. Nothing is written after it.
static FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Standard output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        static IS_ASCII: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal() && ascii::is_wanted());
        let text = if *IS_ASCII { str::from_utf8(bytes).ok() } else { None };
        let shown = text.map_or(Cow::Borrowed(bytes), |text| match ascii::of(text) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        });
        record_error(|out| out.write_all(&shown))
    }

    fn flush(&mut self) -> io::Result<()> {
        record_error(Write::flush)
    }
}

/// Calls `call` unless an earlier write failed. Records its error.
fn record_error(call: impl FnOnce(&mut io::StdoutLock<'static>) -> io::Result<()>) -> io::Result<()> {
    let mut failed = FAILED.lock();
    if let Some(error) = &*failed {
        return Err(error.kind().into());
    }
    call(&mut io::stdout().lock()).map_err(|error| {
        let kind = error.kind();
        *failed = Some(error);
        kind.into()
    })
}

/// Writes to standard error, with one write, to disturb a run as little as possible. Ignores errors, such as a closed pipe.
pub(super) fn to_stderr(text: &str) {
    static IS_ASCII: LazyLock<bool> = LazyLock::new(|| io::stderr().is_terminal() && ascii::is_wanted());
    let text = if *IS_ASCII { ascii::of(text) } else { text.into() };
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Flushes standard output. Returns the recorded error.
pub(super) fn flushed() -> Option<io::Error> {
    // An error is recorded in `FAILED`, which is examined next.
    let _ = Stdout.flush();
    FAILED.lock().take().filter(|error| error.kind() != ErrorKind::BrokenPipe)
}

/// Returns the exit status after a write error. A verdict (10 to 12) that nobody can read is none.
pub(super) fn after_error(code: u8) -> u8 {
    if matches!(code, 0 | 10..=12) { 1 } else { code }
}

#[cfg(test)]
mod tests {
    use super::after_error;

    #[test]
    fn a_verdict_that_was_not_written_is_a_failure() {
        assert_eq!([0, 1, 2, 3, 10, 11, 12, 130].map(after_error), [1, 1, 2, 3, 1, 1, 1, 130]);
    }
}
