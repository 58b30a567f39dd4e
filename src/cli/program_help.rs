//! The help of the program itself: its commands by what they are for. `-h` is one screen, `--help` is whole.

use super::args::GROUPS;
use crate::diag::meant;
use crate::util::wrap;
use clap::error::ErrorKind;
use clap::{Arg, Command};
use std::fmt::Write as _;

/// Columns of the help.
const WIDTH: usize = 100;

/// The columns in which the groups and the names of commands stand.
const COLUMNS: (usize, usize) = (11, 12);

/// Below the commands in the short help.
const OPTIONS: &str = "\
Often used: --dir DIR, --set NAME=VALUE, --runtime TIME, --cold, --json FILE, --format FORMAT
All options, and the exit status: wmlrun --help; those of a command: wmlrun COMMAND --help";

/// Returns the help of the program in the place of the parser's. `None` if the parser has another answer.
pub(super) fn program_help(answer: &clap::Error, command: &dyn Fn() -> Command) -> Option<clap::Error> {
    if answer.kind() != ErrorKind::DisplayHelp {
        return None;
    }
    let text = answer.to_string();
    let mut plain = command();
    let (help, option) = if text == plain.render_help().to_string() {
        (command().override_help(short(&about(&plain), &groups(&plain))), "-h")
    } else if text == plain.render_long_help().to_string() {
        let template = format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}\n{{all-args}}{{after-help}}",
            headed(&groups(&plain))
        );
        // The groups stand in the place of the parser's list.
        let help = command().disable_help_subcommand(true).mut_subcommands(|below| below.hide(true));
        (help.override_usage("wmlrun [OPTIONS] SCRIPT\n       wmlrun COMMAND").help_template(template), "--help")
    } else {
        return None;
    };
    help.try_get_matches_from(["wmlrun", option]).err()
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// A group of commands, each with its name and what it does.
type CommandGroup = (&'static str, Vec<(String, String)>);

fn groups(program: &Command) -> Vec<CommandGroup> {
    let row = |name: &&str| (String::from(*name), program.find_subcommand(name).map(about).unwrap_or_default());
    GROUPS.iter().map(|(group, names)| (*group, names.iter().map(row).collect())).collect()
}

/// The short help: a line for each command, with its group at the beginning of the first.
fn short(about: &str, groups: &[CommandGroup]) -> String {
    let mut text = format!("{about}\n\nUsage: wmlrun [OPTIONS] SCRIPT | wmlrun COMMAND\n\n");
    for (group, commands) in groups {
        for (n, (name, about)) in commands.iter().enumerate() {
            let group = if n == 0 { group } else { "" };
            let about = about.split([':', ';']).next().unwrap_or_default();
            let _ = writeln!(text, "{group:0$}{name:1$}{about}", COLUMNS.0, COLUMNS.1);
        }
    }
    text + "\n" + OPTIONS
}

fn headed(groups: &[CommandGroup]) -> String {
    let line = |(name, about): &(String, String)| {
        let lines = wrap::cell_lines(about, WIDTH - COLUMNS.1 - 2);
        let rest = format!("\n{:1$}", "", COLUMNS.1 + 2);
        format!("  {name:0$}{1}\n", COLUMNS.1, lines.join(&rest))
    };
    let group =
        |(group, commands): &CommandGroup| format!("{group}:\n{}\n", commands.iter().map(line).collect::<String>());
    groups.iter().map(group).collect::<String>().trim_end().to_owned() + "\n"
}

/// From so many options below headings on, the short help of a command only names them.
const NAMED_ONLY: usize = 8;

/// Columns of a heading before the names.
const HEADINGS: usize = 22;

/// Makes the short help of a command fit a screen: options below a heading are named there, and explained in `--help`.
pub(super) fn with_short_help(command: Command) -> Command {
    let mut headed: Vec<(String, Vec<String>)> = Vec::new();
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let (Some(heading), Some(name)) = (arg.get_help_heading(), arg.get_long()) else { continue };
        let name = format!("--{name}");
        match headed.iter_mut().find(|(known, _)| known == heading) {
            Some((_, names)) => names.push(name),
            None => headed.push((heading.to_owned(), vec![name])),
        }
    }
    if headed.iter().map(|(_, names)| names.len()).sum::<usize>() < NAMED_ONLY {
        return command;
    }
    let name = command.get_name();
    let mut text = format!("More options (all: `wmlrun {name} --help`; one: `wmlrun explain {}`):\n", headed[0].1[0]);
    for (heading, names) in headed {
        let lines = wrap::cell_lines(&names.join(" "), WIDTH - HEADINGS - 4);
        let _ = writeln!(text, "  {heading:HEADINGS$}  {}", lines.join(&format!("\n{:1$}", "", HEADINGS + 4)));
    }
    let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let command = command.mut_args(|arg| {
        let is_headed = arg.get_help_heading().is_some();
        if is_headed { arg.hide_short_help(true) } else { arg }
    });
    command.after_help(format!("{text}\n{end}")).after_long_help(end)
}

/// The option that was probably meant, if a word begins with two hyphens.
pub(super) fn meant_option(word: &str, all: &Command) -> Option<String> {
    let names: Vec<&str> = arguments(all).filter_map(|(_, arg)| arg.get_long()).collect();
    meant(word.strip_prefix("--")?, names).map(|near| format!("--{near}"))
}

/// The options of the commands that the help lists, each with the name of its command; empty for a run.
fn arguments(all: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let own = all.get_arguments().map(|arg| ("", arg));
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set());
    own.chain(commands.flat_map(|command| command.get_arguments().map(|arg| (command.get_name(), arg))))
        .filter(|(_, arg)| !arg.is_hide_set() && !arg.is_positional())
}

/// What a command does.
pub(super) fn about_command(word: &str, all: &Command) -> Option<String> {
    let about = all.find_subcommand(word).filter(|command| !command.is_hide_set())?.get_about()?;
    Some(format!("wmlrun {word}: {about}"))
}

/// What an option does, a text for each of its meanings. `word`: with or without its hyphens.
pub(super) fn about_option(word: &str, all: &Command) -> Vec<String> {
    let name = word.split('=').next().unwrap_or(word);
    let is_short = |arg: &Arg| {
        let mut letters = name.strip_prefix('-').unwrap_or_default().chars();
        letters.next().is_some_and(|letter| arg.get_short() == Some(letter)) && letters.next().is_none()
    };
    let is_it = |arg: &Arg| arg.get_long().is_some_and(|long| name.trim_start_matches("--") == long) || is_short(arg);
    let mut found: Vec<(String, String, Vec<&str>)> = Vec::new();
    for (command, arg) in arguments(all).filter(|(_, arg)| is_it(arg)) {
        let head = match (arg.get_long(), arg.get_short()) {
            (Some(long), Some(short)) => format!("-{short}, --{long}"),
            (Some(long), None) => format!("--{long}"),
            (None, short) => format!("-{}", short.unwrap_or_default()),
        };
        let takes = arg.get_action().takes_values();
        let value =
            arg.get_value_names().filter(|_| takes).map_or(String::new(), |names| format!(" {}", names.join(" ")));
        let text = arg.get_help().map_or_else(String::new, ToString::to_string);
        let command = if command.is_empty() { "run" } else { command };
        match found.iter_mut().find(|(own, other, _)| *own == format!("{head}{value}") && *other == text) {
            Some((.., commands)) if commands.contains(&command) => {}
            Some((.., commands)) => commands.push(command),
            None => found.push((format!("{head}{value}"), text, vec![command])),
        }
    }
    found.into_iter().map(|(head, text, commands)| format!("{head} (of {}): {text}", commands.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::args;
    use std::ffi::OsString;

    /// The answer to a command line that asks for help.
    fn help(words: &[&str]) -> String {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        args::read(&words).err().unwrap().to_string()
    }

    #[test]
    fn the_short_help_is_one_screen_also_with_more_commands() {
        let all = args::full_command();
        let mut groups = groups(&all);
        let text = help(&["wmlrun", "-h"]);
        assert_eq!(text.trim_end(), short(&about(&all), &groups).trim_end());
        assert_eq!(help(&["/usr/bin/wmlrun-mpi", "-h"]), text);
        for name in ["learn", "replay", "history", "init", "doctor"] {
            groups[2].1.push((name.to_owned(), "What this command does".to_owned()));
        }
        let text = short(&about(&all), &groups);
        assert!(text.lines().count() <= 40, "{}", text.lines().count());
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > WIDTH).collect();
        assert!(long.is_empty(), "{long:?}");
    }

    /// `--help` explains all options, `-h` those that most runs need.
    #[test]
    fn the_short_help_of_a_command_names_every_option_and_fits_60_lines() {
        let all = args::full_command();
        for command in all.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let [text, whole] = ["-h", "--help"].map(|option| help(&["wmlrun", name, option]));
            assert!(text.lines().count() <= 60, "{name}: {}", text.lines().count());
            for option in command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long) {
                let option = format!("--{option}");
                let names = |text: &str| text.split([' ', '\n', '[', '=']).any(|word| word == option);
                assert!(names(&text) && names(&whole), "{name} {option}: {text}");
            }
            assert!(!whole.contains("More options"), "{whole}");
        }
    }

    #[test]
    fn each_listed_command_stands_once_in_a_group() {
        let all = args::full_command();
        let listed = all.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
        let listed: Vec<&str> = listed.collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        assert_eq!(listed, grouped, "in the order of the groups");
        assert_eq!(all.get_subcommands().count(), grouped.len());
        // An old word is no name of a command, and stands for one.
        for (old, new) in args::OLD_WORDS {
            let command = new.split(' ').next().unwrap();
            assert!(!grouped.contains(old) && grouped.contains(&command), "{old}");
        }
    }

    #[test]
    fn the_whole_help_has_all_commands_and_options() {
        let text = help(&["wmlrun", "--help"]);
        assert_eq!(text, help(&["wmlrun", "help"]));
        assert_eq!(text, help(&["filebench", "--help"]));
        for (group, names) in GROUPS {
            assert!(text.contains(&format!("\n{group}:\n  {}", names[0])), "{text}");
        }
        for words in ["--populate-threads <N>", "Rarely needed:", "Exit status:", "  setup       Set up shells"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("\n  floor") && !text.contains("--allow-device"), "{text}");
        // The answer to another question is that of the parser.
        assert_eq!(help(&["wmlrun", "floor", "--help"]), help(&["wmlrun", "repeat", "--help"]));
    }
}
