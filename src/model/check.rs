//! Names: does everything that a text refers to exist, and once only.

use super::expr::{self, Expr};
use super::{Attrs, Command, CommandKind, FlowopDef, Known, Model, Stats};
use crate::diag::{self, Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::spec::{Kind, SpecTable};
use crate::syntax::ast::{Variable, VariableForm};
use indexmap::IndexSet;
use std::collections::{HashMap, HashSet};

/// Reports what the names of a model lack.
pub fn check(model: &Model, _table: &SpecTable, known: &Known, found: &mut Vec<Diagnostic>) {
    without_effect(&model.commands, found);
    times(&model.commands, found);
    let mut names = DefinedNames::default();
    names.filesets.extend(known.filesets.iter().cloned());
    names.targets.extend(known.targets.iter().cloned());
    names.variables.extend(known.variables.iter().cloned());
    names.gather(&model.commands);
    if names.loads {
        // What a loaded text defines is not known here; the run will tell.
        duplicates(&model.commands, found);
        return;
    }
    duplicates(&model.commands, found);
    let mut checker = Checker { names: &names, open: known.open, found, reported: HashSet::new(), compared: 0 };
    checker.commands(&model.commands);
}

/// Reports what is accepted for the sake of old scripts and does nothing, or not what one would think.
fn without_effect(commands: &[Command], found: &mut Vec<Diagnostic>) {
    for command in commands {
        let ignored = |what: &str| Diagnostic::warning(Code::Ignored, command.span, what);
        match &command.kind {
            CommandKind::Debug => diag::push(
                found,
                ignored("`debug` sets nothing here").help("`-v` says more, `--quiet` less; a report is never hidden"),
            ),
            CommandKind::SetNoUseStats => diag::push(
                found,
                ignored("`set mode nousestats` sets nothing here")
                    .help("reading processor times costs next to nothing on Linux; they are always read"),
            ),
            CommandKind::EnableMulti | CommandKind::DoMultiSync => diag::push(
                found,
                ignored("several clients in step are not possible yet")
                    .help("this client goes on by itself; a later version is to keep several wmlruns in step"),
            ),
            CommandKind::DefineFileset(def) if !def.single && def.attrs.get("dirwidth").is_none() => {
                let name = def.attrs.constant_text("name").map_or(String::new(), |n| format!(" `{}`", n.node));
                let what = format!("file set{name} has no `dirwidth=`");
                diag::push(
                    found,
                    Diagnostic::warning(Code::DirectoryWidth, def.span, what)
                        .help("each file gets a directory of its own; say how many a directory holds: `dirwidth=20`"),
                );
            }
            CommandKind::ForEach { body, .. } => without_effect(body, found),
            _ => {}
        }
    }
}

/// Reports times that can be none, whatever the variables are.
fn times(commands: &[Command], found: &mut Vec<Diagnostic>) {
    for command in commands {
        match &command.kind {
            CommandKind::Run { seconds: Some(e), .. } => time("run", e, false, found),
            CommandKind::Sleep(e) => time("sleep", e, false, found),
            CommandKind::Warmup(e) => time("warmup", e, false, found),
            CommandKind::PsRun { period, seconds, .. } => {
                period.iter().for_each(|e| time("psrun", e, true, found));
                seconds.iter().for_each(|e| time("psrun", e, false, found));
            }
            CommandKind::ForEach { body, .. } => times(body, found),
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

/// Calls `each` with the name of every variable that is set or read; a name may come more than once.
pub fn each_variable(commands: &[Command], each: &mut dyn FnMut(&str)) {
    for command in commands {
        match &command.kind {
            CommandKind::Set { name, value } => {
                each(&name.node);
                expr::variables(value, &mut |v, _| each(&v.name));
            }
            CommandKind::SetField { name, value, .. } => {
                each(&name.node);
                expr::variables(value, &mut |v, _| each(&v.name));
            }
            CommandKind::ForEach { name, values, body } => {
                each(&name.node);
                values.iter().for_each(|e| expr::variables(e, &mut |v, _| each(&v.name)));
                each_variable(body, each);
            }
            CommandKind::DefineFileset(def) => of_attrs(&def.attrs, each),
            CommandKind::DefineProcess(def) => {
                of_attrs(&def.attrs, each);
                for thread in &def.threads {
                    of_attrs(&thread.attrs, each);
                    thread.flowops.iter().for_each(|f| of_flowop(f, each));
                }
            }
            CommandKind::DefineFlowop(def) => {
                of_attrs(&def.attrs, each);
                def.parameters
                    .iter()
                    .filter_map(|p| p.value.as_ref())
                    .for_each(|e| expr::variables(e, &mut |v, _| each(&v.name)));
                def.flowops.iter().for_each(|f| of_flowop(f, each));
            }
            CommandKind::Run { seconds: Some(e), .. }
            | CommandKind::Sleep(e)
            | CommandKind::Warmup(e)
            | CommandKind::System(e)
            | CommandKind::Echo(e)
            | CommandKind::Log(e)
            | CommandKind::EventGen(Some(e))
            | CommandKind::Stats(
                Stats::Dump(e) | Stats::XmlDump(e) | Stats::MultiDump(e) | Stats::Directory(e) | Stats::Command(e),
            ) => expr::variables(e, &mut |v, _| each(&v.name)),
            CommandKind::FsCheck { path, fstype } => {
                path.iter().chain(fstype).for_each(|e| expr::variables(e, &mut |v, _| each(&v.name)));
            }
            CommandKind::PsRun { period, seconds, .. } => {
                period.iter().chain(seconds).for_each(|e| expr::variables(e, &mut |v, _| each(&v.name)));
            }
            _ => {}
        }
    }
}

fn of_attrs(attrs: &Attrs, each: &mut dyn FnMut(&str)) {
    attrs.iter().for_each(|used| expr::variables(&used.value, &mut |v, _| each(&v.name)));
}

fn of_flowop(flowop: &FlowopDef, each: &mut dyn FnMut(&str)) {
    of_attrs(&flowop.attrs, each);
    flowop.locals.iter().filter_map(|l| l.value.as_ref()).for_each(|e| expr::variables(e, &mut |v, _| each(&v.name)));
}

#[derive(Default)]
struct DefinedNames {
    filesets: IndexSet<String>,
    targets: IndexSet<String>,
    variables: IndexSet<String>,
    loads: bool,
    /// A name is given by a variable: it can't be told which names there are.
    open_filesets: bool,
    open_targets: bool,
}

impl DefinedNames {
    fn gather(&mut self, commands: &[Command]) {
        for command in commands {
            match &command.kind {
                CommandKind::Set { name, .. } => {
                    self.variables.insert(name.node.clone());
                }
                CommandKind::ForEach { name, body, .. } => {
                    self.variables.insert(name.node.clone());
                    self.gather(body);
                }
                CommandKind::DefineFileset(def) => match def.attrs.constant_text("name") {
                    Some(name) => {
                        self.filesets.insert(name.node);
                    }
                    None => self.open_filesets = true,
                },
                CommandKind::DefineProcess(def) => {
                    def.threads.iter().for_each(|thread| self.flowops(&thread.flowops));
                }
                CommandKind::DefineFlowop(def) => self.flowops(&def.flowops),
                CommandKind::Load(_) => self.loads = true,
                _ => {}
            }
        }
    }

    fn flowops(&mut self, flowops: &[FlowopDef]) {
        for flowop in flowops {
            match flowop.attrs.constant_text("name") {
                Some(name) => {
                    self.targets.insert(name.node);
                }
                None => self.open_targets = true,
            }
        }
    }
}

/// Misspelt names that are compared with the known ones.
const MOST_COMPARED: u32 = 100;

struct Checker<'a> {
    names: &'a DefinedNames,
    open: bool,
    found: &'a mut Vec<Diagnostic>,
    reported: HashSet<(String, Span)>,
    /// Names that were compared with the known ones so far.
    compared: u32,
}

impl Checker<'_> {
    fn commands(&mut self, commands: &[Command]) {
        for command in commands {
            match &command.kind {
                CommandKind::Set { value, .. } | CommandKind::SetField { value, .. } => self.expr(value, &[]),
                CommandKind::Run { seconds: Some(e), .. }
                | CommandKind::Sleep(e)
                | CommandKind::Warmup(e)
                | CommandKind::System(e)
                | CommandKind::EventGen(Some(e))
                | CommandKind::Stats(
                    Stats::Dump(e) | Stats::XmlDump(e) | Stats::MultiDump(e) | Stats::Directory(e) | Stats::Command(e),
                ) => self.expr(e, &[]),
                CommandKind::Echo(e) | CommandKind::Log(e) | CommandKind::Usage(e) => self.shown(e),
                CommandKind::FsCheck { path, fstype } => {
                    path.iter().chain(fstype).for_each(|e| self.expr(e, &[]));
                }
                CommandKind::PsRun { period, seconds, .. } => {
                    for e in period.iter().chain(seconds) {
                        self.expr(e, &[]);
                    }
                }
                CommandKind::ForEach { values, body, .. } => {
                    values.iter().for_each(|v| self.expr(v, &[]));
                    self.commands(body);
                }
                CommandKind::DefineFileset(def) => self.attrs(&def.attrs, &[]),
                CommandKind::DefineProcess(def) => {
                    self.attrs(&def.attrs, &[]);
                    for thread in &def.threads {
                        self.attrs(&thread.attrs, &[]);
                        thread.flowops.iter().for_each(|f| self.flowop(f, &[]));
                    }
                }
                CommandKind::DefineFlowop(def) => {
                    let locals: Vec<&str> = def.parameters.iter().map(|p| p.name.node.as_str()).collect();
                    for p in &def.parameters {
                        p.value.iter().for_each(|v| self.expr(v, &[]));
                    }
                    self.attrs(&def.attrs, &locals);
                    def.flowops.iter().for_each(|f| self.flowop(f, &locals));
                }
                _ => {}
            }
        }
    }

    fn flowop(&mut self, flowop: &FlowopDef, locals: &[&str]) {
        self.attrs(&flowop.attrs, locals);
        for local in &flowop.locals {
            local.value.iter().for_each(|v| self.expr(v, locals));
        }
    }

    fn attrs(&mut self, attrs: &Attrs, locals: &[&str]) {
        for used in attrs.iter() {
            match used.attr.kind {
                Kind::Variable => {}
                Kind::Random => self.random_name(&used.value, locals),
                _ => self.expr(&used.value, locals),
            }
            match used.attr.kind {
                Kind::Fileset => self.name(attrs, used.attr.name, true),
                Kind::Target => self.name(attrs, used.attr.name, false),
                _ => {}
            }
        }
    }

    /// `dirdepthrv=$rv`, where Filebench also takes the bare name.
    fn random_name(&mut self, value: &Spanned<Expr>, locals: &[&str]) {
        self.expr(value, locals);
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
        let d = match near(&mut self.compared, &written.node, known.iter().map(String::as_str)) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help(help),
        };
        diag::push(self.found, d);
    }

    /// A text that is only shown: as in Filebench, a variable that nothing sets stands there as it is written.
    fn shown(&mut self, value: &Spanned<Expr>) {
        self.each_missing(value, &[], |variable, span| {
            let shown = expr::show(variable);
            let message = format!("nothing sets `{shown}`: the text shows it as it is written");
            Diagnostic::warning(Code::UnsetInText, span, message)
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
            // `$(NAME)` may be the environment's and `${name}` an internal value.
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

/// The nearest name, for the first misspelt ones.
fn near<'a>(compared: &mut u32, name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    *compared += 1;
    if *compared > MOST_COMPARED {
        return None;
    }
    diag::nearest(name, known)
}

/// File sets, processes, and threads of a process, need names of their own.
fn duplicates(commands: &[Command], found: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<(&str, String), Span> = HashMap::new();
    let mut note = |what: &'static str, attrs: &Attrs, found: &mut Vec<Diagnostic>| {
        let Some(name) = attrs.constant_text("name") else { return };
        if let Some(first) = seen.insert((what, name.node.clone()), name.span) {
            diag::push(
                found,
                Diagnostic::error(Code::Duplicate, name.span, format!("a second {what} called `{}`", name.node))
                    .also(first, "the first")
                    .help("give it another name: results are reported separately by name"),
            );
        }
    };
    for command in commands {
        match &command.kind {
            CommandKind::DefineFileset(def) => note("file set", &def.attrs, found),
            CommandKind::DefineProcess(def) => note("process", &def.attrs, found),
            _ => {}
        }
    }
}
