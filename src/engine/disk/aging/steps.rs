//! The steps of an aging on the disk.
//!
//! Every change can be repeated: a step that was interrupted is done again from its start, and leads to the same names,
//! sizes and contents. Files are opened relative to their directories, and checked before they are changed or removed.

use crate::disk::dirs::{Dirs, ThreadDirs};
use crate::disk::error::{Error, Foreign};
use crate::disk::prepare::Progress;
use crate::disk::root::Root;
use crate::disk::thread_pool::{self, Worker};
use crate::disk::walk::{self, AT_DIR, CloseOnDrop};
use crate::disk::{Fileset, populate};
use crate::fileset::aging::{
    AgedFile, AgingAction, AgingSequence, AgingStep, AgingWork, FileChange, PARALLEL, TreeVersion,
};
use crate::fileset::content::{self, BLOCK, Stamper};
use crate::random::mix;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use wml_os::{Errno, Fd, OFlags, SeekFrom, fd};

/// Bytes per write: a multiple of the block size of contents.
const CHUNK: u64 = 1 << 20;
/// Open directories that a worker keeps.
const OPEN_DIRS: usize = 64;
/// Identifier of the random numbers of contents.
const FILL: u64 = 0xa6ec;

/// The tree to age, and how its files are accessed.
pub(super) struct Locations<'a> {
    pub(super) set: &'a Arc<Fileset>,
    pub(super) root: &'a Root,
    pub(super) sequence: &'a AgingSequence,
    pub(super) stop: &'a AtomicBool,
    /// Random bytes, from which contents are made.
    data: Vec<u8>,
}

/// A worker of a step.
pub(super) struct Ager<'a> {
    at: &'a Locations<'a>,
    pub(super) worker: &'a Worker<'a>,
    dirs: &'a Dirs,
    own: ThreadDirs,
    /// Data to write.
    buf: Vec<u8>,
}

impl<'a> Locations<'a> {
    pub(super) fn new(
        set: &'a Arc<Fileset>,
        root: &'a Root,
        sequence: &'a AgingSequence,
        stop: &'a AtomicBool,
    ) -> Self {
        let mut data = vec![0; CHUNK as usize];
        content::fill(&mut data, mix(sequence.parameters().seed, FILL), 0.0);
        Self { set, root, sequence, stop, data }
    }

    /// Does a step. `done` is the work of the steps before it in this process. Returns the work including this step.
    pub(super) fn perform(
        &self,
        number: usize,
        step: &AgingStep,
        done: AgingWork,
        progress: &dyn Progress,
    ) -> Result<AgingWork, Error> {
        let (before, after) = (self.sequence.versions_before(number), self.sequence.versions_before(number + 1));
        let next = AtomicUsize::new(0);
        let threads = if step.action == AgingAction::Fill { 1 } else { step.trees.len().min(PARALLEL as usize) };
        let watch = |files, bytes| progress.advanced(done.files + files, done.bytes + bytes);
        let work = |ager: &mut Ager<'_>| {
            if step.action == AgingAction::Fill {
                return ager.fill();
            }
            while let Some(&tree) = step.trees.get(next.fetch_add(1, Ordering::Relaxed)) {
                ager.tree(tree, before[tree as usize], after[tree as usize])?;
            }
            Ok(())
        };
        let (files, bytes) = self.in_threads(threads, watch, work)?;
        if step.action == AgingAction::Remove {
            step.trees.iter().try_for_each(|&tree| self.remove_dirs(tree))?;
        }
        Ok(AgingWork { files: done.files + files, bytes: done.bytes + bytes })
    }

    /// Calls `work` in one thread, with progress. Returns its result.
    pub(super) fn in_thread<T: Send>(
        &self,
        progress: &dyn Progress,
        work: impl Fn(&mut Ager<'_>) -> Result<T, Error> + Sync,
    ) -> Result<T, Error> {
        let result = Mutex::new(None);
        let watch = |files, bytes| progress.advanced(files, bytes);
        self.in_threads(1, watch, |ager| {
            let found = work(ager)?;
            *result.lock() = Some(found);
            Ok(())
        })?;
        result.into_inner().ok_or_else(|| Error::Stopped { set: self.root.set.clone() })
    }

    /// Calls `work` in each of several threads. Returns the number of files and bytes that they counted.
    fn in_threads(
        &self,
        threads: usize,
        watch: impl FnMut(u64, u64),
        work: impl Fn(&mut Ager<'_>) -> Result<(), Error> + Sync,
    ) -> Result<(u64, u64), Error> {
        // Without a shared table, so that no directory stays open that a later step removes.
        let open = Dirs::open_all(std::slice::from_ref(self.set), 0)?;
        let done = match open.first() {
            Some(dirs) => thread_pool::run(&self.root.set, threads, self.stop, watch, |worker| {
                let own = ThreadDirs::new(OPEN_DIRS);
                let mut ager = Ager { at: self, worker, dirs, own, buf: Vec::new() };
                let done = work(&mut ager);
                ager.own.close_all();
                done
            }),
            None => Ok((0, 0)),
        };
        open.iter().for_each(Dirs::close_all);
        done
    }

    /// Removes the directories of a source tree, as far as they are empty: a directory may also have files of the next
    /// source tree.
    fn remove_dirs(&self, tree: u32) -> Result<(), Error> {
        let (all, files) = (&self.set.tree, self.sequence.files_of(tree));
        let (first, last) = (all.dir_of(files.start), all.dir_of(files.end - 1));
        // Directories follow their parents. The parents of the first one may be empty too.
        let mut dirs: Vec<u64> = (first..=last).collect();
        dirs.extend(std::iter::successors(Some(first), |&dir| Some(all.parent(dir)).filter(|&p| p != 0)));
        dirs.sort_unstable();
        dirs.dedup();
        for dir in dirs.into_iter().rev().filter(|&dir| dir != 0) {
            let parent = all.parent(dir);
            let removed = walk::open_chain(self.root.fd, &all.dir_names(parent), AT_DIR, self.root.device)
                .map(CloseOnDrop)
                .and_then(|parent| fd::rmdir_at(parent.0, all.dir_name(dir).as_c()));
            match removed {
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(e) => return Err(self.dir_error(dir, "remove", e)),
            }
        }
        Ok(())
    }

    fn dir_error(&self, dir: u64, call: &'static str, e: Errno) -> Error {
        Error::at_directory(&self.root.set, call, self.root.path.join(self.set.tree.dir_rel_path(dir)), e)
    }
}

impl Ager<'_> {
    /// Changes the files of a source tree from one version to another.
    fn tree(&mut self, tree: u32, before: Option<TreeVersion>, after: Option<TreeVersion>) -> Result<(), Error> {
        for i in self.at.sequence.files_of(tree) {
            if self.worker.halted().is_break() {
                break;
            }
            match self.at.sequence.change(i, before, after) {
                FileChange::Unchanged => {}
                FileChange::Written(file) => self.write_new(i, file)?,
                FileChange::Grown { from, file } => self.grow(i, from, file)?,
                FileChange::Removed => self.remove(i)?,
            }
        }
        Ok(())
    }

    /// Creates the files of the last step.
    fn fill(&mut self) -> Result<(), Error> {
        for i in self.at.sequence.fill_files() {
            if self.worker.halted().is_break() {
                break;
            }
            self.write_new(i, self.at.sequence.fill_file(i))?;
        }
        Ok(())
    }

    /// Creates a file, with its directory. An existing file is replaced by a new one, as version control systems do.
    fn write_new(&mut self, i: u64, file: AgedFile) -> Result<(), Error> {
        let (dir, name) = (self.dir_of(i)?, self.at.set.tree.name(i));
        let create = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            fd::open_at(dir, name.as_c(), flags, populate::FILE_MODE)
        };
        let fd = match create() {
            Err(Errno::EXIST) => {
                self.unlink(dir, i)?;
                create()
            }
            created => created,
        };
        let fd = fd.map_err(|e| self.file_error(i, "create", e))?;
        self.write(fd, i, file.content, 0..file.size)
    }

    /// Extends a file. A file of an unexpected size is written anew.
    fn grow(&mut self, i: u64, from: u64, file: AgedFile) -> Result<(), Error> {
        let Some(fd) = self.open_if_present(i, OFlags::WRONLY)? else { return self.write_new(i, file) };
        let size = fd::file_info(fd).map(|info| info.size);
        match size.and_then(|size| {
            let expected = (from..=file.size).contains(&size);
            fd::seek(fd, SeekFrom::Start(from)).map(|_| expected)
        }) {
            Ok(true) => self.write(fd, i, file.content, from..file.size),
            Ok(false) => {
                fd::close(fd);
                self.write_new(i, file)
            }
            Err(e) => {
                fd::close(fd);
                Err(self.file_error(i, "extend", e))
            }
        }
    }

    /// Removes a file, if it exists.
    fn remove(&mut self, i: u64) -> Result<(), Error> {
        match self.existing_dir_of(i)? {
            Some(dir) => self.unlink(dir, i)?,
            None => return Ok(()),
        }
        self.worker.tally.add(1, 0);
        Ok(())
    }

    /// Removes a name, after it was checked. A name that does not exist is not an error.
    fn unlink(&self, dir: Fd, i: u64) -> Result<(), Error> {
        let name = self.at.set.tree.name(i);
        match Foreign::of_name(dir, name.as_c(), false) {
            Ok(None) => {}
            Ok(Some(what)) => return Err(self.foreign(i, what)),
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => return Err(self.file_error(i, "stat", e)),
        }
        match fd::unlink_at(dir, name.as_c()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(self.file_error(i, "remove", e)),
        }
    }

    /// Writes a range of a content at the position of an open file, and closes it.
    fn write(&mut self, fd: Fd, i: u64, content: u64, range: Range<u64>) -> Result<(), Error> {
        let bytes = range.end - range.start;
        let written = self.write_range(fd, content, range);
        let closed = fd::close_checked(fd);
        written.map_err(|e| self.file_error(i, "write", e))?;
        closed.map_err(|e| self.file_error(i, "close", e))?;
        self.worker.tally.add(1, bytes);
        Ok(())
    }

    /// Writes a range of a content. Block `n` of a content has stamp `n`, wherever the range begins. When the worker
    /// must end, the file remains too short, and the step is done again.
    fn write_range(&mut self, fd: Fd, content: u64, range: Range<u64>) -> Result<(), Errno> {
        const STAMPED: u64 = BLOCK as u64;
        if self.buf.is_empty() {
            self.buf.clone_from(&self.at.data);
        }
        let mut at = range.start;
        while at < range.end && self.worker.halted().is_continue() {
            let chunk = at - at % CHUNK;
            let end = range.end.min(chunk + CHUNK);
            let stamped = at - at % STAMPED..end.next_multiple_of(STAMPED);
            let part = |range: Range<u64>| (range.start - chunk) as usize..(range.end - chunk) as usize;
            Stamper::new(content, 0).after(stamped.start / STAMPED).stamp(&mut self.buf[part(stamped)]);
            fd::write_all(fd, &self.buf[part(at..end)])?;
            at = end;
        }
        Ok(())
    }

    /// Opens an existing file, after it was checked.
    pub(super) fn open(&mut self, i: u64, flags: OFlags) -> Result<Fd, Error> {
        let found = self.open_if_present(i, flags)?;
        found.ok_or_else(|| self.file_error(i, "open", Errno::NOENT))
    }

    fn open_if_present(&mut self, i: u64, flags: OFlags) -> Result<Option<Fd>, Error> {
        let Some(dir) = self.existing_dir_of(i)? else { return Ok(None) };
        let name = self.at.set.tree.name(i);
        let fd = match fd::open_existing(dir, name.as_c(), flags) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => {
                let what = Foreign::at(dir, name.as_c(), e, false);
                return Err(what.map_or_else(|| self.file_error(i, "open", e), |what| self.foreign(i, what)));
            }
        };
        // The name may refer to another file by now, so check the file that is actually open.
        let checked = match fd::file_info(fd) {
            Ok(info) => Foreign::of_file(&info, false).map_or(Ok(()), |what| Err(self.foreign(i, what))),
            Err(e) => Err(self.file_error(i, "stat", e)),
        };
        checked.map(|()| Some(fd)).inspect_err(|_| fd::close(fd))
    }

    /// Returns the directory of a file. Creates it first if it does not exist.
    fn dir_of(&mut self, i: u64) -> Result<Fd, Error> {
        let dir = self.at.set.tree.dir_of(i);
        self.dirs.dir(dir, &mut self.own).map_err(|e| self.at.dir_error(dir, "create", e))
    }

    /// Returns the directory of a file. `None` when it does not exist.
    fn existing_dir_of(&mut self, i: u64) -> Result<Option<Fd>, Error> {
        let dir = self.at.set.tree.dir_of(i);
        match self.dirs.existing_dir(dir, &mut self.own) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(self.at.dir_error(dir, "open", e)),
        }
    }

    pub(super) fn file_error(&self, i: u64, call: &'static str, e: Errno) -> Error {
        Error::call(&self.at.root.set, call, &self.at.set.path_of(i), e)
    }

    fn foreign(&self, i: u64, what: Foreign) -> Error {
        Error::Foreign { set: self.at.root.set.clone(), path: self.at.set.path_of(i), what }
    }
}
