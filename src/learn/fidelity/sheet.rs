//! A comparison of a program with its script, for people and for programs.

use super::rows::{Fidelity, FidelityRow, FidelityScale, FidelityUnit, FidelityVerdict, LEAST_PAIRS};
use serde::Serialize;
use wml_sheet::{Answer, Sheet, SheetBlock, SheetColumn, SheetTable, Tone};
use wml_text::count::{at_most, count, measured};
use wml_text::{duration, size};

/// A figure in its unit.
pub(super) fn shown(unit: FidelityUnit, value: f64) -> String {
    match unit {
        FidelityUnit::Percent => format!("{} %", at_most(value, 2)),
        FidelityUnit::Count | FidelityUnit::PerSecond => measured(value),
        FidelityUnit::Bytes => size::format(value as u64),
        FidelityUnit::Nanoseconds => duration::latency(value),
        FidelityUnit::Share => at_most(value, 3),
    }
}

impl FidelityRow {
    /// The mean of the program (0) or of the script (1).
    fn figure(&self, side: usize) -> String {
        match self.scale == FidelityScale::Distance && side == 0 {
            // The distance of the program from itself is none.
            true => String::new(),
            false => shown(self.unit, self.means[side]),
        }
    }

    /// A value of the estimate or the limit.
    fn shown(&self, value: f64) -> String {
        match self.scale {
            _ if value.is_nan() => "?".to_owned(),
            FidelityScale::Ratio if value.is_infinite() => "new".to_owned(),
            FidelityScale::Ratio | FidelityScale::Distance => at_most(value, 3),
            FidelityScale::Difference => format!("{}{}", if value > 0.0 { "+" } else { "" }, at_most(value, 2)),
        }
    }

    /// The estimate with its interval.
    fn difference(&self) -> String {
        let [value, low, high] = [self.estimate.value, self.estimate.low, self.estimate.high].map(|n| self.shown(n));
        if low == high { value } else { format!("{value} [{low}, {high}]") }
    }

    /// The cells of its row in a table.
    pub(crate) fn cells(&self) -> [String; 6] {
        let verdict = if self.verdict == FidelityVerdict::Inside { "" } else { self.verdict.name() };
        [self.name.clone(), self.figure(0), self.figure(1), self.difference(), self.limits(), verdict.to_owned()]
    }

    fn limits(&self) -> String {
        let (low, high) = self.limit;
        match self.scale {
            FidelityScale::Distance => format!("≤ {}", self.shown(high)),
            FidelityScale::Ratio => format!("{} … {}", self.shown(low), self.shown(high)),
            FidelityScale::Difference if (low + high).abs() < f64::EPSILON => {
                let unit = if self.unit == FidelityUnit::Percent { " points" } else { "" };
                format!("± {}{unit}", at_most(high, 2))
            }
            FidelityScale::Difference => format!("{} … {}", self.shown(low), self.shown(high)),
        }
    }
}

impl Fidelity {
    /// What the rows say, in a sentence.
    pub(crate) fn result(&self) -> String {
        let named = |verdict: FidelityVerdict| {
            let names: Vec<&str> =
                self.rows.iter().filter(|row| row.verdict == verdict).map(|row| row.name.as_str()).collect();
            names.join(", ")
        };
        let inside =
            format!("{} of {} inside", self.count(FidelityVerdict::Inside), count(self.rows.len() as u64, "row"));
        match self.verdict() {
            FidelityVerdict::Inside => format!("The script does what the program does: {inside} of the limits."),
            FidelityVerdict::Outside => {
                format!("Outside of the limits: {}; {inside}.", named(FidelityVerdict::Outside))
            }
            FidelityVerdict::Unknown => format!("Nothing is outside of the limits; {inside}."),
        }
    }

    /// The comparison for people.
    pub fn sheet(&self, script: &str, program: &str) -> Sheet {
        let pairs = vec![("program".to_owned(), program.to_owned()), ("script".to_owned(), script.to_owned())];
        let columns = ["program", "script", "difference [95 %]", "limit", ""].map(SheetColumn::numbers);
        let mut table = SheetTable::of("Rows", [SheetColumn::words("row")].into_iter().chain(columns));
        // What matters is first.
        let mut rows: Vec<&FidelityRow> = self.rows.iter().collect();
        rows.sort_by_key(|row| row.verdict);
        for row in rows {
            table.row(row.cells());
        }
        let is_beyond = |row: &FidelityRow| row.estimate.low > row.limit.1 || row.estimate.high < row.limit.0;
        if self.pairs >= LEAST_PAIRS
            && self.rows.iter().any(|row| row.verdict == FidelityVerdict::Unknown && is_beyond(row))
        {
            let why = "Of so many rows one has an interval outside of its limit by chance. So a row is outside only if a wider \
                       interval is, corrected for their number.";
            table.below.push(why.to_owned());
        }
        let blocks = [Some(SheetBlock::Facts { pairs, is_wrapped: true }), table.block()];
        let details = match self.count(FidelityVerdict::Unknown) {
            0 => Vec::new(),
            n => vec![format!("More pairs may tell about {}.", count(n as u64, "row"))],
        };
        let unit = match self.is_whole {
            true => "A run of the program is one transaction.".to_owned(),
            false => String::new(),
        };
        let tone = match self.verdict() {
            FidelityVerdict::Inside => Tone::Good,
            FidelityVerdict::Unknown => Tone::Neutral,
            FidelityVerdict::Outside => Tone::Bad,
        };
        let about = format!("{} of runs. {unit}", count(self.pairs as u64, "pair")).trim_end().to_owned();
        let answer = Answer { about, result: self.result(), details, ..Answer::default() };
        Sheet {
            title: "Fidelity".to_owned(),
            answer,
            tone,
            blocks: blocks.into_iter().flatten().collect(),
            ..Sheet::default()
        }
    }

    /// The comparison for programs.
    pub fn document(&self) -> FidelityDocument {
        let row = |row: &FidelityRow| FidelityDocumentRow {
            name: row.name.clone(),
            program: row.means[0],
            script: row.means[1],
            scale: match row.scale {
                FidelityScale::Ratio => "ratio",
                FidelityScale::Difference => "difference",
                FidelityScale::Distance => "distance",
            },
            estimate: row.estimate.value,
            interval: [row.estimate.low, row.estimate.high],
            limit: [row.limit.0, row.limit.1],
            verdict: row.verdict.name(),
        };
        FidelityDocument {
            schema: "wmlrun.fidelity/1",
            pairs: self.pairs,
            verdict: self.verdict().name(),
            rows: self.rows.iter().map(row).collect(),
        }
    }
}

/// The output of `wmlrun fidelity` as JSON.
#[derive(Debug, Serialize)]
pub struct FidelityDocument {
    schema: &'static str,
    pairs: usize,
    verdict: &'static str,
    rows: Vec<FidelityDocumentRow>,
}

#[derive(Debug, Serialize)]
struct FidelityDocumentRow {
    name: String,
    /// Means.
    program: f64,
    script: f64,
    /// What the estimate is: the script's figure divided by the program's, less it, or their distance.
    scale: &'static str,
    estimate: f64,
    interval: [f64; 2],
    limit: [f64; 2],
    verdict: &'static str,
}
