//! Warnings about scripts that can run: one file for each lint or small family, one line each in [`TABLE`].
//!
//! In: a model without errors, and the variables that are set before it. Out: warnings. A lint only warns of what is
//! certain from the text. Variables have their values at the end of the text (late binding). If a value is unknown, or
//! a name depends on an unknown one, the lint is silent. Deliberately absent: random draws, trees, speeds of a machine.

mod empty;
mod exhausted;
mod names;
mod rates;
mod semaphores;
mod shell;
mod sizes;
mod slots;
mod subject;
mod variables;

use subject::{LARGEST, Subject, Use, int, text};
pub use variables::{read_beside_load, read_variables};

use super::early;
use super::{Command, Model, Scope};
use crate::diag::{self, Code, Diagnostic};

pub struct Lint {
    /// The code of its warnings.
    pub code: Code,
    /// Whether it runs before a run too, not only in `wmlrun check`, because its subject spoils the run.
    pub spoils: bool,
    find: fn(&Subject<'_>, &mut Vec<Diagnostic>),
}

pub const TABLE: &[Lint] = &[
    Lint { code: Code::UnusedVariable, spoils: false, find: variables::unused },
    Lint { code: Code::Shadowed, spoils: false, find: variables::shadowed },
    Lint { code: Code::RepeatedName, spoils: false, find: names::repeated },
    Lint { code: Code::DeadSemaphore, spoils: true, find: semaphores::dead },
    Lint { code: Code::ExhaustedFileset, spoils: true, find: exhausted::exhausted },
    Lint { code: Code::SmallFile, spoils: true, find: sizes::small },
    Lint { code: Code::EmptyFile, spoils: true, find: empty::reads },
    Lint { code: Code::SlotUse, spoils: true, find: slots::misused },
    Lint { code: Code::RateTooHigh, spoils: true, find: rates::too_high },
    Lint { code: Code::LimitsProcess, spoils: false, find: rates::of_process },
    Lint { code: Code::ItemsOfFiles, spoils: false, find: sizes::items },
    Lint { code: Code::RunsShell, spoils: false, find: shell::commands },
    Lint { code: Code::WritesFile, spoils: false, find: shell::writes },
];

/// Returns the warnings of all lints about a model without errors, in source order.
///
/// `scope`: the variables that are set before the script begins (`$dir`, and `--set` of the command line).
/// `before_run`: only lints whose subject spoils the run.
pub fn lint(model: &Model, scope: &Scope, before_run: bool) -> Vec<Diagnostic> {
    let executed = early::executed(&model.commands, scope);
    let subject = Subject::new(model, &executed, scope);
    let mut found = Vec::new();
    let bodies = subject.threads().map(|(_, thread)| &thread.flowops[..]);
    if subject.composite_of.size(bodies) > LARGEST {
        // Such a script is generated, and each lint would unroll it again.
        return found;
    }
    for lint in TABLE.iter().filter(|lint| lint.spoils || !before_run) {
        let mut own = Vec::new();
        (lint.find)(&subject, &mut own);
        own.into_iter().for_each(|d| diag::push(&mut found, d));
    }
    found.sort_by_key(|d| (d.primary.span.file, d.primary.span.start));
    found.dedup();
    found
}

/// Returns warnings about the shell commands of a script and the files that it writes.
pub fn effects(commands: &[Command], scope: &Scope) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    shell::find(commands, &mut found);
    shell::written(commands, scope, &mut found);
    found
}
