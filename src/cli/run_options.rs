//! The options of a run in the argument parser. They are the rows of a table of `measure`.

use super::completion;
use crate::measure::{Completes, OPTIONS, OptionGroup, OptionScope, RunOption, RunsWith, Settings, Takes};
use clap::builder::{ArgExt, OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use std::ffi::{OsStr, OsString};

// The headings of options in the help.
pub(super) const MEASUREMENT: &str = "Measurement";
const REPLAYS: &str = "Replay of a trace";
pub(super) const FILES: &str = "Files and permissions";
pub(super) const OUTPUT: &str = "Output";
pub(super) const EXPERIMENT: &str = "Experiment";
pub(super) const RARE: &str = "Rarely needed";

/// Marks an option that may be given with `--resume`: it does not change the runs of an experiment, or only their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct WithResume;

impl ArgExt for WithResume {}

/// The options of the commands of a scope.
fn options(number: u8) -> impl Iterator<Item = &'static RunOption> {
    let scope = scope(number);
    let is_of = move |option: &&RunOption| match option.runs_with {
        RunsWith::Scripts => number != REPLAY,
        RunsWith::Both => true,
        // An experiment takes both.
        RunsWith::Traces => number == REPLAY || number == RUN,
    };
    OPTIONS.iter().filter(move |option| option.scope <= scope).filter(is_of)
}

/// An option in the argument parser, which refuses a wrong value.
fn arg(option: &'static RunOption) -> Arg {
    let arg = Arg::new(option.name).long(option.name).help(option.about()).allow_hyphen_values(option.takes_hyphen);
    let arg = match option.group {
        OptionGroup::Main => arg,
        OptionGroup::Measurement => arg.help_heading(MEASUREMENT),
        OptionGroup::Replay => arg.help_heading(REPLAYS),
        OptionGroup::Files => arg.help_heading(FILES),
        OptionGroup::Output => arg.help_heading(OUTPUT),
        OptionGroup::Rare => arg.help_heading(RARE),
        OptionGroup::Hidden => arg.hide(true),
    };
    let arg = option.old_name.into_iter().fold(arg, Arg::alias);
    let arg = option.excludes.into_iter().fold(arg, Arg::conflicts_with);
    let arg = if option.with_resume { arg.add(WithResume) } else { arg };
    let arg = match option.completes {
        Completes::Nothing => arg,
        Completes::Directories => arg.value_hint(ValueHint::DirPath),
        Completes::Variables => arg.add(completion::variables()),
    };
    let check = |value: &OsStr| option.apply(&mut Settings::default(), value);
    let parser = OsStringValueParser::new().try_map(move |value| check(&value).map(|()| value));
    match option.takes {
        Takes::Nothing(_) => arg.action(ArgAction::SetTrue),
        Takes::Name(name, names, _) => {
            let names = names().into_iter().map(|(name, about)| PossibleValue::new(name).help(about));
            arg.value_name(name).value_parser(PossibleValuesParser::new(names).map(OsString::from))
        }
        Takes::Text(name, _) => arg.value_name(name).value_parser(parser),
        Takes::Texts(name, _) => arg.value_name(name).value_parser(parser).action(ArgAction::Append),
        Takes::Optional(name, missing, _) => {
            let arg = arg.value_name(name).value_parser(parser).num_args(0..=1);
            arg.require_equals(true).default_missing_value(missing)
        }
        Takes::Path(name, _) => any_path(arg).value_name(name).value_parser(parser),
        Takes::Paths(name, _) => any_path(arg).value_name(name).value_parser(parser).action(ArgAction::Append),
    }
}

/// Lets shells complete a path, unless it is that of a directory.
fn any_path(arg: Arg) -> Arg {
    let hint = if arg.get_value_hint() == ValueHint::Unknown { ValueHint::AnyPath } else { arg.get_value_hint() };
    arg.value_hint(hint)
}

/// The options of a scope that a command line gives, each with its value, in the order of the table.
fn given(matches: &ArgMatches, number: u8) -> impl Iterator<Item = (&'static RunOption, &OsStr)> {
    // The command line of the shell lacks the options of traces, which those of experiments have.
    let is_given = |option: &&RunOption| {
        matches.try_contains_id(option.name).is_ok()
            && matches.value_source(option.name) == Some(ValueSource::CommandLine)
    };
    let values = |option: &'static RunOption| {
        let values = matches.get_raw(option.name).into_iter().flatten();
        values.map(move |value| (option, value))
    };
    options(number).filter(is_given).flat_map(values)
}

/// The settings that the options of a command line make. `SCOPE`: which options it has, as a number of [`OptionScope`].
#[derive(Clone, Debug)]
pub(super) struct RunSettings<const SCOPE: u8>(pub(super) Settings);

// The scopes of commands.
pub(super) const PLAN: u8 = OptionScope::Plan as u8;
pub(super) const RUN: u8 = OptionScope::Run as u8;
pub(super) const ALL: u8 = OptionScope::Output as u8;
/// `replay`, which has those of the runs of a trace.
pub(super) const REPLAY: u8 = ALL + 1;

fn scope(number: u8) -> OptionScope {
    [OptionScope::Plan, OptionScope::Run]
        .into_iter()
        .find(|scope| *scope as u8 == number)
        .unwrap_or(OptionScope::Output)
}

impl<const SCOPE: u8> FromArgMatches for RunSettings<SCOPE> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut settings = Settings {
            seed: fresh_seed(),
            command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            ..Settings::default()
        };
        for (option, value) in given(matches, SCOPE) {
            option.apply(&mut settings, value).map_err(|e| clap::Error::raw(ErrorKind::ValueValidation, e))?;
        }
        Ok(Self(settings))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const SCOPE: u8> Args for RunSettings<SCOPE> {
    fn augment_args(command: Command) -> Command {
        options(SCOPE).fold(command, |command, option| command.arg(arg(option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The options of the runs of an experiment, as words to pass on to child processes of this program.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkloadWords(pub(super) Vec<String>);

impl WorkloadWords {
    /// True if `--allow-system` is given.
    pub(super) fn allow_system(&self) -> bool {
        self.0.iter().any(|word| word == "--allow-system")
    }
}

impl FromArgMatches for WorkloadWords {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let word = |(option, value): (&RunOption, &OsStr)| {
            let name = option.name;
            if matches!(option.takes, Takes::Nothing(_)) {
                return Ok(format!("--{name}"));
            }
            // An experiment keeps the options as text. A path with other characters in it would be another path.
            let Some(value) = value.to_str() else {
                let text = format!("the value of `--{name}` is not UTF-8, which an experiment needs to keep it");
                return Err(clap::Error::raw(ErrorKind::ValueValidation, text));
            };
            Ok(format!("--{name}={value}"))
        };
        given(matches, RUN).map(word).collect::<Result<_, _>>().map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for WorkloadWords {
    fn augment_args(command: Command) -> Command {
        RunSettings::<RUN>::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Returns a new random seed of at most 44 bits, short enough to be typed.
pub(super) fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) >> 20
}
