//! What a command of the prompt is, and how its argument is read.

use super::Prompt;
use crate::diag::{Code, Diagnostic};
use crate::session::{Front, Status};
use crate::source::{Span, Spanned};
use crate::spec::{CommandSpec, Origin};

/// What follows the word of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Argument {
    /// Nothing may.
    Nothing,
    /// A number.
    Number,
    /// A file.
    File,
    /// A variable.
    Variable,
    /// A variable or a definition.
    Name,
    /// Anything that there is help on.
    Topic,
}

/// Does a command, given what follows its word.
type RunCommand = fn(&mut Prompt, Spanned<&str>, &mut dyn Front) -> Result<Status, Box<Diagnostic>>;

/// A command that only a prompt has.
#[derive(Debug)]
pub struct PromptCommand {
    /// Its word, form, line of help and example.
    pub spec: CommandSpec,
    pub(super) argument: Argument,
    pub(super) run: RunCommand,
}

impl PromptCommand {
    pub(super) const fn new(
        [name, form, doc, example]: [&'static str; 4],
        argument: Argument,
        run: RunCommand,
    ) -> Self {
        Self { spec: CommandSpec { name, form, origin: Origin::Wmlrun, doc, example }, argument, run }
    }
}

/// The error for a command that is not written as it should be.
pub(super) fn bad(span: Span, form: &str) -> Box<Diagnostic> {
    let d = Diagnostic::error(Code::BadArgument, span, "this command is not written so");
    Box::new(d.help(format!("write `{form}`")))
}

/// A number of times from 1, or what holds without one.
pub(super) fn count(argument: Spanned<&str>, default: usize, form: &str) -> Result<usize, Box<Diagnostic>> {
    match argument.node {
        "" => Ok(default),
        text => text.parse().ok().filter(|n| (1..=10_000).contains(n)).ok_or_else(|| bad(argument.span, form)),
    }
}
