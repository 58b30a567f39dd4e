//! What repeats show: the estimate of each metric.

use super::formats::{ResultDocument, json_text, series};
use super::numbers::{dash, figure, half_width, percent};
use super::{RepeatedMetric, Repeats, StudyDocument};
use crate::analysis::RepeatState;
use crate::sheet::{Answer, Figures, Media, NoteLabel, Series, Sheet, SheetBlock, SheetColumn, SheetTable, Tone};
use crate::util::count::{count, grouped};

/// The table of the estimates.
fn table(repeats: &Repeats) -> SheetTable {
    let headings = ["runs", "mean", "95 % interval", "±"].map(SheetColumn::numbers);
    let lag = SheetColumn::numbers("lag-1").only(Media::PAGE);
    let columns = std::iter::once(SheetColumn::words("metric")).chain(headings).chain([lag]);
    let columns = columns.chain(["effective sample size", "trend"].map(SheetColumn::numbers));
    let mut table = SheetTable::of("Estimates", columns);
    for metric in &repeats.metrics {
        let e = &metric.estimate;
        let value = |v| figure(&metric.metric, v);
        let ends = e.interval().from_zero().ends();
        table.row([
            metric.metric.clone(),
            grouped(e.n),
            value(e.mean),
            ends.map_or_else(dash, |(low, high)| format!("{} … {}", value(low), value(high))),
            half_width(metric.relative_half_width),
            format!("{:.2}", e.lag1),
            format!("{:.1}", e.effective_n),
            metric.trend.map_or_else(dash, |change| format!("{:+.1} %", change * 100.0)),
        ]);
    }
    table
}

/// The last line: the state in which the series ended.
fn ending(repeats: &Repeats) -> String {
    let n = count(repeats.metrics.first().map_or(0, |metric| metric.estimate.n), "run");
    let state = repeats.state.name();
    match repeats.target {
        Some(target) => format!("{state} after {n}, for intervals of ± {}", percent(target)),
        None => format!("{state} after {n}"),
    }
}

/// Whether the state in which runs ended is good.
pub(super) fn tone(state: RepeatState) -> Tone {
    match state {
        RepeatState::Converged => Tone::Good,
        RepeatState::Running | RepeatState::Complete => Tone::Neutral,
        RepeatState::NotConverged | RepeatState::Drifting => Tone::Bad,
    }
}

impl ResultDocument for Repeats {
    fn sheet(&self) -> Sheet {
        let notes = SheetBlock::messages(NoteLabel::Note, &self.notes);
        Sheet {
            title: self.name.clone(),
            answer: Answer { result: ending(self), conditions: self.conditions.clone(), ..Answer::default() },
            tone: tone(self.state),
            blocks: std::iter::once(SheetBlock::Table(table(self))).chain(notes).collect(),
        }
    }

    fn figures(&self) -> Figures {
        let of =
            |m: &RepeatedMetric| -> Series { series(&m.metric, Some(m.estimate.interval().from_zero()), &m.values) };
        Figures {
            name: self.name.clone(),
            series: self.metrics.iter().map(of).collect(),
            has_metrics: true,
            ..Figures::default()
        }
    }

    fn json(&self) -> String {
        json_text(self)
    }

    fn study(&self) -> StudyDocument<'_> {
        Repeats::study(self)
    }
}
