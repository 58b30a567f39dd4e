//! What only a prompt can ask for: a look at the session, changes of mind, and runs held against each other.
//!
//! The table of these commands is [`super::table`]. Deliberately absent: lines, keys and colours (`editor`).

use super::command::{Argument, bad, count};
use super::split::{StatementText, statements};
use super::table::{COMMANDS, prompt_command};
use super::{Prompt, script};
use crate::diag::{self, Code, Diagnostic};
use crate::model::{self, Expr, SetBy};
use crate::output;
use crate::plan::{self, Definitions, FRESH};
use crate::report::json;
use crate::session::{Front, Status, library};
use crate::source::{FileId, Span, Spanned};
use crate::spec::words::STATEMENT_WORDS;
use crate::util::table::{Align, Table};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Files that `source` files that `source` files: more is a circle.
const DEEPEST: usize = 16;

/// The first words of a file that `save` may write over.
pub(super) const SAVED: &str = "# Saved by wmlrun";

impl Prompt {
    /// A statement from the prompt, a pipe or a sourced file of that name.
    pub(super) fn typed(&mut self, name: &str, text: &StatementText, front: &mut dyn Front) -> Status {
        self.history.push(text.text.trim_end().to_owned());
        let file = self.session.map.add_part(name, &text.text, text.line);
        if let Some((command, rest)) = prompt_command(&text.text) {
            let start = text.text.find(rest).unwrap_or(0);
            let argument = Spanned::new(rest, Span::new(file, start, start + rest.len()));
            let is_wrong = command.argument == Argument::Nothing && !rest.is_empty();
            let done = if is_wrong {
                Err(bad(argument.span, command.spec.form))
            } else {
                (command.run)(self, argument, front)
            };
            return match done {
                Ok(status) => status,
                Err(d) => {
                    front.diagnostics(&self.session.map, &[*d]);
                    Status::Script
                }
            };
        }
        let dialect = self.session.runner.settings.dialect.or(Some(self.session.loaded.dialect));
        let (model, mut found) =
            model::check(&self.session.map, file, &self.session.table, dialect, &self.session.known(true));
        found.iter_mut().for_each(|d| self.suggest(d));
        if !found.is_empty() {
            front.diagnostics(&self.session.map, &found);
        }
        if diag::has_errors(&found) {
            return Status::Script;
        }
        let outer = std::mem::replace(&mut self.session.flow.typing, true);
        let status = self.session.commands(&model.commands, front);
        self.session.flow.typing = outer;
        status
    }

    /// All variables with their values, as written.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let scope = &self.session.scope;
        let set = scope.bindings().map(|b| (b.name.clone(), script::spelled(&self.session.map, &b.value)));
        let free = scope.names().filter(|name| scope.binding(name).is_none());
        set.chain(free.filter_map(|name| Some((name.to_owned(), scope.predefined(name)?.to_string())))).collect()
    }

    /// A word that is near one of the prompt's own is told so.
    fn suggest(&self, d: &mut Diagnostic) {
        if d.code != Code::UnknownCommand {
            return;
        }
        let word = self.session.map.slice(d.primary.span);
        let words = COMMANDS.iter().map(|c| c.spec.name).chain(STATEMENT_WORDS.iter().map(|w| w.name));
        let help = match diag::nearest(word, words) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`help` shows all commands".to_owned(),
        };
        d.help = vec![help];
    }

    /// `check`.
    pub(super) fn check(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<Status, Box<Diagnostic>> {
        self.something_defined(argument.span)?;
        if self.session.plan(front).is_none() {
            return Ok(Status::Script);
        }
        front.line("no mistakes");
        Ok(Status::Done)
    }

    /// `stats`.
    pub(super) fn show_report(&self, front: &mut dyn Front) -> Status {
        match self.session.runner.document.runs.is_empty() {
            true => front.note("nothing was measured yet"),
            false => front.run_ended(&self.session.runner.document),
        }
        Status::Done
    }

    /// `history`.
    pub(super) fn show_history(&self, front: &mut dyn Front) -> Status {
        for (n, text) in self.history.iter().enumerate() {
            front.line(&format!("{:>4}  {}", n + 1, text.replace('\n', "\n      ")));
        }
        Status::Done
    }

    fn something_defined(&self, span: Span) -> Result<(), Box<Diagnostic>> {
        if self.session.definitions.processes.is_empty() && self.session.definitions.filesets.is_empty() {
            let d = Diagnostic::error(Code::NothingToRun, span, "nothing is defined");
            return Err(Box::new(d.help("define something, or `load` a personality")));
        }
        Ok(())
    }

    /// `plan`.
    pub(super) fn show_plan(
        &mut self,
        argument: Spanned<&str>,
        front: &mut dyn Front,
    ) -> Result<Status, Box<Diagnostic>> {
        self.something_defined(argument.span)?;
        let Some(plan) = self.session.plan(front) else { return Ok(Status::Script) };
        let Some(sets) = crate::measure::trees(&plan, self.session.runner.settings.layout_seed, front) else {
            return Ok(Status::Refused);
        };
        front.line(plan::dump(&plan, &sets).trim_end());
        Ok(Status::Done)
    }

    /// `vars`.
    pub(super) fn show_variables(&self, front: &mut dyn Front) -> Status {
        let columns =
            [("name", Align::Left), ("value", Align::Left), ("set by", Align::Left), ("otherwise", Align::Left)];
        let mut table = Table::new(columns);
        for binding in self.session.scope.bindings() {
            let mut value = match binding.by {
                // Nobody wrote it.
                SetBy::Default => {
                    self.session.scope.value(&binding.name).and_then(Result::ok).map_or(String::new(), |v| v.print())
                }
                _ => script::spelled(&self.session.map, &binding.value),
            };
            if matches!(binding.value.node, Expr::Var(_) | Expr::Binary(_)) {
                let now = self.session.scope.value(&binding.name).and_then(Result::ok);
                value.push_str(&now.map_or(String::new(), |now| format!(" = {}", now.print())));
            }
            let by = match binding.by {
                SetBy::Default => "default".to_owned(),
                SetBy::CommandLine => "command line".to_owned(),
                SetBy::Script | SetBy::Prompt => {
                    let span = binding.value.span;
                    format!("{}:{}", self.session.map.file(span.file).name, self.session.map.line(span))
                }
            };
            let otherwise = match binding.without_setting().filter(|_| binding.by > SetBy::Script) {
                Some(value) => script::spelled(&self.session.map, value),
                None => String::new(),
            };
            table.row([format!("${}", binding.name), value, by, otherwise]);
        }
        // The others are nobody's concern yet.
        for name in self.session.scope.predefined_read() {
            let value = self.session.scope.predefined(&name).map_or(String::new(), |value| value.to_string());
            table.row([format!("${name}"), value, "machine".to_owned(), String::new()]);
        }
        front.line(table.render().trim_end());
        Status::Done
    }

    pub(super) fn unset(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<Status, Box<Diagnostic>> {
        let name = argument.node.trim_start_matches('$');
        if name.is_empty() {
            return Err(bad(argument.span, "unset $NAME"));
        }
        let fresh = self.session.runner.fresh_dir();
        let now = match self.session.scope.unset(name) {
            None => {
                let scope = &self.session.scope;
                if scope.predefined(name).is_some() {
                    let d =
                        Diagnostic::error(Code::UndefinedVariable, argument.span, format!("nothing has set `${name}`"));
                    return Err(Box::new(d.help("it is predefined, and is there without a `set`")));
                }
                let message = format!("there is no variable `${name}`");
                let d = Diagnostic::error(Code::UndefinedVariable, argument.span, message);
                return Err(Box::new(match diag::nearest(name, scope.bindings().map(|b| b.name.as_str())) {
                    Some(near) => d.help(format!("did you mean `${near}`?")),
                    None => d.help("`vars` shows the variables"),
                }));
            }
            Some(Some(binding)) => Some(script::spelled(&self.session.map, &binding.value)),
            Some(None) if name == "dir" => {
                self.session.set_default_dir(fresh.as_deref().unwrap_or(FRESH), Span::default());
                fresh.or_else(|| Some(FRESH.to_owned()))
            }
            Some(None) => None,
        };
        let now = now.or_else(|| self.session.scope.predefined(name).map(|value| value.to_string()));
        front.note(&match now {
            Some(value) => format!("`${name}` is {value}"),
            None => format!("`${name}` is no more"),
        });
        Ok(Status::Done)
    }

    /// Reads what was loaded again, with the words of the prompt kept. What can't be read leaves everything as it was.
    pub(super) fn reload(&mut self, front: &mut dyn Front) -> Status {
        let names: Vec<String> = self.session.loaded.texts.iter().map(|(name, _)| name.clone()).collect();
        if names.is_empty() {
            front.error(None, "nothing was loaded yet", Some("`load NAME` loads a script or a personality"));
            return Status::Script;
        }
        let mut texts = Vec::new();
        for name in names {
            match library::find(name.trim_end_matches(" (shipped)"), None) {
                Ok(found) => texts.push(found),
                Err(_) => {
                    front.error(None, &format!("{name} can't be read any more"), Some("everything stays as it was"));
                    return Status::Script;
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
            let status = self.session.load(&found.name, &found.text, front);
            if status != Status::Done {
                (self.session.scope, self.session.definitions, self.session.loaded.usage, self.session.loaded.texts) =
                    before;
                front.note("everything stays as it was");
                return status;
            }
        }
        for (name, value) in typed {
            if let Err(d) = self.session.scope.set(&name, value, SetBy::Prompt) {
                front.diagnostics(&self.session.map, &[d]);
            }
        }
        Status::Done
    }

    /// Forgets what loaded texts define and set.
    fn forget_loaded(&mut self) {
        let texts = &self.session.loaded.texts;
        let is_loaded = |file: FileId| texts.iter().any(|(_, loaded)| *loaded == file);
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

    pub(super) fn repeat(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<Status, Box<Diagnostic>> {
        let times = count(argument, 1, "repeat [TIMES]")?;
        let Some(time) = self.session.options.last else {
            front.error(None, "there was no run yet", Some("`run SECONDS` makes one"));
            return Ok(Status::Script);
        };
        for n in 1..=times {
            if times > 1 {
                front.note(&format!("run {n} of {times}"));
            }
            let status = self.session.run_with(time, None, argument.span, front);
            if status != Status::Done {
                return Ok(status);
            }
        }
        Ok(Status::Done)
    }

    pub(super) fn save(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<Status, Box<Diagnostic>> {
        let path = PathBuf::from(file_name(argument)?);
        let results = beside(&path);
        // What the command itself wrote may be replaced; behind a link the file that it names.
        let ours = [
            (&path, (|head: &[u8]| head.starts_with(SAVED.as_bytes())) as fn(&[u8]) -> bool),
            (&results, json::is_result),
        ];
        for (path, known) in ours.iter().take(if self.session.runner.document.runs.is_empty() { 1 } else { 2 }) {
            if !is_absent(path) && !begins(path, *known) {
                let message = format!("{} is there already, and `save` did not write it", path.display());
                let d = Diagnostic::error(Code::Refused, argument.span, message);
                return Err(Box::new(d.help("save to a file of another name")));
            }
        }
        if self.session.definitions.processes.is_empty() {
            let d = Diagnostic::error(Code::Refused, argument.span, "no process is defined: there is nothing to save");
            return Err(Box::new(d.help("`load` a script, or define a process")));
        }
        let Some((text, left_out)) = self.script_that_checks(front) else {
            let d = Diagnostic::error(Code::Refused, argument.span, "what is defined makes no script without mistakes");
            return Err(Box::new(d.help("`show` prints it, `check` says what is wrong")));
        };
        let replace = |path: &Path, write: output::WriteTo<'_>| {
            let there = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            output::replace(&there, write).map_err(|e| (path.to_owned(), e))
        };
        let mut written = replace(&path, &mut |out| out.write_all(text.as_bytes()));
        if written.is_ok() && !self.session.runner.document.runs.is_empty() {
            written = replace(&results, &mut |out| json::serialize(&self.session.runner.document, out));
        }
        if let Err((path, e)) = written {
            front.error(None, &format!("{} can't be written: {e}", path.display()), Some("name another file"));
            return Ok(Status::Failed);
        }
        for statement in left_out {
            front.note(&format!("left out, since it would be refused: `{statement}`"));
        }
        let runs = self.session.runner.document.runs.len() as u64;
        let beside = match runs {
            0 => "there are no results yet".to_owned(),
            n => format!("{} in {}", crate::util::count::count(n, "run"), results.display()),
        };
        front.note(&format!("saved as {}; {beside}", path.display()));
        Ok(Status::Done)
    }

    pub(super) fn source(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<Status, Box<Diagnostic>> {
        let name = unquoted(argument.node);
        if name.is_empty() {
            return Err(bad(argument.span, "source FILE"));
        }
        let wrong = |message: String, help: &str| {
            Box::new(Diagnostic::error(Code::BadArgument, argument.span, message).help(help))
        };
        if self.sourcing >= DEEPEST {
            return Err(wrong("files that source one another in a circle".to_owned(), "break the circle"));
        }
        let bytes = std::fs::read(name).map_err(|e| {
            wrong(format!("{name} can't be read: {e}"), "name a file of commands; `load` takes a script")
        })?;
        self.sourcing += 1;
        let mut worst = Status::Done;
        for text in statements(&String::from_utf8_lossy(&bytes)) {
            worst = worst.max(self.typed(name, &text, front));
            if self.session.flow.quit || self.session.runner.signal() != 0 {
                break;
            }
        }
        self.sourcing -= 1;
        Ok(worst)
    }

    pub(super) fn clear(&mut self, front: &mut dyn Front) -> Status {
        // The trees stay for what is defined next; the next run lets go of those that it does not need.
        let status = self.session.shutdown_processes(front);
        self.session.definitions = Definitions::default();
        let names: Vec<(String, SetBy)> = self.session.scope.bindings().map(|b| (b.name.clone(), b.by)).collect();
        for (name, by) in names.into_iter().filter(|(_, by)| *by != SetBy::Default) {
            let given = self.session.scope.binding(&name).map(|b| b.value.clone()).filter(|_| by == SetBy::CommandLine);
            while self.session.scope.binding(&name).is_some_and(|b| b.by != SetBy::Default) {
                self.session.scope.unset(&name);
            }
            if let Some(value) = given {
                // It was evaluated when it was given; a value that needs nothing else can't fail.
                let _ = self.session.scope.set(&name, value, SetBy::CommandLine);
            }
        }
        if self.session.scope.binding("dir").is_none() {
            let fresh = self.session.runner.fresh_dir();
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
        status
    }
}

/// A file name, which may stand in quotes.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text)
}

/// The name of a file to write: in quotes as it is, without them of characters that mean nothing in the language.
fn file_name(argument: Spanned<&str>) -> Result<&str, Box<Diagnostic>> {
    let wrong = |message: &str, help: &str| {
        Err(Box::new(Diagnostic::error(Code::BadArgument, argument.span, message).help(help)))
    };
    let name = unquoted(argument.node);
    if name.is_empty() {
        return Err(bad(argument.span, "save FILE"));
    }
    if name.contains(|c: char| c == '"' || c.is_control()) {
        return wrong("a file name with a quote or a control character", "name another file");
    }
    if name.len() == argument.node.len() && name.contains(|c: char| "{}$#".contains(c) || c.is_whitespace()) {
        return wrong("a file name with a blank, a brace, `$` or `#`", "put it into quotes: it is taken as it stands");
    }
    Ok(name)
}

/// Whether nothing bears a name; a link that leads nowhere does.
fn is_absent(path: &Path) -> bool {
    matches!(std::fs::symlink_metadata(path), Err(e) if e.kind() == std::io::ErrorKind::NotFound)
}

/// Whether a regular file begins with known bytes. Nothing else is opened.
fn begins(path: &Path, known: fn(&[u8]) -> bool) -> bool {
    const HEAD: u64 = 4096;
    let mut head = Vec::new();
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file())
        && std::fs::File::open(path).is_ok_and(|file| file.take(HEAD).read_to_end(&mut head).is_ok())
        && known(&head)
}

/// Where the results of a saved script go.
fn beside(path: &Path) -> PathBuf {
    let mut name =
        if path.extension().is_some_and(|e| e == "json") { path.to_owned() } else { path.with_extension("") };
    name.as_mut_os_string().push(".json");
    name
}
