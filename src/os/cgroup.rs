//! The limits of this process's control groups: memory, tasks and processor time.
//!
//! A limit applies to all groups below it, so every level of the path counts, with the usage of that level. The input
//! is the text of `/proc/self/cgroup` and `/proc/self/mountinfo`, and a function that reads files. Supports version 1,
//! version 2, and both at once.

use std::path::{Path, PathBuf};

/// The limit of one group and its usage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    pub limit: u64,
    /// The usage. For memory, without file pages, which the kernel can reclaim.
    pub used: u64,
}

impl Bound {
    /// Returns the amount that remains below the limit.
    pub fn free(self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// The tightest limits of this process: of the level with the least remaining. `None` where no level has a limit that
/// can be read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Bounds {
    /// Memory in bytes.
    pub memory: Option<Bound>,
    /// Processes and threads.
    pub pids: Option<Bound>,
    /// Processor time per second, in milliseconds: 1500 is one and a half processors.
    pub cpu: Option<u64>,
}

/// Limits from here on mean "none": version 1 has no word for that and shows a number near 2⁶³.
const NO_LIMIT: u64 = 1 << 62;

/// A mounted control group hierarchy.
struct Hierarchy<'a> {
    mount: PathBuf,
    /// The group of this process, relative to `mount`.
    path: &'a Path,
    unified: bool,
}

/// Returns the tightest limits over all levels.
pub fn bounds(groups: &str, mounts: &str, read: &dyn Fn(&Path) -> Option<String>) -> Bounds {
    let least = |controller: &str, level: &dyn Fn(&Path, bool) -> Option<Bound>| {
        let of = |h: Hierarchy<'_>| {
            let levels: Vec<&Path> = h.path.ancestors().collect();
            let bounds = levels.into_iter().filter_map(|path| level(&h.mount.join(path), h.unified));
            bounds.min_by_key(|bound| bound.free())
        };
        let found = [hierarchy(groups, mounts, Some(controller)), hierarchy(groups, mounts, None)];
        found.into_iter().flatten().filter_map(of).min_by_key(|bound| bound.free())
    };
    let levels = |h: Hierarchy<'_>| {
        let quotas = h.path.ancestors().filter_map(|path| quota(&h.mount.join(path), h.unified, read));
        quotas.min()
    };
    let cpu = [hierarchy(groups, mounts, Some("cpu")), hierarchy(groups, mounts, None)];
    Bounds {
        cpu: cpu.into_iter().flatten().filter_map(levels).min(),
        memory: least("memory", &|dir, unified| memory(dir, unified, read)),
        pids: least("pids", &|dir, _| {
            Some(Bound { limit: number(dir, "pids.max", read)?, used: number(dir, "pids.current", read)? })
        }),
    }
}

/// Returns the version 1 hierarchy of a controller, or the version 2 hierarchy if `controller` is `None`.
fn hierarchy<'a>(groups: &'a str, mounts: &str, controller: Option<&str>) -> Option<Hierarchy<'a>> {
    let path = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        match controller {
            Some(controller) => controllers.split(',').any(|c| c == controller),
            None => number == "0" && controllers.is_empty(),
        }
        .then_some(path)
    })?;
    // Format: 30 23 0:26 /root/in/hierarchy /mount/point rw,nosuid - cgroup cgroup rw,memory
    let (mount, root) = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let fits = match controller {
            Some(controller) => *right.first()? == "cgroup" && right.get(2)?.split(',').any(|c| c == controller),
            None => *right.first()? == "cgroup2",
        };
        fits.then(|| Some((PathBuf::from(*left.get(4)?), *left.get(3)?)))?
    })?;
    // In a container, the mount may start below the hierarchy's root, and the path may or may not include that prefix.
    let path = Path::new(path).strip_prefix(root).unwrap_or(Path::new(path));
    let path = path.strip_prefix("/").unwrap_or(path);
    Some(Hierarchy { mount, path, unified: controller.is_none() })
}

fn number(dir: &Path, file: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    read(&dir.join(file))?.trim().parse().ok()
}

/// Returns the processor time of a group in milliseconds per second.
fn quota(dir: &Path, unified: bool, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let (quota, period) = if unified {
        // The form is `150000 100000`, or `max 100000` without a limit.
        let text = read(&dir.join("cpu.max"))?;
        let (quota, period) = text.trim().split_once(' ')?;
        (quota.parse::<u64>().ok()?, period.parse().ok()?)
    } else {
        // The quota is −1 without a limit.
        (number(dir, "cpu.cfs_quota_us", read)?, number(dir, "cpu.cfs_period_us", read)?)
    };
    quota.checked_mul(1000)?.checked_div(period)
}

fn memory(dir: &Path, unified: bool, read: &dyn Fn(&Path) -> Option<String>) -> Option<Bound> {
    let (limit, used, pages) = if unified {
        ("memory.max", "memory.current", ["inactive_file", "active_file"])
    } else {
        ("memory.limit_in_bytes", "memory.usage_in_bytes", ["total_inactive_file", "total_active_file"])
    };
    let limit = number(dir, limit, read).filter(|limit| *limit < NO_LIMIT)?;
    let used = number(dir, used, read).unwrap_or(0);
    let stat = read(&dir.join("memory.stat")).unwrap_or_default();
    let of = |name: &str| {
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok();
        stat.lines().find_map(value).unwrap_or(0)
    };
    let reclaimable: u64 = pages.into_iter().map(of).sum();
    Some(Bound { limit, used: used.saturating_sub(reclaimable) })
}

#[cfg(test)]
mod tests {
    use super::{Bound, Bounds, bounds};
    use std::collections::BTreeMap;
    use std::path::Path;

    const V2_MOUNT: &str = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1_MOUNTS: &str = "24 20 8:1 / / rw - ext4 /dev/sda1 rw\n\
        33 32 0:29 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        34 32 0:30 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n";

    fn of(groups: &str, mounts: &str, files: &[(&str, &str)]) -> Bounds {
        let files: BTreeMap<&Path, &str> = files.iter().map(|(path, text)| (Path::new(path), *text)).collect();
        bounds(groups, mounts, &|path| files.get(path).map(|text| (*text).to_owned()))
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is compared with an `Option`")]
    fn bound(limit: u64, used: u64) -> Option<Bound> {
        Some(Bound { limit, used })
    }

    #[test]
    fn version_2_considers_every_level() {
        let files = [
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.current", "1000\n"),
            ("/sys/fs/cgroup/a/b/pids.max", "100\n"),
            ("/sys/fs/cgroup/a/b/pids.current", "10\n"),
            ("/sys/fs/cgroup/a/memory.max", "268435456\n"),
            ("/sys/fs/cgroup/a/memory.current", "200000000\n"),
            ("/sys/fs/cgroup/a/memory.stat", "anon 5\nfile 9\ninactive_file 50000000\nactive_file 25000000\n"),
            ("/sys/fs/cgroup/a/pids.max", "200\n"),
            ("/sys/fs/cgroup/a/pids.current", "150\n"),
        ];
        let found = of("0::/a/b\n", V2_MOUNT, &files);
        assert_eq!(found, Bounds { memory: bound(268_435_456, 125_000_000), pids: bound(200, 150), cpu: None });
    }

    #[test]
    fn version_1_has_a_path_for_each_controller() {
        let files = [
            ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "5\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "500\n"),
            ("/sys/fs/cgroup/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 100\ntotal_active_file 50\n"),
            ("/sys/fs/cgroup/pids/y/z/pids.max", "max\n"),
            ("/sys/fs/cgroup/pids/y/z/pids.current", "5\n"),
            ("/sys/fs/cgroup/pids/y/pids.max", "64\n"),
            ("/sys/fs/cgroup/pids/y/pids.current", "7\n"),
        ];
        let found = of("8:pids:/y/z\n4:memory:/x\n0::/\n", V1_MOUNTS, &files);
        assert_eq!(found, Bounds { memory: bound(1 << 30, 350), pids: bound(64, 7), cpu: None });
    }

    #[test]
    fn the_group_of_a_container_is_at_the_mount_point() {
        let mount = "33 32 0:29 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let files = [
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n"),
        ];
        assert_eq!(of("4:memory:/docker/abc\n", mount, &files).memory, bound(1000, 1));
        let deeper = [("/sys/fs/cgroup/memory/in/memory.limit_in_bytes", "10\n")];
        assert_eq!(of("4:memory:/docker/abc/in\n", mount, &deeper).memory, bound(10, 0));
    }

    #[test]
    fn with_both_versions_the_tighter_limit_applies() {
        let mounts = format!("{V1_MOUNTS}35 32 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
        let files = [
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2000\n"),
            ("/sys/fs/cgroup/unified/u/memory.max", "1000\n"),
            ("/sys/fs/cgroup/unified/u/memory.current", "1\n"),
        ];
        assert_eq!(of("4:memory:/\n0::/u\n", &mounts, &files).memory, bound(1000, 1));
    }

    #[test]
    fn the_quota_of_processor_time_is_the_least_of_all_levels() {
        let files = [
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/cpu.max", "50000 20000\n"),
        ];
        assert_eq!(of("0::/a/b\n", V2_MOUNT, &files).cpu, Some(1500));
        let mount = "33 32 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
        let files = |quota| {
            [("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", quota), ("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n")]
        };
        assert_eq!(of("4:cpu,cpuacct:/x\n", mount, &files("25000\n")).cpu, Some(250));
        for none in ["-1\n", "", "9999999999999999999\n"] {
            assert_eq!(of("4:cpu,cpuacct:/x\n", mount, &files(none)).cpu, None);
        }
        assert_eq!(of("0::/\n", V2_MOUNT, &[("/sys/fs/cgroup/cpu.max", "100 0\n")]).cpu, None);
    }

    #[test]
    fn missing_or_malformed_files_give_no_limit() {
        assert_eq!(of("", "", &[]), Bounds::default());
        assert_eq!(of("0::/a\n", V2_MOUNT, &[]), Bounds::default());
        assert_eq!(of("nonsense\n0:\n\n0::", "x - y\n - cgroup2\n1 - cgroup2 a\n", &[]), Bounds::default());
        let odd = [("/sys/fs/cgroup/memory.max", "lots\n"), ("/sys/fs/cgroup/pids.max", "-1\n")];
        assert_eq!(of("0::/\n", V2_MOUNT, &odd), Bounds::default());
        let all = [("/sys/fs/cgroup/memory.max", "max\n"), ("/sys/fs/cgroup/pids.max", "max\n")];
        assert_eq!(of("0::/\n", V2_MOUNT, &all), Bounds::default());
    }
}
