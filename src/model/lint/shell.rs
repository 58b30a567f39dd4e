//! What a script does besides its runs: commands of the shell, files that it writes. Whoever checks it is told before a run.

use super::Subject;
use crate::diag::{Code, Diagnostic};
use crate::model::expr::eval;
use crate::model::{Command, CommandKind, FlowopDef, Scope, Stats};
use crate::source::Span;
use crate::spec::Role;

pub(super) fn commands(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    find(subject.commands, found);
    let threads = subject.threads().flat_map(|(_, thread)| &thread.flowops);
    let composites = subject.composites.iter().flat_map(|composite| &composite.flowops);
    let runs = |flowop: &&FlowopDef| flowop.spec.is_some_and(|spec| spec.is(Role::RunsCommand));
    found.extend(threads.chain(composites).filter(runs).map(|flowop| runs_shell(flowop.kind.span)));
}

fn runs_shell(span: Span) -> Diagnostic {
    Diagnostic::warning(Code::RunsShell, span, "runs a command of the shell")
        .help("a run refuses that: look at what it does, then allow it with `--allow-system`")
}

pub(super) fn find(commands: &[Command], found: &mut Vec<Diagnostic>) {
    for command in commands {
        match &command.kind {
            CommandKind::System(_) | CommandKind::Stats(Stats::Command(_)) => found.push(runs_shell(command.span)),
            CommandKind::ForEach { body, .. } => find(body, found),
            _ => {}
        }
    }
}

pub(super) fn writes(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    written(subject.commands, &subject.scope, found);
}

/// Files and directories that commands write, by the names that they have at the end of the script.
pub(super) fn written(commands: &[Command], scope: &Scope, found: &mut Vec<Diagnostic>) {
    for command in commands {
        let (what, name) = match &command.kind {
            CommandKind::Stats(Stats::Dump(name) | Stats::MultiDump(name) | Stats::XmlDump(name)) => ("file", name),
            CommandKind::Stats(Stats::Directory(name)) => ("directory", name),
            CommandKind::FsFlush => {
                found.push(
                    Diagnostic::warning(Code::WritesFile, command.span, "evicts the file sets from the page cache")
                        .help("`--allow-drop-caches` lets it drop all caches of the machine"),
                );
                continue;
            }
            CommandKind::ForEach { body, .. } => {
                written(body, scope, found);
                continue;
            }
            _ => continue,
        };
        let message = match eval(name, scope) {
            Ok(value) => format!("writes the {what} `{}`", value.print()),
            Err(_) => format!("writes a {what}"),
        };
        found.push(
            Diagnostic::warning(Code::WritesFile, command.span, message)
                .help("it lies in the results directory: the current one, or that of `--results`"),
        );
    }
}
