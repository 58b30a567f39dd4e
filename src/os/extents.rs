//! System calls that report the position of data and of free space on a device: `FIEMAP` and `GETFSMAP`.
//!
//! Not here: the interpretation of the extents.

use super::fd::{Fd, Result};
use super::{Errno, last_errno};

/// Extents per call of `FIEMAP`. Nearly all files have fewer.
const FILE_EXTENTS: usize = 64;
/// Records per call of `GETFSMAP`.
const FREE_EXTENTS: usize = 512;

/// `FS_IOC_FIEMAP` of `linux/fiemap.h`.
const FIEMAP: u64 = 0xc020_660b;
/// `FIEMAP_FLAG_SYNC`: write dirty data first, since only then it has a position.
const SYNC: u32 = 1;
/// `FIEMAP_EXTENT_LAST`: the extent is the last one of the file.
const LAST: u32 = 1;
/// `FIEMAP_EXTENT_UNKNOWN`, `_DELALLOC`, `_NOT_ALIGNED`, `_DATA_INLINE` and `_DATA_TAIL`: the data has no blocks of its
/// own on the device.
const WITHOUT_BLOCKS: u32 = 0x2 | 0x4 | 0x100 | 0x200 | 0x400;

/// `FS_IOC_GETFSMAP` of `linux/fsmap.h`.
const GETFSMAP: u64 = 0xc0c0_583b;
/// `FMR_OF_SPECIAL_OWNER`: the owner is a code, not an inode number.
const SPECIAL_OWNER: u32 = 0x10;
/// `FMR_OF_LAST`: the record is the last one of the file system.
const LAST_RECORD: u32 = 0x20;
/// `FMR_OWN_FREE`: the code of free space.
const FREE: u64 = 1;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap`, with room for extents.
#[repr(C)]
struct ExtentMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [RawExtent; FILE_EXTENTS],
}

/// `struct fsmap`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawSegment {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

/// `struct fsmap_head`, with room for records.
#[repr(C)]
struct SpaceMap {
    in_flags: u32,
    out_flags: u32,
    count: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [RawSegment; 2],
    records: [RawSegment; FREE_EXTENTS],
}

/// An extent of a file: bytes that are contiguous on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileExtent {
    /// Position on the device in bytes. `None` if the data is stored inside metadata.
    pub physical: Option<u64>,
    /// Length in bytes: a multiple of the block size, unless the data is stored inside metadata.
    pub length: u64,
}

/// Calls `each` for every extent of an open file, in the order of the file. Dirty data is written first.
///
/// Returns [`Errno::OPNOTSUPP`] or [`Errno::NOTTY`] when the file system does not report extents.
pub fn of_file(fd: Fd, mut each: impl FnMut(FileExtent)) -> Result<()> {
    let mut map = ExtentMap {
        start: 0,
        length: u64::MAX,
        flags: SYNC,
        mapped: 0,
        count: FILE_EXTENTS as u32,
        reserved: 0,
        extents: [RawExtent::default(); FILE_EXTENTS],
    };
    loop {
        // SAFETY: the argument points to a live `struct fiemap` with room for the `count` extents that it announces.
        call(unsafe { libc::ioctl(fd, FIEMAP as _, &raw mut map) })?;
        let found = &map.extents[..(map.mapped as usize).min(FILE_EXTENTS)];
        for extent in found {
            let physical = (extent.flags & WITHOUT_BLOCKS == 0).then_some(extent.physical);
            each(FileExtent { physical, length: extent.length });
        }
        match found.last() {
            Some(last) if last.flags & LAST == 0 && last.length > 0 => {
                map.start = last.logical.saturating_add(last.length);
                map.length = u64::MAX - map.start;
            }
            _ => return Ok(()),
        }
    }
}

/// Calls `each` with position and length, in bytes, of every free extent of the file system that contains an open file.
/// The extents are in the order of the device. Adjacent ones may be reported separately.
///
/// Returns [`Errno::NOTTY`] or [`Errno::OPNOTSUPP`] when the file system does not report its free extents.
#[allow(clippy::large_stack_arrays, reason = "the records are a part of the kernel's structure, which is boxed")]
pub fn free(fd: Fd, mut each: impl FnMut(u64, u64)) -> Result<()> {
    let highest = RawSegment {
        device: u32::MAX,
        flags: u32::MAX,
        physical: u64::MAX,
        owner: u64::MAX,
        offset: u64::MAX,
        ..RawSegment::default()
    };
    let mut map = Box::new(SpaceMap {
        in_flags: 0,
        out_flags: 0,
        count: FREE_EXTENTS as u32,
        entries: 0,
        reserved: [0; 6],
        keys: [RawSegment::default(), highest],
        records: [RawSegment::default(); FREE_EXTENTS],
    });
    let mut device = None;
    loop {
        // SAFETY: the argument points to a live `struct fsmap_head` with room for the `count` records that it
        // announces.
        call(unsafe { libc::ioctl(fd, GETFSMAP as _, &raw mut *map) })?;
        let found = &map.records[..(map.entries as usize).min(FREE_EXTENTS)];
        for record in found {
            // The first device contains the data. A log or a real-time device has separate positions.
            let on_first = *device.get_or_insert(record.device) == record.device;
            if on_first && record.flags & SPECIAL_OWNER != 0 && record.owner == FREE {
                each(record.physical, record.length);
            }
        }
        match found.last() {
            // The next call continues after the record in the low key.
            Some(last) if last.flags & LAST_RECORD == 0 => map.keys[0] = *last,
            _ => return Ok(()),
        }
    }
}

fn call(result: libc::c_int) -> Result<()> {
    if result == -1 { Err(last_errno()) } else { Ok(()) }
}

/// True if an error means that the file system does not report extents, or not to this user.
pub fn is_unsupported(errno: Errno) -> bool {
    [Errno::OPNOTSUPP, Errno::NOTTY, Errno::INVAL, Errno::NOSYS, Errno::PERM, Errno::ACCESS].contains(&errno)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn the_structures_have_the_sizes_of_the_kernel() {
        // The numbers of the calls contain the sizes of the heads.
        assert_eq!(size_of::<ExtentMap>() - size_of::<[RawExtent; FILE_EXTENTS]>(), (FIEMAP >> 16 & 0x3fff) as usize);
        assert_eq!(size_of::<SpaceMap>() - size_of::<[RawSegment; FREE_EXTENTS]>(), (GETFSMAP >> 16 & 0x3fff) as usize);
        assert_eq!((size_of::<RawExtent>(), size_of::<RawSegment>()), (56, 64));
    }

    #[test]
    fn extents_contain_the_bytes_of_a_file() {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all(&vec![7; 300_000]).unwrap();
        let mut bytes = 0;
        match of_file(file.as_raw_fd(), |extent| bytes += extent.length) {
            Ok(()) => assert!(bytes >= 300_000, "{bytes}"),
            Err(errno) => assert!(is_unsupported(errno), "{errno}"),
        }
    }
}
