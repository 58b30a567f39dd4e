//! The interactive shell, and the same shell without a terminal.
//!
//! In: lines. Out: what a session does with them. On a terminal a line ends a statement unless more must follow; a pipe or file is
//! one text in which a statement ends where the next begins, or where the writer pauses. Deliberately absent: what any command
//! does (`session`), except for those that only a prompt has.

mod command;
mod compare;
mod complete;
mod editor;
mod help;
mod input;
mod script;
mod runs;
mod shell;
mod split;
mod table;

pub use command::PromptCommand;
pub use table::COMMANDS;

use crate::os::signals::FirstSignal;
use crate::session::{Front, Session, Status};
use split::{Splitter, StatementText};
use std::sync::Arc;

/// What signals do while a shell lives.
#[derive(Clone, Default, Debug)]
pub struct Signals {
    /// While there is one, the next signal ends the program at once.
    pub first: Arc<FirstSignal>,
}

const SIGINT: u8 = 2;

/// A session, and what a prompt remembers of it.
struct Prompt {
    session: Session,
    /// Every statement, in order.
    history: Vec<String>,
    /// Files that are being sourced.
    sourcing: usize,
}

/// A prompt with someone, or something, in front of it.
struct PromptLoop<'a> {
    prompt: Prompt,
    front: &'a mut dyn Front,
    signals: Signals,
    worst: Status,
    /// On a terminal ^C ends a run, elsewhere everything.
    terminal: bool,
    /// ^C ended the last statement.
    stopped: bool,
}

/// Runs a shell on standard input until it ends or says `quit`. Of a pipe or file, returns how the worst command ended; of a
/// terminal, how the session did.
pub fn run(
    mut session: Session,
    script: Option<(&str, &str)>,
    terminal: bool,
    signals: Signals,
    front: &mut dyn Front,
) -> Status {
    let mut worst = session.apply_sets(front);
    if worst == Status::Done
        && let Some((name, text)) = script
    {
        worst = session.load(name, text, front);
    }
    let prompt = Prompt { session, history: Vec::new(), sourcing: 0 };
    let mut shell = PromptLoop { prompt, front, signals, worst, terminal, stopped: false };
    if terminal {
        editor::run(&mut shell);
    } else {
        input::run(&mut shell);
    }
    let PromptLoop { prompt, front, worst, .. } = shell;
    let last = prompt.session.finish(front);
    match worst {
        Status::Interrupted(_) => last.max(worst),
        _ if terminal => last,
        worst => last.max(worst),
    }
}

impl PromptLoop<'_> {
    /// Does a statement. False if the shell is to end.
    fn does(&mut self, name: &str, text: &StatementText) -> bool {
        let status = self.prompt.typed(name, text, self.front);
        self.stopped = self.terminal && self.prompt.session.runner.signal() == SIGINT;
        if self.stopped {
            // It has done its work: the run has ended, the shell goes on.
            self.prompt.session.runner.clear_interrupt();
            self.signals.first.clear();
        } else {
            self.worst = self.worst.max(status);
        }
        !self.prompt.session.has_quit() && !self.ended()
    }

    /// A signal has come that ends the shell.
    fn ended(&mut self) -> bool {
        let signal = self.prompt.session.runner.signal();
        if signal != 0 {
            self.worst = self.worst.max(Status::Interrupted(signal));
        }
        signal != 0
    }

    /// Does the statements of a text that came as a whole, whose first line is `line`. False if the shell is to end.
    fn does_all(&mut self, name: &str, text: &str, line: u32) -> bool {
        let mut splitter = Splitter::new();
        let mut texts: Vec<StatementText> = text.lines().flat_map(|line| splitter.line(line)).collect();
        texts.extend(splitter.finish());
        for text in texts {
            if !self.does(name, &StatementText { line: text.line + line - 1, ..text }) {
                return false;
            }
            // Whoever stops one of them means what was to follow, too.
            if self.stopped {
                break;
            }
        }
        true
    }
}
