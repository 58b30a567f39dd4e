//! The end of the text report: a line for each warning, and the result in one line.

use crate::result::{Document, Note, NoteCode, Run, RunState, warnings};
use crate::util::count::measured;
use crate::util::duration::latency;
use crate::util::wrap::{fill, fill_list};
use std::io::{self, Write};

/// Writes the end of the report of a run in lines of at most `width` columns.
pub(super) fn write(width: usize, document: &Document, run: &Run, out: &mut dyn Write) -> io::Result<()> {
    write_warnings(width, document, run, out)?;
    write_result(width, run, out)
}

/// Writes the warnings of a run, each with the code that `wmlrun explain` knows: the advice would hide the table.
fn write_warnings(width: usize, document: &Document, run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let found = warnings::of(document, run);
    let derived = found.iter().map(|warning| (warning.code(), warning.message()));
    let notes = run.warnings.iter().filter(|note| !warnings::is_derived(note));
    // First that threads did not do what the script asks for: it may be the reason of other warnings.
    let (unfulfilled, others): (Vec<&Note>, Vec<&Note>) =
        notes.partition(|note| NoteCode::of(note).is_some_and(NoteCode::is_unfulfilled));
    let text = |note: &&'_ Note| (note.code.clone(), note.message.clone());
    let derived = derived.map(|(code, message)| (code.to_owned(), message));
    let all: Vec<(String, String)> =
        unfulfilled.iter().map(text).chain(derived).chain(others.iter().map(text)).collect();
    if !all.is_empty() {
        writeln!(out)?;
    }
    for (code, message) in all {
        writeln!(out, "{}", fill(&format!("warning[{code}]: {message}"), width, "  "))?;
    }
    match &found[..] {
        [] => {}
        [only] => writeln!(out, "  = help: for advice, `wmlrun explain {}`", only.code())?,
        [first, ..] => writeln!(out, "  = help: for advice, `wmlrun explain CODE`, such as `{}`", first.code())?,
    }
    Ok(())
}

/// Writes the result of a run in one line, which is the last one on the screen.
fn write_result(width: usize, run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let s = &run.summary;
    let mut parts = if run.state == RunState::Complete { Vec::new() } else { vec![run.state.name().replace('_', " ")] };
    let waiting: Vec<String> =
        run.phases.iter().filter(|phase| phase.start_seconds.is_none()).map(|phase| phase.number.to_string()).collect();
    match waiting.len() {
        0 => {}
        1 => parts.push(format!("phase {} not started", waiting[0])),
        _ => parts.push(format!("phases {} not started", waiting.join(", "))),
    }
    if s.ops == 0 {
        parts.push("no I/O operation".to_owned());
    } else {
        parts.push(format!("{} ops/s", measured(s.ops_per_s)));
        if s.mib_per_s > 0.0 {
            parts.push(format!("{} MiB/s", measured(s.mib_per_s)));
        }
        if let Some(open) = &run.open_loop {
            // The time of the calls would be read as that of the requests.
            let (achieved, offered) = (measured(open.achieved_per_s), measured(open.offered_per_s));
            parts.push(format!("achieved {achieved} of {offered} requests/s"));
        } else {
            parts.extend(s.latency_ns.mean.map(|ns| format!("mean {}", latency(ns))));
            parts.extend(s.latency_ns.shown(s.ops).p99.map(|ns| format!("p99 {}", latency(ns as f64))));
        }
    }
    writeln!(out, "\n{}", fill_list(&format!("result: {}", parts.join(", ")), width))
}
