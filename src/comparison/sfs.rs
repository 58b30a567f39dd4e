//! What SFS asks of a measurement, and what its disclosure sheet tells, for a load curve by its method. No figure of this
//! program is a result of SPEC.

use super::conditions;
use crate::import::Observation;
use crate::util::count::{count, fixed, grouped, measured};
use crate::util::size;

/// The operations and their shares in per cent.
const MIX: [(&str, f64); 14] = [
    ("lookup", 27.0),
    ("read", 18.0),
    ("getattr", 11.0),
    ("write", 9.0),
    ("readdirplus", 9.0),
    ("readlink", 7.0),
    ("access", 7.0),
    ("commit", 5.0),
    ("readdir", 2.0),
    ("setattr", 1.0),
    ("create", 1.0),
    ("remove", 1.0),
    ("fsstat", 1.0),
    ("fsinfo", 1.0),
];

/// How far a share may be from that of the mix, in per cent of all operations.
const MIX_LIMIT: f64 = 1.0;

/// The least warm-up and measured time, in seconds.
const SECONDS: f64 = 300.0;

/// The least number of loads.
const LOADS: usize = 10;

/// The greatest distance of a share from that of the mix; `None` for a run without one of the operations.
fn off_mix(run: &Observation) -> Option<f64> {
    let rate = |(name, _): &(&str, f64)| {
        let several = format!("{name}.");
        let is_of_name = |of: &str| of == *name || of.starts_with(&several);
        let is_of = |figure: &str| figure.rsplit_once('.').is_some_and(|(of, kind)| kind == "ops" && is_of_name(of));
        // An operation of several calls makes each of them once.
        run.figures.iter().find(|(figure, _)| is_of(figure)).map(|(_, rate)| *rate)
    };
    let rates: Vec<f64> = MIX.iter().map(rate).collect::<Option<_>>()?;
    let all: f64 = rates.iter().sum();
    MIX.iter().zip(&rates).map(|((_, share), rate)| (100.0 * rate / all - share).abs()).reduce(f64::max)
}

/// True if enough loads rise in equal steps, of which the first is the first load.
fn are_even(loads: &[String]) -> bool {
    let loads: Vec<f64> = loads.iter().filter_map(|load| load.parse().ok()).collect();
    let step = loads.first().copied().unwrap_or(0.0);
    let is_at = |(n, load): (usize, &f64)| (load - step * (n + 1) as f64).abs() < 0.01 * step;
    loads.len() >= LOADS && loads.iter().enumerate().all(is_at)
}

/// The rules, each met or not, and what the runs were made with. `loads` are those of the curve. Empty for runs of other
/// operations.
pub(super) fn facts(loads: &[String], runs: &[&[Observation]]) -> Vec<(String, String)> {
    let all: Vec<&Observation> = runs.iter().flat_map(|runs| runs.iter()).filter(|run| run.failure.is_none()).collect();
    let Some(mix) = all.iter().filter_map(|run| off_mix(run)).reduce(f64::max) else { return Vec::new() };
    let values = |name: &str| all.iter().filter_map(|run| run.figures.get(name).copied()).collect::<Vec<f64>>();
    let range = |name: &str, shown: fn(f64) -> String| {
        let ends = [f64::min, f64::max].map(|end| values(name).into_iter().reduce(end).map_or("-".to_owned(), shown));
        if ends[0] == ends[1] { ends[0].clone() } else { ends.join(" to ") }
    };
    let rule = |is_met: bool, rule: &str| format!("; SFS asks for {rule}: {}", if is_met { "met" } else { "not met" });
    let time = |name: &str| {
        let found = values(name);
        let is_met = found.len() == all.len() && found.iter().all(|seconds| *seconds >= 0.99 * SECONDS);
        format!("{} s{}", range(name, measured), rule(is_met, "300 s"))
    };
    let whole = |value: f64| grouped(value as u64);
    let generators = [("processes", "process"), ("threads", "thread")];
    let generators = generators.iter().filter_map(|(name, one)| Some(count(*values(name).first()? as u64, one)));
    let (even, all_loads) = (rule(are_even(loads), "ten in equal steps"), count(loads.len() as u64, "load"));
    let mut facts = vec![
        ("warm-up", time("warmup")),
        ("measured", time("seconds")),
        ("requested", format!("{} operations/s, {all_loads}{even}", range("offered", measured))),
        ("achieved", format!("{} operations/s", range("achieved", measured))),
        ("mix", format!("at most {} % off{}", fixed(mix, 2), rule(mix <= MIX_LIMIT, "at most 1 %"))),
        ("load generators", generators.collect::<Vec<_>>().join(", ")),
        (
            "file set",
            format!("{} files, {}", range("files", whole), range("files.bytes", |of| size::format(of as u64))),
        ),
    ];
    let lines = conditions::lines(runs);
    facts.extend(lines.first().map(|line| ("server", line.clone())));
    let inner = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
    facts.extend(inner.iter().map(|line| ("file system", line.clone())));
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(of_lookup: f64) -> Observation {
        let name = |name: &str| if name == "read" { "read.read.ops".to_owned() } else { format!("{name}.ops") };
        let mut figures: std::collections::BTreeMap<String, f64> =
            MIX.iter().map(|(of, share)| (name(of), *share)).collect();
        figures.insert("lookup.ops".to_owned(), of_lookup);
        let others = [("warmup", 300.0), ("seconds", 300.0), ("offered", 100.0), ("achieved", 99.0), ("threads", 10.0)];
        figures.extend(others.map(|(name, value)| (name.to_owned(), value)));
        Observation { figures, ..Observation::default() }
    }

    #[test]
    fn each_rule_is_met_or_not() {
        let loads = |n: u64| (1..=n).map(|n| (100 * n).to_string()).collect::<Vec<_>>();
        let of = |run: Observation, loads: &[String]| {
            let facts = facts(loads, &[&[run]]);
            facts.iter().take(5).map(|(_, text)| text.ends_with(": met")).collect::<Vec<_>>()
        };
        assert_eq!(of(run(27.0), &loads(10)), [true, true, true, false, true]);
        assert_eq!(of(run(30.0), &loads(9)), [true, true, false, false, false]);
        let mut short = run(27.0);
        short.figures.remove("warmup");
        short.figures.insert("seconds".to_owned(), 60.0);
        let uneven = ["100", "200", "400"].map(str::to_owned);
        assert_eq!(of(short.clone(), &uneven), [false, false, false, false, true]);
        short.figures.remove("lookup.ops");
        assert!(facts(&uneven, &[&[short]]).is_empty());
    }
}
