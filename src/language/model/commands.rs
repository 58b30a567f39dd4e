//! The commands of the language: one value for each, with its descriptor and its constructor.
//!
//! In: a statement. Out: a [`CommandKind`], or errors. The form of a command is written in its entry only, and
//! messages, help, completion and the manual take it from there. Definitions with their attributes are built by
//! `ModelBuilder`. Deliberately absent: what a command does (`session`), and where a statement begins
//! (`spec::words`).

use super::build::{self, ModelBuilder, word_of};
use super::expr::from_ast;
use super::{Command, CommandKind, Expr, Object, QuitMode, Stats};
use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::spec::{CommandSpec, Origin};
use crate::syntax::Node;
use crate::syntax::ast::{Arg, ArgKind, Value};

/// Builds a command of a statement. `None` if the statement has no effect or is wrong, which has been reported.
type BuildCommand = fn(&mut ModelBuilder<'_>, &CommandStatement<'_>) -> Option<CommandKind>;

/// A command of the language.
#[derive(Debug)]
pub struct CommandEntry {
    /// Its words, form, line of help and example.
    pub spec: CommandSpec,
    /// Another spelling of its second word, which Filebench accepts.
    plural: Option<&'static str>,
    pub(super) build: BuildCommand,
}

impl CommandEntry {
    const fn or_object(mut self, plural: &'static str) -> Self {
        self.plural = Some(plural);
        self
    }

    /// Whether it is written with this first and second word.
    fn is(&self, word: &str, object: &str) -> bool {
        self.spec.name.split_once(' ').is_some_and(|(first, second)| {
            first == word && (second == object || self.plural.is_some_and(|plural| plural == object))
        })
    }
}

/// A statement whose words have selected a command.
pub(super) struct CommandStatement<'a> {
    pub(super) spec: &'static CommandSpec,
    pub(super) node: &'a Node,
    /// The arguments behind the words of the command.
    pub(super) args: &'a [Arg],
    pub(super) span: Span,
}

const fn command([name, form, doc, example]: [&'static str; 4], origin: Origin, build: BuildCommand) -> CommandEntry {
    CommandEntry { spec: CommandSpec { name, form, origin, doc, example }, plural: None, build }
}

use Origin::{Both, Fsl, Sun};
const LATHIST_ON: BuildCommand = |_, _| Some(CommandKind::LatHist(true));
const LATHIST_OFF: BuildCommand = |_, _| Some(CommandKind::LatHist(false));

/// All commands of the language.
#[rustfmt::skip]
pub const COMMANDS: &[CommandEntry] = &[
    command(["set", "set $name = VALUE", "assigns a value to a variable; definitions read it when a run starts",
        "set $nfiles = 10k"], Both, set),
    command(["set mode", "set mode quit timeout|alldone|firstdone",
        "selects what ends a run besides its time; `timeout`, the default: a finishoncount or finishonbytes; \
         `firstdone`: also the first thread to end; `alldone`: the end of all threads", "set mode quit firstdone"],
        Both, set_mode),
    command(["define fileset", "define fileset name=NAME,path=PATH,…", "defines a file set: a tree of files",
        "define fileset name=data,path=$dir,entries=10,dirwidth=5"], Both, |b, s| Some(b.fileset(s, false))).or_object("filesets"),
    command(["define file", "define file name=NAME,path=PATH,…", "defines a file set of one file",
        "define file name=big,path=$dir,size=1m"], Both, |b, s| Some(b.fileset(s, true))).or_object("files"),
    command(["define process", "define process name=NAME,… { thread … { flowop … } }",
        "defines a process, its threads and their flowops",
        "define process name=p,instances=1 { thread name=t { flowop delay name=d,value=1 } }"], Both,
        |b, s| Some(b.process(s))).or_object("processes"),
    command(["define flowop", "define flowop name=NAME,$parameter=… { flowop … }",
        "defines a composite flowop: a new flowop type made of several flowops",
        "define flowop name=pause { flowop delay name=d,value=1 }"], Both, build::composite),
    command(["define randvar", "define randvar name=$VAR,type=…", "defines a random variable",
        "define randvar name=$r,type=uniform,min=1k,mean=4k"], Sun, build::randvar),
    command(["create", "create files|filesets|processes",
        "creates the trees of all file sets; `create processes` (1.4) starts the processes", "create files"], Both,
        |b, s| Some(CommandKind::Create(b.choice(s, TREES_OR_PROCESSES)?))),
    command(["run", "run [SECONDS] [as-is]",
        "prepares the trees (not with `as-is`), runs the processes for SECONDS, default 60, and reports", "run 60"],
        Both, |b, s| Some(run(b, s))),
    command(["psrun", "psrun [[-]PERIOD [SECONDS]] [as-is]",
        "as `run`, with a report every PERIOD seconds (default: 10): on the run so far, or with a minus sign on the \
         last period only", "psrun -10 60"], Fsl, |b, s| Some(psrun(b, s))),
    command(["sleep", "sleep SECONDS",
        "waits; live processes keep running. `--runtime` replaces the time between `stats clear` and `stats snap`",
        "sleep 1"], Both, |b, s| Some(CommandKind::Sleep(b.only_value(s)?))),
    command(["warmup", "warmup SECONDS",
        "sets the warm-up time of the next run, which is not measured; with live processes: waits, as `sleep`",
        "warmup 5"], Sun, |b, s| Some(CommandKind::Warmup(b.only_value(s)?))),
    command(["system", "system \"COMMAND\"",
        "runs a command with /bin/sh and waits for its end; needs `--allow-system`. A failure ends the script",
        "system \"sync\""], Both, |b, s| Some(CommandKind::System(b.joined_text(s.args, s)?))),
    command(["echo", "echo \"TEXT\"", "prints a line", "echo \"files: $nfiles\""], Both,
        |b, s| Some(CommandKind::Echo(b.joined_text(s.args, s)?))),
    command(["log", "log \"TEXT\"", "prints a line, as `echo`", "log \"note\""], Sun,
        |b, s| Some(CommandKind::Log(b.joined_text(s.args, s)?))),
    command(["usage", "usage \"TEXT\"", "adds a line to the usage text of the script, which `help` prints",
        "usage \"set \\$nfiles=<value>\""], Sun, |b, s| Some(CommandKind::Usage(b.joined_text(s.args, s)?))),
    command(["help", "help", "prints the usage text of the script", "help"], Sun, |_, _| Some(CommandKind::Help)),
    command(["vars", "vars", "prints the names of the variables", "vars"], Sun, |_, _| Some(CommandKind::Vars)),
    command(["version", "version", "prints the version of wmlrun", "version"], Both, |_, _| Some(CommandKind::Version)),
    command(["enable_osprof", "enable_osprof", "the same as `enable lathist`", "enable_osprof"], Fsl, LATHIST_ON),
    command(["disable_osprof", "disable_osprof", "ends `enable lathist`", "disable_osprof"], Fsl, LATHIST_OFF),
    command(["eventgen", "eventgen [rate=N]", "sets the rate of the event generator, in events per second; 0: no limit",
        "eventgen rate=100"], Both, |b, s| Some(CommandKind::EventGen(b.named(s, "rate")))),
    command(["enable", "enable lathist|multi",
        "`lathist`: adds latency histograms to reports in Filebench's format; `multi`: accepted, the clients are the \
         ranks of the run", "enable lathist"], Fsl, enable),
    command(["domultisync", "domultisync value=N",
        "waits until all clients of the run, its ranks, have come to this command", "domultisync value=1"], Both,
        |_, _| Some(CommandKind::DoMultiSync)),
    command(["list", "list [fileset|flowop]", "lists the file sets, or the flowops of all threads", "list fileset"],
        Both, list),
    command(["stats",
        "stats clear|snap|dump \"FILE\"|xmldump \"FILE\"|multidump \"FILE\"|directory PATH|command \"COMMAND\"",
        "starts (`clear`) and ends (`snap`) a measurement of live processes, writes its figures to files, or runs a \
         command during it", "stats clear"], Sun, stats),
    command(["shutdown", "shutdown processes|files|filesets",
        "stops the processes, or removes the trees of the file sets", "shutdown processes"], Sun, shutdown),
    command(["load", "load NAME",
        "reads the definitions of a script or of a personality shipped with wmlrun, without running it",
        "load varmail"], Sun, |b, s| Some(CommandKind::Load(b.only_value(s)?))),
    command(["foreach", "foreach $name in A,B,C { … }", "repeats the commands in braces for each value of the list",
        "foreach $n in 1,2 { echo \"$n\" }"], Sun, foreach),
    command(["fscheck", "fscheck path=PATH fstype=TYPE",
        "ends the script with an error if the path is on another type of file system; a comma may separate the two",
        "fscheck path=/tmp fstype=ext4"], Sun,
        |b, s| Some(CommandKind::FsCheck { path: b.named(s, "path"), fstype: b.named(s, "fstype") })),
    command(["fsflush", "fsflush fstype=TYPE",
        "evicts the file sets from the page cache; with `--allow-drop-caches` drops all caches of the machine",
        "fsflush fstype=ext4"], Sun, |_, _| Some(CommandKind::FsFlush)),
    command(["debug", "debug LEVEL", "accepted, without effect", "debug 2"], Both, |_, _| Some(CommandKind::Debug)),
    command(["quit", "quit", "ends the script", "quit"], Both, |_, _| Some(CommandKind::Quit)),
    command(["exit", "exit", "ends the script, as `quit`", "exit"], Sun, |_, _| Some(CommandKind::Quit)),
];

/// Statements that belong into a block, each with the block.
const PARTS: &[(&str, &str)] = &[("thread", "`define process`"), ("flowop", "`thread` or `define flowop`")];

pub fn specs() -> impl Iterator<Item = &'static CommandSpec> {
    COMMANDS.iter().map(|entry| &entry.spec)
}

/// The second words of the commands that begin with a word: `fileset` and others for `define`.
fn objects_of(word: &str) -> impl Iterator<Item = &'static str> {
    specs()
        .filter_map(move |spec| spec.name.split_once(' ').filter(|(first, _)| *first == word))
        .map(|(_, object)| object)
}

/// Builds the command of a statement with this first word.
pub(super) fn build(
    builder: &mut ModelBuilder<'_>,
    node: &Node,
    word: &Spanned<String>,
    args: &[Arg],
    span: Span,
) -> Option<CommandKind> {
    let object = word_of(args.first());
    let with_object = object.and_then(|object| COMMANDS.iter().find(|entry| entry.is(&word.node, object)));
    if let Some(CommandEntry { spec, build, .. }) = with_object {
        return build(builder, &CommandStatement { spec, node, args: &args[1..], span });
    }
    if let Some(CommandEntry { spec, build, .. }) = COMMANDS.iter().find(|entry| entry.spec.name == word.node) {
        return build(builder, &CommandStatement { spec, node, args, span });
    }
    if let Some((part, block)) = PARTS.iter().find(|(part, _)| *part == word.node) {
        builder.error(
            Diagnostic::error(Code::Misplaced, word.span, format!("`{part}` outside a block"))
                .help(format!("write it in a {block} block")),
        );
        return None;
    }
    let objects: Vec<&str> = objects_of(&word.node).collect();
    match (object, args.first()) {
        // The parser has reported a word that no command has.
        _ if objects.is_empty() => None,
        (Some(written), Some(arg)) => {
            let (last, others) = objects.split_last()?;
            builder.error(
                Diagnostic::error(Code::BadArgument, arg.span, format!("`{written}` can't be defined"))
                    .near_miss(written, objects.iter().copied())
                    .help(format!("`{}` makes a {} or {last}", word.node, others.join(", "))),
            );
            None
        }
        _ => builder.bad_form(span, &format!("{} {} …", word.node, objects.join("|"))),
    }
}

/// The plain words that may follow these: `files` and others for `create`, `fileset` and others for `define`.
pub fn words_after(words: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for spec in specs() {
        if let Some(rest) = spec.name.strip_prefix(words).and_then(|rest| rest.strip_prefix(' ')) {
            found.push(rest);
        } else if spec.name == words {
            let form = spec.form[words.len()..].split_whitespace();
            let choices = form.map(|word| word.trim_matches(['[', ']']).split('|'));
            // What follows a single placeholder is no word of its own: `foreach $name in …`.
            let choices = choices.take_while(|words| words.clone().count() > 1 || words.clone().all(is_plain));
            found.extend(choices.flatten().filter(|word| is_plain(word)));
        }
    }
    found
}

/// Returns the plain words of all commands: those of their names, other spellings and forms, such as `in` of `foreach`.
pub fn plain_words() -> impl Iterator<Item = &'static str> {
    let objects = [TREES_OR_PROCESSES, LISTED].into_iter().flatten().map(|(word, _)| *word);
    let of_commands = COMMANDS.iter().flat_map(|entry| {
        let of_form = form_words(entry.spec.form).filter(|word| is_plain(word));
        entry.spec.name.split(' ').chain(entry.plural).chain(of_form)
    });
    of_commands.chain(objects)
}

/// Returns the names before `=` in the forms of all commands, such as `fstype`.
pub fn argument_names() -> impl Iterator<Item = &'static str> {
    let words = specs().flat_map(|spec| form_words(spec.form));
    words.filter_map(|word| word.split_once('=')).map(|(name, _)| name).filter(|name| is_plain(name))
}

/// Returns the words of a form without brackets.
fn form_words(form: &'static str) -> impl Iterator<Item = &'static str> {
    form.split(|c: char| c.is_whitespace() || "[]|,".contains(c))
}

/// True if a word of a form is written as it is. Placeholders are in capitals, or variables.
fn is_plain(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase()) && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
}

/// What `create` and `shutdown` work on.
const TREES_OR_PROCESSES: &[(&str, Object)] = &[
    ("files", Object::Files),
    ("file", Object::Files),
    ("filesets", Object::Files),
    ("fileset", Object::Files),
    ("processes", Object::Processes),
    ("process", Object::Processes),
];

/// What `list` shows.
const LISTED: &[(&str, Object)] = &[
    ("fileset", Object::Files),
    ("filesets", Object::Files),
    ("flowop", Object::Flowops),
    ("flowops", Object::Flowops),
];

type MakeStats = fn(Spanned<Expr>) -> Stats;

/// What `stats` does with a file, a directory or a command.
const STATS_WITH: &[(&str, MakeStats)] = &[
    ("dump", Stats::Dump),
    ("xmldump", Stats::XmlDump),
    ("multidump", Stats::MultiDump),
    ("directory", Stats::Directory),
    ("command", Stats::Command),
];

/// The word behind the time of a run that starts from the existing files.
const AS_IS: &str = "as-is";

fn set(b: &mut ModelBuilder<'_>, s: &CommandStatement<'_>) -> Option<CommandKind> {
    match s.args {
        [Arg { kind: ArgKind::Assign { var, value }, .. }] => {
            b.check_random(&value.node);
            let name = Spanned::new(var.node.name.clone(), var.span);
            let value = from_ast(value);
            Some(match &var.node.field {
                Some(field) => CommandKind::SetField { name, field: Spanned::new(field.clone(), var.span), value },
                None => CommandKind::Set { name, value, copies: false },
            })
        }
        [Arg { kind: ArgKind::Named { name, value }, .. }] => {
            let written = name.node.clone();
            b.error(
                Diagnostic::error(Code::BadArgument, name.span, format!("`{written}` is not a variable"))
                    .help(format!("a variable has a dollar sign: `set ${written} = …`")),
            );
            // The variable counts as set, so that its uses are not reported as undefined.
            Some(CommandKind::Set { name: name.clone(), value: from_ast(value), copies: false })
        }
        _ => b.bad_form(s.span, s.spec.form),
    }
}

fn set_mode(b: &mut ModelBuilder<'_>, s: &CommandStatement<'_>) -> Option<CommandKind> {
    let words: Vec<&str> = s.args.iter().filter_map(|arg| word_of(Some(arg))).collect();
    match words[..] {
        ["quit", name] if let Some(mode) = QuitMode::find(name) => Some(CommandKind::SetMode(mode)),
        ["nousestats"] => Some(CommandKind::SetNoUseStats),
        _ => b.bad_form(s.span, s.spec.form),
    }
}

/// `args` before `as-is`, and whether that word follows them.
fn without_as_is(args: &[Arg]) -> (&[Arg], bool) {
    match args.split_last() {
        Some((last, before)) if word_of(Some(last)) == Some(AS_IS) => (before, true),
        _ => (args, false),
    }
}

fn run(b: &mut ModelBuilder<'_>, s: &CommandStatement<'_>) -> CommandKind {
    let (args, as_is) = without_as_is(s.args);
    let mut values = b.bare_values(args, usize::MAX, s.spec.form).into_iter();
    let seconds = values.next();
    if let Some(more) = values.map(|value| value.span).reduce(Span::to) {
        let help = "for reports on the way: `psrun PERIOD SECONDS`";
        b.ignored(more, "`run` takes one number; what follows has no effect", help);
    }
    CommandKind::Run { seconds, as_is }
}

fn psrun(b: &mut ModelBuilder<'_>, s: &CommandStatement<'_>) -> CommandKind {
    let (args, as_is) = without_as_is(s.args);
    let mut values = b.bare_values(args, 2, s.spec.form).into_iter();
    CommandKind::PsRun { period: values.next(), seconds: values.next(), as_is }
}

fn enable(b: &mut ModelBuilder<'_>, s: &CommandStatement<'_>) -> Option<CommandKind> {
    match word_of(s.args.first()) {
        Some("lathist") => Some(CommandKind::LatHist(true)),
        Some("multi") => Some(CommandKind::EnableMulti),
        _ => b.bad_form(s.span, s.spec.form),
    }
}

fn list(b: &mut ModelBuilder<'_>, s: &CommandStatement<'_>) -> Option<CommandKind> {
    if s.args.is_empty() {
        return Some(CommandKind::List(Object::All));
    }
    Some(CommandKind::List(b.choice(s, LISTED)?))
}

fn stats(b: &mut ModelBuilder<'_>, s: &CommandStatement<'_>) -> Option<CommandKind> {
    let what = word_of(s.args.first());
    let stats = match (what, what.and_then(|what| STATS_WITH.iter().find(|(word, _)| *word == what))) {
        (Some("clear"), _) => Stats::Clear,
        (Some("snap"), _) => Stats::Snap,
        (Some("directory"), Some((_, make))) => make(b.one_value(&s.args[1..], s.span, s.spec.form)?),
        (_, Some((_, make))) => make(b.joined_text(&s.args[1..], s)?),
        _ => return b.bad_form(s.span, s.spec.form),
    };
    Some(CommandKind::Stats(stats))
}

fn shutdown(b: &mut ModelBuilder<'_>, s: &CommandStatement<'_>) -> Option<CommandKind> {
    if s.args.is_empty() {
        let help = "write `shutdown processes` or `shutdown filesets`";
        b.ignored(s.span, "`shutdown` without a word has no effect", help);
        return None;
    }
    Some(CommandKind::Shutdown(b.choice(s, TREES_OR_PROCESSES)?))
}

fn foreach(b: &mut ModelBuilder<'_>, s: &CommandStatement<'_>) -> Option<CommandKind> {
    let [Arg { kind: ArgKind::Bare(Value::Variable(v)), span: at, .. }, second, values @ ..] = s.args else {
        return b.bad_form(s.span, s.spec.form);
    };
    if word_of(Some(second)) != Some("in") || values.is_empty() {
        return b.bad_form(s.span, s.spec.form);
    }
    let values = values.iter().filter_map(|arg| match &arg.kind {
        ArgKind::Bare(value) => Some(from_ast(&Spanned::new(value.clone(), arg.span))),
        _ => None,
    });
    // A vector that grows has room for four at least: a third of the memory of a script of many short loops.
    let mut values: Vec<_> = values.collect();
    values.shrink_to_fit();
    let mut body: Vec<Command> = b.commands(&s.node.children);
    body.shrink_to_fit();
    Some(CommandKind::ForEach { name: Spanned::new(v.name.clone(), *at), values, body })
}

#[cfg(test)]
mod tests {
    use super::{PARTS, argument_names, plain_words, specs, words_after};
    use crate::spec::words::STATEMENT_WORDS;
    use std::collections::BTreeSet;

    #[test]
    fn words_come_from_names_and_forms() {
        assert_eq!(words_after("create"), ["files", "filesets", "processes"]);
        assert_eq!(words_after("define"), ["fileset", "file", "process", "flowop", "randvar"]);
        assert_eq!(words_after("set mode"), ["quit", "timeout", "alldone", "firstdone"]);
        assert_eq!(words_after("list"), ["fileset", "flowop"]);
        assert_eq!(words_after("stats"), ["clear", "snap", "dump", "xmldump", "multidump", "directory", "command"]);
        let none = ["run", "psrun", "foreach", "load", "debug", "fscheck"];
        assert!(none.iter().all(|word| words_after(word).is_empty()));
    }

    #[test]
    fn words_of_all_forms() {
        let (words, names): (BTreeSet<&str>, BTreeSet<&str>) = (plain_words().collect(), argument_names().collect());
        let (plain, named) =
            (["foreach", "in", "as-is", "flowops", "firstdone", "command"], ["fstype", "rate", "value", "path"]);
        assert!(plain.iter().all(|word| words.contains(word)), "{words:?}");
        assert!(named.iter().all(|name| names.contains(name) && !words.contains(name)), "{names:?}");
        let is_letter = |b: u8| b.is_ascii_lowercase() || b"-_".contains(&b);
        assert!(words.iter().chain(&names).all(|word| word.bytes().all(is_letter)));
    }

    #[test]
    fn a_statement_word_is_that_of_a_command_or_a_part_of_one() {
        let firsts: BTreeSet<&str> = specs().filter_map(|spec| spec.name.split(' ').next()).collect();
        let firsts: BTreeSet<&str> = firsts.into_iter().chain(PARTS.iter().map(|(part, _)| *part)).collect();
        assert_eq!(firsts, STATEMENT_WORDS.iter().map(|word| word.name).collect());
    }
}
