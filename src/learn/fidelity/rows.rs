//! The rows of a comparison of a program with its script: what is compared, and how far it may differ.

use super::figures::TracedRun;
use FidelityScale::{Difference, Distance, Ratio};
use FidelityUnit::{Bytes, Count, Nanoseconds, PerSecond, Percent, Share};
use std::collections::{BTreeMap, BTreeSet};
use wml_statistics::{Estimate, independent_mean, paired_ratio};
use wml_trace::{CALL_CLASSES, CallClass, ClassFigures, Spread};

/// The least pairs with which anything is said.
pub(super) const LEAST_PAIRS: usize = 3;
/// Whether all rows are decided is asked after so many pairs.
const LOOKS: [usize; 6] = [3, 5, 8, 12, 20, 30];
/// Classes with a smaller share of the calls have no row of their own.
const SMALL_CLASS: f64 = 0.005;
/// The calls whose times are compared: those that take most.
const COSTLIEST: usize = 5;
/// Time between calls that is a smaller share of all has no row.
const SMALL_TIME: f64 = 0.02;
/// Of fewer calls a quantile says nothing.
const FEW_CALLS: u64 = 50;
const LEVEL: f64 = 0.95;
/// Two samples of one distribution are further apart than this, divided by the root of their size, one time in twenty.
const KOLMOGOROV: f64 = 1.36;
/// Distances below this are none, also of large samples.
const NEAR: f64 = 0.05;
/// The most directories that each file set of a script has beside those of the program.
const SET_DIRECTORIES: f64 = 2.0;
/// The limit of what a script has exactly.
const EXACT: (f64, f64) = (0.98, 1.0 / 0.98);

/// How two figures are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FidelityScale {
    /// The script's divided by the program's.
    Ratio,
    /// The script's less the program's.
    Difference,
    /// How far they are apart; the program's figure is 0.
    Distance,
}

/// The unit of a row's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FidelityUnit {
    Percent,
    Count,
    Bytes,
    Nanoseconds,
    PerSecond,
    Share,
}

/// A row of one pair.
pub(super) struct PairRow {
    pub(super) name: String,
    pub(super) scale: FidelityScale,
    pub(super) unit: FidelityUnit,
    /// The program's figure, and the script's.
    pub(super) values: [f64; 2],
    pub(super) limit: (f64, f64),
}

wml_text::named! {
    /// What a row says.
    #[derive(PartialOrd, Ord)]
    pub enum FidelityVerdict {
        /// Its interval is wholly outside of the limit, with allowance for the number of rows.
        Outside = "outside";
        /// There are too few pairs, or they differ too much.
        Unknown = "unclear";
        /// Its interval is inside of the limit.
        Inside = "inside";
    }
}

/// A row of all pairs.
#[derive(Clone, Debug)]
pub struct FidelityRow {
    pub name: String,
    pub(crate) scale: FidelityScale,
    pub(crate) unit: FidelityUnit,
    /// Means of the program and of the script, geometric ones where a ratio is estimated: it is then that of the means.
    pub(crate) means: [f64; 2],
    /// Of the ratio, the difference or the distance, with its 95 % interval.
    pub estimate: Estimate,
    pub limit: (f64, f64),
    pub verdict: FidelityVerdict,
}

/// A program and its script, compared.
#[derive(Clone, Debug)]
pub struct Fidelity {
    pub pairs: usize,
    /// True if the program makes no transactions.
    pub is_whole: bool,
    pub rows: Vec<FidelityRow>,
}

impl Fidelity {
    /// Compares pairs of a run of the program and one of the script. They are looked at several times until there are as
    /// many as are planned: each look has the share of the errors that its pairs are of all.
    pub fn of(pairs: &[(TracedRun, TracedRun)], planned: usize) -> Self {
        let is_whole = pairs.iter().any(|(program, _)| program.is_whole);
        let mut all: Vec<UndecidedRow> = Vec::new();
        let classes = classes(pairs);
        let costliest = costliest(pairs);
        for (n, (program, script)) in pairs.iter().enumerate() {
            for row in measured([program, script], is_whole, &classes, &costliest) {
                match all.iter_mut().find(|known| known.row.name == row.name) {
                    Some(known) => {
                        known.values.push(row.values);
                        known.limits.push(row.limit);
                    }
                    None if n == 0 => all.push(UndecidedRow { values: vec![row.values], limits: vec![row.limit], row }),
                    None => {}
                }
            }
        }
        // A row that a pair lacks, such as times that a recorder did not see, says nothing. Neither does one of nothing.
        all.retain(|one| {
            let has_figures =
                one.row.scale == FidelityScale::Distance || one.values.iter().flatten().any(|value| *value != 0.0);
            has_figures && one.values.len() == pairs.len()
        });
        Self { pairs: pairs.len(), is_whole, rows: decided(all, errors_at(pairs.len(), planned)) }
    }

    /// True if no row is unclear, at a time to ask.
    pub fn is_decided(&self) -> bool {
        LOOKS.contains(&self.pairs) && self.count(FidelityVerdict::Unknown) == 0
    }

    pub fn count(&self, verdict: FidelityVerdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// The worst verdict of a row.
    pub fn verdict(&self) -> FidelityVerdict {
        self.rows.iter().map(|row| row.verdict).min().unwrap_or(FidelityVerdict::Unknown)
    }
}

/// A row with the figures of all pairs.
struct UndecidedRow {
    row: PairRow,
    values: Vec<[f64; 2]>,
    limits: Vec<(f64, f64)>,
}

impl UndecidedRow {
    /// The estimate with an interval at this level.
    fn estimate(&self, level: f64) -> Estimate {
        let sides: [Vec<f64>; 2] = [0, 1].map(|n| self.values.iter().map(|pair| pair[n]).collect());
        let mean = |values: &[f64]| independent_mean(values, level).unwrap_or(Estimate::around(f64::NAN, f64::NAN));
        match self.row.scale {
            FidelityScale::Ratio if sides[0].iter().all(|n| *n <= 0.0) => Estimate::around(f64::INFINITY, 0.0),
            FidelityScale::Ratio => match paired_ratio(&sides[0], &sides[1], level) {
                Some(test) => test.estimate,
                // Of a single pair, and where some run has none of it: the difference as a share of the program's mean.
                None => {
                    let total: f64 = sides[0].iter().sum();
                    let scale = sides[0].len() as f64 / total;
                    let differences: Vec<f64> = self.values.iter().map(|[a, b]| (b - a) * scale).collect();
                    mean(&differences).map(|difference| 1.0 + difference)
                }
            },
            FidelityScale::Difference => {
                mean(&self.values.iter().map(|[program, script]| script - program).collect::<Vec<f64>>())
            }
            FidelityScale::Distance => {
                let found = mean(&sides[1]);
                Estimate { low: found.low.max(0.0), ..found }
            }
        }
    }

    fn means(&self) -> [f64; 2] {
        let all = self.values.len() as f64;
        let is_geometric =
            self.row.scale == FidelityScale::Ratio && self.values.iter().flatten().all(|value| *value > 0.0);
        [0, 1].map(|n| {
            let side = self.values.iter().map(|pair| pair[n]);
            match is_geometric {
                true => (side.map(f64::ln).sum::<f64>() / all).exp(),
                false => side.sum::<f64>() / all,
            }
        })
    }

    fn limit(&self) -> (f64, f64) {
        let mean =
            |of: fn(&(f64, f64)) -> f64| self.limits.iter().map(of).sum::<f64>() / self.limits.len().max(1) as f64;
        (mean(|limit| limit.0), mean(|limit| limit.1))
    }
}

/// The share of comparisons in which a row may be outside by chance at the look after so many pairs.
fn errors_at(pairs: usize, planned: usize) -> f64 {
    let looks = || LOOKS.into_iter().filter(|look| *look < planned).chain([planned.max(1)]);
    let look = looks().find(|look| *look >= pairs).unwrap_or(pairs);
    let before = looks().take_while(|before| *before < look).last().unwrap_or(0);
    (1.0 - LEVEL) * (look - before) as f64 / planned.max(look) as f64
}

/// Holm's procedure for what is outside: one row after another, each against the rows that are left. What is inside is so by
/// its own interval.
fn decided(rows: Vec<UndecidedRow>, errors: f64) -> Vec<FidelityRow> {
    let mut is_outside = vec![false; rows.len()];
    let pairs = rows.first().map_or(0, |row| row.values.len());
    let has_pairs = pairs >= LEAST_PAIRS;
    loop {
        let left = is_outside.iter().filter(|is| !**is).count();
        let level = 1.0 - errors / left.max(1) as f64;
        let next = rows.iter().zip(&is_outside).position(|(row, is)| {
            let (estimate, limit) = (row.estimate(level), row.limit());
            has_pairs && !is && (estimate.low > limit.1 || estimate.high < limit.0)
        });
        let Some(next) = next else { break };
        is_outside[next] = true;
    }
    let one = |(row, is_outside): (UndecidedRow, bool)| {
        let (estimate, limit) = (row.estimate(LEVEL), row.limit());
        let is_inside = has_pairs && estimate.low >= limit.0 && estimate.high <= limit.1;
        let verdict = match (is_outside, is_inside) {
            (true, _) => FidelityVerdict::Outside,
            (_, true) => FidelityVerdict::Inside,
            _ => FidelityVerdict::Unknown,
        };
        let means = row.means();
        let PairRow { name, scale, unit, .. } = row.row;
        FidelityRow { name, scale, unit, means, estimate, limit, verdict }
    };
    rows.into_iter().zip(is_outside).map(one).collect()
}

/// The classes with enough calls of one side, in all pairs together.
pub(super) fn classes(pairs: &[(TracedRun, TracedRun)]) -> Vec<CallClass> {
    let share = |class: CallClass, side: fn(&(TracedRun, TracedRun)) -> &TracedRun| {
        pairs.iter().map(|pair| side(pair).summary.share(class)).sum::<f64>() / pairs.len().max(1) as f64
    };
    let has_say = |class: &CallClass| share(*class, |pair| &pair.0).max(share(*class, |pair| &pair.1)) >= SMALL_CLASS;
    CALL_CLASSES.iter().map(|(class, ..)| *class).filter(has_say).collect()
}

/// The classes in which the program spends most time.
pub(super) fn costliest(pairs: &[(TracedRun, TracedRun)]) -> BTreeSet<CallClass> {
    let mut times: BTreeMap<CallClass, u64> = BTreeMap::new();
    let all = pairs.iter().flat_map(|(program, _)| &program.summary.classes);
    for (class, figures) in all.filter(|(_, figures)| figures.calls >= FEW_CALLS) {
        *times.entry(*class).or_default() += figures.time;
    }
    let mut order: Vec<(u64, CallClass)> = times.into_iter().map(|(class, time)| (time, class)).collect();
    order.sort_by(|a, b| b.cmp(a));
    order.into_iter().take(COSTLIEST).map(|(_, class)| class).collect()
}

/// The rows of a pair.
pub(super) fn measured(
    sides: [&TracedRun; 2],
    is_whole: bool,
    classes: &[CallClass],
    costliest: &BTreeSet<CallClass>,
) -> Vec<PairRow> {
    let mut pair = MeasuredPair { sides, per: if is_whole { "run" } else { "transaction" }, rows: Vec::new() };
    pair.calls(classes);
    pair.bytes(classes);
    pair.syncs();
    pair.files();
    // Each recorder has a cost of its own, which is part of the times.
    if sides[0].summary.header.recorder == sides[1].summary.header.recorder {
        pair.times();
        if !is_whole {
            pair.transactions();
        }
        pair.latencies(costliest);
    }
    // A script can't have any.
    let lost = 100.0 * sides[0].not_modelled as f64 / sides[0].bytes.max(1) as f64;
    pair.row("bytes that no flowop moves", Difference, Percent, [lost, 0.0], (-2.0, 2.0));
    pair.rows
}

/// A pair whose rows are written.
struct MeasuredPair<'a> {
    sides: [&'a TracedRun; 2],
    /// What the figures are of: a transaction or a run.
    per: &'static str,
    rows: Vec<PairRow>,
}

impl<'a> MeasuredPair<'a> {
    fn row(&mut self, name: &str, scale: FidelityScale, unit: FidelityUnit, values: [f64; 2], limit: (f64, f64)) {
        self.rows.push(PairRow { name: name.to_owned(), scale, unit, values, limit });
    }

    fn of_class(&self, class: CallClass) -> [Option<&'a ClassFigures>; 2] {
        self.sides.map(|side| side.summary.classes.get(&class))
    }

    /// Totals, for each transaction.
    fn each(&self, totals: [u64; 2]) -> [f64; 2] {
        [0, 1].map(|n| totals[n] as f64 / self.sides[n].transactions.max(1) as f64)
    }

    fn calls(&mut self, classes: &[CallClass]) {
        for class in classes {
            let shares = self.sides.map(|side| side.summary.share(*class) * 100.0);
            self.row(&format!("share of {}", class.name()), Difference, Percent, shares, (-2.0, 2.0));
        }
        for class in classes {
            let calls = self.each(self.of_class(*class).map(|figures| figures.map_or(0, |figures| figures.calls)));
            self.row(&format!("{} a {}", class.name(), self.per), Ratio, Count, calls, (0.9, 1.0 / 0.9));
        }
    }

    fn bytes(&mut self, classes: &[CallClass]) {
        for (class, name) in [(CallClass::Read, "read"), (CallClass::Write, "written")] {
            let figures = self.of_class(class);
            if let [Some(program), Some(script)] = figures
                && let Some((distance, [n, m])) = sizes_apart([&program.sizes, &script.sizes])
            {
                let limit = KOLMOGOROV * (1.0 / n + 1.0 / m).sqrt();
                let name = format!("sizes {name}, distance");
                self.row(&name, Distance, Share, [0.0, distance], (0.0, limit.max(NEAR)));
            }
            if classes.contains(&class) {
                let bytes = self.each(figures.map(|figures| figures.map_or(0, |figures| figures.bytes)));
                self.row(&format!("bytes {name} a {}", self.per), Ratio, Bytes, bytes, EXACT);
            }
        }
    }

    fn syncs(&mut self) {
        let sides = self.sides;
        let syncs = self.each(sides.map(TracedRun::syncs));
        self.row(&format!("syncs a {}", self.per), Ratio, Count, syncs, EXACT);
        if sides.iter().all(|side| side.syncs() > 0) {
            self.row("order of syncs, distance", Distance, Share, [0.0, sync_distance(sides)], (0.0, 0.02));
        }
    }

    fn files(&mut self) {
        let sides = self.sides;
        let [files, directories] = [sides.map(|side| side.files), sides.map(|side| side.directories)];
        // Other threads than that of the transaction may be in the middle of one.
        let allowed = (files[0] * 0.01).max(sides[1].summary.threads.len() as f64 - 1.0);
        self.row("files", Difference, Count, files, (-allowed, allowed));
        let more = SET_DIRECTORIES * sides[1].file_sets as f64;
        let allowed = directories[0] * 0.01;
        self.row("directories", Difference, Count, directories, (-allowed, allowed + more));
    }

    /// Time between calls, and in them.
    fn times(&mut self) {
        let sides = self.sides;
        let between = [(sides.map(|side| side.running), "running"), (sides.map(|side| side.blocked), "blocked")];
        for (times, name) in between {
            let [Some(program), Some(script)] = times else { continue };
            let is_much = |(time, side): (u64, &TracedRun)| time as f64 > SMALL_TIME * side.busy_time() as f64;
            if is_much((program, sides[0])) || is_much((script, sides[1])) {
                let times = self.each([program, script]);
                self.row(
                    &format!("{name} between calls a {}", self.per),
                    Ratio,
                    Nanoseconds,
                    times,
                    (0.85, 1.0 / 0.85),
                );
            }
        }
        let inside = self.each(sides.map(|side| side.summary.time()));
        self.row(&format!("in calls a {}", self.per), Ratio, Nanoseconds, inside, (0.75, 1.0 / 0.75));
    }

    fn transactions(&mut self) {
        let rate = |side: &TracedRun| side.transactions as f64 * 1e9 / side.span.max(1) as f64;
        self.row("transactions a second", Ratio, PerSecond, self.sides.map(rate), (0.8, 1.25));
        for (share, name, limit) in [(0.5, "p50", (0.67, 1.5)), (0.99, "p99", (0.5, 2.0))] {
            let of = |side: &TracedRun| side.latencies.quantile(share).unwrap_or(0) as f64;
            self.row(&format!("transaction {name}"), Ratio, Nanoseconds, self.sides.map(of), limit);
        }
    }

    fn latencies(&mut self, costliest: &BTreeSet<CallClass>) {
        for class in costliest {
            let of = |figures: Option<&ClassFigures>| figures.and_then(|figures| figures.durations.quantile(0.5));
            let middles = self.of_class(*class).map(|figures| of(figures).unwrap_or(0) as f64);
            self.row(&format!("{} p50", class.name()), Ratio, Nanoseconds, middles, (0.67, 1.5));
        }
    }
}

/// How far the sizes of two sides are apart, and how many there are.
fn sizes_apart(sizes: [&Spread; 2]) -> Option<(f64, [f64; 2])> {
    let totals = sizes.map(|sizes| sizes.total() as f64);
    (totals[0] > 0.0 && totals[1] > 0.0).then(|| (sizes[0].distance(sizes[1]), totals))
}

/// The share of the pairs of syncs, one after the other, that would have to be others.
fn sync_distance(sides: [&TracedRun; 2]) -> f64 {
    let share =
        |side: &TracedRun, key| side.sync_pairs.get(key).copied().unwrap_or(0) as f64 / side.syncs().max(1) as f64;
    let keys: BTreeSet<_> = sides.iter().flat_map(|side| side.sync_pairs.keys()).collect();
    keys.into_iter().map(|key| (share(sides[0], key) - share(sides[1], key)).abs()).sum::<f64>() / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row whose true ratio is this one, with one of a thousand random numbers for each pair.
    fn row(ratio: f64, state: &mut u64, pairs: usize) -> UndecidedRow {
        let mut draw = || {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 33) as f64 / f64::from(1u32 << 31)
        };
        // Sums of several are about normal.
        let mut near = |middle: f64| middle * (0.7 + 0.1 * (0..6).map(|_| draw()).sum::<f64>());
        let values: Vec<[f64; 2]> = (0..pairs).map(|_| [near(100.0), near(100.0 * ratio)]).collect();
        let limit = (0.9, 1.1);
        let row = PairRow { name: String::new(), scale: Ratio, unit: Count, values: [0.0; 2], limit };
        UndecidedRow { row, limits: vec![limit; pairs], values }
    }

    #[test]
    fn who_looks_often_is_seldom_wrong() {
        let mut state = 3;
        let is_outside = |all: UndecidedRow, errors: fn(usize) -> f64| {
            LOOKS.iter().any(|look| {
                let (values, limits) = (all.values[..*look].to_vec(), all.limits[..*look].to_vec());
                let row = PairRow { name: String::new(), values: [0.0; 2], ..all.row };
                let found = decided(vec![UndecidedRow { row, values, limits }], errors(*look));
                found[0].verdict == FidelityVerdict::Outside
            })
        };
        let mut count =
            |errors: fn(usize) -> f64| (0..400).filter(|_| is_outside(row(1.1, &mut state, 30), errors)).count();
        // At the limit, one side of an interval can be wrong.
        let (shared, each) = (count(|look| errors_at(look, 30)), count(|_| 0.05));
        assert!(shared <= 14 && each > 18, "{shared}, {each}");
        // All looks together have the errors of one.
        let all: f64 = LOOKS.iter().map(|look| errors_at(*look, 30)).sum();
        assert!((all - 0.05).abs() < 1e-9 && (errors_at(4, 4) - 0.0125).abs() < 1e-9, "{all}");
    }
}
