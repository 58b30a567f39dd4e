//! The failure of a command as data. Only the front end of the command line prints it.

use super::{Diagnostic, Severity, Status, Style, render};
use crate::source::SourceMap;
use serde::{Deserialize, Serialize};

/// Why a command was not carried out, and the exit status.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The outcome of the command.
    pub status: Status,
    /// What the user is told, in this order. Empty if something else says it, such as the report of a run.
    pub reasons: Vec<Reason>,
}

/// One error.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// Errors in a script, possibly with warnings among them. Another process gets them as text ([`Failure::stated`]).
    #[serde(skip)]
    Script(Diagnostics),
}

/// Diagnostics with the texts that they are about.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    /// The texts.
    pub map: SourceMap,
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

    /// The same with each error in a script as plain text, with which another process can print it.
    #[must_use]
    pub fn stated(&self) -> Self {
        let mut reasons = Vec::new();
        for reason in &self.reasons {
            let Reason::Script(Diagnostics { map, found }) = reason else {
                reasons.push(reason.clone());
                continue;
            };
            for error in found.iter().filter(|found| found.severity == Severity::Error) {
                let text = render(map, std::slice::from_ref(error), Style::Plain);
                let code = error.code.number().to_owned();
                let message = text.trim_end().strip_prefix(&format!("error[{code}]: ")).unwrap_or(text.trim_end());
                reasons.push(Reason::Stated { message: message.to_owned(), code: Some(code), help: Vec::new() });
            }
        }
        Self { status: self.status, reasons }
    }

    /// All reasons as plain text, each on lines of its own.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for reason in self.stated().reasons {
            let Reason::Stated { code, message, help } = reason else { continue };
            let code = code.map_or(String::new(), |code| format!("[{code}]"));
            text.push_str(&format!("error{code}: {message}\n"));
            help.iter().for_each(|help| text.push_str(&format!("  = help: {help}\n")));
        }
        text
    }
}
