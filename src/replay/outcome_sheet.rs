//! What came of a replay, for people and for programs.

use crate::outcome::{OtherCall, ReplayOutcome, path_text};
use serde::Serialize;
use wml_os::errno_name;
use wml_result::snapshot::Dist;
use wml_sheet::{Answer, NoteLabel, Sheet, SheetBlock, SheetTable, Tone, Usability};
use wml_text::count::{count, grouped};
use wml_text::duration;
use wml_trace::CALL_CLASSES;

fn time(ns: u64) -> String {
    duration::span(ns as f64 / 1e9)
}

/// A result: a number, or the name of an error.
fn result(value: i64) -> String {
    match value {
        error @ -4095..=-1 => errno_name(-error as i32),
        value => value.to_string(),
    }
}

impl OtherCall {
    fn text(&self) -> String {
        let (recorded, replayed) = (result(self.recorded), result(self.replayed));
        format!("{} of {}: {replayed} instead of {recorded}", self.call, path_text(&self.path))
    }
}

impl ReplayOutcome {
    /// What differs, in a sentence; `None` if nothing does.
    pub fn failure(&self) -> Option<String> {
        if self.is_broken_off {
            return Some("the replay was broken off".to_owned());
        }
        let mut parts = Vec::new();
        if self.differ > 0 {
            let first = self.others.first().map_or(String::new(), |other| format!(", first {}", other.text()));
            parts.push(format!("{} ended differently{first}", count(self.differ, "call")));
        }
        if self.names_differ > 0 {
            let first = self.other_names.first();
            let first = first.map_or(String::new(), |one| format!(", first {} {}", path_text(&one.path), one.how));
            parts.push(format!("{} not as at the end of the trace{first}", count(self.names_differ, "name")));
        }
        if let Some(first) = self.unexplained.0.first() {
            let (calls, path) = (count(self.unexplained.1, "call"), path_text(&first.path));
            parts.push(format!("{calls} found a name that nothing had made, first {} of {path}", first.call));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The result for people.
    pub fn sheet(&self, name: &str, dir: &str) -> Sheet {
        let mut facts = Vec::new();
        let mut fact = |name: &str, text: String| facts.push((name.to_owned(), text));
        if !self.command.is_empty() {
            fact("command", self.command.join(" "));
        }
        fact("below", dir.to_owned());
        let of = if self.replayed == self.calls { String::new() } else { format!(" of {}", grouped(self.calls)) };
        fact("calls", format!("{}{of}, by {}", grouped(self.replayed), count(self.threads, "thread")));
        fact("elapsed", format!("{}, {} when recorded", time(self.elapsed), time(self.recorded_elapsed)));
        let sum = |of: fn(&crate::ReplayedClass) -> &Dist| self.classes.values().map(|class| of(class).sum).sum();
        let (recorded, replayed) = (sum(|class| &class.recorded), sum(|class| &class.replayed));
        fact("in calls", format!("{}, {} when recorded", time(replayed), time(recorded)));
        if let Some((mean, most)) = self.late {
            fact("late", format!("{} in the mean, {} at most", time(mean), time(most)));
        }
        if !self.not_replayed.is_empty() {
            let all = self.not_replayed.iter().map(|(name, n)| format!("{} {name}", grouped(*n)));
            fact("not replayed", all.collect::<Vec<_>>().join(", "));
        }
        if self.as_plain > 0 {
            fact("io_uring", format!("{} as plain calls", count(self.as_plain, "operation")));
        }
        fact("names at end", format!("{}, {} differ", grouped(self.names), grouped(self.names_differ)));
        let mut blocks = vec![SheetBlock::Facts { pairs: facts, is_wrapped: true }];
        blocks.extend(self.table().block());
        let mut others: Vec<String> = self.others.iter().map(OtherCall::text).collect();
        others.extend(self.other_names.iter().map(|one| format!("{} {}", path_text(&one.path), one.how)));
        let nothing_made =
            |one: &OtherCall| format!("{} of {}: nothing had made the name", one.call, path_text(&one.path));
        others.extend(self.unexplained.0.iter().map(nothing_made));
        blocks.extend(SheetBlock::messages(NoteLabel::Warning, &others).filter(|_| !others.is_empty()));
        let unopened: Vec<String> = (self.unopened.0.iter())
            .map(|one| format!("{} of {}: no call of the trace opened the file", one.call, path_text(&one.path)))
            .collect();
        blocks.extend(SheetBlock::messages(NoteLabel::Note, &unopened).filter(|_| !unopened.is_empty()));
        let failure = self.failure();
        let equal =
            || "Every replayed call ended as recorded, and the names are those at the end of the trace.".to_owned();
        let result = failure.as_ref().map_or_else(equal, |text| format!("The replay differs: {text}."));
        let usability = if failure.is_none() { Usability::Usable } else { Usability::Unusable };
        let answer = Answer { result, usability: Some(usability), ..Answer::default() };
        let tone = if failure.is_none() { Tone::Good } else { Tone::Bad };
        Sheet { title: name.to_owned(), answer, tone, blocks }
    }

    fn table(&self) -> SheetTable {
        let headings = ["class", "calls", "differ", "time", "recorded", "p50", "recorded", "p99", "recorded"];
        let mut table = SheetTable::new("Calls by class", headings);
        for (class, name, _) in CALL_CLASSES {
            let Some(row) = self.classes.get(class).filter(|row| row.replayed.count > 0) else { continue };
            let latency =
                |dist: &Dist, q: f64| dist.percentile(q).map_or("-".to_owned(), |ns| duration::latency(ns as f64));
            table.row([
                (*name).to_owned(),
                grouped(row.replayed.count),
                grouped(row.differ),
                time(row.replayed.sum),
                time(row.recorded.sum),
                latency(&row.replayed, 0.5),
                latency(&row.recorded, 0.5),
                latency(&row.replayed, 0.99),
                latency(&row.recorded, 0.99),
            ]);
        }
        table
    }

    /// The result for programs.
    pub fn document(&self) -> ReplayDocument {
        let side = |dist: &Dist| ReplaySide {
            seconds: dist.sum as f64 / 1e9,
            p50_ns: dist.percentile(0.5),
            p99_ns: dist.percentile(0.99),
            max_ns: (dist.count > 0).then_some(dist.max),
        };
        let classes = CALL_CLASSES.iter().filter_map(|(class, name, _)| {
            let row = self.classes.get(class).filter(|row| row.replayed.count > 0)?;
            let (recorded, replayed) = (side(&row.recorded), side(&row.replayed));
            Some(ReplayRow { class: name, calls: row.replayed.count, differ: row.differ, recorded, replayed })
        });
        let other = |one: &OtherCall| ReplayOther {
            call: one.call,
            path: path_text(&one.path),
            recorded: result(one.recorded),
            replayed: result(one.replayed),
        };
        ReplayDocument {
            schema: "wmlrun.replay/1",
            equal: self.is_equal(),
            command: self.command.clone(),
            calls: self.calls,
            replayed: self.replayed,
            threads: self.threads,
            elapsed_seconds: self.elapsed as f64 / 1e9,
            recorded_seconds: self.recorded_elapsed as f64 / 1e9,
            late_mean_ns: self.late.map(|late| late.0),
            late_max_ns: self.late.map(|late| late.1),
            not_replayed: self.not_replayed.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
            classes: classes.collect(),
            differ: self.differ,
            others: self.others.iter().map(other).collect(),
            names: self.names,
            names_differ: self.names_differ,
            other_names: self.other_names.iter().map(|one| (path_text(&one.path), one.how.clone())).collect(),
            unopened: self.unopened.1,
            unexplained: self.unexplained.1,
        }
    }
}

/// The result for programs.
#[derive(Debug, Serialize)]
pub struct ReplayDocument {
    schema: &'static str,
    equal: bool,
    command: Vec<String>,
    calls: u64,
    replayed: u64,
    threads: u64,
    elapsed_seconds: f64,
    recorded_seconds: f64,
    late_mean_ns: Option<u64>,
    late_max_ns: Option<u64>,
    not_replayed: std::collections::BTreeMap<String, u64>,
    classes: Vec<ReplayRow>,
    differ: u64,
    others: Vec<ReplayOther>,
    names: u64,
    names_differ: u64,
    other_names: std::collections::BTreeMap<String, String>,
    unopened: u64,
    unexplained: u64,
}

#[derive(Debug, Serialize)]
struct ReplayRow {
    class: &'static str,
    calls: u64,
    differ: u64,
    recorded: ReplaySide,
    replayed: ReplaySide,
}

#[derive(Debug, Serialize)]
struct ReplaySide {
    seconds: f64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ReplayOther {
    call: &'static str,
    path: String,
    recorded: String,
    replayed: String,
}
