//! A trace in figures: those of each class of calls, of the files that are used most, and of the whole.

use super::call::{TraceEvent, TracedCall};
use super::format::{TraceEnd, TraceError, TraceHeader, missing};
use super::kind::CallClass;
use super::partly_known::PartlyKnown;
use super::paths::PathId;
use super::reader::TraceReader;
use super::spread::Spread;
use super::used_files::{FileFigures, UsedFiles};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

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
    /// Writes that wait until their data is on the device.
    pub synchronous: u64,
}

/// Paths, a bit each.
#[derive(Debug, Default)]
struct PathSet(Vec<u64>);

impl PathSet {
    fn add(&mut self, path: PathId) {
        let (at, bit) = (path.0 as usize / 64, path.0 % 64);
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << bit;
    }

    fn len(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }
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
    /// Names in the trace, also those of directories above the files, and of the tree at the beginning.
    pub names: u64,
    /// Paths that calls are on, also those that are only looked for.
    pub paths: u64,
    /// The files that are used most, by their paths; one that ends with `/` is all below a directory.
    pub files: Vec<(String, FileFigures)>,
    /// All files, if they are few enough to be kept apart.
    pub(crate) all_files: Vec<(String, FileFigures)>,
    pub partly_known: PartlyKnown,
    /// From the first event to the end of the last, in nanoseconds.
    pub span: u64,
    pub waits: u64,
    pub waited: u64,
    /// Nanoseconds between calls that threads were ready or asleep; `None` if the recorder did not see it.
    pub between: Option<(u64, u64)>,
    /// Nanoseconds in calls that threads were ready, but without a processor.
    pub runnable: Option<u64>,
}

impl TraceSummary {
    /// Reads a trace.
    pub fn read(input: impl Read) -> Result<Self, TraceError> {
        let mut reader = TraceReader::new(input)?;
        let mut summary = Self { header: reader.header().clone(), ..Self::default() };
        let (mut first, mut last) = (u64::MAX, 0);
        let (mut files, mut used) = (UsedFiles::default(), PathSet::default());
        reader.for_each(|event, paths| {
            last = last.max(event.time());
            match event {
                TraceEvent::Call(call) => {
                    first = first.min(call.start);
                    summary.add(call);
                    files.add(call, paths);
                    [call.path, call.second_path].into_iter().flatten().for_each(|path| used.add(path));
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
        summary.all_files = files.all(reader.paths());
        (summary.paths, summary.files) = (used.len(), files.most_used(reader.paths()));
        (summary.end, summary.cut_short) = (reader.end().cloned(), reader.cut_short());
        Ok(summary)
    }

    /// Counts a call.
    pub fn add(&mut self, call: &TracedCall) {
        self.partly_known.add(call);
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
        figures.on_directories += u64::from(call.is_on_directory());
        figures.synchronous += u64::from(call.is_synchronous());
        *self.threads.entry(call.thread).or_default() += 1;
        self.processes.insert(call.process);
        if let Some(between) = call.between {
            let (runnable, blocked) = self.between.get_or_insert((0, 0));
            *runnable = runnable.saturating_add(between.runnable);
            *blocked = blocked.saturating_add(between.blocked);
        }
        if let Some(runnable) = call.runnable {
            self.runnable = Some(self.runnable.unwrap_or(0).saturating_add(runnable));
        }
    }

    pub fn calls(&self) -> u64 {
        self.classes.values().map(|figures| figures.calls).sum()
    }

    /// How many threads made a thousandth of the calls or more.
    pub(crate) fn working_threads(&self) -> usize {
        let calls = self.calls();
        self.threads.values().filter(|n| *n * 1000 >= calls).count()
    }

    /// The time in all calls together, in nanoseconds.
    pub fn time(&self) -> u64 {
        self.classes.values().fold(0, |sum, figures| sum.saturating_add(figures.time))
    }

    /// The share of that time, of 1.
    pub(crate) fn time_share(&self, class: CallClass) -> f64 {
        let time = self.classes.get(&class).map_or(0, |figures| figures.time);
        time as f64 / self.time().max(1) as f64
    }

    /// The recorder as people call it.
    pub fn recorder(&self) -> &str {
        if self.header.recorder == "ebpf" { "eBPF" } else { &self.header.recorder }
    }

    /// The calls that are known in part, in words.
    pub(crate) fn known_in_part(&self) -> Option<String> {
        self.partly_known.text(self.header.recorder == "ebpf")
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
        missing(self.end.as_ref(), self.cut_short)
    }

    /// The share of calls, of 1.
    pub fn share(&self, class: CallClass) -> f64 {
        let calls = self.classes.get(&class).map_or(0, |figures| figures.calls);
        calls as f64 / self.calls().max(1) as f64
    }
}
