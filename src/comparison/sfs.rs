//! What SFS asks of a measurement, and what its disclosure sheet tells, for a load curve by its method. No figure of this
//! program is a result of SPEC.

use super::Caution;
use super::conditions::ConditionLines;
use crate::import::Observation;
use crate::report::metrics::REQUESTS;
use crate::sheet::Usability;
use crate::util::count::{count, fixed, grouped, measured, or_dash};
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
fn are_even(loads: &[f64]) -> bool {
    let step = loads.first().copied().unwrap_or(0.0);
    let is_at = |(n, load): (usize, &f64)| (load - step * (n + 1) as f64).abs() < 0.01 * step;
    loads.len() >= LOADS && loads.iter().enumerate().all(is_at)
}

/// What SFS asks of a measurement and a disclosure tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SfsSheet {
    /// The rules, each met or not, and what the runs were made with. Empty for runs of other operations.
    pub facts: Vec<(String, String)>,
    /// The rules that are not met.
    pub not_met: Vec<String>,
}

impl SfsSheet {
    /// The rules that were not kept, before all other reasons: without them the rest is no result of SFS at all.
    pub(super) fn caution(&self) -> Option<Caution> {
        let rules = self.not_met.join(", ");
        let text = format!("use it as a load curve, not as a result by the rules of SFS, which are not met: {rules}");
        (!self.not_met.is_empty()).then(|| Caution::new(Usability::WithCaution, text))
    }

    /// That of the runs of a curve. `levels` are its loads, for results without the requested ones.
    pub(super) fn of(levels: &[String], runs: &[&[Observation]]) -> Self {
        let all: Vec<&Observation> =
            runs.iter().flat_map(|runs| runs.iter()).filter(|run| run.failure.is_none()).collect();
        let Some(mix) = all.iter().filter_map(|run| off_mix(run)).reduce(f64::max) else { return Self::default() };
        let values = |name: &str| all.iter().filter_map(|run| run.figures.get(name).copied()).collect::<Vec<f64>>();
        let range = |values: &[f64], shown: fn(f64) -> String| {
            let ends = [f64::min, f64::max].map(|end| or_dash(values.iter().copied().reduce(end), shown));
            if ends[0] == ends[1] { ends[0].clone() } else { ends.join(" to ") }
        };
        let mut loads = values("requested");
        if loads.is_empty() {
            loads = levels.iter().filter_map(|load| load.parse().ok()).collect();
        }
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        let mut sheet = Self::default();
        let mut tell = |name: &str, text: String, rule: Option<(bool, &str)>| {
            let rule = rule.map_or_else(String::new, |(is_met, rule)| {
                sheet.not_met.extend((!is_met).then(|| format!("{name} ({rule})")));
                format!("; SFS asks for {rule}: {}", if is_met { "met" } else { "not met" })
            });
            sheet.facts.push((name.to_owned(), text + &rule));
        };
        for (name, figure) in [("warm-up", "warmup"), ("measured", "seconds")] {
            let found = values(figure);
            let is_met = found.len() == all.len() && found.iter().all(|seconds| *seconds >= 0.99 * SECONDS);
            tell(name, format!("{} s", range(&found, measured)), Some((is_met, "300 s")));
        }
        let all_loads = count(loads.len() as u64, "load");
        let requested = format!("{} operations/s, {all_loads}", range(&loads, measured));
        tell("requested", requested, Some((are_even(&loads), "ten in equal steps")));
        tell("achieved", format!("{} operations/s", range(&values(REQUESTS), measured)), None);
        tell("mix", format!("at most {} % off", fixed(mix, 2)), Some((mix <= MIX_LIMIT, "at most 1 %")));
        let generators = [("processes", "process"), ("threads", "thread")];
        let generators = generators.iter().filter_map(|(name, one)| Some(count(*values(name).first()? as u64, one)));
        tell("load generators", generators.collect::<Vec<_>>().join(", "), None);
        let files = range(&values("files"), |files| grouped(files as u64));
        let bytes = range(&values("files.bytes"), |bytes| size::format(bytes as u64));
        tell("file set", format!("{files} files, {bytes}"), None);
        if let Some(lines) = ConditionLines::of(runs) {
            lines.machines.into_iter().for_each(|line| tell("server", line, None));
            lines.file_systems.into_iter().for_each(|line| tell("file system", line, None));
        }
        sheet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(of_lookup: f64) -> Observation {
        let name = |name: &str| if name == "read" { "read.read.ops".to_owned() } else { format!("{name}.ops") };
        let mut figures: std::collections::BTreeMap<String, f64> =
            MIX.iter().map(|(of, share)| (name(of), *share)).collect();
        figures.insert("lookup.ops".to_owned(), of_lookup);
        let others = [("warmup", 300.0), ("seconds", 300.0), ("requests", 99.0), ("threads", 10.0)];
        figures.extend(others.map(|(name, value)| (name.to_owned(), value)));
        Observation { figures, ..Observation::default() }
    }

    #[test]
    fn each_rule_is_met_or_not() {
        let levels = |n: u64| (1..=n).map(|n| (100 * n).to_string()).collect::<Vec<_>>();
        let of = |run: &Observation, levels: &[String]| {
            let sheet = SfsSheet::of(levels, &[std::slice::from_ref(run)]);
            let names = sheet.not_met.iter().map(|rule| rule.split(' ').next().unwrap_or_default().to_owned());
            (sheet.facts.iter().filter(|(_, text)| text.ends_with(": met")).count(), names.collect::<Vec<_>>())
        };
        assert_eq!(of(&run(27.0), &levels(10)), (4, vec![]));
        assert_eq!(of(&run(30.0), &levels(9)), (2, ["requested", "mix"].map(str::to_owned).to_vec()));
        let mut short = run(27.0);
        short.figures.remove("warmup");
        short.figures.insert("seconds".to_owned(), 60.0);
        let uneven = ["100", "200", "400"].map(str::to_owned);
        assert_eq!(of(&short, &uneven), (1, ["warm-up", "measured", "requested"].map(str::to_owned).to_vec()));
        short.figures.remove("lookup.ops");
        assert_eq!(SfsSheet::of(&uneven, &[&[short]]), SfsSheet::default());
    }

    /// Random arrivals are not exactly as many as were asked for.
    #[test]
    fn the_loads_are_those_that_were_requested() {
        let runs = |step: f64| {
            let run = |n: u32| {
                let mut run = run(27.0);
                let arrived = f64::from(n) * 100.0 + 16.7;
                let figures = [("requested", f64::from(n) * step), ("offered", arrived), (REQUESTS, arrived)];
                run.figures.extend(figures.map(|(name, value)| (name.to_owned(), value)));
                run
            };
            (1..=10).map(run).collect::<Vec<_>>()
        };
        let requested = |step: f64| SfsSheet::of(&[], &[&runs(step)]).facts[2].1.clone();
        assert_eq!(requested(100.0), "100.0 to 1,000 operations/s, 10 loads; SFS asks for ten in equal steps: met");
        let mut same = runs(100.0);
        same[9].figures.insert("requested".to_owned(), 900.0);
        assert_eq!(SfsSheet::of(&[], &[&same]).not_met, ["requested (ten in equal steps)"]);
    }
}
