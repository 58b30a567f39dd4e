//! What differs between two traces, for people and for programs.

use super::comparison::TraceComparison;
use super::comparison_files::ComparedFile;
use super::kind::{CALL_CLASSES, CallClass};
use super::summary::{ClassFigures, TraceSummary};
use super::summary_sheet::{known, per_cent, quantile_size, time};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use wml_sheet::{Answer, NoteLabel, Sheet, SheetBlock, SheetTable};
use wml_text::count::{count, grouped, measured};
use wml_text::{duration, size};

/// The most notes of a sheet.
const MOST_NOTES: usize = 8;

impl TraceComparison<'_> {
    /// The comparison for people.
    pub fn sheet(&self, names: [&str; 2]) -> Sheet {
        let fact = |n: usize| {
            let side = self.sides[n];
            let calls =
                format!("{} in {} ({} in calls)", count(side.calls(), "call"), time(side.span), time(side.time()));
            let text = format!("{}: {calls}, by {}", names[n], side.recorder());
            (["A", "B"][n].to_owned(), text)
        };
        let mut blocks = vec![SheetBlock::Facts { pairs: vec![fact(0), fact(1)], is_wrapped: true }];
        let tables = [Some(self.call_table()), self.has_times().then(|| self.time_table()), Some(self.size_table())];
        blocks.extend(tables.into_iter().flatten().filter_map(SheetTable::block));
        let files = self.files();
        blocks.extend(self.file_table(&files).block());
        let (first, others) = self.differences.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
        let mut notes: Vec<String> = others.iter().take(MOST_NOTES).cloned().collect();
        if let Some(more @ 1..) = others.len().checked_sub(MOST_NOTES) {
            notes.push(format!("the tables have {}", count(more as u64, "smaller difference")));
        }
        if !self.has_times() {
            let [a, b] = self.sides.map(TraceSummary::recorder);
            notes.push(format!("times are not compared: A was recorded by {a}, B by {b}, and each has its own cost"));
        }
        notes.extend(self.without_files().map(|why| format!("files are not compared: {why}")));
        blocks.extend(SheetBlock::messages(NoteLabel::Note, &notes));
        for (side, letter) in self.sides.into_iter().zip(["A", "B"]) {
            if !side.is_complete() {
                let text = format!("{letter} is incomplete: it lacks {}", side.missing().join(", "));
                blocks.extend(SheetBlock::messages(NoteLabel::Warning, &[text]));
            }
        }
        let result = match (first, files.is_empty()) {
            ("", true) => "The programs do the same.".to_owned(),
            ("", false) => "The programs make the same calls, but not on the same files.".to_owned(),
            (first, _) => format!("{first}."),
        };
        let details = self.work_sentence().into_iter().collect();
        let conditions = self.conditions().into_iter().collect();
        let answer = Answer { result, details, conditions, ..Answer::default() };
        Sheet { title: "Traces".to_owned(), answer, blocks, ..Sheet::default() }
    }

    /// What differs between the recordings, as far as both sides know it.
    fn conditions(&self) -> Option<String> {
        let headers = self.sides.map(|side| &side.header);
        let files = |n: usize| match headers[n].under.as_slice() {
            [] => "all but those of the system".to_owned(),
            dirs => format!("below {}", dirs.join(", ")),
        };
        let is_hidden = headers.iter().any(|header| header.hashes_names);
        let kernel = |n: usize| (headers[n].recorder != "strace").then(|| headers[n].kernel.clone());
        let pairs = [
            ("files", [0, 1].map(|n| (!is_hidden).then(|| files(n)))),
            ("file system", headers.map(|header| header.file_system.clone())),
            ("device", headers.map(|header| header.device.clone())),
            ("mount options", headers.map(|header| header.mount_options.clone())),
            ("machine", headers.map(|header| header.hardware.clone())),
            ("kernel", [kernel(0), kernel(1)]),
        ];
        let differs = pairs.into_iter().filter_map(|(what, [a, b])| {
            let (a, b) = a.zip(b).filter(|(a, b)| a != b)?;
            Some(format!("{what} (A {a}, B {b})"))
        });
        let differs: Vec<String> = differs.collect();
        (!differs.is_empty()).then(|| format!("differs: {}", differs.join("; ")))
    }

    /// A table of the classes, those with the most of something first.
    fn table(
        &self,
        caption: &str,
        headings: &[&str],
        most: impl Fn(&ClassFigures) -> u64,
    ) -> (SheetTable, Vec<CallClass>) {
        let classes = CALL_CLASSES.iter().map(|(class, ..)| *class);
        let weight = |class: CallClass| self.figures(class).map(&most).into_iter().fold(0, u64::saturating_add);
        let mut classes: Vec<CallClass> = classes.filter(|class| weight(*class) > 0).collect();
        classes.sort_by_key(|class| Reverse(weight(*class)));
        let pairs = headings.iter().flat_map(|heading| [format!("{heading} A"), "B".to_owned()]);
        let mut table = SheetTable::new(caption, ["class"]);
        table.add_columns(pairs);
        (table, classes)
    }

    fn call_table(&self) -> SheetTable {
        let headings: &[&str] = if self.has_times() { &["calls", "share", "a second"] } else { &["calls", "share"] };
        let (mut table, classes) = self.table("Calls by class", headings, |figures| figures.calls);
        for class in classes {
            let calls = self.figures(class).map(|figures| figures.calls);
            let shares = self.sides.map(|side| per_cent(side.share(class)));
            let rate = |n: usize| measured(calls[n] as f64 / self.sides[n].seconds().max(1e-9));
            let rates = self.has_times().then(|| [rate(0), rate(1)]);
            let cells = [vec![class.name().to_owned()], calls.map(grouped).into(), shares.into()];
            table.row(cells.into_iter().flatten().chain(rates.into_iter().flatten()));
        }
        table
    }

    fn time_table(&self) -> SheetTable {
        let (mut table, classes) = self.table("Times by class", &["time", "p50", "p99"], |figures| figures.time);
        let latency = |ns: u64| duration::latency(ns as f64);
        for class in classes {
            let figures = self.figures(class);
            let of = |text: &dyn Fn(&ClassFigures) -> String| figures.map(text);
            let cells = [
                of(&|figures| known((figures.calls > 0).then_some(figures.time), time)),
                of(&|figures| known(figures.durations.quantile(0.5), latency)),
                of(&|figures| known(figures.durations.quantile(0.99), latency)),
            ];
            table.row([class.name().to_owned()].into_iter().chain(cells.into_iter().flatten()));
        }
        table
    }

    fn size_table(&self) -> SheetTable {
        let headings = ["bytes", "p50 of a call", "p99"];
        let (mut table, classes) = self.table("Sizes by class", &headings, |figures| figures.bytes);
        for class in classes {
            let figures = self.figures(class);
            let of = |text: &dyn Fn(&ClassFigures) -> String| figures.map(text);
            let cells = [
                of(&|figures| size::format(figures.bytes)),
                of(&|figures| quantile_size(&figures.sizes, 0.5)),
                of(&|figures| quantile_size(&figures.sizes, 0.99)),
            ];
            table.row([class.name().to_owned()].into_iter().chain(cells.into_iter().flatten()));
        }
        table
    }

    /// The comparison for programs.
    pub fn document(&self) -> TraceComparisonDocument<'_> {
        let row = |(class, name, _): &(CallClass, &'static str, &str)| {
            let shares = self.sides.map(|side| side.share(*class));
            let figures = self.figures(*class);
            let calls = [figures[0].calls, figures[1].calls];
            let seconds = self.has_times().then(|| [0, 1].map(|n| figures[n].time as f64 / 1e9));
            (calls != [0, 0]).then_some((*name, ComparedClass { calls, shares, seconds }))
        };
        TraceComparisonDocument {
            schema: "wmlrun.trace-comparison/1",
            differences: &self.differences,
            work: self.work,
            calls: self.sides.map(TraceSummary::calls),
            seconds: self.sides.map(TraceSummary::seconds),
            threads: self.sides.map(TraceSummary::working_threads),
            classes: CALL_CLASSES.iter().filter_map(row).collect(),
            files: self.files(),
            conditions: self.conditions(),
        }
    }
}

/// The output of `wmlrun compare` of traces as JSON. Pairs are A and B.
#[derive(Debug, Serialize)]
pub struct TraceComparisonDocument<'c> {
    schema: &'static str,
    differences: &'c [String],
    /// How many calls B has for one of A in most classes.
    work: Option<f64>,
    calls: [u64; 2],
    seconds: [f64; 2],
    threads: [usize; 2],
    classes: BTreeMap<&'static str, ComparedClass>,
    /// Those that differ.
    files: Vec<ComparedFile>,
    /// What differs between the recordings.
    conditions: Option<String>,
}

#[derive(Debug, Serialize)]
struct ComparedClass {
    calls: [u64; 2],
    shares: [f64; 2],
    /// `None` if the recorders differ.
    seconds: Option<[f64; 2]>,
}
