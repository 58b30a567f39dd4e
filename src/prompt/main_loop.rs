//! The main loop of a shell: executes statements, and keeps their worst status.

use super::split::{Splitter, StatementText};
use super::state::Prompt;
use crate::os::signals::FirstSignal;
use crate::session::{Front, Status};
use std::sync::Arc;

/// The handling of signals while a shell runs.
#[derive(Clone, Default, Debug)]
pub struct Signals {
    /// The first signal received. While it is set, a second signal ends the program at once.
    pub first: Arc<FirstSignal>,
}

const SIGINT: u8 = 2;

/// The main loop of a shell: a prompt, its front end and its exit status.
pub(super) struct PromptLoop<'a> {
    pub(super) prompt: Prompt,
    pub(super) front: &'a mut dyn Front,
    pub(super) signals: Signals,
    pub(super) worst: Status,
    /// Whether input is a terminal. There ^C ends a run; otherwise it ends the shell.
    pub(super) terminal: bool,
    /// Whether ^C ended the last statement.
    pub(super) stopped: bool,
}

impl PromptLoop<'_> {
    /// Executes a statement. Returns whether the shell should continue.
    pub(super) fn execute(&mut self, name: &str, text: &StatementText) -> bool {
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
    pub(super) fn ended(&mut self) -> bool {
        let signal = self.prompt.session.runner.watch.signal();
        if signal != 0 {
            self.worst = self.worst.max(Status::Interrupted(signal));
        }
        signal != 0
    }

    /// Executes the statements of a text whose first line has the number `line`. Returns whether the shell should
    /// continue.
    pub(super) fn execute_all(&mut self, name: &str, text: &str, line: u32) -> bool {
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
