//! A run of several ranks, which a launcher such as `mpirun` started: what each rank reads, prints and returns.
//!
//! Rank 0 prints and writes everything. The others print nothing, and send their errors to rank 0. They end with status
//! 0 if rank 0 can report for them: a launcher ends all ranks when one ends with another status.

use super::args::RunArgs;
use super::script_input::find_script;
use super::{EndedSession, console, console_of, end_run, run_session, run_settings, watchdog};
use crate::diag::Failure;
use crate::os::signals;
use crate::ranks::{RankEnd, RankGroup, RanksLost, Together};
use crate::report::{Report, json};
use crate::result::{Document, LostRank};
use crate::session::{Front, Settings, library::FoundScript};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Runs a script on this rank. Returns the exit status.
pub(super) fn run(script: &str, args: &RunArgs, group: &Arc<RankGroup>, interrupt: &Arc<AtomicUsize>) -> u8 {
    // The ranks end together.
    let _kept = signals::Kept::begin();
    let together = Together::with(Arc::<RankGroup>::clone(group));
    let (rank, name) = (together.rank(), together.name_of(together.rank()));
    let found = find(script, &together);
    let settings = Settings { together, ..run_settings(args) };
    let scripts: Vec<PathBuf> = found.iter().filter_map(|found| found.path.clone()).collect();
    let mut errors = found.as_ref().err().map_or(String::new(), Failure::text);
    if rank > 0 {
        let settings = of_other_rank(settings, rank);
        let mut front = RankFront { name, errors };
        let done = found.map(|found| run_script(settings, &found, &scripts, interrupt, args.output.quiet, &mut front));
        let status = done.as_ref().map_or_else(|failure| failure.status.code(), |ended| ended.status);
        group.end(status, &front.errors);
        let status = if group.has_lost_ranks() { status } else { 0 };
        return done.map_or(status, |ended| watchdog::end(&ended.watch, status));
    }
    let together = settings.together.clone();
    let done = found.and_then(|found| Ok((found, console_of(args, &settings, &scripts)?)));
    let status = console::status(done.map(|(found, console)| {
        let mut console = console.collecting();
        let ended = run_script(settings, &found, &scripts, interrupt, args.output.quiet, &mut console);
        let status = end_run(ended, args, &mut console);
        errors = console.collected();
        status
    }));
    let ends = group.end(status, "");
    report(&ends, &together, &errors);
    ends.iter().map(status_of).fold(status, u8::max)
}

/// The front end of a rank other than 0: it collects the errors, which rank 0 prints, and shows only what rank 0 does not
/// have.
struct RankFront {
    name: String,
    errors: String,
}

impl Front for RankFront {
    fn result_kept(&mut self, text: &str) {
        console::notice(&format!("{}: {text}", self.name));
    }

    fn result_aside(&mut self, document: &Document) {
        let _ = json::Json.end(document, &mut std::io::stderr());
    }

    fn failed(&mut self, failure: &Failure) {
        self.errors.push_str(&failure.text());
    }
}

/// Finds the script. All ranks read it, but standard input is that of rank 0, which has its text.
fn find(name: &str, together: &Together) -> Result<FoundScript, Failure> {
    if name != "-" {
        return find_script(name);
    }
    let own = if together.rank() == 0 { find_script(name)?.text } else { String::new() };
    let text = together.of_first(own).map_err(|lost| Failure::wrong(lost.to_string(), RanksLost::HELP))?;
    Ok(FoundScript::new("<stdin>".to_owned(), text.into_bytes(), None))
}

/// Returns the settings of a rank other than 0: it writes no result, and a trace of its own.
fn of_other_rank(settings: Settings, rank: usize) -> Settings {
    let trace = settings.trace.map(|(path, operations)| {
        let mut name = path.into_os_string();
        name.push(format!(".{rank}"));
        (PathBuf::from(name), operations)
    });
    Settings { json: None, append: None, live: None, trace, ..settings }
}

/// Prints the errors of the other ranks, equal ones once. `own`: those of rank 0, which were printed.
fn report(ends: &[Result<RankEnd, LostRank>], together: &Together, own: &str) {
    let mut shown: Vec<(&str, Vec<usize>)> = Vec::new();
    for (n, end) in ends.iter().enumerate() {
        match end {
            // The error of the run may have named it.
            Err(lost) if own.contains(&lost.name()) => {}
            Err(lost) => console::error(&lost.to_string(), Some(RanksLost::HELP)),
            Ok(end) if !end.text.is_empty() && end.text != own => {
                match shown.iter_mut().find(|(text, _)| *text == end.text) {
                    Some((_, ranks)) => ranks.push(n + 1),
                    None => shown.push((&end.text, vec![n + 1])),
                }
            }
            Ok(_) => {}
        }
    }
    for (text, ranks) in shown {
        let place = match ranks[..] {
            [rank] => together.name_of(rank),
            [first, ..] => format!("{} ranks, the first of them {}", ranks.len(), together.name_of(first)),
            [] => String::new(),
        };
        console::notice(&format!("{place}:\n{}", text.trim_end()));
    }
}

/// Returns the exit status for the end of a rank. One that is lost counts as failed.
fn status_of(end: &Result<RankEnd, LostRank>) -> u8 {
    end.as_ref().map_or(1, |end| end.status)
}

/// Executes a script in a session of its own.
fn run_script(
    settings: Settings,
    found: &FoundScript,
    scripts: &[PathBuf],
    interrupt: &Arc<AtomicUsize>,
    quiet: bool,
    front: &mut dyn Front,
) -> EndedSession {
    run_session(settings, scripts, interrupt, quiet, front, |session, front| {
        session.script(&found.name, &found.text, front)
    })
}
