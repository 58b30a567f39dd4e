//! Where the resolver looks for what it has not seen: descriptors that were open before, inherited or passed.

use super::call::InodeId;
use super::raw::FdFacts;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use wml_os::proc::kernel_text;
use wml_os::reading;

/// The most bytes of the list of what a process has mapped.
const MOST_MAPS: u64 = 64 << 20;

/// The processes as they are.
pub trait ProcessView {
    /// The file of a descriptor.
    fn descriptor(&mut self, process: u32, fd: i32) -> Option<FdFacts>;
    /// The working directory.
    fn cwd(&mut self, process: u32) -> Option<Vec<u8>>;
    /// The name of a file that it has mapped, whose device is the kernel's.
    fn mapped(&mut self, _process: u32, _id: InodeId) -> Option<Vec<u8>> {
        None
    }
}

/// Nothing to look at: the processes have ended long ago.
#[derive(Clone, Copy, Debug)]
pub struct NoView;

impl ProcessView for NoView {
    fn descriptor(&mut self, _: u32, _: i32) -> Option<FdFacts> {
        None
    }

    fn cwd(&mut self, _: u32) -> Option<Vec<u8>> {
        None
    }
}

/// `/proc`.
#[derive(Clone, Copy, Debug)]
pub struct ProcView;

impl ProcView {
    /// The identity, type and size of an open file.
    pub fn file(process: u32, fd: i32) -> Option<FdFacts> {
        let meta = fs::metadata(format!("/proc/{process}/fd/{fd}")).ok()?;
        let id = InodeId { device: meta.dev(), inode: meta.ino(), generation: None };
        Some(FdFacts { id: Some(id), mode: Some(meta.mode()), size: Some(meta.len()), ..FdFacts::default() })
    }
}

impl ProcessView for ProcView {
    fn descriptor(&mut self, process: u32, fd: i32) -> Option<FdFacts> {
        let mut facts = Self::file(process, fd)?;
        let mut path = fs::read_link(format!("/proc/{process}/fd/{fd}")).ok()?.into_os_string().into_vec();
        if let Some(file) = path.strip_suffix(b" (deleted)") {
            path.truncate(file.len());
        }
        facts.path = (path.first() == Some(&b'/')).then_some(path);
        let info = kernel_text(&format!("/proc/{process}/fdinfo/{fd}"));
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        // That of a pipe is 0, and means nothing.
        let is_file = facts.mode.is_some_and(|mode| matches!(mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR));
        facts.position = field("pos:").and_then(|pos| pos.parse().ok()).filter(|_| is_file);
        let flags = field("flags:").and_then(|flags| u32::from_str_radix(flags, 8).ok());
        let cloexec = libc::O_CLOEXEC as u32;
        facts.closes_on_exec = flags.is_some_and(|flags| flags & cloexec != 0);
        facts.flags = flags.map(|flags| flags & !cloexec);
        Some(facts)
    }

    fn mapped(&mut self, process: u32, id: InodeId) -> Option<Vec<u8>> {
        mapped_name(&reading::read(Path::new(&format!("/proc/{process}/maps")), MOST_MAPS).ok()?, id)
    }

    fn cwd(&mut self, process: u32) -> Option<Vec<u8>> {
        Some(fs::read_link(format!("/proc/{process}/cwd")).ok()?.into_os_string().into_vec())
    }
}

/// The name of a file by the text of `/proc/PID/maps`.
fn mapped_name(maps: &[u8], id: InodeId) -> Option<Vec<u8>> {
    let device = format!("{:02x}:{:02x}", libc::major(id.device), libc::minor(id.device));
    let inode = id.inode.to_string();
    maps.split(|byte| *byte == b'\n').find_map(|line| {
        // Addresses, permissions, offset, device, inode, and behind blanks the name.
        let mut words = line.splitn(6, |byte| *byte == b' ').skip(3);
        let is_it = words.next()? == device.as_bytes() && words.next()? == inode.as_bytes();
        let name = words.next()?.trim_ascii_start();
        let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
        (is_it && name.first() == Some(&b'/')).then(|| name.to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_mapped_file_is_found_by_its_inode() {
        let maps = b"7f00-7f01 r--p 00000000 fe:00 12                         /a b\n\
            7f01-7f02 rw-p 00000000 00:00 0                          [heap]\n\
            7f02-7f03 r-xp 00001000 00:1a 12                         /c (deleted)\n";
        let name = |major, minor, inode| {
            mapped_name(maps, InodeId { device: libc::makedev(major, minor), inode, generation: Some(1) })
        };
        assert_eq!(name(0xfe, 0, 12), Some(b"/a b".to_vec()));
        assert_eq!(name(0, 0x1a, 12), Some(b"/c".to_vec()));
        assert_eq!((name(0, 0, 0), name(0xfe, 0, 13)), (None, None));
    }
}
