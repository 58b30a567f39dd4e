//! Checks that an operation works only on objects that belong to its file set.
//!
//! A user who can write to a directory of a set can replace a file by another object: a symbolic link, a pipe, a
//! device, or a hard link to a file of theirs. So an open file is checked before its first byte is transferred, and a
//! name before it is removed or renamed: once per file, process and period, outside the time of the operation. An
//! object that does not belong to the set is left unchanged and ends the run.

use super::OpCx;
use super::{OpFailure, Stop, StopReason};
use crate::disk::Foreign;
use crate::exec::slots::FileRef;
use crate::io_engine::Handle;
use std::ffi::CStr;
use wml_os::OFlags;
use wml_os::{Errno, Fd, fd};
use wml_result::FlowopCounter;

impl OpCx<'_> {
    /// Returns the number of the current period, by the last reading of the clock.
    #[inline]
    pub(super) fn period(&self) -> u64 {
        self.account.last >> self.files.period_shift
    }

    /// Checks a file that was just opened, and closes it if it does not belong to the set. The time of the check counts
    /// as the program's own.
    ///
    /// `#[inline(never)]`: it runs once per file and period, while [`OpCx::open`] is inlined into each flowop that
    /// opens files.
    #[inline(never)]
    pub(super) fn verify_file(&mut self, handle: Handle, file: FileRef, flags: OFlags) -> Result<(), Stop> {
        // A file that the call itself has created belongs to the set.
        if flags.contains(OFlags::EXCL) {
            if let Some(dirs) = &self.files.dirs[file.set] {
                dirs.checked_files().insert(file.index, self.period());
            }
            return Ok(());
        }
        self.inspect_file(handle, file, false)
    }

    /// Checks an open file as [`OpCx::verify_file`] does; with `always` even if the file of that name was checked in the
    /// current period.
    fn inspect_file(&mut self, handle: Handle, file: FileRef, always: bool) -> Result<(), Stop> {
        let Some(dirs) = &self.files.dirs[file.set] else { return Ok(()) };
        let period = self.period();
        let start = self.env.clock.raw();
        if always || !dirs.checked_files().contains(file.index, period) {
            let found = fd::file_info(handle.fd);
            let what = found.map(|info| Foreign::of_file(&info, self.files.views[file.set].set.has_links()));
            match what {
                Ok(None) => dirs.checked_files().insert(file.index, period),
                Ok(Some(what)) => {
                    let _ = self.env.engine.close(handle);
                    return Err(self.foreign(what, &self.path(file)));
                }
                Err(errno) => {
                    let _ = self.env.engine.close(handle);
                    return Err(self.failed("checking the file failed", errno, Some(file)));
                }
            }
        }
        if self.io.aio.is_some() {
            // A file opened with `O_NONBLOCK` fails an asynchronous operation on some file systems where the operation
            // would have to wait.
            let _ = fd::set_blocking(handle.fd);
        }
        self.exclude_since(start);
        Ok(())
    }

    /// Counts the time since `start`, in ticks, as the program's own instead of the operation's that is being timed.
    pub(super) fn exclude_since(&mut self, start: u64) {
        let spent = self.env.clock.raw().saturating_sub(start);
        self.account.last += spent;
        self.account.cell.add(FlowopCounter::ToolTime, self.env.clock.ns(0, spent));
    }

    /// Handles a failed open. If the file was to be created and exists (an earlier run of a trusted set has made it),
    /// it is opened as it is, and emptied if it belongs to the set.
    ///
    /// With `O_TRUNC` a foreign file would be empty before the check. A check of the name earlier in the period does
    /// not count: it was of a file that has been removed since.
    #[cold]
    pub(super) fn open_existing(
        &mut self,
        errno: Errno,
        dir: Fd,
        name: &CStr,
        flags: OFlags,
        file: FileRef,
    ) -> Result<Handle, Stop> {
        if errno != Errno::EXIST || !flags.contains(OFlags::EXCL) {
            return Err(self.failed("open failed", errno, Some(file)));
        }
        let empties = flags.contains(OFlags::TRUNC);
        let flags = flags - OFlags::CREATE - OFlags::EXCL - OFlags::TRUNC;
        let nominal = self.files.views[file.set].set.tree.size_of(file.index);
        let mut handle = match self.env.engine.open(dir, name, flags, nominal) {
            Ok(handle) => handle,
            Err(errno) => return Err(self.failed("open failed", errno, Some(file))),
        };
        self.cell().add_calls(1);
        self.inspect_file(handle, file, true)?;
        if empties {
            if let Err(errno) = handle.truncate(0) {
                let _ = self.env.engine.close(handle);
                return Err(self.failed("truncate failed", errno, Some(file)));
            }
            self.cell().add_calls(1);
        }
        Ok(Handle { size: nominal, ..handle })
    }

    /// Checks a name that is about to be removed, renamed or changed, before the time of the operation.
    ///
    /// Split for speed: a name that was checked in the current period takes one comparison inline.
    /// `OpCx::verify_name_slow` makes the system call.
    #[inline]
    pub(crate) fn verify_name(&mut self, file: FileRef, dir: Fd, name: &CStr) -> Result<(), Stop> {
        match &self.files.dirs[file.set] {
            _ if !self.files.has_disk => Ok(()),
            Some(dirs) if !dirs.checked_files().contains(file.index, self.period()) => {
                self.verify_name_slow(file, dir, name)
            }
            _ => Ok(()),
        }
    }

    /// Checks a name that should not exist and is the target of a call that replaces an existing object.
    #[inline]
    pub(crate) fn verify_free_name(&mut self, file: FileRef, dir: Fd, name: &CStr) -> Result<(), Stop> {
        if self.files.dirs[file.set].is_some() { self.verify_name_slow(file, dir, name) } else { Ok(()) }
    }

    /// The slow half of [`OpCx::verify_name`]: looks the name up. `Err` when it belongs to a foreign object.
    #[inline(never)]
    fn verify_name_slow(&mut self, file: FileRef, dir: Fd, name: &CStr) -> Result<(), Stop> {
        match Foreign::of_name(dir, name, self.files.views[file.set].set.has_links()) {
            Ok(Some(what)) => Err(self.foreign(what, &self.path(file))),
            // A missing name is an error of the operation itself.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Returns the refusal if a call on a file of a set failed because of a foreign object at its path. `None` when
    /// there is another cause.
    #[cold]
    pub(super) fn foreign_object(&mut self, file: FileRef, errno: Errno) -> Option<Stop> {
        self.files.dirs[file.set].as_ref()?;
        let set = std::sync::Arc::clone(&self.files.views[file.set].set);
        let at = set.tree.dir_of(file.index);
        let name = set.tree.name(file.index);
        let (what, path) = match self.dir(file.set, at) {
            Ok(dir) => match errno {
                Errno::XDEV => (Foreign::Mount, self.path(file)),
                _ => (Foreign::of_name(dir, name.as_c(), set.has_links()).ok()??, self.path(file)),
            },
            Err(errno) => {
                let path = set.spec.root().join(set.tree.dir_rel_path(at));
                (Foreign::of_directory(&path, errno)?, path.display().to_string())
            }
        };
        Some(self.foreign(what, &path))
    }

    /// Returns the failure of a call on a leaf directory, or the refusal if a foreign object is the cause.
    #[cold]
    pub(crate) fn leaf_failed(&mut self, what: &str, errno: Errno, leaf: FileRef) -> Stop {
        let set = &self.files.views[leaf.set].set;
        let path = set.spec.root().join(set.tree.leafdir_rel_path(leaf.index));
        let found = match errno {
            Errno::EXIST if !std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) => Some(Foreign::Mixed),
            errno => Foreign::of_directory(&path, errno),
        };
        match found.filter(|_| self.files.dirs[leaf.set].is_some()) {
            Some(foreign) => self.foreign(foreign, &path.display().to_string()),
            None => self.failed(what, errno, None),
        }
    }

    /// Returns the refusal of an operation that would have worked on a foreign object, and counts it.
    #[cold]
    fn foreign(&mut self, what: Foreign, path: &str) -> Stop {
        self.cell().error(0);
        self.restamp();
        self.account.last = self.env.clock.raw();
        StopReason::Refused(OpFailure {
            what: format!("refused: this is not part of the file set: {what}"),
            path: Some(path.to_owned()),
            errno: None,
            help: "nothing of it was changed; move it away and run again".to_owned(),
            flowop: None,
        })
        .into()
    }
}
