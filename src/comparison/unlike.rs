//! Notes on sides whose runs are not alike, although nothing in their conditions says so: they took other times, or put
//! another load on the file system. And on cells that are alike where they should not be.

use super::notes::sides_with;
use crate::import::{Metric, Observation};
use crate::util::count::measured;
use crate::util::duration;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the note on sides of which one does not tell its conditions, and whose runs did not take the same time.
pub(super) fn on_run_times(a: &[Observation], b: &[Observation]) -> Option<String> {
    /// The ratio of the times up to which they are alike. Filebench prints whole seconds.
    const MOST: f64 = 1.25;
    let seconds = |runs: &[Observation]| {
        let all: Vec<f64> = runs.iter().filter_map(|run| run.figures.get("seconds").copied()).collect();
        (all.len() == runs.len() && !all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    sides_with(a, b, |run| run.conditions.is_empty())?;
    let (of_a, of_b) = (seconds(a)?, seconds(b)?);
    let differs = of_a.max(of_b) > MOST * of_a.min(of_b);
    let [of_a, of_b] = [of_a, of_b].map(duration::seconds);
    differs.then(|| format!("the runs of A took {of_a}, and those of B {of_b}: rates depend on the length of a run"))
}

/// Returns the note on the latency of a flowop, if the sides ran at different rates. `None` for response times, and for a
/// flowop that makes half or more of the operations.
pub(super) fn on_load(runs: &[&[Observation]], metric: &Metric) -> Option<String> {
    /// The ratio of the rates from which on the loads are not alike.
    const LEAST: f64 = 1.25;
    let flowop = metric.flowop().filter(|_| metric.nanoseconds().is_some() && !metric.is_response())?;
    let own: Metric = format!("{flowop}.ops").parse().ok()?;
    let mean = |runs: &[Observation], metric: &Metric| {
        let values: Vec<f64> = runs.iter().filter_map(|run| metric.of(run)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let all = |metric: &Metric| runs.iter().map(|runs| mean(runs, metric)).collect::<Option<Vec<f64>>>();
    let (rates, own) = (all(&Metric::ops())?, all(&own)?);
    let is_minor = rates.iter().zip(&own).all(|(rate, own)| 2.0 * own < *rate);
    let (least, most) = (rates.iter().copied().reduce(f64::min)?, rates.iter().copied().reduce(f64::max)?);
    (is_minor && most > LEAST * least).then(|| {
        format!(
            "`{metric}` was measured at different loads, {} to {} ops/s: a `rate=` of the threads makes them equal",
            measured(least),
            measured(most)
        )
    })
}

/// Returns the note on cells that are to differ in their directory only, and are all on one file system. The fresh
/// directories of runs do not count, nor do those that differ because something else does: a tree for each size.
pub(super) fn on_places(cells: &[&[Observation]]) -> Option<String> {
    let of_cell = |runs: &&[Observation], name: &str| -> Option<String> {
        let first = runs.first()?.conditions.get(name)?;
        runs.iter().all(|run| run.conditions.get(name) == Some(first)).then(|| first.clone())
    };
    let all = |name: &str| cells.iter().map(|runs| of_cell(runs, name)).collect::<Option<Vec<String>>>();
    let (dirs, kinds, devices, options) = (all("$dir")?, all("file system")?, all("device")?, all("mount options")?);
    let are_equal = |values: &[String]| values.windows(2).all(|pair| pair[0] == pair[1]);
    let is_fresh = |dir: &String| dir.rsplit('/').next().is_some_and(|name| name.starts_with("wmlrun-"));
    // Cells with another directory and the same variables.
    let variables = |runs: &[Observation]| -> Option<Vec<(String, String)>> {
        let all = &runs.first()?.conditions;
        let others = all.iter().filter(|(name, _)| name.starts_with('$') && *name != "$dir");
        Some(others.map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    let mut places: BTreeMap<Vec<(String, String)>, BTreeSet<&String>> = BTreeMap::new();
    for (runs, dir) in cells.iter().zip(&dirs) {
        places.entry(variables(runs)?).or_default().insert(dir);
    }
    let is_only_difference = places.values().any(|dirs| dirs.len() > 1);
    let is_one =
        is_only_difference && are_equal(&kinds) && are_equal(&devices) && are_equal(&options) && kinds[0] != "tmpfs";
    (is_one && !are_equal(&dirs) && !dirs.iter().any(is_fresh))
        .then(|| format!("all directories are on one file system, {} on {}: is one not mounted?", kinds[0], devices[0]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{on_load, on_places, on_run_times};
    use crate::import::Observation;

    fn run(figures: &[(&str, f64)]) -> Vec<Observation> {
        let figures = figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        vec![Observation { figures, ..Observation::default() }]
    }

    #[test]
    fn the_latency_of_a_minor_flowop_depends_on_the_rate_of_the_others() {
        let of = |ops: f64, reads: f64| run(&[("ops", ops), ("read.ops", reads), ("read.latency.mean", 1e6)]);
        let note =
            |a: &[Observation], b: &[Observation], metric: &str| metric.parse().ok().and_then(|m| on_load(&[a, b], &m));
        let (slow, fast) = (of(1000.0, 100.0), of(3000.0, 110.0));
        let found = note(&slow, &fast, "read.latency.mean").unwrap_or_default();
        assert!(
            found.starts_with("`read.latency.mean` was measured at different loads, 1,000 to 3,000 ops/s"),
            "{found}"
        );
        // The flowop is the load itself, the rates are alike, or the metric is no latency of a flowop.
        assert_eq!(note(&of(1000.0, 900.0), &of(3000.0, 2700.0), "read.latency.mean"), None);
        assert_eq!(note(&slow, &of(1100.0, 100.0), "read.latency.mean"), None);
        assert_eq!((note(&slow, &fast, "read.ops"), note(&slow, &fast, "latency.mean")), (None, None));
    }

    #[test]
    fn runs_of_other_programs_may_have_another_length() {
        let [short, long] = [2.0, 60.0].map(|seconds| run(&[("seconds", seconds)]));
        let found = on_run_times(&long, &short).unwrap_or_default();
        assert!(found.starts_with("the runs of A took 60.0 s, and those of B 2.0 s: "), "{found}");
        assert_eq!((on_run_times(&long, &long), on_run_times(&long, &run(&[]))), (None, None));
    }

    #[test]
    fn cells_whose_directories_are_on_one_file_system_are_noted() {
        let run = |dir: &str, device: &str| {
            let pairs = [("$dir", dir), ("file system", "ext4"), ("mount options", "rw"), ("device", device)];
            let conditions = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            vec![Observation { conditions, ..Observation::default() }; 2]
        };
        let of = |cells: &[Vec<Observation>]| on_places(&cells.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let note = of(&[run("/a", "/dev/sda1"), run("/b", "/dev/sda1")]).unwrap();
        assert!(note.starts_with("all directories are on one file system, ext4 on /dev/sda1: "), "{note}");
        // A directory for each number of files is no other place.
        let with = |dir: &str, n: &str| {
            let mut runs = run(dir, "/dev/sda1");
            runs.iter_mut().for_each(|run| _ = run.conditions.insert("$n".to_owned(), n.to_owned()));
            runs
        };
        assert_eq!(of(&[with("/x/1", "1"), with("/x/2", "2"), with("/x/1", "1")]), None);
        assert!(of(&[with("/a", "1"), with("/a", "2"), with("/b", "1"), with("/b", "2")]).is_some());
        for cells in [
            [run("/a", "/dev/sda1"), run("/b", "/dev/sdb1")],
            [run("/a", "/dev/sda1"), run("/a", "/dev/sda1")],
            [run("/x/wmlrun-1-0", "/dev/sda1"), run("/x/wmlrun-2-0", "/dev/sda1")],
            [run("/a", "/dev/sda1"), Vec::new()],
        ] {
            assert_eq!(of(&cells), None);
        }
    }
}
