//! Work of the kernel on devices and file systems that no program has asked for just now: RAID arrays, btrfs, the first
//! hours of an ext4. What is absent or denied is left out.

use crate::proc;
use std::fs;

/// Returns what the kernel works on.
pub fn of_kernel() -> Vec<String> {
    let mut found = Vec::new();
    let arrays = proc::kernel_text("/proc/mdstat");
    if ["resync =", "recovery =", "check =", "reshape ="].iter().any(|work| arrays.contains(work)) {
        found.push("a RAID array is synchronized (/proc/mdstat)".to_owned());
    }
    found.extend(
        texts("/sys/fs/btrfs", "exclusive_operation").filter(|work| work != "none").map(|w| format!("btrfs: {w}")),
    );
    if texts("/proc", "comm").any(|name| name == "ext4lazyinit") {
        found.push("ext4 initializes a new file system (ext4lazyinit)".to_owned());
    }
    found
}

/// Returns the texts that the files with this name in the directories of `dir` have.
fn texts(dir: &str, name: &'static str) -> impl Iterator<Item = String> {
    let texts = fs::read_dir(dir).into_iter().flatten().flatten().map(move |entry| entry.path().join(name));
    texts
        .filter_map(|path| fs::read_to_string(path).ok())
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}
