//! Errors of the command line that the parser explains wrongly or not at all: which option or command a word was meant
//! to be.
//!
//! Not in here: the definition of the command line (`args`), and the errors of values, which their parsers explain.

use super::console::notice;
use super::neighbours;
use super::screen::stderr_width;
use super::stdout::{Stdout, to_stderr};
use crate::diag::{meant, similar_path, wants_colours};
use crate::import::ImportError;
use crate::util::{printable, wrap};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Warns of options that are accepted without effect.
pub(super) fn warn_of_old_options(words: &[OsString]) {
    let is_old = |word: &OsString| word.to_str().and_then(|word| word.split('=').next()) == Some("--allow-device");
    if words.iter().any(is_old) {
        notice("warning: `--allow-device` has no effect: a block device is always refused\n  = help: omit it");
    }
}

/// Adds to the error about an unexpected word what it was probably meant to be. `words` are those of the command line
/// after the name of the program, and `all` is its definition. `script_of` returns the script of a command line, if there
/// is no error in it.
pub(super) fn explained(
    error: clap::Error,
    words: &[&str],
    all: &Command,
    script_of: &dyn Fn(&[&str]) -> Option<String>,
) -> clap::Error {
    let mut error = about_whole_word(about_word(error, words, all, script_of), words);
    let unknown = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) => unknown.clone(),
        _ => return error,
    };
    let used = words.iter().find_map(|word| all.find_subcommand(word)).unwrap_or(all);
    let options: Vec<&str> = used.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long).collect();
    let runs_a_script = options.contains(&"set");
    if let Some(tip) = neighbours::instead_of(&unknown, words).filter(|_| runs_a_script) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    let name = unknown.strip_prefix("--");
    let is_number = unknown.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if name.is_some() || is_number {
        without_separator(&mut error, used);
    }
    if let Some(name) = name {
        // The parser's own suggestion may have little in common with the word, such as `--note` for `--nthreads`.
        if error.remove(ContextKind::SuggestedArg).is_some() {
            error.remove(ContextKind::Usage);
        }
        if let Some(near) = meant(name, options.iter().copied()) {
            error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{near}")));
        } else if options.contains(&"set")
            && let Some(tip) = run_tip(name, used, all).or_else(|| set_tip(name))
        {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
    } else if let Some(tip) = tip(&unknown, words, &options, used) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Returns the tip about an option that a run has, and the command `used` has not.
fn run_tip(name: &str, used: &Command, all: &Command) -> Option<String> {
    let is_of_runs = all.get_arguments().any(|arg| !arg.is_hide_set() && arg.get_long() == Some(name));
    is_of_runs.then(|| format!("'--{name}' is an option of a run: omit it here, '{}' starts none", used.get_name()))
}

/// Returns the tip about an option that is none, if it may be a variable, such as `--nthreads`.
fn set_tip(name: &str) -> Option<String> {
    let is_variable = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_variable && !name.is_empty()).then(|| format!("if it is a variable of the script, write --set {name}=VALUE"))
}

/// Returns the tip of the error about an unexpected word, in the form of a help.
pub(super) fn suggestion(error: &clap::Error) -> Option<String> {
    if let Some(option) = suggested_option(error) {
        return Some(format!("did you mean `{option}`?"));
    }
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) => {
            unknown.strip_prefix("--").and_then(set_tip)
        }
        _ => None,
    }
}

/// Returns the option that an unexpected word was probably meant to be, from the error about it.
fn suggested_option(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(option)) => Some(option),
        _ => None,
    }
}

/// Returns the help for a path that does not exist, if a file or a directory there has a similar name.
pub(super) fn near_path(path: &Path) -> Option<String> {
    if path.exists() {
        return None;
    }
    let near = similar_path(path, false).or_else(|| similar_path(path, true))?;
    Some(format!("did you mean `{}`?", printable::line(&near.display().to_string())))
}

/// Returns the help of an error about results. `named`: the paths of the command line.
pub(super) fn import_help(error: &ImportError, named: &[&Path]) -> String {
    match error {
        ImportError::Io { path, .. } if named.contains(&path.as_path()) => near_path(path),
        _ => None,
    }
    .unwrap_or_else(|| error.help())
}

/// Returns the name of the command that a word was probably meant to be. `all` is the definition of the command line.
pub(super) fn meant_command(word: &str, all: &Command) -> Option<String> {
    meant(word, listed(all)).map(str::to_owned)
}

/// The names of the commands that the help lists.
fn listed(all: &Command) -> impl Iterator<Item = &str> {
    all.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name)
}

/// Removes the tip that the word can be given behind `--`: no script begins with two hyphens or is a negative number. The
/// parser gives it before all others, if the command has an argument without an option.
fn without_separator(error: &mut clap::Error, used: &Command) {
    if used.get_positionals().next().is_none() {
        return;
    }
    if let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested)
        && tips.len() > 1
    {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips[1..].to_vec()));
    }
}

/// Returns a tip about an unexpected word that does not begin with a hyphen.
fn tip(unknown: &str, words: &[&str], options: &[&str], used: &Command) -> Option<String> {
    if unknown.starts_with('-') {
        return None;
    }
    let at = words.iter().position(|word| *word == unknown)?;
    if used.get_positionals().any(Arg::is_last_set) {
        let quoted = |words: &[&str]| words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
        return Some(format!("the command follows `--`: wmlrun {} -- {}", quoted(&words[..at]), quoted(&words[at..])));
    }
    let before = |n: usize| at.checked_sub(n).map(|at| words[at]);
    // The value of such an option is optional, so that it is part of the same word.
    let needs_equals = |option: &str| {
        let is_it = |arg: &&Arg| arg.get_long().is_some_and(|name| option.strip_prefix("--") == Some(name));
        used.get_arguments().find(is_it).is_some_and(Arg::is_require_equals_set)
    };
    match (before(2), before(1)) {
        (Some(side @ ("--a" | "--b")), Some(option)) if option.starts_with('-') => {
            Some(format!("'{side}' takes all options of its side as one argument: {side} '{option} {unknown}'"))
        }
        (Some("--set"), Some(name)) if !name.contains('=') => {
            Some(format!("'--set' takes a name and a value as one argument: --set {name}={unknown}"))
        }
        (_, Some(option)) if needs_equals(option) => {
            Some(format!("the value of '{option}' follows an equals sign: {option}={unknown}"))
        }
        (Some(option), Some(value)) if needs_equals(option) && !value.starts_with('-') => {
            Some(format!("the value of '{option}' follows an equals sign: {option}={value}"))
        }
        _ if unknown.contains('=') => Some(format!("to set a variable, write --set {unknown}")),
        _ if options.contains(&unknown) => Some(format!("options begin with two hyphens: --{unknown}")),
        _ => meant(unknown, options.iter().copied()).map(|near| format!("a similar option exists: '--{near}'")),
    }
}

/// A word as a shell takes it.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match word.chars().all(is_plain) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Changes the error about a word after the script, which the parser takes for the name of a command.
fn about_word(
    error: clap::Error,
    words: &[&str],
    all: &Command,
    script_of: &dyn Fn(&[&str]) -> Option<String>,
) -> clap::Error {
    let word = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::ArgumentConflict, Some(ContextValue::String(word))) => word.clone(),
        _ => return error,
    };
    let options: Vec<&str> = all.get_arguments().filter_map(Arg::get_long).collect();
    let is_command = all.find_subcommand(&word).is_some();
    if is_command || tip(&word, words, &options, all).is_none() {
        let before = words.iter().rposition(|other| *other == word).and_then(|at| words.get(..at));
        let Some(script) = before.and_then(script_of) else { return error };
        let names: Vec<&str> = all.get_subcommands().map(Command::get_name).collect();
        return all.clone().error(ErrorKind::ArgumentConflict, extra_word(&script, &word, &names));
    }
    let mut unknown = clap::Error::new(ErrorKind::UnknownArgument).with_cmd(all);
    unknown.insert(ContextKind::InvalidArg, ContextValue::String(word));
    if let Some(usage) = error.get(ContextKind::Usage) {
        unknown.insert(ContextKind::Usage, usage.clone());
    }
    unknown
}

/// Returns the message for the word `extra` after the script `script`: the error and its help. `commands` are the names
/// of all commands.
fn extra_word(script: &str, extra: &str, commands: &[&str]) -> String {
    let command = meant(script, commands.iter().copied()).filter(|_| !Path::new(script).exists());
    let (text, help) = if commands.contains(&extra) {
        let help = format!("a command is the first word: `wmlrun {extra} {script}`");
        (format!("the command `{extra}` follows the script `{script}`"), help)
    } else if let Some(near) = command {
        (format!("no command is named `{script}`"), format!("did you mean `{near}`?"))
    } else if Path::new(extra).is_dir() {
        (format!("`{extra}` is not an option"), format!("the directory of the file sets is given by `--dir {extra}`"))
    } else {
        let help = "run each script by itself, or several by `wmlrun experiment FILE` or `wmlrun batch PROFILE`";
        (format!("`{extra}` follows the script `{script}`, and a run has one script"), help.to_owned())
    };
    format!("{text}\n  = help: {help}")
}

/// Changes the error about an unknown option `-x` that is one letter of a word such as `-x.wml`, which is probably the
/// name of a script.
fn about_whole_word(mut error: clap::Error, words: &[&str]) -> clap::Error {
    let unknown = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) => unknown.strip_prefix('-'),
        _ => None,
    };
    let Some(letter) = unknown.filter(|letters| letters.chars().count() == 1) else { return error };
    let has_more = |word: &&str| {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        letters.is_some_and(|letters| letters.len() > letter.len() && letters.contains(letter))
    };
    let Some(word) = words.iter().copied().find(has_more).map(str::to_owned) else {
        return error;
    };
    let tip = format!("a script of this name is given as `./{word}`");
    error.insert(ContextKind::InvalidArg, ContextValue::String(word));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error.remove(ContextKind::SuggestedArg);
    error
}

/// Prints what is wrong with the command line, or the help or version that it asks for. Returns the exit status.
pub(super) fn print(e: &clap::Error) -> u8 {
    let text = |terminal: bool| match terminal && wants_colours() {
        true => e.render().ansi().to_string(),
        false => e.render().to_string(),
    };
    if e.use_stderr() {
        let text = text(std::io::stderr().is_terminal());
        to_stderr(&wrap::message(&text, stderr_width()));
        return 2;
    }
    let _ = Stdout.write_all(text(std::io::stdout().is_terminal()).as_bytes());
    // What `--hosts` compares.
    #[cfg(feature = "mpi")]
    if e.kind() == ErrorKind::DisplayVersion {
        let build = format!("build {}, {}\n", crate::experiment::own_build(), crate::ranks::mpi_version());
        let _ = Stdout.write_all(build.as_bytes());
    }
    0
}

#[cfg(test)]
mod tests {
    use super::extra_word;

    #[test]
    fn the_help_about_an_extra_word_depends_on_it() {
        let dir = std::env::temp_dir().display().to_string();
        for (script, extra, says) in [
            ("mail.f", "check", "a command is the first word: `wmlrun check mail.f`"),
            ("chek", "mail.f", "did you mean `check`?"),
            ("mail.f", dir.as_str(), "the directory of the file sets is given by `--dir "),
            ("mail.f", "web.f", "`web.f` follows the script `mail.f`, and a run has one script"),
        ] {
            let text = extra_word(script, extra, &["check", "run"]);
            assert!(text.contains(says), "{script} {extra}: {text}");
        }
    }
}
