//! What differs between two sides in the conditions of their runs.

use crate::import::Observation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A condition that is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Which: `kernel`, `mount options`, `$nthreads`…
    pub what: String,
    /// Its value in A; several are parted by ` | `.
    pub a: String,
    /// Its value in B.
    pub b: String,
    /// Whether a change of it is what people compare, or spoils a comparison.
    pub kind: DifferenceKind,
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// A setting that may be the question: kernel, mount, variable.
    Setting,
    /// What should be equal, or the figures are of different things: the script, the run time, the cache state, the machine.
    Workload,
}

/// Conditions that should be equal.
const WORKLOAD: [&str; 7] = ["script", "run time", "cache", "engine", "as-is", "processor", "memory"];

/// What differs, what spoils the comparison first. A condition that only one side knows of is no difference of the runs.
pub fn differences(a: &[Observation], b: &[Observation]) -> Vec<Difference> {
    let names: BTreeSet<&str> = a.iter().chain(b).flat_map(|run| run.conditions.keys()).map(String::as_str).collect();
    let values = |runs: &[Observation], name: &str| -> BTreeSet<String> {
        runs.iter().filter_map(|run| run.conditions.get(name).cloned()).collect()
    };
    let joined = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(" | ");
    let known = |runs: &[Observation]| runs.iter().any(|run| !run.conditions.is_empty());
    if !known(a) || !known(b) {
        return Vec::new();
    }
    let mut found: Vec<Difference> = names
        .into_iter()
        // A fresh directory has another name each time.
        .filter(|name| *name != "$dir")
        .filter_map(|name| {
            let (of_a, of_b) = (values(a, name), values(b, name));
            let kind = if WORKLOAD.contains(&name) { DifferenceKind::Workload } else { DifferenceKind::Setting };
            (of_a != of_b).then(|| Difference { what: name.to_owned(), a: joined(of_a), b: joined(of_b), kind })
        })
        .collect();
    found.sort_by_key(|difference| difference.kind != DifferenceKind::Workload);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_spoils_a_comparison_comes_first() {
        let run = |pairs: &[(&str, &str)]| Observation {
            conditions: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Observation::default()
        };
        let a = run(&[("$dir", "/x"), ("$n", "1"), ("kernel", "6"), ("script", "ab")]);
        let b = run(&[("$dir", "/y"), ("$n", "1"), ("kernel", "7"), ("script", "cd")]);
        let found = differences(std::slice::from_ref(&a), std::slice::from_ref(&b));
        let short: Vec<_> = found.iter().map(|d| (d.what.as_str(), d.a.as_str(), d.b.as_str(), d.kind)).collect();
        assert_eq!(
            short,
            [("script", "ab", "cd", DifferenceKind::Workload), ("kernel", "6", "7", DifferenceKind::Setting)]
        );
        assert!(differences(std::slice::from_ref(&a), std::slice::from_ref(&a)).is_empty());
        assert!(differences(&[a], &[Observation::default()]).is_empty(), "nothing is known of the other side");
    }
}
