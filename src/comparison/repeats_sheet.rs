//! What repeats show: the estimate of each metric.

use super::formats::{ResultDocument, series};
use super::numbers::{figure, half_width, percent};
use super::phrases::{amount, ended, subject};
use super::{RepeatedMetric, Repeats, cautions, limit_table, limits};
use crate::analysis::RepeatState;
use crate::sheet::{
    Answer, Figures, Media, NoteLabel, Series, Sheet, SheetBlock, SheetColumn, SheetTable, Tone, Usability,
};
use crate::util::count::{count, grouped, or_dash};

/// The state in words. No run of an interrupted experiment is in progress.
pub(super) fn state_name(state: RepeatState, is_interrupted: bool) -> &'static str {
    match state {
        RepeatState::Running if is_interrupted => "interrupted",
        state => state.name(),
    }
}

/// The most further metrics that an answer names.
const MAX_OTHERS: usize = 3;

/// The table of the estimates.
fn table(repeats: &Repeats) -> SheetTable {
    let headings = ["runs", "mean", "95 % interval", "±"].map(SheetColumn::numbers);
    let lag = SheetColumn::numbers("lag-1").only(Media::PAGE);
    let columns = std::iter::once(SheetColumn::words("metric")).chain(headings).chain([lag]);
    let columns = columns.chain(["effective n", "trend"].map(SheetColumn::numbers));
    let mut table = SheetTable::of("Estimates", columns);
    for metric in &repeats.metrics {
        let e = &metric.estimate;
        let value = |v| figure(&metric.metric, v);
        let ends = e.interval().from_zero().ends();
        table.row([
            metric.metric.clone(),
            grouped(e.n),
            value(e.mean),
            or_dash(ends, |(low, high)| format!("{} … {}", value(low), value(high))),
            half_width(metric.relative_half_width),
            format!("{:.2}", e.lag1),
            format!("{:.1}", e.effective_n),
            or_dash(metric.trend, |change| format!("{:+.1} %", change * 100.0)),
        ]);
    }
    table
}

/// What the runs say of the first metric, and how precise that is.
fn answer(repeats: &Repeats) -> Answer {
    let n = count(repeats.metrics.first().map_or(0, |metric| metric.estimate.n), "run");
    let state = state_name(repeats.state, repeats.validity.is_interrupted);
    let requested = repeats.target.map(|target| format!("the requested ± {}", percent(target)));
    let with_half_width = |metric: &RepeatedMetric| {
        let ends = metric.estimate.interval().from_zero().ends();
        let interval = ends.map_or_else(String::new, |(low, high)| {
            let [low, high] = [low, high].map(|end| figure(&metric.metric, end));
            format!(" ± {} (95 % interval {low} … {high})", half_width(metric.relative_half_width))
        });
        amount(&metric.metric, metric.estimate.mean) + &interval
    };
    let first = repeats.metrics.first().map(with_half_width).unwrap_or_default();
    let is_wide = |metric: &&RepeatedMetric| repeats.target.is_some_and(|target| metric.relative_half_width > target);
    let widest = repeats.metrics.iter().filter(is_wide);
    let widest = widest.max_by(|a, b| a.relative_half_width.total_cmp(&b.relative_half_width));
    let moving = repeats.metrics.iter().filter_map(|metric| Some((metric, metric.trend?)));
    let moving = moving.max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()));
    let result = match (repeats.state, requested) {
        (RepeatState::Drifting, _) => {
            let moving = moving.map_or_else(
                || "a metric rises or falls".to_owned(),
                |(metric, change)| {
                    format!(
                        "{} changed by {:+.1} % from the first run to the last",
                        subject(&metric.metric),
                        change * 100.0
                    )
                },
            );
            format!("{moving}, so that a mean says nothing")
        }
        (RepeatState::NotConverged, Some(requested)) => {
            let widest = widest.map_or_else(String::new, |metric| {
                format!(
                    "; `{}` is known to ± {}, and not to {requested}",
                    metric.metric,
                    half_width(metric.relative_half_width)
                )
            });
            format!("{first}{widest}")
        }
        (RepeatState::Converged, Some(requested)) => format!("{first}, at least as precise as {requested}"),
        _ => first,
    };
    let is_of_replays = repeats.validity.is_of_replays;
    let (usability, advice) = match repeats.state {
        RepeatState::Converged | RepeatState::Complete => (Usability::Usable, ""),
        RepeatState::Running => (Usability::Unusable, ""),
        RepeatState::NotConverged if is_of_replays => (Usability::Unusable, "More runs (`--resume`) help."),
        RepeatState::NotConverged => (Usability::Unusable, "More runs (`--resume`) or longer ones (`--runtime`) help."),
        RepeatState::Drifting if is_of_replays => (Usability::Unusable, "Find what changes from one run to the next."),
        RepeatState::Drifting => {
            (Usability::Unusable, "Warm up (`--warmup auto`), or find what changes from one run to the next.")
        }
    };
    let others: Vec<String> = repeats.metrics.iter().skip(1).take(MAX_OTHERS).map(with_half_width).collect();
    let is_told = !others.is_empty() && repeats.state != RepeatState::Drifting;
    Answer {
        result: match repeats.state {
            RepeatState::Drifting => format!("{state}: over {n}, {result}."),
            _ => format!("{state} after {n}{}: {result}.", ended(&repeats.validity.ended_by)),
        },
        details: is_told.then(|| format!("Also {}.", others.join("; "))).into_iter().collect(),
        usability: Some(usability),
        advice: advice.to_owned(),
        conditions: repeats.validity.conditions.clone(),
        ..Answer::default()
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
        let mut answer = answer(self);
        let notes = cautions::add(&mut answer, &self.validity.cautions, &self.notes);
        let notes = SheetBlock::messages(NoteLabel::Note, &notes);
        limits::add_to(&mut answer, &self.validity.limits);
        Sheet {
            title: self.name.clone(),
            checks: limits::checks("precision", self.state.code(), &answer, &self.validity.limits),
            answer,
            tone: tone(self.state),
            blocks: std::iter::once(SheetBlock::Table(table(self)))
                .chain(limit_table(&self.validity.limits))
                .chain(notes)
                .collect(),
            ..Sheet::default()
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
}
