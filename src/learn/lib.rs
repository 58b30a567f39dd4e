//! Learning: from a trace of a program to a script that does the same, for people to read and change.
//!
//! The calls are taken in the words of the language (`action`), on the file sets that their names make (`names`, `files`,
//! `sets`), thread by thread (`streams`); threads that do one job in turn are one (`pools`). Threads that are alike (`groups`)
//! are one loop (`model`), and loops may wait for each other (`waits`, `semaphores`). The iterations of a loop are found by a
//! call that begins them anew, or else by the open files (`cut`), and their shapes become one tree (`tree`) with what was seen
//! at each place (`samples`, `values`). Files that stay open are told from those of one job (`openings`), and calls that
//! flowops make by themselves are left out (`own_looks`). `script` and `lines` write it down.
//!
//! Whether the script does what the program does is told by recording both (`fidelity`).

mod action;
mod chance;
mod cut;
mod fidelity;
mod files;
mod groups;
mod lines;
mod model;
mod names;
mod openings;
mod own_looks;
mod pools;
mod samples;
mod script;
mod semaphores;
mod sets;
mod streams;
mod tree;
mod values;
mod waits;

pub use fidelity::{
    Fidelity, FidelityDocument, FidelityRow, FidelityVerdict, RecordingsCompared, TracedRun, TracedSide, TransactionEnd,
};

use action::CallAction;
use cut::CutBy;
use fidelity::NOT_COMPARED;
use model::LearnedModel;
use names::read_names;
use script::ScriptWriter;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Seek};
use streams::{CallStream, StreamBuilder};
use wml_text::count::{count, grouped};
use wml_text::wrap::fill;
use wml_text::{duration, size};
use wml_trace::{TraceError, TraceEvent, TraceReader};

/// What a person can change at once: the variable, and what it is.
const SCALES: [(&str, &str); 3] = [
    ("$clients", "threads of the loop that takes most time"),
    ("$files", "a factor of the numbers of files and directories"),
    ("$scale", "a factor of the sizes of files, not of single reads and writes"),
];

/// A script that was learned.
#[derive(Debug)]
pub struct LearnedScript {
    pub text: String,
    /// True if calls are missing in the trace.
    pub is_incomplete: bool,
    /// Calls of the trace, and those that the script stands for.
    pub calls: u64,
    pub modelled: u64,
    /// What ends the iterations of the loop that takes most time.
    pub transaction: Option<TransactionEnd>,
}

/// Learns a script from a trace, which is read twice. `version` is that of wmlrun.
///
/// # Errors
/// If the trace can't be read, or has no calls that a script could make.
pub fn learn(mut input: impl Read + Seek, version: &str) -> Result<LearnedScript, TraceError> {
    let mut reader = TraceReader::new(&mut input)?;
    let (mut files, mut sets, pools) = read_names(&mut reader)?;
    let (header, end) = (reader.header().clone(), reader.end().cloned());
    let is_incomplete = end.as_ref().is_none_or(|end| !end.is_complete());
    drop(reader);
    input.rewind()?;
    let mut reader = TraceReader::new(&mut input)?;
    let mut builder = StreamBuilder::new(&mut files, &sets);
    let mut last = 0;
    reader.for_each(|event, _| {
        if let TraceEvent::Call(call) = event {
            last = last.max(call.end());
        }
        if let Some(event) = pools.as_one(event) {
            builder.add(&event);
        }
    })?;
    let mut streams = builder.done();
    let changes = std::mem::take(&mut streams.changes);
    let lasting = std::mem::take(&mut streams.lasting);
    for (n, set) in sets.sets.iter_mut().enumerate() {
        let own = lasting.iter().filter(|(set, ..)| usize::from(*set) == n);
        let threads: BTreeSet<u32> = own.clone().map(|(_, thread, _)| *thread).collect();
        set.starts = streams.starts.get(&(n as u16)).copied().unwrap_or(0);
        set.has_many_open = own.count() * 2 > threads.len() * 3;
    }
    let (calls, knows_time) = (streams.calls, streams.knows_time);
    let implied = streams.implied;
    let not_modelled = streams.not_modelled.clone();
    let single = |(thread, stream): &(&u32, &CallStream)| !stream.steps.is_empty() && !pools.has(**thread);
    let threads = streams.threads.iter().filter(single).count() + pools.threads();
    let all: usize = streams.threads.values().map(|stream| stream.steps.len()).sum();
    let main = streams.threads.values().filter(|stream| stream.steps.len() * 100 >= all);
    let processes: BTreeSet<u32> = main.map(|stream| stream.process).collect();
    let model = LearnedModel::new(streams);
    if model.phases.is_empty() {
        return Err(TraceError {
            message: format!("nothing to learn: {} in the trace, and none that is repeated", count(calls, "call")),
            help: "record a longer run, or other directories with `record --under`".to_owned(),
        });
    }
    // The script begins with the first loop: what was made before exists.
    let begin = model.phases[0].iter().map(|one| one.begin).min().unwrap_or(0);
    for (_, set, change) in changes.iter().filter(|(time, ..)| *time < begin) {
        sets.sets[usize::from(*set)].add_existing(*change);
    }
    let loops: Vec<&model::Loop> = model.phases.iter().flatten().collect();
    let covered: f64 = loops.iter().map(|one| one.covered * one.calls as f64).sum();
    let name = script::title(&header.command);
    let mut notes = Vec::new();
    let command = match header.command.is_empty() {
        true => "a program".to_owned(),
        false => format!("`{}`", script::printable(&header.command.join(" "))),
    };
    let span = end.as_ref().map_or(0, |end| end.duration).max(last);
    notes.push(format!(
        "Source: {command}, recorded by {}: {} in {}, {}.",
        script::printable(&header.recorder),
        count(calls, "call"),
        duration::span(span as f64 / 1e9),
        count(threads as u64, "thread")
    ));
    notes.extend(loops.iter().enumerate().map(|(n, one)| script::about(one, &format!("loop{}", n + 1), &sets)));
    let mut writer = ScriptWriter::new(&sets, &model, end.as_ref().and_then(|end| end.cost_ns));
    notes.extend(writer.about_waits());
    if model.left_out.0 > 0 {
        let (left, of) = model.left_out;
        notes.push(format!("Left out: {} of {}.", count(left as u64, "call"), count(of as u64, "thread")));
    }
    if !not_modelled.is_empty() {
        let all = not_modelled.iter().map(|(name, (calls, bytes))| match bytes {
            0 => format!("{} {name}", grouped(*calls)),
            bytes => format!("{} {name} ({})", grouped(*calls), size::format(*bytes)),
        });
        notes.push(format!("No flowop makes, or failed: {}.", all.collect::<Vec<_>>().join(", ")));
    }
    if !knows_time {
        notes.push(
            "The recorder did not see the time between calls: the script has no `compute`, and is faster.".to_owned(),
        );
    }
    if pools.threads() > 0 {
        let threads = count(pools.threads() as u64, "thread");
        notes.push(format!("{threads} take the calls of one job in turn: they are one thread here, for each process."));
    }
    if processes.len() > 1 {
        notes.push(format!("The {} of the program are threads here.", count(processes.len() as u64, "process")));
    }
    let costliest = model.costliest();
    let transaction = costliest.and_then(|n| match loops.get(n)?.by {
        // A halt is no call.
        CutBy::Anchor(anchor) if anchor.symbol.action == CallAction::Await => None,
        CutBy::Anchor(anchor) => {
            let set = &sets.sets[usize::from(anchor.symbol.set)].name;
            Some((format!("loop{}", n + 1), TransactionEnd::new(anchor, set)))
        }
        CutBy::Sessions => None,
    });
    let mut text = format!("# {name}: learned from a trace by wmlrun {version}\n");
    for note in notes {
        text.push_str("#\n");
        for line in fill(&note, 108, "").lines() {
            let _ = writeln!(text, "# {line}");
        }
    }
    if let Some((name, end)) = &transaction {
        let _ = writeln!(text, "#\n{}", end.line(name));
    }
    let _ = writeln!(text, "#\n{NOT_COMPARED}\n#");
    let script = writer.write(&model);
    let known = SCALES.iter().filter(|(name, _)| script.contains(&format!("set {name}=")));
    let known = known.map(|(name, what)| format!("{name}: {what}.")).collect::<Vec<_>>().join(" ");
    fill(&known, 108, "").lines().for_each(|line| _ = writeln!(text, "# {line}"));
    // Arithmetic is of one dialect of Filebench, random variables are of the other.
    let _ = writeln!(text, "#\n# dialect: fsl\n\n{script}");
    Ok(LearnedScript {
        text,
        is_incomplete,
        calls,
        modelled: covered as u64 + implied,
        transaction: transaction.map(|(_, end)| end),
    })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod wait_tests;
