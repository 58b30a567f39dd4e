//! What the report says about devices: the bytes that a run requested and that the devices moved, each device by its name.

use crate::result::environment::{Device, MountInfo};
use crate::result::ranks::of_instances;
use crate::result::warnings::mount_of;
use crate::result::{DeviceBytes, FilesetResult, Run, Verdict};
use crate::util::size;

/// Returns a line for each file set, as in [`of_instances`], and the lines about all of them together.
pub(super) fn lines(run: &Run) -> (Vec<Option<String>>, Vec<String>) {
    // The devices that several sets are on count the bytes of all of them.
    let shared = shared_bytes(&run.filesets);
    // Those of several hosts may have the same names.
    let by_device = |mount: &MountInfo| if run.hosts.len() > 1 { None } else { bytes_by_device(&mount.devices) };
    let sets = of_instances(&run.filesets);
    let place = |set: &FilesetResult| mount_of(run, &set.path).map(|mount| &mount.path);
    let is_alone = |set: &FilesetResult| {
        shared.is_none() && sets.iter().filter(|(_, other)| place(other) == place(set)).count() == 1
    };
    let of_set = |set: &FilesetResult| {
        let by_device = mount_of(run, &set.path).and_then(by_device);
        let transferred = match (by_device, &set.device_bytes) {
            // One line says what the devices of all sets did.
            _ if set.asked_bytes == DeviceBytes::default() && (shared.is_some() || set.device_bytes.is_none()) => {
                return None;
            }
            (Some(by_device), _) if is_alone(set) => format!("; {by_device}"),
            (None, Some(moved)) if shared.is_none() => format!(", devices transferred {}", describe_bytes(moved)),
            (None, None) => return None,
            _ => String::new(),
        };
        let verdict = set.verdict.map_or_else(String::new, |v| format!("; {}", verdict_text(v, &set.asked_bytes)));
        Some(format!("requested {}{transferred}{verdict}", describe_bytes(&set.asked_bytes)))
    };
    let of_sets = sets.iter().map(|(_, set)| of_set(set)).collect();
    let has_several = |mount: &&MountInfo| {
        shared.is_some() || sets.iter().any(|(_, set)| place(set) == Some(&mount.path) && !is_alone(set))
    };
    let of_all: Vec<String> = run.environment.mounts.iter().filter(has_several).filter_map(by_device).collect();
    let sum = |moved: &DeviceBytes| format!("those of all file sets transferred {}", describe_bytes(moved));
    match &shared {
        Some(moved) if of_all.is_empty() => (of_sets, vec![sum(moved)]),
        _ => (of_sets, of_all),
    }
}

/// Returns the bytes that the devices of several file sets transferred, if they are those of all of them.
fn shared_bytes(sets: &[FilesetResult]) -> Option<DeviceBytes> {
    let mut moved = sets.iter().filter_map(|set| set.device_bytes.as_ref());
    let first = moved.next()?;
    let others: Vec<&DeviceBytes> = moved.collect();
    (!others.is_empty() && others.iter().all(|bytes| *bytes == first)).then(|| first.clone())
}

/// Describes a verdict: for reads, or for writes if there were no reads.
fn verdict_text(verdict: Verdict, asked: &DeviceBytes) -> String {
    let (reads, writes) = match verdict {
        Verdict::Device => ("reads were served by the device", "writes reached the device"),
        Verdict::Memory => ("reads were served from memory", "writes stayed in memory"),
        Verdict::Both => ("reads were served by device and memory", "some writes stayed in memory"),
        Verdict::UnknownBelow => ("the state of a cache below is unknown", "the state of a cache below is unknown"),
    };
    if asked.read > 0 { reads } else { writes }.to_owned()
}

/// Describes the bytes that each device below a file system transferred: `loop3 transferred 1.1 MiB read; below it vda 171.5
/// MiB read`. `None` if those of none are known.
fn bytes_by_device(devices: &[Device]) -> Option<String> {
    let known = devices.iter().filter_map(|device| Some((device.level?, &device.name, device.transferred.as_ref()?)));
    let known: Vec<_> = known.collect();
    let levels = known.chunk_by(|(level, ..), (other, ..)| level == other);
    let of_level = |devices: &[(u64, &String, &DeviceBytes)]| {
        let texts = devices.iter().map(|(_, name, moved)| (name, describe_bytes(moved)));
        let texts = texts.enumerate().map(|(n, (name, moved))| match (devices[0].0, n) {
            (1, 0) => format!("{name} transferred {moved}"),
            (2.., 0) => format!("below {} {name} {moved}", if devices[0].0 == 2 { "it" } else { "that" }),
            _ => format!("{name} {moved}"),
        });
        texts.collect::<Vec<_>>().join("; ")
    };
    let text = levels.map(of_level).collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then_some(text)
}

/// Describes bytes read and written, without zeros.
fn describe_bytes(bytes: &DeviceBytes) -> String {
    match (bytes.read, bytes.written) {
        (0, 0) => "nothing".to_owned(),
        (read, 0) => format!("{} read", size::format(read)),
        (0, written) => format!("{} written", size::format(written)),
        (read, written) => format!("{} read, {} written", size::format(read), size::format(written)),
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes_by_device, lines};
    use crate::result::DeviceBytes;
    use crate::result::environment::Device;
    use crate::result::fixture::fixture;

    fn device(name: &str, level: Option<u64>, read: u64, written: u64) -> Device {
        let transferred = Some(DeviceBytes { read: read << 20, written: written << 20 });
        Device { name: name.to_owned(), level, transferred, ..Device::default() }
    }

    #[test]
    fn each_device_of_a_stack_has_its_own_bytes() {
        let of = |devices: &[Device]| bytes_by_device(devices).unwrap_or_default();
        let stack = [device("loop3", Some(1), 0, 203), device("vda1", Some(2), 171, 366)];
        assert_eq!(of(&stack), "loop3 transferred 203.0 MiB written; below it vda1 171.0 MiB read, 366.0 MiB written");
        let raid = [device("md0", Some(1), 4, 0), device("sda", Some(2), 2, 0), device("sdb", Some(2), 2, 0)];
        assert_eq!(of(&raid), "md0 transferred 4.0 MiB read; below it sda 2.0 MiB read; sdb 2.0 MiB read");
        // Those of earlier results are not known by device.
        assert_eq!(of(&[Device { transferred: None, ..stack[0].clone() }]), "");
        assert_eq!(of(&[device("sda", None, 1, 1)]), "");
    }

    #[test]
    fn sets_on_the_same_devices_have_one_line_of_their_bytes() {
        let mut document = fixture();
        let run = &mut document.runs[0];
        run.environment.mounts[0].devices = vec![device("nvme0n1", Some(1), 7, 8)];
        let moved = Some(DeviceBytes { read: 7 << 20, written: 8 << 20 });
        run.filesets.iter_mut().for_each(|set| set.device_bytes = moved.clone());
        run.filesets[0].asked_bytes = DeviceBytes { read: 1 << 20, written: 0 };
        run.filesets.truncate(1);
        let one = "requested 1.0 MiB read; nvme0n1 transferred 7.0 MiB read, 8.0 MiB written";
        assert_eq!(lines(run).0[0].as_deref().map(|line| &line[..one.len()]), Some(one));
        let mut second = run.filesets[0].clone();
        second.name = "second".to_owned();
        run.filesets.push(second);
        let (of_sets, of_all) = lines(run);
        assert!(
            of_sets.iter().flatten().all(|line| line.starts_with("requested 1.0 MiB read") && !line.contains("nvme"))
        );
        assert_eq!(of_all, ["nvme0n1 transferred 7.0 MiB read, 8.0 MiB written"]);
        // Results of earlier versions.
        run.environment.mounts[0].devices.clear();
        assert_eq!(lines(run).1, ["those of all file sets transferred 7.0 MiB read, 8.0 MiB written"]);
    }
}
