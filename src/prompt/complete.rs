//! Completion candidates at the cursor, and hints for the rest of a line. Independent of the terminal.

use super::command::Argument;
use super::help::ATTRIBUTES;
use super::script;
use super::table::{self, prompt_command};
use crate::flowop;
use crate::model::commands::{self, words_after};
use crate::session::{Session, library};
use crate::spec::attrs::{FILESET, FLOWOP, PROCESS, THREAD};
use crate::spec::{Attr, CommandSpec, Kind, find_attr};

/// The names that are candidates: those that a session defines, when the line was begun.
#[derive(Clone, Default, Debug)]
pub(crate) struct Names {
    /// Variables, without `$`, with their values as source text.
    pub(super) variables: Vec<(String, String)>,
    filesets: Vec<String>,
    targets: Vec<String>,
    composites: Vec<String>,
    /// Whether the commands of the shell are no candidates.
    in_script: bool,
}

impl Names {
    pub(super) fn at_prompt(session: &Session) -> Self {
        Self { variables: script::variables(session), in_script: false, ..Self::in_script(session) }
    }

    /// Returns the names in a script, where the commands of the shell are unknown. The variables have no values.
    pub(crate) fn in_script(session: &Session) -> Self {
        let known = session.known(false);
        let variables = session.scope.names().map(|name| (name.to_owned(), String::new())).collect();
        let (filesets, targets, composites) = (known.filesets, known.targets, known.composites);
        Self { variables, filesets, targets, composites, in_script: true }
    }
}

/// Completion candidates for a word of the line.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Candidates {
    /// Byte offset of the word.
    pub(crate) start: usize,
    /// Replacements for the word.
    pub(crate) words: Vec<String>,
    /// Whether file names are candidates too.
    pub(super) files: bool,
}

/// Returns the candidates at byte offset `pos`.
pub(crate) fn complete(line: &str, pos: usize, names: &Names) -> Candidates {
    let before = line.get(..pos).unwrap_or(line);
    let word = before.rsplit(|c: char| c.is_whitespace() || "=,{}()\"".contains(c)).next().unwrap_or(before);
    let start = before.len() - word.len();
    let head = &before[..start];
    let statement = statement(head);
    let mut words: Vec<String> = Vec::new();
    let mut files = false;
    if let Some(name) = word.strip_prefix('$') {
        let assigned = statement.trim_end() == "set";
        // Without brackets a name can't end in `_`.
        let fit = names.variables.iter().filter(|(n, _)| n.starts_with(name) && !n.ends_with('_'));
        words.extend(fit.map(|(n, _)| if assigned { format!("${n}=") } else { format!("${n}") }));
    } else if head.ends_with("${") {
        words.extend(names.variables.iter().map(|(n, _)| n.clone()));
    } else if statement.trim().is_empty() {
        words = commands(names).map(|c| first_word(c.name).to_owned()).collect();
        let in_block = head.matches('{').count() > head.matches('}').count();
        words.extend(["flowop", "thread"].into_iter().filter(|_| in_block).map(str::to_owned));
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
    let command = prompt_command(statement).filter(|_| !names.in_script);
    let argument = command.map(|(command, _)| command.argument);
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
        _ if argument == Some(Argument::Values) => {
            (names.variables.iter().map(|(name, _)| format!("{name}=")).collect(), false)
        }
        (_, None) if argument == Some(Argument::Flowop) => (names.targets.clone(), false),
        _ if argument == Some(Argument::Topic) => {
            let mut words: Vec<String> = commands(names).map(|c| first_word(c.name).to_owned()).collect();
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
            // A composite flowop is not in the table.
            let flowop = second.filter(|_| first == "flowop").and_then(|name| flowop::spec_table().flowop(name));
            (list.iter().filter(|a| flowop.is_none_or(|f| f.has_attr(a.name))).map(one).collect(), false)
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
    let name = open.rsplit(|c: char| c.is_whitespace() || ",({".contains(c)).next().unwrap_or(open);
    let mut words: Vec<String> = names.variables.iter().map(|(n, _)| format!("${n}")).collect();
    let mut files = false;
    if first == "set" {
        words.extend(["randvar(".to_owned(), "cvar(".to_owned()].into_iter().filter(|_| name.starts_with('$')));
    }
    match find_attr(list_of(first, second, statement), name).map(|a| a.kind) {
        Some(Kind::Fileset) => words.extend(names.filesets.iter().cloned()),
        Some(Kind::Target) => words.extend(names.targets.iter().cloned()),
        Some(Kind::Path) => files = true,
        Some(kind) => words.extend(kind.words().map(str::to_owned)),
        None => {}
    }
    (words, files)
}

/// Returns the attributes that are valid at the end of `head`.
fn list_of(first: &str, second: Option<&str>, head: &str) -> &'static [Attr] {
    let owner = owner(first, second, head);
    ATTRIBUTES.iter().find(|(of, _)| Some(*of) == owner).map_or(&[], |(_, list)| list)
}

/// Returns the statement of [`ATTRIBUTES`] whose attributes are valid at the end of `head`.
fn owner(first: &str, second: Option<&str>, head: &str) -> Option<&'static str> {
    let call = head.rfind('(').filter(|at| !head[*at..].contains(')')).map(|at| &head[..at]);
    match (call, first, second) {
        (Some(call), ..) if call.ends_with("randvar") => Some("randvar"),
        (Some(call), ..) if call.ends_with("cvar") => Some("cvar"),
        (_, "define", Some(object)) if object.starts_with("file") => Some("define fileset"),
        (_, "define", Some(object)) if object.starts_with("process") => Some("define process"),
        (_, "define", Some("flowop")) => Some("define flowop"),
        (_, "define", Some("randvar")) => Some("randvar"),
        (_, "thread", _) => Some("thread"),
        (_, "flowop", Some(_)) => Some("flowop"),
        _ => None,
    }
}

/// Returns the statement of [`ATTRIBUTES`] whose attributes are valid at the end of `head`, and these attributes.
pub(crate) fn attribute_owner(head: &str) -> Option<(&'static str, &'static [Attr])> {
    let mut words = statement(head).split_whitespace();
    let owner = owner(words.next().unwrap_or(""), words.next(), head)?;
    ATTRIBUTES.iter().copied().find(|(of, _)| *of == owner)
}

/// Returns the statement at the cursor, from its first word up to the cursor.
pub(crate) fn statement(head: &str) -> &str {
    let block = block_start(head);
    // Find the last line that is not a continuation of the previous one.
    let mut begin = block;
    let mut at = block;
    let mut continues = false;
    for line in head[block..].split_inclusive('\n') {
        if !continues {
            begin = at;
        }
        let text = line.trim_end();
        continues = if text.is_empty() { continues } else { text.ends_with([',', '=', '(']) };
        at += line.len();
    }
    // The cursor is at the start of a line.
    if !continues && head.ends_with('\n') {
        begin = at;
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

/// Returns the offset behind the last brace. The braces of `${name}` are a part of the variable.
fn block_start(head: &str) -> usize {
    let (mut start, mut before, mut in_variable) = (0, ' ', false);
    for (at, c) in head.char_indices() {
        match c {
            '{' if before == '$' => in_variable = true,
            '}' if in_variable => in_variable = false,
            '{' | '}' => (start, in_variable) = (at + 1, false),
            // A bracket that is not closed yet ends with the word.
            c => in_variable &= !c.is_whitespace(),
        }
        before = c;
    }
    start
}

/// Returns the commands of the shell, unless the names are those in a script, and of the language.
fn commands(names: &Names) -> impl Iterator<Item = &'static CommandSpec> {
    let shell = table::COMMANDS.iter().filter(|_| !names.in_script);
    shell.map(|command| &command.spec).chain(commands::specs())
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
    let command = commands(names).filter(|c| word.starts_with(c.name)).max_by_key(|c| c.name.len())?;
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
            in_script: false,
        }
    }

    fn at_end(line: &str) -> Vec<String> {
        complete(line, line.len(), &names()).words
    }

    #[test]
    fn commands_of_both_tables() {
        assert_eq!(at_end("co"), ["compare"]);
        assert_eq!(at_end("lo"), ["load", "log"]);
        assert_eq!(at_end("pl"), ["plan", "plot"]);
        assert_eq!(at_end("  repe"), ["repeat"]);
    }

    #[test]
    fn variables() {
        assert_eq!(at_end("set $nsh"), ["$nshadows="]);
        assert_eq!(at_end("set "), ["$nfiles=", "$nshadows=", "mode"]);
        assert_eq!(at_end("define fileset name=x,entries=$nf"), ["$nfiles"]);
        assert_eq!(at_end("unset $n"), ["$nfiles", "$nshadows"]);
        assert_eq!(at_end("ab nfiles=3 nsh"), ["nshadows="]);
        assert_eq!(at_end("echo \"$nsh"), ["$nshadows"]);
        assert_eq!(at_end("echo ${nsh"), ["nshadows"]);
        assert!(at_end("define fileset name=x,path=${se").is_empty());
    }

    #[test]
    fn attributes_and_their_values() {
        assert_eq!(at_end("define fileset name=x,entr"), ["entries="]);
        assert_eq!(at_end("define fileset name=x,\n  prea"), ["prealloc="]);
        assert_eq!(at_end("define fileset name=x,path=${dir}/x,entr"), ["entries="]);
        assert_eq!(at_end("define process name=${x { thread memsi"), ["memsize="]);
        assert_eq!(at_end("define process name=p { thread name=t { flowop read name=r,filesetname=d"), ["data"]);
        assert_eq!(at_end("plot lg"), ["lg-block"]);
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
    fn attributes_of_the_flowop() {
        let offered = at_end("define process name=p { thread name=t { flowop delay name=d,");
        assert!(offered.iter().any(|word| word == "value=") && offered.iter().all(|word| word != "iosize="));
        // The definition of a composite flowop is elsewhere.
        assert!(
            at_end("define process name=p { thread name=t { flowop pause name=d,ios").contains(&"iosize=".to_owned())
        );
    }

    #[test]
    fn a_script_has_no_commands_of_the_shell() {
        let names = Names { in_script: true, ..names() };
        let offered = |line: &str| complete(line, line.len(), &names).words;
        assert_eq!(offered("re"), Vec::<String>::new());
        assert_eq!(offered("define process name=p { }\nth"), Vec::<String>::new());
        assert_eq!(offered("define process name=p {\nth"), ["thread"]);
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
        let line = "define process name=ü { thread {\n flowop read\u{a0}name=$é,(\u{3000}x\u{a0}=";
        for pos in 0..=line.len() + 3 {
            let found = complete(line, pos, &names());
            assert!(found.start <= line.len());
        }
    }
}
