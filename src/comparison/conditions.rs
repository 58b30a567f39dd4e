//! The conditions of runs in a few lines, for readers who do not have the results: days and versions, machine, file systems.

use crate::import::{FEATURES, Observation};
use crate::util::timestamp;
use std::collections::BTreeSet;

/// The most values of a condition that are shown.
const SHOWN: usize = 3;

/// Returns the lines; empty if nothing is known of any run.
pub fn lines(sides: &[&[Observation]]) -> Vec<String> {
    let runs = || sides.iter().flat_map(|runs| runs.iter());
    if runs().all(|run| run.conditions.is_empty()) {
        return Vec::new();
    }
    let values = |name: &str, shorten: fn(&str) -> &str| {
        let values = runs().filter_map(|run| run.conditions.get(name)).map(|value| shorten(value));
        let values: BTreeSet<&str> = values.filter(|value| !value.is_empty()).collect();
        let further = if values.len() > SHOWN { " and others" } else { "" };
        let shown: Vec<&str> = values.iter().take(SHOWN).copied().collect();
        (!values.is_empty()).then(|| shown.join(" and ") + further)
    };
    let whole = |name: &str| values(name, |value| value);
    let with = |name: &str, before: &str, after: &str| whole(name).map(|value| format!("{before}{value}{after}"));
    let kernel = values("kernel", |value| value.split(' ').next().unwrap_or_default());
    let machine =
        [kernel.map(|kernel| format!("Linux {kernel}")), whole("processor"), with("memory", "", " of memory")];
    let mut lines = vec![machine.into_iter().flatten().collect::<Vec<_>>().join("; ")];
    for n in 1..=SHOWN {
        let number = if n == 1 { String::new() } else { format!(" {n}") };
        let named = |name: &str| format!("{name}{number}");
        let Some(kinds) = whole(&named("file system")) else { break };
        let device = with(&named("device"), " on ", "").unwrap_or_default();
        let options = with(&named("mount options"), ", mounted ", "").unwrap_or_default();
        lines.push(format!("{kinds}{device}{options}"));
        for kind in kinds.split(" and ") {
            let features = whole(&named(&format!("{kind}{FEATURES}")));
            // Lists that differ are among the differences.
            let features = features.filter(|text| !text.contains(" and "));
            lines.extend(features.map(|features| format!("{kind} features: {features}")));
        }
    }
    let days: BTreeSet<String> = runs().filter_map(|run| timestamp::day(run.started?)).collect();
    let days = match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => Some(format!("{first} to {last}")),
        (first, _) => first.cloned(),
    };
    let workloads: BTreeSet<&str> = runs().map(|run| run.workload.as_str()).filter(|name| !name.is_empty()).collect();
    let workloads: Vec<&str> = workloads.into_iter().take(SHOWN).collect();
    let workloads = (!workloads.is_empty()).then(|| workloads.join(" and "));
    let length = with("run time", "", " a run").filter(|text| !text.contains("none"));
    let made = [workloads, length, with("script", "script ", ""), whole("tool"), days];
    lines.push(made.into_iter().flatten().collect::<Vec<_>>().join("; "));
    lines.retain(|line| !line.is_empty());
    lines
}
