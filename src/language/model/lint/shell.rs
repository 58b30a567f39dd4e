//! Warns of the shell commands that a script runs and of the files that it writes.

use super::Subject;
use crate::diag::{Code, Diagnostic};
use crate::model::expr::eval;
use crate::model::visit;
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
    found.extend(
        visit::all(commands).filter(|command| command.shell().is_some()).map(|command| runs_shell(command.span)),
    );
}

pub(super) fn writes(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    written(subject.commands, &subject.scope, found);
}

/// Reports files and directories that commands write, by their names at the end of the script.
pub(super) fn written(commands: &[Command], scope: &Scope, found: &mut Vec<Diagnostic>) {
    for command in visit::all(commands) {
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
            _ => continue,
        };
        let message = match eval(name, scope) {
            Ok(value) => format!("writes the {what} `{}`", value.print()),
            Err(_) => format!("writes a {what}"),
        };
        found.push(
            Diagnostic::warning(Code::WritesFile, command.span, message)
                .help("it is written to the results directory: the current one, or that of `--results`"),
        );
    }
}
