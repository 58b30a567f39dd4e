//! The interactive shell, on a terminal or with commands from a pipe or file.
//!
//! Splits the input into statements and executes them in a session. On a terminal a statement ends with its line unless
//! it is incomplete. In a pipe or file it ends where the next one begins, or where the writer of a pipe pauses. Not
//! here: the commands of the language (`session`); only the commands that exist just in the shell.
//!
//! To add a command of the prompt: a `PromptCommand` in a file here (name, form, documentation, example, the kind of
//! its argument, the function), its name in `table::COMMANDS`, a transcript `tests/cases/repl/NAME.txt` whose first
//! line is `# options: --engine null …`, and a line in docs/shell.md.

mod command;
mod compare;
mod complete;
mod df;
mod editor;
mod help;
mod input;
mod script;
mod runs;
mod shell;
mod side_by_side;
mod split;
mod table;

pub use command::PromptCommand;
pub(crate) use complete::{Names, attribute_owner, complete, statement};
pub(crate) use help::{ATTRIBUTES, about, about_variable, about_word, topics};
pub(crate) use script::definition;
#[cfg(test)]
pub(crate) use shell::OUTSIDE;
pub use table::COMMANDS;

use crate::diag::Failure;
use crate::os::signals::{self, FirstSignal};
use crate::result::Document;
use crate::session::{Front, Session, Status};
use split::{Splitter, StatementText};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The handling of signals while a shell runs.
#[derive(Clone, Default, Debug)]
pub struct Signals {
    /// The first signal received. While it is set, a second signal ends the program at once.
    pub first: Arc<FirstSignal>,
}

const SIGINT: u8 = 2;

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
struct Prompt {
    session: Session,
    host: Box<dyn ShellHost>,
    /// All statements, in order.
    history: Vec<String>,
    /// Number of nested `source` commands in progress.
    sourcing: usize,
}

/// The main loop of a shell: a prompt, its front end and its exit status.
struct PromptLoop<'a> {
    prompt: Prompt,
    front: &'a mut dyn Front,
    signals: Signals,
    worst: Status,
    /// Whether input is a terminal. There ^C ends a run; otherwise it ends the shell.
    terminal: bool,
    /// Whether ^C ended the last statement.
    stopped: bool,
}

/// Runs a shell on standard input until end of file or `quit`. Returns the status of the session; for a pipe or file,
/// the worst status of all commands.
pub fn run(
    mut session: Session,
    script: Option<(&str, &str)>,
    terminal: bool,
    signals: Signals,
    host: Box<dyn ShellHost>,
    front: &mut dyn Front,
) -> Status {
    let loaded = session.apply_sets().and_then(|()| match script {
        Some((name, text)) => session.load(name, text, front),
        None => Ok(()),
    });
    let worst = front.status(loaded);
    let prompt = Prompt { session, host, history: Vec::new(), sourcing: 0 };
    // At a prompt ^C ends a run or a line, not the shell.
    let _kept = terminal.then(signals::Kept::begin);
    let mut shell = PromptLoop { prompt, front, signals, worst, terminal, stopped: false };
    if terminal {
        editor::run(&mut shell);
    } else {
        input::run(&mut shell);
    }
    let PromptLoop { prompt, front, worst, .. } = shell;
    if !terminal {
        prompt.session.runner.watch.note_status(worst);
    }
    let last = prompt.session.finish(front);
    match worst {
        Status::Interrupted(_) => last.max(worst),
        _ if terminal => last,
        worst => last.max(worst),
    }
}

impl PromptLoop<'_> {
    /// Executes a statement. Returns whether the shell should continue.
    fn execute(&mut self, name: &str, text: &StatementText) -> bool {
        let done = self.prompt.typed(name, text, self.front);
        let status = self.front.status(done);
        self.stopped = self.terminal && self.prompt.session.runner.watch.signal() == SIGINT;
        if self.stopped {
            // The signal has ended the run. Clear it, so that the shell continues.
            self.prompt.session.runner.watch.clear_interrupt();
            self.signals.first.clear();
        } else {
            self.worst = self.worst.max(status);
        }
        !self.prompt.session.has_quit() && !self.ended()
    }

    /// True if a signal was received that ends the shell, and records it in the status.
    fn ended(&mut self) -> bool {
        let signal = self.prompt.session.runner.watch.signal();
        if signal != 0 {
            self.worst = self.worst.max(Status::Interrupted(signal));
        }
        signal != 0
    }

    /// Executes the statements of a text whose first line has the number `line`. Returns whether the shell should
    /// continue.
    fn execute_all(&mut self, name: &str, text: &str, line: u32) -> bool {
        let mut splitter = Splitter::new();
        let mut texts: Vec<StatementText> = text.lines().flat_map(|line| splitter.line(line)).collect();
        texts.extend(splitter.finish());
        for text in texts {
            if !self.execute(name, &StatementText { line: text.line + line - 1, ..text }) {
                return false;
            }
            // ^C also cancels the remaining statements of the text.
            if self.stopped {
                break;
            }
        }
        true
    }
}
