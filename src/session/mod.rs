//! Commands one after another: what a script, a profile or a prompt does.
//!
//! In: source texts and settings. Out: runs in the document of a [`Runner`], and words to a [`Front`]. A session keeps what was defined and
//! set; each run reads the variables as they are then. The script runner and the shell are two front ends of it.
//! Deliberately absent: the command line, terminals, formats of reports.

mod checked;
mod commands;
mod doubts;
pub mod library;
mod loading;
mod run;
mod stats;
mod unused;

pub use crate::measure::{Front, Settings, Status};
pub(crate) use loading::Loaded;
pub(crate) use run::RunOptions;

use crate::diag::{Code, Diagnostic, Severity, has_errors};
use crate::flowop;
use crate::measure::{FIGURES, Runner, Watch};
use crate::model::{self, Command, CommandKind, Expr, Known, Scope, SetBy, TextPart};
use crate::plan::{self, Definitions, FRESH, Plan};
use crate::source::{FileId, SourceMap, Span, Spanned};
use crate::spec::predefined::{self, predefined_names};
use crate::spec::{Dialect, SpecTable};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// What of a text is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// What it defines and sets.
    Definitions,
    /// The same, and what texts that it loads would do besides is reported.
    Check,
}

/// Where the commands are.
#[derive(Default)]
pub(crate) struct Flow {
    /// A run has been made: a script without any gets one.
    has_run: bool,
    /// `quit` was said.
    pub(crate) quit: bool,
    /// A statement of a prompt is being done.
    pub(crate) typing: bool,
}

/// Commands one after another, and what they have defined and set.
pub struct Session {
    /// All texts so far.
    pub map: SourceMap,
    /// All variables.
    pub scope: Scope,
    /// All definitions.
    pub definitions: Definitions,
    /// What measures, with the settings of the command line and the result so far.
    pub runner: Runner,
    pub(crate) table: SpecTable,
    pub(crate) options: RunOptions,
    pub(crate) loaded: Loaded,
    pub(crate) flow: Flow,
    extent: Extent,
    /// What the last plan was warned of.
    doubts: Vec<Diagnostic>,
}

impl Session {
    /// A session with nothing in it. `interrupt` is raised by signals.
    pub fn new(settings: Settings, interrupt: Arc<AtomicUsize>) -> Self {
        let mut scope = Scope::default();
        let fresh = Expr::Text(vec![TextPart::Text(FRESH.to_owned())]);
        // A literal can't fail to be set.
        let _ = scope.set(predefined::DIR.name, Spanned::new(fresh, Span::default()), SetBy::Default);
        // Once: a size made of them is the same for `create files`, for the run after it, and for the next one.
        for (variable, value) in crate::measure::predefined() {
            scope.predefine(variable.name, value);
        }
        scope.set_internal("hostname", crate::measure::hostname());
        // Before anything is measured, all is 0.
        scope.set_internal("rate", "0".to_owned());
        for name in FIGURES {
            scope.set_internal(&format!("stats.{name}"), "0".to_owned());
        }
        Self {
            map: SourceMap::new(),
            scope,
            definitions: Definitions::default(),
            runner: Runner::new(settings, interrupt),
            table: flowop::spec_table(),
            options: RunOptions::default(),
            loaded: Loaded::default(),
            flow: Flow::default(),
            extent: Extent::default(),
            doubts: Vec::new(),
        }
    }

    /// What it waits for, for who watches that it goes on.
    pub fn watch(&self) -> Arc<Watch> {
        self.runner.watch()
    }

    /// The settings of the command line become variables that no `set` changes.
    pub fn apply_sets(&mut self, front: &mut dyn Front) -> Status {
        for (name, value) in self.runner.settings.sets.clone() {
            let expr = match self.parse_value(&name, &value) {
                Ok(expr) => expr,
                Err(found) if found.is_empty() => {
                    front.error(
                        None,
                        &format!("`--set {name}={value}` is no assignment"),
                        Some("write `--set NAME=VALUE`, such as `--set nfiles=10k`"),
                    );
                    return Status::Script;
                }
                Err(found) => {
                    front.diagnostics(&self.map, &found);
                    return Status::Script;
                }
            };
            if let Err(d) = self.scope.set(&name, expr, SetBy::CommandLine) {
                front.diagnostics(&self.map, &[d]);
                return Status::Script;
            }
        }
        Status::Done
    }

    /// A value as typed on the command line: what stands right of `set $name =`, or else a text. What looks like a random
    /// variable and is a wrong one is no text; nothing to tell means that the name is none.
    fn parse_value(&mut self, name: &str, value: &str) -> Result<Spanned<Expr>, Vec<Diagnostic>> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(good) || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Vec::new());
        }
        // Read as a statement, shown as it was typed: in both, everything stands at the same place.
        let mut statements = self.map.clone();
        let file = statements.add("<command line>", format!("set  ${name}={value}"));
        let shown = format!("--set {name}={value}");
        let span = Span::new(file, shown.len() - value.len(), shown.len());
        self.map.add("<command line>", shown);
        let known = Known { open: true, ..Known::default() };
        let (model, found) = model::check(&statements, file, &self.table, Some(Dialect::Fsl), &known);
        if let ([Command { kind: CommandKind::Set { value, .. }, .. }], false) =
            (model.commands.as_slice(), has_errors(&found))
        {
            return Ok(value.clone());
        }
        if ["randvar(", "cvar("].iter().any(|call| value.trim_start().starts_with(call)) {
            return Err(found);
        }
        Ok(Spanned::new(Expr::Text(vec![TextPart::Text(value.to_owned())]), span))
    }

    /// What is known before a text is checked.
    pub fn known(&self, open: bool) -> Known {
        let mut known = Known {
            variables: self.scope.bindings().map(|b| b.name.clone()).chain(predefined_names()).collect(),
            composites: self.definitions.composites.iter().map(|c| c.name.node.clone()).collect(),
            open,
            ..Known::default()
        };
        known.filesets =
            self.definitions.filesets.iter().filter_map(|f| f.attrs.constant_text("name")).map(|n| n.node).collect();
        let flowops = self.definitions.processes.iter().flat_map(|p| p.threads.iter().flat_map(|t| t.flowops.iter()));
        known.targets = flowops.filter_map(|f| f.attrs.constant_text("name")).map(|n| n.node).collect();
        known
    }

    /// Checks a text; its commands, or `None` and the errors shown.
    pub fn check(&mut self, file: FileId, open: bool, front: &mut dyn Front) -> Option<model::Model> {
        let dialect = self.runner.settings.dialect.or(open.then_some(self.loaded.dialect));
        let (model, found) = model::check(&self.map, file, &self.table, dialect, &self.known(open));
        if !found.is_empty() {
            front.diagnostics(&self.map, &found);
        }
        (!has_errors(&found)).then_some(model)
    }

    /// Runs a whole script: all of its commands, then a run if there was none.
    pub fn script(&mut self, name: &str, text: &str, front: &mut dyn Front) -> Status {
        let file = self.map.add(name, text);
        let Some(model) = self.check(file, false, front) else { return Status::Script };
        self.describe_script(file, &model);
        self.loaded.whole = true;
        if let Some(d) = self.refused(&model.commands) {
            front.diagnostics(&self.map, &[d]);
            return Status::Refused;
        }
        self.lies_in(name);
        let applied = self.apply_sets(front);
        if applied != Status::Done {
            return applied;
        }
        let unused = self.unused_settings(&model);
        if !unused.is_empty() {
            unused.iter().for_each(|(text, help)| front.error(None, text, Some(help)));
            // A mistake of the command line hides none of the script's.
            let found = self.check_values(&model, name);
            front.diagnostics(
                &self.map,
                &found.into_iter().filter(|d| d.severity == Severity::Error).collect::<Vec<_>>(),
            );
            return Status::Script;
        }
        self.loaded.reads = model::lint::read_beside_load(&model.commands);
        let doubts = model::lint::lint(&model, &self.scope, true);
        if !doubts.is_empty() {
            front.diagnostics(&self.map, &doubts);
        }
        let status = self.commands(&model.commands, front);
        if status != Status::Done || self.flow.quit || self.flow.has_run || self.runner.is_live() {
            if status == Status::Done && self.flow.has_run && self.runner.document.runs.is_empty() {
                front.note("nothing was measured: `run N`, or `stats snap` while processes live, makes it a result");
            }
            return status;
        }
        if self.definitions.processes.is_empty() {
            // A script that prints, makes files or loads has done what it was for.
            if model.commands.iter().all(|c| only_defines(&c.kind)) {
                let d = Diagnostic::error(Code::NothingToRun, Span::new(file, 0, 0), "the script defines no process")
                    .help("add `define process name=… { thread … { flowop … } }`");
                front.diagnostics(&self.map, &[d]);
                return Status::Script;
            }
            return status;
        }
        self.run(None, Span::new(file, 0, 0), front).max(status)
    }

    /// Reads a whole script for its plan: everything but what runs or touches the disk.
    pub fn read(&mut self, name: &str, text: &str, front: &mut dyn Front) -> Status {
        let file = self.map.add(name, text);
        let Some(model) = self.check(file, false, front) else { return Status::Script };
        self.describe_script(file, &model);
        self.loaded.beside = library::folder_of(name);
        let applied = self.apply_sets(front);
        if applied != Status::Done {
            return applied;
        }
        let unused = self.unused_settings(&model);
        if !unused.is_empty() {
            unused.iter().for_each(|(text, help)| front.error(None, text, Some(help)));
            return Status::Script;
        }
        self.loaded.reads = model::lint::read_beside_load(&model.commands);
        self.extent = Extent::Definitions;
        self.lies_in(name);
        self.commands(&definitions_of(&model.commands), front)
    }

    fn describe_script(&mut self, file: FileId, model: &model::Model) {
        let source = self.map.file(file);
        self.loaded.dialect = model.dialect;
        self.loaded.notes.extend(library::notes(&source.text).map(str::to_owned));
        if self.loaded.whole {
            return;
        }
        self.runner.describe_script(&source.name, &source.text, (model.dialect.name(), &model.dialect_reason));
        let base = source.name.rsplit('/').next().unwrap_or_default();
        let base = base.strip_suffix(".f").or_else(|| base.strip_suffix(".wml")).unwrap_or(base).to_owned();
        self.scope.set_internal("scriptname", base);
    }

    /// The plan of what is defined, with the variables as they are; `None` and the errors shown.
    pub fn plan(&mut self, front: &mut dyn Front) -> Option<Plan> {
        let event_rate = match self.event_rate_now() {
            Ok(rate) => rate,
            Err(d) => {
                front.diagnostics(&self.map, &self.values_named(vec![*d]));
                return None;
            }
        };
        self.scope.renew_budget();
        let options = plan::CompileOptions { mode: self.options.mode, event_rate };
        match plan::compile(&self.definitions, &self.scope, &self.table, options) {
            Ok((plan, warnings)) => {
                // A script that makes its files before it runs has two plans, and one doubt.
                let new: Vec<Diagnostic> = warnings.iter().filter(|d| !self.doubts.contains(d)).cloned().collect();
                self.doubts = warnings;
                if !new.is_empty() {
                    front.diagnostics(&self.map, &self.values_named(new));
                }
                Some(plan)
            }
            Err(found) => {
                front.diagnostics(&self.map, &self.values_named(found));
                None
            }
        }
    }

    /// Diagnostics about values, each with the place where the value was set.
    fn values_named(&self, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
        model::with_provenance(found, &self.scope, &self.map)
    }

    fn event_rate_now(&self) -> Result<Option<u64>, Box<Diagnostic>> {
        let Some(expr) = &self.options.event_rate else { return Ok(None) };
        let value = model::eval(expr, &self.scope).map_err(Box::new)?;
        match flowop::args::int(&value) {
            // 0 is no limit, not a standstill.
            Some(rate) => Ok(Some(rate).filter(|rate| *rate > 0)),
            None => Err(Box::new(
                Diagnostic::error(Code::WrongType, expr.span, format!("the event rate is {}", value.kind()))
                    .help("give a number of events a second"),
            )),
        }
    }
}

/// The commands that define and set, and nothing else.
fn definitions_of(commands: &[Command]) -> Vec<Command> {
    let defines = |kind: &CommandKind| only_defines(kind) || matches!(kind, CommandKind::Load(_));
    let mut found = Vec::new();
    for command in commands {
        match &command.kind {
            // With the first of its values: what is wrong for the others, their turn will tell.
            CommandKind::ForEach { name, values, body } => {
                let first = values.first().cloned();
                found.extend(
                    first.map(|value| Command {
                        span: command.span,
                        kind: CommandKind::Set { name: name.clone(), value },
                    }),
                );
                found.extend(definitions_of(body));
            }
            kind if defines(kind) => found.push(command.clone()),
            _ => {}
        }
    }
    found
}

/// Whether a command changes what later ones do, and does nothing else.
fn only_defines(kind: &CommandKind) -> bool {
    matches!(
        kind,
        CommandKind::Set { .. }
            | CommandKind::SetField { .. }
            | CommandKind::SetMode(_)
            | CommandKind::SetNoUseStats
            | CommandKind::Debug
            | CommandKind::Usage(_)
            | CommandKind::EnableLatHist
            | CommandKind::DefineFileset(_)
            | CommandKind::DefineProcess(_)
            | CommandKind::DefineFlowop(_)
            | CommandKind::EventGen(_)
    )
}

/// A list of names for a message.
fn listed<S: AsRef<str>>(names: &[S]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(|n| format!("`{}`", n.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Whether any of them stops a command.
fn any_error(found: &[Diagnostic]) -> bool {
    found.iter().any(|d| d.severity == Severity::Error)
}
