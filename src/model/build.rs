//! Nested statements to commands and definitions, with every attribute checked against its descriptor.

use super::expr::{Expr, from_ast};
use super::fit::misfit;
use super::{
    AttrUse, Attrs, Command, CommandKind, CompositeDef, FilesetDef, FlowopDef, Known, Local, Object, ProcessDef,
    QuitMode, Stats, ThreadDef, scope,
};
use crate::diag::{self, Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::spec::{self, Attr, Dialect, SpecTable, attrs};
use crate::syntax::Node;
use crate::syntax::ast::{Arg, ArgKind, StatementKind, Value, VariableForm};
use std::collections::HashSet;
use std::sync::Arc;

/// Diagnostics after which misspelt names are no longer compared with those of the script.
const NEAR_MISSES: usize = 200;

/// What stands behind the time of a run that goes on from the files that are there.
const AS_IS: &str = "as-is";

/// Builds the commands of a list of nested statements.
pub fn build(
    nodes: &[Node],
    table: &SpecTable,
    dialect: Dialect,
    known: &Known,
    found: &mut Vec<Diagnostic>,
) -> Vec<Command> {
    let mut composites: HashSet<String> = known.composites.iter().cloned().collect();
    gather_composites(nodes, &mut composites);
    let mut builder = ModelBuilder { table, dialect, composites, found };
    builder.commands(nodes)
}

/// The names that `define flowop` gives anywhere in the text: the order of definition is checked elsewhere.
fn gather_composites(nodes: &[Node], names: &mut HashSet<String>) {
    for node in nodes {
        if let StatementKind::Command { word, args, .. } = &node.statement.kind
            && word.node == "define"
            && matches!(args.first().map(|a| &a.kind), Some(ArgKind::Bare(Value::Word(w))) if w == "flowop")
        {
            let name = args.iter().find_map(|a| match &a.kind {
                ArgKind::Named { name, value } if name.node == "name" => bare_text(&value.node),
                _ => None,
            });
            names.extend(name);
        }
        gather_composites(&node.children, names);
    }
}

/// The arguments of `run` before `as-is`, and whether that word stands at their end.
fn without_as_is(args: &[Arg]) -> (&[Arg], bool) {
    match args.split_last() {
        Some((last, before)) if word_of(Some(last)) == Some(AS_IS) => (before, true),
        _ => (args, false),
    }
}

fn bare_text(value: &Value) -> Option<String> {
    match value {
        Value::Word(w) => Some(w.clone()),
        Value::Text(parts) => super::expr::plain_text(parts),
        _ => None,
    }
}

struct ModelBuilder<'a> {
    table: &'a SpecTable,
    dialect: Dialect,
    composites: HashSet<String>,
    found: &'a mut Vec<Diagnostic>,
}

impl ModelBuilder<'_> {
    fn error(&mut self, diagnostic: Diagnostic) {
        diag::push(self.found, diagnostic);
    }

    /// Whether there are so many mistakes that no other is compared with the names that there are.
    fn is_full(&self) -> bool {
        self.found.len() >= NEAR_MISSES
    }

    fn commands(&mut self, nodes: &[Node]) -> Vec<Command> {
        let mut commands = Vec::new();
        for node in nodes {
            let StatementKind::Command { word, args, .. } = &node.statement.kind else { continue };
            let span = node.statement.span;
            if let Some(kind) = self.command(node, word, args, span) {
                commands.push(Command { span, kind });
            }
        }
        commands
    }

    fn command(&mut self, node: &Node, word: &Spanned<String>, args: &[Arg], span: Span) -> Option<CommandKind> {
        let kind = match word.node.as_str() {
            "set" => return self.set(args, span),
            "define" => return self.define(node, args, span),
            "create" => CommandKind::Create(self.object(
                args,
                span,
                &["files", "filesets", "fileset", "processes", "process"],
            )?),
            "shutdown" if args.is_empty() => {
                self.ignored(
                    span,
                    "`shutdown` without a word has no effect",
                    "write `shutdown processes` or `shutdown filesets`",
                );
                return None;
            }
            "shutdown" => CommandKind::Shutdown(self.object(
                args,
                span,
                &["files", "filesets", "fileset", "processes", "process"],
            )?),
            "list" if args.is_empty() => CommandKind::List(Object::All),
            "list" => CommandKind::List(self.object(args, span, &["fileset", "filesets", "flowop", "flowops"])?),
            "run" => {
                let (args, as_is) = without_as_is(args);
                let mut values = self.bare_values(args, usize::MAX, "run [SECONDS] [as-is]").into_iter();
                let seconds = values.next();
                if let Some(more) = values.map(|value| value.span).reduce(Span::to) {
                    self.ignored(
                        more,
                        "`run` takes one number; what follows has no effect",
                        "for reports on the way: `psrun PERIOD SECONDS`",
                    );
                }
                CommandKind::Run { seconds, as_is }
            }
            "psrun" => {
                let (args, as_is) = without_as_is(args);
                let mut values = self.bare_values(args, 2, "psrun [[-]PERIOD [SECONDS]] [as-is]").into_iter();
                CommandKind::PsRun { period: values.next(), seconds: values.next(), as_is }
            }
            "sleep" => CommandKind::Sleep(self.just_one(args, span, "sleep SECONDS")?),
            "warmup" => CommandKind::Warmup(self.just_one(args, span, "warmup SECONDS")?),
            "system" => CommandKind::System(self.just_one(args, span, "system \"COMMAND\"")?),
            "echo" => CommandKind::Echo(self.just_one(args, span, "echo \"TEXT\"")?),
            "log" => CommandKind::Log(self.just_one(args, span, "log \"TEXT\"")?),
            "usage" => CommandKind::Usage(self.just_one(args, span, "usage \"TEXT\"")?),
            "load" => CommandKind::Load(self.just_one(args, span, "load NAME")?),
            "help" => CommandKind::Help,
            "vars" => CommandKind::Vars,
            "version" => CommandKind::Version,
            "debug" => CommandKind::Debug,
            "quit" | "exit" => CommandKind::Quit,
            "eventgen" => CommandKind::EventGen(self.named(args, "rate", "eventgen [rate=N]")),
            "enable" => match word_of(args.first()) {
                Some("lathist") => CommandKind::EnableLatHist,
                Some("multi") => CommandKind::EnableMulti,
                _ => return self.bad_form(span, "enable lathist|multi"),
            },
            "domultisync" => CommandKind::DoMultiSync,
            "stats" => return self.stats(args, span),
            "fscheck" => CommandKind::FsCheck {
                path: self.named(args, "path", "fscheck path=PATH,fstype=TYPE"),
                fstype: self.named(args, "fstype", "fscheck path=PATH,fstype=TYPE"),
            },
            "fsflush" => CommandKind::FsFlush,
            "foreach" => return self.foreach(node, args, span),
            "thread" | "flowop" => {
                let place = if word.node == "thread" { "`define process`" } else { "`thread` or `define flowop`" };
                self.error(
                    Diagnostic::error(Code::Misplaced, word.span, format!("`{}` outside of a block", word.node))
                        .help(format!("write it in a {place} block")),
                );
                return None;
            }
            // The parser has told.
            _ => return None,
        };
        Some(kind)
    }

    fn bad_form<T>(&mut self, span: Span, form: &str) -> Option<T> {
        self.error(
            Diagnostic::error(Code::BadArgument, span, "this command is not written so")
                .help(format!("write `{form}`")),
        );
        None
    }

    fn bare_values(&mut self, args: &[Arg], most: usize, form: &str) -> Vec<Spanned<Expr>> {
        let mut values = Vec::new();
        for arg in args {
            match &arg.kind {
                ArgKind::Bare(value) if values.len() < most => {
                    values.push(from_ast(&Spanned::new(value.clone(), arg.span)));
                }
                _ => {
                    let () = self.bad_form::<()>(arg.span, form).unwrap_or_default();
                    break;
                }
            }
        }
        values
    }

    fn ignored(&mut self, span: Span, message: &str, help: &str) {
        self.error(Diagnostic::warning(Code::Ignored, span, message).help(help));
    }

    fn at_most_one(&mut self, args: &[Arg], form: &str) -> Option<Spanned<Expr>> {
        self.bare_values(args, 1, form).into_iter().next()
    }

    fn just_one(&mut self, args: &[Arg], span: Span, form: &str) -> Option<Spanned<Expr>> {
        match self.at_most_one(args, form) {
            Some(value) => Some(value),
            None if args.is_empty() => self.bad_form(span, form),
            None => None,
        }
    }

    fn named(&mut self, args: &[Arg], wanted: &str, form: &str) -> Option<Spanned<Expr>> {
        let mut value = None;
        for arg in args {
            match &arg.kind {
                ArgKind::Named { name, value: v } if name.node == wanted => value = Some(from_ast(v)),
                ArgKind::Named { name, .. } if form.contains(&format!("{}=", name.node)) => {}
                ArgKind::Bare(Value::Word(w)) if w == wanted => {}
                _ => return self.bad_form(arg.span, form),
            }
        }
        value
    }

    fn object(&mut self, args: &[Arg], span: Span, words: &[&str]) -> Option<Object> {
        match word_of(args.first()) {
            Some(w) if words.contains(&w) => Some(match w.chars().next() {
                Some('p') => Object::Processes,
                _ if w.starts_with("flow") => Object::Flowops,
                _ => Object::Files,
            }),
            other => {
                let at = args.first().map_or(span, |a| a.span);
                let wanted = words.join("`, `");
                let mut d = Diagnostic::error(Code::BadArgument, at, format!("one of `{wanted}` is wanted here"));
                if let Some(written) = other {
                    d = d.near_miss(written, words.iter().copied());
                }
                if d.help.is_empty() {
                    d = d.help("name what it works on");
                }
                self.error(d);
                None
            }
        }
    }

    fn set(&mut self, args: &[Arg], span: Span) -> Option<CommandKind> {
        match args {
            [Arg { kind: ArgKind::Assign { var, value }, .. }] => {
                self.check_random(&value.node);
                let name = Spanned::new(var.node.name.clone(), var.span);
                let value = from_ast(value);
                Some(match &var.node.field {
                    Some(field) => CommandKind::SetField { name, field: Spanned::new(field.clone(), var.span), value },
                    None => CommandKind::Set { name, value },
                })
            }
            [first, ..] if word_of(Some(first)) == Some("mode") => {
                let words: Vec<&str> = args.iter().filter_map(|a| word_of(Some(a))).collect();
                match words[1..] {
                    ["quit", "timeout"] => Some(CommandKind::SetMode(QuitMode::Timeout)),
                    ["quit", "alldone"] => Some(CommandKind::SetMode(QuitMode::AllDone)),
                    ["quit", "firstdone"] => Some(CommandKind::SetMode(QuitMode::FirstDone)),
                    ["nousestats"] => Some(CommandKind::SetNoUseStats),
                    _ => self.bad_form(span, "set mode quit timeout|alldone|firstdone"),
                }
            }
            [Arg { kind: ArgKind::Named { name, value }, .. }] => {
                let written = name.node.clone();
                self.error(
                    Diagnostic::error(Code::BadArgument, name.span, format!("`{written}` is not a variable"))
                        .help(format!("a variable has a dollar sign: `set ${written} = …`")),
                );
                // Who reads the variable has made no mistake.
                Some(CommandKind::Set { name: name.clone(), value: from_ast(value) })
            }
            _ => self.bad_form(span, "set $name = VALUE"),
        }
    }

    /// The arguments of `randvar(…)` and `cvar(…)` against their tables.
    fn check_random(&mut self, value: &Value) {
        let Value::Call { name, args } = value else { return };
        let list = match name.node.as_str() {
            "randvar" => attrs::RANDVAR,
            "cvar" => attrs::CVAR,
            other => {
                self.error(
                    Diagnostic::error(Code::BadExpression, name.span, format!("`{other}(…)` makes no random variable"))
                        .near_miss(other, ["randvar", "cvar"])
                        .help("random variables are made by `randvar(type=…,…)` and `cvar(type=…,parameters=…)`"),
                );
                return;
            }
        };
        let _ = self.attrs(args, list, &format!("`{}(…)`", name.node), false);
    }

    fn stats(&mut self, args: &[Arg], span: Span) -> Option<CommandKind> {
        const FORM: &str =
            "stats clear|snap|dump \"FILE\"|xmldump \"FILE\"|multidump \"FILE\"|directory PATH|command \"COMMAND\"";
        let Some(what) = word_of(args.first()) else { return self.bad_form(span, FORM) };
        let stats = match what {
            "clear" => Stats::Clear,
            "snap" => Stats::Snap,
            _ => {
                let value = self.just_one(args.get(1..).unwrap_or_default(), span, FORM)?;
                match what {
                    "dump" => Stats::Dump(value),
                    "xmldump" => Stats::XmlDump(value),
                    "multidump" => Stats::MultiDump(value),
                    "directory" => Stats::Directory(value),
                    "command" => Stats::Command(value),
                    _ => return self.bad_form(span, FORM),
                }
            }
        };
        Some(CommandKind::Stats(stats))
    }

    fn foreach(&mut self, node: &Node, args: &[Arg], span: Span) -> Option<CommandKind> {
        let [Arg { kind: ArgKind::Bare(Value::Variable(v)), span: at, .. }, second, values @ ..] = args else {
            return self.bad_form(span, "foreach $name in A,B,C { … }");
        };
        if word_of(Some(second)) != Some("in") || values.is_empty() {
            return self.bad_form(span, "foreach $name in A,B,C { … }");
        }
        let values = values.iter().filter_map(|arg| match &arg.kind {
            ArgKind::Bare(value) => Some(from_ast(&Spanned::new(value.clone(), arg.span))),
            _ => None,
        });
        // A vector that grows has room for four at least: a third of the memory of a script of many short loops.
        let mut values: Vec<_> = values.collect();
        values.shrink_to_fit();
        let mut body = self.commands(&node.children);
        body.shrink_to_fit();
        Some(CommandKind::ForEach { name: Spanned::new(v.name.clone(), *at), values, body })
    }

    fn define(&mut self, node: &Node, args: &[Arg], span: Span) -> Option<CommandKind> {
        const WORDS: &[&str] = &["fileset", "file", "process", "flowop", "randvar"];
        /// Filebench takes these for one of them.
        const PLURALS: &[(&str, &str)] = &[("filesets", "fileset"), ("files", "file"), ("processes", "process")];
        let Some(what) = word_of(args.first()) else {
            return self.bad_form(span, "define fileset|file|process|flowop|randvar …");
        };
        let rest = &args[1..];
        let stem = PLURALS.iter().find(|(plural, _)| *plural == what).map_or(what, |(_, stem)| stem);
        match stem {
            "fileset" | "file" => {
                let attrs = self.attrs(rest, attrs::FILESET, &format!("`define {stem}`"), false);
                self.need(&attrs, "name", span, &format!("`define {stem}`"));
                self.need(&attrs, "path", span, &format!("`define {stem}`"));
                let def = FilesetDef { single: stem == "file", attrs, dialect: self.dialect, span };
                Some(CommandKind::DefineFileset(Arc::new(def)))
            }
            "process" => {
                // 1.4 takes attributes of threads here too, and the other way round.
                let attrs = self.attrs(rest, attrs::PROCESS, "`define process`", false);
                self.need(&attrs, "name", span, "`define process`");
                let threads: Vec<ThreadDef> = node.children.iter().filter_map(|child| self.thread(child)).collect();
                if threads.is_empty() && node.children.is_empty() {
                    self.error(
                        Diagnostic::error(Code::NothingToRun, span, "a process without a thread")
                            .help("give it a block: `{ thread name=… { flowop … } }`"),
                    );
                }
                let def = ProcessDef { attrs, threads, dialect: self.dialect, span };
                Some(CommandKind::DefineProcess(Arc::new(def)))
            }
            "flowop" => {
                let (locals, plain) = self.split_locals(rest);
                let attrs = self.attrs(&plain, attrs::COMPOSITE, "`define flowop`", false);
                self.need(&attrs, "name", span, "`define flowop`");
                let name = attrs.constant_text("name")?;
                let flowops = node.children.iter().filter_map(|child| self.flowop(child)).collect();
                let def = CompositeDef { name, attrs, parameters: locals, flowops, span };
                Some(CommandKind::DefineFlowop(Arc::new(def)))
            }
            "randvar" => {
                let attrs = self.attrs(rest, attrs::RANDVAR, "`define randvar`", false);
                self.need(&attrs, "name", span, "`define randvar`");
                let used = attrs.get("name")?;
                let Expr::Var(variable) = &used.value.node else {
                    let at = used.value.span;
                    return self.bad_form(at, "define randvar name=$variable,type=…");
                };
                let fields = attrs
                    .iter()
                    .filter(|u| u.attr.name != "name")
                    .map(|u| (Spanned::new(u.attr.name.to_owned(), u.at), u.value.clone()))
                    .collect();
                let name = Spanned::new(variable.name.clone(), used.value.span);
                Some(CommandKind::Set { name, value: Spanned::new(scope::randvar(span, fields), span) })
            }
            other => {
                let at = args[0].span;
                self.error(
                    Diagnostic::error(Code::BadArgument, at, format!("`{other}` can't be defined"))
                        .near_miss(other, WORDS.iter().copied())
                        .help("`define` makes a fileset, file, process, flowop or randvar"),
                );
                None
            }
        }
    }

    fn thread(&mut self, node: &Node) -> Option<ThreadDef> {
        let StatementKind::Command { word, args, .. } = &node.statement.kind else { return None };
        if word.node != "thread" {
            self.error(
                Diagnostic::error(Code::Misplaced, word.span, format!("`{}` in a `define process` block", word.node))
                    .help("only `thread` is allowed directly in a process"),
            );
            return None;
        }
        let attrs = self.attrs(args, attrs::THREAD, "`thread`", false);
        self.need(&attrs, "name", node.statement.span, "`thread`");
        let flowops: Vec<FlowopDef> = node.children.iter().filter_map(|child| self.flowop(child)).collect();
        if flowops.is_empty() && node.children.is_empty() {
            self.error(
                Diagnostic::error(Code::NothingToRun, node.statement.span, "a thread without a flowop")
                    .help("give it a block: `{ flowop … }`"),
            );
        }
        Some(ThreadDef { attrs, flowops, span: node.statement.span })
    }

    fn flowop(&mut self, node: &Node) -> Option<FlowopDef> {
        let StatementKind::Command { word, args, .. } = &node.statement.kind else { return None };
        if word.node != "flowop" {
            self.error(
                Diagnostic::error(Code::Misplaced, word.span, format!("`{}` among flowops", word.node))
                    .help("only `flowop` is allowed in a thread or a `define flowop` block"),
            );
            return None;
        }
        let span = node.statement.span;
        let Some(kind) = word_of(args.first()) else {
            return self.bad_form(span, "flowop TYPE name=NAME,…");
        };
        let kind = Spanned::new(kind.to_owned(), args[0].span);
        let composite = self.composites.contains(&kind.node);
        let spec = self.table.flowop(&kind.node);
        if !composite && spec.is_none() {
            let mut names: Vec<&str> = self.table.flowops.iter().map(|f| f.name).collect();
            if !self.is_full() {
                let mut composites: Vec<&str> = self.composites.iter().map(String::as_str).collect();
                composites.sort_unstable();
                names.extend(composites);
            }
            let d = Diagnostic::error(Code::UnknownFlowop, kind.span, format!("no flowop is called `{}`", kind.node))
                .near_miss(&kind.node, names);
            let d = if d.help.is_empty() { d.help("`wmlrun list flowops` shows them all") } else { d };
            self.error(d);
        }
        let (locals, plain) = self.split_locals(&args[1..]);
        if let Some(local) = locals.first().filter(|_| !composite && spec.is_some()) {
            let message = format!("`{}` takes no parameter `${}`", kind.node, local.name.node);
            let at = local.name.span;
            self.error(
                Diagnostic::error(Code::UnknownAttribute, at, message)
                    .help("only flowops made by `define flowop` have parameters"),
            );
        }
        let attrs = self.attrs(&plain, attrs::FLOWOP, &format!("flowop `{}`", kind.node), true);
        self.need(&attrs, "name", span, &format!("flowop `{}`", kind.node));
        Some(FlowopDef { kind, spec, attrs, locals, span })
    }

    fn split_locals(&mut self, args: &[Arg]) -> (Vec<Local>, Vec<Arg>) {
        let mut locals = Vec::new();
        let mut plain = Vec::new();
        for arg in args {
            match &arg.kind {
                ArgKind::Assign { var, value } => {
                    self.check_random(&value.node);
                    let name = Spanned::new(var.node.name.clone(), var.span);
                    locals.push(Local { name, value: Some(from_ast(value)) });
                }
                ArgKind::Bare(Value::Variable(v)) if v.form == VariableForm::Plain => {
                    locals.push(Local { name: Spanned::new(v.name.clone(), arg.span), value: None });
                }
                _ => plain.push(arg.clone()),
            }
        }
        (locals, plain)
    }

    fn need(&mut self, attrs: &Attrs, name: &str, span: Span, what: &str) {
        if attrs.get(name).is_none() {
            self.error(Diagnostic::error(Code::MissingAttribute, span, format!("{what} has no `{name}=`")).help(
                match name {
                    "path" => "add the directory that it lies in, such as `path=$dir`".to_owned(),
                    _ => format!("add `{name}=…`, a word of your own"),
                },
            ));
        }
    }

    fn attrs(&mut self, args: &[Arg], list: &'static [Attr], what: &str, flowop: bool) -> Attrs {
        let mut items: Vec<AttrUse> = Vec::new();
        for arg in args {
            let (name, value, alone) = match &arg.kind {
                ArgKind::Named { name, value } => {
                    self.check_random(&value.node);
                    (name.clone(), from_ast(value), false)
                }
                ArgKind::Bare(Value::Word(w)) => {
                    (Spanned::new(w.clone(), arg.span), Spanned::new(Expr::Bool(true), arg.span), true)
                }
                _ => {
                    self.error(
                        Diagnostic::error(
                            Code::UnexpectedToken,
                            arg.span,
                            format!("a value among the attributes of {what}"),
                        )
                        .help("attributes are written `name=value`"),
                    );
                    continue;
                }
            };
            let Some(attr) = spec::find_attr(list, &name.node) else {
                // 1.4's grammar takes the attributes of processes and threads in either place.
                let other = [attrs::PROCESS, attrs::THREAD].into_iter().find_map(|l| spec::find_attr(l, &name.node));
                if let Some(found) = other.filter(|_| !flowop && what.contains("process") | what.contains("thread")) {
                    self.error(
                        Diagnostic::warning(
                            Code::Ignored,
                            name.span,
                            format!("`{}` has no effect on {what}", found.name),
                        )
                        .help("Filebench 1.4 accepts it here and ignores it too"),
                    );
                    continue;
                }
                let names = list.iter().flat_map(|a| std::iter::once(a.name).chain(a.aliases.iter().copied()));
                let d = Diagnostic::error(
                    Code::UnknownAttribute,
                    name.span,
                    format!("unknown attribute `{}` on {what}", name.node),
                )
                .label(format!("not an attribute of {what}"))
                .near_miss(&name.node, names);
                let d = if d.help.is_empty() { d.help(attribute_hint(list)) } else { d };
                self.error(d);
                continue;
            };
            if let Some(d) = misfit(attr, &value, alone) {
                self.error(d);
            }
            if let Some(first) = items.iter().rev().find(|used| used.attr.name == attr.name) {
                self.error(
                    Diagnostic::warning(
                        Code::RepeatedAttribute,
                        name.span,
                        format!("`{}` is given twice to {what}", name.node),
                    )
                    .label("this one counts")
                    .also(first.at, "this one does not")
                    .help("leave one of them out; of several the last one counts, as in Filebench"),
                );
            }
            // Only the last one counts, so that no statement holds more than there are attributes.
            items.retain(|used| used.attr.name != attr.name);
            items.push(AttrUse { attr, at: name.span, value, alone });
        }
        Attrs { items }
    }
}

fn attribute_hint(list: &'static [Attr]) -> String {
    let names: Vec<&str> = list.iter().map(|a| a.name).collect();
    format!("known are {}", names.join(", "))
}

fn word_of(arg: Option<&Arg>) -> Option<&str> {
    match &arg?.kind {
        ArgKind::Bare(Value::Word(w)) => Some(w),
        _ => None,
    }
}
