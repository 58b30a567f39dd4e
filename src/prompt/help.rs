//! `help`: what the tables of `spec` and the loaded script say of a word.

use super::{Prompt, script, table};
use crate::diag::{self, Code, Diagnostic};
use crate::random;
use crate::session::{Front, Status, library};
use crate::source::Spanned;
use crate::spec::attrs::{COMPOSITE, CVAR, FILESET, FLOWOP, PROCESS, RANDVAR, THREAD};
use crate::spec::commands::COMMANDS;
use crate::spec::predefined;
use crate::spec::{Attr, CommandSpec, Flowop};
use crate::util::table::{Align, Table};

/// Whose attributes there are.
const ATTRIBUTES: &[(&str, &[Attr])] = &[
    ("define fileset", FILESET),
    ("define process", PROCESS),
    ("thread", THREAD),
    ("flowop", FLOWOP),
    ("define flowop", COMPOSITE),
    ("randvar", RANDVAR),
    ("cvar", CVAR),
];

impl Prompt {
    /// `help` and `help TOPIC`.
    pub(super) fn help_on(&mut self, topic: Spanned<&str>, front: &mut dyn Front) -> Result<Status, Box<Diagnostic>> {
        if topic.node.is_empty() {
            self.help_at_prompt(front);
            return Ok(Status::Done);
        }
        let word = topic.node.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut said = Vec::new();
        if word.starts_with('$') || self.session.scope.binding(&word).is_some() || predefined::find(&word).is_some() {
            said.extend(self.on_variable(word.trim_start_matches('$')));
        }
        let commands = own().chain(COMMANDS).filter(|c| c.name == word || c.name.split(' ').next() == Some(&word));
        said.extend(commands.map(on_command));
        said.extend(self.session.table.flowop(&word).map(on_flowop));
        let attributes = ATTRIBUTES.iter().flat_map(|(of, list)| list.iter().map(move |attr| (*of, attr)));
        said.extend(
            attributes
                .filter(|(_, a)| a.name == word || a.aliases.contains(&word.as_str()))
                .map(|(of, attr)| on_attribute(of, attr)),
        );
        if let Some(found) = random::DISTRIBUTIONS.iter().find(|d| d.name == word) {
            let parameters: Vec<&str> = found.parameters.iter().map(|p| p.name).collect();
            said.push(format!("distribution {}: {}\n  parameters: {}", found.name, found.doc, parameters.join(", ")));
        }
        if let Some((name, text)) = library::personality(&word) {
            said.push(format!("personality {name}: {}\n  `load {name}` loads it", library::about(text)));
        }
        if said.is_empty() {
            return Err(self.no_help(&word, topic));
        }
        front.line(&said.join("\n\n"));
        Ok(Status::Done)
    }

    fn no_help(&self, word: &str, topic: Spanned<&str>) -> Box<Diagnostic> {
        let d = Diagnostic::error(Code::BadArgument, topic.span, format!("there is no help on `{word}`"));
        let bare = word.trim_start_matches('$');
        let variables = self.session.scope.names();
        let topics = own().chain(COMMANDS).map(|c| c.name).chain(self.session.table.flowops.iter().map(|f| f.name));
        let attributes = ATTRIBUTES.iter().flat_map(|(_, list)| list.iter().map(|a| a.name));
        let near = if bare.len() < word.len() {
            diag::nearest(bare, variables).map(|near| format!("${near}"))
        } else {
            let personalities = library::PERSONALITIES.iter().map(|(name, _)| *name);
            diag::nearest(word, topics.chain(attributes).chain(personalities).chain(variables)).map(str::to_owned)
        };
        Box::new(match near {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help("topics are commands, flowops, attributes, distributions, personalities and `$variables`"),
        })
    }

    fn help_at_prompt(&self, front: &mut dyn Front) {
        for line in self.session.usage_lines() {
            front.script_line(&line);
        }
        if !self.session.loaded.usage.is_empty() {
            front.line("");
        }
        let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
        for command in own() {
            table.row([command.form, command.doc]);
        }
        for name in ["load", "set", "run", "define fileset", "define process", "list", "quit"] {
            if let Some(command) = COMMANDS.iter().find(|c| c.name == name) {
                table.row([command.form, command.doc]);
            }
        }
        let text = table.render();
        // The columns have no heads.
        let rows: Vec<&str> = text.lines().filter(|l| l.chars().any(char::is_alphanumeric)).collect();
        front.line(&rows.join("\n"));
        front.line("\nevery other command of a script can be typed too; `wmlrun list commands` shows them");
    }

    fn on_variable(&self, name: &str) -> Option<String> {
        let shown = format!("${name}");
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let usage = self
            .session
            .usage_lines()
            .into_iter()
            .filter(|line| line.match_indices(&shown).any(|(at, _)| ends(&line[at + shown.len()..])));
        let mut said: Vec<String> = usage.map(|line| format!("  {}", line.trim())).collect();
        said.extend(predefined::find(name).map(|variable| format!("  predefined: {}", variable.doc)));
        let value = match self.session.scope.binding(name) {
            Some(binding) => Some(script::spelled(&self.session.map, &binding.value)),
            None => self.session.scope.predefined(name).map(|value| value.to_string()),
        };
        if said.is_empty() && value.is_none() {
            return None;
        }
        let head = match value {
            Some(value) => format!("{shown} is {value}"),
            None => format!("{shown} is not set"),
        };
        said.insert(0, head);
        Some(said.join("\n"))
    }
}

/// The commands that only a prompt has.
fn own() -> impl Iterator<Item = &'static CommandSpec> {
    table::COMMANDS.iter().map(|command| &command.spec)
}

fn on_command(command: &CommandSpec) -> String {
    format!("{}\n  {} ({})\n  example: {}", command.form, command.doc, command.origin.label(), command.example)
}

fn on_flowop(flowop: &'static Flowop) -> String {
    let uses = if flowop.uses.is_empty() {
        "name, iters".to_owned()
    } else {
        format!("name, iters, {}", flowop.uses.join(", "))
    };
    format!(
        "flowop {}: {} ({})\n  attributes: {uses}\n  example: {}",
        flowop.name,
        flowop.doc,
        flowop.origin.label(),
        flowop.example
    )
}

fn on_attribute(of: &str, attr: &Attr) -> String {
    let default = if attr.default.is_empty() { String::new() } else { format!("; default {}", attr.default) };
    let drawn = if attr.random { "; may be a random variable" } else { "" };
    format!("{} of `{of}`: {} ({}{default}{drawn})", attr.name, attr.doc, attr.origin.label())
}
