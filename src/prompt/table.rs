//! The commands that only a prompt has. They end with their line, and what follows the word is taken as it stands.

use super::command::{Argument, PromptCommand};
use super::{Prompt, runs};

/// All of them, in the order in which `help` shows them.
pub const COMMANDS: &[PromptCommand] = &[
    PromptCommand::new(
        ["help", "help [TOPIC]", "explains the loaded script, a command, flowop, attribute or variable", "help read"],
        Argument::Topic,
        Prompt::help_on,
    ),
    PromptCommand::new(
        ["show", "show [NAME]", "prints the current script, or one of its variables or definitions", "show"],
        Argument::Name,
        Prompt::show,
    ),
    PromptCommand::new(
        ["vars", "vars", "lists variables: name, value, where it was set, what it would be otherwise", "vars"],
        Argument::Nothing,
        |prompt, _, front| Ok(prompt.show_variables(front)),
    ),
    PromptCommand::new(
        ["unset", "unset $NAME", "takes a variable back to what the loaded script says", "unset $nshadows"],
        Argument::Variable,
        Prompt::unset,
    ),
    PromptCommand::new(
        ["reload", "reload", "reads the loaded script anew; what was set at the prompt stays set", "reload"],
        Argument::Nothing,
        |prompt, _, front| Ok(prompt.reload(front)),
    ),
    PromptCommand::new(["plan", "plan", "shows what a run would do now", "plan"], Argument::Nothing, Prompt::show_plan),
    PromptCommand::new(
        ["check", "check", "looks for mistakes in what is defined, with the variables as they are", "check"],
        Argument::Nothing,
        Prompt::check,
    ),
    PromptCommand::new(
        ["repeat", "repeat [TIMES]", "does the last run again", "repeat 3"],
        Argument::Number,
        Prompt::repeat,
    ),
    PromptCommand::new(
        ["stats", "stats", "shows the last run's report again", "stats"],
        Argument::Nothing,
        |prompt, _, front| Ok(prompt.show_report(front)),
    ),
    PromptCommand::new(
        [
            "compare",
            "compare [COUNT]",
            "shows the last runs side by side: the variables that differ, then the results",
            "compare",
        ],
        Argument::Number,
        Prompt::compare,
    ),
    runs::RUNS,
    PromptCommand::new(
        ["save", "save FILE", "writes the current script, and the results as JSON beside it", "save tuned.wml"],
        Argument::File,
        Prompt::save,
    ),
    PromptCommand::new(
        ["source", "source FILE", "does the commands of a file as if they were typed", "source steps.wml"],
        Argument::File,
        Prompt::source,
    ),
    PromptCommand::new(
        ["history", "history", "lists what was typed in this session", "history"],
        Argument::Nothing,
        |prompt, _, front| Ok(prompt.show_history(front)),
    ),
    PromptCommand::new(
        ["clear", "clear", "forgets definitions and variables; the results stay", "clear"],
        Argument::Nothing,
        |prompt, _, front| Ok(prompt.clear(front)),
    ),
];

/// The command that a line is, if it is one of a prompt's own, and what follows its word.
///
/// `stats` alone is one; `stats clear` is a command of the language.
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
    fn a_line_is_told_by_its_first_word() {
        let found = |line| prompt_command(line).map(|(c, rest)| (c.spec.name, rest));
        assert_eq!(found("  save it's a file.wml "), Some(("save", "it's a file.wml")));
        assert_eq!(found("plan # what now"), Some(("plan", "")));
        assert_eq!(found("stats"), Some(("stats", "")));
        assert_eq!(found("stats snap"), None);
        assert_eq!(found("run 5"), None);
        assert_eq!(found("planning"), None);
        assert_eq!(found(""), None);
    }

    /// Of the language's words only those are taken over that mean more at a prompt.
    #[test]
    fn few_words_are_in_both_tables() {
        let both: Vec<_> = COMMANDS.iter().map(|c| c.spec.name).filter(|name| statement_word(name).is_some()).collect();
        assert_eq!(both, ["help", "vars", "stats"]);
    }
}
