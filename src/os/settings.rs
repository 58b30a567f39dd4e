//! Settings of the kernel and of block devices on which the speed of file systems depends: sysctls, processors, request
//! queues, the kernel command line.
//!
//! All of this is read from `/proc` and `/sys`. What is absent or denied is left out. Not here: settings of a file system
//! (`file_system`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files with a setting, by its name.
const FILES: [(&str, &str); 22] = [
    ("dirty_ratio", "/proc/sys/vm/dirty_ratio"),
    ("dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio"),
    ("dirty_bytes", "/proc/sys/vm/dirty_bytes"),
    ("dirty_background_bytes", "/proc/sys/vm/dirty_background_bytes"),
    ("dirty_expire_centisecs", "/proc/sys/vm/dirty_expire_centisecs"),
    ("dirty_writeback_centisecs", "/proc/sys/vm/dirty_writeback_centisecs"),
    ("swappiness", "/proc/sys/vm/swappiness"),
    ("vfs_cache_pressure", "/proc/sys/vm/vfs_cache_pressure"),
    ("min_free_kbytes", "/proc/sys/vm/min_free_kbytes"),
    ("zone_reclaim_mode", "/proc/sys/vm/zone_reclaim_mode"),
    ("xfssyncd_centisecs", "/proc/sys/fs/xfs/xfssyncd_centisecs"),
    ("speculative_prealloc_lifetime", "/proc/sys/fs/xfs/speculative_prealloc_lifetime"),
    ("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("idle_driver", "/sys/devices/system/cpu/cpuidle/current_driver"),
    ("idle_governor", "/sys/devices/system/cpu/cpuidle/current_governor"),
    ("smt", "/sys/devices/system/cpu/smt/control"),
    ("boost", "/sys/devices/system/cpu/cpufreq/boost"),
    ("no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("pstate_driver_mode", "/sys/devices/system/cpu/intel_pstate/status"),
    ("amd_pstate_driver_mode", "/sys/devices/system/cpu/amd_pstate/status"),
    ("load", "/proc/loadavg"),
];

/// Files of each processor's frequency, by the name of the setting.
const OF_FREQUENCY: [(&str, &str); 5] = [
    ("governor", "scaling_governor"),
    ("frequency_driver", "scaling_driver"),
    ("min_frequency_khz", "scaling_min_freq"),
    ("max_frequency_khz", "scaling_max_freq"),
    ("energy_preference", "energy_performance_preference"),
];

/// Files of a queue in `/sys/block/*/queue` that change the speed of a device or say what it can do.
const OF_QUEUE: [&str; 19] = [
    "add_random",
    "dax",
    "discard_max_bytes",
    "fua",
    "io_poll",
    "io_poll_delay",
    "iostats",
    "logical_block_size",
    "max_sectors_kb",
    "minimum_io_size",
    "nomerges",
    "nr_requests",
    "optimal_io_size",
    "physical_block_size",
    "read_ahead_kb",
    "rq_affinity",
    "stable_writes",
    "write_cache",
    "zoned",
];

/// Returns settings of the kernel and of the processors, and the load average, by name.
pub fn of_machine() -> BTreeMap<String, String> {
    let files = FILES.iter().filter_map(|(name, file)| Some(((*name).to_owned(), text(Path::new(file))?)));
    let frequency = OF_FREQUENCY.iter().filter_map(|(name, file)| Some(((*name).to_owned(), of_processors(file)?)));
    files.chain(frequency).collect()
}

/// Returns the values that a file of the processors' frequencies has, without duplicates.
fn of_processors(file: &str) -> Option<String> {
    let policies = entries(Path::new("/sys/devices/system/cpu/cpufreq"));
    let found: BTreeSet<String> = policies.iter().filter_map(|policy| text(&policy.join(file))).collect();
    (!found.is_empty()).then(|| found.into_iter().collect::<Vec<_>>().join(", "))
}

/// Returns the settings of the queue of a disk, given its directory in `/sys`, and those of its scheduler, as
/// `iosched/NAME`.
pub(crate) fn of_queue(disk: &Path) -> BTreeMap<String, String> {
    let queue = disk.join("queue");
    let mut found: BTreeMap<String, String> =
        OF_QUEUE.iter().filter_map(|name| Some(((*name).to_owned(), text(&queue.join(name))?))).collect();
    found.extend(writeback_throttling(&queue).map(|value| ("wbt_lat_usec".to_owned(), value)));
    found.extend(text(&disk.join("device/queue_depth")).map(|value| ("queue_depth".to_owned(), value)));
    for file in entries(&queue.join("iosched")) {
        let name = file.file_name().map(|name| format!("iosched/{}", name.to_string_lossy()));
        found.extend(name.zip(text(&file)));
    }
    found
}

/// Returns the latency in microseconds above which the kernel throttles write-back; 0 if it does not.
fn writeback_throttling(queue: &Path) -> Option<String> {
    match fs::read_to_string(queue.join("wbt_lat_usec")) {
        Ok(text) => Some(text.trim().to_owned()),
        // The queue has no throttling.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Some("0".to_owned()),
        Err(_) => None,
    }
}

/// Returns the command line of the kernel. `None` if it is not known.
pub fn kernel_command_line() -> Option<String> {
    text(Path::new("/proc/cmdline"))
}

/// Returns the text of a file without spaces around it. `None` if it is empty or can't be read.
fn text(file: &Path) -> Option<String> {
    let text = fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_has_its_settings_and_those_of_its_scheduler() {
        let disk = tempfile::tempdir().expect("a directory");
        assert_eq!(of_queue(disk.path()), BTreeMap::new(), "absent");
        let write = |name: &str, text: &str| {
            let file = disk.path().join(name);
            file.parent().map(fs::create_dir_all).transpose().and_then(|_| fs::write(&file, text)).expect("a file");
        };
        write("queue/read_ahead_kb", "128\n");
        write("queue/write_cache", "write back\n");
        write("queue/wbt_lat_usec", "75000\n");
        write("queue/nr_zones", "0\n");
        write("queue/iosched/fifo_batch", "16\n");
        let found: Vec<(String, String)> = of_queue(disk.path()).into_iter().collect();
        let expected = [
            ("iosched/fifo_batch", "16"),
            ("read_ahead_kb", "128"),
            ("wbt_lat_usec", "75000"),
            ("write_cache", "write back"),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn the_machine_has_settings() {
        let found = of_machine();
        assert!(found.contains_key("load") && found.contains_key("dirty_ratio"), "{found:?}");
        assert!(found.values().all(|value| !value.is_empty()), "{found:?}");
    }
}
