//! Creation and repair of the tree of a file set by several threads, with the same system calls as a bare loop.
//!
//! A worker processes whole directories, or parts of large ones, using directory descriptors and names. No symbolic
//! link is followed, and the root's file system is not left. During a repair each file is examined first, and changed
//! only as far as needed. Ownership of the root and free space have been checked before.

use super::Fileset;
use super::error::{Error, Foreign};
use super::make_dirs;
use super::root::Root;
use super::thread_pool::{self, Worker};
use super::walk::CloseOnDrop;
use crate::fileset::Tree;
use crate::fileset::content::{DataSource, Stamper};
use crate::random::mix;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wml_os::OFlags;
use wml_os::name::Name;
use wml_os::{Errno, Fd, fd};

/// Mode of files, as in Filebench.
pub(super) const FILE_MODE: wml_os::Mode = wml_os::Mode::from_raw_mode(0o644);
/// Bytes of data that are made at once; at least those of a write.
const CHUNK: usize = 1 << 20;
/// Target size of a work item in bytes. A larger directory is divided.
const ITEM_BYTES: u64 = 64 << 20;
/// Maximum number of files of one directory in a work item. A directory with fewer files is divided only if it has many
/// bytes, since workers in one directory contend for its lock.
const ITEM_FILES: u64 = 20_000;

/// How an existing tree is treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Create all files in an empty root.
    Create,
    /// Create all directories in an empty root, and no file.
    Directories,
    /// Create all files in directories that exist.
    Files,
    /// Examine each file. Create, truncate or extend it, or remove it if it should not exist.
    Repair,
    /// Examine each file, and count the changes that a repair would make.
    DryRun,
    /// Examine each file, record in the state of the set which files exist, and count them.
    Read,
}

impl Mode {
    /// True if the mode is a dry run, which changes nothing on the disk.
    pub(super) fn is_dry_run(self) -> bool {
        matches!(self, Self::DryRun | Self::Read)
    }

    /// True if the mode creates files or directories of a new tree.
    fn is_new(self) -> bool {
        matches!(self, Self::Create | Self::Directories | Self::Files)
    }

    /// True if missing directories are created.
    pub(super) fn makes_directories(self) -> bool {
        !self.is_dry_run() && self != Self::Files
    }
}

/// The population of one set.
pub(super) struct PopulateJob<'a> {
    pub(super) set: &'a Fileset,
    pub(super) root: &'a Root,
    pub(super) mode: Mode,
    pub(super) threads: usize,
    /// Seed of the written data.
    pub(super) seed: u64,
}

/// Numbers of changes made, or of changes that would be necessary. In mode [`Mode::Read`], of existing files.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Changes {
    /// Files created.
    pub(super) files: u64,
    /// Files whose size was changed.
    pub(super) resized: u64,
    /// Files removed because they should not exist.
    pub(super) removed: u64,
    /// Bytes written.
    pub(super) bytes: u64,
    /// Directories created.
    pub(super) dirs: u64,
    /// Directories removed because they should not exist.
    pub(super) removed_dirs: u64,
}

/// The sums of [`Changes`] over all workers.
#[derive(Default)]
pub(super) struct SharedChanges {
    files: AtomicU64,
    resized: AtomicU64,
    removed: AtomicU64,
    bytes: AtomicU64,
    pub(super) dirs: AtomicU64,
    pub(super) removed_dirs: AtomicU64,
    /// Files with several hard links. They are examined again after all files that should not exist have been removed.
    linked: Mutex<Vec<u64>>,
}

/// Runs a job: first inner directories, then files with their directories, then leaf directories.
pub(super) fn run(job: &PopulateJob<'_>, stop: &AtomicBool, watch: impl FnMut(u64, u64)) -> Result<Changes, Error> {
    let sums = SharedChanges::default();
    let tree = &job.set.tree;
    if job.set.spec.late_dirs && job.mode.is_new() {
        return Ok(Changes::default());
    }
    if job.mode != Mode::Files {
        make_dirs::inner_dirs(job, &sums, stop)?;
    }
    let queue = WorkQueue::new(tree, job.threads);
    let data = DataSource::new(job.set.spec.redundancy(), job.seed);
    thread_pool::run(&job.set.spec.name, job.threads, stop, watch, |worker| {
        let mut populator = Populator::new(job, worker, &sums, &data);
        while let Some(item) = queue.take(tree) {
            if worker.halted().is_break() {
                return Ok(());
            }
            populator.process(item)?;
        }
        populator.report();
        Ok(())
    })?;
    repair_linked(job, &sums, &data, stop)?;
    make_dirs::leafdirs(job, &sums, stop)?;
    let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
    Ok(Changes {
        files: get(&sums.files),
        resized: get(&sums.resized),
        removed: get(&sums.removed),
        bytes: get(&sums.bytes),
        dirs: get(&sums.dirs),
        removed_dirs: get(&sums.removed_dirs),
    })
}

/// The queue of files that no worker has taken yet.
struct WorkQueue {
    /// The next file.
    next: Mutex<u64>,
    files: u64,
    /// Maximum number of files of one directory in a work item.
    max_files: u64,
    /// Number of files up to which small directories are combined into a work item.
    combined: u64,
}

impl WorkQueue {
    fn new(tree: &Tree, threads: usize) -> Self {
        let files = tree.n_files();
        let mean = tree.bytes() / files.max(1);
        let max_files = (ITEM_BYTES / mean.max(1)).clamp(1, ITEM_FILES);
        let combined = (files / (threads as u64 * 16)).clamp(1, max_files.min(1000));
        Self { next: Mutex::new(0), files, max_files, combined }
    }

    /// Takes the next work item. `None` when all files are taken.
    fn take(&self, tree: &Tree) -> Option<Range<u64>> {
        let mut next = self.next.lock();
        let start = *next;
        let mut end = start;
        while end < self.files {
            let dir = tree.files_in(tree.dir_of(end)).end;
            if end == start {
                end = dir.min(start + self.max_files);
            } else if dir - start <= self.combined {
                end = dir;
            } else {
                break;
            }
        }
        *next = end;
        (start < end).then_some(start..end)
    }
}

/// The state of a worker.
pub(super) struct Populator<'a> {
    pub(super) job: &'a PopulateJob<'a>,
    pub(super) tree: &'a Tree,
    pub(super) worker: &'a Worker<'a>,
    sums: &'a SharedChanges,
    pub(super) own: Changes,
    /// The open parent of the last directory, which is probably the parent of the next one too.
    parent: Option<(u64, CloseOnDrop)>,
    data: &'a DataSource,
    stamper: Stamper,
    /// Data to write. Filled on first use, since empty files need none.
    buf: Vec<u8>,
}

impl<'a> Populator<'a> {
    fn new(job: &'a PopulateJob<'a>, worker: &'a Worker<'a>, sums: &'a SharedChanges, data: &'a DataSource) -> Self {
        let own = job.set.spec.name.bytes().fold(mix(job.seed, 0x706f_7075), |seed, byte| mix(seed, u64::from(byte)));
        let (tree, stamper) = (&*job.set.tree, data.stamper(own, worker.number));
        Self { job, tree, worker, sums, own: Changes::default(), parent: None, data, stamper, buf: Vec::new() }
    }

    /// Adds the numbers of this worker to the shared sums.
    fn report(&self) {
        let add = |count: &AtomicU64, n| {
            let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sum| Some(sum.saturating_add(n)));
        };
        add(&self.sums.files, self.own.files);
        add(&self.sums.resized, self.own.resized);
        add(&self.sums.removed, self.own.removed);
        add(&self.sums.bytes, self.own.bytes);
        add(&self.sums.dirs, self.own.dirs);
    }

    /// Processes a range of files in one or more directories.
    fn process(&mut self, files: Range<u64>) -> Result<(), Error> {
        let mut at = files.start;
        while at < files.end {
            let dir = self.tree.dir_of(at);
            let end = self.tree.files_in(dir).end.min(files.end);
            match self.enter(dir)? {
                Some(fd) => {
                    let fd = CloseOnDrop(fd);
                    let (first, step) = (self.tree.serial(at), self.tree.part().step);
                    // The directories are made, and each rank makes its files.
                    let files = if self.job.mode == Mode::Directories { at..at } else { at..end };
                    for i in files {
                        if self.worker.halted().is_break() {
                            return Ok(());
                        }
                        self.file(fd.0, i, Name::new(first + (i - at) * step))?;
                    }
                }
                None => self.count_missing(at..end),
            }
            at = end;
        }
        Ok(())
    }

    /// Counts the files of a directory that does not exist in a dry run.
    fn count_missing(&mut self, files: Range<u64>) {
        if self.job.mode == Mode::Read {
            return;
        }
        for i in files.filter(|&i| self.job.wanted(i)) {
            self.own.files += 1;
            self.own.bytes = self.own.bytes.saturating_add(self.tree.size_at_start(i));
        }
    }

    /// Opens a directory of files. Creates it first, except in a dry run. `None` when it does not exist in a dry run.
    fn enter(&mut self, dir: u64) -> Result<Option<Fd>, Error> {
        let parent = self.tree.parent(dir);
        let parent_fd = match &self.parent {
            Some((at, fd)) if *at == parent => fd.0,
            _ => match make_dirs::open(self.job, parent) {
                Ok(fd) => self.parent.insert((parent, CloseOnDrop(fd))).1.0,
                Err(Errno::NOENT) if self.job.mode.is_dry_run() => return Ok(None),
                Err(e) => return Err(make_dirs::dir_error(self.job, parent, "open", e)),
            },
        };
        let (fd, made) = make_dirs::make_dir(self.job, parent_fd, dir)?;
        self.own.dirs += made;
        Ok(fd)
    }

    /// Creates or repairs a file, according to the mode.
    fn file(&mut self, dir: Fd, i: u64, name: Name) -> Result<(), Error> {
        let wanted = self.job.wanted(i);
        if self.job.mode.is_new() {
            return if wanted { self.create(dir, i, name) } else { Ok(()) };
        }
        if self.job.mode == Mode::Read {
            return self.read(dir, i, name);
        }
        let is_dry_run = self.job.mode == Mode::DryRun;
        let size = self.tree.size_at_start(i);
        let found = match fd::file_info_at(dir, name.as_c()) {
            Err(Errno::NOENT) if !wanted => return Ok(()),
            Err(Errno::NOENT) if is_dry_run => {
                self.own.files += 1;
                self.own.bytes = self.own.bytes.saturating_add(size);
                return Ok(());
            }
            Err(Errno::NOENT) => return self.create(dir, i, name),
            Err(e) => return Err(self.error(i, "stat", e)),
            Ok(found) => found,
        };
        let is_link = self.is_link(dir, i, name, &found)?;
        if wanted && is_link != self.job.set.spec.symlinks || !wanted && is_link {
            return self.replace(dir, i, name, wanted);
        }
        if is_link {
            self.worker.tally.add(1, 0);
            return Ok(());
        }
        if !wanted {
            self.own.removed += 1;
            let removed = if is_dry_run { Ok(()) } else { fd::unlink_at(dir, name.as_c()) };
            return removed.map_err(|e| self.error(i, "remove", e));
        }
        if found.links > 1 {
            // Hard-linked by a `link` flowop. The other name may be one of those that will be removed.
            self.sums.linked.lock().push(i);
            return Ok(());
        }
        if found.size != size {
            self.own.resized += 1;
            if is_dry_run {
                self.own.bytes = self.own.bytes.saturating_add(size.saturating_sub(found.size));
                return Ok(());
            }
            self.resize(dir, i, name, size)?;
        }
        self.worker.tally.add(1, size);
        Ok(())
    }

    /// Records in the state of the set whether a file exists.
    fn read(&mut self, dir: Fd, i: u64, name: Name) -> Result<(), Error> {
        let found = match fd::file_info_at(dir, name.as_c()) {
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => return Err(self.error(i, "stat", e)),
            Ok(found) => found,
        };
        let bytes = if self.is_link(dir, i, name, &found)? { 0 } else { found.size };
        self.job.set.state.set_exists(i, true);
        self.own.files += 1;
        self.own.bytes += bytes;
        self.worker.tally.add(1, bytes);
        Ok(())
    }

    /// Repairs a file that had several hard links. If it still has, replaces it; the other names keep the old file.
    #[cold]
    fn unshare_file(&mut self, i: u64) -> Result<(), Error> {
        let dir = self.tree.dir_of(i);
        let name = self.tree.name(i);
        let Some(fd) = self.enter(dir)?.map(CloseOnDrop) else { return Ok(()) };
        let stat = fd::stat_at(fd.0, name.as_c()).map_err(|e| self.error(i, "stat", e))?;
        let size = self.tree.size_at_start(i);
        if stat.links > 1 {
            fd::unlink_at(fd.0, name.as_c()).map_err(|e| self.error(i, "remove", e))?;
            return self.create(fd.0, i, name);
        }
        if stat.size != size {
            self.own.resized += 1;
            self.resize(fd.0, i, name, size)?;
        }
        Ok(())
    }

    /// Creates a file, with the same system calls as a bare loop.
    #[inline]
    pub(super) fn create(&mut self, dir: Fd, i: u64, name: Name) -> Result<(), Error> {
        if self.job.set.spec.symlinks {
            return self.create_link(dir, i, name);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let fd = fd::open_at(dir, name.as_c(), flags, FILE_MODE).map_err(|e| self.error(i, "create", e))?;
        let size = self.tree.size_at_start(i);
        let written = if size > 0 { self.write(fd, size) } else { Ok(()) };
        let closed = fd::close_checked(fd);
        written.map_err(|e| self.error(i, "write", e))?;
        closed.map_err(|e| self.error(i, "close", e))?;
        self.own.files += 1;
        self.own.bytes += size;
        self.worker.tally.add(1, size);
        Ok(())
    }

    /// Truncates or extends a file in place.
    fn resize(&mut self, dir: Fd, i: u64, name: Name, size: u64) -> Result<(), Error> {
        let fd = fd::open_existing(dir, name.as_c(), OFlags::WRONLY).map_err(|e| {
            let what = Foreign::at(dir, name.as_c(), e, false);
            what.map_or_else(|| self.error(i, "open", e), |what| self.foreign(i, what))
        })?;
        // The name may refer to another file by now, so check the file that is actually open.
        let was = fd::file_info(fd)
            .map_err(|e| self.error(i, "stat", e))
            .and_then(|info| Foreign::of_file(&info, false).map_or(Ok(info.size), |what| Err(self.foreign(i, what))));
        let was = was.inspect_err(|_| fd::close(fd))?;
        let done = if was > size {
            fd::ftruncate(fd, size)
        } else {
            self.own.bytes += size - was;
            fd::seek(fd, wml_os::SeekFrom::Start(was)).and_then(|_| self.write(fd, size - was))
        };
        let closed = fd::close_checked(fd);
        done.map_err(|e| self.error(i, if was > size { "truncate" } else { "extend" }, e))?;
        closed.map_err(|e| self.error(i, "close", e))
    }

    /// Writes `size` bytes. If the pool is halted, the file remains too short, which the next run detects by its size.
    fn write(&mut self, fd: Fd, size: u64) -> Result<(), Errno> {
        let per_write = self.job.set.spec.fill_size;
        if self.buf.is_empty() {
            // Whole writes.
            self.buf = vec![0; CHUNK.max(per_write) / per_write * per_write];
            self.data.fill(&mut self.buf, mix(self.job.seed, self.worker.number));
        }
        let mut remaining = size;
        while remaining > 0 && self.worker.halted().is_continue() {
            let length = remaining.min(self.buf.len() as u64) as usize;
            let part = &mut self.buf[..length];
            self.stamper.stamp(part);
            part.chunks(per_write).try_for_each(|data| fd::write_all(fd, data))?;
            remaining -= part.len() as u64;
        }
        Ok(())
    }

    #[cold]
    pub(super) fn error(&self, i: u64, call: &'static str, e: Errno) -> Error {
        Error::call(&self.job.set.spec.name, call, &self.job.set.path_of(i), e)
    }

    #[cold]
    pub(super) fn foreign(&self, i: u64, what: Foreign) -> Error {
        Error::Foreign { set: self.job.set.spec.name.clone(), path: self.job.set.path_of(i), what }
    }
}

impl PopulateJob<'_> {
    /// True if file `i` should exist.
    #[inline]
    fn wanted(&self, i: u64) -> bool {
        self.set.tree.exists_at_start(i)
    }
}

/// Examines the files with several hard links again, after the files that should not exist have been removed.
fn repair_linked(
    job: &PopulateJob<'_>,
    sums: &SharedChanges,
    data: &DataSource,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let linked = std::mem::take(&mut *sums.linked.lock());
    if job.mode == Mode::DryRun {
        sums.resized.fetch_add(linked.len() as u64, Ordering::Relaxed);
        return Ok(());
    }
    if linked.is_empty() {
        return Ok(());
    }
    thread_pool::run(
        &job.set.spec.name,
        1,
        stop,
        |_, _| (),
        |worker| {
            let mut populator = Populator::new(job, worker, sums, data);
            for &i in &linked {
                if worker.halted().is_break() {
                    return Ok(());
                }
                populator.unshare_file(i)?;
            }
            populator.report();
            Ok(())
        },
    )
    .map(drop)
}
