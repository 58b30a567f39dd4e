//! Moves: picking the file to rename and the name that it gets, possibly in another file set, and the call.
//!
//! A move needs two files in two states at once. A thread that waits for one of them never holds the other, so that two
//! threads cannot wait for each other: it waits for one, tries to take the other, and if that is not possible at once,
//! releases the first and waits for the other. Each wait is for a single state of a single set and follows the rules of
//! all picks, so a thread that can only wait is found to be done or stuck as for any other flowop.
//!
//! No file is lost or counted twice: both files are held, which no other thread can do, from here to the end of the
//! call, and after it each set's state changes by one file.

use super::pick::{PartRotation, PickAttempt, PickBy};
use super::slots::FileRef;
use super::{OpCx, Stop, UnitKind};
use crate::fileset::{How, Picked, Want};
use crate::io_engine;
use std::ffi::CStr;
use wml_os::{Errno, Fd, fd};

/// The file to move.
#[derive(Clone, Copy, Debug)]
pub enum MoveSource {
    /// A file of this set, picked by this rule.
    Any(usize, PickBy),
    File(FileRef),
}

/// How a call changes names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameUpdate {
    /// The file gets a further name, which is free.
    Link,
    /// The file gets a free name.
    Rename,
    /// The file gets the name of another file, which is replaced.
    Replace,
}

/// The end of a call that changes names.
#[derive(Debug)]
pub struct Renamed {
    /// Whether the names have changed, which they also have if the call ended after the deadline.
    pub is_changed: bool,
    /// The end of the operation.
    pub ended: Result<(), Stop>,
}

impl OpCx<'_> {
    /// Picks and holds the file to move and the target in the set `to`: a name that does not exist, or with
    /// `Want::Existing` a file to replace. Returns the file and the target; `None` when the file to move was a certain
    /// one that another thread has moved or removed.
    ///
    /// A set that is spread over several directories may be on several file systems: the target is in the directory of
    /// the same position in the list. Both sets must have the same number of directories.
    pub(crate) fn pick_move(
        &mut self,
        source: MoveSource,
        to: usize,
        want: Want,
    ) -> Result<Option<(FileRef, FileRef)>, Stop> {
        self.restamp();
        loop {
            let from = match source {
                MoveSource::Any(set, by) => self.pick(set, Want::Existing, by, true)?,
                MoveSource::File(file) if self.hold_existing(file)? => file,
                MoveSource::File(_) => return Ok(None),
            };
            let target = to + (from.set - self.files.views[from.set].first);
            if let PickAttempt::Found(target) = self.try_part(target, want, PickBy::Rotate, true) {
                return Ok(Some((from, target)));
            }
            self.release(from);
            let alone = PartRotation { first: target, parts: 1, from: 0 };
            let target = self.seek(alone, UnitKind::File, |cx, part| cx.try_part(part, want, PickBy::Rotate, true))?;
            if let Some(from) = self.try_source(source, from.set) {
                return Ok(Some((from, target)));
            }
            self.release(target);
            if self.env.gate.is_stopped() || self.expired() {
                return Err(Stop::over());
            }
        }
    }

    /// Holds the file to move if that is possible without waiting; of a picked one, any in this part of its set.
    fn try_source(&mut self, source: MoveSource, part: usize) -> Option<FileRef> {
        match source {
            MoveSource::Any(set, by) => {
                let (_, by) = self.rotation(set, by);
                match self.try_part(part, Want::Existing, by, true) {
                    PickAttempt::Found(file) => Some(file),
                    PickAttempt::Busy | PickAttempt::Missing(_) => None,
                }
            }
            MoveSource::File(file) => {
                let state = &self.files.views[file.set].set.state;
                match state.pick(Want::Existing, How::Index(file.index), true) {
                    Picked::File(index) if index == file.index => Some(file),
                    Picked::File(other) => {
                        state.release(other);
                        None
                    }
                    Picked::AllBusy | Picked::None => None,
                }
            }
        }
    }

    /// Gives a picked file the name of another picked one by one call, which is the operation. Before it, checks that
    /// the names belong to the file set. `failed` makes the failure of the call.
    pub(crate) fn rename_verified(
        &mut self,
        change: NameUpdate,
        from: FileRef,
        to: FileRef,
        failed: impl FnOnce(&mut Self, Errno) -> Stop,
    ) -> Renamed {
        let unchanged = |stop| Renamed { is_changed: false, ended: Err(stop) };
        let old = self.files.views[from.set].set.tree.name(from.index);
        let new = self.files.views[to.set].set.tree.name(to.index);
        let dirs = match self.dirs_of(from, to) {
            Ok(dirs) => dirs,
            Err(stop) => return unchanged(stop),
        };
        let verified = self.verify_name(from, dirs.0, old.as_c()).and_then(|()| match change {
            NameUpdate::Link => Ok(()),
            NameUpdate::Rename => self.verify_free_name(to, dirs.1, new.as_c()),
            NameUpdate::Replace => self.verify_name(to, dirs.1, new.as_c()),
        });
        if let Err(stop) = verified {
            self.close_dirs_of(from, to, dirs);
            return unchanged(stop);
        }
        self.begin();
        let done = io_engine::call(dirs.0, |dir| match change {
            NameUpdate::Link => fd::link_at(dir, old.as_c(), dirs.1, new.as_c()),
            NameUpdate::Rename | NameUpdate::Replace => fd::rename_at(dir, old.as_c(), dirs.1, new.as_c()),
        });
        let done = done.map(|()| {
            let ended = self.end(0);
            match change {
                NameUpdate::Replace => self.remove_old_name(from, dirs.0, old.as_c()).and(ended),
                NameUpdate::Link | NameUpdate::Rename => ended,
            }
        });
        self.close_dirs_of(from, to, dirs);
        match done {
            Ok(ended) => Renamed { is_changed: true, ended },
            Err(errno) => unchanged(failed(self, errno)),
        }
    }

    /// Returns the descriptors of the directories of two files, both valid at the same time. To be released with
    /// [`OpCx::close_dirs_of`].
    fn dirs_of(&mut self, one: FileRef, other: FileRef) -> Result<(Fd, Fd), Stop> {
        let dir = |cx: &Self, file: FileRef| cx.files.views[file.set].set.tree.dir_of(file.index);
        let (first, second) = (dir(self, one), dir(self, other));
        let dirs = if one.set == other.set {
            self.dir_pair(one.set, first, second)
        } else {
            // Each set has its own open directories, so that opening the second does not close the first.
            self.dir(one.set, first).and_then(|first| Ok((first, self.dir(other.set, second)?)))
        };
        dirs.map_err(|errno| self.dir_failed(errno, Some(one)))
    }

    /// Removes the old name of a file that was renamed over an existing one, in a set whose files may have several
    /// names: where both are names of one file, `rename` does nothing and leaves both. To be called when the operation
    /// has ended: this is a further call, and not part of its time.
    fn remove_old_name(&mut self, file: FileRef, dir: Fd, name: &CStr) -> Result<(), Stop> {
        if !self.files.views[file.set].set.has_links() {
            return Ok(());
        }
        self.cell().add_calls(1);
        match io_engine::call(dir, |dir| fd::unlink_at(dir, name)) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.failed("removing the old name failed", errno, Some(file))),
        }
    }

    /// Releases the directories of two files after the calls on them.
    fn close_dirs_of(&self, one: FileRef, other: FileRef, dirs: (Fd, Fd)) {
        if one.set == other.set {
            self.close_pair(one.set, dirs);
        }
    }
}
