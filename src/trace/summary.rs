//! What a trace says: a row for each class of calls, and what is told of the whole.

use super::call::{TraceEvent, TracedCall};
use super::format::{TraceEnd, TraceError, TraceHeader};
use super::kind::{CALL_CLASSES, CallClass};
use super::reader::TraceReader;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use wml_sheet::{Answer, Sheet, SheetBlock, SheetTable};
use wml_text::count::{count, fixed, grouped};
use wml_text::{duration, printable, size};

/// Counts of numbers by their size: each power of two in 16 parts.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    counts: Vec<u64>,
    total: u64,
}

impl Spread {
    fn part(n: u64) -> usize {
        let power = 63 - (n | 1).leading_zeros() as usize;
        if power < 4 { n as usize } else { (power - 3) * 16 + (n >> (power - 4)) as usize % 16 }
    }

    /// The lowest number of a part.
    fn lowest(part: usize) -> u64 {
        if part < 16 { part as u64 } else { (16 + part as u64 % 16) << (part / 16 - 1) }
    }

    pub fn add(&mut self, n: u64) {
        let part = Self::part(n);
        if self.counts.len() <= part {
            self.counts.resize(part + 1, 0);
        }
        self.counts[part] += 1;
        self.total += 1;
    }

    /// The number that this share of them does not exceed, to a sixteenth. `None` without any.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total.max(1));
        let mut before = 0;
        self.counts
            .iter()
            .position(|n| {
                before += n;
                before >= rank
            })
            .map(Self::lowest)
    }
}

/// The calls of a class.
#[derive(Clone, Debug, Default)]
pub struct ClassFigures {
    pub calls: u64,
    pub errors: u64,
    /// Of data, where the class moves any.
    pub bytes: u64,
    /// In all calls together, in nanoseconds.
    pub time: u64,
    pub durations: Spread,
    /// The bytes of each call that moved any.
    pub sizes: Spread,
    /// Calls on files whose type is known, and on those that are directories.
    pub of_known_type: u64,
    pub on_directories: u64,
}

/// A trace in figures.
#[derive(Clone, Debug, Default)]
pub struct TraceSummary {
    pub header: TraceHeader,
    pub end: Option<TraceEnd>,
    /// The bytes at its end that are no whole block.
    pub cut_short: Option<u64>,
    pub classes: BTreeMap<CallClass, ClassFigures>,
    /// The threads that made calls, each with how many.
    pub threads: BTreeMap<u32, u64>,
    pub processes: BTreeSet<u32>,
    /// Names of files and directories, also of those that are only looked for.
    pub names: u64,
    /// From the first event to the end of the last, in nanoseconds.
    pub span: u64,
    pub waits: u64,
    pub waited: u64,
    /// Nanoseconds between calls that threads were ready or asleep; `None` if the recorder did not see it.
    pub between: Option<(u64, u64)>,
}

impl TraceSummary {
    /// Reads a trace.
    pub fn read(input: impl Read) -> Result<Self, TraceError> {
        let mut reader = TraceReader::new(input)?;
        let mut summary = Self { header: reader.header().clone(), ..Self::default() };
        let (mut first, mut last) = (u64::MAX, 0);
        reader.for_each(|event, _| {
            last = last.max(event.time());
            match event {
                TraceEvent::Call(call) => {
                    first = first.min(call.start);
                    summary.add(call);
                }
                TraceEvent::Wait(wait) => {
                    first = first.min(wait.start);
                    summary.waits += 1;
                    summary.waited = summary.waited.saturating_add(wait.duration);
                }
                _ => first = first.min(event.time()),
            }
        })?;
        summary.span = last.saturating_sub(first);
        summary.names = reader.paths().len() as u64 - 2;
        (summary.end, summary.cut_short) = (reader.end().cloned(), reader.cut_short());
        Ok(summary)
    }

    pub(crate) fn add(&mut self, call: &TracedCall) {
        let class = call.kind.get().class;
        let figures = self.classes.entry(class).or_default();
        figures.calls += 1;
        figures.errors += u64::from(call.result < 0);
        figures.time = figures.time.saturating_add(call.duration);
        figures.durations.add(call.duration);
        if let Some(bytes) = call.bytes() {
            figures.bytes = figures.bytes.saturating_add(bytes);
            figures.sizes.add(bytes);
        }
        figures.of_known_type += u64::from(call.mode.is_some());
        figures.on_directories += u64::from(call.mode.is_some_and(|mode| mode & libc::S_IFMT == libc::S_IFDIR));
        *self.threads.entry(call.thread).or_default() += 1;
        self.processes.insert(call.process);
        if let Some(between) = call.between {
            let (runnable, blocked) = self.between.get_or_insert((0, 0));
            *runnable = runnable.saturating_add(between.runnable);
            *blocked = blocked.saturating_add(between.blocked);
        }
    }

    pub fn calls(&self) -> u64 {
        self.classes.values().map(|figures| figures.calls).sum()
    }

    /// How many threads made a thousandth of the calls or more.
    pub fn working_threads(&self) -> usize {
        let calls = self.calls();
        self.threads.values().filter(|n| *n * 1000 >= calls).count()
    }

    pub fn seconds(&self) -> f64 {
        self.span as f64 / 1e9
    }

    /// True if nothing is missing from it that its recorder could see.
    pub fn is_complete(&self) -> bool {
        self.end.as_ref().is_some_and(TraceEnd::is_complete)
    }

    /// What is missing, in words; none if the trace is complete.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        match (&self.end, self.cut_short) {
            (Some(end), _) => {
                let lost: Vec<String> = end
                    .lost
                    .iter()
                    .filter(|(_, n)| **n > 0)
                    .map(|(why, n)| format!("{} ({})", count(*n, "lost call"), printable::line(why)))
                    .collect();
                missing.extend(lost);
                if end.dropped_parts > 0 {
                    missing.push(format!("{} dropped by `--max-size`", count(end.dropped_parts, "older part")));
                }
            }
            (None, Some(0) | None) => missing.push("the end: the recorder was stopped by force".to_owned()),
            (None, Some(bytes)) => missing.push(format!("the end, after {bytes} bytes of a block that is not whole")),
        }
        missing
    }

    /// The share of calls, of 1.
    pub fn share(&self, class: CallClass) -> f64 {
        let calls = self.classes.get(&class).map_or(0, |figures| figures.calls);
        calls as f64 / self.calls().max(1) as f64
    }

    /// The trace for people.
    pub fn sheet(&self, name: &str) -> Sheet {
        let command: Vec<_> = self.header.command.iter().map(|word| printable::line(word)).collect();
        let (calls, seconds) = (self.calls(), self.seconds());
        let rate = if seconds > 0.0 { calls as f64 / seconds } else { 0.0 };
        let mut facts = vec![
            (
                "calls".to_owned(),
                format!("{} in {}, {} a second", grouped(calls), duration::seconds(seconds), grouped(rate as u64)),
            ),
            (
                "made by".to_owned(),
                format!("{} of {}", count(self.threads.len() as u64, "thread"), count_processes(self.processes.len())),
            ),
            ("names".to_owned(), grouped(self.names)),
            (
                "recorded".to_owned(),
                format!("by {}, on {}", printable::line(&self.header.recorder), printable::line(&self.header.kernel)),
            ),
        ];
        if !command.is_empty() {
            facts.insert(0, ("command".to_owned(), command.join(" ")));
        }
        if let Some((runnable, blocked)) = self.between {
            let seconds = |ns: u64| span(ns as f64 / 1e9);
            facts.push((
                "between calls".to_owned(),
                format!("{} blocked, {} ready without a processor", seconds(blocked), seconds(runnable)),
            ));
        }
        if let Some(end) = self.end.as_ref().filter(|end| !end.left_out.is_empty()) {
            let left_out = end.left_out.iter().map(|(why, n)| format!("{} {}", grouped(*n), printable::line(why)));
            facts.push(("left out".to_owned(), left_out.collect::<Vec<_>>().join(", ")));
        }
        if let Some(end) = self.end.as_ref().filter(|end| !end.not_seen.is_empty()) {
            let not_seen: Vec<_> = end.not_seen.iter().map(|what| printable::line(what)).collect();
            facts.push(("not seen".to_owned(), not_seen.join(", ")));
        }
        let headings = ["class", "calls", "share", "a second", "errors", "p50", "p99", "bytes", "size p50", "size p99"];
        let mut table = SheetTable::new("Calls by class", headings);
        let known = |n: Option<u64>, text: fn(u64) -> String| n.map_or_else(|| "-".to_owned(), text);
        let latency = |ns: u64| duration::latency(ns as f64);
        let mut rows: Vec<(CallClass, &ClassFigures)> =
            self.classes.iter().map(|(class, figures)| (*class, figures)).collect();
        rows.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.calls));
        for (class, figures) in rows {
            let moves = class.moves_data();
            table.rows.push(vec![
                class.name().to_owned(),
                grouped(figures.calls),
                format!("{} %", fixed(self.share(class) * 100.0, 1)),
                if seconds > 0.0 { fixed(figures.calls as f64 / seconds, 1) } else { "-".to_owned() },
                grouped(figures.errors),
                known(figures.durations.quantile(0.5), latency),
                known(figures.durations.quantile(0.99), latency),
                if moves { size::format(figures.bytes) } else { "-".to_owned() },
                known(figures.sizes.quantile(0.5), size::format),
                known(figures.sizes.quantile(0.99), size::format),
            ]);
        }
        let missing = self.missing();
        let mut blocks = vec![SheetBlock::Facts { pairs: facts, is_wrapped: true }, SheetBlock::Table(table)];
        if !missing.is_empty() {
            let items = vec![(format!("the trace is incomplete: it lacks {}", missing.join(", ")), String::new())];
            blocks.push(SheetBlock::Warnings { label: wml_sheet::NoteLabel::Warning, items });
        }
        Sheet { title: name.to_owned(), answer: Answer::default(), blocks, ..Sheet::default() }
    }

    /// The trace for programs.
    pub fn document(&self) -> TraceDocument<'_> {
        let classes = CALL_CLASSES.iter().filter_map(|(class, name, _)| {
            let figures = self.classes.get(class)?;
            let row = ClassRow {
                calls: figures.calls,
                share: self.share(*class),
                errors: figures.errors,
                seconds: figures.time as f64 / 1e9,
                p50_ns: figures.durations.quantile(0.5),
                p99_ns: figures.durations.quantile(0.99),
                bytes: class.moves_data().then_some(figures.bytes),
                size_p50: figures.sizes.quantile(0.5),
                size_p99: figures.sizes.quantile(0.99),
                on_directories: figures.on_directories,
            };
            Some((*name, row))
        });
        TraceDocument {
            schema: "wmlrun.trace/1",
            recorder: &self.header.recorder,
            command: &self.header.command,
            kernel: &self.header.kernel,
            calls: self.calls(),
            seconds: self.seconds(),
            threads: self.threads.len(),
            processes: self.processes.len(),
            names: self.names,
            is_complete: self.is_complete(),
            cut_short: self.cut_short,
            waits: self.waits,
            waited_seconds: self.waited as f64 / 1e9,
            runnable_seconds: self.between.map(|(runnable, _)| runnable as f64 / 1e9),
            blocked_seconds: self.between.map(|(_, blocked)| blocked as f64 / 1e9),
            end: self.end.as_ref(),
            classes: classes.collect(),
        }
    }
}

fn span(seconds: f64) -> String {
    if seconds < 1.0 { duration::latency(seconds * 1e9) } else { duration::seconds(seconds) }
}

fn count_processes(n: usize) -> String {
    if n == 1 { "1 process".to_owned() } else { format!("{} processes", grouped(n as u64)) }
}

/// The output of `wmlrun trace show --json`.
#[derive(Debug, Serialize)]
pub struct TraceDocument<'a> {
    schema: &'static str,
    recorder: &'a str,
    command: &'a [String],
    kernel: &'a str,
    calls: u64,
    seconds: f64,
    threads: usize,
    processes: usize,
    names: u64,
    is_complete: bool,
    cut_short: Option<u64>,
    waits: u64,
    waited_seconds: f64,
    runnable_seconds: Option<f64>,
    blocked_seconds: Option<f64>,
    end: Option<&'a TraceEnd>,
    classes: BTreeMap<&'static str, ClassRow>,
}

#[derive(Debug, Serialize)]
struct ClassRow {
    calls: u64,
    share: f64,
    errors: u64,
    seconds: f64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    bytes: Option<u64>,
    size_p50: Option<u64>,
    size_p99: Option<u64>,
    on_directories: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_a_sixteenth() {
        let mut spread = Spread::default();
        assert_eq!(spread.quantile(0.5), None);
        (1..=1000u64).for_each(|n| spread.add(n * 1000));
        for (share, value) in [(0.0, 1000), (0.5, 500_000), (0.99, 990_000), (1.0, 1_000_000)] {
            let found = spread.quantile(share).unwrap_or(0);
            assert!(found <= value && value - found <= value / 16, "{share}: {found}");
        }
        for n in [0, 1, 15, 16, 17, 31, 32, 1 << 40, u64::MAX] {
            let lowest = Spread::lowest(Spread::part(n));
            assert!(lowest <= n && n - lowest <= n / 16, "{n}: {lowest}");
        }
    }
}
