//! Where the resolver looks for what it has not seen: descriptors that were open before, inherited or passed.

use super::call::InodeId;
use super::raw::FdFacts;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use wml_os::proc::kernel_text;

/// The processes as they are.
pub trait ProcessView {
    /// The file of a descriptor.
    fn descriptor(&mut self, process: u32, fd: i32) -> Option<FdFacts>;
    /// The working directory.
    fn cwd(&mut self, process: u32) -> Option<Vec<u8>>;
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
        facts.position = field("pos:").and_then(|pos| pos.parse().ok());
        let flags = field("flags:").and_then(|flags| u32::from_str_radix(flags, 8).ok());
        let cloexec = libc::O_CLOEXEC as u32;
        facts.closes_on_exec = flags.is_some_and(|flags| flags & cloexec != 0);
        facts.flags = flags.map(|flags| flags & !cloexec);
        Some(facts)
    }

    fn cwd(&mut self, process: u32) -> Option<Vec<u8>> {
        Some(fs::read_link(format!("/proc/{process}/cwd")).ok()?.into_os_string().into_vec())
    }
}
