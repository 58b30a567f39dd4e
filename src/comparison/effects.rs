//! Effects: what each level of a factor changes in a metric against the others, as the mean over the levels of the other
//! factors.

use super::factorial::{CellGroup, LEVEL, blocks_are_complete, cell_groups, common_blocks, values_of};
use super::{FactorLevels, FactorialCell};
use crate::analysis::{Direction, Estimate, equal_ratios, mean_ratio, ratio_in_blocks};
use crate::import::Metric;
use crate::sheet::{SheetColumn, SheetTable};
use crate::util::count::{dash, grouped, or_dash};
use serde::Serialize;

/// The largest number of levels of which every two are compared. The levels of a longer factor are compared with the
/// first one.
const MAX_LEVELS_IN_PAIRS: usize = 4;

/// The p-value below which an effect is marked as depending on the other factors.
const CLEAR: f64 = 0.01;

/// The effects on one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactorEffects {
    pub metric: String,
    /// Whether a larger value is better.
    pub higher_is_better: bool,
    /// The effects of the levels of each factor. Every two levels are compared if there are at most four; else each with
    /// the first.
    pub effects: Vec<LevelEffect>,
}

/// The effect of a level. Pairs of cells that differ only in this factor are compared: one at this level, one at the
/// level `against`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelEffect {
    pub factor: String,
    pub level: String,
    /// The level of the factor with which it is compared.
    pub against: String,
    /// The geometric mean of the ratios of all pairs with its 95 % interval, whose ends are null if a cell has fewer than
    /// two runs; null without a pair.
    pub ratio: Option<Estimate>,
    /// The number of blocks from whose runs the interval comes; null if it does not consider blocks.
    pub blocks: Option<u64>,
    /// The smallest ratio of a pair; null without a pair.
    pub least: Option<f64>,
    /// The largest ratio of a pair; null without a pair.
    pub most: Option<f64>,
    /// The number of pairs in which both cells have runs.
    pub pairs: u64,
    /// The p-value for the null hypothesis that all pairs have the same ratio, so that the effect does not depend on the
    /// other factors (Welch's analysis of variance). Null with fewer than two pairs, if a cell has fewer than three runs,
    /// and if the ratios of a pair do not vary or do not exist.
    pub p_of_equal_ratios: Option<f64>,
    /// The geometric mean of the ratios of the arithmetic means of all pairs, as the table of the cells shows them.
    #[serde(skip)]
    pub(super) ratio_of_means: f64,
}

impl FactorEffects {
    /// Computes the effects of the factors with these names on a metric. `metric_index` is its position in each cell.
    /// `in_blocks` says that the runs at one position of all cells are those of one block.
    pub(super) fn of(
        metric: &Metric,
        metric_index: usize,
        names: &[String],
        factors: &[FactorLevels],
        cells: &[FactorialCell],
        in_blocks: bool,
    ) -> Self {
        let values = |cell: usize| values_of(cells, cell, metric_index);
        let in_blocks = in_blocks && blocks_are_complete(cells, metric_index);
        let of_factor = |name: &String| {
            let groups = cell_groups(factors, name);
            let levels = factors.iter().find(|factor| factor.name == *name).map_or(&[][..], |found| &found.levels);
            let effect = |first: usize, n: usize| {
                let pair = |group: &CellGroup<'_>| (values(group.cells[first]), values(group.cells[n]));
                let pairs: Vec<_> = groups.iter().map(pair).filter(|(a, b)| !a.is_empty() && !b.is_empty()).collect();
                let ratios = pairs.iter().filter_map(|pair| Some(mean_ratio(&[*pair], LEVEL)?.value));
                let blocks = common_blocks(&pairs);
                let of_blocks = if in_blocks { ratio_in_blocks(&blocks, LEVEL) } else { None };
                LevelEffect {
                    factor: name.clone(),
                    level: levels[n].clone(),
                    against: levels[first].clone(),
                    ratio: of_blocks.or_else(|| mean_ratio(&pairs, LEVEL)),
                    blocks: of_blocks.and(blocks.first().map(|(a, _)| a.len() as u64)),
                    least: ratios.clone().reduce(f64::min),
                    most: ratios.reduce(f64::max),
                    pairs: pairs.len() as u64,
                    p_of_equal_ratios: equal_ratios(
                        if of_blocks.is_some() { &blocks } else { &pairs },
                        of_blocks.is_some(),
                    ),
                    ratio_of_means: mean_ratio_of_means(&pairs),
                }
            };
            let firsts = if levels.len() > MAX_LEVELS_IN_PAIRS { 1 } else { levels.len() };
            let compared = (0..firsts).flat_map(|first| (first + 1..levels.len()).map(move |n| (first, n)));
            compared.map(|(first, n)| effect(first, n)).collect::<Vec<_>>()
        };
        Self {
            metric: metric.to_string(),
            higher_is_better: metric.direction() == Direction::HigherIsBetter,
            effects: names.iter().flat_map(of_factor).collect(),
        }
    }

    /// The title of the table.
    fn title(&self) -> String {
        let better = if self.higher_is_better { "higher" } else { "lower" };
        format!("effects on {}, {better} is better (geometric means of the ratios)", self.metric)
    }

    /// The table, with the meaning of its marks below it.
    pub(super) fn table(&self) -> SheetTable {
        let (words, numbers) = (SheetColumn::words, SheetColumn::numbers);
        let mut columns =
            vec![words("factor"), words("levels"), numbers("change %"), numbers("95 % interval"), words("")];
        if self.has_single_cells() {
            columns.extend([numbers("in single cells"), words("")]);
        }
        let mut table = SheetTable::of(&self.title(), columns);
        self.effects.iter().for_each(|effect| table.row(self.line(effect).into_iter().take(table.columns.len())));
        SheetTable { title: self.title(), below: self.endings(), ..table }
    }

    /// True if an effect is the mean of several cells.
    fn has_single_cells(&self) -> bool {
        self.effects.iter().any(|effect| effect.pairs > 1)
    }

    /// Returns the order of the levels of each factor of which every two are compared, from the best to the worst, each with
    /// its change from the best one.
    pub(crate) fn rankings(&self) -> Vec<String> {
        let mut factors: Vec<&str> = Vec::new();
        for effect in &self.effects {
            if !factors.contains(&effect.factor.as_str()) {
                factors.push(&effect.factor);
            }
        }
        factors.into_iter().filter_map(|factor| self.ranking(factor)).collect()
    }

    /// Returns the order of the levels of a factor with two to four levels, all of which have runs.
    fn ranking(&self, factor: &str) -> Option<String> {
        let of_factor: Vec<&LevelEffect> = self.effects.iter().filter(|effect| effect.factor == factor).collect();
        let first = of_factor.first().map(|effect| effect.against.as_str())?;
        let mut levels = vec![(first, 1.0)];
        for effect in of_factor.iter().filter(|effect| effect.against == first) {
            levels.push((effect.level.as_str(), effect.ratio?.value));
        }
        let are_complete = of_factor.iter().all(|effect| effect.pairs == of_factor[0].pairs);
        if of_factor.len() != levels.len() * (levels.len() - 1) / 2 || !are_complete {
            return None;
        }
        levels.sort_by(|(_, a), (_, b)| if self.higher_is_better { b.total_cmp(a) } else { a.total_cmp(b) });
        let is_clearly_better = |a: &str, b: &str| {
            let found = of_factor.iter().find_map(|effect| match (effect.level.as_str(), effect.against.as_str()) {
                pair if pair == (a, b) => Some((effect, true)),
                pair if pair == (b, a) => Some((effect, false)),
                _ => None,
            });
            found.is_some_and(|(effect, is_numerator)| {
                let is_higher = effect.ratio.is_some_and(|ratio| (ratio.value > 1.0) == is_numerator);
                effect.is_clear() && is_higher == self.higher_is_better
            })
        };
        let mut text = format!("{factor}, best first (change from the best): {}", levels[0].0);
        let are_shown: Vec<bool> = levels.windows(2).map(|pair| is_clearly_better(pair[0].0, pair[1].0)).collect();
        for (pair, is_shown) in levels.windows(2).zip(&are_shown) {
            let (sign, (level, ratio)) = (if *is_shown { ">" } else { "?" }, pair[1]);
            text += &format!(" {sign} {level} ({} %)", change(ratio / levels[0].1));
        }
        // Levels that are further apart may differ although no two neighbours do.
        for (better, (a, _)) in levels.iter().enumerate() {
            for (worse, (b, _)) in levels.iter().enumerate().skip(better + 2) {
                match (are_shown[better..worse].contains(&true), is_clearly_better(a, b)) {
                    (false, true) => text += &format!(", but {a} > {b}"),
                    (true, false) => text += &format!(", but {a} ? {b}"),
                    _ => {}
                }
            }
        }
        Some(text)
    }

    /// The lines below the table: the meaning of the mark of an effect that depends on the other factors.
    fn endings(&self) -> Vec<String> {
        let mut endings = Vec::new();
        if self.effects.iter().any(LevelEffect::depends) {
            let text = "*: the change is not the same in all cells, so that it depends on the other factors";
            endings.push(format!("{text} (p below {CLEAR})"));
        }
        endings
    }

    fn line(&self, effect: &LevelEffect) -> [String; 7] {
        let range = |low: Option<f64>, high: Option<f64>| match (low, high) {
            (Some(low), Some(high)) => format!("{} … {}", change(low), change(high)),
            _ => dash(),
        };
        let interval = effect.interval();
        let meaning = match interval.filter(|_| effect.is_clear()) {
            Some(ratio) if (ratio.low > 1.0) == self.higher_is_better => "better",
            Some(_) => "worse",
            None => "?",
        };
        [
            effect.factor.clone(),
            format!("{} / {}", effect.level, effect.against),
            or_dash(effect.ratio, |ratio| change(ratio.value)),
            range(interval.map(|found| found.low), interval.map(|found| found.high)),
            meaning.to_owned(),
            if effect.pairs > 1 { range(effect.least, effect.most) } else { dash() },
            if effect.depends() { "*" } else { "" }.to_owned(),
        ]
    }

    /// Returns notes on clear effects of which the means in the table of the cells show the opposite.
    pub(super) fn notes(&self) -> Vec<String> {
        let note = |effect: &LevelEffect| {
            let ratio = effect
                .ratio
                .filter(|ratio| effect.is_clear() && (ratio.value - 1.0) * (effect.ratio_of_means - 1.0) < 0.0)?;
            let LevelEffect { factor, level, against, .. } = effect;
            let of_means = if effect.ratio_of_means > 1.0 { "higher" } else { "lower" };
            Some(format!(
                "{factor}: {level} / {against} changes `{}` by {} %, but the arithmetic means of the cells are {of_means} \
                 for {level}: a few large values dominate an arithmetic mean",
                self.metric,
                change(ratio.value)
            ))
        };
        self.effects.iter().filter_map(note).collect()
    }
}

impl LevelEffect {
    /// Returns the ratio if it has an interval.
    pub(super) fn interval(&self) -> Option<Estimate> {
        self.ratio.filter(|ratio| ratio.low.is_finite() && ratio.high.is_finite())
    }

    /// True if the interval does not contain 1.
    pub(super) fn is_clear(&self) -> bool {
        self.interval().is_some_and(|ratio| ratio.low > 1.0 || ratio.high < 1.0)
    }

    /// True if the ratio clearly differs between pairs.
    pub(super) fn depends(&self) -> bool {
        self.p_of_equal_ratios.is_some_and(|p| p < CLEAR)
    }
}

/// Returns the geometric mean of the ratios of the arithmetic means of pairs; NaN without a pair.
fn mean_ratio_of_means(pairs: &[(&[f64], &[f64])]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let logs = pairs.iter().map(|(a, b)| (mean(b) / mean(a)).ln());
    (logs.sum::<f64>() / pairs.len() as f64).exp()
}

/// Formats a ratio as a change in per cent, with its sign and without the unit: `+12.0`.
fn change(ratio: f64) -> String {
    // The sum with 0 makes -0 positive.
    let percent = (1000.0 * (ratio - 1.0)).round() / 10.0 + 0.0;
    if percent >= 1000.0 && percent.is_finite() {
        format!("+{}", grouped(percent as u64))
    } else {
        format!("{percent:+.1}")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::CellMetric;
    use super::*;

    fn cells(runs: &[&[f64]]) -> Vec<FactorialCell> {
        let cell = |values: &&[f64]| {
            let metric = CellMetric { metric: "ops".to_owned(), estimate: None, values: values.to_vec() };
            FactorialCell { runs: values.len() as u64, metrics: vec![metric], ..FactorialCell::default() }
        };
        runs.iter().map(cell).collect()
    }

    fn factor(name: &str, levels: &[&str]) -> FactorLevels {
        FactorLevels { name: name.to_owned(), levels: levels.iter().map(|level| (*level).to_owned()).collect() }
    }

    #[test]
    fn an_effect_is_the_mean_over_the_other_factors() {
        let factors = [factor("fs", &["ext4", "xfs"]), factor("n", &["1", "4", "8"])];
        // xfs: 2 and 2 and 1/2 times as much. n=4: 2 and 2 times; n=8: 4 and 1 times.
        let cells = cells(&[&[10.0, 10.0], &[20.0, 20.0], &[40.0, 40.0], &[20.0, 20.0], &[40.0, 40.0], &[20.0, 20.0]]);
        let names = ["fs", "n"].map(str::to_owned);
        let effects = FactorEffects::of(&Metric::ops(), 0, &names, &factors, &cells, true);
        let lines: Vec<String> = effects.table().rows.iter().map(|line| line[..6].join(" | ")).collect();
        assert_eq!(
            lines,
            [
                "fs | xfs / ext4 | +26.0 | +26.0 … +26.0 | better | -50.0 … +100.0",
                "n | 4 / 1 | +100.0 | +100.0 … +100.0 | better | +100.0 … +100.0",
                "n | 8 / 1 | +100.0 | +100.0 … +100.0 | better | +0.0 … +300.0",
                "n | 8 / 4 | +0.0 | +0.0 … +0.0 | ? | -50.0 … +100.0",
            ]
        );
        assert_eq!(effects.title(), "effects on ops, higher is better (geometric means of the ratios)");
    }

    #[test]
    fn less_is_better_for_a_latency_and_chance_is_marked() {
        let factors = [factor("fs", &["a", "b", "c", "d", "e"])];
        let cells = cells(&[&[10.0, 11.0, 12.0], &[5.0, 5.5, 6.0], &[10.0, 14.0, 9.0], &[11.0], &[]]);
        let metric: Metric = "latency.mean".parse().unwrap();
        let effects = FactorEffects::of(&metric, 0, &["fs".to_owned()], &factors, &cells, true);
        // With one factor there are no single cells.
        let found: Vec<_> = effects.table().rows.into_iter().map(|line| line[4..].to_vec()).collect();
        assert_eq!(found, [["better"], ["?"], ["?"], ["?"]], "{}", effects.title());
        // A single run has a ratio and no interval.
        assert_eq!(effects.table().rows[2][2..4], ["+0.3".to_owned(), "-".to_owned()], "{}", effects.title());
        assert_eq!(effects.title(), "effects on latency.mean, lower is better (geometric means of the ratios)");
    }

    /// The interval considers blocks only if the runs at one position of all cells are those of one block.
    #[test]
    fn blocks_are_considered_if_they_are_complete() {
        let factors = [factor("fs", &["a", "b"])];
        let runs: [&[f64]; 2] = [&[10.0, 20.0, 40.0], &[11.0, 23.0, 44.0]];
        let of = |cells: &[FactorialCell], in_blocks| {
            FactorEffects::of(&Metric::ops(), 0, &["fs".to_owned()], &factors, cells, in_blocks).effects[0].clone()
        };
        let found = of(&cells(&runs), true);
        assert_eq!((found.blocks, found.ratio.unwrap().low > 1.0), (Some(3), true), "{found:?}");
        let in_order = of(&cells(&runs), false);
        assert_eq!((in_order.blocks, in_order.ratio.unwrap().low > 1.0), (None, false), "{in_order:?}");
        let mut failed = cells(&runs);
        failed[0].failed = 1;
        let mut gap = cells(&runs);
        gap[1].runs = 4;
        for cells in [failed, gap] {
            assert_eq!(of(&cells, true).blocks, None, "{cells:?}");
        }
        // Of a block that was begun the second cell has no run yet.
        assert_eq!(of(&cells(&[runs[0], &runs[1][..2]]), true).blocks, Some(2));
    }

    /// The second level is a tenth better in each block, but for one in which the first is very fast.
    #[test]
    fn a_mean_that_contradicts_the_effect_is_noted() {
        let factors = [factor("fs", &["ext4", "xfs"])];
        let of = |fastest: f64| {
            let ext4 = [fastest, 30.0, 28.0, 32.0, 31.0, 29.0, 30.0, 28.0, 32.0, 31.0, 29.0, 30.0];
            let xfs = [246.0, 33.5, 31.5, 35.8, 34.6, 32.6, 33.5, 31.3, 35.9, 34.8, 32.4, 33.7];
            FactorEffects::of(&Metric::ops(), 0, &["fs".to_owned()], &factors, &cells(&[&ext4, &xfs]), true).notes()
        };
        // Then the means agree, or the effect is not clear.
        assert_eq!((of(220.0), of(900.0)), (Vec::<String>::new(), Vec::<String>::new()));
        let note = of(300.0);
        assert!(note[0].starts_with("fs: xfs / ext4 changes `ops` by +"), "{note:?}");
        assert!(note[0].contains("but the arithmetic means of the cells are lower for xfs"), "{note:?}");
    }

    #[test]
    fn cells_without_runs_are_left_out() {
        let factors = [factor("fs", &["a", "b"]), factor("n", &["1", "2"])];
        let names = ["fs".to_owned()];
        let effects =
            FactorEffects::of(&Metric::ops(), 0, &names, &factors, &cells(&[&[1.0], &[2.0], &[3.0], &[]]), true);
        assert_eq!((effects.effects[0].pairs, effects.effects[0].ratio.unwrap().value.round()), (1, 3.0));
        let none = FactorEffects::of(&Metric::ops(), 0, &names, &factors, &cells(&[&[], &[2.0], &[3.0], &[]]), true);
        assert_eq!(none.table().rows[0].join(" "), "fs b / a - - ?");
    }

    #[test]
    fn the_levels_of_a_factor_are_ranked() {
        let factors = [factor("fs", &["ext4", "xfs", "btrfs"])];
        let runs = cells(&[&[20.0, 21.0, 22.0], &[40.0, 43.0, 44.0], &[19.0, 22.0, 21.5]]);
        let of = |metric: &str, runs: &[FactorialCell]| {
            FactorEffects::of(&metric.parse().unwrap(), 0, &["fs".to_owned()], &factors, runs, true).rankings()
        };
        assert_eq!(of("ops", &runs), ["fs, best first (change from the best): xfs > ext4 (-50.4 %) ? btrfs (-50.8 %)"]);
        assert_eq!(
            of("latency.mean", &runs),
            ["fs, best first (change from the best): btrfs ? ext4 (+0.9 %) > xfs (+103.4 %)"]
        );
        // Neither neighbour of the middle differs from it.
        let runs = cells(&[&[36.0, 24.0, 30.0], &[40.0, 40.0, 40.0], &[20.0, 19.5, 20.5]]);
        assert_eq!(
            of("ops", &runs),
            ["fs, best first (change from the best): xfs ? ext4 (-26.0 %) ? btrfs (-50.0 %), but xfs > btrfs"]
        );
        let without = cells(&[&[20.0, 21.0], &[40.0, 43.0], &[]]);
        assert_eq!(of("ops", &without), Vec::<String>::new());
    }

    /// Twice as much with one thread, half as much with eight.
    #[test]
    fn an_effect_that_depends_on_another_factor_is_marked() {
        let factors = [factor("fs", &["a", "b"]), factor("n", &["1", "8"])];
        let names = ["fs".to_owned()];
        let of = |last: [f64; 4]| {
            let a = [10.0, 11.0, 12.0, 10.5];
            let runs = cells(&[&a, &a, &[20.0, 22.5, 23.5, 21.5], &last]);
            FactorEffects::of(&Metric::ops(), 0, &names, &factors, &runs, true)
        };
        let (depends, same) = (of([5.0, 5.6, 6.1, 5.2]), of([20.5, 22.0, 24.5, 20.5]));
        assert_eq!((&depends.table().rows[0][6][..], &same.table().rows[0][6][..]), ("*", ""), "{depends:?}\n{same:?}");
        assert!(depends.endings()[0].ends_with("other factors (p below 0.01)") && same.endings().is_empty());
    }
}
