//! The table of commands that exist only in the shell. Such a command ends with its line, and its argument is literal.

use super::command::{Argument, PromptCommand};
use super::{Prompt, df, runs};

/// All shell commands, in the order of `help`.
#[rustfmt::skip]
pub const COMMANDS: &[PromptCommand] = &[
    PromptCommand::new(["help", "help [TOPIC]",
        "explains the loaded script, or a command, flowop, attribute or variable", "help read"], Argument::Topic,
        Prompt::help_on),
    PromptCommand::new(["show", "show [NAME]", "prints the current script, or one variable or definition", "show"],
        Argument::Name, Prompt::show),
    PromptCommand::new(["vars", "vars", "lists variables: name, value, where it was set, value if unset", "vars"],
        Argument::Nothing, |prompt, _, front| { prompt.show_variables(front); Ok(()) }),
    PromptCommand::new(["unset", "unset $NAME",
        "undoes the last setting of a variable: command line, else prompt, else script", "unset $nshadows"],
        Argument::Variable, Prompt::unset),
    PromptCommand::new(["reload", "reload", "reads the loaded script again; keeps the variables set at the prompt",
        "reload"], Argument::Nothing, |prompt, _, front| Ok(prompt.reload(front)?)),
    PromptCommand::new(["plan", "plan [-v]", "shows what a run would do, without running it; -v: each step", "plan"],
        Argument::Verbose, Prompt::show_plan),
    df::DF,
    PromptCommand::new(["check", "check", "checks the definitions for errors, with the current variables", "check"],
        Argument::Nothing, Prompt::check),
    PromptCommand::new(["repeat", "repeat [TIMES]", "repeats the last run, TIMES times (default 1)", "repeat 3"],
        Argument::Number, Prompt::repeat),
    PromptCommand::new(["stats", "stats", "shows the report of the last run again", "stats"], Argument::Nothing,
        |prompt, _, front| { prompt.show_report(front); Ok(()) }),
    PromptCommand::new(["compare", "compare [-v] [COUNT]",
        "shows the last COUNT runs (2 to 8, default 2) side by side: differing variables, results; -v: every row",
        "compare"], Argument::Number, Prompt::compare),
    PromptCommand::new(["ab", "ab NAME=VALUE…",
        "compares runs of the script as it is (A) with runs with these values (B): 16 runs in random order",
        "ab nshadows=7"], Argument::Values, Prompt::ab),
    runs::RUNS,
    runs::PLOT,
    runs::PAGE,
    PromptCommand::new(["save", "save FILE", "writes the current script to FILE, and the results as JSON next to it",
        "save tuned.wml"], Argument::File, Prompt::save),
    PromptCommand::new(["source", "source FILE", "executes the commands of a file as if they were typed",
        "source steps.wml"], Argument::File, Prompt::source),
    PromptCommand::new(["history", "history", "lists the statements of this session", "history"], Argument::Nothing,
        |prompt, _, front| { prompt.show_history(front); Ok(()) }),
    PromptCommand::new(["clear", "clear", "removes all definitions and variables; keeps the results", "clear"],
        Argument::Nothing, |prompt, _, front| Ok(prompt.clear(front)?)),
];

/// Parses a line as a shell command. Returns the command and its argument; `None` if the line is not a shell command.
///
/// `stats` without an argument is a shell command; `stats clear` is a command of the language.
pub(super) fn prompt_command(line: &str) -> Option<(&'static PromptCommand, &str)> {
    let line = line.trim();
    let end = line.find(|c: char| c.is_whitespace() || c == '#').unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    let rest = if rest.trim_start().starts_with('#') { "" } else { rest.trim() };
    let command = COMMANDS.iter().find(|c| c.spec.name == word)?;
    (word != "stats" || rest.is_empty()).then_some((command, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::words::statement_word;

    #[test]
    fn the_first_word_selects_the_command() {
        let found = |line| prompt_command(line).map(|(c, rest)| (c.spec.name, rest));
        assert_eq!(found("  save it's a file.wml "), Some(("save", "it's a file.wml")));
        assert_eq!(found("plan # what now"), Some(("plan", "")));
        assert_eq!(found("stats"), Some(("stats", "")));
        assert_eq!(found("stats snap"), None);
        assert_eq!(found("run 5"), None);
        assert_eq!(found("planning"), None);
        assert_eq!(found(""), None);
    }

    /// Only these words of the language have an extended meaning in the shell.
    #[test]
    fn few_words_are_in_both_tables() {
        let both: Vec<_> = COMMANDS.iter().map(|c| c.spec.name).filter(|name| statement_word(name).is_some()).collect();
        assert_eq!(both, ["help", "vars", "stats"]);
    }
}
