//! The file sets of several ranks: one entry for each set and path on a host, and for each set in the whole run.

use super::RankRun;
use crate::means::weighted_mean;
use crate::{DeviceBytes, FilesetResult, Repaired, Verdict};
use std::path::Path;

/// Whether the file sets to be merged are on one host, so that each entry has the bytes of the same devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SetScope {
    Host,
    /// All hosts.
    Run,
}

/// A file set, or a part of one.
#[derive(Clone)]
struct SetPart {
    /// The number of the part, from 0: a set in several directories has an entry for each.
    part: usize,
    /// What is mounted there: sets with the same source on a host are on the same devices.
    source: String,
    set: FilesetResult,
}

/// Returns the file sets of a host: those of its ranks with the same name and path as one.
pub(super) fn of_host(ranks: &[&RankRun]) -> Vec<FilesetResult> {
    host_parts(ranks).into_iter().map(|part| part.set).collect()
}

/// Returns the file sets of all hosts, each with its ranks: those with the same name and part as one.
pub(super) fn of_run(hosts: &[Vec<&RankRun>]) -> Vec<FilesetResult> {
    // Ranks of a host with directories of their own may share its devices.
    let on_devices = |ranks: &Vec<&RankRun>| {
        merged(&host_parts(ranks), SetScope::Host, |part| (&part.set.name, part.part, &part.source))
    };
    let parts: Vec<SetPart> = hosts.iter().flat_map(on_devices).collect();
    merged(&parts, SetScope::Run, |part| (&part.set.name, part.part)).into_iter().map(|part| part.set).collect()
}

/// Returns the file sets of a run for a report, and how many sets each stands for: those of process instances
/// (`perinstance`), which have one name and one directory above them, are one.
pub fn of_instances(sets: &[FilesetResult]) -> Vec<(usize, FilesetResult)> {
    let place = |set: &FilesetResult| Path::new(&set.path).parent().map(Path::to_owned);
    let groups = sets.chunk_by(|a, b| a.name == b.name && place(a) == place(b));
    let joined = |group: &[FilesetResult]| FilesetResult {
        // They are created one after the other.
        populate_seconds: group.iter().filter_map(|set| set.populate_seconds).reduce(|sum, more| sum + more),
        ..merge(&group.iter().collect::<Vec<_>>(), SetScope::Host)
    };
    groups.map(|group| (group.len(), joined(group))).collect()
}

fn host_parts(ranks: &[&RankRun]) -> Vec<SetPart> {
    let parts: Vec<SetPart> = ranks
        .iter()
        .flat_map(|rank| {
            let sets = &rank.run.filesets;
            let part = |n: usize| sets[..n].iter().filter(|other| other.name == sets[n].name).count();
            sets.iter().enumerate().map(move |(n, set)| SetPart {
                part: part(n),
                source: source(rank, set),
                set: set.clone(),
            })
        })
        .collect();
    merged(&parts, SetScope::Host, |part| (&part.set.name, &part.set.path))
}

/// Returns the source of the mount that has a set; the path of the set if it is unknown.
fn source(rank: &RankRun, set: &FilesetResult) -> String {
    let mounts = &rank.run.environment.mounts;
    let mount = match &mounts[..] {
        [only] => Some(only),
        all => all
            .iter()
            .filter(|mount| Path::new(&set.path).starts_with(&mount.path))
            .max_by_key(|mount| mount.path.len()),
    };
    mount.map_or_else(|| set.path.clone(), |mount| mount.source.clone())
}

/// Merges file sets with the same key, in the order of their first occurrence.
fn merged<'a, K: PartialEq>(parts: &'a [SetPart], scope: SetScope, key: impl Fn(&'a SetPart) -> K) -> Vec<SetPart> {
    let mut groups: Vec<(K, Vec<&SetPart>)> = Vec::new();
    for part in parts {
        let key = key(part);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(part),
            None => groups.push((key, vec![part])),
        }
    }
    let merge = |(_, group): &(K, Vec<&SetPart>)| {
        let sets: Vec<&FilesetResult> = group.iter().map(|part| &part.set).collect();
        SetPart { set: merge(&sets, scope), ..group[0].clone() }
    };
    groups.iter().map(merge).collect()
}

/// Merges entries of one set. Each has the part of the set that belongs to its rank or host.
fn merge(parts: &[&FilesetResult], scope: SetScope) -> FilesetResult {
    if let [only] = parts {
        return (*only).clone();
    }
    let parts = || parts.iter().copied();
    let sum = |of: fn(&FilesetResult) -> u64| parts().map(of).sum::<u64>();
    // The ranks create their parts at the same time.
    let longest = |of: fn(&FilesetResult) -> Option<f64>| parts().filter_map(of).reduce(f64::max);
    let by_size = |of: fn(&FilesetResult) -> Option<f64>| weighted_mean(parts().map(|set| (of(set), set.bytes as f64)));
    let interval = |of: fn(&FilesetResult) -> Option<[f64; 2]>| {
        let bound = |n: usize| weighted_mean(parts().map(|set| (of(set).map(|both| both[n]), set.bytes as f64)));
        Some([bound(0)?, bound(1)?])
    };
    let asked_bytes = parts().fold(DeviceBytes::default(), |sum, set| plus(&sum, &set.asked_bytes));
    let device_bytes = device_bytes(parts().map(|set| set.device_bytes.as_ref()), scope);
    FilesetResult {
        files: sum(|set| set.files),
        directories: sum(|set| set.directories),
        bytes: sum(|set| set.bytes),
        populate_seconds: longest(|set| set.populate_seconds),
        repaired: parts().filter_map(|set| set.repaired).reduce(Repaired::and),
        sync_seconds: longest(|set| set.sync_seconds),
        resident_before: by_size(|set| set.resident_before),
        resident_after: by_size(|set| set.resident_after),
        resident_before_interval: interval(|set| set.resident_before_interval),
        resident_after_interval: interval(|set| set.resident_after_interval),
        verdict: verdict(parts(), &asked_bytes, device_bytes.as_ref()),
        asked_bytes,
        device_bytes,
        ..parts().next().cloned().unwrap_or_default()
    }
}

fn plus(a: &DeviceBytes, b: &DeviceBytes) -> DeviceBytes {
    DeviceBytes { read: a.read + b.read, written: a.written + b.written }
}

/// Returns the bytes that the devices moved; `None` if unknown for a part. Each rank of a host reports all bytes of the
/// same devices. The ranks read the counters at slightly different times, so that the largest number counts.
fn device_bytes<'a>(parts: impl Iterator<Item = Option<&'a DeviceBytes>>, scope: SetScope) -> Option<DeviceBytes> {
    let all: Option<Vec<&DeviceBytes>> = parts.collect();
    let largest =
        |a: &DeviceBytes, b: &DeviceBytes| DeviceBytes { read: a.read.max(b.read), written: a.written.max(b.written) };
    let both = |a: DeviceBytes, b: &DeviceBytes| match scope {
        SetScope::Host => largest(&a, b),
        SetScope::Run => plus(&a, b),
    };
    Some(all?.into_iter().fold(DeviceBytes::default(), both))
}

/// Returns the layer that served the bytes of all parts; `None` if unknown for a part with bytes.
fn verdict<'a>(
    parts: impl Iterator<Item = &'a FilesetResult>,
    asked: &DeviceBytes,
    moved: Option<&DeviceBytes>,
) -> Option<Verdict> {
    let used = parts.filter(|set| set.asked_bytes.read + set.asked_bytes.written > 0);
    let verdicts: Vec<Verdict> = used.map(|set| set.verdict).collect::<Option<_>>()?;
    let first = *verdicts.first()?;
    if verdicts.contains(&Verdict::UnknownBelow) {
        return Some(Verdict::UnknownBelow);
    }
    // A rank compares its own bytes with those that the devices moved for all ranks of the host.
    let enough = moved.is_none_or(|moved| {
        let (asked, moved) = if asked.read > 0 { (asked.read, moved.read) } else { (asked.written, moved.written) };
        moved as f64 >= Verdict::DEVICE_PART * asked as f64
    });
    let same = verdicts.iter().all(|verdict| *verdict == first) && (first != Verdict::Device || enough);
    Some(if same { first } else { Verdict::Both })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::environment::MountInfo;

    fn set(path: &str, files: u64, read: u64, moved: u64) -> FilesetResult {
        FilesetResult {
            name: "data".to_owned(),
            path: path.to_owned(),
            files,
            bytes: files * 1000,
            asked_bytes: DeviceBytes { read, written: 0 },
            device_bytes: Some(DeviceBytes { read: moved, written: 5 }),
            verdict: Some(Verdict::Device),
            resident_before: Some(0.5),
            ..FilesetResult::default()
        }
    }

    /// Returns a rank with these sets.
    fn rank(sets: &[FilesetResult]) -> RankRun {
        RankRun { run: Run { filesets: sets.to_vec(), ..Run::default() }, ..RankRun::default() }
    }

    #[test]
    fn the_devices_of_a_host_count_once() {
        let ranks =
            [rank(&[set("/a", 10, 100, 210)]), rank(&[set("/a", 30, 100, 200)]), rank(&[set("/b", 10, 100, 90)])];
        let [a, b, c] = [&ranks[0], &ranks[1], &ranks[2]];
        let host = of_host(&[a, b]);
        assert_eq!(host.len(), 1);
        assert_eq!((host[0].files, host[0].bytes, host[0].asked_bytes.read), (40, 40_000, 200));
        assert_eq!(host[0].device_bytes.clone().map(|moved| moved.read), Some(210));
        assert_eq!((host[0].verdict, host[0].resident_before), (Some(Verdict::Device), Some(0.5)));
        let run = of_run(&[vec![a, b], vec![c]]);
        assert_eq!((run.len(), run[0].path.as_str(), run[0].files), (1, "/a", 50));
        assert_eq!(run[0].device_bytes.clone().map(|moved| moved.read), Some(300));
    }

    #[test]
    fn the_sets_of_process_instances_are_one_in_a_report() {
        let at = |path: &str| FilesetResult { populate_seconds: Some(1.0), ..set(path, 10, 100, 200) };
        let sets =
            [at("/a/data.1"), at("/a/data.2"), at("/b/data"), FilesetResult { name: "log".into(), ..at("/b/log") }];
        let found = of_instances(&sets);
        let of: Vec<_> = found.iter().map(|(n, set)| (*n, set.files, set.populate_seconds)).collect();
        assert_eq!(of, [(2, 20, Some(2.0)), (1, 10, Some(1.0)), (1, 10, Some(1.0))]);
        let (_, both) = &found[0];
        assert_eq!((both.asked_bytes.read, both.device_bytes.clone().map(|moved| moved.read)), (200, Some(200)));
    }

    #[test]
    fn the_parts_of_a_set_are_separate() {
        let parts = rank(&[set("/a", 1, 0, 0), set("/b", 2, 0, 0)]);
        assert_eq!(of_host(&[&parts, &parts]).iter().map(|set| set.files).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(of_run(&[vec![&parts], vec![&parts]]).iter().map(|set| set.files).collect::<Vec<_>>(), [2, 4]);
        // Ranks of a host with directories of their own.
        let (a, b) = (rank(&[set("/0", 1, 0, 0)]), rank(&[set("/1", 2, 0, 0)]));
        assert_eq!(of_host(&[&a, &b]).len(), 2);
        assert_eq!(of_run(&[vec![&a, &b]]).iter().map(|set| set.files).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn devices_that_several_directories_share_count_once() {
        let on = |source: &str, path: &str, read| {
            let mount = MountInfo { path: "/".to_owned(), source: source.to_owned(), ..MountInfo::default() };
            let mut rank = rank(&[set(path, 1, read, 200)]);
            rank.run.environment.mounts = vec![mount];
            rank
        };
        let (a, b) = (on("/dev/sda", "/0", 100), on("/dev/sda", "/1", 100));
        let (c, d) = (on("/dev/sdb", "/2", 100), on("/dev/sda", "/3", 100));
        let run = of_run(&[vec![&a, &b, &c], vec![&d]]);
        assert_eq!(run[0].device_bytes.clone().map(|moved| moved.read), Some(600));
        // Together the ranks requested as much as the device transferred, and then twice as much.
        assert_eq!(of_run(&[vec![&a, &b]])[0].verdict, Some(Verdict::Device));
        let (one, two) = (on("/dev/sda", "/0", 200), on("/dev/sda", "/1", 200));
        assert_eq!(of_run(&[vec![&one, &two]])[0].verdict, Some(Verdict::Both));
    }

    #[test]
    fn the_verdict_is_that_of_all_bytes() {
        let of = |sets: [FilesetResult; 2]| {
            let [a, b] = sets.map(|set| rank(&[set]));
            of_host(&[&a, &b])[0].verdict
        };
        // Each rank requested less than the devices moved, all together more.
        assert_eq!(of([set("/a", 1, 100, 100), set("/a", 1, 100, 100)]), Some(Verdict::Both));
        let with = |verdict| FilesetResult { verdict, ..set("/a", 1, 100, 200) };
        assert_eq!(of([with(Some(Verdict::Device)), with(Some(Verdict::Memory))]), Some(Verdict::Both));
        assert_eq!(of([with(Some(Verdict::UnknownBelow)), with(Some(Verdict::Memory))]), Some(Verdict::UnknownBelow));
        assert_eq!(of([with(Some(Verdict::Device)), with(None)]), None);
        let unused = FilesetResult { verdict: None, ..set("/a", 1, 0, 200) };
        assert_eq!(of([with(Some(Verdict::Memory)), unused]), Some(Verdict::Memory));
    }
}
