//! Whether what an operation works on is the set's own.
//!
//! Whoever else may write into a set's directory can put something of theirs in the place of a file: a link, a pipe, a device,
//! another name of a file that they want to keep. An open file is looked at before the first byte of it moves, and a name before
//! it is removed or moved: once a file, process and period, and not within the time of the operation. What is not the set's own
//! is left as it is, and ends the run.

use super::OpCx;
use super::{OpFailure, Stop, StopReason};
use crate::disk::Foreign;
use crate::engine::Handle;
use crate::exec::slots::FileRef;
use crate::os::OFlags;
use crate::os::{Errno, Fd, fd};
use std::ffi::CStr;

impl OpCx<'_> {
    /// The present period, by the last reading of the clock.
    #[inline]
    pub(super) fn period(&self) -> u64 {
        self.account.last >> self.files.period_shift
    }

    /// Looks at a file that was just opened; closes it if it is not the set's own. The time that takes is the tool's.
    #[inline(never)]
    pub(super) fn own_file(&mut self, handle: Handle, file: FileRef, flags: OFlags) -> Result<(), Stop> {
        let Some(dirs) = &self.files.dirs[file.set] else { return Ok(()) };
        let period = self.period();
        // What the call has made is the set's own.
        if flags.contains(OFlags::EXCL) {
            dirs.looked().note(file.index, period);
            return Ok(());
        }
        let start = self.env.clock.raw();
        if !dirs.looked().has(file.index, period) {
            let found = fd::file_info(handle.fd);
            let what = found.map(|info| Foreign::of_file(&info, self.files.views[file.set].set.has_links()));
            match what {
                Ok(None) => dirs.looked().note(file.index, period),
                Ok(Some(what)) => {
                    let _ = self.env.engine.close(handle);
                    return Err(self.foreign(what, &self.path(file)));
                }
                Err(errno) => {
                    let _ = self.env.engine.close(handle);
                    return Err(self.failed("looking at the file failed", errno, Some(file)));
                }
            }
        }
        if self.io.aio.is_some() {
            // Some file systems fail an asynchronous operation on a file that must not wait, where it would have to.
            let _ = fd::set_blocking(handle.fd);
        }
        let spent = self.env.clock.raw().saturating_sub(start);
        self.account.last += spent;
        self.account.cell.add_tool_time(self.env.clock.ns(0, spent));
        Ok(())
    }

    /// A file could not be opened. One that was to be new and is there (an earlier run of a trusted set has made it) is opened as
    /// it is, if it is the set's own.
    #[cold]
    pub(super) fn open_found(
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
        let flags = flags - OFlags::CREATE - OFlags::EXCL;
        let nominal = self.files.views[file.set].set.tree.size_of(file.index);
        match self.env.engine.open(dir, name, flags, nominal) {
            Ok(handle) => {
                self.cell().add_calls(1);
                self.own_file(handle, file, flags)?;
                Ok(handle)
            }
            Err(errno) => Err(self.failed("open failed", errno, Some(file))),
        }
    }

    /// Looks at a name that is to be removed, moved or changed. Before the time of the operation.
    #[inline]
    pub fn own_name(&mut self, file: FileRef, dir: Fd, name: &CStr) -> Result<(), Stop> {
        match &self.files.dirs[file.set] {
            _ if !self.files.has_disk => Ok(()),
            Some(dirs) if !dirs.looked().has(file.index, self.period()) => self.look_at_name(file, dir, name),
            _ => Ok(()),
        }
    }

    /// The same of one that ought to be free, and is taken by a call that replaces what is there.
    #[inline]
    pub fn free_name(&mut self, file: FileRef, dir: Fd, name: &CStr) -> Result<(), Stop> {
        if self.files.dirs[file.set].is_some() { self.look_at_name(file, dir, name) } else { Ok(()) }
    }

    #[inline(never)]
    fn look_at_name(&mut self, file: FileRef, dir: Fd, name: &CStr) -> Result<(), Stop> {
        match Foreign::of_name(dir, name, self.files.views[file.set].set.has_links()) {
            Ok(Some(what)) => Err(self.foreign(what, &self.path(file))),
            // That it is not there is for the operation to find.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// A call on a file of a set failed: the refusal, if that is because something foreign stands in its place.
    #[cold]
    pub(super) fn foreign_in_the_way(&mut self, file: FileRef, errno: Errno) -> Option<Stop> {
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

    /// The same of a leaf directory.
    #[cold]
    pub fn leaf_failed(&mut self, what: &str, errno: Errno, leaf: FileRef) -> Stop {
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

    /// The operation would have worked on something that is not the set's own.
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
            of: None,
        })
        .into()
    }
}
