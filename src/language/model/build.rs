//! Builds commands and definitions from nested statements, and checks every attribute against its descriptor.

use super::commands::{self, CommandStatement};
use super::expr::{self, Expr, from_ast};
use super::fit::misfit;
use super::{
    AttrUse, Attrs, Command, CommandKind, CompositeDef, FilesetDef, FlowopDef, Known, Local, Object, ProcessDef,
    ThreadDef,
};
use crate::diag::{self, Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::spec::words::flowop_called;
use crate::spec::{self, Attr, Dialect, SpecTable, attrs};
use crate::syntax::Node;
use crate::syntax::ast::{Arg, ArgKind, StatementKind, Value, VariableForm};
use std::collections::HashSet;
use std::sync::Arc;

/// Number of diagnostics from which on misspelt names are no longer compared with the names of the script.
const NEAR_MISSES: usize = 200;

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

/// Collects the names of all `define flowop`s of the text: they may be used before their definition.
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

fn bare_text(value: &Value) -> Option<String> {
    match value {
        Value::Word(w) => Some(w.clone()),
        Value::Text(parts) => super::expr::plain_text(parts),
        _ => None,
    }
}

/// Builds a model, and collects the errors.
pub(super) struct ModelBuilder<'a> {
    table: &'a SpecTable,
    dialect: Dialect,
    composites: HashSet<String>,
    found: &'a mut Vec<Diagnostic>,
}

impl ModelBuilder<'_> {
    pub(super) fn error(&mut self, diagnostic: Diagnostic) {
        diag::push(self.found, diagnostic);
    }

    /// Whether there are so many errors that near misses are no longer looked for.
    fn is_full(&self) -> bool {
        self.found.len() >= NEAR_MISSES
    }

    pub(super) fn commands(&mut self, nodes: &[Node]) -> Vec<Command> {
        let mut commands = Vec::new();
        for node in nodes {
            let StatementKind::Command { word, args, .. } = &node.statement.kind else { continue };
            let span = node.statement.span;
            if let Some(kind) = commands::build(self, node, word, args, span) {
                commands.push(Command { span, kind });
            }
        }
        commands
    }

    /// Reports that a command does not have this form.
    pub(super) fn bad_form<T>(&mut self, span: Span, form: &str) -> Option<T> {
        self.error(Diagnostic::error(Code::BadArgument, span, "invalid arguments").help(format!("usage: `{form}`")));
        None
    }

    /// Returns up to `most` values without names. Reports the first argument that is none.
    pub(super) fn bare_values(&mut self, args: &[Arg], most: usize, form: &str) -> Vec<Spanned<Expr>> {
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

    /// Warns about something without effect.
    pub(super) fn ignored(&mut self, span: Span, message: &str, help: &str) {
        self.error(Diagnostic::warning(Code::Ignored, span, message).help(help));
    }

    pub(super) fn only_value(&mut self, s: &CommandStatement<'_>) -> Option<Spanned<Expr>> {
        self.one_value(s.args, s.span, s.spec.form)
    }

    /// Returns the only one of these arguments, of a command at `span` with this form.
    pub(super) fn one_value(&mut self, args: &[Arg], span: Span, form: &str) -> Option<Spanned<Expr>> {
        match self.bare_values(args, 1, form).into_iter().next() {
            Some(value) => Some(value),
            None if args.is_empty() => self.bad_form(span, form),
            None => None,
        }
    }

    /// Returns the text of a command: its only value, or several strings, which Filebench joins: `echo "a" "b"`.
    pub(super) fn joined_text(&mut self, args: &[Arg], s: &CommandStatement<'_>) -> Option<Spanned<Expr>> {
        let strings = args.iter().map_while(|arg| match &arg.kind {
            ArgKind::Bare(Value::Text(parts)) if !arg.comma => Some(parts),
            _ => None,
        });
        match args {
            [first, .., last] if strings.clone().count() == args.len() => {
                let parts = strings.flatten().cloned().collect();
                Some(Spanned::new(Expr::Text(parts), first.span.to(last.span)))
            }
            _ => self.one_value(args, s.span, s.spec.form),
        }
    }

    /// Returns the value of `wanted=` of a command. Other names of its form are skipped.
    pub(super) fn named(&mut self, s: &CommandStatement<'_>, wanted: &str) -> Option<Spanned<Expr>> {
        let mut value = None;
        for arg in s.args {
            match &arg.kind {
                ArgKind::Named { name, value: v } if name.node == wanted => value = Some(from_ast(v)),
                ArgKind::Named { name, .. } if s.spec.form.contains(&format!("{}=", name.node)) => {}
                ArgKind::Bare(Value::Word(w)) if w == wanted => {}
                _ => return self.bad_form(arg.span, s.spec.form),
            }
        }
        value
    }

    /// Returns the object that the first argument of a command names.
    pub(super) fn choice(&mut self, s: &CommandStatement<'_>, choices: &[(&str, Object)]) -> Option<Object> {
        let written = word_of(s.args.first());
        let chosen = written.and_then(|written| choices.iter().find(|(word, _)| *word == written));
        if let Some((_, object)) = chosen {
            return Some(*object);
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let at = s.args.first().map_or(s.span, |arg| arg.span);
        let message = format!("expected one of `{}`", words.join("`, `"));
        let mut d = Diagnostic::error(Code::BadArgument, at, message);
        if let Some(written) = written {
            d = d.near_miss(written, words);
        }
        self.error(d.or_help("name what it works on"));
        None
    }

    /// Checks the arguments of `randvar(…)` and `cvar(…)`.
    pub(super) fn check_random(&mut self, value: &Value) {
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
        let _ = self.attrs(args, list, &[], &format!("`{}(…)`", name.node));
    }

    /// `define fileset`, and `define file` for a single one.
    pub(super) fn fileset(&mut self, s: &CommandStatement<'_>, single: bool) -> CommandKind {
        let attrs = self.attrs_of(s, s.args, attrs::FILESET, &["name", "path"]);
        let def = FilesetDef { single, attrs, dialect: self.dialect, span: s.span };
        CommandKind::DefineFileset(Arc::new(def))
    }

    /// `define process`.
    pub(super) fn process(&mut self, s: &CommandStatement<'_>) -> CommandKind {
        let what = format!("`{}`", s.spec.name);
        // The grammar of 1.4 accepts attributes of threads here too, and attributes of processes on threads.
        let attrs = self.attrs(s.args, attrs::PROCESS, attrs::THREAD, &what);
        self.need(&attrs, "name", s.span, &what);
        let threads: Vec<ThreadDef> = s.node.children.iter().filter_map(|child| self.thread(child)).collect();
        if threads.is_empty() && s.node.children.is_empty() {
            self.error(
                Diagnostic::error(Code::NothingToRun, s.span, "a process without a thread")
                    .help("give it a block: `{ thread name=… { flowop … } }`"),
            );
        }
        let def = ProcessDef { attrs, threads, dialect: self.dialect, span: s.span };
        CommandKind::DefineProcess(Arc::new(def))
    }

    /// Returns the attributes of a definition. Reports those of `needed` that are missing.
    fn attrs_of(&mut self, s: &CommandStatement<'_>, args: &[Arg], list: &'static [Attr], needed: &[&str]) -> Attrs {
        let what = format!("`{}`", s.spec.name);
        let attrs = self.attrs(args, list, &[], &what);
        needed.iter().for_each(|name| self.need(&attrs, name, s.span, &what));
        attrs
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
        let attrs = self.attrs(args, attrs::THREAD, attrs::PROCESS, "`thread`");
        self.need(&attrs, "name", node.statement.span, "`thread`");
        let flowops: Vec<FlowopDef> = node.children.iter().filter_map(|child| self.flowop(child)).collect();
        if flowops.is_empty() && node.children.is_empty() {
            self.error(
                Diagnostic::error(Code::NothingToRun, node.statement.span, "a thread without a flowop")
                    .help("give it a block: `{ flowop … }`"),
            );
        }
        self.weights(&attrs, &flowops, "thread");
        Some(ThreadDef { attrs, flowops, span: node.statement.span })
    }

    /// Reports flowops with a `weight=` in a body that is no mix. `what`: whose body it is.
    fn weights(&mut self, attrs: &Attrs, flowops: &[FlowopDef], what: &str) {
        let weights = flowops.iter().filter_map(|flowop| flowop.attrs.get("weight"));
        for used in weights.filter(|_| attrs.get("mix").is_none()) {
            let message = format!("`weight` in a {what} without `mix`, which executes all its flowops in order");
            self.error(
                Diagnostic::error(Code::UnknownAttribute, used.at, message)
                    .help(format!("add `mix` to the {what}: then it executes one of them, drawn by weight")),
            );
        }
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
            let d = Diagnostic::error(Code::UnknownFlowop, kind.span, format!("no flowop is called `{}`", kind.node));
            let d = match flowop_called(&kind.node) {
                Some(flowop) => d.help(format!("did you mean `{flowop}`?")),
                None => d.near_miss(&kind.node, names),
            };
            self.error(d.or_help("`wmlrun list flowops` shows them all"));
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
        let attrs = self.attrs(&plain, attrs::FLOWOP, &[], &format!("flowop `{}`", kind.node));
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
                    "path" => "add the directory that contains it, such as `path=$dir`".to_owned(),
                    _ => format!("add `{name}=…`, a word of your own"),
                },
            ));
        }
    }

    /// Returns the attributes of `what`, which are those of `list`. Those of `ignored` have no effect on it, and cause
    /// a warning.
    fn attrs(&mut self, args: &[Arg], list: &'static [Attr], ignored: &'static [Attr], what: &str) -> Attrs {
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
                if let Some(found) = spec::find_attr(ignored, &name.node) {
                    self.error(
                        Diagnostic::warning(
                            Code::Ignored,
                            name.span,
                            format!("`{}` has no effect on {what}", found.name),
                        )
                        .help(
                            "Filebench 1.4 accepts it here and ignores it too; without another sign of a dialect the \
                             script is read as one of 1.4 (`# dialect: fsl` if it is not)",
                        ),
                    );
                    continue;
                }
                let names = list.iter().flat_map(|a| std::iter::once(a.name).chain(a.aliases.iter().copied()));
                let d = Diagnostic::error(
                    Code::UnknownAttribute,
                    name.span,
                    format!("unknown attribute `{}` on {what}", name.node),
                )
                .label(format!("not an attribute of {what}"));
                let d = match attrs::instead_of(&name.node) {
                    Some(help) => d.help(help),
                    None => d.near_miss(&name.node, names),
                };
                self.error(d.or_help(attribute_hint(list)));
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
            // Only the last one counts, so that a definition has at most as many as there are attributes.
            items.retain(|used| used.attr.name != attr.name);
            items.push(AttrUse { attr, at: name.span, value, alone, early: false });
        }
        Attrs { items }
    }
}

/// `define flowop`.
pub(super) fn composite(b: &mut ModelBuilder<'_>, s: &CommandStatement<'_>) -> Option<CommandKind> {
    let (parameters, plain) = b.split_locals(s.args);
    let attrs = b.attrs_of(s, &plain, attrs::COMPOSITE, &["name"]);
    let used = attrs.get("name")?;
    let Some(name) = attrs.constant_text("name") else {
        b.error(
            Diagnostic::error(Code::WrongType, used.value.span, "the name of a composite flowop depends on a variable")
                .help("write the name itself: it is a flowop type, which is known before the script runs"),
        );
        return None;
    };
    if b.table.flowop(&name.node).is_some() {
        let message = format!("a composite flowop called `{}`, as a flowop of the language", name.node);
        b.error(
            Diagnostic::error(Code::Duplicate, name.span, message)
                .help(format!("give it another name: `flowop {}` means that of the language", name.node)),
        );
    }
    let flowops: Vec<FlowopDef> = s.node.children.iter().filter_map(|child| b.flowop(child)).collect();
    b.weights(&attrs, &flowops, "composite flowop");
    let def = CompositeDef { name, attrs, parameters, flowops, span: s.span };
    Some(CommandKind::DefineFlowop(Arc::new(def)))
}

/// `define randvar`: a variable whose value is a random variable.
pub(super) fn randvar(b: &mut ModelBuilder<'_>, s: &CommandStatement<'_>) -> Option<CommandKind> {
    let attrs = b.attrs_of(s, s.args, attrs::RANDVAR, &["name"]);
    let used = attrs.get("name")?;
    let Expr::Var(variable) = &used.value.node else {
        return b.bad_form(used.value.span, s.spec.form);
    };
    let fields = attrs
        .iter()
        .filter(|u| u.attr.name != "name")
        .map(|u| (Spanned::new(u.attr.name.to_owned(), u.at), u.value.clone()))
        .collect();
    let name = Spanned::new(variable.name.clone(), used.value.span);
    Some(CommandKind::Set { name, value: Spanned::new(expr::randvar(s.span, fields), s.span), copies: false })
}

fn attribute_hint(list: &'static [Attr]) -> String {
    let names: Vec<&str> = list.iter().map(|a| a.name).collect();
    format!("known are {}", names.join(", "))
}

pub(super) fn word_of(arg: Option<&Arg>) -> Option<&str> {
    match &arg?.kind {
        ArgKind::Bare(Value::Word(w)) => Some(w),
        _ => None,
    }
}
