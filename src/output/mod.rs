//! Files that the program writes besides its file sets: the outputs that the command line names, and the results of scripts.
//!
//! In: a path and bytes. Out: a file that is whole at every moment, a pipe or device that got the bytes, or an error.
//! [`Target`] is a path that the user named; [`Results`] is the directory in which everything lies that a script names.
//! Nothing is kept of what is written, and a target is `Send`: a helper thread can take it where a file system may hang.
//! Deliberately absent: what is written, and messages about it.

mod replace;
mod results;
mod target;

pub use replace::replace;
pub use results::{Placed, ResultPlace, Results};
pub use target::{Appender, FileIdentity, Target, file_id};

use std::io::{self, Write};

/// Writes an output to wherever it goes; called once for each attempt.
pub type WriteTo<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;
