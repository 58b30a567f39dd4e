//! The error of a command of an experiment file, with the text of the file at its position.

use crate::diag::{Code, Diagnostic, Failure, Status};
use crate::experiment::{Experiment, FailedCommand, HookTime, ScopeHook, read_file, suite};
use crate::session::library;
use crate::source::{SHIPPED, SourceMap, Span, Spanned};
use std::path::Path;

/// The failure of a command, with its help. The text of the experiment file is part of it if the file still has the
/// command.
pub(super) fn failure(experiment: &Experiment, failed: &FailedCommand, help: &str) -> Failure {
    match located(experiment, failed) {
        Some((map, span)) => {
            let error = Diagnostic::error(Code::CommandFailed, span, failed.why.clone()).help(help);
            Failure::in_script(Status::Failed, &map, vec![error])
        }
        None => Failure::failed(failed.to_string(), help),
    }
}

/// Reads the experiment file and finds the command in it.
fn located(experiment: &Experiment, failed: &FailedCommand) -> Option<(SourceMap, Span)> {
    let name = Some(experiment.file.as_str()).filter(|name| !name.is_empty())?;
    let text = match name.strip_suffix(SHIPPED).and_then(suite) {
        Some((_, text)) => text.to_owned(),
        None => library::text(library::read_file(Path::new(name)).ok()?),
    };
    let mut map = SourceMap::new();
    let id = map.add(name, &text);
    let file = read_file(&map, id).ok()?;
    let Some(origin) = &failed.origin else {
        let span = file.records.iter().find(|record| record.node == failed.text)?.span;
        return Some((map, span));
    };
    let is_it = |(time, text): (HookTime, &str), hook: &ScopeHook| hook.origin(time) == origin && text == failed.text;
    let has_it = |hook: &Spanned<ScopeHook>| hook.node.commands().any(|command| is_it(command, &hook.node));
    file.hooks.iter().find(|hook| has_it(hook))?;
    let mut on_line = file.commands.iter().filter(|span| format!("{name}:{}", map.line(**span)) == *origin);
    let first = on_line.clone().next();
    let span = on_line.find(|span| map.slice(**span).contains(&failed.text)).or(first).copied()?;
    Some((map, span))
}
