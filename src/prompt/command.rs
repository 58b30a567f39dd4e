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

/// Removes the quotes of a file name, if there are any.
pub(super) fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text)
}

/// Returns the name of a file to write. A quoted name is literal; an unquoted one must not contain special characters
/// of the language.
pub(super) fn file_name<'a>(argument: Spanned<&'a str>, form: &str) -> Result<&'a str, Box<Diagnostic>> {
    let wrong = |message: &str, help: &str| {
        Err(Box::new(Diagnostic::error(Code::BadArgument, argument.span, message).help(help)))
    };
    let name = unquoted(argument.node);
    if name.is_empty() {
        return Err(bad(argument.span, form));
    }
    if name.contains(|c: char| c == '"' || c.is_control()) {
        return wrong("the file name contains a quote or a control character", "use another file name");
    }
    if name.len() == argument.node.len() && name.contains(|c: char| "{}$#".contains(c) || c.is_whitespace()) {
        return wrong(
            "the file name contains a blank, a brace, `$` or `#`",
            "put it in quotes; it is then taken literally",
        );
    }
    Ok(name)
}
