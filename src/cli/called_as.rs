//! wmlrun in the place of Filebench: started through a link named `filebench`, or with `WMLRUN_AS=filebench`.
//!
//! A program that calls Filebench then needs no change: the report of `filebench -f FILE` has Filebench's format, and the
//! exit status is 0 or 1. The commands of wmlrun are the same under each name.

use crate::experiment::NAME_VARIABLE;
use crate::report::{self, Report};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The name of Filebench's program.
const FILEBENCH: &str = "filebench";

/// Whether a command of wmlrun is executed, which Filebench does not have.
static IS_COMMAND: AtomicBool = AtomicBool::new(false);

/// Whether the program is started as Filebench.
fn is_filebench() -> bool {
    let program = std::env::args_os().next();
    let name = program.as_deref().map(Path::new).and_then(Path::file_name);
    name == Some(FILEBENCH.as_ref()) || std::env::var_os(NAME_VARIABLE).is_some_and(|name| name == FILEBENCH)
}

/// Returns the format of the report of a script if no option gives one; `None` for that of wmlrun.
pub(super) fn format() -> Option<&'static dyn Report> {
    report::find(FILEBENCH).filter(|_| is_filebench())
}

/// Records that a command of wmlrun is executed.
pub(super) fn executes_command() {
    IS_COMMAND.store(true, Relaxed);
}

/// Returns the exit status for a status of wmlrun.
pub(super) fn status(code: u8) -> u8 {
    if is_filebench() && !IS_COMMAND.load(Relaxed) { code.min(1) } else { code }
}
