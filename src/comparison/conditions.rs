//! The conditions of runs in a few lines, for readers who do not have the results: days and versions, machine, file systems.

use crate::import::Observation;
use crate::util::{duration, timestamp};
use indexmap::{IndexMap, IndexSet};
use std::collections::BTreeSet;

/// The most values of a condition that are shown.
const SHOWN: usize = 3;

/// Returns the lines; empty if nothing is known of any run.
pub fn lines(sides: &[&[Observation]]) -> Vec<String> {
    ConditionLines::of(sides).map_or_else(Vec::new, |of| {
        of.machines.into_iter().chain(of.file_systems).chain([of.runs]).filter(|line| !line.is_empty()).collect()
    })
}

/// The lines by what they are about. What belongs together, such as a file system and its mount options, is in one line,
/// and the lines are in the order of the runs.
pub(super) struct ConditionLines {
    pub(super) machines: Vec<String>,
    pub(super) file_systems: Vec<String>,
    /// The workloads, versions and days.
    runs: String,
}

impl ConditionLines {
    /// `None` if nothing is known of any run.
    pub(super) fn of(sides: &[&[Observation]]) -> Option<Self> {
        let runs = || sides.iter().flat_map(|runs| runs.iter());
        if runs().all(|run| run.conditions.is_empty()) {
            return None;
        }
        let known = |run: &Observation, name: &str| run.conditions.get(name).cloned().unwrap_or_default();
        let whole = |name: &str| joined(runs().map(|run| known(run, name)));
        let with = |name: &str, before: &str, after: &str| around(before, &whole(name), after);
        let machine = |run: &Observation| {
            let kernel = known(run, "kernel").split(' ').next().unwrap_or_default().to_owned();
            let memory = around("", &known(run, "memory"), " of memory");
            in_one_line([around("Linux ", &kernel, ""), known(run, "processor"), memory])
        };
        let machines = several(runs().map(machine).collect());
        // The devices of each file system with its options, in the order of the runs.
        let mut found: IndexMap<(String, String), IndexSet<String>> = IndexMap::new();
        for (run, n) in runs().flat_map(|run| (1..=SHOWN).map(move |n| (run, n))) {
            let named = |name: &str| known(run, &if n == 1 { name.to_owned() } else { format!("{name} {n}") });
            let kind = named("file system");
            if !kind.is_empty() {
                found.entry((kind, named("mount options"))).or_default().insert(named("device"));
            }
        }
        let line = |((kind, options), devices): (&(String, String), &IndexSet<String>)| {
            let devices = around(" on ", &joined(devices.iter().cloned()), "");
            format!("{kind}{devices}{}", around(", mounted ", options, ""))
        };
        let file_systems = several(found.iter().map(line).collect());
        let workloads = joined(runs().map(|run| run.workload.clone()));
        let all: Vec<&Observation> = runs().collect();
        let length = around("", &run_time(&all, &whole("run time")), " a run");
        let runs = in_one_line([workloads, length, with("script", "script ", ""), whole("tool"), days(runs())]);
        Some(Self { machines, file_systems, runs })
    }
}

/// The day of the runs, or the first and the last of several; empty if that is unknown.
pub(super) fn days<'a>(runs: impl Iterator<Item = &'a Observation>) -> String {
    let days: BTreeSet<String> = runs.filter_map(|run| timestamp::day(run.started?)).collect();
    match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (first, _) => first.cloned().unwrap_or_default(),
    }
}

/// How long a run took: as asked for, or of runs that ended by themselves or were asked for different times what was
/// measured. Empty if that is unknown.
fn run_time(runs: &[&Observation], asked_for: &str) -> String {
    /// A run that took a smaller part of the time that was asked for ended by itself.
    const WHOLE: f64 = 0.95;
    let measured: Option<Vec<f64>> = runs.iter().map(|run| run.figures.get("seconds").copied()).collect();
    let Some(measured) = measured.filter(|all| !all.is_empty()) else {
        return if asked_for.contains("none") { String::new() } else { asked_for.to_owned() };
    };
    let (least, most) = measured.iter().fold((f64::MAX, 0.0_f64), |(least, most), s| (least.min(*s), most.max(*s)));
    let single = asked_for.strip_suffix(" s").and_then(|seconds| seconds.parse::<f64>().ok());
    if single.is_some_and(|seconds| least >= WHOLE * seconds) {
        return asked_for.to_owned();
    }
    match [least, most].map(duration::seconds) {
        [least, most] if least == most => least,
        [least, most] => format!("{least} to {most}"),
    }
}

/// A text with these around it, or nothing for none.
fn around(before: &str, text: &str, after: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{before}{text}{after}") }
}

/// These parts in one line, without those that are unknown.
fn in_one_line<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// The different values of a condition, in their order.
pub(super) fn joined(values: impl Iterator<Item = String>) -> String {
    let values: IndexSet<String> = values.filter(|value| !value.is_empty()).collect();
    let further = if values.len() > SHOWN { " and others" } else { "" };
    values.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(" and ") + further
}

/// The first of these lines, and how many more there are.
fn several(lines: IndexSet<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("and {more} more"));
    lines.into_iter().take(SHOWN).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(of: &[(&str, &str)]) -> Observation {
        let conditions = of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Observation { conditions, ..Observation::default() }
    }

    /// The names and the options of two file systems were each in alphabetical order.
    #[test]
    fn what_belongs_together_is_in_one_line() {
        let on = |kind, device, options| run(&[("file system", kind), ("device", device), ("mount options", options)]);
        let sides = [
            vec![on("btrfs", "/dev/loop1", "rw,relatime,ssd"), on("btrfs", "/dev/loop2", "rw,relatime,ssd")],
            vec![on("ext4", "/dev/loop0", "rw,discard"), on("ext4", "/dev/loop0", "ro")],
        ];
        assert_eq!(
            lines(&[&sides[0], &sides[1]]),
            [
                "btrfs on /dev/loop1 and /dev/loop2, mounted rw,relatime,ssd",
                "ext4 on /dev/loop0, mounted rw,discard",
                "ext4 on /dev/loop0, mounted ro"
            ]
        );
        assert_eq!(lines(&[&sides[1], &sides[0]])[2], "btrfs on /dev/loop1 and /dev/loop2, mounted rw,relatime,ssd");
        let on = |kernel, processor| run(&[("kernel", kernel), ("processor", processor), ("memory", "8 GiB")]);
        let machines = [on("6.2 #1", "8 × A"), on("6.1 #1", "8 × B"), on("6.2 #1", "8 × A")];
        assert_eq!(lines(&[&machines]), ["Linux 6.2; 8 × A; 8 GiB of memory", "Linux 6.1; 8 × B; 8 GiB of memory"]);
        let many: Vec<Observation> = ["a", "b", "c", "d", "e"].iter().map(|name| on(name, "8 × A")).collect();
        assert_eq!(lines(&[&many])[3], "and 2 more");
        assert_eq!((lines(&[&[run(&[])]]), lines(&[])), (Vec::<String>::new(), Vec::new()));
    }
}
