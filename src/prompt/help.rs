//! `help`: explains a topic from the tables of `spec` and the usage text of the loaded script.

use super::{Prompt, complete, script, table};
use crate::diag::{self, Code, Diagnostic};
use crate::model::{ModelValue, commands};
use crate::session::{CommandError, Front, Session, library};
use crate::source::Spanned;
use crate::spec::attrs::{COMPOSITE, CVAR, FILESET, FLOWOP, PROCESS, RANDVAR, THREAD};
use crate::spec::predefined;
use crate::spec::{Attr, CommandSpec, Flowop, find_attr};
use crate::util::table::{Align, Table};
use crate::util::wrap;
use crate::{flowop, random, words};

/// All attribute tables, with the statement that they belong to.
pub(crate) const ATTRIBUTES: &[(&str, &[Attr])] = &[
    ("define fileset", FILESET),
    ("define process", PROCESS),
    ("thread", THREAD),
    ("flowop", FLOWOP),
    ("define flowop", COMPOSITE),
    ("randvar", RANDVAR),
    ("cvar", CVAR),
];

impl Prompt {
    /// Executes `help [TOPIC]`.
    pub(super) fn help_on(&mut self, topic: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        if topic.node.is_empty() {
            self.print_overview(front);
            return Ok(());
        }
        let word = topic.node.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut sections = Vec::new();
        if word.starts_with('$') || self.session.scope.binding(&word).is_some() || predefined::find(&word).is_some() {
            sections.extend(about_variable(&self.session, word.trim_start_matches('$')));
        }
        let shells = shell_commands().filter(|c| begins_with(c, &word));
        sections.extend(shells.map(command_help));
        sections.extend(about(&word));
        if sections.is_empty() {
            sections.extend(words::meanings(&word));
        }
        if sections.is_empty() {
            sections.extend(words::other_number(&word));
        }
        if sections.is_empty() {
            return Err(self.unknown_topic(&word, topic).into());
        }
        front.line(&wrap::message(&sections.join("\n\n"), front.columns()));
        Ok(())
    }

    /// Returns the error that a topic is unknown, with the nearest topic.
    fn unknown_topic(&self, word: &str, topic: Spanned<&str>) -> Box<Diagnostic> {
        let d = Diagnostic::error(Code::BadArgument, topic.span, format!("no help topic `{word}`"));
        let bare = word.trim_start_matches('$');
        let variables = self.session.scope.names();
        let topics = || shell_commands().map(|c| c.name).chain(topics());
        let near = if bare.len() < word.len() {
            diag::nearest(bare, variables).map(|near| format!("${near}"))
        } else {
            let known: Vec<&str> = topics().chain(words::all()).collect();
            diag::nearest(word, known.into_iter().chain(variables)).map(str::to_owned)
        };
        Box::new(d.help(diag::did_you_mean(near, || "topics are commands, flowops, attributes, distributions, personalities, `$variables`, and the words of reports".to_owned())))
    }

    /// Prints the usage text of the loaded script, and the most important commands.
    fn print_overview(&self, front: &mut dyn Front) {
        for line in self.session.usage_lines() {
            front.script_line(&wrap::message(&line, front.columns()));
        }
        if !self.session.loaded.usage.is_empty() {
            front.line("");
        }
        let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
        for command in shell_commands() {
            table.row([command.form, command.doc]);
        }
        for name in ["load", "set", "run", "define fileset", "define process", "list", "quit"] {
            if let Some(command) = commands::specs().find(|c| c.name == name) {
                table.row([command.form, command.doc]);
            }
        }
        let text = front.columns().map_or_else(|| table.render(), |columns| table.render_wrapped(columns));
        // The columns have no titles: skip the blank title line.
        let rows: Vec<&str> = text.lines().filter(|l| l.chars().any(char::is_alphanumeric)).collect();
        front.line(&rows.join("\n"));
        front.line("\nall other commands of the language work too; `wmlrun list commands` lists them");
    }
}

/// What a word of the language means, or the name of a personality: a text for each of its meanings.
pub(crate) fn about(word: &str) -> Vec<String> {
    let mut sections: Vec<String> = commands::specs().filter(|c| begins_with(c, word)).map(command_help).collect();
    sections.extend(flowop::spec_table().flowop(word).map(flowop_help));
    let attributes = ATTRIBUTES.iter().flat_map(|(of, list)| list.iter().map(move |attr| (*of, attr)));
    let named = attributes.filter(|(_, attr)| attr.name == word || attr.aliases.contains(&word));
    sections.extend(named.map(|(of, attr)| attribute_help(of, attr)));
    sections.extend(distribution_help(word));
    sections.extend(personality_help(word));
    sections
}

/// The words of the language, and the names of personalities.
pub(crate) fn topics() -> impl Iterator<Item = &'static str> {
    let attributes = ATTRIBUTES.iter().flat_map(|(_, list)| list.iter().map(|attr| attr.name));
    let flowops = flowop::entries().map(|entry| entry.spec.name);
    let personalities = library::PERSONALITIES.iter().map(|(name, _)| *name);
    commands::specs().map(|c| c.name).chain(flowops).chain(attributes).chain(personalities)
}

fn begins_with(command: &CommandSpec, word: &str) -> bool {
    command.name == word || command.name.split(' ').next() == Some(word)
}

/// Returns the help on a variable: its value and the lines of the usage text that mention it; `None` if it is unknown.
pub(crate) fn about_variable(session: &Session, name: &str) -> Option<String> {
    let shown = format!("${name}");
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let usage = session.usage_lines().into_iter();
    let usage = usage.filter(|line| line.match_indices(&shown).any(|(at, _)| ends(&line[at + shown.len()..])));
    let mut sections: Vec<String> = usage.map(|line| format!("  {}", line.trim())).collect();
    sections.extend(predefined::find(name).map(|variable| format!("  predefined: {}", variable.doc)));
    let value = match session.scope.binding(name) {
        Some(binding) => Some(script::shown_value(session, binding)),
        None => session.scope.predefined(name).map(ModelValue::print),
    };
    if sections.is_empty() && value.is_none() {
        return None;
    }
    let head = match value {
        Some(value) => format!("{shown} is {value}"),
        None => format!("{shown} is not set"),
    };
    sections.insert(0, head);
    Some(sections.join("\n"))
}

/// Returns the help on a word of a script, which follows `head`: a command, flowop, attribute, distribution or
/// personality. `None` if the word is none of these at this place.
pub(crate) fn about_word(head: &str, word: &str) -> Option<String> {
    let statement = complete::statement(head).trim_end();
    let owner = complete::attribute_owner(head);
    let attribute = |name: &str| owner.and_then(|(of, list)| Some(attribute_help(of, find_attr(list, name)?)));
    if let Some(before) = statement.strip_suffix('=') {
        let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let is_choice =
            owner.and_then(|(_, list)| find_attr(list, name)).is_some_and(|a| a.kind.words().next().is_some());
        return if name == "type" { distribution_help(word) } else { attribute(name).filter(|_| is_choice) };
    }
    let named = |name: &str| commands::specs().find(|c| c.name == name).map(command_help);
    match statement {
        "" => {
            let begins = |c: &&CommandSpec| c.name.split(' ').next() == Some(word);
            let all: Vec<String> = commands::specs().filter(begins).map(command_help).collect();
            (!all.is_empty()).then(|| all.join("\n\n"))
        }
        "flowop" => flowop::spec_table().flowop(word).map(flowop_help),
        "load" => personality_help(word),
        words => attribute(word).or_else(|| named(&format!("{words} {word}"))),
    }
}

fn distribution_help(name: &str) -> Option<String> {
    let found = random::DISTRIBUTIONS.iter().find(|d| d.name == name)?;
    let parameters: Vec<&str> = found.parameters.iter().map(|p| p.name).collect();
    Some(format!("distribution {}: {}\n  parameters: {}", found.name, found.doc, parameters.join(", ")))
}

fn personality_help(name: &str) -> Option<String> {
    let (name, text) = library::personality(name)?;
    Some(format!("personality {name}: {}\n  `load {name}` loads it", library::about(text)))
}

/// Returns the commands that exist only in the shell.
fn shell_commands() -> impl Iterator<Item = &'static CommandSpec> {
    table::COMMANDS.iter().map(|command| &command.spec)
}

fn command_help(command: &CommandSpec) -> String {
    let (doc, origin) = (command.doc, command.origin.label());
    format!("{}\n  {doc} ({origin})\n  example: {}", command.form, indented(command.example))
}

/// An example, whose further lines stand below its first.
fn indented(example: &str) -> String {
    example.replace('\n', "\n           ")
}

fn flowop_help(flowop: &'static Flowop) -> String {
    let uses: Vec<&str> = ["name", "iters"].into_iter().chain(flowop.attributes()).collect();
    let uses = uses.join(", ");
    format!(
        "flowop {}: {} ({})\n  attributes: {uses}\n  example: {}",
        flowop.name,
        flowop.doc,
        flowop.origin.label(),
        indented(flowop.example)
    )
}

fn attribute_help(of: &str, attr: &Attr) -> String {
    let default = if attr.default.is_empty() { String::new() } else { format!("; default {}", attr.default) };
    let drawn = if attr.random { "; accepts a random variable" } else { "" };
    format!("{} of `{of}`: {} ({}{default}{drawn})", attr.name, attr.doc, attr.origin.label())
}
