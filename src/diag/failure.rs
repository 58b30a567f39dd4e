//! The failure of a command as data. Only the front end of the command line prints it.

use super::{Diagnostic, Status};
use crate::source::SourceMap;

/// Why a command was not carried out, and the exit status.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The outcome of the command.
    pub status: Status,
    /// What the user is told, in this order. Empty if something else says it, such as the report of a run.
    pub reasons: Vec<Reason>,
}

/// One error.
#[derive(Clone, Debug)]
pub enum Reason {
    /// An error outside of scripts: in the command line, a file or the machine.
    Stated {
        /// The code, which `wmlrun explain CODE` explains.
        code: Option<String>,
        /// What is wrong.
        message: String,
        /// What to do.
        help: Vec<String>,
    },
    /// Errors in a script, possibly with warnings among them.
    Script(Diagnostics),
}

/// Diagnostics with the texts that they are about.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    /// The texts.
    pub map: SourceMap,
    /// The diagnostics.
    pub found: Vec<Diagnostic>,
}

impl Failure {
    /// A failure that something else explains.
    pub fn unexplained(status: Status) -> Self {
        Self { status, reasons: Vec::new() }
    }

    /// A failure for this reason. `help` says what to do, and may be empty.
    pub fn new(status: Status, message: impl Into<String>, help: impl Into<String>) -> Self {
        let reason = Reason::Stated { code: None, message: message.into(), help: Vec::new() };
        Self { status, reasons: vec![reason] }.help(help)
    }

    /// Adds a help to the last reason, unless it is empty. An error in a script has its own.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        if let Some(Reason::Stated { help, .. }) = self.reasons.last_mut().filter(|_| !text.is_empty()) {
            help.push(text);
        }
        self
    }

    /// A run or an output failed: exit status 1.
    pub fn failed(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(Status::Failed, message, help)
    }

    /// The command line or a file is wrong: exit status 2.
    pub fn wrong(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(Status::Script, message, help)
    }

    /// The environment does not permit it: exit status 3.
    pub fn refused(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(Status::Refused, message, help)
    }

    /// A failure with errors in scripts.
    pub fn in_script(status: Status, map: &SourceMap, found: Vec<Diagnostic>) -> Self {
        Self { status, reasons: vec![Reason::Script(Diagnostics { map: map.clone(), found })] }
    }

    /// The outcome of work that has said itself what went wrong.
    pub fn outcome(status: Status) -> Result<(), Self> {
        if status == Status::Done { Ok(()) } else { Err(Self::unexplained(status)) }
    }

    /// All these failures as one, if there are any.
    pub fn all(failures: impl IntoIterator<Item = Self>) -> Result<(), Self> {
        failures.into_iter().reduce(Self::and).map_or(Ok(()), Err)
    }

    /// Adds the reasons of another failure. The worse status counts.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.status = self.status.max(other.status);
        self.reasons.extend(other.reasons);
        self
    }
}
