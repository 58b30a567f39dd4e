//! What differs between two traces, in figures and in words.

use super::kind::{CALL_CLASSES, CallClass};
use super::summary::{ClassFigures, TraceSummary};
use serde::Serialize;
use std::collections::BTreeMap;
use wml_sheet::{Answer, NoteLabel, Sheet, SheetBlock, SheetTable};
use wml_text::count::{count, fixed, grouped};
use wml_text::{duration, size};

/// A class with a smaller share of the calls of both traces has no say.
const SMALLEST_SHARE: f64 = 0.001;
/// How much the count of a class may differ from the others, as a factor.
const SAME_COUNT: f64 = 1.15;
/// How many standard deviations of a count that is drawn it has to differ too.
const DEVIATIONS: f64 = 4.0;
/// How much a median size may differ, as a factor.
const SAME_SIZE: f64 = 1.15;

/// Two traces, A and B.
#[derive(Debug)]
pub struct TraceComparison<'t> {
    sides: [&'t TraceSummary; 2],
    /// What differs, the most telling first.
    pub differences: Vec<String>,
}

impl<'t> TraceComparison<'t> {
    pub fn of(a: &'t TraceSummary, b: &'t TraceSummary) -> Self {
        let mut comparison = Self { sides: [a, b], differences: Vec::new() };
        let found = [
            comparison.directory_syncs(),
            comparison.classes(),
            comparison.counts(),
            comparison.sizes(),
            comparison.threads(),
        ];
        comparison.differences = found.into_iter().flatten().collect();
        comparison
    }

    fn figures(&self, class: CallClass) -> [ClassFigures; 2] {
        self.sides.map(|side| side.classes.get(&class).cloned().unwrap_or_default())
    }

    /// The classes that have a say, syncs first.
    fn telling(&self) -> Vec<CallClass> {
        // One recorder sees what another can't.
        let [a, b] = self.sides.map(|side| &side.header.recorder);
        let is_seen = |class: &CallClass| *class != CallClass::Fault || a == b;
        let is_telling =
            |class: &CallClass| is_seen(class) && self.sides.iter().any(|side| side.share(*class) >= SMALLEST_SHARE);
        let mut classes: Vec<CallClass> = CALL_CLASSES.iter().map(|(class, ..)| *class).filter(is_telling).collect();
        classes.sort_by_key(|class| !class.syncs());
        classes
    }

    fn directory_syncs(&self) -> Vec<String> {
        let syncs = |side: &TraceSummary| -> u64 {
            let syncing = side.classes.iter().filter(|(class, _)| class.syncs());
            syncing.map(|(_, figures)| figures.on_directories).sum()
        };
        // An import does not know what is a directory.
        let knows = |side: &TraceSummary| {
            let syncing = side.classes.iter().filter(|(class, figures)| class.syncs() && figures.calls > 0);
            syncing.map(|(_, figures)| figures.of_known_type > 0).reduce(|a, b| a || b).unwrap_or(true)
        };
        match self.sides.map(syncs) {
            _ if !self.sides.into_iter().all(knows) => Vec::new(),
            [0, n] if n > 0 => vec![format!("B syncs directories ({}), and A does not", count(n, "call"))],
            [n, 0] if n > 0 => vec![format!("A syncs directories ({}), and B does not", count(n, "call"))],
            _ => Vec::new(),
        }
    }

    /// Classes that one side has alone.
    fn classes(&self) -> Vec<String> {
        let alone = |class: CallClass| {
            let [a, b] = self.figures(class).map(|figures| figures.calls);
            let (has, lacks, n) = match (a, b) {
                (0, n) if n > 0 => ("B", "A", n),
                (n, 0) if n > 0 => ("A", "B", n),
                _ => return None,
            };
            Some(format!("{has} makes {} of class {}, {lacks} none", count(n, "call"), class.name()))
        };
        self.telling().into_iter().filter_map(alone).collect()
    }

    /// How many calls B has for one of A where most classes agree: B may have run longer.
    fn scale(&self) -> f64 {
        let mut ratios: Vec<(f64, f64)> = self
            .telling()
            .into_iter()
            .filter_map(|class| {
                let [a, b] = self.figures(class).map(|figures| figures.calls as f64);
                let weight = self.sides[0].share(class).min(self.sides[1].share(class));
                (a > 0.0 && b > 0.0).then_some((b / a, weight.sqrt()))
            })
            .collect();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let half = ratios.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
        let mut before = 0.0;
        let median = ratios.iter().find(|(_, weight)| {
            before += weight;
            before >= half
        });
        median.map_or(1.0, |(ratio, _)| *ratio)
    }

    fn counts(&self) -> Vec<String> {
        let scale = self.scale();
        let differs = |class: CallClass| {
            let [a, b] = self.figures(class).map(|figures| figures.calls as f64);
            let expected = a * scale;
            if a == 0.0 || b == 0.0 || (b - expected).abs() <= DEVIATIONS * expected.max(b).sqrt() {
                return None;
            }
            let ratio = b / expected;
            let is_same = (1.0 / SAME_COUNT..=SAME_COUNT).contains(&ratio);
            let text =
                || format!("B makes {} times the calls of class {}, for as many others", fixed(ratio, 2), class.name());
            (!is_same).then(text)
        };
        self.telling().into_iter().filter_map(differs).collect()
    }

    fn sizes(&self) -> Vec<String> {
        let differs = |class: CallClass| {
            let figures = self.figures(class);
            let at = |share| Some([figures[0].sizes.quantile(share)?, figures[1].sizes.quantile(share)?]);
            [(0.5, "median"), (0.9, "90 % quantile")].into_iter().find_map(|(share, what)| {
                let [a, b] = at(share)?;
                let ratio = (b as f64 + 1.0) / (a as f64 + 1.0);
                let is_same = (1.0 / SAME_SIZE..=SAME_SIZE).contains(&ratio);
                let (a, b) = (size::format(a), size::format(b));
                (!is_same).then(|| format!("calls of class {} move {b} in B and {a} in A ({what})", class.name()))
            })
        };
        self.telling().into_iter().filter_map(differs).collect()
    }

    fn threads(&self) -> Vec<String> {
        let [a, b] = self.sides.map(|side| side.working_threads() as u64);
        let text = || format!("B has {} that make calls, A {}", count(b, "thread"), grouped(a));
        (a != b).then(text).into_iter().collect()
    }

    /// The comparison for people.
    pub fn sheet(&self, names: [&str; 2]) -> Sheet {
        let [a, b] = self.sides;
        let pairs = [a, b].into_iter().zip(names).zip(["A", "B"]).map(|((side, name), letter)| {
            let calls = format!("{}: {} in {}", name, count(side.calls(), "call"), duration::seconds(side.seconds()));
            (letter.to_owned(), calls)
        });
        let headings =
            ["class", "calls A", "B", "share A", "B", "a second A", "B", "p50 A", "B", "p99 A", "B", "size A", "B"];
        let mut table = SheetTable::new("Calls by class", headings);
        let mut classes: Vec<CallClass> = a.classes.keys().chain(b.classes.keys()).copied().collect();
        classes.sort_by_key(|class| {
            (std::cmp::Reverse(self.figures(*class).iter().map(|f| f.calls).sum::<u64>()), *class)
        });
        classes.dedup();
        for class in classes {
            let figures = self.figures(class);
            let both = |text: &dyn Fn(usize) -> String| [text(0), text(1)];
            let known = |n: Option<u64>, text: &dyn Fn(u64) -> String| n.map_or_else(|| "-".to_owned(), text);
            let latency = |ns: u64| duration::latency(ns as f64);
            let mut row = vec![class.name().to_owned()];
            row.extend(both(&|n| grouped(figures[n].calls)));
            row.extend(both(&|n| format!("{} %", fixed(self.sides[n].share(class) * 100.0, 1))));
            row.extend(both(&|n| fixed(figures[n].calls as f64 / self.sides[n].seconds().max(1e-9), 1)));
            row.extend(both(&|n| known(figures[n].durations.quantile(0.5), &latency)));
            row.extend(both(&|n| known(figures[n].durations.quantile(0.99), &latency)));
            row.extend(both(&|n| known(figures[n].sizes.quantile(0.5), &size::format)));
            table.rows.push(row);
        }
        let result = match self.differences.first() {
            Some(first) => format!("{first}."),
            None => "The programs do the same.".to_owned(),
        };
        let mut blocks = vec![SheetBlock::Facts { pairs: pairs.collect(), is_wrapped: true }, SheetBlock::Table(table)];
        if self.differences.len() > 1 {
            let items = self.differences[1..].iter().map(|text| (text.clone(), String::new())).collect();
            blocks.push(SheetBlock::Warnings { label: NoteLabel::Note, items });
        }
        for (side, letter) in [(a, "A"), (b, "B")] {
            if !side.is_complete() {
                let items =
                    vec![(format!("{letter} is incomplete: it lacks {}", side.missing().join(", ")), String::new())];
                blocks.push(SheetBlock::Warnings { label: NoteLabel::Warning, items });
            }
        }
        Sheet { title: "Traces".to_owned(), answer: Answer { result, ..Answer::default() }, blocks, ..Sheet::default() }
    }

    /// The comparison for programs.
    pub fn document(&self) -> TraceComparisonDocument<'_> {
        let row = |(class, name, _): &(CallClass, &'static str, &str)| {
            let shares = self.sides.map(|side| side.share(*class));
            let calls = self.figures(*class).map(|figures| figures.calls);
            (calls != [0, 0]).then_some((*name, ComparedClass { calls, shares }))
        };
        TraceComparisonDocument {
            schema: "wmlrun.trace-comparison/1",
            differences: &self.differences,
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
    calls: [u64; 2],
    seconds: [f64; 2],
    threads: [usize; 2],
    classes: BTreeMap<&'static str, ComparedClass>,
}

#[derive(Debug, Serialize)]
struct ComparedClass {
    calls: [u64; 2],
    shares: [f64; 2],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::TracedCall;
    use crate::format::tests::Numbers;
    use crate::kind::KindId;

    /// How a program behaves.
    #[derive(Clone, Copy)]
    struct Version {
        syncs: u64,
        size: u64,
        looks: bool,
        threads: u32,
        syncs_directory: bool,
    }

    const OLD: Version = Version { syncs: 1, size: 4096, looks: true, threads: 3, syncs_directory: false };

    /// The trace of so many transactions, whose counts and sizes vary.
    fn trace(version: Version, transactions: u64, seed: u64) -> TraceSummary {
        let mut numbers = Numbers(seed | 1);
        let mut summary = TraceSummary::default();
        let mut now = 0;
        for n in 0..transactions {
            let thread = n as u32 % version.threads;
            let mut call = |name: &str, result: u64, mode: u32| {
                let duration = 1000 + numbers.next() % 5000;
                now += duration + numbers.next() % 10_000;
                summary.add(&TracedCall {
                    start: now,
                    duration,
                    thread,
                    kind: KindId::named(name).unwrap_or_default(),
                    result: result as i64,
                    mode: Some(mode),
                    ..TracedCall::default()
                });
                numbers.next()
            };
            let reads = 2 + call("lseek", 0, libc::S_IFREG) % 3;
            for _ in 0..reads {
                call("pread64", 8192, libc::S_IFREG);
            }
            if version.looks {
                call("stat", 0, libc::S_IFREG);
            }
            call("pwrite64", version.size, libc::S_IFREG);
            for _ in 0..version.syncs {
                call("fsync", 0, libc::S_IFREG);
            }
            if version.syncs_directory {
                call("fsync", 0, libc::S_IFDIR);
            }
        }
        summary.span = now;
        summary
    }

    #[test]
    fn each_planted_change_is_named_and_none_without_one() {
        let changes: [(Version, &str); 6] = [
            (Version { syncs: 2, ..OLD }, "times the calls of class fsync"),
            (Version { size: 8192, ..OLD }, "calls of class write move 8.0 KiB in B and 4.0 KiB in A"),
            (Version { looks: false, ..OLD }, "of class stat, B none"),
            (Version { threads: 4, ..OLD }, "B has 4 threads that make calls, A 3"),
            (Version { syncs_directory: true, ..OLD }, "B syncs directories"),
            (Version { syncs: 0, ..OLD }, "of class fsync, B none"),
        ];
        for seed in 1..=4 {
            // B runs for another time than A.
            let old = trace(OLD, 1000, seed);
            let again = trace(OLD, 1400, seed + 100);
            assert_eq!(TraceComparison::of(&old, &again).differences, Vec::<String>::new(), "{seed}");
            for (new, text) in changes {
                let new = trace(new, 1400, seed + 200);
                let found = TraceComparison::of(&old, &new).differences;
                assert!(found.first().is_some_and(|first| first.contains(text)), "{text}: {found:?}");
            }
        }
    }
}
