//! The differences between the conditions of two sets of runs.

use crate::import::{
    DEVICE_IDENTITY, FEATURES, KERNEL_COMMAND_LINE, LOADED_SCRIPTS, LOOP_DIRECT, Observation, PREALLOCATED, shortened,
};
use crate::util::size;
use indexmap::IndexSet;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A condition that differs between A and B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The name of the condition, such as `kernel`, `mount options` or `$nthreads`.
    pub what: String,
    /// The value in A; several values are separated by ` | `.
    pub a: String,
    pub b: String,
    /// Whether the condition may differ in a valid comparison.
    pub kind: DifferenceKind,
}

impl Difference {
    /// True if it is a remark of the user, which changes nothing.
    pub(crate) fn is_annotation(&self) -> bool {
        ANNOTATIONS.contains(&self.what.as_str())
    }

    /// Returns the values for people: of a list, such as that of mount options, what the other side does not have.
    pub(crate) fn shown(&self) -> [String; 2] {
        let Self { what, a, b, .. } = self;
        let separator = match without_number(what) {
            MOUNT_OPTIONS => ",",
            name if name == KERNEL_COMMAND_LINE || name.ends_with(FEATURES) => " ",
            name if is_size(name) => {
                let shown = [a, b].map(|text| text.parse().map_or_else(|_| text.clone(), size::format));
                // Sizes may differ by less than their last digit.
                return if shown[0] == shown[1] { [a, b].map(|text| format!("{text} B")) } else { shown };
            }
            _ => return [a.clone(), b.clone()],
        };
        // Runs of one side may have several values.
        if a.contains(SEVERAL) || b.contains(SEVERAL) {
            return [a.clone(), b.clone()];
        }
        let without = |list: &str, other: &str| {
            let other: Vec<&str> = other.split(separator).collect();
            list.split(separator).filter(|item| !other.contains(item)).collect::<Vec<_>>().join(separator)
        };
        let only = [without(a, b), without(b, a)];
        // Lists of the same items in another order.
        if only.iter().all(String::is_empty) { [a.clone(), b.clone()] } else { only }
    }
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

/// The text between several values of a condition.
const SEVERAL: &str = " | ";

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

/// True if a condition that was read from the system is a number of bytes.
fn is_size(name: &str) -> bool {
    !name.starts_with('$') && (name.ends_with("_size") || name.ends_with(" stripe_width"))
}

/// The mount options; of further file systems with a number.
const MOUNT_OPTIONS: &str = "mount options";

/// The conditions that every result has, or whose absence says something. Any other one was read from the system, which may
/// not tell it or may have been asked by a version that did not record it: it is compared only if both sides have it.
const ALWAYS: [&str; 20] = [
    "script",
    "dialect",
    "tool",
    "kernel",
    "processor",
    "memory",
    "engine",
    "cache",
    "run time",
    "warm-up",
    "pinned",
    "ranks",
    "hosts",
    "as-is",
    "layout seed",
    "file system",
    MOUNT_OPTIONS,
    "device",
    ANNOTATIONS[0],
    ANNOTATIONS[1],
];

/// Returns the name of a condition without the number that those of further file systems have.
fn without_number(name: &str) -> &str {
    name.rsplit_once(' ').filter(|(_, number)| number.parse::<u64>().is_ok()).map_or(name, |(words, _)| words)
}

/// True if a condition that only one side has is a difference.
fn is_compared_alone(name: &str) -> bool {
    name.starts_with('$') || name.starts_with("limit ") || ALWAYS.contains(&without_number(name))
}

/// Conditions on which the speed of the processors and of system calls depends.
const MACHINE: [&str; 4] = ["kernel", "processor", "limit cpu_ms_per_s", "governor"];

/// Returns those conditions of the machine that are not the same in all runs.
pub(super) fn machine_differences(a: &[Observation], b: &[Observation]) -> Vec<&'static str> {
    let values = |name: &str| a.iter().chain(b).map(|run| run.conditions.get(name)).collect::<BTreeSet<_>>();
    MACHINE.into_iter().filter(|name| values(name).len() > 1).collect()
}

/// True if all runs are of one machine, as far as it determines the speed of a computation and of system calls. It
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

/// What the user says about all runs alike.
pub(super) fn annotations(a: &[Observation], b: &[Observation]) -> BTreeMap<String, String> {
    let common = |name: &str| {
        let mut values = a.iter().chain(b).map(|run| run.conditions.get(name));
        let first = values.next()??;
        values.all(|value| value == Some(first)).then(|| (name.to_owned(), first.clone()))
    };
    ANNOTATIONS.into_iter().filter_map(common).collect()
}

/// Returns the conditions that differ: first those that should be equal, then label and note. The result is empty when a side has no
/// conditions.
pub fn differences(a: &[Observation], b: &[Observation]) -> Vec<Difference> {
    let names: BTreeSet<&str> = a.iter().chain(b).flat_map(|run| run.conditions.keys()).map(String::as_str).collect();
    // In the order of the runs, so that values that belong together have the same place.
    let values = |runs: &[Observation], name: &str| -> IndexSet<String> {
        runs.iter().filter_map(|run| run.conditions.get(name).cloned()).collect()
    };
    let joined = |values: IndexSet<String>| values.into_iter().collect::<Vec<_>>().join(SEVERAL);
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
            let is_compared = both_known || is_compared_alone(name);
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
    found.sort_by_key(|difference| (difference.kind != DifferenceKind::Workload, !difference.is_annotation()));
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
        for name in [QUIESCED, LOADED_SCRIPTS, PREALLOCATED, LOOP_DIRECT, &*format!("{LOOP_DIRECT} 2")] {
            assert_eq!(of(name, "yes", "no"), [DifferenceKind::Workload], "{name}");
            assert!(of(name, "", "no").is_empty() && of(name, "yes", "").is_empty(), "{name}");
        }
    }

    #[test]
    fn what_the_system_did_not_tell_is_no_difference() {
        let of = |name: &str, a: Option<&str>, b: &str| {
            let with = |value: Option<&str>| {
                let pairs: Vec<_> = [("tool", "1")].into_iter().chain(value.map(|value| (name, value))).collect();
                run(&pairs)
            };
            differences(&[with(a)], &[with(Some(b))]).len()
        };
        for name in
            ["queue read_ahead_kb", "queue below nr_requests 2", "ext4 features", KERNEL_COMMAND_LINE, "governor"]
        {
            assert_eq!((of(name, None, "1"), of(name, Some("2"), "1"), of(name, Some("1"), "1")), (0, 1, 0), "{name}");
        }
        // A variable that is not set, no limit, and another file system less say something.
        for name in ["$n", "limit nofile", "file system 2", "label"] {
            assert_eq!((of(name, None, "1"), of(name, Some("1"), "1")), (1, 0), "{name}");
        }
    }

    #[test]
    fn of_lists_what_one_side_has_is_shown() {
        let shown = |what: &str, a: &str, b: &str| {
            let (what, a, b) = (what.to_owned(), a.to_owned(), b.to_owned());
            Difference { what, a, b, kind: DifferenceKind::Setting }.shown()
        };
        for what in ["mount options", "mount options 2"] {
            assert_eq!(shown(what, "rw,noatime", "rw,relatime,discard"), ["noatime", "relatime,discard"]);
        }
        for what in ["ext4 features", "ext4 features 2", "kernel command line"] {
            assert_eq!(shown(what, "has_journal extent", "has_journal fast_commit extent"), ["", "fast_commit"]);
        }
        assert_eq!(shown("mount options", "rw,a | rw", "rw"), ["rw,a | rw", "rw"]);
        assert_eq!(shown("kernel", "6.1 a", "6.1 b"), ["6.1 a", "6.1 b"]);
    }

    #[test]
    fn sizes_have_units() {
        let shown = |what: &str, a: &str, b: &str| {
            let (what, a, b) = (what.to_owned(), a.to_owned(), b.to_owned());
            Difference { what, a, b, kind: DifferenceKind::Setting }.shown()
        };
        for what in ["ext4 journal_size", "xfs stripe_width", "queue physical_block_size"] {
            assert_eq!(shown(what, "8388608", "512"), ["8.0 MiB", "512 B"]);
        }
        assert_eq!(shown("ext4 journal_size 2", "1048576", "1048577"), ["1048576 B", "1048577 B"]);
        assert_eq!(shown("ext4 block_size", "1024 | 4096", "4096"), ["1024 | 4096", "4.0 KiB"]);
        for what in ["$io_size", "queue nr_requests"] {
            assert_eq!(shown(what, "4096", "8192"), ["4096", "8192"]);
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
