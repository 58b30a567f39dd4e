//! The directories of a tree: those that contain directories, those that contain leaf directories, and the leaf
//! directories themselves.
//!
//! The files, with the directories that contain them, are created in `populate`.

use super::error::Error;
use super::populate::{Mode, PopulateJob, SharedChanges};
use super::root::DIR_MODE;
use super::walk::{self, AT_DIR, CloseOnDrop, READ_DIR};
use std::sync::atomic::{AtomicBool, Ordering};
use wml_os::{Errno, Fd, FileType, fd};

/// Opens a directory by its path from the root.
pub(super) fn open(job: &PopulateJob<'_>, dir: u64) -> Result<Fd, Errno> {
    let tree = &job.set.tree;
    walk::open_chain(job.root.fd, &tree.dir_names(dir), AT_DIR, job.root.device)
}

/// Creates a directory unless it exists, and opens it. Returns its descriptor (`None` if it does not exist in a dry
/// run), and 1 if it was created or would be, else 0.
pub(super) fn make_dir(job: &PopulateJob<'_>, parent: Fd, dir: u64) -> Result<(Option<Fd>, u64), Error> {
    let name = job.set.tree.dir_name(dir);
    let mut made = 0;
    if job.mode.makes_directories() {
        match fd::mkdir_at(parent, name.as_c(), DIR_MODE) {
            Ok(()) => made = 1,
            // Another worker created it, or this is a repair.
            Err(Errno::EXIST) => {}
            Err(e) => return Err(dir_error(job, dir, "create", e)),
        }
    }
    match walk::open_dir(parent, name.as_c(), AT_DIR, job.root.device) {
        Ok(fd) => Ok((Some(fd), made)),
        Err(Errno::NOENT) if job.mode.is_dry_run() => Ok((None, 1)),
        Err(e) => Err(dir_error(job, dir, "open", e)),
    }
}

/// Returns the error for a failed call on a directory of the tree.
#[cold]
pub(super) fn dir_error(job: &PopulateJob<'_>, dir: u64, call: &'static str, e: Errno) -> Error {
    Error::at_directory(&job.set.spec.name, call, job.root.path.join(job.set.tree.dir_rel_path(dir)), e)
}

/// Creates the few directories that contain directories, parents first. The workers create those that contain files.
pub(super) fn inner_dirs(job: &PopulateJob<'_>, sums: &SharedChanges, stop: &AtomicBool) -> Result<(), Error> {
    let tree = &job.set.tree;
    // The open directories on the path from the root to the current directory.
    let mut open: Vec<(u64, CloseOnDrop)> = Vec::new();
    for dir in 1..tree.n_dirs() {
        if !tree.files_in(dir).is_empty() || !tree.leafdirs_in(dir).is_empty() {
            continue;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped { set: job.set.spec.name.clone() });
        }
        let parent = tree.parent(dir);
        while open.last().is_some_and(|(at, _)| *at != parent) {
            open.pop();
        }
        let parent_fd = open.last().map_or(job.root.fd, |(_, fd)| fd.0);
        let (fd, made) = make_dir(job, parent_fd, dir)?;
        sums.dirs.fetch_add(made, Ordering::Relaxed);
        // The directory does not exist in a dry run: the workers count the missing files below it.
        match fd {
            Some(fd) => open.push((dir, CloseOnDrop(fd))),
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Creates the leaf directories that should exist, and the directories that contain them.
pub(super) fn leafdirs(job: &PopulateJob<'_>, sums: &SharedChanges, stop: &AtomicBool) -> Result<(), Error> {
    let tree = &job.set.tree;
    for dir in 1..tree.n_dirs() {
        let leafs = tree.leafdirs_in(dir);
        // The directory and its leaf directories that a dry run would create.
        let missing = || 1 + leafs.clone().filter(|leaf| is_wanted(job, *leaf)).count() as u64;
        if leafs.is_empty() {
            continue;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped { set: job.set.spec.name.clone() });
        }
        let parent_fd = match open(job, tree.parent(dir)) {
            Ok(fd) => CloseOnDrop(fd),
            Err(Errno::NOENT) if job.mode.is_dry_run() => {
                sums.dirs.fetch_add(missing(), Ordering::Relaxed);
                continue;
            }
            Err(e) => return Err(dir_error(job, tree.parent(dir), "open", e)),
        };
        let (fd, mut made) = make_dir(job, parent_fd.0, dir)?;
        let Some(fd) = fd.map(CloseOnDrop) else {
            sums.dirs.fetch_add(missing(), Ordering::Relaxed);
            continue;
        };
        for leaf in leafs {
            made += leafdir(job, fd.0, leaf, sums)?;
        }
        sums.dirs.fetch_add(made, Ordering::Relaxed);
    }
    Ok(())
}

/// True if a leaf directory is to exist at the start.
fn is_wanted(job: &PopulateJob<'_>, leaf: u64) -> bool {
    job.set.tree.leafdir_at_start(leaf)
}

/// Creates or repairs a leaf directory, according to the mode. Returns 1 if it was created (or would be), else 0.
fn leafdir(job: &PopulateJob<'_>, dir: Fd, leaf: u64, sums: &SharedChanges) -> Result<u64, Error> {
    let name = job.set.tree.leafdir_name(leaf);
    let path = || job.root.path.join(job.set.tree.leafdir_rel_path(leaf));
    let call = |call, e| Error::call(&job.set.spec.name, call, &path(), e);
    let exists = || match fd::stat_at(dir, name.as_c()) {
        Ok(stat) => Ok(stat.kind == FileType::Directory),
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(call("stat", e)),
    };
    match (job.mode, is_wanted(job, leaf)) {
        (Mode::Create | Mode::Files, false) | (Mode::Directories, _) => Ok(0),
        (Mode::Read, _) => {
            job.set.state.leafdirs.set_exists(leaf, exists()?);
            Ok(0)
        }
        (Mode::DryRun, wanted) => {
            let exists = exists()?;
            sums.removed_dirs.fetch_add(u64::from(exists && !wanted), Ordering::Relaxed);
            Ok(u64::from(wanted && !exists))
        }
        (Mode::Repair, false) => {
            // A subvolume or a link is not part of the set, even if it is empty.
            let seen = walk::open_dir(dir, name.as_c(), READ_DIR, job.root.device).map(fd::close);
            match seen.and_then(|()| fd::rmdir_at(dir, name.as_c())) {
                Ok(()) => {
                    sums.removed_dirs.fetch_add(1, Ordering::Relaxed);
                    Ok(0)
                }
                Err(Errno::NOENT) => Ok(0),
                Err(e) => Err(call("remove", e)),
            }
        }
        (_, true) => match fd::mkdir_at(dir, name.as_c(), DIR_MODE) {
            Ok(()) => Ok(1),
            Err(Errno::EXIST) if job.mode == Mode::Repair => {
                // Check that it is a directory: a file or link of that name is not accepted.
                let fd = walk::open_dir(dir, name.as_c(), READ_DIR, job.root.device).map_err(|e| call("open", e))?;
                fd::close(fd);
                Ok(0)
            }
            Err(e) => Err(call("create", e)),
        },
    }
}
