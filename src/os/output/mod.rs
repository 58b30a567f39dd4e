//! Files that the program writes besides its file sets: outputs named on the command line, and results of scripts.
//!
//! Input: a path and bytes. Output: an atomically replaced file, or a pipe or device that received the bytes, or an
//! error. [`Target`] is a path given by the user. [`Results`] is the directory that contains all files named by
//! scripts. Written bytes are not retained. A target is `Send`, so that a helper thread can write it where a file
//! system may hang. Deliberately absent: the contents of the files, and messages about them.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod containment;
mod kept;
mod replace;
mod results;
mod snapshot_file;
mod table_file;
mod target;

pub use containment::{IN_TREE_HELP, first_in_tree, output_in_tree};
pub use kept::{KeptFiles, MOST_KEPT, MOST_KEPT_BYTES};
pub use replace::{replace, replace_in};
pub use results::{Placed, ResultPlace, Results};
pub use snapshot_file::SnapshotFile;
pub use table_file::TableFile;
pub use target::{Appender, FileIdentity, Target, file_id};

use std::io::{self, Write};

/// The number of bytes at the beginning of a file that tell what it is.
const HEAD_LENGTH: u64 = 1024;

/// Writes the contents of an output to the given writer. Called once per attempt.
pub type WriteTo<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;
