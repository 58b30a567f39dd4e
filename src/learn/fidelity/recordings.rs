//! Several recordings of one program: which of them is nearest to their mean, and how far apart they are.

use super::figures::TracedRun;
use super::header::BEGINS;
use super::rows::{FidelityScale, FidelityUnit, PairRow, classes, costliest, measured};
use super::sheet::shown;
use wml_text::count::count;
use wml_text::table::{Align, Table};
use wml_text::wrap::fill;

/// A row stands in the header if the recordings differ by this share of what a script may.
const WORTH: f64 = 0.5;
const MOST_ROWS: usize = 12;

/// Recordings that were compared with each other.
#[derive(Debug)]
pub struct RecordingsCompared {
    /// The one that is nearest to the mean of all, by its number.
    pub nearest: usize,
    recordings: usize,
    rows: Vec<RecordedRow>,
}

/// A figure of all recordings.
#[derive(Debug)]
struct RecordedRow {
    name: String,
    unit: FidelityUnit,
    mean: f64,
    least: f64,
    most: f64,
    /// Their spread as a share of what a script may differ.
    share: f64,
}

impl RecordingsCompared {
    /// Compares recordings. A row that one of them lacks says nothing.
    pub fn of(runs: &[TracedRun]) -> Self {
        let pairs: Vec<(TracedRun, TracedRun)> = runs.iter().map(|run| (run.clone(), run.clone())).collect();
        let (classes, costliest) = (classes(&pairs), costliest(&pairs));
        let is_whole = runs.iter().any(|run| run.is_whole);
        // Of each recording, its rows beside another one.
        let beside = |other: usize| -> Vec<Vec<PairRow>> {
            runs.iter().map(|run| measured([&runs[other], run], is_whole, &classes, &costliest)).collect()
        };
        let all = (0..runs.len()).map(|other| (other, common(&beside(other))));
        let distance = |rows: &[(RecordedRow, Vec<f64>)], of: usize| -> f64 {
            rows.iter().map(|(row, off)| off[of] * f64::from(u8::from(row.share.is_finite()))).sum()
        };
        let mut best: Option<(f64, usize, Vec<RecordedRow>)> = None;
        for (other, rows) in all {
            let far = distance(&rows, other);
            if best.as_ref().is_none_or(|(least, ..)| far < *least) {
                best = Some((far, other, rows.into_iter().map(|(row, _)| row).collect()));
            }
        }
        let (_, nearest, mut rows) = best.unwrap_or_default();
        rows.sort_by(|a, b| b.share.total_cmp(&a.share));
        Self { nearest, recordings: runs.len(), rows }
    }

    /// The script with what was compared in its header, before its comparison with the program.
    pub fn in_header(&self, script: &str) -> String {
        let at = script.find(&format!("\n{BEGINS}")).map_or(0, |at| at + 1);
        let worth = self.rows.iter().take_while(|row| row.share > WORTH).take(MOST_ROWS).count();
        let (shown_rows, others) = self.rows.split_at(worth);
        let about = format!(
            "Recordings: {}; the script is that of the one nearest to their mean. They differ by at most half of what \
             `wmlrun fidelity` allows in {}{}",
            self.recordings,
            count(others.len() as u64, "row"),
            if worth == 0 { "." } else { ", and by more in:" }
        );
        let mut text = String::new();
        fill(&about, 108, "").lines().for_each(|line| text.push_str(&format!("# {line}\n")));
        let columns = [("row", Align::Left), ("mean", Align::Right), ("least", Align::Right), ("most", Align::Right)];
        let mut table = Table::new(columns);
        for row in shown_rows {
            let [mean, least, most] = [row.mean, row.least, row.most].map(|value| shown(row.unit, value));
            table.row([row.name.clone(), mean, least, most]);
        }
        if worth > 0 {
            table.render().lines().for_each(|line| text.push_str(format!("#   {line}\n").trim_end_matches(' ')));
        }
        text.push_str("#\n");
        format!("{}{text}{}", &script[..at], &script[at..])
    }
}

/// The rows that all recordings have, each with how far every recording is from the mean, as a share of what a script may.
fn common(all: &[Vec<PairRow>]) -> Vec<(RecordedRow, Vec<f64>)> {
    let Some(first) = all.first() else { return Vec::new() };
    let one = |row: &PairRow| {
        let values: Option<Vec<f64>> =
            all.iter().map(|rows| rows.iter().find(|other| other.name == row.name).map(|row| row.values[1])).collect();
        let values = values?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let allowed = match row.scale {
            FidelityScale::Ratio => mean * (row.limit.1 - 1.0),
            FidelityScale::Difference | FidelityScale::Distance => row.limit.1,
        };
        let share = |off: f64| if off == 0.0 { 0.0 } else { off / allowed };
        let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(a, b), n| (a.min(*n), b.max(*n)));
        let off = values.iter().map(|value| share((value - mean).abs())).collect();
        Some((
            RecordedRow { name: row.name.clone(), unit: row.unit, mean, least, most, share: share(most - least) },
            off,
        ))
    };
    first.iter().filter_map(one).collect()
}
