//! How much results vary: the coefficient of variation between the runs of a cell, and between the intervals of a run,
//! over the cells at each level of a factor.

use super::{FactorLevels, FactorialCell};
use crate::analysis::{SampleSummary, median};
use crate::import::Observation;
use crate::sheet::{SheetColumn, SheetTable};
use crate::util::count::{dash, fixed, grouped};
use serde::Serialize;

/// The variation of a metric at each level of each factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Variation {
    pub metric: String,
    /// The greatest length of the intervals of the runs, in seconds; null if none has intervals.
    pub interval_seconds: Option<f64>,
    /// All cells, then those at each level.
    pub rows: Vec<VariationRow>,
}

/// The coefficients of variation of the cells at a level, as shares.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariationRow {
    /// The factor; null in the row of all cells.
    pub factor: Option<String>,
    pub level: Option<String>,
    pub cells: u64,
    /// Between the runs of a cell; null unless a cell has two.
    pub between: Option<CellSpread>,
    /// Between the intervals of a run, as the mean of the runs of a cell; null for a metric that intervals do not have.
    pub within: Option<CellSpread>,
}

/// The median and the greatest of the coefficients of several cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CellSpread {
    pub median: f64,
    pub greatest: f64,
}

impl CellSpread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.collect();
        Some(Self { median: median(&values)?, greatest: values.iter().copied().fold(0.0, f64::max) })
    }
}

/// The figure of a run that has its coefficient of variation of a metric.
fn within(run: &Observation, metric: &str) -> Option<f64> {
    run.figures.get(&format!("variation_{metric}")).copied()
}

impl Variation {
    /// `metric_index` is the position of the metric in each cell, `runs` has those of each cell.
    pub(super) fn of(
        metric_index: usize,
        factors: &[FactorLevels],
        cells: &[FactorialCell],
        runs: &[&[Observation]],
    ) -> Option<Self> {
        let metric = |cell: &FactorialCell| Some(cell.metrics.get(metric_index)?.metric.clone());
        let between = |cell: usize| {
            let values = &cells[cell].metrics.get(metric_index)?.values;
            (values.len() > 1).then(|| SampleSummary::of(values)).flatten().and_then(coefficient)
        };
        let within = |cell: usize| {
            let metric = metric(&cells[cell])?;
            let complete = runs.get(cell)?.iter().filter(|run| run.failure.is_none());
            Some(SampleSummary::of(&complete.filter_map(|run| within(run, &metric)).collect::<Vec<_>>())?.mean)
        };
        let row = |of: Option<(usize, &FactorLevels, &String)>| {
            let is_at = |cell: &&usize| of.is_none_or(|(n, _, level)| cells[**cell].levels.get(n) == Some(level));
            let all: Vec<usize> = (0..cells.len()).collect();
            let chosen: Vec<usize> = all.iter().filter(is_at).copied().collect();
            VariationRow {
                factor: of.map(|(_, factor, _)| factor.name.clone()),
                level: of.map(|(.., level)| level.clone()),
                cells: chosen.len() as u64,
                between: CellSpread::of(chosen.iter().filter_map(|cell| between(*cell))),
                within: CellSpread::of(chosen.iter().filter_map(|cell| within(*cell))),
            }
        };
        let levels = factors.iter().enumerate().flat_map(|(n, f)| f.levels.iter().map(move |level| (n, f, level)));
        let names: Vec<String> = cells.iter().filter_map(metric).collect();
        let is_same = names.windows(2).all(|pair| pair[0] == pair[1]);
        let lengths = runs.iter().flat_map(|runs| runs.iter()).filter_map(|run| self::within(run, "seconds"));
        Some(Self {
            metric: if is_same { names.first()?.clone() } else { "metric of each level".to_owned() },
            interval_seconds: lengths.reduce(f64::max),
            rows: std::iter::once(None).chain(levels.map(Some)).map(row).collect(),
        })
    }

    pub(super) fn table(&self) -> SheetTable {
        let words = ["factor", "level"].map(SheetColumn::words);
        let numbers = ["cells", "between runs", "greatest", "within runs", "greatest"].map(SheetColumn::numbers);
        let title = format!("variation of {}", self.metric);
        let spread = |found: Option<CellSpread>| {
            let percent = |value: f64| format!("{} %", fixed(value * 100.0, 1));
            found.map_or_else(|| [dash(), dash()], |found| [percent(found.median), percent(found.greatest)])
        };
        let row = |row: &VariationRow| {
            let factor = row.factor.clone().unwrap_or_else(|| "all".to_owned());
            let named = [factor, row.level.clone().unwrap_or_default(), grouped(row.cells)].into_iter();
            named.chain(spread(row.between)).chain(spread(row.within)).collect()
        };
        let length = self.interval_seconds.map_or_else(String::new, |seconds| format!(" of {} s", fixed(seconds, 1)));
        let why = match (self.rows.iter().all(|row| row.within.is_none()), self.interval_seconds) {
            (false, _) => "",
            (true, Some(_)) => "; these have only `ops` and `mib`",
            (true, None) => ", of which each needs three: the runs are shorter",
        };
        let below = format!(
            "standard deviation / mean, the median of the cells: between the runs of a cell, and between the \
             intervals{length} of a run{why}"
        );
        SheetTable {
            title: title.clone(),
            rows: self.rows.iter().map(row).collect(),
            below: vec![below],
            ..SheetTable::of(&title, words.into_iter().chain(numbers))
        }
    }
}

fn coefficient(sample: SampleSummary) -> Option<f64> {
    let found = sample.variance.sqrt() / sample.mean;
    (found.is_finite() && found >= 0.0).then_some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::CellMetric;
    use super::*;

    /// Between the runs 98, 100 and 102 the standard deviation is 2; the runs of the second cell are equal.
    #[test]
    fn the_variation_of_each_level_is_the_median_of_its_cells() {
        let factors = [("fs", ["a", "b"]), ("n", ["1", "2"])]
            .map(|(name, levels)| FactorLevels { name: name.to_owned(), levels: levels.map(str::to_owned).to_vec() });
        let values: [&[f64]; 4] = [&[98.0, 100.0, 102.0], &[50.0, 50.0], &[7.0], &[]];
        let cell = |(n, values): (usize, &&[f64])| FactorialCell {
            levels: [["a", "1"], ["a", "2"], ["b", "1"], ["b", "2"]][n].map(str::to_owned).to_vec(),
            metrics: vec![CellMetric { metric: "ops".to_owned(), estimate: None, values: values.to_vec() }],
            ..FactorialCell::default()
        };
        let cells: Vec<FactorialCell> = values.iter().enumerate().map(cell).collect();
        let run = |within: f64| Observation {
            figures: [("variation_ops", within), ("variation_seconds", 1.0)].map(|(n, v)| (n.to_owned(), v)).into(),
            ..Observation::default()
        };
        let failed = Observation { failure: Some("full".to_owned()), ..run(9.0) };
        let runs = [vec![run(0.1), run(0.2)], vec![run(0.3), failed], vec![], vec![]];
        let runs: Vec<&[Observation]> = runs.iter().map(Vec::as_slice).collect();
        let found = Variation::of(0, &factors, &cells, &runs).unwrap();
        let table = crate::sheet::text::table(&found.table()).unwrap();
        let lines: Vec<String> =
            table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let expected = [
            "variation of ops",
            "",
            "factor level cells between runs greatest within runs greatest",
            "all 4 1.0 % 2.0 % 22.5 % 30.0 %",
            "fs a 2 1.0 % 2.0 % 22.5 % 30.0 %",
            "fs b 2 - - - -",
            "n 1 2 2.0 % 2.0 % 15.0 % 15.0 %",
            "n 2 2 0.0 % 0.0 % 30.0 % 30.0 %",
        ];
        assert_eq!(lines[..8], expected, "{table}");
        assert!(table.contains("intervals of 1.0 s"), "{table}");
    }
}
