//! Completion candidates at the cursor, and hints for the rest of a line. Independent of the terminal.

use super::Prompt;
use super::command::Argument;
use super::table::{self, prompt_command};
use crate::flowop;
use crate::model::commands::{self, words_after};
use crate::session::library;
use crate::spec::attrs::{self, COMPOSITE, CVAR, FILESET, FLOWOP, PROCESS, RANDVAR, THREAD};
use crate::spec::{Attr, CommandSpec, Kind, find_attr};

/// The names that a session defines, when the line was begun.
#[derive(Clone, Default, Debug)]
pub(super) struct Names {
    /// Variables, without `$`, with their values as source text.
    pub(super) variables: Vec<(String, String)>,
    filesets: Vec<String>,
    targets: Vec<String>,
    composites: Vec<String>,
}

impl Names {
    /// Returns the names of a prompt's session.
    pub(super) fn of(prompt: &Prompt) -> Self {
        let known = prompt.session.known(true);
        let variables = prompt.variables();
        Self { variables, filesets: known.filesets, targets: known.targets, composites: known.composites }
    }
}

/// Completion candidates for a word of the line.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Candidates {
    /// Byte offset of the word.
    pub(super) start: usize,
    /// Replacements for the word.
    pub(super) words: Vec<String>,
    /// Whether file names are candidates too.
    pub(super) files: bool,
}

/// Returns the candidates at byte offset `pos`.
pub(super) fn complete(line: &str, pos: usize, names: &Names) -> Candidates {
    let before = line.get(..pos).unwrap_or(line);
    let start = before.rfind(|c: char| c.is_whitespace() || "=,{}()\"".contains(c)).map_or(0, |at| at + 1);
    let (head, word) = before.split_at(start);
    let statement = statement(head);
    let mut words: Vec<String> = Vec::new();
    let mut files = false;
    if let Some(name) = word.strip_prefix('$') {
        let assigned = statement.trim_end() == "set";
        let fit = names.variables.iter().filter(|(n, _)| n.starts_with(name));
        words.extend(fit.map(|(n, _)| if assigned { format!("${n}=") } else { format!("${n}") }));
    } else if statement.trim().is_empty() {
        words = commands().map(|c| first_word(c.name).to_owned()).collect();
        words.extend(["flowop", "thread"].into_iter().filter(|_| head.contains('{')).map(str::to_owned));
    } else {
        (words, files) = arguments(statement, head, names);
    }
    words.retain(|w| w.starts_with(word));
    words.sort_unstable();
    words.dedup();
    Candidates { start, words, files }
}

/// Returns the candidates after the first word of a statement, and whether file names are candidates.
fn arguments(statement: &str, head: &str, names: &Names) -> (Vec<String>, bool) {
    let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let personalities = || library::PERSONALITIES.iter().map(|(name, _)| (*name).to_owned());
    let mut parts = statement.split_whitespace();
    let (first, second) = (parts.next().unwrap_or(""), parts.next());
    let last = head.chars().next_back();
    if last == Some('=') {
        return value(statement, names);
    }
    let list = list_of(first, second, head);
    let argument = prompt_command(statement).map(|(command, _)| command.argument);
    match (first, second) {
        ("set", None) => {
            let mut words: Vec<String> = names.variables.iter().map(|(n, _)| format!("${n}=")).collect();
            words.push("mode".to_owned());
            (words, false)
        }
        ("set", Some("mode")) => (owned(&words_after("set mode")), false),
        _ if matches!((argument, second), (Some(Argument::Variable | Argument::Name), None)) => {
            let mut words: Vec<String> = names.variables.iter().map(|(n, _)| format!("${n}")).collect();
            if argument == Some(Argument::Name) {
                words.extend(names.filesets.iter().chain(&names.composites).cloned());
            }
            (words, false)
        }
        _ if argument == Some(Argument::Topic) => {
            let mut words: Vec<String> = commands().map(|c| first_word(c.name).to_owned()).collect();
            words.extend(flowop::spec_table().flowops.iter().map(|f| f.name.to_owned()));
            words.extend([FILESET, PROCESS, THREAD, FLOWOP].into_iter().flatten().map(|a| a.name.to_owned()));
            words.extend(names.variables.iter().map(|(n, _)| format!("${n}")));
            words.extend(personalities());
            (words, false)
        }
        ("load", None) => (personalities().collect(), true),
        _ if argument == Some(Argument::File) => (Vec::new(), true),
        ("flowop", None) => {
            let mut words: Vec<String> = flowop::spec_table().flowops.iter().map(|f| f.name.to_owned()).collect();
            words.extend(names.composites.iter().cloned());
            (words, false)
        }
        _ if !list.is_empty() => {
            let one = |a: &Attr| {
                if matches!(a.kind, Kind::Bool | Kind::BoolOr(_)) { a.name.to_owned() } else { format!("{}=", a.name) }
            };
            (list.iter().map(one).collect(), false)
        }
        (first, None) => (owned(&words_after(first)), false),
        _ => (Vec::new(), false),
    }
}

/// Returns the candidates after `name=`, and whether file names are candidates.
fn value(statement: &str, names: &Names) -> (Vec<String>, bool) {
    let mut parts = statement.split_whitespace();
    let (first, second) = (parts.next().unwrap_or(""), parts.next());
    let open = statement.trim_end_matches('=');
    let name = &open[open.rfind(|c: char| c.is_whitespace() || ",({".contains(c)).map_or(0, |at| at + 1)..];
    let mut words: Vec<String> = names.variables.iter().map(|(n, _)| format!("${n}")).collect();
    let mut files = false;
    if first == "set" {
        words.extend(["randvar(".to_owned(), "cvar(".to_owned()].into_iter().filter(|_| name.starts_with('$')));
    }
    match find_attr(list_of(first, second, statement), name).map(|a| a.kind) {
        Some(Kind::Fileset) => words.extend(names.filesets.iter().cloned()),
        Some(Kind::Target) => words.extend(names.targets.iter().cloned()),
        Some(Kind::Bool) => words.extend(["true".to_owned(), "false".to_owned()]),
        Some(Kind::BoolOr(others)) => {
            words.extend(["true", "false"].iter().chain(others.iter()).map(|word| (*word).to_owned()));
        }
        Some(Kind::Choice(choices)) => words.extend(choices.iter().map(|c| (*c).to_owned())),
        Some(Kind::Path) => files = true,
        _ => {}
    }
    (words, files)
}

/// Returns the attributes that are valid at the end of `head`.
fn list_of(first: &str, second: Option<&str>, head: &str) -> &'static [Attr] {
    let call = head.rfind('(').filter(|at| !head[*at..].contains(')')).map(|at| &head[..at]);
    match (call, first, second) {
        (Some(call), ..) if call.ends_with("randvar") => RANDVAR,
        (Some(call), ..) if call.ends_with("cvar") => CVAR,
        (_, "define", Some(object)) if object.starts_with("file") => FILESET,
        (_, "define", Some(object)) if object.starts_with("process") => PROCESS,
        (_, "define", Some("flowop")) => COMPOSITE,
        (_, "define", Some("randvar")) => RANDVAR,
        (_, "thread", _) => THREAD,
        (_, "flowop", Some(_)) => attrs::FLOWOP,
        _ => &[],
    }
}

/// Returns the statement at the cursor, from its first word up to the cursor.
fn statement(head: &str) -> &str {
    let block = head.rfind(['{', '}']).map_or(0, |at| at + 1);
    // Find the last line that is not a continuation of the previous one.
    let mut begin = block;
    let mut at = block;
    for line in head[block..].split_inclusive('\n') {
        let before = head[..at].trim_end();
        if !before.ends_with([',', '=', '(']) {
            begin = at;
        }
        at += line.len();
    }
    // A block may contain several statements on one line.
    let text = &head[begin..];
    let inner = text.match_indices("flowop ").chain(text.match_indices("thread ")).map(|(at, _)| at).max();
    let starts = |at: usize| at == 0 || text[..at].ends_with(|c: char| c.is_whitespace() || c == '{');
    match inner.filter(|at| starts(*at) && !text[..*at].trim_end().ends_with("define")) {
        Some(at) => &text[at..],
        None => text.trim_start(),
    }
}

/// Returns the commands of the shell and of the language.
fn commands() -> impl Iterator<Item = &'static CommandSpec> {
    table::COMMANDS.iter().map(|command| &command.spec).chain(commands::specs())
}

fn first_word(name: &str) -> &str {
    name.split(' ').next().unwrap_or(name)
}

/// Returns a hint for the rest of a line: the syntax of its command, or the current value of a variable.
pub(super) fn hint(line: &str, names: &Names) -> Option<String> {
    if let Some(name) = line.trim_start().strip_prefix("set $").and_then(|rest| rest.strip_suffix('=')) {
        return names.variables.iter().find(|(n, _)| n == name.trim()).map(|(_, value)| value.clone());
    }
    let word = line.trim_start();
    let command = commands().filter(|c| word.starts_with(c.name)).max_by_key(|c| c.name.len())?;
    let rest = word.strip_prefix(command.name)?;
    let form = command.form.strip_prefix(command.name)?.trim_start();
    (rest == " " && !form.is_empty()).then(|| form.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names {
            variables: vec![("nfiles".to_owned(), "10".to_owned()), ("nshadows".to_owned(), "200".to_owned())],
            filesets: vec!["data".to_owned(), "logs".to_owned()],
            targets: vec!["lg-block".to_owned()],
            composites: vec!["pause".to_owned()],
        }
    }

    fn at_end(line: &str) -> Vec<String> {
        complete(line, line.len(), &names()).words
    }

    #[test]
    fn commands_of_both_tables() {
        assert_eq!(at_end("co"), ["compare"]);
        assert_eq!(at_end("lo"), ["load", "log"]);
        assert_eq!(at_end("  repe"), ["repeat"]);
    }

    #[test]
    fn variables() {
        assert_eq!(at_end("set $nsh"), ["$nshadows="]);
        assert_eq!(at_end("set "), ["$nfiles=", "$nshadows=", "mode"]);
        assert_eq!(at_end("define fileset name=x,entries=$nf"), ["$nfiles"]);
        assert_eq!(at_end("unset $n"), ["$nfiles", "$nshadows"]);
        assert_eq!(at_end("echo \"$nsh"), ["$nshadows"]);
    }

    #[test]
    fn attributes_and_their_values() {
        assert_eq!(at_end("define fileset name=x,entr"), ["entries="]);
        assert_eq!(at_end("define fileset name=x,\n  prea"), ["prealloc="]);
        assert_eq!(at_end("define process name=p { thread name=t { flowop read name=r,filesetname=d"), ["data"]);
        assert_eq!(at_end("flowop sempost name=r,target="), ["$nfiles", "$nshadows", "lg-block"]);
        assert_eq!(at_end("define process name=p { thread memsi"), ["memsize="]);
        assert_eq!(at_end("set $r=randvar(type=ga"), ["gamma"]);
        assert_eq!(at_end("set $r=randvar(type=gamma,mea"), ["mean="]);
        assert_eq!(
            at_end("define process name=p {\n thread name=t {\n  flowop appe"),
            ["appendfile", "appendfilerand"]
        );
        assert_eq!(at_end("define flo"), ["flowop"]);
    }

    #[test]
    fn personalities_and_files() {
        assert!(at_end("load oltp").contains(&"oltp_sync".to_owned()));
        assert!(complete("save x", 6, &names()).files);
        assert!(complete("load x", 6, &names()).files);
        assert!(!complete("run x", 5, &names()).files);
    }

    #[test]
    fn hints_show_the_syntax_or_the_value() {
        assert_eq!(hint("run ", &names()).as_deref(), Some("[SECONDS] [as-is]"));
        assert_eq!(hint("set $nshadows=", &names()).as_deref(), Some("200"));
        assert_eq!(hint("plan", &names()), None);
        assert_eq!(hint("save ", &names()).as_deref(), Some("FILE"));
    }

    /// No cursor position panics, not even one inside a character.
    #[test]
    fn any_position_is_valid() {
        let line = "define process name=ü { thread {\n flowop read name=$é,(";
        for pos in 0..=line.len() + 3 {
            let found = complete(line, pos, &names());
            assert!(found.start <= line.len());
        }
    }
}
