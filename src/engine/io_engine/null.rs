//! The `null` engine: every call succeeds immediately and only updates the position and size of its file.

use super::{AsyncChoice, Engine, Handle};
use std::ffi::CStr;
use std::io::{IoSlice, IoSliceMut};
use wml_os::OFlags;
use wml_os::fd::{Fd, NONE, Result};

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

    fn append(&self, file: &mut Handle, buf: &[u8]) -> Result<(usize, u64)> {
        self.seek_end(file)?;
        Ok((self.write(file, buf)?, 1))
    }

    fn seek_end(&self, file: &mut Handle) -> Result<()> {
        file.position = file.size;
        Ok(())
    }

    fn readv(&self, file: &mut Handle, bufs: &mut [IoSliceMut<'_>], offset: Option<u64>) -> Result<usize> {
        let wanted: usize = bufs.iter().map(|buf| buf.len()).sum();
        let n = wanted.min(file.size.saturating_sub(offset.unwrap_or(file.position)) as usize);
        file.position += if offset.is_none() { n as u64 } else { 0 };
        Ok(n)
    }

    fn writev(&self, file: &mut Handle, bufs: &[IoSlice<'_>], offset: Option<u64>) -> Result<usize> {
        let n: usize = bufs.iter().map(|buf| buf.len()).sum();
        file.position += if offset.is_none() { n as u64 } else { 0 };
        file.size = file.size.max(offset.map_or(file.position, |offset| offset + n as u64));
        Ok(n)
    }

    fn list(&self, _dir: Fd, _name: &CStr, _buf: &mut [u8], _may_go_on: &dyn Fn() -> bool) -> Result<(u64, u64)> {
        Ok((0, 0))
    }

    fn list_plus(&self, _dir: Fd, _name: &CStr, _buf: &mut [u8], _may_go_on: &dyn Fn() -> bool) -> Result<(u64, u64)> {
        Ok((0, 0))
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
}
