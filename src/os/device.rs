//! The storage below a directory: its mount, and the block devices at its bottom, with their transferred bytes.
//!
//! A loop device leads to its backing file, a device-mapper or RAID device to its members. All of this is read from
//! `/sys`. A value that can't be determined is `None`, never 0. This module only reads.

use crate::{fd, settings};
use rustix::fs::{major, minor};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Limits the depth of the stack, so that a cycle of loop devices ends.
const MAX_DEPTH: u32 = 16;
/// The unit of `/sys/block/*/stat` in bytes, whatever the sector size of the device.
const SECTOR: u64 = 512;

/// A mounted file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// The mount point.
    pub path: PathBuf,
    /// The mount source: a device, or a name that the file system interprets.
    pub source: String,
    /// The file system type: `ext4`.
    pub kind: String,
    /// The options of the mount and of the file system.
    pub options: String,
    device: (u32, u32),
    /// The directory of the file system that is mounted.
    root: PathBuf,
}

/// The stack of block devices below a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceStack {
    /// The devices at the bottom: their names in `/sys/class/block`, without duplicates.
    pub devices: Vec<String>,
    /// The devices on which the file system itself is: one, or the members of a btrfs.
    pub tops: Vec<String>,
    /// All devices of the stack, from top to bottom.
    pub layers: Vec<Layer>,
    /// Whether the stack contains a loop device without direct I/O. Its backing file is in the page cache too, so that
    /// data read from the loop device may come from memory. Then no cache state is cold.
    pub cached_below: bool,
}

/// A block device at any level of the stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layer {
    /// The name in `/sys/class/block`.
    pub name: String,
    /// The number of devices above it on the way from the file system, at least.
    pub depth: u32,
    /// For a loop device: whether it uses direct I/O on its backing file. `None` for any other device.
    pub direct_io: Option<bool>,
}

/// Properties of a block device from `/sys`; empty or `None` where `/sys` does not show them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct DeviceProperties {
    /// What tells the device from others: its worldwide name or serial number, the UUID of a volume, the backing file of a
    /// loop device. A partition has that of its disk, with its number.
    pub identity: String,
    /// The vendor's model name.
    pub model: String,
    /// The size in bytes.
    pub size: u64,
    /// Whether it is a rotating disk.
    pub rotational: Option<bool>,
    /// The active I/O scheduler.
    pub scheduler: String,
    /// Settings of its request queue and of the scheduler, by name; see `settings::of_queue`.
    pub queue: BTreeMap<String, String>,
}

impl Layer {
    /// Reads the properties of the device. A partition has those of its disk, except for the size.
    pub fn properties(&self) -> DeviceProperties {
        let Ok(dir) = fs::canonicalize(Path::new("/sys/class/block").join(&self.name)) else {
            return DeviceProperties::default();
        };
        let disk = disk_of(&dir);
        let text = |file: PathBuf| fs::read_to_string(file).map(|text| text.trim().to_owned()).unwrap_or_default();
        let schedulers = text(disk.join("queue/scheduler"));
        // The active one is in brackets: `mq-deadline [none]`.
        let used = schedulers.split(['[', ']']).nth(1).unwrap_or(&schedulers);
        DeviceProperties {
            identity: identity(&dir),
            model: text(disk.join("device/model")),
            size: text(dir.join("size")).parse::<u64>().map_or(0, |sectors| sectors * SECTOR),
            rotational: text(disk.join("queue/rotational")).parse::<u8>().ok().map(|n| n != 0),
            scheduler: used.to_owned(),
            queue: settings::of_queue(disk),
        }
    }
}

/// Bytes that devices have transferred since boot.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TransferredBytes {
    pub read: u64,
    pub written: u64,
}

impl TransferredBytes {
    /// Returns the bytes transferred since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { read: self.read.saturating_sub(before.read), written: self.written.saturating_sub(before.written) }
    }
}

/// Returns the part of a path that exists.
pub fn existing(path: &Path) -> &Path {
    path.ancestors().find(|p| p.exists()).filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the mount that contains a path. `None` if the path does not exist or the mount can't be determined.
pub fn mount_of(path: &Path) -> Option<Mount> {
    let path = fs::canonicalize(path).ok()?;
    let text = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let device = fd::stat(&path).ok()?.device;
    let device = (major(device), minor(device));
    let all: Vec<Mount> = text.lines().filter_map(parse_mount).filter(|mount| path.starts_with(&mount.path)).collect();
    // Of the mounts with the longest path, the last one is on top. The device number distinguishes it from the mounts
    // that it hides. For some file systems, `stat` returns another device number than is in mountinfo; so the fallback
    // is the last one with any number.
    let deepest = |mounts: &mut dyn Iterator<Item = Mount>| {
        mounts.reduce(|best, next| if next.path.as_os_str().len() >= best.path.as_os_str().len() { next } else { best })
    };
    deepest(&mut all.iter().filter(|m| m.device == device).cloned()).or_else(|| deepest(&mut all.into_iter()))
}

/// Returns the path of a file within its file system: it does not depend on the mount through which the file is named.
/// `None` if the file does not exist or its mount can't be determined.
pub(crate) fn path_in_file_system(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    let mount = mount_of(&path)?;
    Some(mount.root.join(path.strip_prefix(&mount.path).ok()?))
}

/// Returns a mount point below a path: a directory or a file on which something is mounted. `None` if there is no such
/// mount point or it can't be determined.
pub fn mounted_below(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    let text = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let is_below = |mount: &Mount| mount.path != path && mount.path.starts_with(&path);
    text.lines().filter_map(parse_mount).find(is_below).map(|mount| mount.path)
}

/// Parses a line of `/proc/self/mountinfo` (proc(5)):
/// `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse_mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(2);
    let (major, minor) = left.next()?.split_once(':')?;
    let root = unescape(left.next()?);
    let path = unescape(left.next()?);
    let options = left.next()?;
    let mut right = right.split(' ');
    let (kind, source, fs_options) = (right.next()?, right.next()?, right.next().unwrap_or(""));
    // Most options of the mount and of the file system are separate, but both have `rw` or `ro`.
    let is_new = |option: &&str| !option.is_empty() && !options.split(',').any(|known| known == *option);
    let all: Vec<&str> = options.split(',').chain(fs_options.split(',').filter(is_new)).collect();
    Some(Mount {
        path: PathBuf::from(std::ffi::OsStr::from_bytes(&path)),
        source: String::from_utf8_lossy(&unescape(source)).into_owned(),
        kind: kind.to_owned(),
        options: all.join(","),
        device: (major.parse().ok()?, minor.parse().ok()?),
        root: PathBuf::from(std::ffi::OsStr::from_bytes(&root)),
    })
}

/// Decodes the octal escapes of mountinfo, such as `\040` for a blank.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| u8::from_str_radix(d, 8).ok());
        match code {
            Some(code) if first == b'\\' => {
                bytes.push(code);
                rest = &after[3..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

/// Returns the block devices below a path. `None` if it is on none (memory, network) or they can't be determined.
pub fn stack_below(path: &Path) -> Option<DeviceStack> {
    let (stack, is_whole) = known_stack(path);
    (is_whole && !stack.devices.is_empty()).then_some(stack)
}

/// Returns the block devices below a path that can be determined, from top to bottom: for an image in memory, only its
/// loop device.
pub fn layers_below(path: &Path) -> Vec<Layer> {
    known_stack(path).0.layers
}

/// Returns what can be determined of the devices below a path, and whether these are all.
fn known_stack(path: &Path) -> (DeviceStack, bool) {
    let mut stack = DeviceStack { devices: Vec::new(), tops: Vec::new(), layers: Vec::new(), cached_below: false };
    let is_whole = add_path(path, &mut stack, 0);
    stack.devices.sort();
    stack.devices.dedup();
    (stack, is_whole)
}

/// Adds the devices below a path to `stack`. Returns `false` if one of them can't be determined.
fn add_path(path: &Path, stack: &mut DeviceStack, depth: u32) -> bool {
    let Ok(stat) = fd::stat(path) else { return false };
    let here =
        if stat.special != 0 && stat.kind == rustix::fs::FileType::BlockDevice { stat.special } else { stat.device };
    if add_device(major(here), minor(here), stack, depth) {
        return true;
    }
    // A file system on several devices, such as btrfs, has a device number that is not that of a block device. Its
    // mount source is one of the devices.
    let Some(mount) = mount_of(path) else { return false };
    if mount.kind == "btrfs" {
        return add_btrfs(&mount.source, stack, depth);
    }
    mount.source.starts_with('/')
        && fd::stat(Path::new(&mount.source)).is_ok_and(|source| {
            source.kind == rustix::fs::FileType::BlockDevice
                && add_device(major(source.special), minor(source.special), stack, depth)
        })
}

/// Adds all devices of the btrfs file system to which the device `source` belongs.
fn add_btrfs(source: &str, stack: &mut DeviceStack, depth: u32) -> bool {
    let Some(name) = fs::canonicalize(source).ok().and_then(|p| Some(p.file_name()?.to_owned())) else { return false };
    let systems = entries(Path::new("/sys/fs/btrfs"));
    let all = systems
        .iter()
        .map(|fs| entries(&fs.join("devices")))
        .find(|all| all.iter().any(|device| device.file_name() == Some(&name)));
    all.is_some_and(|all| {
        all.iter().all(|device| fs::canonicalize(device).is_ok_and(|dir| add_dir(&dir, stack, depth)))
    })
}

fn add_device(major: u32, minor: u32, stack: &mut DeviceStack, depth: u32) -> bool {
    fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).is_ok_and(|dir| add_dir(&dir, stack, depth))
}

/// Adds the block device of a directory in `/sys`, and the devices below it.
fn add_dir(dir: &Path, stack: &mut DeviceStack, depth: u32) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let Some(name) = dir.file_name().map(|name| name.to_string_lossy().into_owned()) else { return false };
    if depth == 0 {
        stack.tops.push(name.clone());
    }
    // For a partition, `/sys` shows backing file and members at its disk.
    let disk = disk_of(dir);
    let backing_file = fs::read(disk.join("loop/backing_file")).ok();
    let direct = fs::read_to_string(disk.join("loop/dio")).is_ok_and(|dio| dio.trim() == "1");
    if stack.layers.iter().all(|layer| layer.name != name) {
        stack.layers.push(Layer { name: name.clone(), depth, direct_io: backing_file.is_some().then_some(direct) });
    }
    if let Some(file) = backing_file {
        let file = file.strip_suffix(b"\n").unwrap_or(&file);
        stack.cached_below |= !direct;
        return add_path(Path::new(std::ffi::OsStr::from_bytes(file)), stack, depth + 1);
    }
    let members = entries(&disk.join("slaves"));
    if !members.is_empty() {
        return members.iter().all(|member| fs::canonicalize(member).is_ok_and(|dir| add_dir(&dir, stack, depth + 1)));
    }
    stack.devices.push(name);
    true
}

/// Returns the `/sys` directory of a partition's disk, and that of any other device unchanged.
fn disk_of(dir: &Path) -> &Path {
    if dir.join("partition").exists() { dir.parent().unwrap_or(dir) } else { dir }
}

/// Returns what tells the device of a directory in `/sys` from others; empty if that is unknown.
fn identity(dir: &Path) -> String {
    /// In the order of preference: a volume, a loop device, an `NVMe` or SCSI disk, a virtual disk.
    const FILES: [&str; 7] =
        ["dm/uuid", "md/uuid", "loop/backing_file", "wwid", "device/wwid", "device/serial", "serial"];
    let disk = disk_of(dir);
    let text = |file: &str| fs::read(disk.join(file)).ok().map(|text| String::from_utf8_lossy(&text).trim().to_owned());
    let of_disk = FILES.iter().filter_map(|file| text(file)).find(|text| !text.is_empty()).unwrap_or_default();
    match fs::read_to_string(dir.join("partition")) {
        Ok(partition) if !of_disk.is_empty() => format!("{of_disk}, partition {}", partition.trim()),
        _ => of_disk,
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).map(|entries| entries.flatten().map(|e| e.path()).collect()).unwrap_or_default()
}

/// Returns the bytes that the devices with these names have transferred in all. `None` if a device's statistics can't
/// be read.
pub fn transferred(devices: &[String]) -> Option<TransferredBytes> {
    devices.iter().try_fold(TransferredBytes::default(), |sum, device| {
        let text = fs::read_to_string(format!("/sys/class/block/{device}/stat")).ok()?;
        let one = parse_stat(&text)?;
        Some(TransferredBytes { read: sum.read + one.read, written: sum.written + one.written })
    })
}

/// Returns the bytes that this program, with its ended children, has made devices read and write
/// (`proc_pid_io(5)`). `None` if the kernel does not count them.
pub fn transferred_by_program() -> Option<TransferredBytes> {
    parse_io(&fs::read_to_string("/proc/self/io").ok()?)
}

/// Parses `/proc/PID/io`.
fn parse_io(text: &str) -> Option<TransferredBytes> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some(TransferredBytes { read: field("read_bytes:")?, written: field("write_bytes:")? })
}

/// Parses `/sys/class/block/*/stat`: the third and the seventh field are sectors read and written
/// (Documentation/block/stat.rst).
fn parse_stat(text: &str) -> Option<TransferredBytes> {
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    let read = fields.nth(2)?.ok()? * SECTOR;
    let written = fields.nth(3)?.ok()? * SECTOR;
    Some(TransferredBytes { read, written })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_bytes_of_a_program_are_parsed() {
        let text =
            "rchar: 9\nwchar: 8\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 3\n";
        assert_eq!(parse_io(text), Some(TransferredBytes { read: 4096, written: 8192 }));
        assert_eq!(parse_io("rchar: 9\n"), None);
    }

    #[test]
    fn a_line_of_mountinfo_is_parsed() {
        let mount =
            parse_mount(r"36 35 98:0 /a /mnt/my\040disk rw,noatime master:1 - ext3 /dev/root rw,errors=continue")
                .unwrap();
        assert_eq!(
            (mount.path.to_str().unwrap(), mount.source.as_str(), mount.kind.as_str()),
            ("/mnt/my disk", "/dev/root", "ext3")
        );
        assert_eq!((mount.options.as_str(), mount.device), ("rw,noatime,errors=continue", (98, 0)));
        assert_eq!(mount.root, Path::new("/a"));
        let read_only = parse_mount("36 35 98:0 / /mnt ro,noatime - ext4 /dev/a rw,commit=5").unwrap();
        assert_eq!(read_only.options, "ro,noatime,rw,commit=5");
        let bare = parse_mount("22 1 0:21 / /proc rw - proc proc rw").unwrap();
        assert_eq!(bare.kind, "proc");
        assert_eq!(parse_mount("nonsense"), None);
        assert_eq!(unescape(r"a\134b\9"), br"a\b\9");
    }

    #[test]
    fn a_device_is_told_by_its_identity() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("nvme0n1");
        let partition = disk.join("nvme0n1p2");
        fs::create_dir_all(&partition).unwrap();
        assert_eq!(identity(&disk), "");
        fs::write(disk.join("wwid"), "eui.0025\n").unwrap();
        fs::write(disk.join("serial"), "S1\n").unwrap();
        fs::write(partition.join("partition"), "2\n").unwrap();
        assert_eq!(
            (identity(&disk), identity(&partition)),
            ("eui.0025".to_owned(), "eui.0025, partition 2".to_owned())
        );
        fs::remove_file(disk.join("wwid")).unwrap();
        assert_eq!(identity(&disk), "S1");
        let image = dir.path().join("loop3");
        fs::create_dir_all(image.join("loop")).unwrap();
        fs::write(image.join("loop/backing_file"), "/srv/fs.img\n").unwrap();
        assert_eq!(identity(&image), "/srv/fs.img");
    }

    #[test]
    fn a_path_in_a_file_system_does_not_begin_with_the_mount_point() {
        assert_eq!(path_in_file_system(Path::new("/proc")).unwrap(), Path::new("/"));
        assert_eq!(path_in_file_system(Path::new("/proc/../proc/sys")).unwrap(), Path::new("/sys"));
        assert_eq!(path_in_file_system(Path::new("/proc/missing")), None);
    }

    #[test]
    fn sectors_are_the_third_and_the_seventh_field() {
        let transferred = parse_stat("  100 2 300 4 500 6 700 8 0 9 10 11 12 13 14 15 16\n").unwrap();
        assert_eq!(transferred, TransferredBytes { read: 300 * 512, written: 700 * 512 });
        assert_eq!(parse_stat("1 2"), None);
    }

    #[test]
    fn a_disk_has_devices_and_memory_has_none() {
        assert_eq!(stack_below(Path::new("/proc")), None);
        assert_eq!(mount_of(Path::new("/proc")).unwrap().kind, "proc");
        // The result depends on the file system of the sources. If devices are found, they have statistics.
        if let Some(stack) = stack_below(Path::new(env!("CARGO_MANIFEST_DIR"))) {
            assert!(transferred(&stack.devices).is_some(), "{stack:?}");
            assert!(!stack.tops.is_empty() && transferred(&stack.tops).is_some(), "{stack:?}");
            // The stack ends with the devices whose bytes are counted, and each of its devices has a size.
            assert!(stack.devices.iter().all(|d| stack.layers.iter().any(|l| l.name == *d)), "{stack:?}");
            assert!(stack.layers.iter().all(|layer| layer.properties().size > 0), "{stack:?}");
        }
    }
}
