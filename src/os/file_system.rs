//! How a mounted file system was made and is tuned: its features, its geometry, and its settings in the kernel.
//!
//! ext2, ext3 and ext4 are read from the superblock on their device, which is in memory while they are mounted; xfs is
//! asked by `XFS_IOC_FSGEOMETRY`, btrfs by `BTRFS_IOC_FS_INFO`; settings are in `/sys`. No program is started. What is
//! absent or denied is left out. The calls may wait for the file system: callers limit the time.
//!
//! Not here: mount options, and the devices below a file system (`device`).

use super::fd::{self, Fd, Result as CallResult};
use super::last_errno;
use rustix::fs::{FileType, OFlags, major, minor};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct FileSystemProperties {
    /// The features that it has, in the spelling of its tools. `None` if they are not known.
    pub features: Option<Vec<String>>,
    /// Its geometry and its settings, by name. Sizes are in bytes.
    pub parameters: BTreeMap<String, String>,
}

impl FileSystemProperties {
    // Most values are numbers, which read better without a reference.
    #[allow(clippy::needless_pass_by_value)]
    fn put(&mut self, name: &str, value: impl ToString) {
        self.parameters.insert(name.to_owned(), value.to_string());
    }

    /// Adds the settings of these names that the directory has.
    fn put_files<'a>(&mut self, dir: &Path, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            if let Some(value) = setting(&dir.join(name)) {
                self.put(name, value);
            }
        }
    }
}

/// Reads the properties of the file system of type `kind` that has the directory `dir`.
pub fn properties(dir: &Path, kind: &str) -> FileSystemProperties {
    let mut found = FileSystemProperties::default();
    let Ok(device) = fd::stat(dir).map(|stat| (major(stat.device), minor(stat.device))) else { return found };
    match kind {
        "ext2" | "ext3" | "ext4" => read_ext4(device, &mut found),
        "xfs" => read_xfs(dir, &mut found),
        "btrfs" => read_btrfs(dir, &mut found),
        _ => {}
    }
    read_backing_device(device, &mut found);
    found
}

/// Returns the value of a file in `/sys` or `/proc`, on one line; of a choice such as `[pid] round-robin` the chosen one.
fn setting(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let text = text.trim();
    let chosen = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    let text = chosen.unwrap_or(text);
    (!text.is_empty() && !text.contains('\n')).then(|| text.to_owned())
}

/// Adds how much the kernel reads ahead of a file system that is not directly on a block device, such as NFS, and the
/// shares of the dirty pages that the device of any file system may have.
fn read_backing_device((major, minor): (u32, u32), found: &mut FileSystemProperties) {
    let dir = PathBuf::from(format!("/sys/class/bdi/{major}:{minor}"));
    // A block device has the value in its queue.
    if major == 0 {
        found.put_files(&dir, ["read_ahead_kb"]);
    }
    found.put_files(&dir, ["min_ratio", "max_ratio", "strict_limit"]);
}

// --- ext4 ---

/// The position and the size of the superblock on the device.
const SUPERBLOCK: (u64, usize) = (1024, 1024);

/// Settings of ext4 in `/sys/fs/ext4/DEVICE`. Not those of errors, and no counters.
const OF_EXT4: [&str; 13] = [
    "extent_max_zeroout_kb",
    "inode_readahead_blks",
    "max_writeback_mb_bump",
    "mb_best_avail_max_trim_order",
    "mb_group_prealloc",
    "mb_linear_limit",
    "mb_max_linear_groups",
    "mb_max_to_scan",
    "mb_min_to_scan",
    "mb_order2_req",
    "mb_prefetch",
    "mb_prefetch_limit",
    "mb_stream_req",
];

fn read_ext4(device: (u32, u32), found: &mut FileSystemProperties) {
    let Ok(dir) = fs::canonicalize(format!("/sys/dev/block/{}:{}", device.0, device.1)) else { return };
    if let Some(superblock) = device_node(&dir).and_then(|node| superblock(&node, device).ok()) {
        parse_ext4(&superblock, found);
    }
    if let Some(name) = dir.file_name() {
        found.put_files(&Path::new("/sys/fs/ext4").join(name), OF_EXT4);
    }
}

/// Returns the path of the device of a directory in `/sys`.
fn device_node(dir: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(dir.join("uevent")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    Some(Path::new("/dev").join(name))
}

/// Reads the superblock from a block device with this number. What is not that device is not opened for reading: opening
/// a FIFO would wait, and other devices may react to it.
fn superblock(node: &Path, device: (u32, u32)) -> io::Result<[u8; SUPERBLOCK.1]> {
    let flags = |flags: OFlags| flags.bits() as i32;
    let path = fs::OpenOptions::new().read(true).custom_flags(flags(OFlags::PATH | OFlags::NOFOLLOW)).open(node)?;
    let stat = fd::fstat(path.as_raw_fd())?;
    if stat.kind != FileType::BlockDevice || (major(stat.special), minor(stat.special)) != device {
        return Err(io::ErrorKind::NotFound.into());
    }
    let same = format!("/proc/self/fd/{}", path.as_raw_fd());
    let file = fs::OpenOptions::new().read(true).custom_flags(flags(OFlags::NONBLOCK)).open(same)?;
    // Nothing but the block of the superblock, which is in memory.
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random)?;
    let mut bytes = [0; SUPERBLOCK.1];
    file.read_exact_at(&mut bytes, SUPERBLOCK.0)?;
    Ok(bytes)
}

/// A word of feature bits: the name of unknown bits in the tools of ext4, and the known ones with their names.
type FeatureWord = (char, usize, &'static [(u32, &'static str)]);

/// The feature words of ext4 with their offsets in the superblock (Documentation/filesystems/ext4/super.rst).
const EXT4_FEATURES: [FeatureWord; 3] = [
    (
        'C',
        0x5c,
        &[
            (0, "dir_prealloc"),
            (1, "imagic_inodes"),
            (2, "has_journal"),
            (3, "ext_attr"),
            (4, "resize_inode"),
            (5, "dir_index"),
            (9, "sparse_super2"),
            (10, "fast_commit"),
            (11, "stable_inodes"),
            (12, "orphan_file"),
        ],
    ),
    (
        'I',
        0x60,
        &[
            (0, "compression"),
            (1, "filetype"),
            (3, "journal_dev"),
            (4, "meta_bg"),
            (6, "extent"),
            (7, "64bit"),
            (8, "mmp"),
            (9, "flex_bg"),
            (10, "ea_inode"),
            (12, "dirdata"),
            (13, "metadata_csum_seed"),
            (14, "large_dir"),
            (15, "inline_data"),
            (16, "encrypt"),
            (17, "casefold"),
        ],
    ),
    (
        'R',
        0x64,
        &[
            (0, "sparse_super"),
            (1, "large_file"),
            (3, "huge_file"),
            (4, "uninit_bg"),
            (5, "dir_nlink"),
            (6, "extra_isize"),
            (8, "quota"),
            (9, "bigalloc"),
            (10, "metadata_csum"),
            (12, "read-only"),
            (13, "project"),
            (14, "shared_blocks"),
            (15, "verity"),
        ],
    ),
];

/// The bits that say that the file system is mounted, or was not unmounted.
const EXT4_STATES: [(char, u32); 2] = [('I', 2), ('R', 16)];

/// The default mount options in the superblock, which `/proc` does not show.
const EXT4_DEFAULTS: [(u32, &str); 8] = [
    (1, "bsdgroups"),
    (2, "user_xattr"),
    (3, "acl"),
    (4, "uid16"),
    (8, "nobarrier"),
    (9, "block_validity"),
    (10, "discard"),
    (11, "nodelalloc"),
];

/// The default data modes, as bits 5 and 6 of the default mount options give them.
const EXT4_DATA_MODES: [&str; 4] = ["", "journal_data", "journal_data_ordered", "journal_data_writeback"];

fn parse_ext4(superblock: &[u8; SUPERBLOCK.1], found: &mut FileSystemProperties) {
    const MAGIC: u16 = 0xef53;
    let u8_at = |at: usize| superblock[at];
    let u16_at = |at: usize| u16::from_le_bytes([superblock[at], superblock[at + 1]]);
    let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
    if u16_at(0x38) != MAGIC {
        return;
    }
    let mut features = Vec::new();
    for (word, at, names) in EXT4_FEATURES {
        let bits = u32_at(at);
        for bit in (0..u32::BITS).filter(|bit| bits >> bit & 1 == 1 && !EXT4_STATES.contains(&(word, *bit))) {
            let name = names.iter().find(|(known, _)| *known == bit).map(|(_, name)| (*name).to_owned());
            features.push(name.unwrap_or_else(|| format!("FEATURE_{word}{bit}")));
        }
    }
    let size = |log: u32| 1024_u64 << log.min(20);
    let block = size(u32_at(0x18));
    found.put("block_size", block);
    if features.iter().any(|feature| feature == "bigalloc") {
        found.put("cluster_size", size(u32_at(0x1c)));
    }
    found.put("blocks_per_group", u32_at(0x20));
    found.put("inodes_per_group", u32_at(0x28));
    found.put("inode_size", u16_at(0x58));
    found.put("groups_per_flex_group", 1_u64 << u8_at(0x174).min(31));
    found.put("stripe_unit", u64::from(u16_at(0x164)) * block);
    found.put("stripe_width", u64::from(u32_at(0x170)) * block);
    let (journal_inode, has_copy) = (u32_at(0xe0), u8_at(0xfd) == 1);
    if features.iter().any(|feature| feature == "has_journal") {
        found.put("journal", if journal_inode == 0 { "external" } else { "internal" });
        // The superblock has a copy of the journal's block map, followed by the size of the journal.
        if journal_inode != 0 && has_copy {
            found.put("journal_size", u64::from(u32_at(0x148)) << 32 | u64::from(u32_at(0x14c)));
        }
    }
    let defaults = u32_at(0x100);
    let names = EXT4_DEFAULTS.iter().filter(|(bit, _)| defaults >> bit & 1 == 1).map(|(_, name)| *name);
    let mode = EXT4_DATA_MODES[(defaults >> 5 & 3) as usize];
    let names: Vec<&str> = names.chain(Some(mode).filter(|mode| !mode.is_empty())).collect();
    found.put("default_mount_options", if names.is_empty() { "none".to_owned() } else { names.join(",") });
    found.features = Some(features);
}

// --- xfs ---

/// `struct xfs_fsop_geom` of `xfs_fs.h`; kernels before 5.2 know a shorter one, without what follows `log_stripe_unit`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct XfsGeometry {
    block_size: u32,
    realtime_extent: u32,
    group_blocks: u32,
    groups: u32,
    log_blocks: u32,
    sector_size: u32,
    inode_size: u32,
    inode_percent: u32,
    blocks: u64,
    realtime_blocks: u64,
    realtime_extents: u64,
    log_start: u64,
    uuid: [u8; 16],
    stripe_unit: u32,
    stripe_width: u32,
    version: i32,
    flags: u32,
    log_sector_size: u32,
    realtime_sector_size: u32,
    directory_block: u32,
    log_stripe_unit: u32,
    rest: [u64; 18],
}

/// `XFS_IOC_FSGEOMETRY` of `xfs_fs.h`, and that of earlier kernels.
const XFS_GEOMETRY: [u64; 2] = [0x8100_587e, 0x8070_587c];

/// The bits of `flags`. Not bit 0, which is set when the first extended attribute is written.
const XFS_FEATURES: [(u32, &str); 26] = [
    (1, "nlink"),
    (2, "quota"),
    (3, "ialign"),
    (4, "dalign"),
    (5, "shared"),
    (6, "extflg"),
    (7, "dirv2"),
    (8, "logv2"),
    (9, "sector"),
    (10, "attr2"),
    (11, "projid32bit"),
    (12, "ascii-ci"),
    (14, "lazy-count"),
    (15, "crc"),
    (16, "ftype"),
    (17, "finobt"),
    (18, "sparse"),
    (19, "rmapbt"),
    (20, "reflink"),
    (21, "bigtime"),
    (22, "inobtcount"),
    (23, "nrext64"),
    (24, "exchange"),
    (25, "parent"),
    (26, "metadir"),
    (27, "zoned"),
];

fn read_xfs(dir: &Path, found: &mut FileSystemProperties) {
    let Ok(dir) = directory(dir) else { return };
    let mut geometry = XfsGeometry::default();
    if XFS_GEOMETRY.into_iter().any(|request| ask(dir.as_raw_fd(), request, &mut geometry).is_ok()) {
        describe_xfs(&geometry, found);
    }
}

fn describe_xfs(of: &XfsGeometry, found: &mut FileSystemProperties) {
    let in_blocks = |blocks: u32| u64::from(blocks) * u64::from(of.block_size);
    found.put("block_size", of.block_size);
    found.put("sector_size", of.sector_size);
    found.put("inode_size", of.inode_size);
    found.put("inode_percent", of.inode_percent);
    found.put("allocation_groups", of.groups);
    found.put("allocation_group_size", in_blocks(of.group_blocks));
    found.put("log", if of.log_start == 0 { "external" } else { "internal" });
    found.put("log_size", in_blocks(of.log_blocks));
    found.put("log_sector_size", of.log_sector_size);
    found.put("log_stripe_unit", of.log_stripe_unit);
    found.put("directory_block_size", of.directory_block);
    found.put("stripe_unit", in_blocks(of.stripe_unit));
    found.put("stripe_width", in_blocks(of.stripe_width));
    found.put("realtime_size", of.realtime_blocks * u64::from(of.block_size));
    let names = XFS_FEATURES.iter().filter(|(bit, _)| of.flags >> bit & 1 == 1);
    found.features = Some(names.map(|(_, name)| (*name).to_owned()).collect());
}

// --- btrfs ---

/// `struct btrfs_ioctl_fs_info_args` of `linux/btrfs.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct BtrfsInfo {
    max_id: u64,
    devices: u64,
    uuid: [u8; 16],
    node_size: u32,
    sector_size: u32,
    clone_alignment: u32,
    checksum: u16,
    checksum_size: u16,
    flags: u64,
    rest: [u64; 121],
}

/// `BTRFS_IOC_FS_INFO` of `linux/btrfs.h`.
const BTRFS_INFO: u64 = 0x8400_941f;

/// `BTRFS_FS_INFO_FLAG_CSUM_INFO`: asks for the checksum, and tells that the answer has it.
const WITH_CHECKSUM: u64 = 1;

/// The checksums by their numbers.
const BTRFS_CHECKSUMS: [&str; 4] = ["crc32c", "xxhash64", "sha256", "blake2b"];

fn read_btrfs(dir: &Path, found: &mut FileSystemProperties) {
    let Ok(dir) = directory(dir) else { return };
    let mut info = BtrfsInfo {
        max_id: 0,
        devices: 0,
        uuid: [0; 16],
        node_size: 0,
        sector_size: 0,
        clone_alignment: 0,
        checksum: 0,
        checksum_size: 0,
        flags: WITH_CHECKSUM,
        rest: [0; 121],
    };
    if ask(dir.as_raw_fd(), BTRFS_INFO, &mut info).is_err() {
        return;
    }
    found.put("devices", info.devices);
    found.put("node_size", info.node_size);
    found.put("sector_size", info.sector_size);
    if info.flags & WITH_CHECKSUM != 0 {
        let name = BTRFS_CHECKSUMS.get(usize::from(info.checksum));
        found.put("checksum", name.map_or_else(|| info.checksum.to_string(), |name| (*name).to_owned()));
    }
    let dir = Path::new("/sys/fs/btrfs").join(uuid(&info.uuid));
    found.features = btrfs_features(&dir.join("features"));
    found.put_files(&dir, ["read_policy"]);
    found.put_files(&dir.join("bdi"), ["read_ahead_kb"]);
    for kind in ["data", "metadata", "system", "mixed"] {
        let profiles = directories(&dir.join("allocation").join(kind));
        if !profiles.is_empty() {
            found.put(&format!("{kind}_profile"), profiles.join(","));
        }
    }
}

/// Returns the features of a directory in `/sys/fs/btrfs`, which has a file for each: `1` if the file system has it.
fn btrfs_features(dir: &Path) -> Option<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .ok()?
        .flatten()
        .map(|entry| entry.file_name())
        .filter_map(|name| {
            let is_set = setting(&dir.join(&name)).is_some_and(|value| value != "0");
            is_set.then(|| name.to_string_lossy().into_owned())
        })
        .collect();
    names.sort();
    Some(names)
}

/// Returns the names of the directories in a directory, sorted.
fn directories(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let found = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<String> = found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Formats a UUID as `/sys` does.
fn uuid(bytes: &[u8; 16]) -> String {
    let groups = [&bytes[0..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..16]];
    groups.map(|group| group.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))).join("-")
}

// --- both ---

fn directory(dir: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().read(true).custom_flags(OFlags::DIRECTORY.bits() as i32).open(dir)
}

/// Makes an `ioctl` that fills `answer`, which is at least as large as the request says.
fn ask<T: Copy>(fd: Fd, request: u64, answer: &mut T) -> CallResult<()> {
    /// The bits of a request that are the size of its argument.
    const SIZE: (u32, u64) = (16, 0x3fff);
    debug_assert!(size_of::<T>() as u64 >= request >> SIZE.0 & SIZE.1, "the answer has room");
    // SAFETY: the kernel writes no more bytes than the request says, and `answer` consists of integers.
    if unsafe { libc::ioctl(fd, request as _, std::ptr::from_mut(answer)) } == 0 { Ok(()) } else { Err(last_errno()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a superblock with these bytes.
    fn superblock(parts: &[(usize, &[u8])]) -> [u8; SUPERBLOCK.1] {
        let mut bytes = [0; SUPERBLOCK.1];
        for (at, part) in [(0x38, &[0x53, 0xef][..])].iter().chain(parts) {
            bytes[*at..*at + part.len()].copy_from_slice(part);
        }
        bytes
    }

    #[test]
    fn the_superblock_of_ext4_tells_features_and_geometry() {
        let bytes = superblock(&[
            (0x18, &[2]),
            (0x20, &32768_u32.to_le_bytes()),
            (0x58, &256_u16.to_le_bytes()),
            // has_journal, fast_commit and an unknown bit; extent and needs_recovery; metadata_csum and orphan_present.
            (0x5c, &(1_u32 << 2 | 1 << 10 | 1 << 30).to_le_bytes()),
            (0x60, &(1_u32 << 6 | 1 << 2).to_le_bytes()),
            (0x64, &(1_u32 << 10 | 1 << 16).to_le_bytes()),
            (0xe0, &[8]),
            (0xfd, &[1]),
            (0x14c, &(64_u32 << 20).to_le_bytes()),
            (0x100, &0x4c_u32.to_le_bytes()),
            (0x164, &16_u16.to_le_bytes()),
            (0x174, &[4]),
        ]);
        let mut found = FileSystemProperties::default();
        parse_ext4(&bytes, &mut found);
        let features = found.features.unwrap_or_default();
        assert_eq!(features, ["has_journal", "fast_commit", "FEATURE_C30", "extent", "metadata_csum"]);
        for (name, value) in [
            ("block_size", "4096"),
            ("blocks_per_group", "32768"),
            ("inode_size", "256"),
            ("journal", "internal"),
            ("journal_size", "67108864"),
            ("default_mount_options", "user_xattr,acl,journal_data_ordered"),
            ("stripe_unit", "65536"),
            ("groups_per_flex_group", "16"),
        ] {
            assert_eq!(found.parameters.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(!found.parameters.contains_key("cluster_size"));
        // What has no magic number is not ext4.
        let mut other = FileSystemProperties::default();
        parse_ext4(&[7; SUPERBLOCK.1], &mut other);
        assert_eq!(other, FileSystemProperties::default());
    }

    #[test]
    fn the_geometry_of_xfs_is_in_bytes() {
        assert_eq!(size_of::<XfsGeometry>(), 256, "the size in the request");
        let geometry = XfsGeometry {
            block_size: 4096,
            groups: 4,
            group_blocks: 1024,
            log_start: 7,
            log_blocks: 16384,
            flags: 1 | 1 << 15 | 1 << 20,
            ..XfsGeometry::default()
        };
        let mut found = FileSystemProperties::default();
        describe_xfs(&geometry, &mut found);
        assert_eq!(found.features.unwrap_or_default(), ["crc", "reflink"]);
        for (name, value) in [("allocation_group_size", "4194304"), ("log_size", "67108864"), ("log", "internal")] {
            assert_eq!(found.parameters.get(name).map(String::as_str), Some(value), "{name}");
        }
    }

    #[test]
    fn only_the_expected_device_is_opened() {
        assert_eq!(size_of::<BtrfsInfo>(), 1024, "the size in the request");
        // Opening a FIFO without a writer would wait for ever.
        let dir = tempfile::tempdir().expect("a directory");
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, rustix::fs::Mode::RUSR, 0).expect("a FIFO");
        assert!(super::superblock(&fifo, (0, 0)).is_err());
        assert!(super::superblock(Path::new("/dev/null"), (1, 3)).is_err(), "no block device");
        assert!(super::superblock(Path::new("/dev/missing"), (1, 3)).is_err());
    }

    #[test]
    fn a_file_system_without_a_superblock_has_no_features() {
        let found = properties(Path::new("/proc"), "proc");
        assert_eq!(found.features, None);
        // A directory that is not on the file system that it is said to be on.
        for kind in ["ext4", "xfs", "btrfs"] {
            assert_eq!(properties(Path::new("/proc"), kind).features, None, "{kind}");
            assert_eq!(properties(Path::new("/proc/missing"), kind), FileSystemProperties::default());
        }
    }

    #[test]
    fn a_uuid_is_written_as_in_sys() {
        let bytes = [0x8b, 0x1f, 0x4d, 0x0a, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 1, 2, 3, 4];
        assert_eq!(uuid(&bytes), "8b1f4d0a-1234-5678-9abc-def001020304");
    }
}
