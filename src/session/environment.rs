//! The environment of a run, as the result records it: machine, kernel, limits, mounts.

use crate::stats::result::Environment;
use crate::stats::result::environment::{Clock, Cpu, Memory, Mount, Uname};
use crate::sys::{self, limits};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What is known of the machine; the mounts are those of the given paths.
pub(super) fn environment(paths: &[PathBuf]) -> Environment {
    let uname = rustix::system::uname();
    let text = |c: &std::ffi::CStr| c.to_string_lossy().into_owned();
    let (total, available) = limits::memory();
    let clock = sys::Clock::get();
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(':').map(|(_, m)| m.trim().to_owned()))
        .unwrap_or_default();
    let mut mounts: Vec<Mount> = Vec::new();
    for mount in paths.iter().filter_map(|p| mount(p)) {
        if !mounts.iter().any(|m| m.path == mount.path) {
            mounts.push(mount);
        }
    }
    Environment {
        uname: Uname {
            sysname: text(uname.sysname()),
            nodename: text(uname.nodename()),
            release: text(uname.release()),
            version: text(uname.version()),
            machine: text(uname.machine()),
        },
        cpu: Cpu { model, count: limits::processors() as u64 },
        memory: Memory { total, available },
        clock: Clock { name: clock.name().to_owned(), cost_ns: clock.cost_ns() },
        limits: BTreeMap::from([("nofile".to_owned(), Some(limits::descriptors()))]),
        mounts,
        other: settings(),
    }
}

/// Settings of the kernel that move results.
fn settings() -> BTreeMap<String, serde_json::Value> {
    const FILES: &[(&str, &str)] = &[
        ("dirty_ratio", "/proc/sys/vm/dirty_ratio"),
        ("dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio"),
        ("dirty_expire_centisecs", "/proc/sys/vm/dirty_expire_centisecs"),
        ("swappiness", "/proc/sys/vm/swappiness"),
        ("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ("load", "/proc/loadavg"),
    ];
    FILES
        .iter()
        .filter_map(|(name, file)| Some(((*name).to_owned(), fs::read_to_string(file).ok()?.trim().into())))
        .collect()
}

/// The mount that a path lies on; the path itself need not be there yet.
pub(super) fn mount(path: &Path) -> Option<Mount> {
    let there = path.ancestors().find(|p| p.exists()).filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let there = there.canonicalize().ok()?;
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut best: Option<(usize, Mount)> = None;
    for line in table.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let (left, right): (Vec<&str>, Vec<&str>) = (left.split(' ').collect(), right.split(' ').collect());
        let ([_, _, _, _, at, options, ..], [kind, source, ..]) = (left.as_slice(), right.as_slice()) else { continue };
        let at = unescape(at);
        // A later line covers an earlier one of the same place.
        if there.starts_with(&at) && best.as_ref().is_none_or(|(len, _)| at.len() >= *len) {
            let mount = Mount {
                path: at.clone(),
                source: unescape(source),
                kind: (*kind).to_owned(),
                options: format!("{options},{}", right.get(2).unwrap_or(&"")).trim_end_matches(',').to_owned(),
                ..Mount::default()
            };
            best = Some((at.len(), mount));
        }
    }
    let (_, mut mount) = best?;
    if let Ok(space) = rustix::fs::statvfs(&there) {
        mount.total = space.f_blocks * space.f_frsize;
        mount.free = space.f_bavail * space.f_frsize;
    }
    Some(mount)
}

/// The kernel writes blanks and the like in octal.
fn unescape(text: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(text.to_owned(), |text, (code, plain)| text.replace(code, plain))
}
