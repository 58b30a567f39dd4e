//! The type of shell commands, and parsing of their arguments.

use super::Prompt;
use crate::diag::{Code, Diagnostic};
use crate::session::{CommandError, Front};
use crate::source::{Span, Spanned};
use crate::spec::{CommandSpec, Origin};

/// The kind of a command's argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Argument {
    /// No argument.
    Nothing,
    /// `-v` or no argument.
    Verbose,
    Number,
    /// A file name.
    File,
    /// The name of a variable.
    Variable,
    /// The name of a variable or a definition.
    Name,
    /// The name of a flowop of the last run.
    Flowop,
    /// Variables with values.
    Values,
    /// A help topic.
    Topic,
}

/// Executes a command with its argument.
type RunCommand = fn(&mut Prompt, Spanned<&str>, &mut dyn Front) -> Result<(), CommandError>;

/// A command that exists only in the shell.
#[derive(Debug)]
pub struct PromptCommand {
    /// Name, syntax, help line and example.
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

/// Returns the error for a command with invalid arguments. `form` is the correct syntax.
pub(super) fn bad(span: Span, form: &str) -> Box<Diagnostic> {
    let d = Diagnostic::error(Code::BadArgument, span, "invalid arguments");
    Box::new(d.help(format!("usage: `{form}`")))
}

/// Parses a count from 1 to 10,000. Returns `default` if the argument is empty.
pub(super) fn count(argument: Spanned<&str>, default: usize, form: &str) -> Result<usize, Box<Diagnostic>> {
    match argument.node {
        "" => Ok(default),
        text => text.parse().ok().filter(|n| (1..=10_000).contains(n)).ok_or_else(|| bad(argument.span, form)),
    }
}
