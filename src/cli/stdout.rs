//! Standard output, which remembers whether it could be written.
//!
//! Everything that the program prints there goes through [`Stdout`]. A reader that has gone is no error; any other failure is
//! reported once, at the end, and makes the exit status 1 if it would have been 0.

use super::console;
use parking_lot::Mutex;
use std::io::{self, ErrorKind, Write};

/// The first error; nothing is written after it.
static FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Standard output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        tried(|out| out.write_all(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        tried(Write::flush)
    }
}

fn tried(call: impl FnOnce(&mut io::StdoutLock<'static>) -> io::Result<()>) -> io::Result<()> {
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

/// Writes what is left; the exit status of the program, of which the rest ended in `code`.
pub(super) fn finish(code: u8) -> u8 {
    // The first error counts, which is remembered.
    let _ = Stdout.flush();
    match &*FAILED.lock() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            console::error(&format!("standard output can't be written: {error}"), None);
            code.max(1)
        }
        _ => code,
    }
}
