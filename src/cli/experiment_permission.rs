//! The commands that an experiment executes, and the permission for those of a results folder from elsewhere.

use super::arms;
use super::console;
use super::shell_text::joined;
use crate::diag::Failure;
use crate::experiment::{Experiment, HookTime, ScopeHook, is_made_here};
use crate::measure::GivenBy;
use crate::util::printable;
use std::collections::BTreeSet;
use std::path::Path;

/// Describes the commands of an experiment, a line for each: those around its runs, and the one that starts them.
pub(super) fn command_lines(experiment: &Experiment) -> Vec<String> {
    let hooks = experiment.hooks.0.iter().map(|(name, command)| format!("`--{name}` runs `{command}`"));
    let scopes = experiment.scopes.iter().flat_map(hook_lines);
    let records = experiment.records.iter().map(|command| format!("`record` runs `{command}` after each run"));
    let launch = (!experiment.launch.is_empty())
        .then(|| format!("`--launch` starts each run with `{}`", joined(&experiment.launch)));
    hooks.chain(scopes).chain(records).chain(launch).collect()
}

/// Describes the commands of a scope, a line for each.
pub(super) fn hook_lines(hook: &ScopeHook) -> Vec<String> {
    let line = |(time, text): (HookTime, &str)| format!("{}: `{}` runs `{text}`", hook.origin(time), time.name());
    hook.commands().map(line).collect()
}

/// Refuses to resume an experiment whose folder is from elsewhere and would execute commands or permit its runs
/// something, unless `is_allowed` is set. They are listed.
pub(super) fn check_permission(folder: &Path, experiment: &Experiment, is_allowed: bool) -> Result<(), Failure> {
    if is_allowed {
        return Ok(());
    }
    let words =
        experiment.arms.iter().flat_map(|arm| &arm.words).filter(|word| arms::given_by(word) == GivenBy::Caller);
    let permissions: BTreeSet<String> = words.map(|word| format!("the runs have the option `{word}`")).collect();
    let lines: Vec<String> = command_lines(experiment).into_iter().chain(permissions).collect();
    let is_made_here = || {
        let help = "make the files of the folder readable";
        is_made_here(folder).map_err(|e| Failure::refused(format!("{}: {e}", folder.display()), help))
    };
    if lines.is_empty() || is_made_here()? {
        return Ok(());
    }
    lines.iter().for_each(|line| console::notice(&printable::line(line)));
    let text = format!(
        "{} was not made on this host by this user, so what is listed above is not permitted",
        folder.display()
    );
    Err(Failure::refused(text, "if you trust the folder, permit it with `--allow-system`"))
}
