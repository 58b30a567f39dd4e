//! The differences between the conditions of two sets of runs.

use crate::import::{DEVICE_IDENTITY, LOADED_SCRIPTS, LOOP_DIRECT, Observation, PREALLOCATED, shortened};
use serde::Serialize;
use std::collections::BTreeSet;

/// A condition that differs between A and B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The name of the condition, such as `kernel`, `mount options` or `$nthreads`.
    pub what: String,
    /// The value in A; several values are separated by ` | `.
    pub a: String,
    /// The value in B.
    pub b: String,
    /// Whether the condition may differ in a valid comparison.
    pub kind: DifferenceKind,
}

/// The kind of a differing condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// A setting that may be the subject of the comparison: kernel, mount, variable.
    Setting,
    /// A condition that should be equal, because otherwise the figures are not comparable: script, run time, cache
    /// state, machine.
    Workload,
}

/// Conditions that should be equal, and [`LOOP_DIRECT`] of each file system.
const WORKLOAD: [&str; 13] = [
    "script",
    LOADED_SCRIPTS,
    PREALLOCATED,
    "dialect",
    "run time",
    "warm-up",
    "cache",
    QUIESCED,
    "engine",
    "as-is",
    "processor",
    "limit cpu_ms_per_s",
    "memory",
];

/// The condition that only runs after earlier writes have. It is not compared with those of other runs.
const QUIESCED: &str = "quiesced";

/// The conditions that are compared only if both sides have them; of further file systems with a number.
const OPTIONAL: [&str; 4] = [QUIESCED, LOADED_SCRIPTS, PREALLOCATED, LOOP_DIRECT];

/// Conditions on which the speed of the processors and of system calls depends.
const MACHINE: [&str; 4] = ["kernel", "processor", "limit cpu_ms_per_s", "governor"];

/// Returns those conditions of the machine that are not the same in all runs.
pub(super) fn machine_differences(a: &[Observation], b: &[Observation]) -> Vec<&'static str> {
    let values = |name: &str| a.iter().chain(b).map(|run| run.conditions.get(name)).collect::<BTreeSet<_>>();
    MACHINE.into_iter().filter(|name| values(name).len() > 1).collect()
}

/// Returns whether all runs are of one machine, as far as it determines the speed of a computation and of system calls. It
/// is `false` for runs of which nothing is known.
pub(super) fn is_one_machine(a: &[Observation], b: &[Observation]) -> bool {
    a.iter().chain(b).all(|run| !run.conditions.is_empty()) && machine_differences(a, b).is_empty()
}

/// Returns the error that two sides measured different workloads. `None` if they measured the same one.
pub fn different_workloads(differences: &[Difference]) -> Option<String> {
    let of_workload = differences.iter().filter(|difference| difference.kind == DifferenceKind::Workload);
    let names: Vec<String> = of_workload.map(|difference| difference.what.clone()).collect();
    (!names.is_empty()).then(|| format!("A and B measured different workloads: they differ in {}", shortened(&names)))
}

/// What the user says about a result.
pub const ANNOTATIONS: [&str; 2] = ["label", "note"];

/// Returns the conditions that differ: first those that should be equal, then label and note. The result is empty when a side has no
/// conditions.
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
        // The name of a fresh directory differs in every run.
        .filter(|name| *name != "$dir")
        .filter_map(|name| {
            let (values_a, values_b) = (values(a, name), values(b, name));
            // Older results lack some conditions, which are then unknown.
            let both_known = !values_a.is_empty() && !values_b.is_empty();
            let is_workload = WORKLOAD.contains(&name) || name.starts_with(LOOP_DIRECT);
            let kind = match is_workload && both_known {
                true => DifferenceKind::Workload,
                false => DifferenceKind::Setting,
            };
            let is_compared = both_known || !OPTIONAL.iter().any(|optional| name.starts_with(optional));
            (is_compared && values_a != values_b).then(|| Difference {
                what: name.to_owned(),
                a: joined(values_a),
                b: joined(values_b),
                kind,
            })
        })
        .collect();
    // The names of the devices differ already, or one device has two names.
    let named: BTreeSet<String> = found.iter().map(|difference| difference.what.clone()).collect();
    let is_one_device = |number: &str| {
        let identity = format!("{DEVICE_IDENTITY}{number}");
        !values(a, &identity).is_empty() && values(a, &identity) == values(b, &identity)
    };
    found.retain(|difference| match difference.what.strip_prefix(DEVICE_IDENTITY) {
        Some(number) => !named.contains(&format!("device{number}")),
        None => !difference.what.strip_prefix("device").is_some_and(is_one_device),
    });
    found.sort_by_key(|difference| {
        (difference.kind != DifferenceKind::Workload, !ANNOTATIONS.contains(&difference.what.as_str()))
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pairs: &[(&str, &str)]) -> Observation {
        let conditions = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Observation { conditions, ..Observation::default() }
    }

    #[test]
    fn a_device_that_has_two_names_does_not_differ() {
        let of = |name: &str, identity: &str| [run(&[("device", name), ("device identity", identity)])];
        let whats = |a: &[Observation], b: &[Observation]| -> Vec<String> {
            differences(a, b).into_iter().map(|difference| difference.what).collect()
        };
        assert_eq!(whats(&of("/dev/sda", "x"), &of("/dev/sdb", "x")), Vec::<String>::new());
        assert_eq!(whats(&of("/dev/sda", "x"), &of("/dev/sdb", "y")), ["device"]);
        assert_eq!(whats(&of("/dev/sda", "x"), &of("/dev/sda", "y")), ["device identity"]);
        assert_eq!(whats(&of("/dev/sda", "x"), &[run(&[("device", "/dev/sdb")])]), ["device"]);
    }

    #[test]
    fn what_was_measured_must_be_equal_and_settings_may_differ() {
        let of = |name: &str, a: &str, b: &str| {
            let with = |value: &str| match value {
                "" => run(&[("tool", "1")]),
                value => run(&[("tool", "1"), (name, value)]),
            };
            let found = differences(&[with(a)], &[with(b)]);
            found.iter().map(|difference| difference.kind).collect::<Vec<_>>()
        };
        for name in ["warm-up", "memory", "limit cpu_ms_per_s", "cache"] {
            assert_eq!(of(name, "1", "2"), [DifferenceKind::Workload], "{name}");
            assert_eq!(of(name, "", "2"), [DifferenceKind::Setting], "{name}: unknown in A");
        }
        for name in ["pinned", "kernel", "$n"] {
            assert_eq!(of(name, "1", "2"), [DifferenceKind::Setting], "{name}");
        }
        for name in OPTIONAL.into_iter().chain([&*format!("{LOOP_DIRECT} 2")]) {
            assert_eq!(of(name, "yes", "no"), [DifferenceKind::Workload], "{name}");
            assert!(of(name, "", "no").is_empty() && of(name, "yes", "").is_empty(), "{name}");
        }
    }

    #[test]
    fn conditions_that_should_be_equal_are_first() {
        let a = run(&[("$dir", "/x"), ("$n", "1"), ("kernel", "6"), ("label", "old"), ("script", "ab")]);
        let b = run(&[("$dir", "/y"), ("$n", "1"), ("kernel", "7"), ("label", "new"), ("script", "cd")]);
        let found = differences(std::slice::from_ref(&a), std::slice::from_ref(&b));
        let short: Vec<_> = found.iter().map(|d| (d.what.as_str(), d.a.as_str(), d.b.as_str(), d.kind)).collect();
        assert_eq!(
            short,
            [
                ("script", "ab", "cd", DifferenceKind::Workload),
                ("label", "old", "new", DifferenceKind::Setting),
                ("kernel", "6", "7", DifferenceKind::Setting)
            ]
        );
        assert!(differences(std::slice::from_ref(&a), std::slice::from_ref(&a)).is_empty());
        assert!(
            differences(&[a], &[Observation::default()]).is_empty(),
            "the conditions of the other side are unknown"
        );
    }
}
