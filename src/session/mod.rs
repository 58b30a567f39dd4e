//! Commands one after another: what a script, a profile or a prompt does.
//!
//! In: source texts and settings. Out: runs in a [`Document`], and words to a [`Front`]. A session keeps what was defined and
//! set; each run reads the variables as they are then. The script runner and the shell are two front ends of it.
//! Deliberately absent: the command line, terminals, formats of reports.

mod provenance;
mod cache;
mod checked;
mod commands;
mod direct;
mod doubts;
pub mod library;
mod live;
mod outputs;
mod publish;
mod record;
mod results;
mod run_notes;
mod run;
mod sets;
mod streams;
mod unused;

pub use crate::measure::{Front, Settings, Stage, Status, Waiting, Watch, file_system};
pub use publish::{redact_script, sha256};
pub use record::day_and_time;
use run::RunTime;

use crate::diag::{Code, Diagnostic, Severity, has_errors};
use crate::disk::prepare::Prepared;
use crate::disk::{Fileset, Stamp};
use crate::flowop;
use crate::measure::collector::Collector;
use crate::measure::leftovers::Leftover;
use crate::model::{self, Command, CommandKind, Expr, Known, QuitMode, Scope, SetBy};
use crate::output::{Appender, ResultPlace, Results};
use crate::plan::{self, Definitions, FRESH, Plan};
use crate::report::json;
use crate::result::Document;
use crate::source::{FileId, SourceMap, Span, Spanned};
use crate::spec::{Dialect, SpecTable};
use crate::syntax::ast::TextPart;
use crate::util::ordered::Ordered;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

/// A session.
pub struct Session {
    /// All texts so far.
    pub map: SourceMap,
    /// All variables.
    pub scope: Scope,
    /// All definitions.
    pub definitions: Definitions,
    /// What the command line decided.
    pub settings: Settings,
    /// The result so far.
    pub document: Document,
    pub(crate) table: SpecTable,
    pub(crate) started: Instant,
    pub(crate) interrupt: Arc<AtomicUsize>,
    pub(crate) mode: QuitMode,
    pub(crate) event_rate: Option<Spanned<Expr>>,
    /// What the last plan was warned of.
    pub(crate) doubts: Vec<Diagnostic>,
    pub(crate) lathist: bool,
    pub(crate) dialect: Dialect,
    pub(crate) usage: Vec<Spanned<Expr>>,
    /// Variables that loaded scripts set, in order: what `vars` of 1.4 prints.
    pub(crate) script_variables: Ordered,
    /// What the texts that were loaded have cost: bytes, and a charge for each.
    pub(crate) load_cost: usize,
    /// The time of a `run N` in a text that was only loaded.
    pub(crate) default_seconds: Option<Spanned<Expr>>,
    pub(crate) warm_next: Option<Duration>,
    /// A run has been made: a script without any gets one.
    pub(crate) has_run: bool,
    pub(crate) quit: bool,
    pub(crate) nested: usize,
    pub(crate) sets: Vec<ReadySet>,
    /// Roots of trees that this session has made or brought to their definition, with what their data is like.
    pub(crate) roots: BTreeMap<PathBuf, String>,
    /// A run has written since the disks were quiesced.
    pub(crate) wrote: bool,
    pub(crate) fresh: Option<PathBuf>,
    /// Where there were to be trees: the directories of their roots.
    pub(crate) places: BTreeSet<PathBuf>,
    live: Option<live::Live>,
    pub(crate) json: Option<json::Writer>,
    /// Where what the script writes goes.
    pub(crate) results: Results,
    /// What `stats directory` said.
    pub(crate) stats_dir: Option<ResultPlace>,
    pub(crate) trace: Option<Appender>,
    /// Operations of a thread that there is memory to trace.
    pub(crate) most_traced: usize,
    /// Nothing is run: of loaded scripts only what they define and set is done.
    pub(crate) definitions_only: bool,
    /// A script is checked: what loaded ones would do besides is reported, not refused.
    pub(crate) checking: bool,
    pub(crate) collector: Option<Collector>,
    /// Where the script lies: what it loads is sought there first.
    pub(crate) beside: Option<PathBuf>,
    /// A whole script is run: what it loads does not take its place in the result.
    pub(crate) whole: bool,
    /// Runs whose operations are in the trace file.
    pub(crate) traced: usize,
    /// Placeholders of what the result leaves out.
    redaction: publish::Redaction,
    /// Trees that were let go and stay where they are.
    pub(crate) leftovers: Vec<Leftover>,
    /// What a whole script reads that loads one text; `None` if it loads none or several, and what those read is not known.
    pub(crate) reads: Option<std::collections::HashSet<String>>,
    /// A statement of a prompt is being done.
    pub(crate) typing: bool,
    /// Names and texts of what was loaded, in order.
    pub(crate) texts: Vec<(String, FileId)>,
    /// The time of the last run, as it was asked for; `None` before there was one.
    pub(crate) last_run: Option<RunTime>,
    pub(crate) watch: Arc<Watch>,
    /// How what was done so far has ended.
    pub(crate) worst: Status,
    /// Threads of a run are left behind in their calls.
    pub(crate) stalled: bool,
    /// The result file could not be written, and the result went elsewhere.
    pub(crate) result_lost: bool,
}

/// A file set that is on the disk.
pub(crate) struct ReadySet {
    set: Arc<Fileset>,
    prepared: Prepared,
    /// What it was made from, in its printed form.
    made_from: String,
    /// The tree may be another than the definition says.
    changed: bool,
    /// The marker's when the set was let go of after its last run; `None` where the tree may have been changed since.
    stamp: Option<Stamp>,
}

impl Session {
    /// A session with nothing in it. `interrupt` is raised by signals.
    pub fn new(settings: Settings, interrupt: Arc<AtomicUsize>) -> Self {
        let mut scope = Scope::default();
        let fresh = Expr::Text(vec![TextPart::Text(FRESH.to_owned())]);
        // A literal can't fail to be set.
        let _ = scope.set("dir", Spanned::new(fresh, Span::default()), SetBy::Default);
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        scope.set_internal("hostname", host);
        // Before anything is measured, all is 0.
        scope.set_internal("rate", "0".to_owned());
        for name in record::INTERNAL {
            scope.set_internal(&format!("stats.{name}"), "0".to_owned());
        }
        let results = Results::new(&settings.results, &settings.allow_write);
        let document = Document {
            command_line: publish::command_line(&settings),
            process_id: std::process::id(),
            seed: settings.seed,
            layout_seed: settings.layout_seed,
            ..Document::default()
        };
        Self {
            map: SourceMap::new(),
            scope,
            definitions: Definitions::default(),
            settings,
            document,
            table: flowop::spec_table(),
            started: Instant::now(),
            interrupt,
            mode: QuitMode::default(),
            event_rate: None,
            doubts: Vec::new(),
            lathist: false,
            dialect: Dialect::default(),
            usage: Vec::new(),
            script_variables: Ordered::default(),
            load_cost: 0,
            default_seconds: None,
            warm_next: None,
            has_run: false,
            quit: false,
            nested: 0,
            sets: Vec::new(),
            roots: BTreeMap::new(),
            wrote: false,
            fresh: None,
            places: BTreeSet::new(),
            live: None,
            json: None,
            results,
            stats_dir: None,
            trace: None,
            most_traced: usize::MAX,
            definitions_only: false,
            checking: false,
            collector: None,
            beside: None,
            whole: false,
            traced: 0,
            redaction: publish::Redaction::default(),
            leftovers: Vec::new(),
            reads: None,
            typing: false,
            texts: Vec::new(),
            last_run: None,
            watch: Arc::default(),
            worst: Status::Done,
            stalled: false,
            result_lost: false,
        }
    }

    /// The settings of the command line become variables that no `set` changes.
    pub fn apply_sets(&mut self, front: &mut dyn Front) -> Status {
        for (name, value) in self.settings.sets.clone() {
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
            variables: self.scope.bindings().map(|b| b.name.clone()).collect(),
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
        let dialect = self.settings.dialect.or(open.then_some(self.dialect));
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
        self.whole = true;
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
        self.reads = model::lint::read_beside_load(&model.commands);
        let doubts = model::lint::lint(&model, &self.scope, true);
        if !doubts.is_empty() {
            front.diagnostics(&self.map, &doubts);
        }
        let status = self.commands(&model.commands, front);
        if status != Status::Done || self.quit || self.has_run || self.live.is_some() {
            if status == Status::Done && self.has_run && self.document.runs.is_empty() {
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
        self.beside = library::folder_of(name);
        let applied = self.apply_sets(front);
        if applied != Status::Done {
            return applied;
        }
        let unused = self.unused_settings(&model);
        if !unused.is_empty() {
            unused.iter().for_each(|(text, help)| front.error(None, text, Some(help)));
            return Status::Script;
        }
        self.reads = model::lint::read_beside_load(&model.commands);
        self.definitions_only = true;
        self.lies_in(name);
        self.commands(&definitions_of(&model.commands), front)
    }

    fn describe_script(&mut self, file: FileId, model: &model::Model) {
        let source = self.map.file(file);
        self.dialect = model.dialect;
        if self.whole {
            return;
        }
        let script = &mut self.document.script;
        script.path.clone_from(&source.name);
        script.text.clone_from(&source.text);
        script.sha256 = sha256(&source.text);
        script.dialect = model.dialect.name().to_owned();
        script.dialect_reason.clone_from(&model.dialect_reason);
        let base = source.name.rsplit('/').next().unwrap_or_default();
        let base = base.strip_suffix(".f").or_else(|| base.strip_suffix(".wml")).unwrap_or(base).to_owned();
        self.scope.set_internal("scriptname", base);
        self.publish_script();
    }

    /// The plan of what is defined, with the variables as they are; `None` and the errors shown.
    pub fn plan(&mut self, front: &mut dyn Front) -> Option<Plan> {
        let event_rate = match self.event_rate_now() {
            Ok(rate) => rate,
            Err(d) => {
                front.diagnostics(&self.map, &self.blamed(vec![*d]));
                return None;
            }
        };
        self.scope.renew_budget();
        let options = plan::CompileOptions { mode: self.mode, event_rate };
        match plan::compile(&self.definitions, &self.scope, &self.table, options) {
            Ok((plan, warnings)) => {
                // A script that makes its files before it runs has two plans, and one doubt.
                let new: Vec<Diagnostic> = warnings.iter().filter(|d| !self.doubts.contains(d)).cloned().collect();
                self.doubts = warnings;
                if !new.is_empty() {
                    front.diagnostics(&self.map, &self.blamed(new));
                }
                Some(plan)
            }
            Err(found) => {
                front.diagnostics(&self.map, &self.blamed(found));
                None
            }
        }
    }

    fn event_rate_now(&self) -> Result<Option<u64>, Box<Diagnostic>> {
        let Some(expr) = &self.event_rate else { return Ok(None) };
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

    /// The file sets of a plan as trees, not yet on the disk.
    pub fn trees(&self, plan: &Plan, front: &mut dyn Front) -> Option<Vec<Arc<Fileset>>> {
        let mut sets = Vec::new();
        for spec in &plan.filesets {
            match Fileset::new(spec.clone(), self.settings.layout_seed) {
                Ok(set) => sets.push(Arc::new(set)),
                Err(e) => {
                    front.error(Some(e.code()), &e.to_string(), e.help().as_deref());
                    return None;
                }
            }
        }
        Some(sets)
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
