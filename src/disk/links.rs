//! Symbolic links among the files of a set: those that a `symlink` flowop left, and the sets whose files are links.

use super::error::{Error, Foreign};
use super::populate::{Mode, Populator};
use crate::os::fd::FileInfo;
use crate::os::name::Name;
use crate::os::{Fd, fd};

impl Populator<'_> {
    /// Whether a name is a symbolic link of ours, left by a `symlink` flowop of an earlier run. What is neither that
    /// nor a file is somebody's.
    pub(super) fn is_link(&self, dir: Fd, i: u64, name: Name, found: &FileInfo) -> Result<bool, Error> {
        match Foreign::of_file(found, self.job.root.marker.links) {
            None => Ok(false),
            Some(Foreign::Link) if super::scan::is_own_link(dir, name.as_c()) => Ok(true),
            Some(what) => Err(self.foreign(i, what)),
        }
    }

    /// A link of ours stands where a file ought to be, a file where a link ought to be, or either where nothing ought
    /// to be.
    #[cold]
    pub(super) fn replace(&mut self, dir: Fd, i: u64, name: Name, wanted: bool) -> Result<(), Error> {
        self.own.removed += 1;
        if self.job.mode == Mode::DryRun {
            if wanted {
                self.own.files += 1;
                self.own.bytes = self.own.bytes.saturating_add(self.tree.size_at_start(i));
            }
            return Ok(());
        }
        fd::unlink_at(dir, name.as_c()).map_err(|e| self.error(i, "remove", e))?;
        if wanted { self.create(dir, i, name) } else { Ok(()) }
    }

    /// A new symbolic link, to the next file of its directory.
    #[cold]
    pub(super) fn create_link(&mut self, dir: Fd, i: u64, name: Name) -> Result<(), Error> {
        let to = self.tree.name(self.tree.next_sibling(i));
        fd::symlink_at(to.as_c(), dir, name.as_c()).map_err(|e| self.error(i, "link", e))?;
        self.own.files += 1;
        self.worker.tally.add(1, 0);
        Ok(())
    }
}
