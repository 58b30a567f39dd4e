//! Error rates and power of the verdicts, simulated with the test that comparisons use: how often equal sides get a verdict, and
//! how often a loss of 10 % is found. The table of docs/statistics.md has the rates of 2,000 series.

#![allow(clippy::unwrap_used)]
use super::RunOrder;
use super::tested::TestedRatio;
use crate::analysis::{ComparisonVerdict, Tolerance, classify, positions};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal, StudentT};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What the runs of a machine without a change are like. Their mean is 1, and their standard deviation 0.04 unless it says
/// otherwise.
#[derive(Clone, Copy, PartialEq)]
enum RunModel {
    Independent,
    /// Each run depends on the one before it, with a correlation of 0.5.
    Dependent,
    /// The machine becomes faster by this share over all runs.
    Drifting(f64),
    /// 0.04 times Student's t with two degrees of freedom.
    Heavy,
    /// Half of the runs have the mean 1.3.
    Bimodal,
    /// One run in twenty has half the rate.
    Halved,
}

use RunModel::{Bimodal, Dependent, Drifting, Halved, Heavy, Independent};

impl RunModel {
    fn name(self) -> String {
        match self {
            Independent => "independent".to_owned(),
            Dependent => "φ = 0.5".to_owned(),
            Drifting(share) => format!("d = {:.0} %", 100.0 * share),
            Heavy => "heavy tails".to_owned(),
            Bimodal => "two modes".to_owned(),
            Halved => "one in twenty halved".to_owned(),
        }
    }

    fn runs(self, n: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<f64> {
        let mut state: f64 = rng.sample(StandardNormal);
        let student = StudentT::new(2.0).unwrap();
        let run = |i: usize| {
            let normal: f64 = rng.sample(StandardNormal);
            match self {
                Independent => 1.0 + 0.04 * normal,
                Dependent => {
                    let value = 1.0 + 0.04 * state;
                    state = 0.5 * state + 0.75_f64.sqrt() * normal;
                    value
                }
                Drifting(share) => 1.0 + 0.04 * normal + share * i as f64 / (n - 1) as f64,
                Heavy => f64::max(1.0 + 0.04 * student.sample(rng), 0.001),
                Bimodal => 0.04 * normal + if rng.random() { 1.0 } else { 1.3 },
                Halved => (1.0 + 0.04 * normal) * if rng.random_range(0..20) == 0 { 0.5 } else { 1.0 },
            }
        };
        (0..n).map(run).collect()
    }
}

/// How the runs of both sides are made.
#[derive(Clone, Copy, PartialEq)]
enum SimulatedSession {
    /// So many blocks of `wmlrun ab`.
    Blocks(usize),
    /// So many runs of A, and then as many of B.
    Columns(usize),
}

impl SimulatedSession {
    /// Compares sides of which B has `factor` times the rate. Returns the verdicts at a tolerance of 0 and of 3 %.
    fn verdicts(self, model: RunModel, factor: f64, rng: &mut Xoshiro256PlusPlus) -> [ComparisonVerdict; 2] {
        let is_b: Vec<bool> = match self {
            Self::Blocks(blocks) => (0..blocks)
                .flat_map(|_| if rng.random() { [false, true, true, false] } else { [true, false, false, true] })
                .collect(),
            Self::Columns(n) => (0..2 * n).map(|i| i >= n).collect(),
        };
        let values = model.runs(is_b.len(), rng);
        let side = |wanted: bool| -> Vec<f64> {
            let runs = values.iter().zip(&is_b).filter(|(_, is_b)| **is_b == wanted);
            runs.map(|(value, is_b)| if *is_b { factor * value } else { *value }).collect()
        };
        let (a, b) = (side(false), side(true));
        let order = if let Self::Blocks(_) = self { RunOrder::Blocks } else { RunOrder::Separate };
        let times = positions([&vec![None; a.len()], &vec![None; b.len()]]);
        let ratio = TestedRatio::of(order, [&a, &b], &Some(times), 0.95).unwrap().ratio();
        [0.0, 0.03].map(|tolerance| classify(ratio, Tolerance(tolerance)))
    }

    /// Returns how many of so many series have the verdict *better* or *worse* on equal sides, and *worse* on a loss of 10 %,
    /// each at both tolerances.
    fn rates(self, model: RunModel, series: usize) -> [usize; 4] {
        use ComparisonVerdict::{Better, Worse};
        // The same seed for all: a cell does not depend on those that were simulated before it.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2000);
        let mut found = [0; 4];
        for _ in 0..series {
            let equal = self.verdicts(model, 1.0, &mut rng).map(|verdict| matches!(verdict, Better | Worse));
            let loss = self.verdicts(model, 0.9, &mut rng).map(|verdict| verdict == Worse);
            for (sum, seen) in found.iter_mut().zip([equal[0], loss[0], equal[1], loss[1]]) {
                *sum += usize::from(seen);
            }
        }
        found
    }
}

/// Simulates the cells of a table, and returns its rows. `is_bounded` and `finds` say of which cells the rates have a bound.
fn table(
    models: &[RunModel],
    sessions: &[SimulatedSession],
    is_bounded: &dyn Fn(RunModel) -> bool,
    finds: &dyn Fn(RunModel, SimulatedSession) -> bool,
) -> Vec<String> {
    let is_long = std::env::var_os("WMLRUN_LONG").is_some();
    let series = if is_long { 2000 } else { 200 };
    // The bounds of 2,000 series, which are 5 % and 90 % with what may be chance; those of fewer series are wider by chance.
    let slack = if is_long { 0.0 } else { 0.03 };
    let mut rows = Vec::new();
    for model in models {
        let cells: Vec<[f64; 4]> = sessions
            .iter()
            .map(|session| session.rates(*model, series).map(|seen| seen as f64 / series as f64))
            .collect();
        for (session, [equal, loss, ..]) in sessions.iter().zip(&cells) {
            let size = match session {
                SimulatedSession::Blocks(n) | SimulatedSession::Columns(n) => *n,
            };
            let name = format!("{}, {size}", model.name());
            assert!(!is_bounded(*model) || *equal <= 0.066 + slack, "{name}: {equal} of equal sides differ");
            assert!(!finds(*model, *session) || *loss >= 0.9 - slack, "{name}: {loss} of the losses are found");
        }
        let rate = |rate: f64| format!("{rate:.3}").trim_start_matches('0').to_owned();
        let of = |n: usize| cells.iter().map(|cell| rate(cell[n])).collect::<Vec<_>>().join(" ");
        rows.push(format!("| {} | {} | {} | {} | {} |", model.name(), of(0), of(1), of(2), of(3)));
    }
    if is_long {
        let docs = include_str!("../../docs/statistics.md");
        let missing: Vec<&String> = rows.iter().filter(|row| !docs.contains(row.as_str())).collect();
        assert!(missing.is_empty(), "docs/statistics.md has not the rows\n{}", rows.join("\n"));
    }
    rows
}

#[test]
fn verdicts_of_interleaved_runs_have_the_promised_rates() {
    let models = [Independent, Dependent, Drifting(0.1), Drifting(0.3), Heavy, Bimodal, Halved];
    let sessions = [SimulatedSession::Blocks(4), SimulatedSession::Blocks(10)];
    let finds = |model, session| session == sessions[1] && [Independent, Heavy, Halved].contains(&model);
    assert_eq!(table(&models, &sessions, &|_| true, &finds).len(), 7);
}

/// No test of columns keeps its level if a run depends on the one before it, so that its rate has no bound.
#[test]
fn verdicts_of_columns_have_the_promised_rates() {
    let models = [Independent, Dependent, Drifting(0.1), Drifting(0.3), Heavy, Bimodal, Halved];
    let sessions = [SimulatedSession::Columns(5), SimulatedSession::Columns(10), SimulatedSession::Columns(30)];
    let finds = |model, session| session == sessions[2] && [Independent, Heavy, Halved].contains(&model);
    assert_eq!(table(&models, &sessions, &|model| model != Dependent, &finds).len(), 7);
}
