//! The page cache and the files of a set: reading them in, evicting them, and seeing how many are in it.
//!
//! What the kernel is asked here it may refuse or forget; only what is measured is claimed. Deliberately absent: when a run
//! wants its files cold, and what lies below the file system ([`crate::os::device`]).

use super::dirs::{Dirs, ThreadDirs};
use super::error::{Error, Foreign};
use super::scan::is_own_link;
use super::thread_pool;
use super::{Fileset, quiesce};
use crate::fileset::{How, Picked, Want};
use crate::os::{self, Errno, Fd, cache, fd, range};
use crate::os::{Advice, OFlags};
use crate::random;
use rand::RngExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub use crate::os::cache::Method;

/// Files that a worker takes at once.
const BATCH: u64 = 256;
/// Bytes of a read.
const CHUNK: usize = 1 << 20;
/// Directories that a worker keeps open.
const PLACES: usize = 64;
/// The most files that residency is measured on.
pub const SAMPLE: u64 = 1000;

/// How much of a set lies in the page cache.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Residency {
    /// Part of the bytes that is cached, 0 to 1.
    pub part: f64,
    /// The interval in which that lies with 95 % confidence; no wider than a point if all files were looked at.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Files looked at.
    pub files: u64,
    /// How.
    pub method: Method,
}

/// Writes the set's file system back and asks the kernel to forget the data of the files that are there. On tmpfs nothing can
/// be forgotten; [`residency`] tells.
pub fn evict(set: &Arc<Fileset>, threads: usize, stop: &AtomicBool, watch: impl FnMut(u64, u64)) -> Result<(), Error> {
    quiesce::quiesce(&[set.spec.root()], stop)
        .map_err(|(_, e)| Error::call(&set.spec.name, "write back", &set.spec.root(), e))?;
    each(set, threads, stop, watch, || |fd: Fd, _: &thread_pool::Worker<'_>| range::advise(fd, 0, 0, Advice::DontNeed))
}

/// Reads the files that are there.
pub fn warm(set: &Arc<Fileset>, threads: usize, stop: &AtomicBool, watch: impl FnMut(u64, u64)) -> Result<(), Error> {
    each(set, threads, stop, watch, || {
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

/// Does something with every file that is there, by several threads.
fn each<F>(
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
        let mut own = ThreadDirs::new(PLACES);
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

/// Does something with an open file; `None` where a symbolic link stands in its place, as the `symlink` flowop makes them.
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
        match Foreign::of_directory(&path, e) {
            Some(what) => Error::Foreign { set: set.spec.name.clone(), path, what },
            None => call("open", e),
        }
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
    let found = fd::file_info(fd).map_err(|e| call("look at", e));
    let own = found.and_then(|info| Foreign::of_file(&info, set.has_links()).map_or(Ok(()), |what| Err(foreign(what))));
    own.inspect_err(|_| fd::close(fd))?;
    let done = act(fd);
    fd::close(fd);
    done.map(Some).map_err(|e| call("read", e))
}

/// Measures how much of the files that are there is cached, on a sample of at most [`SAMPLE`] files chosen by `seed`. Opening
/// them brings their inodes into memory: whoever wants those cold as well drops them again afterwards. `None` if there is
/// nothing to be cached, or if looking would take longer than `patience`.
pub fn residency(set: &Arc<Fileset>, seed: u64, patience: Duration) -> Result<Option<Residency>, Error> {
    let start = Instant::now();
    let Some(dirs) = Dirs::open_all(std::slice::from_ref(set), 0)?.pop() else { return Ok(None) };
    let mut own = ThreadDirs::new(PLACES);
    let (sample, complete) = sample(set, seed);
    let mut method = Method::Cachestat;
    let mut pages = Vec::with_capacity(sample.len());
    let mut late = false;
    let measured = sample.iter().try_for_each(|&i| {
        late = late || start.elapsed() > patience;
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
        // Those looked at so far are the first of the set and no sample of it.
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

/// Files that are there: all if they are few, else that many at random, none twice. In the order of their indices, which
/// opens each directory once.
fn sample(set: &Fileset, seed: u64) -> (Vec<u64>, bool) {
    let files = &set.state.files;
    if files.n_existing() <= SAMPLE {
        return ((0..files.len()).filter(|&i| files.exists(i)).collect(), true);
    }
    let mut rng = random::stream(seed, &[0x7265_7369]);
    let mut chosen = std::collections::BTreeSet::new();
    // More files are there than are drawn, so this ends; the bound is for a set that shrinks meanwhile.
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

/// The cached part of (cached, all) pages a file, with its interval. The ratio estimator (Cochran, *Sampling Techniques*, 2.11);
/// where all files agree its variance is nothing, and the rule of three bounds what the sample may have missed.
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

/// Writes the sets' file systems back and drops page cache, dentries and inodes of the whole machine. `false` where that is
/// not allowed: it needs root.
pub fn drop_all(sets: &[Arc<Fileset>], stop: &AtomicBool) -> Result<bool, Error> {
    let roots: Vec<_> = sets.iter().map(|set| set.spec.root()).collect();
    quiesce::quiesce(&roots, stop).map_err(|(at, e)| Error::call(&sets[at].spec.name, "write back", &roots[at], e))?;
    Ok(os::proc::drop_caches().is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::prepare::{PrepareOptions, Quiet, prepare};
    use super::*;
    use crate::fileset::FilesetSpec;

    #[test]
    fn the_estimate_is_the_share_of_pages_and_covers_doubt() {
        assert_eq!(estimate(&[(0.0, 0.0)], true), None);
        assert_eq!(estimate(&[(1.0, 1.0), (0.0, 3.0)], true), Some((0.25, 0.25, 0.25)));
        let none = vec![(0.0, 4.0); 1000];
        assert_eq!(estimate(&none, false), Some((0.0, 0.0, 0.003)));
        let half: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i % 2) * 4.0, 4.0)).collect();
        let (part, low, high) = estimate(&half, false).unwrap();
        assert!((part - 0.5).abs() < 1e-9 && (0.46..0.48).contains(&low) && (0.52..0.54).contains(&high));
    }

    /// Makes, evicts and reads in a set of `files` files; what was not found cached or evicted as it should be is the error.
    fn follow_the_cache(dir: &std::path::Path, files: u64) -> Result<(), String> {
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
        assert_eq!(residency(&set, 3, Duration::ZERO).unwrap(), None, "a look that may take no time is none");
        set.close();
        Ok(())
    }

    #[test]
    fn files_are_cached_when_written_or_read_and_gone_when_evicted() {
        for files in [20, 1500] {
            // The kernel may reclaim a page at any moment, and does when other programs need memory: seen once, of one file.
            // An eviction or a reading that does not work fails every time.
            let seen: Vec<_> = (0..5)
                .map_while(|_| {
                    // Beside the build: likely on a disk, where eviction is possible; /tmp may be in memory.
                    let beside = std::env::current_exe().unwrap();
                    let dir = tempfile::TempDir::new_in(beside.parent().unwrap()).unwrap();
                    follow_the_cache(dir.path(), files).err()
                })
                .collect();
            assert!(seen.len() < 5, "{seen:#?}");
        }
    }
}
