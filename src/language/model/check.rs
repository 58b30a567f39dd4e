//! Checks names: everything that a text refers to must exist, and exist once.

use super::expr::{self, Expr};
use super::rebound;
use super::visit::{self, CommandPart};
use super::{AttrUse, Attrs, Command, CommandKind, FlowopDef, Known, Model, RandomCall};
use crate::diag::{self, Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::spec::Kind;
use crate::syntax::ast::{TextPart, Variable, VariableForm};
use indexmap::IndexSet;
use std::collections::{HashMap, HashSet};

/// Reports undefined and duplicate names, and commands without effect.
pub fn check(model: &Model, known: &Known, found: &mut Vec<Diagnostic>) {
    without_effect(&model.commands, found);
    rebound::check(&model.commands, found);
    times(&model.commands, found);
    // At a prompt the next line may set the type.
    if !known.open && !diag::has_errors(found) {
        types(&model.commands, found);
    }
    let mut names = DefinedNames::default();
    names.filesets.extend(known.filesets.iter().cloned());
    names.targets.extend(known.targets.iter().cloned());
    names.variables.extend(known.variables.iter().cloned());
    names.uncounted.extend(known.variables.iter().cloned());
    names.gather(&model.commands);
    duplicates(&model.commands, found);
    if names.loads {
        // The definitions of a loaded text are not known here. The run checks these names.
        return;
    }
    let mut checker = Checker { names: &names, open: known.open, found, reported: HashSet::new(), compared: 0 };
    checker.commands(&model.commands);
}

/// Reports custom variables whose distribution nothing sets.
fn types(commands: &[Command], found: &mut Vec<Diagnostic>) {
    let field = |command: &Command| match &command.kind {
        CommandKind::SetField { name, field, .. } if field.node == "type" => Some(name.node.clone()),
        _ => None,
    };
    let typed: HashSet<String> = visit::all(commands).filter_map(field).collect();
    for command in visit::all(commands) {
        if let CommandKind::Set { name, value, .. } = &command.kind
            && let Expr::Random(random) = &value.node
            && random.call == RandomCall::Cvar
            && random.field("type").is_none()
            && !typed.contains(&name.node)
        {
            let help = "add its distribution, such as `type=cvar-uniform`; `wmlrun list distributions` shows all";
            let missing = Diagnostic::error(Code::MissingAttribute, random.span, "`cvar(…)` has no `type=`").help(help);
            diag::push(found, missing);
        }
    }
}

/// The help on commands for several clients.
const SINGLE_CLIENT: &str =
    "the clients of a run are its ranks, which `mpirun` starts; without MPI there is one (docs/hosts.md)";

/// Reports what is accepted for old scripts and has no effect, or another one than expected.
fn without_effect(commands: &[Command], found: &mut Vec<Diagnostic>) {
    for command in visit::all(commands) {
        let ignored = |what: &str| Diagnostic::warning(Code::Ignored, command.span, what);
        match &command.kind {
            CommandKind::Debug => diag::push(found, debug_ignored(command.span)),
            CommandKind::SetNoUseStats => diag::push(
                found,
                ignored("`set mode nousestats` has no effect")
                    .help("reading processor times costs next to nothing on Linux; they are always read"),
            ),
            CommandKind::EnableMulti => {
                diag::push(found, ignored("`enable multi` connects to no master").help(SINGLE_CLIENT));
            }
            CommandKind::DoMultiSync => {
                diag::push(
                    found,
                    ignored("`domultisync` waits for the ranks of the run, and `value` is not used")
                        .help(SINGLE_CLIENT),
                );
            }
            CommandKind::DefineFileset(def) if !def.single && def.attrs.get("dirwidth").is_none() => {
                let name = def.attrs.name().map_or(String::new(), |name| format!(" `{name}`"));
                let what = format!("file set{name} has no `dirwidth=`");
                diag::push(
                    found,
                    Diagnostic::warning(Code::DirectoryWidth, def.span, what).help(
                        "each file gets a separate directory; give the number of files in a directory: `dirwidth=20`",
                    ),
                );
            }
            _ => {}
        }
    }
}

/// Returns the warning that a debug level has no effect.
pub fn debug_ignored(span: Span) -> Diagnostic {
    Diagnostic::warning(Code::Ignored, span, "`debug` has no effect")
        .help("`-v` shows more, `--quiet` less; a report is never hidden")
}

/// Reports values that can't be times, whatever the values of variables are.
fn times(commands: &[Command], found: &mut Vec<Diagnostic>) {
    for command in visit::all(commands) {
        match &command.kind {
            CommandKind::Run { seconds: Some(e), .. } => time("run", e, false, found),
            CommandKind::Sleep(e) => time("sleep", e, false, found),
            CommandKind::Warmup(e) => time("warmup", e, false, found),
            CommandKind::PsRun { period, seconds, .. } => {
                period.iter().for_each(|e| time("psrun", e, true, found));
                seconds.iter().for_each(|e| time("psrun", e, false, found));
            }
            _ => {}
        }
    }
}

fn time(word: &str, value: &Spanned<Expr>, negative: bool, found: &mut Vec<Diagnostic>) {
    let what = match &value.node {
        Expr::Text(parts) => match expr::plain_text(parts) {
            Some(text) if text.trim().parse::<f64>().is_err() => format!("the text `{text}`"),
            _ => return,
        },
        Expr::Bool(_) => "a switch".to_owned(),
        Expr::Random(_) => "a random variable".to_owned(),
        Expr::Table(_) => "a table".to_owned(),
        Expr::Int(n @ ..0) if !negative => n.to_string(),
        _ => return,
    };
    let message = format!("`{word}` takes a number of seconds, not {what}");
    diag::push(
        found,
        Diagnostic::error(Code::WrongType, value.span, message).help("write a number, such as `60`, or a variable"),
    );
}

#[derive(Default)]
struct DefinedNames {
    filesets: IndexSet<String>,
    targets: IndexSet<String>,
    variables: IndexSet<String>,
    /// Variables that are set elsewhere, or to something else than a number above 0.
    uncounted: HashSet<String>,
    loads: bool,
    /// Whether a name depends on a variable, so that not all names are known.
    open_filesets: bool,
    open_targets: bool,
}

impl DefinedNames {
    fn gather(&mut self, commands: &[Command]) {
        for command in visit::all(commands) {
            match &command.kind {
                CommandKind::Set { name, value, .. } => {
                    self.variables.insert(name.node.clone());
                    if !matches!(value.node, Expr::Int(1..)) {
                        self.uncounted.insert(name.node.clone());
                    }
                }
                CommandKind::ForEach { name, .. } => {
                    self.variables.insert(name.node.clone());
                    self.uncounted.insert(name.node.clone());
                }
                CommandKind::DefineFileset(def) => match def.attrs.name() {
                    Some(name) => {
                        self.filesets.insert(name);
                    }
                    None => self.open_filesets = true,
                },
                CommandKind::DefineProcess(def) => {
                    for thread in &def.threads {
                        self.measured(&thread.attrs);
                        self.flowops(&thread.flowops);
                    }
                }
                CommandKind::DefineFlowop(def) => {
                    self.measured(&def.attrs);
                    self.flowops(&def.flowops);
                }
                CommandKind::Load(_) => self.loads = true,
                _ => {}
            }
        }
    }

    /// Whether the process that a command defines, if it defines one, certainly has an instance. In another one names are
    /// not looked up, as in Filebench, which does that when an instance starts; the plan knows the number.
    fn surely_starts(&self, kind: &CommandKind) -> bool {
        let CommandKind::DefineProcess(process) = kind else { return true };
        match process.attrs.get("instances").map(|used| &used.value.node) {
            None | Some(Expr::Int(1..)) => true,
            Some(Expr::Var(variable)) => !self.uncounted.contains(&variable.name),
            Some(_) => false,
        }
    }

    /// Adds the name of the row that `measure=` makes.
    fn measured(&mut self, attrs: &Attrs) {
        match (attrs.get("measure"), attrs.constant_text("measure")) {
            (_, Some(name)) => _ = self.targets.insert(name.node),
            (Some(_), None) => self.open_targets = true,
            (None, None) => {}
        }
    }

    fn flowops(&mut self, flowops: &[FlowopDef]) {
        for flowop in flowops {
            match flowop.attrs.name() {
                Some(name) => {
                    self.targets.insert(name);
                }
                None => self.open_targets = true,
            }
        }
    }
}

/// Number of misspelt names that are compared with the known ones.
const MOST_COMPARED: u32 = 100;

struct Checker<'a> {
    names: &'a DefinedNames,
    open: bool,
    found: &'a mut Vec<Diagnostic>,
    reported: HashSet<(String, Span)>,
    /// Number of names that have been compared with the known ones.
    compared: u32,
}

impl Checker<'_> {
    fn commands(&mut self, commands: &[Command]) {
        // A process without an instance may be the only one that uses a composite.
        let all_start = visit::all(commands).all(|command| self.names.surely_starts(&command.kind));
        for command in visit::all(commands) {
            let locals: Vec<&str> = match &command.kind {
                CommandKind::DefineFlowop(def) => def.parameters.iter().map(|p| p.name.node.as_str()).collect(),
                _ => Vec::new(),
            };
            let looks_up = match &command.kind {
                CommandKind::DefineFlowop(_) => all_start,
                kind => self.names.surely_starts(kind),
            };
            visit::parts(&command.kind, &mut |part| match part {
                CommandPart::Set(_) | CommandPart::SetField(_) => {}
                CommandPart::Value(value) | CommandPart::Time(value) | CommandPart::Load(value) => {
                    self.expr(value, &[]);
                }
                CommandPart::Shown(text) | CommandPart::Usage(text) => self.shown(text),
                CommandPart::Shell(text) => self.shell(text),
                CommandPart::Attr(used, attrs) => self.attr(used, attrs, &locals, looks_up),
                CommandPart::Parameter(parameter) => parameter.value.iter().for_each(|value| self.expr(value, &[])),
                CommandPart::Argument(argument) => argument.value.iter().for_each(|value| self.expr(value, &locals)),
            });
        }
    }

    /// Checks an attribute. `looks_up`: the names of file sets and targets must exist.
    fn attr(&mut self, used: &AttrUse, attrs: &Attrs, locals: &[&str], looks_up: bool) {
        if used.attr.kind != Kind::Variable {
            self.expr(&used.value, locals);
        }
        match used.attr.kind {
            Kind::Fileset if looks_up => self.name(attrs, used.attr.name, true),
            Kind::Target if looks_up => self.name(attrs, used.attr.name, false),
            _ => {}
        }
    }

    fn name(&mut self, attrs: &Attrs, attr: &str, fileset: bool) {
        let Some(written) = attrs.constant_text(attr) else { return };
        let (known, open) = if fileset {
            (&self.names.filesets, self.names.open_filesets)
        } else {
            (&self.names.targets, self.names.open_targets)
        };
        // `outer.inner` names a flowop inside a composite.
        let last = written.node.rsplit('.').next().unwrap_or_default();
        if open || self.open || known.contains(&written.node) || (!fileset && known.contains(last)) {
            return;
        }
        let (code, message, help) = if fileset {
            (
                Code::UnknownFileset,
                format!("no file set or file is called `{}`", written.node),
                "define it with `define fileset name=…`",
            )
        } else {
            (
                Code::UnknownTarget,
                format!("no flowop is called `{}`", written.node),
                "`target=` takes the `name=` of a flowop of this script",
            )
        };
        let d = Diagnostic::error(code, written.span, message);
        let d = d.help(diag::did_you_mean(
            near(&mut self.compared, &written.node, known.iter().map(String::as_str)),
            || help.to_owned(),
        ));
        diag::push(self.found, d);
    }

    /// Checks a text that is only shown: as in Filebench, an undefined variable is shown as it is written.
    fn shown(&mut self, value: &Spanned<Expr>) {
        // A keyword of a version control system is not meant as a variable: `$Revision: 1.24 $`.
        if let Expr::Text(parts) = &value.node {
            for pair in parts.windows(2) {
                if let [TextPart::Variable(word), TextPart::Text(after)] = pair
                    && after.starts_with(": ")
                    && after.contains(" $")
                {
                    self.reported.insert((word.node.name.clone(), word.span));
                }
            }
        }
        self.each_missing(value, &[], |variable, span| {
            let shown = expr::show(variable);
            let message = format!("nothing sets `{shown}`: the text shows it as it is written");
            Diagnostic::warning(Code::UnsetInText, span, message)
        });
        // The environment of the run may be another one, but is mostly this one.
        expr::variables(value, &mut |variable, span| {
            let is_unset =
                || !self.names.variables.contains(&variable.name) && std::env::var_os(&variable.name).is_none();
            if variable.form == VariableForm::Paren && !self.open && is_unset() {
                let shown = expr::show(variable);
                let message = format!("the environment has no `{shown}`: the text shows it as it is written");
                let help = format!("start wmlrun with it: `{}=… wmlrun …`", variable.name);
                diag::push(self.found, Diagnostic::warning(Code::UnsetInText, span, message).help(help));
            }
        });
    }

    /// Checks a command for the shell: an undefined variable may be one of the shell, which gets it as it is written.
    fn shell(&mut self, value: &Spanned<Expr>) {
        self.each_missing(value, &[], |variable, span| {
            let shown = expr::show(variable);
            let message = format!("nothing sets `{shown}`: it must be a variable of the shell");
            Diagnostic::warning(Code::UnsetInText, span, message)
                .help(format!("if it is a variable of the shell, write `\\{shown}`"))
        });
    }

    fn expr(&mut self, value: &Spanned<Expr>, locals: &[&str]) {
        self.each_missing(value, locals, |variable, span| {
            let message = format!("nothing sets `{}`", expr::show(variable));
            Diagnostic::error(Code::UndefinedVariable, span, message)
        });
    }

    /// Reports every variable of an expression that nothing sets.
    fn each_missing(&mut self, value: &Spanned<Expr>, locals: &[&str], report: impl Fn(&Variable, Span) -> Diagnostic) {
        if self.open {
            return;
        }
        let names = self.names;
        expr::variables(value, &mut |variable, span| {
            let known = names.variables.contains(&variable.name) || locals.contains(&variable.name.as_str());
            // `$(NAME)` may be a variable of the environment and `${name}` an internal value.
            if known || variable.form != VariableForm::Plain || self.found.len() >= 2 * diag::MOST {
                return;
            }
            if !self.reported.insert((variable.name.clone(), span)) {
                return;
            }
            let all = names.variables.iter().map(String::as_str).chain(locals.iter().copied());
            let d = report(variable, span);
            let name = &variable.name;
            diag::push(
                self.found,
                match near(&mut self.compared, name, all) {
                    Some(near) => d.help(format!("did you mean `${near}`?")),
                    None => d.help(format!("set it before the run: `set ${name} = …`, or `--set {name}=…`")),
                },
            );
        });
    }
}

/// Returns the nearest name, for the first [`MOST_COMPARED`] misspelt ones.
fn near<'a>(compared: &mut u32, name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    *compared += 1;
    if *compared > MOST_COMPARED {
        return None;
    }
    diag::nearest(name, known)
}

/// Reports file sets, composites and processes with the name of another one. Two processes of one name both run, as in
/// Filebench.
fn duplicates(commands: &[Command], found: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<(&str, String), Span> = HashMap::new();
    let mut first_of = |what: &'static str, attrs: &Attrs| {
        let name = attrs.constant_text("name")?;
        Some((seen.insert((what, name.node.clone()), name.span)?, name))
    };
    for command in commands {
        let diagnostic = match &command.kind {
            CommandKind::DefineFileset(def) => first_of("file set", &def.attrs).map(|(first, name)| {
                Diagnostic::error(Code::Duplicate, name.span, format!("a second file set called `{}`", name.node))
                    .also(first, "the first")
                    .help("give it another name: results are reported separately by name")
            }),
            CommandKind::DefineFlowop(def) => first_of("flowop", &def.attrs).map(|(first, name)| {
                let message = format!("a second composite flowop called `{}`", name.node);
                Diagnostic::error(Code::Duplicate, name.span, message)
                    .also(first, "the first")
                    .help("give it another name: `flowop` with this name can mean only one of them")
            }),
            CommandKind::DefineProcess(def) => first_of("process", &def.attrs).map(|(first, name)| {
                Diagnostic::warning(Code::RepeatedName, name.span, format!("a second process called `{}`", name.node))
                    .also(first, "the first")
                    .help("give it another name; results call it by its name with a number")
            }),
            _ => None,
        };
        if let Some(diagnostic) = diagnostic {
            diag::push(found, diagnostic);
        }
    }
}
