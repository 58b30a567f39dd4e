//! The interactive shell, on a terminal or with commands from a pipe or file.
//!
//! Splits the input into statements and executes them in a session. On a terminal a statement ends with its line unless
//! it is incomplete. In a pipe or file it ends where the next one begins, or where the writer of a pipe pauses. Not
//! here: the commands of the language (`session`); only the commands that exist just in the shell.
//!
//! To add a command of the prompt: a `PromptCommand` in a file here (name, form, documentation, example, the kind of
//! its argument, the function), its name in `table::COMMANDS`, a transcript `tests/cases/repl/NAME.txt` whose first
//! line is `# options: --engine null …`, and a line in docs/shell.md.

mod command;
mod compare;
mod complete;
mod df;
mod editor;
mod help;
mod input;
mod main_loop;
mod script;
mod runs;
mod shell;
mod side_by_side;
mod split;
mod state;
mod table;

pub use command::PromptCommand;
pub(crate) use complete::{Names, attribute_owner, complete, statement};
pub(crate) use help::{ATTRIBUTES, about, about_variable, about_word, topics};
use main_loop::PromptLoop;
pub use main_loop::Signals;
pub(crate) use script::definition;
#[cfg(test)]
pub(crate) use shell::OUTSIDE;
use state::Prompt;
pub use state::{ShellArms, ShellHost};
pub use table::COMMANDS;

use crate::os::signals;
use crate::session::{Front, Session, Status};

/// Runs a shell on standard input until end of file or `quit`. Returns the status of the session; for a pipe or file,
/// the worst status of all commands.
pub fn run(
    mut session: Session,
    script: Option<(&str, &str)>,
    terminal: bool,
    signals: Signals,
    host: Box<dyn ShellHost>,
    front: &mut dyn Front,
) -> Status {
    let loaded = session.apply_sets().and_then(|()| match script {
        Some((name, text)) => session.load(name, text, front),
        None => Ok(()),
    });
    let worst = front.status(loaded);
    let prompt = Prompt { session, host, history: Vec::new(), sourcing: 0 };
    // At a prompt ^C ends a run or a line, not the shell.
    let _kept = terminal.then(signals::Kept::begin);
    let mut shell = PromptLoop { prompt, front, signals, worst, terminal, stopped: false };
    if terminal {
        editor::run(&mut shell);
    } else {
        input::run(&mut shell);
    }
    let PromptLoop { prompt, front, worst, .. } = shell;
    if !terminal {
        prompt.session.runner.watch.note_status(worst);
    }
    let last = prompt.session.finish(front);
    match worst {
        Status::Interrupted(_) => last.max(worst),
        _ if terminal => last,
        worst => last.max(worst),
    }
}
