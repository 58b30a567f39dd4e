//! Experiment files: what `wmlrun experiment FILE.toml` reads. A file describes a factorial experiment: a script, its
//! options, factors with their levels, and the commands around the runs.
//!
//! Input: the text. Output: the description, or all errors with their positions. Not in here: the scripts and the
//! options of a run, which the command line checks, and TOML itself (`file_reader`).

use super::commands::level_variable;
use super::file_keys::{EXPERIMENT_KEYS, FACTOR_KEYS, HOOK_KEYS, LEVEL_KEYS};
use super::file_reader::{self, FileErrors, FileTable, FileValue};
use super::order::{NAMED, StudyOrder};
use super::rule_text::{run_range, share};
use super::scopes::{HookScope, ScopeHook};
use super::wanted::{MAX_RETRIES, precision};
use crate::analysis::PrecisionRule;
use crate::comparison::FactorialTables;
use crate::diag::{Code, Diagnostic, did_you_mean, nearest};
use crate::import::Metric;
use crate::source::{FileId, SourceMap, Span, Spanned};
use crate::util::printable;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

const MAX_CELLS: usize = 10_000;

/// The default number of runs of each cell.
const DEFAULT_REPEATS: u64 = 3;

/// A variable with the position of its name, and its value.
pub type SetVariable = (Spanned<String>, String);

/// The description of a factorial experiment, as a file gives it.
#[derive(Clone, Debug)]
pub struct ExperimentFile {
    /// The name; `None` if it is that of the file.
    pub name: Option<String>,
    /// The script; `None` if each level of a factor has one.
    pub script: Option<Spanned<String>>,
    /// Options of each run: texts that are split into words.
    pub options: Vec<Spanned<String>>,
    /// Variables of each run.
    pub set: Vec<SetVariable>,
    /// The variables that `--scale` multiplies, or divides with `1/` before the name; empty: `scale`.
    pub scale: Vec<String>,
    pub factors: Vec<FileFactor>,
    /// The order of the runs.
    pub order: StudyOrder,
    /// The minimum and the maximum number of runs of each cell.
    pub repeats: (u64, u64),
    /// The relative half-width of the interval that is precise enough; `None` if the number of runs is fixed.
    pub until_ci: Option<f64>,
    /// When it is precise enough.
    pub stop: PrecisionRule,
    /// The metrics; the position is that of the file's list, or its start.
    pub metrics: Vec<Spanned<Metric>>,
    /// The tables of the result besides that of the cells.
    pub tables: FactorialTables,
    /// The commands of the scopes, from the outer scopes to the inner ones, with their positions.
    pub hooks: Vec<Spanned<ScopeHook>>,
    /// The commands whose output is recorded.
    pub records: Vec<Spanned<String>>,
    /// The positions of all commands: those of the scopes, and those whose output is recorded.
    pub commands: Vec<Span>,
    /// Whether the used space is recorded.
    pub record_space: bool,
    /// The maximum number of times that a disturbed run is made again.
    pub retry_disturbed: Option<u64>,
    /// The maximum duration of a command.
    pub time_limit: Option<Duration>,
}

#[derive(Clone, Debug)]
pub struct FileFactor {
    pub name: Spanned<String>,
    pub levels: Vec<FileLevel>,
}

#[derive(Clone, Debug)]
pub struct FileLevel {
    /// The name, with the position of the level.
    pub name: Spanned<String>,
    /// The script, if the level has one.
    pub script: Option<Spanned<String>>,
    /// Options: texts that are split into words.
    pub options: Vec<Spanned<String>>,
    pub set: Vec<SetVariable>,
    /// The variables that `--scale` multiplies, if they are not those of the experiment.
    pub scale: Vec<String>,
    /// The metric of the cells at this level, if it is not that of the experiment.
    pub metric: Option<Spanned<Metric>>,
}

impl FileLevel {
    /// True if the level changes nothing of a run.
    fn is_empty(&self) -> bool {
        self.script.is_none() && self.options.is_empty() && self.set.is_empty()
    }
}

/// Reads an experiment file. Returns all its errors.
pub fn read(map: &SourceMap, file: FileId) -> Result<ExperimentFile, Vec<Diagnostic>> {
    file_reader::parse(map, file, |root, errors| {
        let (hook_scopes, next_hook) = (HashMap::new(), HashMap::new());
        FileParser { map, errors, hooks: Vec::new(), commands: Vec::new(), hook_scopes, next_hook }.experiment(root)
    })
}

/// True if a name may contain this character. Names are parts of those of files and environment variables.
pub(super) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// The state of reading a file.
pub(super) struct FileParser<'a> {
    map: &'a SourceMap,
    pub(super) errors: &'a mut FileErrors,
    pub(super) hooks: Vec<Spanned<ScopeHook>>,
    /// The positions of all commands.
    commands: Vec<Span>,
    /// The scopes of the hooks of each name.
    hook_scopes: HashMap<String, Vec<HookScope>>,
    /// The number of the next hook without a name, by the name of its scope and its level.
    next_hook: HashMap<(String, Option<usize>), usize>,
}

impl FileParser<'_> {
    fn experiment(mut self, root: &FileTable<'_>) -> ExperimentFile {
        root.check_keys(EXPERIMENT_KEYS, self.errors);
        let factors = self.factors(root);
        let order = self.order(root);
        self.file_hooks(root, &factors, order);
        let metrics = self.metrics(root, &factors);
        let (repeats, until_ci) = self.repeats(root);
        let stop = self.stop(root, repeats);
        let (records, record_space) = self.records(root);
        let file = ExperimentFile {
            name: self.text(root, "name").map(|name| name.node),
            script: self.script(root),
            options: self.options(root),
            set: self.set(root),
            scale: self.scale(root),
            order,
            repeats,
            until_ci,
            stop,
            metrics,
            tables: self.tables(root, &factors),
            records,
            record_space,
            retry_disturbed: self.retries(root),
            time_limit: root.value("time-limit", self.errors).and_then(|v| v.duration("time-limit", self.errors)),
            hooks: Vec::new(),
            commands: Vec::new(),
            factors,
        };
        self.text(root, "about");
        self.check_factors(&file);
        self.check_metrics(&file);
        self.check_scripts(root, &file);
        // The order in which scopes are nested.
        let depth = |hook: &Spanned<ScopeHook>| match hook.node.scope {
            HookScope::Experiment => 0,
            HookScope::Block => 1,
            HookScope::Level { factor, .. } => 2 + factor,
            HookScope::Run => usize::MAX,
        };
        self.hooks.sort_by_key(depth);
        self.commands.extend(file.records.iter().map(|record| record.span));
        self.commands.sort_by_key(|span| span.start);
        ExperimentFile { hooks: self.hooks, commands: self.commands, ..file }
    }

    pub(super) fn text(&mut self, table: &FileTable<'_>, key: &str) -> Option<Spanned<String>> {
        let value = table.value(key, self.errors)?;
        let text = value.text(key, self.errors)?;
        if text.node.trim().is_empty() {
            self.errors.add(
                Code::WrongValue,
                text.span,
                format!("`{key}` is empty"),
                "write a text, or remove the key",
            );
            return None;
        }
        Some(text)
    }

    /// Reads the name of a script. It becomes a word of a command line, where an option could permit something.
    fn script(&mut self, table: &FileTable<'_>) -> Option<Spanned<String>> {
        let script = self.text(table, "script")?;
        if script.node.starts_with('-') {
            let message = format!("`{}` is an option, not a script", printable::line(&script.node));
            let help = "name a file or a personality; `./-x` is the file `-x`";
            self.errors.add(Code::WrongValue, script.span, message, help);
            return None;
        }
        Some(script)
    }

    /// Reads a text or a list of texts.
    fn options(&mut self, table: &FileTable<'_>) -> Vec<Spanned<String>> {
        let Some(value) = table.value("options", self.errors) else { return Vec::new() };
        if !value.is_list() {
            return value.text("options", self.errors).into_iter().collect();
        }
        let texts = value.list("options", self.errors);
        texts.iter().filter_map(|text| text.text("options", self.errors)).collect()
    }

    fn set(&mut self, table: &FileTable<'_>) -> Vec<SetVariable> {
        let Some(value) = table.value("set", self.errors) else { return Vec::new() };
        let Some(set) = value.table("set", "a `set` table", self.errors) else { return Vec::new() };
        set.assignments(self.errors)
    }

    fn factors(&mut self, root: &FileTable<'_>) -> Vec<FileFactor> {
        let Some(value) = root.value("factor", self.errors) else { return Vec::new() };
        let tables = value.tables("factor", "a factor", self.errors);
        let mut factors: Vec<FileFactor> = Vec::new();
        let mut variables = HashSet::new();
        for table in tables {
            if let Some(factor) = self.factor(&table, factors.len()) {
                // Two names must not share a variable of the commands.
                if !variables.insert(level_variable(&factor.name.node)) {
                    let message = format!("there are two factors `{}`", factor.name.node);
                    self.errors.add(Code::WrongValue, factor.name.span, message, "give one of them another name");
                }
                factors.push(factor);
            }
        }
        factors
    }

    fn factor(&mut self, table: &FileTable<'_>, index: usize) -> Option<FileFactor> {
        table.check_keys(FACTOR_KEYS, self.errors);
        let Some(name) = table.value("name", self.errors) else {
            self.missing(table.span, "a factor without a name", "add `name = \"…\"`, such as that of a variable");
            return None;
        };
        let name = name.text("name", self.errors)?;
        if name.node.is_empty() || !name.node.chars().all(is_plain) {
            let message = format!("`{}` is not the name of a factor", printable::line(&name.node));
            self.errors.add(Code::WrongValue, name.span, message, "use letters, digits, `_`, `-` and `.`");
            return None;
        }
        let variable = self.text(table, "variable").unwrap_or_else(|| name.clone());
        let Some(value) = table.value("levels", self.errors) else {
            let message = format!("the factor `{}` has no levels", name.node);
            self.missing(name.span, &message, "add `levels = [1, 2, 4]`, or tables `[[factor.levels]]`");
            return None;
        };
        let values = value.list("levels", self.errors);
        if values.is_empty() && value.is_list() {
            let message = format!("the factor `{}` has no levels", name.node);
            self.errors.add(Code::WrongValue, value.span, message, "list at least one, such as `levels = [1, 2, 4]`");
        }
        let mut levels: Vec<FileLevel> = Vec::new();
        let mut names = HashSet::new();
        for value in &values {
            let Some(level) = self.level(value, &name.node, index, levels.len(), &variable) else { continue };
            if !names.insert(level.name.node.clone()) {
                let message = format!("the factor `{}` has two levels `{}`", name.node, level.name.node);
                self.errors.add(Code::WrongValue, level.name.span, message, "remove one of them, or name it");
            }
            levels.push(level);
        }
        Some(FileFactor { name, levels })
    }

    fn level(
        &mut self,
        value: &FileValue<'_>,
        factor: &str,
        index: usize,
        number: usize,
        variable: &Spanned<String>,
    ) -> Option<FileLevel> {
        let Some(table) = value.as_table("a level") else {
            let name = value.scalar("a level", self.errors)?;
            self.check_level_name(&name);
            let name_of = Spanned::new(variable.node.trim_start_matches('$').to_owned(), variable.span);
            let set = vec![(name_of, name.node.clone())];
            return Some(FileLevel { name, script: None, options: Vec::new(), set, scale: Vec::new(), metric: None });
        };
        table.check_keys(LEVEL_KEYS, self.errors);
        let Some(name) = table.value("name", self.errors) else {
            self.missing(table.span, &format!("a level of `{factor}` without a name"), "add `name = \"…\"`");
            return None;
        };
        let name = name.scalar("`name`", self.errors)?;
        self.check_level_name(&name);
        let scope = HookScope::Level { factor: index, level: Some(number) };
        self.hook(&table, scope, &format!("level-{factor}"));
        let metric = table.value("metric", self.errors).and_then(|value| self.metric("metric", &value));
        let (script, options, set) = (self.script(&table), self.options(&table), self.set(&table));
        Some(FileLevel { name, script, options, set, scale: self.scale(&table), metric })
    }

    /// Names of levels are parts of lines, of names of arms and of environment variables.
    fn check_level_name(&mut self, name: &Spanned<String>) {
        if name.node.trim().is_empty() || name.node.chars().any(char::is_control) {
            let message = format!("`{}` is not the name of a level", printable::line(&name.node));
            self.errors.add(Code::WrongValue, name.span, message, "use letters, digits and punctuation");
        }
    }

    /// Reads the commands of a table, if it has any.
    fn hook(&mut self, table: &FileTable<'_>, scope: HookScope, base: &str) {
        let (before, after) = (self.text(table, "before"), self.text(table, "after"));
        let limit = table.value("time-limit", self.errors);
        let time_limit = limit.as_ref().and_then(|value| value.duration("time-limit", self.errors));
        self.commands.extend(before.iter().chain(&after).map(|text| text.span));
        let Some(first) = before.as_ref().or(after.as_ref()) else {
            if let (HookScope::Level { level: Some(_), .. }, Some(limit)) = (scope, limit) {
                let message = "a time limit without a command";
                self.missing(limit.span, message, "add `before = \"…\"` or `after = \"…\"`, or remove it");
            }
            return;
        };
        let span = first.span;
        // Hooks of different levels of a factor are never in effect at the same time.
        let meets = |other: HookScope| match (other, scope) {
            (HookScope::Level { level: Some(a), .. }, HookScope::Level { level: Some(b), .. }) => a == b,
            _ => true,
        };
        let level = if let HookScope::Level { level, .. } = scope { level } else { None };
        let given = self.hook_name(table, scope);
        let scopes = &self.hook_scopes;
        let is_used = |name: &str| scopes.get(name).is_some_and(|scopes| scopes.iter().any(|other| meets(*other)));
        let mut name;
        if let Some(given) = given {
            if is_used(&given.node) {
                let message = format!("there are two hooks `{}`", given.node);
                self.errors.add(Code::WrongValue, given.span, message, "give one of them another name");
            }
            name = given.node;
        } else {
            // Of hooks with equal scopes, each name is looked at once: a name stays in use.
            let next = self.next_hook.entry((base.to_owned(), level)).or_insert(1);
            loop {
                name = if *next == 1 { base.to_owned() } else { format!("{base}-{next}") };
                *next += 1;
                if !is_used(&name) {
                    break;
                }
            }
        }
        self.hook_scopes.entry(name.clone()).or_default().push(scope);
        let hook = ScopeHook {
            name,
            origin: before.as_ref().map_or_else(String::new, |text| self.origin(text.span)),
            after_origin: after.as_ref().map_or_else(String::new, |text| self.origin(text.span)),
            before: before.map(|text| text.node),
            after: after.map(|text| text.node),
            time_limit: time_limit.map(|limit| limit.as_secs_f64()),
            scope,
        };
        self.hooks.push(Spanned::new(hook, span));
    }

    /// Reads the name of a hook. Those of levels have no key for it.
    fn hook_name(&mut self, table: &FileTable<'_>, scope: HookScope) -> Option<Spanned<String>> {
        if matches!(scope, HookScope::Level { level: Some(_), .. }) {
            return None;
        }
        let name = self.text(table, "name")?;
        if name.node.chars().all(is_plain) {
            return Some(name);
        }
        let message = format!("`{}` is not the name of a hook", printable::line(&name.node));
        self.errors.add(Code::WrongValue, name.span, message, "use letters, digits, `_`, `-` and `.`");
        None
    }

    /// Returns a position as `FILE:LINE`.
    fn origin(&self, span: Span) -> String {
        format!("{}:{}", self.map.file(span.file).name, self.map.line(span))
    }

    fn file_hooks(&mut self, root: &FileTable<'_>, factors: &[FileFactor], order: StudyOrder) {
        let Some(value) = root.value("hook", self.errors) else { return };
        for table in value.tables("hook", "a hook", self.errors) {
            table.check_keys(HOOK_KEYS, self.errors);
            if table.value("before", self.errors).or_else(|| table.value("after", self.errors)).is_none() {
                self.missing(table.span, "a hook without a command", "add `before = \"…\"`, `after = \"…\"` or both");
            }
            let Some((scope, name)) = self.scope(&table, factors, order) else { continue };
            self.hook(&table, scope, &name);
        }
    }

    fn scope(
        &mut self,
        table: &FileTable<'_>,
        factors: &[FileFactor],
        order: StudyOrder,
    ) -> Option<(HookScope, String)> {
        const SCOPES: [&str; 4] = ["experiment", "block", "level", "run"];
        let Some(at) = table.value("at", self.errors) else {
            let help = format!("add `at = \"run\"`, or one of `{}`", SCOPES.join("`, `"));
            self.missing(table.span, "a hook without `at`", &help);
            return None;
        };
        let at = at.text("at", self.errors)?;
        let factor = self.text(table, "factor");
        if let Some(factor) = factor.as_ref().filter(|_| at.node != "level") {
            let message = format!("a hook at `{}` has no factor", at.node);
            self.errors.add(Code::WrongValue, factor.span, message, "write `at = \"level\"`, or remove `factor`");
        }
        match at.node.as_str() {
            "experiment" => Some((HookScope::Experiment, at.node)),
            "block" if !order.has_blocks() => {
                let help = "write `at = \"level\"` or `at = \"run\"`, or remove `order`";
                self.errors.add(Code::WrongValue, at.span, "an experiment in order has no blocks", help);
                None
            }
            "block" => Some((HookScope::Block, at.node)),
            "run" => Some((HookScope::Run, at.node)),
            "level" => {
                let names = || factors.iter().map(|factor| factor.name.node.as_str());
                let Some(wanted) = factor else {
                    let help = format!("add `factor = \"…\"`, one of `{}`", names().collect::<Vec<_>>().join("`, `"));
                    self.missing(at.span, "a hook at a level without its factor", &help);
                    return None;
                };
                let index = self.factor_index(&wanted, factors)?;
                Some((HookScope::Level { factor: index, level: None }, format!("level-{}", wanted.node)))
            }
            other => {
                let help = did_you_mean(nearest(other, SCOPES), || format!("the scopes are `{}`", SCOPES.join("`, `")));
                self.errors.add(Code::WrongValue, at.span, format!("no scope `{other}`"), help);
                None
            }
        }
    }

    fn order(&mut self, root: &FileTable<'_>) -> StudyOrder {
        let Some(order) = self.text(root, "order") else { return StudyOrder::Blocks };
        StudyOrder::find(&order.node).unwrap_or_else(|| {
            let known = NAMED.map(|(name, order)| format!("`\"{name}\"` ({})", order.about()));
            let help = format!("write {}", known.join(" or "));
            self.errors.add(Code::WrongValue, order.span, format!("no order `{}`", order.node), help);
            StudyOrder::Blocks
        })
    }

    fn repeats(&mut self, root: &FileTable<'_>) -> ((u64, u64), Option<f64>) {
        let default = (DEFAULT_REPEATS, DEFAULT_REPEATS);
        let value = root.value("repeats", self.errors);
        let range = value.as_ref().map_or(Some(default), |value| {
            let text = value.scalar("`repeats`", self.errors)?;
            run_range(&text.node)
                .inspect_err(|e| {
                    let message = format!("`{}` is not a number of runs", text.node);
                    self.errors.add(Code::WrongValue, text.span, message, e.clone());
                })
                .ok()
        });
        let is_known = range.is_some();
        let (min, max) = range.unwrap_or(default);
        let Some(precision) = root.value("until-ci", self.errors) else {
            return ((min, max), precision((min, max), None));
        };
        let Some(text) = precision.scalar("`until-ci`", self.errors) else { return ((min, max), None) };
        match share(&text.node) {
            Ok(_) if is_known && min == max => {
                let message = "a precision without a range of runs";
                let help = "write `repeats = \"10..30\"`, or remove `until-ci`";
                self.errors.add(Code::WrongValue, text.span, message, help);
                ((min, max), None)
            }
            Ok(precision) => ((min, max), Some(precision)),
            Err(e) => {
                let message = format!("`{}` is not a precision", text.node);
                self.errors.add(Code::WrongValue, text.span, message, e);
                ((min, max), None)
            }
        }
    }

    /// Reads when the intervals are precise enough.
    fn stop(&mut self, root: &FileTable<'_>, (min, max): (u64, u64)) -> PrecisionRule {
        let Some(name) = self.text(root, "stop") else { return PrecisionRule::Corrected };
        if name.node != "study" {
            let message = format!("no stopping rule `{}`", printable::line(&name.node));
            self.errors.add(Code::WrongValue, name.span, message, "write `\"study\"`, or remove `stop`");
        } else if min == max && self.errors.found.is_empty() {
            let help = "write `repeats = \"10..30\"`, or remove `stop`";
            self.errors.add(Code::WrongValue, name.span, "a stopping rule without a range of runs", help);
        }
        PrecisionRule::Study
    }

    /// Reads the number of times that a disturbed run is made again.
    fn retries(&mut self, root: &FileTable<'_>) -> Option<u64> {
        let text = root.value("retry-disturbed", self.errors)?.scalar("`retry-disturbed`", self.errors)?;
        let number = text.node.parse().ok().filter(|number| *number <= MAX_RETRIES);
        if number.is_none() {
            let message = format!("`{}` is not a number of attempts", printable::line(&text.node));
            self.errors.add(Code::WrongValue, text.span, message, format!("write a number from 0 to {MAX_RETRIES}"));
        }
        number
    }

    /// Returns the position of the factor with this name.
    pub(super) fn factor_index(&mut self, name: &Spanned<String>, factors: &[FileFactor]) -> Option<usize> {
        let names = || factors.iter().map(|factor| factor.name.node.as_str());
        let found = names().position(|factor| factor == name.node);
        if found.is_none() {
            let help = match (nearest(&name.node, names()), factors.is_empty()) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, true) => "the experiment has no factors".to_owned(),
                (None, false) => format!("the factors are `{}`", names().collect::<Vec<_>>().join("`, `")),
            };
            let message = format!("no factor `{}`", printable::line(&name.node));
            self.errors.add(Code::WrongValue, name.span, message, help);
        }
        found
    }

    fn records(&mut self, root: &FileTable<'_>) -> (Vec<Spanned<String>>, bool) {
        let Some(value) = root.value("record", self.errors) else { return (Vec::new(), false) };
        let values = value.list("record", self.errors);
        let texts: Vec<_> = values.iter().filter_map(|text| text.text("record", self.errors)).collect();
        let (space, commands): (Vec<_>, Vec<_>) = texts.into_iter().partition(|text| text.node == "df");
        (commands, !space.is_empty())
    }

    /// Checks the number of cells, and that the levels of each factor differ.
    fn check_factors(&mut self, file: &ExperimentFile) {
        let cells = file.factors.iter().try_fold(1_usize, |cells, factor| cells.checked_mul(factor.levels.len()));
        if let Some(last) = file.factors.last().filter(|_| cells.is_none_or(|cells| cells > MAX_CELLS)) {
            let message = format!("the experiment has more than {MAX_CELLS} cells");
            self.errors.add(Code::WrongValue, last.name.span, message, "use fewer factors, or fewer levels");
        }
        for (n, factor) in file.factors.iter().enumerate() {
            let concerns = |hook: &Spanned<ScopeHook>| match hook.node.scope {
                HookScope::Level { factor, .. } => factor == n,
                // A command may read the level from its environment.
                HookScope::Run => true,
                HookScope::Block | HookScope::Experiment => false,
            };
            let is_inert = factor.levels.len() > 1 && factor.levels.iter().all(FileLevel::is_empty);
            if is_inert && !self.hooks.iter().any(concerns) {
                let message = format!("the levels of the factor `{}` do not differ", factor.name.node);
                let help = "give each level `set`, `options`, `script`, or commands";
                self.errors.add(Code::WrongValue, factor.name.span, message, help);
            }
        }
    }

    /// Checks that every cell has a script.
    fn check_scripts(&mut self, root: &FileTable<'_>, file: &ExperimentFile) {
        let has_scripts = |factor: &FileFactor| factor.levels.iter().all(|level| level.script.is_some());
        if file.script.is_some() || file.factors.iter().any(|factor| !factor.levels.is_empty() && has_scripts(factor)) {
            return;
        }
        if root.value("script", self.errors).is_none() && self.errors.found.is_empty() {
            let help = "add `script = \"varmail\"`, the name of a file or a personality";
            self.missing(root.span, "the experiment has no script", help);
        }
    }

    fn missing(&mut self, span: Span, message: &str, help: &str) {
        self.errors.add(Code::MissingKey, span, message, help);
    }
}
