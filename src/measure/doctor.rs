//! Whether a place is fit to measure a file system: `wmlrun doctor`. It reads for a second, and changes nothing.
//!
//! To add a check, add a row to [`CHECKS`]. What may not be read is not known, which is no fault.

use super::cpu::CpuReading;
use super::environment::mount;
use super::time_limit::with_timeout;
use crate::os::device::{self, TransferredBytes};
use crate::os::kernel_threads::KernelThreads;
use crate::os::{background, limits, quiesce, settings};
use crate::result::environment::{Device, MountInfo};
use crate::util::size;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long other programs are watched.
const WATCHED: Duration = Duration::from_secs(1);
/// How long the file system has to tell where it is.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// The share of the processors' time above which other programs disturb.
const BUSY: f64 = 0.05;
/// The bytes a second above which other programs disturb a device.
const TRAFFIC: u64 = 1 << 20;
/// The bytes that may wait to be written.
const DIRTY: u64 = 64 << 20;

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fitness {
    Fit(String),
    /// What is wrong, and what to do.
    Unfit(String, &'static str),
    /// Why it can't be told.
    Unknown(String),
}

/// What is known of a place before the checks.
#[derive(Default)]
struct DoctorFacts {
    mount: MountInfo,
    /// Settings of the machine, by name.
    settings: BTreeMap<String, String>,
    /// Total and available memory in bytes; 0 if unknown.
    memory: (u64, u64),
    /// The processors that the program may use, and their time per second that control groups allow, in milliseconds.
    processors: (usize, Option<u64>),
    /// The share of the processors' time that other programs used.
    busy: Option<f64>,
    /// The bytes that the devices transferred in a second.
    traffic: Option<TransferredBytes>,
    /// The bytes of the machine that wait to be written.
    dirty: u64,
    /// Work that the kernel does on devices or file systems.
    background: Vec<String>,
}

/// A check with its name.
type Check = (&'static str, fn(&DoctorFacts) -> Fitness);

/// The checks, in the order of the report.
const CHECKS: [Check; 10] = [
    ("file system", file_system),
    ("devices", devices),
    ("room", room),
    ("TRIM", trim),
    ("memory", memory),
    ("processors", processors),
    ("governor", governor),
    ("other load", other_load),
    ("device load", device_load),
    ("background", background_work),
];

/// Why a place was not examined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unexamined {
    #[error("{0}")]
    NoDirectory(std::io::Error),
    #[error("its file system does not answer")]
    NoAnswer,
}

/// Succeeds if the path is that of a directory.
fn is_dir(path: &Path) -> std::io::Result<()> {
    let is_dir = std::fs::metadata(path)?.is_dir();
    if is_dir { Ok(()) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
}

/// Examines the place of a directory. Returns each check's name with what it has found.
pub(crate) fn examine(dir: &Path) -> Result<Vec<(&'static str, Fitness)>, Unexamined> {
    let path: PathBuf = dir.to_owned();
    let mount = with_timeout(TIME_LIMIT, move || is_dir(&path).map(|()| mount(&path).unwrap_or_default()));
    let mount = match mount.ok_or(Unexamined::NoAnswer)? {
        Ok(mount) => mount,
        Err(e) => return Err(Unexamined::NoDirectory(e)),
    };
    let names: Vec<String> = mount.devices.iter().map(|device| device.name.clone()).collect();
    let (cpu, before) = (CpuReading::now(KernelThreads::default()), device::transferred(&names));
    std::thread::sleep(WATCHED);
    let used = cpu.since(WATCHED.as_secs_f64());
    let after = device::transferred(&names);
    let others = used.system_seconds.zip(used.own_seconds).map(|(all, (user, system))| (all - user - system).max(0.0));
    let place = DoctorFacts {
        settings: settings::of_machine(),
        memory: limits::memory(),
        processors: (limits::allowed_processors().len(), limits::processor_quota()),
        busy: others.map(|seconds| seconds / WATCHED.as_secs_f64() / (used.processors.max(1) as f64)),
        traffic: before.zip(after).map(|(before, after)| after.since(before)).filter(|_| !names.is_empty()),
        dirty: quiesce::dirty_bytes(),
        background: background::of_kernel(),
        mount,
    };
    Ok(CHECKS.iter().map(|(name, check)| (*name, check(&place))).collect())
}

fn file_system(place: &DoctorFacts) -> Fitness {
    let mount = &place.mount;
    let text = format!("{} on {}, mounted on {}", mount.kind, mount.source, mount.path);
    match mount.kind.as_str() {
        "" => Fitness::Unknown("no mount contains the directory".to_owned()),
        "overlay" => Fitness::Unfit(text, "a change copies the file first: use a volume that is mounted itself"),
        _ if mount.in_memory() => Fitness::Unfit(text, "it measures memory: use a directory on a disk"),
        _ => Fitness::Fit(text),
    }
}

fn devices(place: &DoctorFacts) -> Fitness {
    let devices = &place.mount.devices;
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    match devices.iter().find(|device| device.direct_io == Some(false)) {
        _ if devices.is_empty() => Fitness::Unknown("they are not visible".to_owned()),
        Some(device) => Fitness::Unfit(
            format!("{}: {} goes through the page cache", names.join(" on "), device.name),
            "reads may come from memory: attach it with `losetup --direct-io=on`",
        ),
        None => Fitness::Fit(names.join(" on ")),
    }
}

fn room(place: &DoctorFacts) -> Fitness {
    let MountInfo { total, free, .. } = place.mount;
    let text = format!("{} free of {}", size::format(free), size::format(total));
    match total {
        0 => Fitness::Unknown("the size is not reported".to_owned()),
        _ if free < total / 10 => {
            Fitness::Unfit(text, "a full file system is slower: remove files, or use another one")
        }
        _ => Fitness::Fit(text),
    }
}

fn trim(place: &DoctorFacts) -> Fitness {
    let mount = &place.mount;
    let accepts = |device: &Device| {
        device.queue.get("discard_max_bytes").and_then(serde_json::Value::as_u64).map(|bytes| bytes > 0)
    };
    let option = mount.options.split(',').find(|option| option.starts_with("discard"));
    match (mount.devices.iter().find_map(accepts), option) {
        (None, _) => Fitness::Unknown("the devices do not tell".to_owned()),
        (Some(false), _) => Fitness::Unknown("the device accepts none".to_owned()),
        (_, Some("discard=async")) => Fitness::Fit("freed blocks are discarded soon (`discard=async`)".to_owned()),
        (_, Some(_)) => Fitness::Fit("freed blocks are discarded at once (mount option `discard`)".to_owned()),
        (_, None) => {
            Fitness::Unknown(format!("when freed blocks were discarded last: `fstrim {}` does it now", mount.path))
        }
    }
}

fn memory(place: &DoctorFacts) -> Fitness {
    let (total, available) = place.memory;
    let text = format!("{} available of {}", size::format(available), size::format(total));
    match total {
        0 => Fitness::Unknown("the kernel does not report it".to_owned()),
        _ if available < total / 4 => Fitness::Unfit(text, "the page cache has little room: end other programs"),
        _ => Fitness::Fit(text),
    }
}

fn processors(place: &DoctorFacts) -> Fitness {
    match place.processors {
        (0, _) => Fitness::Unknown("the kernel does not report them".to_owned()),
        (count, Some(quota)) if quota < count as u64 * 1000 => Fitness::Unfit(
            format!("a control group allows {:.1} of {count}", quota as f64 / 1000.0),
            "threads are stopped when it is used up: raise its limit",
        ),
        (count, _) => Fitness::Fit(count.to_string()),
    }
}

fn governor(place: &DoctorFacts) -> Fitness {
    match place.settings.get("governor").map(String::as_str) {
        None => Fitness::Unknown("none is visible, as in most virtual machines".to_owned()),
        Some("performance") => Fitness::Fit("performance".to_owned()),
        Some(other) => {
            Fitness::Unfit(other.to_owned(), "the clock rate varies: `cpupower frequency-set -g performance`")
        }
    }
}

fn other_load(place: &DoctorFacts) -> Fitness {
    let Some(share) = place.busy else { return Fitness::Unknown("the kernel does not report it".to_owned()) };
    let text = format!("other programs used {:.0} % of the processors", share * 100.0);
    if share > BUSY { Fitness::Unfit(text, "end them, or wait") } else { Fitness::Fit(text) }
}

fn device_load(place: &DoctorFacts) -> Fitness {
    let Some(bytes) = place.traffic else { return Fitness::Unknown("the devices are not visible".to_owned()) };
    let text = format!("{} read and {} written in a second", size::format(bytes.read), size::format(bytes.written));
    if bytes.read + bytes.written > TRAFFIC {
        Fitness::Unfit(text, "end other programs, or wait")
    } else {
        Fitness::Fit(text)
    }
}

fn background_work(place: &DoctorFacts) -> Fitness {
    let mut work = place.background.clone();
    if place.dirty > DIRTY {
        work.push(format!("{} wait to be written", size::format(place.dirty)));
    }
    if work.is_empty() {
        return Fitness::Fit("no work of the kernel is known".to_owned());
    }
    Fitness::Unfit(work.join(", "), "wait until it has ended")
}

#[cfg(test)]
mod tests {
    use super::{CHECKS, DoctorFacts, Fitness};
    use crate::os::device::TransferredBytes;
    use crate::result::environment::{Device, MountInfo};
    use std::collections::BTreeMap;

    /// The names of the checks of a place that it fails, and of those that can't be told.
    fn failed(place: &DoctorFacts) -> (Vec<&'static str>, Vec<&'static str>) {
        let found: Vec<(&str, Fitness)> = CHECKS.iter().map(|(name, check)| (*name, check(place))).collect();
        let of = |is: fn(&Fitness) -> bool| found.iter().filter(|(_, f)| is(f)).map(|(name, _)| *name).collect();
        (of(|f| matches!(f, Fitness::Unfit(..))), of(|f| matches!(f, Fitness::Unknown(_))))
    }

    fn good() -> DoctorFacts {
        let disk = |name: &str, direct_io| Device {
            name: name.to_owned(),
            direct_io,
            queue: BTreeMap::from([("discard_max_bytes".to_owned(), 4096.into())]),
            ..Device::default()
        };
        DoctorFacts {
            mount: MountInfo {
                path: "/mnt/x".into(),
                source: "/dev/loop0".into(),
                kind: "ext4".into(),
                options: "rw,discard".into(),
                total: 100 << 30,
                free: 50 << 30,
                devices: vec![disk("loop0", Some(true)), disk("vda", None)],
                ..MountInfo::default()
            },
            settings: BTreeMap::from([("governor".to_owned(), "performance".to_owned())]),
            memory: (16 << 30, 15 << 30),
            processors: (4, None),
            busy: Some(0.01),
            traffic: Some(TransferredBytes { read: 0, written: 4096 }),
            dirty: 1 << 20,
            background: Vec::new(),
        }
    }

    #[test]
    fn a_quiet_place_is_fit_and_an_invisible_one_unknown() {
        assert_eq!(failed(&good()), (vec![], vec![]));
        let invisible = failed(&DoctorFacts::default());
        assert!(invisible.0.is_empty() && invisible.1.len() == CHECKS.len() - 1, "{invisible:?}");
    }

    #[test]
    fn discards_are_told_from_device_and_option() {
        let of = |accepted: u64, options: &str| {
            let mut place = good();
            place.mount.options = options.into();
            place.mount.devices[0].queue = BTreeMap::from([("discard_max_bytes".to_owned(), accepted.into())]);
            super::trim(&place)
        };
        assert!(matches!(of(0, "rw,discard"), Fitness::Unknown(why) if why.contains("accepts none")));
        assert!(matches!(of(4096, "rw"), Fitness::Unknown(why) if why.contains("fstrim /mnt/x")));
        assert!(matches!(of(4096, "rw,discard=async"), Fitness::Fit(text) if text.contains("soon")));
    }

    #[test]
    fn each_fault_fails_its_check() {
        type Fault = fn(&mut DoctorFacts);
        let faults: [(&str, Fault); 11] = [
            ("file system", |place| place.mount.kind = "tmpfs".into()),
            ("file system", |place| place.mount.kind = "overlay".into()),
            ("devices", |place| place.mount.devices[0].direct_io = Some(false)),
            ("room", |place| place.mount.free = 9 << 30),
            ("memory", |place| place.memory.1 = 3 << 30),
            ("processors", |place| place.processors.1 = Some(2500)),
            ("governor", |place| _ = place.settings.insert("governor".into(), "performance, powersave".into())),
            ("other load", |place| place.busy = Some(0.5)),
            ("device load", |place| place.traffic = Some(TransferredBytes { read: 2 << 20, written: 0 })),
            ("background", |place| place.background.push("btrfs: balance".into())),
            ("background", |place| place.dirty = 1 << 30),
        ];
        for (name, fault) in faults {
            let mut place = good();
            fault(&mut place);
            assert_eq!(failed(&place), (vec![name], vec![]));
        }
    }
}
