//! The `posix` engine: each call is one system call.

use super::{Engine, Handle};
use crate::sys::fd::{self, Fd, Result, Stat};
use rustix::fs::{Advice, Mode, OFlags, SeekFrom};
use std::ffi::CStr;

/// System calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posix;

impl Engine for Posix {
    fn name(&self) -> &'static str {
        "posix"
    }

    fn real(&self) -> bool {
        true
    }

    #[inline]
    fn open(&self, dir: Fd, name: &CStr, flags: OFlags, size: u64) -> Result<Handle> {
        let fd = fd::open_at(dir, name, flags, Mode::from_raw_mode(0o666))?;
        Ok(Handle { fd, position: 0, size })
    }

    #[inline]
    fn close(&self, file: Handle) {
        fd::close(file.fd);
    }

    #[inline]
    fn pread(&self, file: &mut Handle, buf: &mut [u8], offset: u64) -> Result<usize> {
        fd::pread(file.fd, buf, offset)
    }

    #[inline]
    fn pwrite(&self, file: &mut Handle, buf: &[u8], offset: u64) -> Result<usize> {
        fd::pwrite(file.fd, buf, offset)
    }

    #[inline]
    fn read(&self, file: &mut Handle, buf: &mut [u8]) -> Result<usize> {
        let n = fd::read(file.fd, buf)?;
        file.position += n as u64;
        Ok(n)
    }

    #[inline]
    fn write(&self, file: &mut Handle, buf: &[u8]) -> Result<usize> {
        let n = fd::write(file.fd, buf)?;
        file.position += n as u64;
        file.size = file.size.max(file.position);
        Ok(n)
    }

    fn seek(&self, file: &mut Handle, offset: u64) -> Result<()> {
        file.position = fd::seek(file.fd, SeekFrom::Start(offset))?;
        Ok(())
    }

    #[inline]
    fn seek_end(&self, file: &mut Handle) -> Result<()> {
        file.position = fd::seek(file.fd, SeekFrom::End(0))?;
        Ok(())
    }

    fn truncate(&self, file: &mut Handle, size: u64) -> Result<()> {
        fd::ftruncate(file.fd, size)?;
        file.size = size;
        Ok(())
    }

    fn fsync(&self, file: &mut Handle) -> Result<()> {
        fd::fsync(file.fd)
    }

    fn fdatasync(&self, file: &mut Handle) -> Result<()> {
        fd::fdatasync(file.fd)
    }

    fn stat_open(&self, file: &Handle) -> Result<Stat> {
        fd::fstat(file.fd)
    }

    #[inline]
    fn stat(&self, dir: Fd, name: &CStr) -> Result<()> {
        fd::stat_at(dir, name).map(drop)
    }

    fn unlink(&self, dir: Fd, name: &CStr) -> Result<()> {
        fd::unlink_at(dir, name)
    }

    fn mkdir(&self, dir: Fd, name: &CStr) -> Result<()> {
        fd::mkdir_at(dir, name, Mode::from_raw_mode(0o755))
    }

    fn rmdir(&self, dir: Fd, name: &CStr) -> Result<()> {
        fd::rmdir_at(dir, name)
    }

    fn list(&self, dir: Fd, name: &CStr, buf: &mut [u8]) -> Result<(u64, u64)> {
        // As in Filebench: the names and the fixed part of each entry, without its terminator.
        const FIXED: u64 = 279;
        let opened = fd::open_at(dir, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut bytes = 0;
        let calls = fd::list_dir(opened, buf, |entry, _| {
            bytes += entry.to_bytes().len() as u64 + FIXED;
            true
        });
        fd::close(opened);
        calls.map(|calls| (bytes, calls + 2))
    }

    fn no_readahead(&self, file: &Handle) -> Result<()> {
        fd::advise(file.fd, Advice::Random)
    }
}
