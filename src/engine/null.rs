//! The `null` engine: every call succeeds immediately and only updates the position and size of its file.

use super::{AsyncChoice, Engine, Handle};
use crate::os::fd::{Fd, NONE, Result, Stat};
use crate::os::inode::InodeChange;
use crate::os::mapped::FileMap;
use crate::os::range::Lock;
use crate::os::{Advice, FileType, OFlags};
use std::ffi::CStr;

/// The engine without I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct Null;

/// Returns the number of bytes that a read into `buf` at `offset` returns: it ends at the end of the file.
#[inline]
fn readable(file: &Handle, buf: &[u8], offset: u64) -> usize {
    buf.len().min(file.size.saturating_sub(offset) as usize)
}

impl Engine for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn asynchronous(&self) -> AsyncChoice {
        AsyncChoice::AtOnce
    }

    fn real(&self) -> bool {
        false
    }

    #[inline]
    fn open(&self, _dir: Fd, _name: &CStr, _flags: OFlags, size: u64) -> Result<Handle> {
        Ok(Handle { fd: NONE, position: 0, cursor: 0, size })
    }

    #[inline]
    fn close(&self, _file: Handle) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn pread(&self, file: &mut Handle, buf: &mut [u8], offset: u64) -> Result<usize> {
        Ok(readable(file, buf, offset))
    }

    #[inline]
    fn pwrite(&self, file: &mut Handle, buf: &[u8], offset: u64) -> Result<usize> {
        file.size = file.size.max(offset + buf.len() as u64);
        Ok(buf.len())
    }

    #[inline]
    fn read(&self, file: &mut Handle, buf: &mut [u8]) -> Result<usize> {
        let n = readable(file, buf, file.position);
        file.position += n as u64;
        Ok(n)
    }

    #[inline]
    fn write(&self, file: &mut Handle, buf: &[u8]) -> Result<usize> {
        file.position += buf.len() as u64;
        file.size = file.size.max(file.position);
        Ok(buf.len())
    }

    fn seek(&self, file: &mut Handle, offset: u64) -> Result<()> {
        file.position = offset;
        Ok(())
    }

    fn seek_end(&self, file: &mut Handle) -> Result<()> {
        file.position = file.size;
        Ok(())
    }

    fn truncate(&self, file: &mut Handle, size: u64) -> Result<()> {
        file.size = size;
        Ok(())
    }

    fn fsync(&self, _file: &mut Handle) -> Result<()> {
        Ok(())
    }

    fn fsync_dir(&self, _dir: Fd) -> Result<()> {
        Ok(())
    }

    fn fdatasync(&self, _file: &mut Handle) -> Result<()> {
        Ok(())
    }

    fn stat_open(&self, file: &Handle) -> Result<Stat> {
        let kind = FileType::RegularFile;
        Ok(Stat { kind, size: file.size, blocks: 0, device: 0, special: 0, inode: 0, links: 1 })
    }

    #[inline]
    fn stat(&self, _dir: Fd, _name: &CStr) -> Result<FileType> {
        Ok(FileType::RegularFile)
    }

    fn unlink(&self, _dir: Fd, _name: &CStr) -> Result<()> {
        Ok(())
    }

    fn mkdir(&self, _dir: Fd, _name: &CStr) -> Result<()> {
        Ok(())
    }

    fn rmdir(&self, _dir: Fd, _name: &CStr) -> Result<()> {
        Ok(())
    }

    fn list(&self, _dir: Fd, _name: &CStr, _buf: &mut [u8], _may_go_on: &dyn Fn() -> bool) -> Result<(u64, u64)> {
        Ok((0, 0))
    }

    fn list_plus(&self, _dir: Fd, _name: &CStr, _buf: &mut [u8], _may_go_on: &dyn Fn() -> bool) -> Result<(u64, u64)> {
        Ok((0, 0))
    }

    fn rename(&self, _dir: Fd, _name: &CStr, _new_dir: Fd, _new_name: &CStr) -> Result<()> {
        Ok(())
    }

    fn link(&self, _dir: Fd, _name: &CStr, _new_dir: Fd, _new_name: &CStr) -> Result<()> {
        Ok(())
    }

    fn symlink(&self, _text: &CStr, _dir: Fd, _name: &CStr) -> Result<()> {
        Ok(())
    }

    fn read_link(&self, _dir: Fd, _name: &CStr, _buf: &mut [u8]) -> Result<usize> {
        Ok(0)
    }

    fn allocate(&self, file: &mut Handle, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        if !keep_size {
            file.size = file.size.max(offset + len);
        }
        Ok(())
    }

    fn punch(&self, _file: &mut Handle, _offset: u64, _len: u64) -> Result<()> {
        Ok(())
    }

    fn copy_range(&self, from: &Handle, from_offset: u64, to: &mut Handle, to_offset: u64, len: u64) -> Result<u64> {
        let n = len.min(from.size.saturating_sub(from_offset));
        to.size = to.size.max(to_offset + n);
        Ok(n)
    }

    #[inline]
    fn send(&self, file: &Handle, offset: u64, _sink: Fd, len: u64) -> Result<u64> {
        Ok(len.min(file.size.saturating_sub(offset)))
    }

    fn change(&self, _dir: Fd, _name: &CStr, _change: &InodeChange) -> Result<u64> {
        Ok(0)
    }

    fn change_open(&self, _file: &Handle, _change: &InodeChange) -> Result<()> {
        Ok(())
    }

    fn access(&self, _dir: Fd, _name: &CStr) -> Result<()> {
        Ok(())
    }

    fn set_xattr(&self, _file: &Handle, _name: &CStr, _value: &[u8]) -> Result<()> {
        Ok(())
    }

    fn get_xattr(&self, _file: &Handle, _name: &CStr, _buf: &mut [u8]) -> Result<usize> {
        Ok(0)
    }

    fn list_xattrs(&self, _file: &Handle, _buf: &mut [u8]) -> Result<usize> {
        Ok(0)
    }

    fn statfs(&self, _dir: Fd) -> Result<()> {
        Ok(())
    }

    fn syncfs(&self, _file: &Handle) -> Result<()> {
        Ok(())
    }

    fn map(&self, _file: &Handle, _len: u64, _write: bool) -> Result<Option<FileMap>> {
        Ok(None)
    }

    fn advise(&self, _file: &Handle, _offset: u64, _len: u64, _advice: Advice) -> Result<()> {
        Ok(())
    }

    fn sync_range(&self, _file: &Handle, _offset: u64, _len: u64, _wait: bool) -> Result<()> {
        Ok(())
    }

    fn lock(&self, _file: &Handle, _offset: u64, _len: u64, _lock: Option<Lock>) -> Result<()> {
        Ok(())
    }
}
