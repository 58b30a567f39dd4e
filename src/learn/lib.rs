//! Learning: from a trace of a program to a script that does the same, for people to read and change.
//!
//! The calls are taken in the words of the language (`action`), on the file sets that their names make (`names`, `files`,
//! `sets`), thread by thread (`streams`); threads that do one job in turn are one (`pools`). What is made for what follows
//! exists when the script begins (`set_up`). Threads that are alike (`groups`) are one loop (`model`), loops may wait for each
//! other (`waits`, `semaphores`), and threads of one may share syncs (`commits`). The iterations of a loop are found by a call
//! that begins them anew, or else by the open files (`cut`), their shapes (`parse`) become one tree (`tree`) with what was
//! seen at each place (`samples`, `values`). Files that stay open are told from those of one job (`openings`), and calls that
//! flowops make by themselves are left out (`own_looks`). `script` and `lines` write it down, `header` says what it is.
//!
//! Whether the script does what the program does is told by recording both (`fidelity`).

mod action;
mod chance;
mod commits;
mod cut;
mod descriptors;
mod fidelity;
mod files;
mod groups;
mod header;
mod lines;
mod model;
mod names;
mod openings;
mod own_looks;
mod parse;
mod pools;
mod samples;
mod script;
mod semaphores;
mod set_up;
mod sets;
mod streams;
mod tree;
mod values;
mod waits;

pub use fidelity::{
    Fidelity, FidelityDocument, FidelityRow, FidelityVerdict, RecordingsCompared, TracedRun, TracedSide,
    TransactionEnd, compared_values, fidelity_in,
};

use header::{ScriptHeader, TraceFacts};
use model::{LearnedModel, ModelPlan};
use names::read_names;
use pools::ThreadPools;
use script::ScriptWriter;
use sets::LearnedSets;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};
use streams::{CallStreams, StreamBuilder};
use wml_text::count::count;
use wml_trace::{TraceEnd, TraceError, TraceEvent, TraceHeader, TraceReader};

/// Lines of a script, without its header and its tables, that a person reads.
const MOST_LINES: usize = 120;
/// To have fewer lines, a script leaves out shapes with less than this share of all calls, of the time in them, and of syncs.
/// The shares are tried in turn.
const LEAST_SHARES: [f64; 5] = [0.001, 0.0025, 0.005, 0.01, 0.02];
/// The most that a shorter script lacks of the calls of a longer one, of the bytes that these move, or of the syncs.
const MOST_LOST: f64 = 0.125;

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
pub fn learn(input: impl Read + Seek, version: &str) -> Result<LearnedScript, TraceError> {
    let SeenTrace { header, end, mut sets, mut streams, pools, span } = SeenTrace::read(input)?;
    note_openings(&mut sets, &streams);
    let facts = TraceFacts::of(&streams, &pools);
    let changes = std::mem::take(&mut streams.changes);
    let recorder_cost = end.as_ref().and_then(|end| end.cost_ns);
    let (plan, whole) = ModelPlan::new(streams, &changes);
    let model = readable(plan, whole, &sets, recorder_cost);
    let Some(begin) = model.begin() else {
        return Err(TraceError {
            message: format!(
                "nothing to learn: {} in the trace, and none that is repeated",
                count(facts.calls, "call")
            ),
            help: "record a longer run, or other directories with `record --under`".to_owned(),
        });
    };
    // The script begins with the first loop: what was made before exists.
    for (_, set, change) in changes.iter().filter(|(time, ..)| *time < begin) {
        sets.sets[usize::from(*set)].add_existing(*change);
    }
    let mut writer = ScriptWriter::new(&sets, &model, recorder_cost);
    let waits = writer.about_waits();
    let script = writer.write(&model);
    let header = ScriptHeader { version, trace: &header, span, facts: &facts, model: &model, sets: &sets, waits };
    Ok(LearnedScript {
        is_incomplete: end.as_ref().is_none_or(|end| !end.is_complete()),
        calls: facts.calls,
        modelled: model.modelled() + model.set_up as u64 + facts.implied,
        transaction: header.transaction().map(|(_, end)| end),
        text: header.before(&script),
    })
}

/// The model whose script a person can read: without shapes that are little of all, as few as it takes.
fn readable(mut plan: ModelPlan, whole: LearnedModel, sets: &LearnedSets, recorder_cost: Option<f64>) -> LearnedModel {
    let lines = |model: &LearnedModel| ScriptWriter::new(sets, model, recorder_cost).lines(model);
    if lines(&whole) <= MOST_LINES {
        return whole;
    }
    let least_work = whole.work().map(|all| all * (1.0 - MOST_LOST));
    let mut shortest = whole;
    for least in LEAST_SHARES {
        let shorter = plan.model(least);
        if shorter.work().iter().zip(least_work).any(|(work, least)| *work < least) {
            break;
        }
        shortest = shorter;
        if lines(&shortest) <= MOST_LINES {
            break;
        }
    }
    shortest
}

/// What two readings of a trace give.
struct SeenTrace {
    header: TraceHeader,
    end: Option<TraceEnd>,
    sets: LearnedSets,
    streams: CallStreams,
    pools: ThreadPools,
    /// Nanoseconds.
    span: u64,
}

impl SeenTrace {
    fn read(mut input: impl Read + Seek) -> Result<Self, TraceError> {
        let mut reader = TraceReader::new(&mut input)?;
        let (mut files, sets, pools) = read_names(&mut reader)?;
        let (header, end) = (reader.header().clone(), reader.end().cloned());
        drop(reader);
        input.rewind()?;
        let mut reader = TraceReader::new(&mut input)?;
        let mut builder = StreamBuilder::new(&mut files, &sets);
        let mut span = end.as_ref().map_or(0, |end| end.duration);
        reader.for_each(|event, _| {
            if let TraceEvent::Call(call) = event {
                span = span.max(call.end());
            }
            if let Some(event) = pools.as_one(event) {
                builder.add(&event);
            }
        })?;
        let streams = builder.done();
        Ok(Self { header, end, sets, streams, pools, span })
    }
}

/// Notes how the files of each set are opened and written.
fn note_openings(sets: &mut LearnedSets, streams: &CallStreams) {
    for (n, set) in sets.sets.iter_mut().enumerate() {
        let own = streams.lasting.iter().filter(|(set, ..)| usize::from(*set) == n);
        let threads: BTreeSet<u32> = own.clone().map(|(_, thread, _)| *thread).collect();
        let of = |all: &BTreeMap<u16, u64>| all.get(&(n as u16)).copied().unwrap_or(0);
        (set.starts, set.rewrites) = (of(&streams.starts), of(&streams.rewrites));
        set.has_many_open = own.count() * 2 > threads.len() * 3;
    }
}

#[cfg(test)]
mod commit_tests;
#[cfg(test)]
mod loop_tests;
#[cfg(test)]
mod readable_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wait_tests;
