//! Executes commands.
//!
//! To add a command of the language: an entry in `model::commands::COMMANDS`; for a new first word a row in
//! `spec::words::STATEMENT_WORDS`; a match arm here, with the work in a file of this module (measuring belongs to
//! `measure`); and its use in a transcript of `tests/cases/repl/`, which a test requires.

use super::run::RunTime;
use super::{Front, Session, Status};
use crate::diag::{Code, Diagnostic, Failure};
use crate::model::{self, Command, CommandKind, Expr, ModelValue, Object, ProcessDef, TextPart, VariableForm};
use crate::plan::FRESH;
use crate::source::{Span, Spanned};
use crate::util::secrets::{self, ENVIRONMENT};
use crate::version::VERSION;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

/// The longest time that a command may give.
pub(crate) const LONGEST_TIME: Duration = Duration::from_secs(1_000_000_000);

/// Why a command was not executed.
pub(crate) enum CommandError {
    Wrong(Box<Diagnostic>),
    Failed(Failure),
}

impl From<Diagnostic> for CommandError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Wrong(Box::new(diagnostic))
    }
}

impl From<Box<Diagnostic>> for CommandError {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Self::Wrong(diagnostic)
    }
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Session {
    /// Executes commands in order, until one fails, a `quit`, or a signal.
    pub fn commands(&mut self, commands: &[Command], front: &mut dyn Front) -> Result<(), Failure> {
        for command in commands {
            // A loop of commands that never wait notices a signal only here.
            if self.runner.watch.signal() != 0 {
                return Err(Failure::unexplained(Status::Interrupted(self.runner.watch.signal())));
            }
            let done = self.command(command, front);
            done.map_err(|e| self.failure(e))?;
            if self.flow.quit {
                break;
            }
        }
        Ok(())
    }

    /// Whether `quit` was executed.
    pub(crate) fn has_quit(&self) -> bool {
        self.flow.quit
    }

    fn failure(&self, e: CommandError) -> Failure {
        match e {
            CommandError::Wrong(found) => self.wrong(self.values_named(vec![*found])),
            CommandError::Failed(failure) => failure,
        }
    }

    /// Sets `${date}` and renews the evaluation budget, at the start of a command.
    pub(crate) fn begin_command(&mut self) {
        self.scope.set_internal("date", crate::measure::now());
        self.scope.renew_budget();
    }

    fn command(&mut self, command: &Command, front: &mut dyn Front) -> Result<(), CommandError> {
        let span = command.span;
        if !super::only_defines(&command.kind) {
            self.begin_command();
        }
        let fixed = model::early::fixed(&command.kind, &mut self.scope);
        match fixed.as_deref().unwrap_or(&command.kind) {
            CommandKind::Set { name, value, .. } => {
                self.loaded.variables.insert(name.node.clone());
                let new = self.scope.binding(&name.node).is_none();
                let before = self.flow.live.value(&name.node, &self.scope);
                self.scope.set(&name.node, value.clone(), self.set_by())?;
                self.variable_set(name, before, front);
                self.warn_without_effect(name, new, front);
            }
            CommandKind::SetField { name, field, value } => {
                let before = self.flow.live.value(&name.node, &self.scope);
                if !self.scope.set_field(&name.node, field.clone(), value.clone()) {
                    let d = Diagnostic::error(
                        Code::WrongType,
                        name.span,
                        format!("`${}` is not a random variable", name.node),
                    )
                    .help("only random variables have fields; make it with `randvar(…)` or `define randvar`");
                    return Err(d.into());
                }
                self.variable_set(name, before, front);
            }
            CommandKind::SetMode(mode) => self.options.mode = *mode,
            // The check of the text has reported that they have no effect.
            CommandKind::SetNoUseStats | CommandKind::Debug | CommandKind::EnableMulti => {}
            CommandKind::DoMultiSync => self.runner.ranks.wait_for_ranks()?,
            CommandKind::DefineFileset(def) => {
                self.definitions.add_fileset(def.clone());
            }
            CommandKind::DefineProcess(def) => {
                self.define_process(def);
            }
            CommandKind::DefineFlowop(def) => {
                self.definitions.add_composite(def.clone());
            }
            CommandKind::Create(Object::Processes) => self.create_processes(front)?,
            CommandKind::Create(_) => {
                // A loaded text only prepares what the text that loads it does.
                self.flow.has_created |= self.loaded.depth == 0;
                self.create_files(front)?;
            }
            CommandKind::Run { seconds, as_is } => self.run_command(seconds.as_ref(), *as_is, span, front)?,
            CommandKind::PsRun { period, seconds, as_is } => {
                self.psrun(period.as_ref(), seconds.as_ref(), *as_is, span, front)?;
            }
            CommandKind::Sleep(seconds) => self.sleep(self.seconds(seconds)?, front)?,
            CommandKind::Warmup(seconds) => {
                let length = self.seconds(seconds)?;
                if self.flow.processes.are_running() {
                    self.sleep(length, front)?;
                } else {
                    self.options.warm_next = Some(length);
                }
            }
            CommandKind::System(text) => self.system(text, span, front)?,
            CommandKind::Echo(text) | CommandKind::Log(text) => {
                let text = self.printed(text)?;
                front.script_line(&text);
            }
            CommandKind::Usage(text) => self.loaded.usage.push(text.clone()),
            CommandKind::Help => self.help(front),
            CommandKind::Vars => {
                front.line(&self.loaded.variables.iter().fold(" ".to_owned(), |all, v| all + v + "  "));
            }
            CommandKind::Version => front.line(&format!("wmlrun {VERSION}")),
            CommandKind::EventGen(rate) => {
                if let Some(rate) = rate {
                    let before = self.options.event_rate.replace(rate.clone());
                    // As everywhere, a variable may be set later, but before the run.
                    if let Err(error) = self.event_rate_now().map(|_| ())
                        && error.code != Code::UndefinedVariable
                    {
                        self.options.event_rate = before;
                        return Err(error.into());
                    }
                    self.follow_event_rate();
                }
            }
            CommandKind::LatHist(is_on) => self.options.lathist = *is_on,
            CommandKind::List(object) => self.list(*object, front),
            CommandKind::Stats(stats) => self.stats(stats, span, front)?,
            CommandKind::Shutdown(object) => {
                // A script with `shutdown` expects no run at its end.
                self.flow.has_run = true;
                match object {
                    Object::Processes => self.shutdown_processes(front)?,
                    _ => self.remove_trees(front)?,
                }
            }
            CommandKind::Load(name) => self.load_command(name, front)?,
            CommandKind::ForEach { name, values, body } => {
                for value in values {
                    let written = model::eval(value, &self.scope)?.print();
                    let now = model::scope::constant(value, &self.scope)?;
                    let literal = Spanned::new(now, value.span);
                    if self.scope.reads_environment(value) {
                        self.scope.note_environment(&name.node);
                    }
                    let before = self.flow.live.value(&name.node, &self.scope);
                    self.scope.set(&name.node, literal, self.set_by())?;
                    self.variable_set(name, before, front);
                    // The command line has precedence.
                    let now = self
                        .scope
                        .value(&name.node)
                        .and_then(Result::ok)
                        .map_or_else(|| written.clone(), |value| value.print());
                    let instead = if now == written { String::new() } else { format!(" instead of {written}") };
                    front.note(&format!("iterating ${}={now}{instead}", name.node));
                    self.commands(body, front)?;
                    if self.flow.quit {
                        break;
                    }
                }
            }
            CommandKind::FsCheck { path, fstype } => self.fscheck(path.as_ref(), fstype.as_ref(), span)?,
            CommandKind::FsFlush => self.runner.sets.fsflush(front)?,
            CommandKind::Quit => self.flow.quit = true,
        }
        Ok(())
    }

    /// Returns the text of an expression to print. An undefined variable is in it as it is written. Values of the
    /// environment are printed, unless the output is kept beside results (`util::secrets`).
    fn printed(&self, text: &Spanned<Expr>) -> Result<String, Diagnostic> {
        self.text_of(text, secrets::are_hidden())
    }

    /// Returns the text of an expression for a shell. An undefined variable is in it as it is written.
    pub(super) fn shell_text(&self, text: &Spanned<Expr>) -> Result<String, Diagnostic> {
        self.text_of(text, false)
    }

    /// Returns the text of an expression. With `masks`, what depends on the environment is masked in it: a number that is
    /// computed from a value can't be found in the text later.
    fn text_of(&self, text: &Spanned<Expr>, masks: bool) -> Result<String, Diagnostic> {
        let shown = |expr: &Spanned<Expr>, written: &dyn Fn() -> String| match model::eval(expr, &self.scope) {
            Ok(_) if masks && self.scope.reads_environment(expr) => Ok(ENVIRONMENT.to_owned()),
            Ok(value) => Ok(value.print()),
            Err(d) if d.code == Code::UndefinedVariable => Ok(written()),
            Err(d) => Err(d),
        };
        let Expr::Text(parts) = &text.node else {
            return shown(text, &|| self.map.slice(text.span).to_owned());
        };
        let mut line = String::new();
        for part in parts {
            match part {
                TextPart::Text(t) => line.push_str(t),
                TextPart::Variable(v) => {
                    // Evaluated as a text, in which `.min` may be text.
                    let expr = Spanned::new(Expr::Text(vec![part.clone()]), v.span);
                    line.push_str(&shown(&expr, &|| model::expr::show(&v.node))?);
                }
            }
            model::expr::check_length(&line, text.span)?;
        }
        Ok(line)
    }

    /// The text to print; an expression that can't be evaluated is returned as it is written.
    fn text_or_written(&self, text: &Spanned<Expr>) -> String {
        self.printed(text).unwrap_or_else(|_| self.map.slice(text.span).to_owned())
    }

    pub(super) fn text(&self, text: &Spanned<Expr>) -> Result<String, Box<Diagnostic>> {
        Ok(model::eval(text, &self.scope).map_err(Box::new)?.print())
    }

    /// Creates the session's temporary directory, if a text that is used outside the program names it. The text has to
    /// be evaluated again then.
    pub(super) fn make_dir_for(&mut self, text: &str) -> Result<(), Failure> {
        if text.contains(FRESH) { self.make_dir_if_used().map(drop) } else { Ok(()) }
    }

    /// Evaluates a time in seconds, from 0 to 10⁹.
    pub(super) fn seconds(&self, seconds: &Spanned<Expr>) -> Result<Duration, Box<Diagnostic>> {
        let value = model::eval_exact(seconds, &self.scope).map_err(Box::new)?;
        value
            .as_f64()
            .filter(|s| (0.0..=LONGEST_TIME.as_secs_f64()).contains(s))
            .map(Duration::from_secs_f64)
            .ok_or_else(|| {
                Box::new(
                    Diagnostic::error(
                        Code::WrongType,
                        seconds.span,
                        format!("expected a number of seconds, found `{}`", value.print()),
                    )
                    .help("give a number of seconds"),
                )
            })
    }

    /// Evaluates the length of a run. `None` if there is none, or 0.
    pub(super) fn length(&self, seconds: Option<&Spanned<Expr>>) -> Result<Option<Duration>, Box<Diagnostic>> {
        Ok(seconds.map(|seconds| self.seconds(seconds)).transpose()?.filter(|length| !length.is_zero()))
    }

    /// Adds a process. Two texts of a script may each have a process of the same name, and so may one text, as in
    /// Filebench; both run. A definition that is executed again, of a text that is loaded again, or that is typed,
    /// replaces the earlier one.
    fn define_process(&mut self, def: &Arc<ProcessDef>) {
        let source = |def: &ProcessDef| self.map.file(def.span.file).name.as_str();
        let is_typed = self.loaded.depth == 0 && !self.loaded.whole;
        let replaces = |other: &ProcessDef| {
            let is_of_text = other.span.file == def.span.file;
            other.span == def.span || (!is_of_text && (is_typed || source(other) == source(def)))
        };
        self.definitions.add_process(def.clone(), replaces);
    }

    /// Applies the event rate to live processes. No other setting affects them (`live`).
    fn follow_event_rate(&mut self) {
        let (Some(_), Ok(rate)) = (&self.options.event_rate, self.event_rate_now()) else { return };
        let rate = rate.unwrap_or(0);
        self.flow.processes.set_rate(rate);
        self.scope.set_internal("rate", rate.to_string());
    }

    /// After a command has set a variable: live processes follow the event rate only. `before`: what [`value`](super::live::LiveVariables::value)
    /// had as its value.
    fn variable_set(&mut self, name: &Spanned<String>, before: Option<ModelValue>, front: &mut dyn Front) {
        self.follow_event_rate();
        if let Some(warning) = self.flow.live.warning(name, before, &self.scope) {
            front.warnings(&self.map, &[warning]);
        }
    }

    fn run_command(
        &mut self,
        seconds: Option<&Spanned<Expr>>,
        as_is: bool,
        span: Span,
        front: &mut dyn Front,
    ) -> Result<(), CommandError> {
        let length = self.length(seconds)?;
        if self.only_loaded("run", seconds, front) {
            return Ok(());
        }
        Ok(self.run_with(RunTime { length, as_is }, None, span, front)?)
    }

    /// Whether the command is in a text that is only loaded. If so, its time becomes the default run time.
    pub(super) fn only_loaded(&mut self, word: &str, seconds: Option<&Spanned<Expr>>, front: &mut dyn Front) -> bool {
        if self.loaded.depth == 0 {
            return false;
        }
        if let Some(asked) = seconds
            && let Ok(Some(length)) = self.length(Some(asked))
        {
            let seconds = length.as_secs_f64();
            self.options.default_seconds = Some(asked.clone());
            // A profile has a run time of its own.
            if !self.loaded.of_profile {
                front.note(&format!(
                    "`{word}` in a loaded text starts no run: its {seconds} s are now the default run time"
                ));
            }
        }
        true
    }

    /// Returns the error for the first command that starts a program without permission, before anything is created.
    pub(super) fn refused(&self, commands: &[Command]) -> Option<Diagnostic> {
        let refused = |command: &Command| self.refusal(&self.text_or_written(command.shell()?), command.span);
        model::visit::all(commands).find_map(refused)
    }

    /// Returns the error for starting a program without permission. `None` if it is permitted.
    pub(super) fn refusal(&self, command: &str, span: Span) -> Option<Diagnostic> {
        (!self.runner.settings.allow_system).then(|| {
            Diagnostic::error(
                Code::Refused,
                span,
                format!("`{command}` is not run: the script has no permission to run commands"),
            )
            .help("look at what it does; then allow it with `--allow-system`")
        })
    }

    /// Returns a command for the shell, if it is permitted.
    pub(super) fn shell_command(&mut self, text: &Spanned<Expr>, span: Span) -> Result<String, CommandError> {
        let command = self.shell_text(text)?;
        if let Some(d) = self.refusal(&command, span) {
            return Err(self.not_permitted(d).into());
        }
        if let Some(d) = self.unset_in_shell(text, &command) {
            return Err(d.into());
        }
        self.make_dir_for(&command)?;
        Ok(self.shell_text(text)?)
    }

    /// Returns the error for a variable of a command that neither the script nor the shell has: the shell would replace it
    /// by nothing, so that `rm -r $dirr/old` would remove `/old`.
    fn unset_in_shell(&self, text: &Spanned<Expr>, command: &str) -> Option<Diagnostic> {
        let Expr::Text(parts) = &text.node else { return None };
        let mut variables = parts.iter().filter_map(|part| match part {
            TextPart::Variable(variable) => Some(variable),
            TextPart::Text(_) => None,
        });
        let unset = variables.find(|variable| {
            let expr = Spanned::new(Expr::Var(variable.node.clone()), variable.span);
            let is_unset = matches!(model::eval(&expr, &self.scope), Err(d) if d.code == Code::UndefinedVariable);
            is_unset
                && !match variable.node.form {
                    VariableForm::Paren => is_program(&variable.node.name),
                    VariableForm::Plain | VariableForm::Brace => shell_has(command, &variable.node.name),
                }
        })?;
        let shown = model::expr::show(&unset.node);
        let message = format!("nothing sets `{shown}`: the shell would replace it by nothing");
        Some(
            Diagnostic::error(Code::UndefinedVariable, unset.span, message)
                .help(format!("set it before, or write `\\{shown}` if it may be empty")),
        )
    }

    fn system(&mut self, text: &Spanned<Expr>, span: Span, front: &mut dyn Front) -> Result<(), CommandError> {
        let command = self.shell_command(text, span)?;
        Err(CommandError::Failed(match self.runner.run_command(&command, front) {
            Ok(None) => Failure::unexplained(Status::Interrupted(self.runner.watch.signal())),
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                let help = "its output is above; if the script should go on after a failure: `COMMAND || true`";
                Failure::failed(format!("`{command}` ended with {status}"), help)
            }
            Err(e) => {
                let help = "`system` starts commands with /bin/sh";
                Failure::failed(format!("`{command}` could not be run: {e}"), help)
            }
        }))
    }

    fn help(&self, front: &mut dyn Front) {
        if self.loaded.usage.is_empty() {
            front.line("load <personality> (`wmlrun list personalities` shows them)");
        }
        for text in &self.loaded.usage {
            front.script_line(&self.text_or_written(text));
        }
    }

    /// The usage lines, with the values of their variables.
    pub(crate) fn usage_lines(&self) -> Vec<String> {
        self.loaded.usage.iter().map(|text| self.text_or_written(text)).collect()
    }

    fn list(&self, object: Object, front: &mut dyn Front) {
        if object == Object::Flowops {
            for process in &self.definitions.processes {
                for flowop in process.threads.iter().flat_map(|t| &t.flowops) {
                    let name = flowop.attrs.name().unwrap_or_default();
                    front.line(&format!("{name:<20} {}", flowop.kind.node));
                }
            }
            return;
        }
        front.line(&format!("{:<32} {:>12} {:>11} {:>9}", "File or Fileset name", "file size", "dir width", "entries"));
        // As in Filebench, the last definition is listed first.
        for def in self.definitions.filesets.iter().rev() {
            let mut found = Vec::new();
            let below = self.runner.settings.below.as_deref();
            let Some(spec) = crate::plan::fileset_spec(def, &self.scope, below, &mut found) else { continue };
            let root = spec.root().display().to_string();
            let name = crate::util::printable::line(&root);
            if spec.single {
                front.line(&format!("{name:<32} {:>12} (Single File)", spec.size.mean() as u64));
            } else {
                let width = spec.dirwidth.as_ref().map_or(0, |w| w.mean() as u64);
                front.line(&format!("{name:<32} {:>12} {width:>11} {:>9}", spec.size.mean() as u64, spec.entries));
            }
        }
    }

    fn fscheck(
        &mut self,
        path: Option<&Spanned<Expr>>,
        fstype: Option<&Spanned<Expr>>,
        span: Span,
    ) -> Result<(), CommandError> {
        let (Some(path), Some(fstype)) = (path, fstype) else {
            let d = Diagnostic::error(Code::BadArgument, span, "`fscheck` needs a path and a type");
            return Err(d.help("write `fscheck path=PATH fstype=TYPE`").into());
        };
        self.make_dir_for(&self.text(path)?)?;
        let (path, wanted) = (self.text(path)?, self.text(fstype)?);
        let _looking = self.runner.looking("looking what a path lies on", Some(&path));
        if !std::path::Path::new(&path).exists() {
            let help = "the script's `fscheck` asks for its file system";
            return Err(Failure::refused(format!("{path} does not exist"), help).into());
        }
        let kind = crate::measure::file_system(path.as_ref()).unwrap_or_else(|| "unknown".to_owned());
        if kind == wanted {
            return Ok(());
        }
        let help = format!("`fscheck` in line {} of the script asks for it", self.map.line(span));
        Err(Failure::refused(format!("{path} is on {kind}, not on {wanted}"), help).into())
    }
}

/// True if a command of the shell has a variable: the shell inherits it, or the command sets it, as in `NAME=…`,
/// `for NAME in …` or `read NAME`.
fn shell_has(command: &str, name: &str) -> bool {
    const SETTERS: [&str; 12] = [
        "declare",
        "export",
        "for",
        "getopts",
        "local",
        "mapfile",
        "printf",
        "read",
        "readarray",
        "readonly",
        "select",
        "typeset",
    ];
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_set = |(at, _): (usize, &str)| {
        let (before, after) = (&command[..at], &command[at + name.len()..]);
        if before.ends_with(|c: char| is_of_name(c) || matches!(c, '$' | '{' | '/' | '.' | '-'))
            || after.starts_with(is_of_name)
        {
            return false;
        }
        let simple_command = before.rsplit([';', '|', '&', '(', '`', '\n']).next().unwrap_or_default();
        after.starts_with('=')
            || after.starts_with("+=")
            || simple_command.split_whitespace().any(|word| SETTERS.contains(&word))
    };
    std::env::var_os(name).is_some() || command.match_indices(name).any(is_set)
}

/// True if the shell finds a program of this name for `$(NAME)`, or has a command of its own that prints.
fn is_program(name: &str) -> bool {
    const BUILTINS: [&str; 8] = ["alias", "export", "jobs", "set", "times", "trap", "ulimit", "umask"];
    let is_executable = |path: std::path::PathBuf| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    BUILTINS.contains(&name) || std::env::split_paths(&dirs).any(|dir| is_executable(dir.join(name)))
}
