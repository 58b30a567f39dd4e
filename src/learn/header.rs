//! The header of a learned script: where it comes from, what its loops are, what it lacks.

use crate::action::CallAction;
use crate::cut::{AnchorCall, CutBy};
use crate::fidelity::{NOT_COMPARED, TransactionEnd};
use crate::model::{LearnedModel, Loop, LoopCommit};
use crate::pools::ThreadPools;
use crate::sets::{LearnedSets, word};
use crate::streams::{CallStream, CallStreams};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use wml_text::count::{at_most, count, grouped};
use wml_text::wrap::fill;
use wml_text::{duration, size};
use wml_trace::TraceHeader;

/// The longest line, without its mark.
const WIDTH: usize = 108;
/// What a person can change at once: the variable, and what it is.
const SCALES: [(&str, &str); 3] = [
    ("$clients", "threads of the loop that takes most time"),
    ("$files", "a factor of the numbers of files and directories"),
    ("$scale", "a factor of the sizes of files, not of single reads and writes"),
];
/// The least share of the calls of a phase whose transactions stand for a run.
const LEAST_OF_ALL: f64 = 0.9;
/// A process with a smaller share of the calls does not count, in hundredths.
const SMALL_PROCESS: usize = 1;

/// What the calls of a trace were, before they are taken apart.
pub(crate) struct TraceFacts {
    pub(crate) calls: u64,
    /// Calls that flowops make by themselves.
    pub(crate) implied: u64,
    threads: usize,
    /// Those that take the calls of one job in turn.
    pooled: usize,
    /// Those that follow one another, and how many there are of them at the same time.
    following: (usize, usize),
    processes: usize,
    knows_time: bool,
    not_modelled: BTreeMap<&'static str, (u64, u64)>,
}

impl TraceFacts {
    pub(crate) fn of(streams: &CallStreams, pools: &ThreadPools) -> Self {
        let single = |(thread, stream): &(&u32, &CallStream)| !stream.steps.is_empty() && !pools.has(**thread);
        let all: usize = streams.threads.values().map(|stream| stream.steps.len()).sum();
        let main = streams.threads.values().filter(|stream| stream.steps.len() * 100 >= all * SMALL_PROCESS);
        Self {
            calls: streams.calls,
            implied: streams.implied,
            threads: streams.threads.iter().filter(single).count() + pools.pooled() + pools.following().0,
            pooled: pools.pooled(),
            following: pools.following(),
            processes: main.map(|stream| stream.process).collect::<BTreeSet<u32>>().len(),
            knows_time: streams.knows_time,
            not_modelled: streams.not_modelled.clone(),
        }
    }

    /// Where the calls come from. `span`: nanoseconds.
    fn source(&self, header: &TraceHeader, span: u64) -> String {
        let command = match header.command.is_empty() {
            true => "a program".to_owned(),
            false => format!("`{}`", printable(&header.command.join(" "))),
        };
        format!(
            "Source: {command}, recorded by {}: {} in {}, {}.",
            printable(&header.recorder),
            count(self.calls, "call"),
            duration::span(span as f64 / 1e9),
            count(self.threads as u64, "thread")
        )
    }

    /// What a script can't do.
    fn lacks(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.not_modelled.is_empty() {
            let all = self.not_modelled.iter().map(|(name, (calls, bytes))| match bytes {
                0 => format!("{} {name}", grouped(*calls)),
                bytes => format!("{} {name} ({})", grouped(*calls), size::format(*bytes)),
            });
            notes.push(format!("No flowop makes, or failed: {}.", all.collect::<Vec<_>>().join(", ")));
        }
        if !self.knows_time {
            let what = "The recorder did not see the time between calls: the script has no `compute`, and is faster.";
            notes.push(what.to_owned());
        }
        if self.processes > 1 {
            notes.push(format!("The {} of the program are threads here.", count(self.processes as u64, "process")));
        }
        if self.pooled > 0 {
            let threads = count(self.pooled as u64, "thread");
            notes.push(format!(
                "{threads} take the calls of one job in turn: they are one thread here, for each process."
            ));
        }
        if let (threads @ 1.., rows) = self.following {
            let here = count(rows as u64, "thread");
            notes.push(format!("{} that follow one another are {here} here.", count(threads as u64, "thread")));
        }
        notes
    }
}

/// What a header is made of.
pub(crate) struct ScriptHeader<'a> {
    pub(crate) version: &'a str,
    pub(crate) trace: &'a TraceHeader,
    /// Nanoseconds of the trace.
    pub(crate) span: u64,
    pub(crate) facts: &'a TraceFacts,
    pub(crate) model: &'a LearnedModel,
    pub(crate) sets: &'a LearnedSets,
    /// What is said of loops that wait for each other.
    pub(crate) waits: Vec<String>,
}

impl ScriptHeader<'_> {
    /// What ends the iterations of the loop that takes most time, with the name of that. `None` if its phase is not most of
    /// what the program does, or if the program goes through its files once: then a run is the unit.
    pub(crate) fn transaction(&self) -> Option<(String, TransactionEnd)> {
        if self.sets.goes_once {
            return None;
        }
        let n = self.model.costliest()?;
        let mut before = 0;
        let own = self.model.phases.iter().find(|phase| {
            before += phase.len();
            n < before
        })?;
        let calls = |phase: &[Loop]| phase.iter().map(Loop::modelled).sum::<f64>();
        if calls(own) < LEAST_OF_ALL * self.model.phases.iter().map(|phase| calls(phase)).sum::<f64>() {
            return None;
        }
        match self.model.phases.iter().flatten().nth(n)?.by {
            // A halt is no call.
            CutBy::Anchor(anchor) if !anchor.symbol.action.is_halt() => {
                let set = &self.sets.sets[usize::from(anchor.symbol.set)].name;
                Some((format!("loop{}", n + 1), TransactionEnd::new(anchor, set)))
            }
            CutBy::Anchor(_) | CutBy::Sessions => None,
        }
    }

    /// The header of this script, with the script.
    pub(crate) fn before(self, script: &str) -> String {
        let mut text = format!("# {}: learned from a trace by wmlrun {}\n", title(&self.trace.command), self.version);
        let loops = self.model.phases.iter().flatten().enumerate();
        let mut notes = vec![self.facts.source(self.trace, self.span)];
        notes.extend(loops.map(|(n, one)| about(one, &format!("loop{}", n + 1), self.sets)));
        let loops = self.model.phases.iter().flatten().enumerate();
        notes.extend(loops.filter_map(|(n, one)| Some(about_commit(one.commit.as_ref()?, n + 1, self.sets))));
        notes.extend(self.waits.iter().cloned());
        if let made @ 1.. = self.model.set_up {
            notes.push(format!("Set-up: {} made files that exist here at the beginning.", count(made as u64, "call")));
        }
        if let (left @ 1.., of) = self.model.left_out {
            notes.push(format!("Left out: {} of {}.", count(left as u64, "call"), count(of as u64, "thread")));
        }
        notes.extend(self.facts.lacks());
        notes.iter().for_each(|note| comment(note, &mut text));
        if let Some((name, end)) = self.transaction() {
            let _ = writeln!(text, "#\n{}", end.line(&name));
        }
        let _ = writeln!(text, "#\n{NOT_COMPARED}");
        let known = SCALES.iter().filter(|(name, _)| script.contains(&format!("set {name}=")));
        comment(&known.map(|(name, what)| format!("{name}: {what}.")).collect::<Vec<_>>().join(" "), &mut text);
        // Arithmetic is of one dialect of Filebench, random variables are of the other.
        let _ = writeln!(text, "#\n# dialect: fsl\n\n{script}");
        text
    }
}

/// A paragraph of the header.
fn comment(note: &str, text: &mut String) {
    text.push_str("#\n");
    fill(note, WIDTH, "").lines().for_each(|line| _ = writeln!(text, "# {line}"));
}

/// How a loop was found, for the header.
fn about(one: &Loop, name: &str, sets: &LearnedSets) -> String {
    let percent = |share: f64| format!("{} %", at_most(share * 100.0, 1));
    let by = match one.by {
        CutBy::Anchor(AnchorCall { symbol, .. }) if symbol.action == CallAction::Await => {
            "repeats after it waited".to_owned()
        }
        CutBy::Anchor(AnchorCall { symbol, .. }) if symbol.action == CallAction::Commit => {
            "repeats after each commit".to_owned()
        }
        CutBy::Anchor(AnchorCall { symbol, of_runs }) => {
            let (flowop, set) = (symbol.action.row().flowop, &sets.sets[usize::from(symbol.set)].name);
            format!("repeats after {}`{flowop}` of {set}", if of_runs { "the last " } else { "" })
        }
        CutBy::Sessions => "each open file by itself".to_owned(),
    };
    let at_once = match one.instances {
        n if n == one.threads => String::new(),
        n => format!(" ({n} at the same time)"),
    };
    let lacks: Vec<String> =
        one.lacks.iter().map(|(flowop, calls)| format!("{} {flowop}", grouped(*calls as u64))).collect();
    let without = if lacks.is_empty() { String::new() } else { format!(", without {}", lacks.join(", ")) };
    format!(
        "{name}: {}{at_once}, {}; {by}; {} of their {}{without}; {} bits a call, an independent mix has {}.",
        count(one.threads as u64, "thread"),
        count(one.iterations, "iteration"),
        percent(one.covered),
        count(one.calls as u64, "call"),
        at_most(one.score.bits.abs(), 2),
        at_most(one.score.mix_bits.abs(), 2)
    )
}

/// What the header says of syncs that threads share.
fn about_commit(commit: &LoopCommit, number: usize, sets: &LearnedSets) -> String {
    format!(
        "loop{number} shares the syncs of {}: {} for {}.",
        sets.sets[usize::from(commit.set)].name,
        count(commit.body.times, "sync"),
        count(commit.body.times + commit.covered as u64, "commit")
    )
}

/// What comes from a trace, in a comment.
pub(crate) fn printable(text: &str) -> String {
    wml_text::printable::within(text, 100).into_owned()
}

/// A word for a script's name.
fn title(command: &[String]) -> String {
    let first = command.first().map(|word| word.rsplit('/').next().unwrap_or(word).to_owned());
    word(&first.unwrap_or_else(|| "program".to_owned()))
}
