//! What lies below a directory: its mount, and the block devices at the very bottom, with what they have read and written.
//!
//! A loop device leads on to the file behind it, a mapped or striped one to its parts, all by `/sys`. What can't be told is
//! `None` and never 0. Reads only.

use crate::os::fd;
use rustix::fs::{major, minor};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Loops on loops end here.
const MAX_DEPTH: u32 = 16;
/// The unit of `/sys/block/*/stat`, whatever the device's own.
const SECTOR: u64 = 512;

/// A mounted file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// Where it is mounted.
    pub path: PathBuf,
    /// What is mounted: a device, or a name that the file system understands.
    pub source: String,
    /// Its type: `ext4`.
    pub kind: String,
    /// Options of the mount and of the file system.
    pub options: String,
    device: (u32, u32),
}

/// The block devices at the bottom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bottom {
    /// Their names in `/sys/class/block`, none twice.
    pub devices: Vec<String>,
    /// Every device on the way, from the top to the bottom.
    pub layers: Vec<Layer>,
    /// A loop device without direct I/O is on the way: its file is cached once more below it, so that what seems to be read
    /// from a disk may come from memory. Nothing is cold then.
    pub cached_below: bool,
}

/// A block device, anywhere between a file system and the bottom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layer {
    /// Its name in `/sys/class/block`.
    pub name: String,
    /// Of a loop device: whether it passes by the page cache below it.
    pub direct_io: Option<bool>,
}

/// What `/sys` tells of a block device; empty or `None` where it does not.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Traits {
    /// The maker's name for it.
    pub model: String,
    /// Bytes.
    pub size: u64,
    /// Whether it spins.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: String,
}

impl Layer {
    /// What kind of device it is; a partition is as its disk, but for its size.
    pub fn traits(&self) -> Traits {
        let Ok(dir) = fs::canonicalize(Path::new("/sys/class/block").join(&self.name)) else {
            return Traits::default();
        };
        let whole = whole(&dir);
        let text = |file: PathBuf| fs::read_to_string(file).map(|text| text.trim().to_owned()).unwrap_or_default();
        let schedulers = text(whole.join("queue/scheduler"));
        // The one in use is in brackets: `mq-deadline [none]`.
        let used = schedulers.split(['[', ']']).nth(1).unwrap_or(&schedulers);
        Traits {
            model: text(whole.join("device/model")),
            size: text(dir.join("size")).parse::<u64>().map_or(0, |sectors| sectors * SECTOR),
            rotational: text(whole.join("queue/rotational")).parse::<u8>().ok().map(|n| n != 0),
            scheduler: used.to_owned(),
        }
    }
}

/// Bytes that devices have moved since they were started.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

impl Moved {
    /// What was moved since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { read: self.read.saturating_sub(before.read), written: self.written.saturating_sub(before.written) }
    }
}

/// The mount that a path lies on; the path must exist.
pub fn mount_of(path: &Path) -> Option<Mount> {
    let path = fs::canonicalize(path).ok()?;
    let text = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let device = fd::stat(&path).ok()?.device;
    let device = (major(device), minor(device));
    let all: Vec<Mount> = text.lines().filter_map(parse_mount).filter(|mount| path.starts_with(&mount.path)).collect();
    // The last of the deepest is the one on top. The device tells a mount point from what it hides; some file systems show
    // another one to `stat` than here.
    let deepest = |mounts: &mut dyn Iterator<Item = Mount>| {
        mounts.reduce(|best, next| if next.path.as_os_str().len() >= best.path.as_os_str().len() { next } else { best })
    };
    deepest(&mut all.iter().filter(|m| m.device == device).cloned()).or_else(|| deepest(&mut all.into_iter()))
}

/// Where something is mounted below a path: on a directory in it, or on a file. `None` also where it can't be told.
pub fn mounted_below(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    let text = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let below = |mount: &Mount| mount.path != path && mount.path.starts_with(&path);
    text.lines().filter_map(parse_mount).find(below).map(|mount| mount.path)
}

/// A line of `/proc/self/mountinfo` (proc(5)): `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse_mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(2);
    let (major, minor) = left.next()?.split_once(':')?;
    let path = unescape(left.nth(1)?);
    let options = left.next()?;
    let mut right = right.split(' ');
    let (kind, source, own) = (right.next()?, right.next()?, right.next().unwrap_or(""));
    Some(Mount {
        path: PathBuf::from(std::ffi::OsStr::from_bytes(&path)),
        source: String::from_utf8_lossy(&unescape(source)).into_owned(),
        kind: kind.to_owned(),
        options: if own.is_empty() { options.to_owned() } else { format!("{options},{own}") },
        device: (major.parse().ok()?, minor.parse().ok()?),
    })
}

/// Blanks and the like are written there as `\040`.
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

/// The devices below a path; `None` where there are none (memory, network) or they can't be told.
pub fn below(path: &Path) -> Option<Bottom> {
    let mut bottom = Bottom { devices: Vec::new(), layers: Vec::new(), cached_below: false };
    let found = below_path(path, &mut bottom, 0);
    bottom.devices.sort();
    bottom.devices.dedup();
    (found && !bottom.devices.is_empty()).then_some(bottom)
}

/// Adds what is below a path; `false` if a part of it can't be told.
fn below_path(path: &Path, bottom: &mut Bottom, depth: u32) -> bool {
    let Ok(stat) = fd::stat(path) else { return false };
    let here =
        if stat.special != 0 && stat.kind == rustix::fs::FileType::BlockDevice { stat.special } else { stat.device };
    if below_device(major(here), minor(here), bottom, depth) {
        return true;
    }
    // File systems of several devices, such as btrfs, have no device number of their own; the mount names one of them.
    let Some(mount) = mount_of(path) else { return false };
    if mount.kind == "btrfs" {
        return below_btrfs(&mount.source, bottom, depth);
    }
    mount.source.starts_with('/')
        && fd::stat(Path::new(&mount.source)).is_ok_and(|source| {
            source.kind == rustix::fs::FileType::BlockDevice
                && below_device(major(source.special), minor(source.special), bottom, depth)
        })
}

/// All devices of the btrfs that one of them belongs to.
fn below_btrfs(source: &str, bottom: &mut Bottom, depth: u32) -> bool {
    let Some(name) = fs::canonicalize(source).ok().and_then(|p| Some(p.file_name()?.to_owned())) else { return false };
    let systems = entries(Path::new("/sys/fs/btrfs"));
    let all = systems
        .iter()
        .map(|fs| entries(&fs.join("devices")))
        .find(|all| all.iter().any(|device| device.file_name() == Some(&name)));
    all.is_some_and(|all| {
        all.iter().all(|device| fs::canonicalize(device).is_ok_and(|dir| below_dir(&dir, bottom, depth)))
    })
}

fn below_device(major: u32, minor: u32, bottom: &mut Bottom, depth: u32) -> bool {
    fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).is_ok_and(|dir| below_dir(&dir, bottom, depth))
}

/// Adds what is below the block device that a directory of `/sys` stands for.
fn below_dir(dir: &Path, bottom: &mut Bottom, depth: u32) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let Some(name) = dir.file_name().map(|name| name.to_string_lossy().into_owned()) else { return false };
    // A partition is told by its disk what it is made of.
    let whole = whole(dir);
    let behind = fs::read(whole.join("loop/backing_file")).ok();
    let direct = fs::read_to_string(whole.join("loop/dio")).is_ok_and(|dio| dio.trim() == "1");
    if bottom.layers.iter().all(|layer| layer.name != name) {
        bottom.layers.push(Layer { name: name.clone(), direct_io: behind.is_some().then_some(direct) });
    }
    if let Some(file) = behind {
        let file = file.strip_suffix(b"\n").unwrap_or(&file);
        bottom.cached_below |= !direct;
        return below_path(Path::new(std::ffi::OsStr::from_bytes(file)), bottom, depth + 1);
    }
    let parts = entries(&whole.join("slaves"));
    if !parts.is_empty() {
        return parts.iter().all(|part| fs::canonicalize(part).is_ok_and(|dir| below_dir(&dir, bottom, depth + 1)));
    }
    bottom.devices.push(name);
    true
}

/// The disk of a partition; any other device itself.
fn whole(dir: &Path) -> &Path {
    if dir.join("partition").exists() { dir.parent().unwrap_or(dir) } else { dir }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).map(|entries| entries.flatten().map(|e| e.path()).collect()).unwrap_or_default()
}

impl Bottom {
    /// Bytes that all of them have moved; `None` if one of them does not say.
    pub fn moved(&self) -> Option<Moved> {
        self.devices.iter().try_fold(Moved::default(), |sum, device| {
            let text = fs::read_to_string(format!("/sys/class/block/{device}/stat")).ok()?;
            let one = parse_stat(&text)?;
            Some(Moved { read: sum.read + one.read, written: sum.written + one.written })
        })
    }
}

/// The third and the seventh figure are sectors read and written (Documentation/block/stat.rst).
fn parse_stat(text: &str) -> Option<Moved> {
    let mut figures = text.split_ascii_whitespace().map(str::parse::<u64>);
    let read = figures.nth(2)?.ok()? * SECTOR;
    let written = figures.nth(3)?.ok()? * SECTOR;
    Some(Moved { read, written })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_taken_apart() {
        let mount =
            parse_mount(r"36 35 98:0 /a /mnt/my\040disk rw,noatime master:1 - ext3 /dev/root rw,errors=continue")
                .unwrap();
        assert_eq!(
            (mount.path.to_str().unwrap(), mount.source.as_str(), mount.kind.as_str()),
            ("/mnt/my disk", "/dev/root", "ext3")
        );
        assert_eq!((mount.options.as_str(), mount.device), ("rw,noatime,rw,errors=continue", (98, 0)));
        let bare = parse_mount("22 1 0:21 / /proc rw - proc proc rw").unwrap();
        assert_eq!(bare.kind, "proc");
        assert_eq!(parse_mount("nonsense"), None);
        assert_eq!(unescape(r"a\134b\9"), br"a\b\9");
    }

    #[test]
    fn sectors_are_the_third_and_the_seventh_figure() {
        let moved = parse_stat("  100 2 300 4 500 6 700 8 0 9 10 11 12 13 14 15 16\n").unwrap();
        assert_eq!(moved, Moved { read: 300 * 512, written: 700 * 512 });
        assert_eq!(parse_stat("1 2"), None);
    }

    #[test]
    fn memory_has_no_device_and_a_disk_has() {
        assert_eq!(below(Path::new("/proc")), None);
        assert_eq!(mount_of(Path::new("/proc")).unwrap().kind, "proc");
        // Wherever the sources are: if devices are found, they say what they moved.
        if let Some(bottom) = below(Path::new(env!("CARGO_MANIFEST_DIR"))) {
            assert!(bottom.moved().is_some(), "{bottom:?}");
            // The way ends where the bytes are counted, and each of its devices has a size.
            assert!(bottom.devices.iter().all(|d| bottom.layers.iter().any(|l| l.name == *d)), "{bottom:?}");
            assert!(bottom.layers.iter().all(|layer| layer.traits().size > 0), "{bottom:?}");
        }
    }
}
