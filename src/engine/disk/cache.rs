//! The files of a set in the page cache: reading them in, evicting them, and measuring how much of them is cached.
//!
//! The kernel may ignore requests to read or evict pages, so only measured residency is reported. Deliberately absent:
//! when a run needs cold files, and the devices below the file system ([`wml_os::device`]).

use super::dirs::{Dirs, ThreadDirs};
use super::error::{Error, Foreign};
use super::foreign::is_own_link;
use super::thread_pool;
use super::{Fileset, quiesce};
use crate::fileset::{How, Picked, Want};
use crate::random;
use rand::RngExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wml_os::{self as os, Errno, Fd, cache, fd, range};
use wml_os::{Advice, OFlags};

pub use wml_os::cache::Method;

/// Number of files that a worker takes at once.
const BATCH: u64 = 256;
/// Bytes per read.
const CHUNK: usize = 1 << 20;
/// Number of directories that a worker keeps open.
const OPEN_DIRS: usize = 64;
/// Maximum number of files in a sample for [`residency`].
pub(crate) const SAMPLE: u64 = 1000;

/// The share of a set that is in the page cache.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Residency {
    /// Fraction of the bytes that is cached, 0 to 1.
    pub part: f64,
    /// Lower bound of the 95 % confidence interval of `part`. Equal to `part` if all files were examined.
    pub low: f64,
    /// Upper bound of the interval.
    pub high: f64,
    /// Number of files examined.
    pub files: u64,
    /// The method of measurement.
    pub method: Method,
}

/// Writes back the set's file system, and asks the kernel to evict the data of all existing files. On tmpfs nothing can
/// be evicted; [`residency`] shows the result.
pub fn evict(set: &Arc<Fileset>, threads: usize, stop: &AtomicBool, watch: impl FnMut(u64, u64)) -> Result<(), Error> {
    quiesce::quiesce(&[set.spec.root()], stop)
        .map_err(|(_, e)| Error::call(&set.spec.name, "sync", &set.spec.root(), e))?;
    for_each_file(set, threads, stop, watch, || {
        |fd: Fd, _: &thread_pool::Worker<'_>| range::advise(fd, 0, 0, Advice::DontNeed)
    })
}

/// Reads all existing files.
pub fn warm(set: &Arc<Fileset>, threads: usize, stop: &AtomicBool, watch: impl FnMut(u64, u64)) -> Result<(), Error> {
    for_each_file(set, threads, stop, watch, || {
        let mut buf = vec![0; CHUNK];
        move |fd: Fd, worker: &thread_pool::Worker<'_>| {
            while worker.halted().is_continue() {
                let n = fd::read(fd, &mut buf)?;
                worker.tally.add(0, n as u64);
                if n == 0 {
                    break;
                }
            }
            Ok(())
        }
    })
}

/// Opens every existing file, and calls a function made by `make` (one per thread) with it, in several threads.
fn for_each_file<F>(
    set: &Arc<Fileset>,
    threads: usize,
    stop: &AtomicBool,
    watch: impl FnMut(u64, u64),
    make: impl Fn() -> F + Sync,
) -> Result<(), Error>
where
    F: FnMut(Fd, &thread_pool::Worker<'_>) -> Result<(), Errno>,
{
    let Some(dirs) = Dirs::open_all(std::slice::from_ref(set), 0)?.pop() else { return Ok(()) };
    let next = AtomicU64::new(0);
    let files = set.tree.n_files();
    let done = thread_pool::run(&set.spec.name, threads, stop, watch, |worker| {
        let mut own = ThreadDirs::new(OPEN_DIRS);
        let mut act = make();
        let mut work = || {
            loop {
                let start = next.fetch_add(BATCH, Ordering::Relaxed);
                if start >= files {
                    return Ok(());
                }
                for i in start..files.min(start + BATCH) {
                    if worker.halted().is_break() {
                        return Ok(());
                    }
                    if set.state.files.exists(i) {
                        with_file(&dirs, &mut own, i, |fd| act(fd, worker))?;
                        worker.tally.add(1, 0);
                    }
                }
            }
        };
        let done = work();
        own.close_all();
        done
    });
    dirs.close_all();
    done.map(drop)
}

/// Opens file `i` and calls `act` with it. `None` when the file is a symbolic link created by a `symlink` flowop.
///
/// Returns an error when the file is not part of the set.
fn with_file<T>(
    dirs: &Dirs,
    own: &mut ThreadDirs,
    i: u64,
    act: impl FnOnce(Fd) -> Result<T, Errno>,
) -> Result<Option<T>, Error> {
    let set = dirs.set();
    let call = |call, e| Error::call(&set.spec.name, call, &set.path_of(i), e);
    let foreign = |what| Error::Foreign { set: set.spec.name.clone(), path: set.path_of(i), what };
    let dir = dirs.dir(set.tree.dir_of(i), own).map_err(|e| {
        let path = set.spec.root().join(set.tree.dir_rel_path(set.tree.dir_of(i)));
        Error::at_directory(&set.spec.name, "open", path, e)
    })?;
    let name = set.tree.name(i);
    let fd = match fd::open_existing(dir, name.as_c(), OFlags::RDONLY) {
        Ok(fd) => fd,
        Err(Errno::LOOP) if is_own_link(dir, name.as_c()) => return Ok(None),
        Err(e) => {
            let what = Foreign::at(dir, name.as_c(), e, set.has_links());
            return Err(what.map_or_else(|| call("open", e), foreign));
        }
    };
    let found = fd::file_info(fd).map_err(|e| call("stat", e));
    let own = found.and_then(|info| Foreign::of_file(&info, set.has_links()).map_or(Ok(()), |what| Err(foreign(what))));
    own.inspect_err(|_| fd::close(fd))?;
    let done = act(fd);
    fd::close(fd);
    done.map(Some).map_err(|e| call("read", e))
}

/// Measures how much of the existing files is cached, using a sample of at most `SAMPLE` files chosen by `seed`.
///
/// Opening the files loads their inodes into memory. A caller that needs cold inodes must drop them again afterwards.
/// `None` when there is no data to be cached, or the measurement takes longer than `time_limit`.
pub fn residency(set: &Arc<Fileset>, seed: u64, time_limit: Duration) -> Result<Option<Residency>, Error> {
    let start = Instant::now();
    let Some(dirs) = Dirs::open_all(std::slice::from_ref(set), 0)?.pop() else { return Ok(None) };
    let mut own = ThreadDirs::new(OPEN_DIRS);
    let (sample, complete) = sample(set, seed);
    let mut method = Method::Cachestat;
    let mut pages = Vec::with_capacity(sample.len());
    let mut late = false;
    let measured = sample.iter().try_for_each(|&i| {
        late = late || start.elapsed() > time_limit;
        if late {
            return Ok(());
        }
        let one = with_file(&dirs, &mut own, i, |fd| {
            let size = fd::fstat(fd)?.size;
            let (cached, how) = cache::cached_pages(fd, size)?;
            if size > 0 {
                method = how;
            }
            Ok((cached as f64, size.div_ceil(cache::page()) as f64))
        })?;
        pages.extend(one);
        Ok(())
    });
    own.close_all();
    dirs.close_all();
    measured?;
    if late {
        // The files examined so far are the first of the set, not a random sample.
        return Ok(None);
    }
    Ok(estimate(&pages, complete).map(|(part, low, high)| Residency {
        part,
        low,
        high,
        files: pages.len() as u64,
        method,
    }))
}

/// Returns the existing files to examine, and whether these are all: all files if they are at most [`SAMPLE`], else a
/// random sample without replacement. They are in the order of their indices, so that each directory is opened only
/// once.
fn sample(set: &Fileset, seed: u64) -> (Vec<u64>, bool) {
    let files = &set.state.files;
    if files.n_existing() <= SAMPLE {
        return ((0..files.len()).filter(|&i| files.exists(i)).collect(), true);
    }
    let mut rng = random::stream(seed, &[0x7265_7369]);
    let mut chosen = std::collections::BTreeSet::new();
    // This ends, since more files exist than are drawn. The bound is for a set that shrinks meanwhile.
    for _ in 0..SAMPLE * 100 {
        if chosen.len() as u64 == SAMPLE {
            break;
        }
        if let Picked::File(i) = set.state.pick(Want::Existing, How::Uniform(rng.random()), false) {
            chosen.insert(i);
        }
    }
    (chosen.into_iter().collect(), false)
}

/// Estimates the cached fraction from `(cached, all)` pages of each file. Returns the estimate and the bounds of its
/// 95 % confidence interval. `None` when the files have no pages.
///
/// This is the ratio estimator (Cochran, *Sampling Techniques*, 2.11). If all files agree, its variance is zero; then
/// the rule of three bounds the fraction that the sample may have missed.
fn estimate(seen: &[(f64, f64)], complete: bool) -> Option<(f64, f64, f64)> {
    let (cached, all) = seen.iter().fold((0.0, 0.0), |(c, a), (cached, all)| (c + cached, a + all));
    if all == 0.0 {
        return None;
    }
    let part = cached / all;
    if complete {
        return Some((part, part, part));
    }
    let n = seen.len() as f64;
    let squares: f64 = seen.iter().map(|(cached, all)| (cached - part * all).powi(2)).sum();
    let error = (squares / (n * (n - 1.0).max(1.0))).sqrt() / (all / n);
    let half = (1.96 * error).max(if cached == 0.0 || cached >= all { 3.0 / n } else { 0.0 });
    Some((part, (part - half).max(0.0), (part + half).min(1.0)))
}

/// Writes back the file systems of the sets, and drops the page cache, dentries and inodes of the whole machine.
/// Returns `false` without the permission to do so, which requires root.
pub fn drop_all(sets: &[Arc<Fileset>], stop: &AtomicBool) -> Result<bool, Error> {
    let roots: Vec<_> = sets.iter().map(|set| set.spec.root()).collect();
    quiesce::quiesce(&roots, stop).map_err(|(at, e)| Error::call(&sets[at].spec.name, "sync", &roots[at], e))?;
    Ok(os::proc::drop_caches().is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::prepare::{PrepareOptions, Quiet, prepare};
    use super::*;
    use crate::fileset::FilesetSpec;

    #[test]
    fn the_estimate_is_the_fraction_of_pages_with_an_interval() {
        assert_eq!(estimate(&[(0.0, 0.0)], true), None);
        assert_eq!(estimate(&[(1.0, 1.0), (0.0, 3.0)], true), Some((0.25, 0.25, 0.25)));
        let none = vec![(0.0, 4.0); 1000];
        assert_eq!(estimate(&none, false), Some((0.0, 0.0, 0.003)));
        let half: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i % 2) * 4.0, 4.0)).collect();
        let (part, low, high) = estimate(&half, false).unwrap();
        assert!((part - 0.5).abs() < 1e-9 && (0.46..0.48).contains(&low) && (0.52..0.54).contains(&high));
    }

    /// Creates, evicts and reads a set of `files` files. Returns an error when the residency is not as expected.
    fn check_residency(dir: &std::path::Path, files: u64) -> Result<(), String> {
        let stop = AtomicBool::new(false);
        let mut spec = FilesetSpec::new(format!("c{files}"), dir, files, 9000);
        spec.prealloc = 100;
        let set = Arc::new(Fileset::new(spec, 1).unwrap());
        let options = PrepareOptions { threads: 2, quiesce: false, keep_free: false, ..PrepareOptions::default() };
        prepare(std::slice::from_ref(&set), &options, &Quiet, &stop).unwrap();
        let cached = |after: &str, range: std::ops::RangeInclusive<f64>| {
            let now = residency(&set, 3, Duration::MAX).unwrap().unwrap();
            assert_eq!(now.files, files.min(SAMPLE));
            if range.contains(&now.part) { Ok(()) } else { Err(format!("{after}: {now:?}")) }
        };
        cached("made", 0.9991..=1.0)?;
        evict(&set, 2, &stop, |_, _| ()).unwrap();
        cached("evicted", if quiesce::in_memory(dir) { 0.9991..=1.0 } else { 0.0..=0.05 })?;
        warm(&set, 2, &stop, |_, _| ()).unwrap();
        cached("read in", 0.9991..=1.0)?;
        assert_eq!(residency(&set, 3, Duration::ZERO).unwrap(), None, "no result within a time limit of zero");
        set.close();
        Ok(())
    }

    #[test]
    fn files_are_cached_after_writing_and_reading_but_not_after_eviction() {
        for files in [20, 1500] {
            // The kernel may reclaim pages at any moment if other programs need memory: observed once, for one file. An
            // eviction or a read that does not work fails every time.
            let seen: Vec<_> = (0..5)
                .map_while(|_| {
                    // The build directory is probably on a disk, where eviction is possible; /tmp may be in memory.
                    let beside = std::env::current_exe().unwrap();
                    let dir = tempfile::TempDir::new_in(beside.parent().unwrap()).unwrap();
                    check_residency(dir.path(), files).err()
                })
                .collect();
            assert!(seen.len() < 5, "{seen:#?}");
        }
    }
}
