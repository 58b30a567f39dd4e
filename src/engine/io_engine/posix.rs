//! The `posix` and `uring` engines: each method makes one system call, except directory listings. They differ only in
//! the execution of asynchronous I/O, which is in `exec::aio`.

use super::{AsyncChoice, Engine, Handle};
use std::ffi::CStr;
use std::io::{IoSlice, IoSliceMut};
use wml_os::fd::{self, Fd, Result};
use wml_os::{Errno, Mode, OFlags, SeekFrom, range, vectored};

/// The engine of system calls, with the way it is to execute asynchronous I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posix(pub(super) AsyncChoice);

impl Engine for Posix {
    fn name(&self) -> &'static str {
        if self.0 == AsyncChoice::Ring { "uring" } else { "posix" }
    }

    fn asynchronous(&self) -> AsyncChoice {
        self.0
    }

    fn real(&self) -> bool {
        true
    }

    #[inline]
    fn open(&self, dir: Fd, name: &CStr, flags: OFlags, size: u64) -> Result<Handle> {
        let fd = if flags.contains(OFlags::CREATE) {
            fd::open_at(dir, name, flags, Mode::from_raw_mode(0o666))?
        } else {
            fd::open_existing(dir, name, flags)?
        };
        Ok(Handle { fd, position: 0, cursor: 0, size })
    }

    #[inline]
    fn close(&self, file: Handle) -> Result<()> {
        fd::close_checked(file.fd)
    }

    #[inline]
    fn pread(&self, file: &mut Handle, buf: &mut [u8], offset: u64) -> Result<usize> {
        fd::pread(file.fd, buf, offset)
    }

    #[inline]
    fn pwrite(&self, file: &mut Handle, buf: &[u8], offset: u64) -> Result<usize> {
        let n = fd::pwrite(file.fd, buf, offset)?;
        file.size = file.size.max(offset + n as u64);
        Ok(n)
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

    #[inline]
    fn append(&self, file: &mut Handle, buf: &[u8]) -> Result<(usize, u64)> {
        match vectored::append(file.fd, buf) {
            Ok(n) => {
                // The call does not return where it wrote. Right as long as nobody else appends to the file.
                file.size += n as u64;
                file.position = file.size;
                Ok((n, 1))
            }
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.seek_end(file)?;
                Ok((self.write(file, buf)?, 3))
            }
            Err(errno) => Err(errno),
        }
    }

    #[inline]
    fn seek_end(&self, file: &mut Handle) -> Result<()> {
        file.position = fd::seek(file.fd, SeekFrom::End(0))?;
        Ok(())
    }

    fn readv(&self, file: &mut Handle, bufs: &mut [IoSliceMut<'_>], offset: Option<u64>) -> Result<usize> {
        let Some(offset) = offset else {
            let n = vectored::readv(file.fd, bufs)?;
            file.position += n as u64;
            return Ok(n);
        };
        vectored::preadv(file.fd, bufs, offset)
    }

    fn writev(&self, file: &mut Handle, bufs: &[IoSlice<'_>], offset: Option<u64>) -> Result<usize> {
        let (n, end) = match offset {
            Some(offset) => {
                let n = vectored::pwritev(file.fd, bufs, offset)?;
                (n, offset + n as u64)
            }
            None => {
                let n = vectored::writev(file.fd, bufs)?;
                file.position += n as u64;
                (n, file.position)
            }
        };
        file.size = file.size.max(end);
        Ok(n)
    }

    fn list(&self, dir: Fd, name: &CStr, buf: &mut [u8], may_go_on: &dyn Fn() -> bool) -> Result<(u64, u64)> {
        let mut entries = 0_u64;
        list(dir, name, buf, |_, _| {
            entries += 1;
            !entries.is_multiple_of(CHECK_ENTRIES) || may_go_on()
        })
    }

    fn list_plus(&self, dir: Fd, name: &CStr, buf: &mut [u8], may_go_on: &dyn Fn() -> bool) -> Result<(u64, u64)> {
        let mut stats = 0;
        let (bytes, calls) = list(dir, name, buf, |opened, entry| {
            stats += 1;
            // Another thread may have removed the entry since it was read: that is not an error of the listing.
            let _ = fd::stat_at(opened, entry);
            may_go_on()
        })?;
        Ok((bytes, calls + stats))
    }

    fn copy_range(&self, from: &Handle, from_offset: u64, to: &mut Handle, to_offset: u64, len: u64) -> Result<u64> {
        let n = range::copy_range(from.fd, from_offset, to.fd, to_offset, len as usize)? as u64;
        to.size = to.size.max(to_offset + n);
        Ok(n)
    }

    #[inline]
    fn send(&self, file: &Handle, offset: u64, sink: Fd, len: u64) -> Result<u64> {
        range::send(file.fd, offset, sink, len as usize).map(|n| n as u64)
    }
}

/// Number of entries of a listing between two checks whether it may go on. An entry takes less time than a check,
/// unless its attributes are read.
const CHECK_ENTRIES: u64 = 64;

/// Reads a directory and passes its descriptor and each name to `each`, until that returns false. Returns the bytes of
/// its entries and the number of calls.
fn list(dir: Fd, name: &CStr, buf: &mut [u8], mut each: impl FnMut(Fd, &CStr) -> bool) -> Result<(u64, u64)> {
    let opened = fd::open_at(dir, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    let mut bytes = 0;
    let calls = fd::list_dir(opened, buf, |entry, _| {
        bytes += super::entry_size(entry);
        each(opened, entry)
    });
    fd::close(opened);
    calls.map(|calls| (bytes, calls + 2))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{CHECK_ENTRIES, Posix};
    use crate::io_engine::{AsyncChoice, Engine, Handle};
    use std::cell::Cell;
    use std::os::fd::AsRawFd;

    const ENGINE: Posix = Posix(AsyncChoice::Pool);

    #[test]
    fn a_write_at_an_offset_extends_the_known_size() {
        let file = tempfile::tempfile().unwrap();
        let mut handle = Handle { fd: file.as_raw_fd(), position: 0, cursor: 0, size: 100 };
        assert_eq!(ENGINE.pwrite(&mut handle, &[1; 10], 50), Ok(10));
        assert_eq!((handle.size, handle.position), (100, 0));
        assert_eq!(ENGINE.pwrite(&mut handle, &[1; 10], 200), Ok(10));
        assert_eq!((handle.size, file.metadata().unwrap().len()), (210, 210));
    }

    #[test]
    fn a_listing_ends_when_it_may_not_go_on() {
        const FILES: u64 = 300;
        let dir = tempfile::tempdir().unwrap();
        (0..FILES).for_each(|i| drop(std::fs::File::create(dir.path().join(i.to_string())).unwrap()));
        let opened = std::fs::File::open(dir.path()).unwrap();
        let mut buf = vec![0; 32 << 10];
        let mut list = |plus: bool, checks: u64| {
            let left = Cell::new(checks);
            let may_go_on = || {
                left.set(left.get() - 1);
                left.get() > 0
            };
            let fd = opened.as_raw_fd();
            let listed = if plus {
                ENGINE.list_plus(fd, c".", &mut buf, &may_go_on)
            } else {
                ENGINE.list(fd, c".", &mut buf, &may_go_on)
            };
            listed.unwrap().0
        };
        // With names of one to three digits, an entry has 280 to 282 bytes.
        let entries = |bytes: u64| bytes / 280;
        assert_eq!(entries(list(false, 1)), CHECK_ENTRIES);
        assert_eq!(entries(list(true, 5)), 5);
        assert_eq!(entries(list(false, u64::MAX)), entries(list(true, u64::MAX)));
        assert!(entries(list(true, u64::MAX)) >= FILES);
    }
}
