//! Making the files and directories of a set: the calls that a bare loop would make, by several threads.
//!
//! A worker takes whole directories, or pieces of large ones, and works by directory descriptor and name; nothing follows a
//! link or leaves the root's file system. In a root that is to be mended each file is looked at first and changed only as far
//! as needed. Whose the root is, and whether there is room, was decided before.

use super::Fileset;
use super::error::{Error, Foreign};
use super::root::{DIR_MODE, Root};
use super::thread_pool::{self, Worker};
use super::walk::{self, Closing, LIST, PLACE};
use crate::fileset::Tree;
use crate::fileset::content::{self, Stamper};
use crate::os::name::Name;
use crate::os::{Errno, Fd, fd};
use crate::os::{FileType, OFlags};
use crate::random::mix;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The mode of files, as Filebench makes them.
const FILE_MODE: crate::os::Mode = crate::os::Mode::from_raw_mode(0o644);
/// Bytes of a write.
const CHUNK: usize = 1 << 20;
/// Bytes that are worth a piece of work of their own.
const ITEM_BYTES: u64 = 64 << 20;
/// Files of a directory that are not shared out among workers: they would only queue for the directory.
const ITEM_FILES: u64 = 20_000;

/// What is to be done with what is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Nothing is there.
    Create,
    /// Look at each file; make, truncate or extend it, or remove it if it ought not to be there.
    Repair,
    /// Look at each file and count what mending would do.
    DryRun,
    /// Look at each file and tell the set's state which are there; count those.
    Read,
}

impl Mode {
    /// Whether nothing is changed on the disk.
    fn is_dry_run(self) -> bool {
        matches!(self, Self::DryRun | Self::Read)
    }
}

/// One set being made.
pub(super) struct PopulateJob<'a> {
    pub(super) set: &'a Fileset,
    pub(super) root: &'a Root,
    pub(super) mode: Mode,
    pub(super) threads: usize,
    /// The seed of the data.
    pub(super) seed: u64,
}

/// What was done, or would have to be.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Made {
    /// Files made.
    pub(super) files: u64,
    /// Files whose size was changed.
    pub(super) resized: u64,
    /// Files that ought not to be there, removed.
    pub(super) removed: u64,
    /// Bytes written.
    pub(super) bytes: u64,
    /// Directories made.
    pub(super) dirs: u64,
    /// Directories that ought not to be there, removed.
    pub(super) removed_dirs: u64,
}

/// [`Made`], counted by all workers.
#[derive(Default)]
struct Counts {
    files: AtomicU64,
    resized: AtomicU64,
    removed: AtomicU64,
    bytes: AtomicU64,
    dirs: AtomicU64,
    removed_dirs: AtomicU64,
    /// Files with further names, which are looked at again when all that ought not to be there is gone.
    linked: Mutex<Vec<u64>>,
}

/// Does a job: inner directories, files with their directories, leaf directories.
pub(super) fn run(job: &PopulateJob<'_>, stop: &AtomicBool, watch: impl FnMut(u64, u64)) -> Result<Made, Error> {
    let counts = Counts::default();
    let tree = &job.set.tree;
    if job.set.spec.late_dirs && job.mode == Mode::Create {
        return Ok(Made::default());
    }
    inner_dirs(job, &counts, stop)?;
    let queue = WorkQueue::new(tree, job.threads);
    thread_pool::run(&job.set.spec.name, job.threads, stop, watch, |worker| {
        let mut populator = Populator::new(job, worker, &counts);
        while let Some(item) = queue.take(tree) {
            if worker.halted().is_break() {
                return Ok(());
            }
            populator.process(item)?;
        }
        populator.report();
        Ok(())
    })?;
    separate(job, &counts, stop)?;
    leafdirs(job, &counts, stop)?;
    let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
    Ok(Made {
        files: get(&counts.files),
        resized: get(&counts.resized),
        removed: get(&counts.removed),
        bytes: get(&counts.bytes),
        dirs: get(&counts.dirs),
        removed_dirs: get(&counts.removed_dirs),
    })
}

/// The files that nobody has taken yet.
struct WorkQueue {
    next: Mutex<u64>,
    files: u64,
    /// The most files of one directory in a piece.
    most: u64,
    /// Small directories are put together up to this.
    together: u64,
}

impl WorkQueue {
    fn new(tree: &Tree, threads: usize) -> Self {
        let files = tree.n_files();
        let mean = tree.bytes() / files.max(1);
        let most = (ITEM_BYTES / mean.max(1)).clamp(1, ITEM_FILES);
        let together = (files / (threads as u64 * 16)).clamp(1, most.min(1000));
        Self { next: Mutex::new(0), files, most, together }
    }

    fn take(&self, tree: &Tree) -> Option<Range<u64>> {
        let mut next = self.next.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let start = *next;
        let mut end = start;
        while end < self.files {
            let dir = tree.files_in(tree.dir_of(end)).end;
            if end == start {
                end = dir.min(start + self.most);
            } else if dir - start <= self.together {
                end = dir;
            } else {
                break;
            }
        }
        *next = end;
        (start < end).then_some(start..end)
    }
}

/// A worker's things.
pub(super) struct Populator<'a> {
    pub(super) job: &'a PopulateJob<'a>,
    pub(super) tree: &'a Tree,
    pub(super) worker: &'a Worker<'a>,
    counts: &'a Counts,
    pub(super) own: Made,
    /// The directory above the last one, which is likely that of the next.
    above: Option<(u64, Closing)>,
    stamper: Stamper,
    /// Filled when first needed: empty files need none.
    buf: Vec<u8>,
}

impl<'a> Populator<'a> {
    fn new(job: &'a PopulateJob<'a>, worker: &'a Worker<'a>, counts: &'a Counts) -> Self {
        let spec = &job.set.spec;
        let own = spec.name.bytes().fold(mix(job.seed, 0x706f_7075), |seed, byte| mix(seed, u64::from(byte)));
        let stamper = Stamper::new(own, worker.number).with_copies(
            spec.dedupe.unwrap_or(0.0),
            job.seed,
            spec.compress.unwrap_or(0.0),
        );
        Self { job, tree: &job.set.tree, worker, counts, own: Made::default(), above: None, stamper, buf: Vec::new() }
    }

    fn report(&self) {
        let add = |count: &AtomicU64, n| {
            let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sum| Some(sum.saturating_add(n)));
        };
        add(&self.counts.files, self.own.files);
        add(&self.counts.resized, self.own.resized);
        add(&self.counts.removed, self.own.removed);
        add(&self.counts.bytes, self.own.bytes);
        add(&self.counts.dirs, self.own.dirs);
    }

    /// A run of files, in one directory or several.
    fn process(&mut self, files: Range<u64>) -> Result<(), Error> {
        let mut at = files.start;
        while at < files.end {
            let dir = self.tree.dir_of(at);
            let here = self.tree.files_in(dir);
            let end = here.end.min(files.end);
            match self.enter(dir)? {
                Some(fd) => {
                    let fd = Closing(fd);
                    for i in at..end {
                        if self.worker.halted().is_break() {
                            return Ok(());
                        }
                        self.file(fd.0, i, Name::new(i - here.start + 1))?;
                    }
                }
                None => self.count_missing(at..end),
            }
            at = end;
        }
        Ok(())
    }

    /// Looking only, and the directory is not there: nor is any file of it.
    fn count_missing(&mut self, files: Range<u64>) {
        if self.job.mode == Mode::Read {
            return;
        }
        for i in files.filter(|&i| self.job.wanted(i)) {
            self.own.files += 1;
            self.own.bytes = self.own.bytes.saturating_add(self.tree.size_at_start(i));
        }
    }

    /// Opens a directory of files, made before unless it is only looked at. `None`: looking, and it is not there.
    fn enter(&mut self, dir: u64) -> Result<Option<Fd>, Error> {
        let parent = self.tree.parent(dir);
        let above = match &self.above {
            Some((at, fd)) if *at == parent => fd.0,
            _ => match open(self.job, parent) {
                Ok(fd) => self.above.insert((parent, Closing(fd))).1.0,
                Err(Errno::NOENT) if self.job.mode.is_dry_run() => return Ok(None),
                Err(e) => return Err(dir_error(self.job, parent, "open", e)),
            },
        };
        let (fd, made) = make_dir(self.job, above, dir)?;
        self.own.dirs += made;
        Ok(fd)
    }

    fn file(&mut self, dir: Fd, i: u64, name: Name) -> Result<(), Error> {
        let wanted = self.job.wanted(i);
        if self.job.mode == Mode::Create {
            return if wanted { self.create(dir, i, name) } else { Ok(()) };
        }
        if self.job.mode == Mode::Read {
            return self.read(dir, i, name);
        }
        let looking = self.job.mode == Mode::DryRun;
        let size = self.tree.size_at_start(i);
        let found = match fd::file_info_at(dir, name.as_c()) {
            Err(Errno::NOENT) if !wanted => return Ok(()),
            Err(Errno::NOENT) if looking => {
                self.own.files += 1;
                self.own.bytes = self.own.bytes.saturating_add(size);
                return Ok(());
            }
            Err(Errno::NOENT) => return self.create(dir, i, name),
            Err(e) => return Err(self.error(i, "look at", e)),
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
            let removed = if looking { Ok(()) } else { fd::unlink_at(dir, name.as_c()) };
            return removed.map_err(|e| self.error(i, "remove", e));
        }
        if found.links > 1 {
            // By a `link` flowop; the other name may be one of those that go.
            self.counts.linked.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(i);
            return Ok(());
        }
        if found.size != size {
            self.own.resized += 1;
            if looking {
                self.own.bytes = self.own.bytes.saturating_add(size.saturating_sub(found.size));
                return Ok(());
            }
            self.resize(dir, i, name, size)?;
        }
        self.worker.tally.add(1, size);
        Ok(())
    }

    /// Tells the state of the set whether a file is there.
    fn read(&mut self, dir: Fd, i: u64, name: Name) -> Result<(), Error> {
        let found = match fd::file_info_at(dir, name.as_c()) {
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => return Err(self.error(i, "look at", e)),
            Ok(found) => found,
        };
        let bytes = if self.is_link(dir, i, name, &found)? { 0 } else { found.size };
        self.job.set.state.set_exists(i, true);
        self.own.files += 1;
        self.own.bytes += bytes;
        self.worker.tally.add(1, bytes);
        Ok(())
    }

    /// A file that has further names still gets a file of its own: what the others name stays as it is.
    #[cold]
    fn own_file(&mut self, i: u64) -> Result<(), Error> {
        let dir = self.tree.dir_of(i);
        let name = self.tree.name(i);
        let Some(fd) = self.enter(dir)?.map(Closing) else { return Ok(()) };
        let stat = fd::stat_at(fd.0, name.as_c()).map_err(|e| self.error(i, "look at", e))?;
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

    /// A new file. The calls are those of a bare loop.
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

    /// Brings a file to its size, the same inode.
    fn resize(&mut self, dir: Fd, i: u64, name: Name, size: u64) -> Result<(), Error> {
        let fd = fd::open_existing(dir, name.as_c(), OFlags::WRONLY).map_err(|e| {
            let what = Foreign::at(dir, name.as_c(), e, false);
            what.map_or_else(|| self.error(i, "open", e), |what| self.foreign(i, what))
        })?;
        // Whatever stood there when its name was looked at: this is what would be changed.
        let was = fd::file_info(fd)
            .map_err(|e| self.error(i, "look at", e))
            .and_then(|info| Foreign::of_file(&info, false).map_or(Ok(info.size), |what| Err(self.foreign(i, what))));
        let was = was.inspect_err(|_| fd::close(fd))?;
        let done = if was > size {
            fd::ftruncate(fd, size)
        } else {
            self.own.bytes += size - was;
            fd::seek(fd, crate::os::SeekFrom::Start(was)).and_then(|_| self.write(fd, size - was))
        };
        let closed = fd::close_checked(fd);
        done.map_err(|e| self.error(i, if was > size { "truncate" } else { "extend" }, e))?;
        closed.map_err(|e| self.error(i, "close", e))
    }

    /// Writes so much more. On a halt the file stays short; the next run sees that by its size.
    fn write(&mut self, fd: Fd, size: u64) -> Result<(), Errno> {
        if self.buf.is_empty() {
            self.buf = vec![0; CHUNK];
            content::fill(
                &mut self.buf,
                mix(self.job.seed, self.worker.number),
                self.job.set.spec.compress.unwrap_or(0.0),
            );
        }
        let mut left = size;
        while left > 0 && self.worker.halted().is_continue() {
            let part = &mut self.buf[..left.min(CHUNK as u64) as usize];
            self.stamper.stamp(part);
            fd::write_all(fd, part)?;
            left -= part.len() as u64;
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
    /// Whether file `i` ought to be there.
    #[inline]
    fn wanted(&self, i: u64) -> bool {
        self.set.adopted || self.set.tree.exists_at_start(i)
    }
}

/// Opens a directory by its way from the root.
fn open(job: &PopulateJob<'_>, dir: u64) -> Result<Fd, Errno> {
    let tree = &job.set.tree;
    walk::open_chain(job.root.fd, &walk::chain(dir, |d| tree.parent(d), |d| tree.dir_name(d)), PLACE, job.root.device)
}

/// Makes a directory unless it is there, and opens it; says whether it was made. Looking makes nothing.
fn make_dir(job: &PopulateJob<'_>, above: Fd, dir: u64) -> Result<(Option<Fd>, u64), Error> {
    let name = job.set.tree.dir_name(dir);
    let mut made = 0;
    if !job.mode.is_dry_run() {
        match fd::mkdir_at(above, name.as_c(), DIR_MODE) {
            Ok(()) => made = 1,
            // Another worker made it, or it is to be mended.
            Err(Errno::EXIST) => {}
            Err(e) => return Err(dir_error(job, dir, "make", e)),
        }
    }
    match walk::open_dir(above, name.as_c(), PLACE, job.root.device) {
        Ok(fd) => Ok((Some(fd), made)),
        Err(Errno::NOENT) if job.mode.is_dry_run() => Ok((None, 1)),
        Err(e) => Err(dir_error(job, dir, "open", e)),
    }
}

#[cold]
fn dir_error(job: &PopulateJob<'_>, dir: u64, call: &'static str, e: Errno) -> Error {
    let set = job.set.spec.name.clone();
    let path: PathBuf = job.root.path.join(job.set.tree.dir_rel_path(dir));
    match e {
        Errno::LOOP | Errno::NOTDIR => match fd::lstat(&path).map(|stat| stat.kind) {
            Ok(FileType::RegularFile) => Error::Foreign { set, path, what: Foreign::Mixed },
            Ok(FileType::Symlink) => Error::Foreign { set, path, what: Foreign::Link },
            Ok(kind) => Error::Foreign { set, path, what: Foreign::of_kind(kind).unwrap_or(Foreign::Mixed) },
            Err(_) => Error::call(&set, call, &path, e),
        },
        Errno::XDEV => Error::Foreign { set, path, what: Foreign::Mount },
        e => Error::call(&set, call, &path, e),
    }
}

/// Makes the directories that hold directories, parents first. They are few: those that hold files are made by the workers.
fn inner_dirs(job: &PopulateJob<'_>, counts: &Counts, stop: &AtomicBool) -> Result<(), Error> {
    let tree = &job.set.tree;
    // The way down to where we are, every directory on it open.
    let mut way: Vec<(u64, Closing)> = Vec::new();
    for dir in 1..tree.n_dirs() {
        if !tree.files_in(dir).is_empty() || !tree.leafdirs_in(dir).is_empty() {
            continue;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped { set: job.set.spec.name.clone() });
        }
        let parent = tree.parent(dir);
        while way.last().is_some_and(|(at, _)| *at != parent) {
            way.pop();
        }
        let above = way.last().map_or(job.root.fd, |(_, fd)| fd.0);
        let (fd, made) = make_dir(job, above, dir)?;
        counts.dirs.fetch_add(made, Ordering::Relaxed);
        // Looking, and it is missing: so is everything below, which the workers find out.
        match fd {
            Some(fd) => way.push((dir, Closing(fd))),
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Makes the leaf directories that ought to be there, and the directories that hold them.
fn leafdirs(job: &PopulateJob<'_>, counts: &Counts, stop: &AtomicBool) -> Result<(), Error> {
    let tree = &job.set.tree;
    for dir in 1..tree.n_dirs() {
        let leafs = tree.leafdirs_in(dir);
        if leafs.is_empty() {
            continue;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped { set: job.set.spec.name.clone() });
        }
        let above = match open(job, tree.parent(dir)) {
            Ok(fd) => Closing(fd),
            Err(Errno::NOENT) if job.mode.is_dry_run() => continue,
            Err(e) => return Err(dir_error(job, tree.parent(dir), "open", e)),
        };
        let (here, mut made) = make_dir(job, above.0, dir)?;
        let Some(here) = here.map(Closing) else { continue };
        for leaf in leafs {
            made += leafdir(job, here.0, leaf, counts)?;
        }
        counts.dirs.fetch_add(made, Ordering::Relaxed);
    }
    Ok(())
}

/// One leaf directory: returns 1 if it was made, or looking would be.
fn leafdir(job: &PopulateJob<'_>, dir: Fd, leaf: u64, counts: &Counts) -> Result<u64, Error> {
    let name = job.set.tree.leafdir_name(leaf);
    let path = || job.root.path.join(job.set.tree.leafdir_rel_path(leaf));
    let call = |call, e| Error::call(&job.set.spec.name, call, &path(), e);
    let there = || match fd::stat_at(dir, name.as_c()) {
        Ok(stat) => Ok(stat.kind == FileType::Directory),
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(call("look at", e)),
    };
    match (job.mode, job.set.adopted || job.set.tree.leafdir_at_start(leaf)) {
        (Mode::Create, false) => Ok(0),
        (Mode::Read, _) => {
            job.set.state.leafdirs.set_exists(leaf, there()?);
            Ok(0)
        }
        (Mode::DryRun, wanted) => {
            let there = there()?;
            counts.removed_dirs.fetch_add(u64::from(there && !wanted), Ordering::Relaxed);
            Ok(u64::from(wanted && !there))
        }
        (Mode::Repair, false) => {
            // Neither a subvolume nor a link is a directory of ours, however empty.
            let seen = walk::open_dir(dir, name.as_c(), LIST, job.root.device).map(fd::close);
            match seen.and_then(|()| fd::rmdir_at(dir, name.as_c())) {
                Ok(()) => {
                    counts.removed_dirs.fetch_add(1, Ordering::Relaxed);
                    Ok(0)
                }
                Err(Errno::NOENT) => Ok(0),
                Err(e) => Err(call("remove", e)),
            }
        }
        (_, true) => match fd::mkdir_at(dir, name.as_c(), DIR_MODE) {
            Ok(()) => Ok(1),
            Err(Errno::EXIST) if job.mode == Mode::Repair => {
                // A file or a link of that name is not taken for it.
                let fd = walk::open_dir(dir, name.as_c(), LIST, job.root.device).map_err(|e| call("open", e))?;
                fd::close(fd);
                Ok(0)
            }
            Err(e) => Err(call("make", e)),
        },
    }
}

/// Looks again at the files that had further names while those that ought not to be there were removed.
fn separate(job: &PopulateJob<'_>, counts: &Counts, stop: &AtomicBool) -> Result<(), Error> {
    let linked = std::mem::take(&mut *counts.linked.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    if job.mode == Mode::DryRun {
        counts.resized.fetch_add(linked.len() as u64, Ordering::Relaxed);
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
            let mut populator = Populator::new(job, worker, counts);
            for &i in &linked {
                if worker.halted().is_break() {
                    return Ok(());
                }
                populator.own_file(i)?;
            }
            populator.report();
            Ok(())
        },
    )
    .map(drop)
}
