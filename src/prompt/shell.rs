//! The implementation of the commands that exist only in the shell, and the execution of statements.
//!
//! The table of these commands is [`super::table`]. Not here: line editing, keys and colours (`editor`).

use super::command::{Argument, bad, count, file_name, unquoted};
use super::split::{StatementText, statements};
use super::table::{COMMANDS, prompt_command};
use super::{Prompt, script};
use crate::diag::{self, Code, Diagnostic, Failure};
use crate::model::{self, Expr, ModelValue, SetBy, Unset};
use crate::os::held_dir::HeldDir;
use crate::output;
use crate::plan::{self, Definitions, FRESH};
use crate::report::json;
use crate::session::{CommandError, Front, Status, library};
use crate::source::{FileId, Span, Spanned};
use crate::spec::words::STATEMENT_WORDS;
use crate::util::table::{Align, Table};
use crate::util::wrap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum depth of nested `source` commands. A greater depth is regarded as a cycle.
const MAX_DEPTH: usize = 16;

/// The first bytes of a file that `save` wrote and may overwrite.
pub(super) const SAVED_HEADER: &str = "# Saved by wmlrun";

/// Commands of the program that the shell lacks.
pub(crate) const OUTSIDE: &[&str] = &[
    "repl",
    "init",
    "fmt",
    "sweep",
    "experiment",
    "report",
    "fidelity",
    "learn",
    "record",
    "replay",
    "trace",
    "age",
    "clean",
    "batch",
    "doctor",
    "explain",
    "setup",
];

impl Prompt {
    /// Executes a statement. `name` is the name of its source in diagnostics: the prompt, a pipe or a sourced file.
    pub(super) fn typed(&mut self, name: &str, text: &StatementText, front: &mut dyn Front) -> Result<(), Failure> {
        if self.sourcing == 0 {
            self.history.push(text.text.trim_end().to_owned());
        }
        let file = self.session.map.add_part(name, &text.text, text.line);
        if let Some((command, rest)) = prompt_command(&text.text) {
            // A part of the text, which may also occur in the word of the command.
            let start = rest.as_ptr() as usize - text.text.as_ptr() as usize;
            let argument = Spanned::new(rest, Span::new(file, start, start + rest.len()));
            let is_wrong = match command.argument {
                Argument::Nothing => !rest.is_empty(),
                Argument::Verbose => !["", "-v"].contains(&rest),
                _ => false,
            };
            let done = if is_wrong {
                Err(bad(argument.span, command.spec.form).into())
            } else {
                (command.run)(self, argument, front)
            };
            return done.map_err(|e| match e {
                CommandError::Wrong(found) => self.session.wrong(vec![*found]),
                CommandError::Failed(failure) => failure,
            });
        }
        let dialect = self.session.runner.settings.dialect.or(Some(self.session.loaded.dialect));
        let (model, mut found) =
            model::check(&self.session.map, file, &self.session.table, dialect, &self.session.known(true));
        found.iter_mut().for_each(|d| self.suggest(d));
        self.session.without_errors(found, front)?;
        let outer = std::mem::replace(&mut self.session.flow.typing, true);
        let done = self.session.commands(&model.commands, front);
        self.session.flow.typing = outer;
        done
    }

    /// Replaces the help of an unknown command: suggests the nearest command, including those of the shell.
    fn suggest(&self, d: &mut Diagnostic) {
        if d.code != Code::UnknownCommand {
            return;
        }
        let word = self.session.map.slice(d.primary.span);
        let words = || COMMANDS.iter().map(|c| c.spec.name).chain(STATEMENT_WORDS.iter().map(|w| w.name));
        // A letter is left out more often than it is another one: `lod` is `load`, not `log`.
        let lacks_letters = |name: &&str| {
            let mut letters = name.chars();
            name.chars().next() == word.chars().next()
                && word.chars().all(|letter| letters.any(|other| other == letter))
        };
        let near = diag::nearest(word, words().filter(lacks_letters)).or_else(|| diag::nearest(word, words()));
        let help = match near {
            _ if OUTSIDE.contains(&word) => format!("leave the shell: `wmlrun {word}`"),
            Some(near) => format!("did you mean `{near}`?"),
            None => "`help` lists the commands".to_owned(),
        };
        d.help = vec![help];
    }

    /// Executes `check`.
    pub(super) fn check(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        self.require_definitions(argument.span)?;
        self.session.plan(front)?;
        front.line("no errors");
        Ok(())
    }

    /// Executes `stats`.
    pub(super) fn show_report(&self, front: &mut dyn Front) {
        match self.session.runner.outputs.document.runs.is_empty() {
            true => front.note("there are no runs yet"),
            false => front.run_ended(&self.session.runner.outputs.document),
        }
    }

    /// Executes `history`.
    pub(super) fn show_history(&self, front: &mut dyn Front) {
        for (n, text) in self.history.iter().enumerate() {
            front.line(&format!("{:>4}  {}", n + 1, text.replace('\n', "\n      ")));
        }
    }

    /// Returns an error if neither a process nor a file set is defined.
    pub(super) fn require_definitions(&self, span: Span) -> Result<(), Box<Diagnostic>> {
        if self.session.definitions.processes.is_empty() && self.session.definitions.filesets.is_empty() {
            let d = Diagnostic::error(Code::NothingToRun, span, "nothing is defined");
            return Err(Box::new(d.help("define a process, or `load` a script or personality")));
        }
        Ok(())
    }

    /// Executes `plan`.
    pub(super) fn show_plan(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        self.require_definitions(argument.span)?;
        let plan = self.session.plan(front)?;
        let sets = crate::measure::trees(&plan, self.session.runner.settings.layout_seed).map_err(Failure::from)?;
        if argument.node == "-v" {
            front.line(&wrap::message(plan::dump(&plan, &sets).trim_end(), front.columns()));
            return Ok(());
        }
        let wrong: Vec<String> = self.session.endless_phases(&plan).into_iter().map(|found| found.message).collect();
        front.line(&plan::outline(&plan, &sets, &[], &wrong, front.columns().unwrap_or(wrap::WIDTH)));
        Ok(())
    }

    /// Executes `vars`.
    pub(super) fn show_variables(&self, front: &mut dyn Front) {
        let columns =
            [("name", Align::Left), ("value", Align::Left), ("set by", Align::Left), ("if unset", Align::Left)];
        let mut table = Table::new(columns);
        for binding in self.session.scope.bindings() {
            let value = script::shown_value(&self.session, binding);
            let by = match binding.by {
                SetBy::Default => "default".to_owned(),
                SetBy::CommandLine => "command line".to_owned(),
                SetBy::Script | SetBy::Prompt => {
                    let span = binding.value.span;
                    format!("{}:{}", self.session.map.file(span.file).name, self.session.map.line(span))
                }
            };
            let otherwise = match binding.without_setting().filter(|_| binding.by > SetBy::Script) {
                Some(value) => script::source_text(&self.session.map, value),
                None => String::new(),
            };
            table.row([format!("${}", binding.name), value, by, otherwise]);
        }
        // Of the predefined variables, show only those that were read.
        for name in self.session.scope.predefined_read() {
            let value = self.session.scope.predefined(&name).map_or(String::new(), ModelValue::print);
            table.row([format!("${name}"), value, "machine".to_owned(), String::new()]);
        }
        front.line(table.render_fitted(front.columns()).trim_end());
    }

    /// Executes `unset`.
    pub(super) fn unset(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        let name = argument.node.trim_start_matches('$');
        if name.is_empty() {
            return Err(bad(argument.span, "unset $NAME").into());
        }
        let fresh = self.session.runner.sets.fresh_dir();
        let now = match self.session.scope.unset(name) {
            Unset::Unknown => {
                let scope = &self.session.scope;
                if scope.predefined(name).is_some() {
                    let d = Diagnostic::error(Code::UndefinedVariable, argument.span, format!("`${name}` was not set"));
                    return Err(d.help("the variable is predefined and can't be unset").into());
                }
                let message = format!("unknown variable `${name}`");
                let d = Diagnostic::error(Code::UndefinedVariable, argument.span, message);
                return Err(match diag::nearest(name, scope.bindings().map(|b| b.name.as_str())) {
                    Some(near) => d.help(format!("did you mean `${near}`?")).into(),
                    None => d.help("`vars` lists the variables").into(),
                });
            }
            Unset::Restored(binding) => Some(script::source_text(&self.session.map, &binding.value)),
            Unset::Removed if name == "dir" => {
                self.session.set_default_dir(fresh.as_deref().unwrap_or(FRESH), Span::default());
                fresh.or_else(|| Some(FRESH.to_owned()))
            }
            Unset::Removed => None,
        };
        let now = now.or_else(|| self.session.scope.predefined(name).map(ModelValue::print));
        front.note(&match now {
            Some(value) => format!("`${name}` is {value}"),
            None => format!("`${name}` is not set any more"),
        });
        Ok(())
    }

    /// Executes `reload`: reads the loaded scripts again and keeps the variables set at the prompt. If a script can't
    /// be read, nothing changes.
    pub(super) fn reload(&mut self, front: &mut dyn Front) -> Result<(), Failure> {
        // Those that a script loads, it loads again.
        let loaded: Vec<_> = self.session.loaded.texts.iter().filter(|text| !text.nested).collect();
        if loaded.is_empty() {
            return Err(Failure::wrong("no script is loaded", "`load NAME` loads a script or a personality"));
        }
        let mut texts = Vec::new();
        for text in loaded {
            let name = text.name.as_str();
            let shipped = library::shipped_as(name, &self.session.map.file(text.file).text);
            match library::find(shipped.unwrap_or(name), None) {
                Ok(found) => texts.push(found),
                Err(_) => {
                    let text = format!("can't read {name} again");
                    return Err(Failure::wrong(text, "the loaded script was not changed"));
                }
            }
        }
        let before = (
            self.session.scope.clone(),
            self.session.definitions.clone(),
            self.session.loaded.usage.clone(),
            self.session.loaded.texts.clone(),
        );
        self.forget_loaded();
        let typed: Vec<(String, Spanned<Expr>)> = self
            .session
            .scope
            .bindings()
            .filter(|b| b.by == SetBy::Prompt)
            .map(|b| (b.name.clone(), b.value.clone()))
            .collect();
        self.session.loaded.texts.clear();
        for found in texts {
            if let Err(failure) = self.session.load(&found.name, &found.text, front) {
                (self.session.scope, self.session.definitions, self.session.loaded.usage, self.session.loaded.texts) =
                    before;
                front.failed(&failure);
                front.note("the loaded script was not changed");
                return Err(Failure::unexplained(failure.status));
            }
        }
        for (name, value) in typed {
            if let Err(found) = self.session.scope.set(&name, value, SetBy::Prompt) {
                front.failed(&self.session.wrong(vec![found]));
            }
        }
        Ok(())
    }

    /// Removes the definitions and variables of loaded scripts.
    fn forget_loaded(&mut self) {
        let texts = &self.session.loaded.texts;
        let is_loaded = |file: FileId| texts.iter().any(|text| text.file == file);
        self.session.definitions.filesets.retain(|d| !is_loaded(d.span.file));
        self.session.definitions.processes.retain(|d| !is_loaded(d.span.file));
        self.session.definitions.composites.retain(|d| !is_loaded(d.span.file));
        let set: Vec<String> = self
            .session
            .scope
            .bindings()
            .filter(|b| b.by == SetBy::Script && is_loaded(b.value.span.file))
            .map(|b| b.name.clone())
            .collect();
        for name in set {
            self.session.scope.unset(&name);
        }
    }

    /// Executes `repeat`.
    pub(super) fn repeat(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        let times = count(argument, 1, "repeat [TIMES]")?;
        let Some(time) = self.session.options.last else {
            return Err(Failure::wrong("there is no run to repeat", "start one with `run SECONDS`").into());
        };
        for n in 1..=times {
            if times > 1 {
                front.note(&format!("run {n} of {times}"));
            }
            self.session.run_with(time, None, argument.span, front)?;
        }
        Ok(())
    }

    /// Executes `save`.
    pub(super) fn save(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        let path = PathBuf::from(file_name(argument, "save FILE")?);
        let results = results_path(&path);
        // Replace only files that `save` wrote: a script, and the results beside one. For a symbolic link that applies to
        // its target.
        let mut places = Vec::new();
        for path in
            [&path, &results].into_iter().take(1 + usize::from(!self.session.runner.outputs.document.runs.is_empty()))
        {
            let place = HeldDir::of_file(path).map_err(|e| {
                // A link of another user is refused.
                let status = if e.raw_os_error().is_none() { Status::Refused } else { Status::Failed };
                cannot_save(path, &e, status)
            })?;
            let is_own = match places.len() {
                0 => begins_with(&place, |head: &[u8]| head.starts_with(SAVED_HEADER.as_bytes())),
                _ => {
                    begins_with(&places[0], |head: &[u8]| head.starts_with(SAVED_HEADER.as_bytes()))
                        && begins_with(&place, json::is_result)
                }
            };
            let (dir, name) = &place;
            if !is_own && !dir.find(name).is_ok_and(|found| found.is_none()) {
                let message = format!("{} exists and was not written by `save`", path.display());
                let d = Diagnostic::error(Code::Refused, argument.span, message);
                return Err(d.help("use another file name").into());
            }
            places.push(place);
        }
        if self.session.definitions.processes.is_empty() {
            let d = Diagnostic::error(Code::Refused, argument.span, "nothing to save: no process is defined");
            return Err(d.help("`load` a script, or define a process").into());
        }
        let Some((text, left_out)) = self.valid_script(front) else {
            let d = Diagnostic::error(Code::Refused, argument.span, "the definitions do not form a valid script");
            return Err(d.help("`show` prints them, `check` reports the errors").into());
        };
        for (n, (dir, name)) in places.iter().enumerate() {
            let document = &self.session.runner.outputs.document;
            let written = output::replace_in(dir, name, &mut |out| match n {
                0 => out.write_all(text.as_bytes()),
                _ => json::serialize(document, out),
            });
            written.map_err(|e| cannot_save(if n == 0 { &path } else { &results }, &e, Status::Failed))?;
        }
        for statement in left_out {
            front.note(&format!("omitted, since it is invalid: `{statement}`"));
        }
        let runs = self.session.runner.outputs.document.runs.len() as u64;
        let results_text = match runs {
            0 => "no results yet".to_owned(),
            n => format!("{} in {}", crate::util::count::count(n, "run"), results.display()),
        };
        front.note(&format!("saved to {}; {results_text}", path.display()));
        Ok(())
    }

    /// Executes `source`.
    pub(super) fn source(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        let name = unquoted(argument.node);
        if name.is_empty() {
            return Err(bad(argument.span, "source FILE").into());
        }
        let wrong = |message: String, help: &str| {
            Box::new(Diagnostic::error(Code::BadArgument, argument.span, message).help(help))
        };
        if self.sourcing >= MAX_DEPTH {
            let text = "`source` commands form a cycle".to_owned();
            return Err(wrong(text, "remove one of the `source` commands").into());
        }
        let bytes = library::read_file(Path::new(name)).map_err(|e| {
            wrong(format!("can't read {name}: {e}"), "give a file of commands; use `load` for a script")
        })?;
        self.sourcing += 1;
        let mut worst = Status::Done;
        for text in statements(&String::from_utf8_lossy(&bytes)) {
            let done = self.typed(name, &text, front);
            worst = worst.max(front.status(done));
            if self.session.flow.quit || self.session.runner.watch.signal() != 0 {
                break;
            }
        }
        self.sourcing -= 1;
        Ok(Failure::outcome(worst)?)
    }

    /// Executes `clear`.
    pub(super) fn clear(&mut self, front: &mut dyn Front) -> Result<(), Failure> {
        // Keep the trees for the next definitions. The next run releases those that it does not need.
        let shut_down = self.session.shutdown_processes(front);
        self.session.definitions = Definitions::default();
        let names: Vec<(String, SetBy)> = self.session.scope.bindings().map(|b| (b.name.clone(), b.by)).collect();
        for (name, by) in names.into_iter().filter(|(_, by)| *by != SetBy::Default) {
            let given = self.session.scope.binding(&name).map(|b| b.value.clone()).filter(|_| by == SetBy::CommandLine);
            while self.session.scope.binding(&name).is_some_and(|b| b.by != SetBy::Default) {
                self.session.scope.unset(&name);
            }
            if let Some(value) = given {
                // It was evaluated before and refers to no other variable, so it can't fail.
                let _ = self.session.scope.set(&name, value, SetBy::CommandLine);
            }
        }
        if self.session.scope.binding("dir").is_none() {
            let fresh = self.session.runner.sets.fresh_dir();
            self.session.set_default_dir(fresh.as_deref().unwrap_or(FRESH), Span::default());
        }
        self.session.options.mode = model::QuitMode::default();
        (
            self.session.options.event_rate,
            self.session.options.default_seconds,
            self.session.options.warm_next,
            self.session.options.lathist,
        ) = (None, None, None, false);
        self.session.loaded.usage.clear();
        self.session.loaded.variables = indexmap::IndexSet::new();
        self.session.loaded.texts.clear();
        shut_down
    }
}

/// The failure of `save` to write a file.
fn cannot_save(path: &Path, e: &std::io::Error, status: Status) -> Failure {
    Failure::new(status, format!("can't write {}: {e}", path.display()), "use another file name")
}

/// True if a file is a regular one whose first bytes satisfy `known`. Opens no other kinds of files.
fn begins_with((dir, name): &(HeldDir, OsString), known: fn(&[u8]) -> bool) -> bool {
    const HEAD: u64 = 4096;
    let mut head = Vec::new();
    let file = dir.open_regular(name);
    file.is_some_and(|file| file.take(HEAD).read_to_end(&mut head).is_ok()) && known(&head)
}

/// Returns the path for the results of a saved script: the same name with the extension `json`.
fn results_path(path: &Path) -> PathBuf {
    let mut name =
        if path.extension().is_some_and(|e| e == "json") { path.to_owned() } else { path.with_extension("") };
    name.as_mut_os_string().push(".json");
    name
}
