//! Commands of the shell in a script: whoever checks it is told before a run refuses it.

use super::Subject;
use crate::diag::{Code, Diagnostic};
use crate::model::{Command, CommandKind, Stats};

pub(super) fn commands(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    told(subject.commands, found);
}

fn told(commands: &[Command], found: &mut Vec<Diagnostic>) {
    for command in commands {
        match &command.kind {
            CommandKind::System(_) | CommandKind::Stats(Stats::Command(_)) => found.push(
                Diagnostic::warning(Code::RunsShell, command.span, "runs a command of the shell")
                    .help("a run refuses that: look at what it does, then allow it with `--allow-system`"),
            ),
            CommandKind::ForEach { body, .. } => told(body, found),
            _ => {}
        }
    }
}
