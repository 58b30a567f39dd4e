//! What the levels of factors change in the first metric of a factorial experiment, in sentences.
//!
//! If one factor chooses the workload, the others are told for each workload: a mean over unlike workloads says nothing.

use super::phrases::{change, interval};
use super::{FactorEffects, FactorLevels, FactorialCell, LevelEffect};
use crate::analysis::Estimate;
use crate::import::{Metric, Observation};
use std::collections::BTreeSet;

/// A sentence without its full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub text: String,
    pub clarity: Clarity,
}

/// Whether runs show what a sentence says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clarity {
    /// Without an interval it may be chance.
    NoInterval,
    /// The interval contains no change.
    Unclear,
    Clear,
}

/// The most sentences.
const MOST: usize = 6;

/// The confidence level of intervals.
const LEVEL: f64 = super::factorial::LEVEL;

/// Returns the sentences on the factors `names`. `workload`: the position of the factor that chooses the workload.
pub(super) fn findings(
    metric: &Metric,
    factors: &[FactorLevels],
    names: &[String],
    workload: Option<usize>,
    cells: &[FactorialCell],
    in_blocks: bool,
) -> Vec<Finding> {
    let groups: Vec<Option<&String>> = match workload {
        Some(at) => factors[at].levels.iter().map(Some).collect(),
        None => vec![None],
    };
    let mut found = Vec::new();
    for group in groups {
        let (mut factors, mut cells) = (factors.to_vec(), cells.to_vec());
        if let (Some(at), Some(level)) = (workload, group) {
            factors[at].levels = vec![level.clone()];
            cells.retain(|cell| cell.levels[at] == *level);
        }
        let effects = FactorEffects::of(metric, 0, names, &factors, &cells, in_blocks);
        let before = group.map_or_else(String::new, |level| format!("{level}: "));
        let of_factor = |name: &String| {
            let of = |effect: &&LevelEffect| effect.factor == *name;
            let factor = factors.iter().find(|factor| factor.name == *name)?;
            sentence(&effects, &effects.effects.iter().filter(of).collect::<Vec<_>>(), factor)
        };
        found.extend(
            names.iter().filter_map(of_factor).map(|found| Finding { text: before.clone() + &found.text, ..found }),
        );
    }
    at_most(found)
}

/// The first sentences, and how many more there are.
pub(super) fn at_most(mut found: Vec<Finding>) -> Vec<Finding> {
    let more = found.split_off(found.len().min(MOST));
    let clarity = more.iter().map(|found| found.clarity).max();
    found.extend(clarity.map(|clarity| Finding { text: format!("{} more are in the tables", more.len()), clarity }));
    found
}

/// The position of the factor whose levels are the workloads. `cells` have the `runs` from which they were computed.
pub(super) fn workload_factor(
    factors: &[FactorLevels],
    cells: &[FactorialCell],
    runs: &[&[Observation]],
) -> Option<usize> {
    let workloads = |at: usize, level: &String| -> BTreeSet<&str> {
        let of_level = cells.iter().zip(runs).filter(|(cell, _)| cell.levels.get(at) == Some(level));
        of_level.flat_map(|(_, runs)| runs.iter()).map(|run| run.workload.as_str()).collect()
    };
    (0..factors.len()).find(|at| {
        let by_level: Vec<_> = factors[*at].levels.iter().map(|level| workloads(*at, level)).collect();
        let all: BTreeSet<&str> = by_level.iter().flatten().copied().collect();
        all.len() > 1 && by_level.iter().all(|of| of.len() == 1)
    })
}

/// What a factor changes. `effects` are those of its levels.
fn sentence(of: &FactorEffects, effects: &[&LevelEffect], factor: &FactorLevels) -> Option<Finding> {
    let label = |level: &str| format!("{}={level}", factor.name);
    let ratio_of = |level: &str, against: &str| -> Option<(Estimate, &LevelEffect)> {
        effects.iter().find_map(|effect| match (effect.level.as_str(), effect.against.as_str()) {
            pair if pair == (level, against) => Some((effect.ratio?, *effect)),
            pair if pair == (against, level) => {
                let Estimate { value, low, high } = effect.ratio?;
                Some((Estimate { value: 1.0 / value, low: 1.0 / high, high: 1.0 / low }, *effect))
            }
            _ => None,
        })
    };
    let told = |level: &str, against: &str| {
        let (ratio, effect) = ratio_of(level, against)?;
        let changed = change(&of.metric, ratio.value, [&label(against), &label(level)]);
        let interval = interval(&of.metric, ratio, LEVEL);
        let depends = if effect.depends() { ", not the same in all cells" } else { "" };
        let clarity = match effect.is_clear() {
            true => Clarity::Clear,
            false if effect.interval().is_none() => Clarity::NoInterval,
            false => Clarity::Unclear,
        };
        let text = match clarity {
            Clarity::Clear => format!("{changed} ({interval}{depends})"),
            Clarity::NoInterval => format!("{changed}, without an interval"),
            Clarity::Unclear => format!(
                "the runs do not show that {} and {} differ: as measured, {changed} ({interval}{depends})",
                label(against),
                label(level)
            ),
        };
        Some(Finding { text, clarity })
    };
    let first = factor.levels.first()?;
    let better = |a: f64, b: f64| if of.higher_is_better { b.total_cmp(&a) } else { a.total_cmp(&b) };
    let from_first = factor.levels.iter().filter_map(|level| match level == first {
        true => Some((level, 1.0)),
        false => Some((level, ratio_of(level, first)?.0.value)),
    });
    let mut ranked: Vec<(&String, f64)> = from_first.filter(|(_, ratio)| ratio.is_finite()).collect();
    ranked.sort_by(|(_, a), (_, b)| better(*a, *b));
    // Means over unlike pairs of cells have no order.
    let mut pairs = effects.iter().filter(|effect| effect.ratio.is_some()).map(|effect| effect.pairs);
    let first_pairs = pairs.next();
    if ranked.len() > 2 && !pairs.all(|pairs| Some(pairs) == first_pairs) {
        return None;
    }
    match (&ranked[..], factor.levels.len()) {
        ([] | [_], _) => None,
        ([_, _], 2) => told(factor.levels.last()?, first),
        ([best, ..], n) if effects.len() < n * (n - 1) / 2 => {
            let best = if best.0 == first { ranked.get(1)?.0 } else { best.0 };
            let name = &factor.name;
            let told = told(best, first)?;
            let n = ranked.len().min(n);
            let text = format!("of {n} levels of {name}, {} has the best mean: {}", label(ranked[0].0), told.text);
            Some(Finding { text, ..told })
        }
        ([best, others @ ..], _) => {
            let others: Vec<Finding> = others.iter().filter_map(|(level, _)| told(level, best.0)).collect();
            let clarity = others.iter().map(|found| found.clarity).max()?;
            let others: Vec<String> = others.into_iter().map(|found| found.text).collect();
            Some(Finding { text: format!("{} has the best mean; {}", label(best.0), others.join("; ")), clarity })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CellMetric;
    use super::*;

    /// The sentences on cells of these values, each with the workload of its runs. The last factor changes first.
    fn found(factors: &[(&str, &[&str])], cells: &[(&str, &[f64])]) -> Vec<String> {
        let factor = |(name, levels): &(&str, &[&str])| FactorLevels {
            name: (*name).to_owned(),
            levels: levels.iter().map(|level| (*level).to_owned()).collect(),
        };
        let factors: Vec<FactorLevels> = factors.iter().map(factor).collect();
        let level = |n: usize, at: usize| {
            let after: usize = factors[at + 1..].iter().map(|factor| factor.levels.len()).product();
            factors[at].levels[n / after % factors[at].levels.len()].clone()
        };
        let cell = |(n, (_, values)): (usize, &(&str, &[f64]))| FactorialCell {
            levels: (0..factors.len()).map(|at| level(n, at)).collect(),
            runs: values.len() as u64,
            metrics: vec![CellMetric { metric: "ops".to_owned(), estimate: None, values: values.to_vec() }],
            ..FactorialCell::default()
        };
        let found: Vec<FactorialCell> = cells.iter().enumerate().map(cell).collect();
        let run = |workload: &str| Observation { workload: workload.to_owned(), ..Observation::default() };
        let runs: Vec<Vec<Observation>> =
            cells.iter().map(|(workload, values)| vec![run(workload); values.len()]).collect();
        let runs: Vec<&[Observation]> = runs.iter().map(Vec::as_slice).collect();
        let workload = workload_factor(&factors, &found, &runs);
        let varied = factors.iter().enumerate().filter(|(at, factor)| Some(*at) != workload && factor.levels.len() > 1);
        let names: Vec<String> = varied.map(|(_, factor)| factor.name.clone()).collect();
        let found = findings(&Metric::ops(), &factors, &names, workload, &found, true);
        found.into_iter().map(|found| found.text).collect()
    }

    /// A mean over a mail server and a database says nothing.
    #[test]
    fn each_workload_has_its_own_sentence() {
        let factors: [(&str, &[&str]); 2] = [("workload", &["mail", "db"]), ("mount", &["plain", "fast"])];
        let sentences = found(
            &factors,
            &[
                ("varmail", &[100.0, 101.0, 99.0, 100.5]),
                ("varmail", &[150.0, 152.0, 148.0, 151.0]),
                ("oltp", &[100.0, 120.0, 80.0, 90.0]),
                ("oltp", &[110.0, 90.0, 85.0, 100.0]),
            ],
        );
        assert_eq!(sentences.len(), 2, "{sentences:?}");
        let mail = "mail: mount=fast does 50.1 % more operations per second than mount=plain (95 % interval ";
        assert!(sentences[0].starts_with(mail), "{sentences:?}");
        let db = "db: the runs do not show that mount=plain and mount=fast differ: as measured, mount=fast does ";
        assert!(sentences[1].starts_with(db), "{sentences:?}");
    }

    #[test]
    fn the_best_of_several_levels_is_named() {
        let runs: [&[f64]; 3] = [&[20.0, 21.0, 22.0], &[40.0, 43.0, 44.0], &[19.0, 22.0, 21.5]];
        let sentences = found(&[("fs", &["ext4", "xfs", "btrfs"])], &runs.map(|values| ("varmail", values)));
        let says =
            "fs=xfs has the best mean; fs=ext4 does 50.4 % fewer operations per second than fs=xfs (95 % interval ";
        assert!(sentences.len() == 1 && sentences[0].starts_with(says), "{sentences:?}");
        assert!(sentences[0].contains("; fs=btrfs does 50.8 % fewer "), "{sentences:?}");
        // A cell without runs leaves unlike pairs.
        let factors: [(&str, &[&str]); 2] = [("m", &["1", "2"]), ("fs", &["ext4", "xfs", "btrfs"])];
        let cells = |last: &'static [f64]| -> [(&str, &[f64]); 6] {
            let all = [&[20.0, 21.0][..], &[40.0, 43.0], &[19.0, 22.0], &[2.0, 2.1], &[4.0, 4.3], last];
            all.map(|values| ("varmail", values))
        };
        let is_ranked = |sentences: &[String]| sentences.iter().any(|text| text.contains("fs=xfs has the best mean"));
        assert!(is_ranked(&found(&factors, &cells(&[1.9, 2.2]))));
        assert!(!is_ranked(&found(&factors, &cells(&[]))));
        let single = found(&[("n", &["1", "8"])], &[("varmail", &[10.0]), ("varmail", &[30.0])]);
        let says = "n=8 does 3.00 times as many operations per second as n=1, without an interval";
        assert_eq!(single, [says]);
        assert_eq!(found(&[("n", &["1", "8"])], &[("varmail", &[10.0]), ("varmail", &[])]), Vec::<String>::new());
    }
}
