//! The metrics of an experiment file: those of all cells, those of levels, and the times of commands.

use super::file::{ExperimentFile, FileFactor, FileParser};
use super::file_reader::{FileTable, FileValue};
use super::replay::record_name;
use super::scopes::HookScope;
use crate::diag::{Code, nearest};
use crate::import::{Metric, STUDY};
use crate::source::{Span, Spanned};
use crate::util::printable;

/// The metrics if the file names none.
const DEFAULT_METRICS: [&str; 2] = ["ops", "latency.mean"];

impl FileParser<'_> {
    /// Reads the metrics of the experiment.
    pub(super) fn metrics(&mut self, root: &FileTable<'_>, factors: &[FileFactor]) -> Vec<Spanned<Metric>> {
        let has_own = factors.iter().flat_map(|factor| &factor.levels).any(|level| level.metric.is_some());
        let default = |span: Span| {
            // A level replaces a single metric.
            let names = if has_own { &DEFAULT_METRICS[..1] } else { &DEFAULT_METRICS[..] };
            let metrics = names.iter().filter_map(|name| name.parse().ok());
            metrics.map(|metric| Spanned::new(metric, span)).collect()
        };
        let Some(value) = root.value("metrics", self.errors) else { return default(root.span) };
        let values = value.list("metrics", self.errors);
        let mut metrics = Vec::new();
        for value in &values {
            let Some(name) = value.text("metrics", self.errors) else { continue };
            if name.node == "study" {
                let study = STUDY.iter().filter_map(|name| name.parse().ok());
                metrics.extend(study.map(|metric| Spanned::new(metric, name.span)));
            } else {
                metrics.extend(self.parsed(&name));
            }
        }
        if values.is_empty() && value.is_list() {
            self.errors.add(Code::WrongValue, value.span, "no metrics", "name at least one, such as `\"ops\"`");
        }
        metrics
    }

    /// Reads the name of a metric.
    pub(super) fn metric(&mut self, key: &str, value: &FileValue<'_>) -> Option<Spanned<Metric>> {
        let name = value.text(key, self.errors)?;
        self.parsed(&name)
    }

    fn parsed(&mut self, name: &Spanned<String>) -> Option<Spanned<Metric>> {
        let metric = name.node.parse::<Metric>().inspect_err(|e| {
            let help = e.strip_prefix("unknown metric: ").unwrap_or(e).to_owned();
            let message = format!("no metric `{}`", printable::line(&name.node));
            self.errors.add(Code::WrongValue, name.span, message, help);
        });
        metric.ok().map(|metric| Spanned::new(metric, name.span))
    }

    /// Checks the metrics of levels, and those that are the times of commands.
    pub(super) fn check_metrics(&mut self, file: &ExperimentFile) {
        let own = |factor: &FileFactor| factor.levels.iter().find_map(|level| level.metric.clone());
        let mut with_own = file.factors.iter().filter_map(|factor| Some((factor, own(factor)?)));
        if let Some((factor, metric)) = with_own.next() {
            let name = &factor.name.node;
            if let Some((other, metric)) = with_own.next() {
                let message = format!("levels of two factors have metrics: `{name}` and `{}`", other.name.node);
                let help = "give a metric only to levels of one of them";
                self.errors.add(Code::WrongValue, metric.span, message, help);
            }
            if let Some([_, ..]) = file.tables.effects.as_deref() {
                let message =
                    format!("`effects` are means over all cells, and levels of `{name}` have metrics of their own");
                let help = "remove `effects`, or give `metrics` instead of the metrics of levels";
                self.errors.add(Code::WrongValue, metric.span, message, help);
            }
            for (key, table) in [("columns", &file.tables.columns), ("study", &file.tables.study)] {
                if table.as_ref() == Some(name) {
                    let message = format!("`{key}` compares the levels of `{name}`, which have different metrics");
                    let help = format!("remove `{key}`, or give `metrics` instead of the metrics of levels");
                    self.errors.add(Code::WrongValue, metric.span, message, help);
                }
            }
        }
        let commands = self.timed_commands(file);
        let own = file.factors.iter().flat_map(|factor| &factor.levels).filter_map(|level| level.metric.as_ref());
        for metric in file.metrics.iter().chain(own) {
            let Some(command) = metric.node.command().filter(|name| !commands.iter().any(|known| known == name)) else {
                continue;
            };
            let help = match (nearest(command, commands.iter().map(String::as_str)), &commands[..]) {
                (Some(near), _) => format!("did you mean `{}`?", metric.node.of_flowop(near)),
                (None, []) => "add a hook with `at = \"run\"` and a `name`".to_owned(),
                (None, _) => format!("the commands are `{}`", commands.join("`, `")),
            };
            let message = format!("no `{}`: no command `{command}` is executed for each run", metric.node);
            self.errors.add(Code::WrongValue, metric.span, message, help);
        }
    }

    /// Returns the names of the commands that are executed for each run.
    fn timed_commands(&self, file: &ExperimentFile) -> Vec<String> {
        let of_run = self.hooks.iter().filter(|hook| hook.node.scope == HookScope::Run);
        let hooks = of_run.flat_map(|hook| hook.node.commands().map(|(time, _)| hook.node.command_name(time)));
        hooks.chain((1..=file.records.len()).map(record_name)).collect()
    }
}
