//! A trace for people, and for programs.

use super::format::TraceEnd;
use super::kind::{CALL_CLASSES, CallClass};
use super::partly_known::PartlyKnown;
use super::spread::Spread;
use super::summary::{ClassFigures, TraceSummary};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use wml_sheet::{NoteLabel, Sheet, SheetBlock, SheetColumn, SheetTable};
use wml_text::count::{count, fixed, grouped, measured};
use wml_text::{duration, size};

/// How many sizes of a class are listed, and the smallest share of its calls.
const SIZES: (usize, f64) = (3, 0.02);

/// A time in all calls together. None took no time: 0 is unknown.
pub(crate) fn known_time(ns: u64) -> String {
    if ns > 0 { time(ns) } else { "-".to_owned() }
}

/// A value that may be unknown.
pub(crate) fn known(n: Option<u64>, text: impl Fn(u64) -> String) -> String {
    n.map_or_else(|| "-".to_owned(), text)
}

pub(crate) fn time(ns: u64) -> String {
    duration::span(ns as f64 / 1e9)
}

pub(crate) fn per_cent(share: f64) -> String {
    format!("{} %", fixed(share * 100.0, 1))
}

/// A quantile of sizes, exact if it is.
pub(crate) fn quantile_size(sizes: &Spread, share: f64) -> String {
    known(sizes.quantile(share), if sizes.is_rounded() { size::format } else { size::exact })
}

impl TraceEnd {
    /// What recording cost, in words. Of a range the least is sure. Without one, threads may pay at the same time, so that the
    /// share of the run is the most it can be.
    pub fn cost(&self) -> Option<String> {
        let calls = self.calls.saturating_add(self.left_out.values().fold(0, |sum, n| sum.saturating_add(*n)));
        let least = self.cost_ns?;
        let (cost, bound) = match self.most_cost_ns {
            None => (format!("about {}", duration::latency(least)), "most"),
            Some(most) => (format!("{} to {}", duration::latency(least), duration::latency(most)), "least"),
        };
        let share = Some(calls as f64 * least / self.duration as f64).filter(|share| *share < 1.0);
        let share = share.map(|share| format!("{} of the run at {bound}", per_cent(share)));
        let share = share.unwrap_or_else(|| "`--check-overhead` tells what that is of a run".to_owned());
        Some(format!("{cost} a call here, {share}"))
    }
}

impl TraceSummary {
    /// The trace for people.
    pub fn sheet(&self, name: &str) -> Sheet {
        let tables = [self.class_table(), self.size_table(), self.file_table()];
        let mut blocks = vec![SheetBlock::Facts { pairs: self.facts(), is_wrapped: true }];
        blocks.extend(tables.into_iter().filter_map(SheetTable::block));
        let missing = self.missing();
        if !missing.is_empty() {
            let text = format!("the trace is incomplete: it lacks {}", missing.join(", "));
            blocks.extend(SheetBlock::messages(NoteLabel::Warning, &[text]));
        }
        Sheet { title: name.to_owned(), blocks, ..Sheet::default() }
    }

    fn facts(&self) -> Vec<(String, String)> {
        let (header, calls) = (&self.header, self.calls());
        let mut facts = Vec::new();
        let mut fact = |name: &str, text: String| facts.push((name.to_owned(), text));
        if !header.command.is_empty() {
            fact("command", header.command.join(" "));
        }
        let rate = self.rate(calls).map_or(String::new(), |rate| format!(", {rate} a second"));
        fact("calls", format!("{} in {}{rate}", grouped(calls), time(self.span)));
        let processes = count(self.processes.len() as u64, "process");
        fact("made by", format!("{} of {processes}", count(self.threads.len() as u64, "thread")));
        let hidden = if header.hashes_names { ", whose names are hidden" } else { "" };
        fact("on", format!("{}{hidden}", count(self.paths, "path")));
        let file_system = header.file_system.as_ref().map_or(String::new(), |kind| format!(", {kind}"));
        fact("recorded", format!("by {}, on {}{file_system}", self.recorder(), header.kernel));
        if let Some(end) = &self.end {
            let interrupted = (end.ended == "interrupted").then(|| "by a signal to wmlrun".to_owned());
            let status = end.status.filter(|status| *status != 0).map(|status| format!("with status {status}"));
            let ended: Vec<String> = interrupted.into_iter().chain(status).collect();
            if !ended.is_empty() {
                fact("ended", ended.join(", "));
            }
        }
        let synchronous: u64 = self.classes.values().map(|figures| figures.synchronous).sum();
        if synchronous > 0 {
            fact("synchronous", format!("{} (O_SYNC or O_DSYNC)", count(synchronous, "write")));
        }
        if let Some(runnable) = self.runnable {
            fact("in calls", format!("{}, {} of it ready without a processor", time(self.time()), time(runnable)));
        }
        if let Some((runnable, blocked)) = self.between {
            fact("between calls", format!("{} asleep, {} ready without a processor", time(blocked), time(runnable)));
        }
        if let Some(end) = self.end.as_ref().filter(|end| !end.left_out.is_empty()) {
            let left_out = end.left_out.iter().map(|(why, n)| format!("{} {why}", grouped(*n)));
            fact("left out", left_out.collect::<Vec<_>>().join(", "));
        }
        if let Some(end) = self.end.as_ref().filter(|end| !end.not_seen.is_empty()) {
            fact("not seen", end.not_seen.join(", "));
        }
        if let Some(partly_known) = self.known_in_part() {
            fact("known in part", partly_known);
        }
        if let Some(end) = self.end.as_ref().filter(|end| !end.setuid.is_empty()) {
            let programs: Vec<&str> = end.setuid.iter().map(String::as_str).collect();
            fact("setuid", format!("{}, without the rights of the owner", programs.join(", ")));
        }
        if let Some(cost) = self.end.as_ref().and_then(TraceEnd::cost) {
            fact("cost", cost);
        }
        facts
    }

    /// A number of calls in a second. `None` if the source does not say how long they took.
    fn rate(&self, calls: u64) -> Option<String> {
        (self.span > 0).then(|| measured(calls as f64 / self.seconds()))
    }

    /// The classes, those with most calls first.
    fn rows(&self) -> Vec<(CallClass, &ClassFigures)> {
        let mut rows: Vec<_> = self.classes.iter().map(|(class, figures)| (*class, figures)).collect();
        rows.sort_by_key(|(_, figures)| Reverse(figures.calls));
        rows
    }

    fn class_table(&self) -> SheetTable {
        let headings = ["class", "calls", "share", "a second", "errors", "time", "p50", "p99"];
        let mut table = SheetTable::new("Calls by class", headings);
        for (class, figures) in self.rows() {
            // Of a fault, and in some texts of strace, no time is known.
            let latency = |share| figures.durations.quantile(share).filter(|_| figures.time > 0);
            let latency = |share| known(latency(share), |ns| duration::latency(ns as f64));
            table.row([
                class.name().to_owned(),
                grouped(figures.calls),
                per_cent(self.share(class)),
                self.rate(figures.calls).unwrap_or_else(|| "-".to_owned()),
                grouped(figures.errors),
                known_time(figures.time),
                latency(0.5),
                latency(0.99),
            ]);
        }
        table
    }

    fn size_table(&self) -> SheetTable {
        let numbers = ["bytes", "p50 of a call", "p99"].map(SheetColumn::numbers);
        let columns = [SheetColumn::words("class")].into_iter().chain(numbers);
        let mut table = SheetTable::of("Sizes by class", columns.chain([SheetColumn::words("most frequent")]));
        for (class, figures) in self.rows().into_iter().filter(|(class, _)| class.moves_data()) {
            let frequent = figures.sizes.most_frequent(SIZES.0).into_iter().filter(|(_, share)| *share >= SIZES.1);
            let frequent = frequent.map(|(bytes, share)| format!("{} ({})", size::exact(bytes), per_cent(share)));
            table.row([
                class.name().to_owned(),
                size::format(figures.bytes),
                quantile_size(&figures.sizes, 0.5),
                quantile_size(&figures.sizes, 0.99),
                frequent.collect::<Vec<_>>().join(", "),
            ]);
        }
        table
    }

    fn file_table(&self) -> SheetTable {
        let numbers = ["calls", "read", "written", "syncs", "time"].map(SheetColumn::numbers);
        let mut table = SheetTable::of("Most used files", numbers.into_iter().chain([SheetColumn::words("path")]));
        for (path, figures) in &self.files {
            table.row([
                grouped(figures.calls),
                size::format(figures.read),
                size::format(figures.written),
                grouped(figures.syncs),
                known_time(figures.time),
                path.clone(),
            ]);
        }
        if self.files.iter().any(|(_, figures)| figures.is_sum) {
            table.below.push("A path that ends with `/` stands for all files below it.".to_owned());
        }
        table
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
                synchronous: figures.synchronous,
            };
            Some((*name, row))
        });
        let files = self.files.iter().map(|(path, figures)| FileRow {
            path,
            calls: figures.calls,
            bytes_read: figures.read,
            bytes_written: figures.written,
            syncs: figures.syncs,
            seconds: figures.time as f64 / 1e9,
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
            paths: self.paths,
            hashes_names: self.header.hashes_names,
            is_complete: self.is_complete(),
            cut_short: self.cut_short,
            known_in_part: &self.partly_known,
            waits: self.waits,
            waited_seconds: self.waited as f64 / 1e9,
            runnable_seconds: self.between.map(|(runnable, _)| runnable as f64 / 1e9),
            runnable_in_calls_seconds: self.runnable.map(|runnable| runnable as f64 / 1e9),
            blocked_seconds: self.between.map(|(_, blocked)| blocked as f64 / 1e9),
            end: self.end.as_ref(),
            classes: classes.collect(),
            files: files.collect(),
        }
    }
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
    paths: u64,
    hashes_names: bool,
    is_complete: bool,
    cut_short: Option<u64>,
    known_in_part: &'a PartlyKnown,
    waits: u64,
    waited_seconds: f64,
    runnable_seconds: Option<f64>,
    runnable_in_calls_seconds: Option<f64>,
    blocked_seconds: Option<f64>,
    end: Option<&'a TraceEnd>,
    classes: BTreeMap<&'static str, ClassRow>,
    files: Vec<FileRow<'a>>,
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
    synchronous: u64,
}

/// A file that is used much; if its path ends with `/`, all below a directory.
#[derive(Debug, Serialize)]
struct FileRow<'a> {
    path: &'a str,
    calls: u64,
    bytes_read: u64,
    bytes_written: u64,
    syncs: u64,
    seconds: f64,
}
