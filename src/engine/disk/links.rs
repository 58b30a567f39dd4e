//! Symbolic links among the files of a set: links left by a `symlink` flowop, and sets whose files are links.

use super::error::{Error, Foreign};
use super::populate::{Mode, Populator};
use wml_os::fd::FileInfo;
use wml_os::name::Name;
use wml_os::{Fd, fd};

impl Populator<'_> {
    /// True if a name is a symbolic link that belongs to the set, such as one left by a `symlink` flowop of an
    /// earlier run. Returns an error when it is neither such a link nor a file of the set.
    pub(super) fn is_link(&self, dir: Fd, i: u64, name: Name, found: &FileInfo) -> Result<bool, Error> {
        match Foreign::of_file(found, self.job.root.marker.links) {
            None => Ok(false),
            Some(Foreign::Link) if super::foreign::is_own_link(dir, name.as_c()) => Ok(true),
            Some(what) => Err(self.foreign(i, what)),
        }
    }

    /// Removes a link or file of the wrong kind, and creates the right one if it is `wanted`. Called for a link in
    /// place of a file, a file in place of a link, and a link that should not exist.
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

    /// Creates a symbolic link to the next file in the same directory.
    #[cold]
    pub(super) fn create_link(&mut self, dir: Fd, i: u64, name: Name) -> Result<(), Error> {
        let to = self.tree.next_name(i);
        fd::symlink_at(to.as_c(), dir, name.as_c()).map_err(|e| self.error(i, "link", e))?;
        self.own.files += 1;
        self.worker.tally.add(1, 0);
        Ok(())
    }
}
