//! The state of a shell, and what it leaves to the command line.

use crate::diag::Failure;
use crate::result::Document;
use crate::session::Session;
use std::path::Path;
use std::time::Duration;

/// A comparison of a script with itself, as `wmlrun ab` makes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShellArms {
    /// The name or the path of the script.
    pub script: String,
    /// The variables that both arms set, with their values as source text.
    pub common: Vec<(String, String)>,
    /// Those of A.
    pub a: Vec<(String, String)>,
    /// Those of B.
    pub b: Vec<(String, String)>,
    /// The length of each run, unless an option or the script gives it.
    pub runtime: Option<Duration>,
}

/// What the shell leaves to the command line.
pub trait ShellHost {
    /// Writes the page of a result. It replaces nothing but a page.
    fn page(&mut self, document: Document, output: &Path) -> Result<(), Failure>;
    /// Makes the runs of a comparison and prints its answer.
    fn ab(&mut self, arms: &ShellArms) -> Result<(), Failure>;
}

/// A session with the state of its shell.
pub(super) struct Prompt {
    pub(super) session: Session,
    pub(super) host: Box<dyn ShellHost>,
    /// All statements, in order.
    pub(super) history: Vec<String>,
    /// Number of nested `source` commands in progress.
    pub(super) sourcing: usize,
}
