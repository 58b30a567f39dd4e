//! The `null` engine: every call succeeds at once and does nothing but keep position and size.

use super::{Engine, Handle};
use crate::sys::fd::{Fd, NONE, Result, Stat};
use rustix::fs::{FileType, OFlags};
use std::ffi::CStr;

/// No I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct Null;

/// What can be read between `offset` and the end of the file.
#[inline]
fn rest(file: &Handle, buf: &[u8], offset: u64) -> usize {
    buf.len().min(file.size.saturating_sub(offset) as usize)
}

impl Engine for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn real(&self) -> bool {
        false
    }

    #[inline]
    fn open(&self, _dir: Fd, _name: &CStr, _flags: OFlags, size: u64) -> Result<Handle> {
        Ok(Handle { fd: NONE, position: 0, size })
    }

    #[inline]
    fn close(&self, _file: Handle) {}

    #[inline]
    fn pread(&self, file: &mut Handle, buf: &mut [u8], offset: u64) -> Result<usize> {
        Ok(rest(file, buf, offset))
    }

    #[inline]
    fn pwrite(&self, file: &mut Handle, buf: &[u8], offset: u64) -> Result<usize> {
        file.size = file.size.max(offset + buf.len() as u64);
        Ok(buf.len())
    }

    #[inline]
    fn read(&self, file: &mut Handle, buf: &mut [u8]) -> Result<usize> {
        let n = rest(file, buf, file.position);
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

    fn fdatasync(&self, _file: &mut Handle) -> Result<()> {
        Ok(())
    }

    fn stat_open(&self, file: &Handle) -> Result<Stat> {
        let kind = FileType::RegularFile;
        Ok(Stat { kind, size: file.size, blocks: 0, device: 0, special: 0, inode: 0, links: 1 })
    }

    #[inline]
    fn stat(&self, _dir: Fd, _name: &CStr) -> Result<()> {
        Ok(())
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

    fn list(&self, _dir: Fd, _name: &CStr, _buf: &mut [u8]) -> Result<(u64, u64)> {
        Ok((0, 0))
    }

    fn no_readahead(&self, _file: &Handle) -> Result<()> {
        Ok(())
    }
}
