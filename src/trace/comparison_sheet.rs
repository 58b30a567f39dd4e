//! What differs between two traces, for people and for programs.

use super::comparison::TraceComparison;
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
        let (first, others) = self.differences.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
        let mut notes: Vec<String> = others.iter().take(MOST_NOTES).cloned().collect();
        if let Some(more @ 1..) = others.len().checked_sub(MOST_NOTES) {
            notes.push(format!("the tables have {}", count(more as u64, "smaller difference")));
        }
        if !self.has_times() {
            let [a, b] = self.sides.map(TraceSummary::recorder);
            notes.push(format!("times are not compared: A was recorded by {a}, B by {b}, and each has its own cost"));
        }
        blocks.extend(SheetBlock::messages(NoteLabel::Note, &notes));
        for (side, letter) in self.sides.into_iter().zip(["A", "B"]) {
            if !side.is_complete() {
                let text = format!("{letter} is incomplete: it lacks {}", side.missing().join(", "));
                blocks.extend(SheetBlock::messages(NoteLabel::Warning, &[text]));
            }
        }
        let result = if first.is_empty() { "The programs do the same.".to_owned() } else { format!("{first}.") };
        let answer = Answer { result, details: self.work_sentence().into_iter().collect(), ..Answer::default() };
        Sheet { title: "Traces".to_owned(), answer, blocks, ..Sheet::default() }
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
}

#[derive(Debug, Serialize)]
struct ComparedClass {
    calls: [u64; 2],
    shares: [f64; 2],
    /// `None` if the recorders differ.
    seconds: Option<[f64; 2]>,
}
