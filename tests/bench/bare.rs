//! The bare loops: each makes the system calls of a workload with as little other work as possible.

use super::pairs::next;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom};
use rustix::{fs, io};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// The mean size of a file, and the limit of the size of an append, in bytes.
const MEAN_SIZE: u64 = 16 << 10;
/// The size of a page in bytes. Buffers are page-aligned.
const PAGE: usize = 4096;
/// The size of a buffer for whole files, in bytes.
const FILE_BUFFER: usize = 1 << 20;
/// The size in bytes at which the log is truncated.
const MAX_LOG: u64 = 256 << 20;

/// Returns a random number below `n`.
fn below(state: &mut u64, n: u64) -> u64 {
    ((u128::from(next(state)) * u128::from(n)) >> 64) as u64
}

/// Returns the path of a file, `dddddddd/ffffffff`, terminated by a NUL. A directory has 1000 files.
fn leaf(i: u64) -> [u8; 18] {
    let mut name = *b"00000000/00000000\0";
    let mut put = |at: usize, mut n: u64| {
        for digit in (at..at + 8).rev() {
            name[digit] = b'0' + (n % 10) as u8;
            n /= 10;
        }
    };
    put(0, i / 1000 + 1);
    put(9, i % 1000 + 1);
    name
}

/// Returns the path as a C string.
fn path(name: &[u8; 18]) -> &std::ffi::CStr {
    std::ffi::CStr::from_bytes_with_nul(name).unwrap()
}

/// The work of a thread, given its index: preparation, the timed loop between [`Slice::begin`] and [`Work::end`], and
/// cleanup.
type Body = dyn Fn(usize, &Slice) -> Work + Send + Sync;

/// One slice of time in which all threads run.
struct Slice {
    gate: Barrier,
    stop: AtomicBool,
}

/// The start and the end of a thread's work, and its number of operations.
struct Work {
    begin: Instant,
    end: Instant,
    ops: u64,
}

impl Slice {
    /// Waits for all other threads and returns the time. Each thread reads the clock itself: the main thread, after it
    /// has released a hundred threads, waits for a processor as they do, and by then they have worked for a while.
    fn begin(&self) -> Instant {
        self.gate.wait();
        Instant::now()
    }

    /// Returns whether the slice continues.
    fn continues(&self) -> bool {
        !self.stop.load(Relaxed)
    }
}

impl Work {
    /// Ends the work now.
    fn end(begin: Instant, ops: u64) -> Self {
        Self { begin, end: Instant::now(), ops }
    }
}

/// A bare loop with its files, which can run several times.
pub(super) struct Bare {
    threads: usize,
    body: Arc<Body>,
    /// Whether each run does a fixed amount of work instead of running for a given time.
    fixed_work: bool,
}

impl Bare {
    /// Runs the loop and returns its rate in operations per second, from the start of the first thread to the end of
    /// the last one.
    pub(super) fn run(&mut self, seconds: f64) -> f64 {
        let slice = Arc::new(Slice { gate: Barrier::new(self.threads + 1), stop: AtomicBool::new(false) });
        let threads: Vec<_> = (0..self.threads)
            .map(|t| {
                let (slice, body) = (slice.clone(), self.body.clone());
                std::thread::spawn(move || body(t, &slice))
            })
            .collect();
        slice.gate.wait();
        if !self.fixed_work {
            std::thread::sleep(Duration::from_secs_f64(seconds));
            slice.stop.store(true, Relaxed);
        }
        let works: Vec<_> = threads.into_iter().map(|t| t.join().expect("a thread of the bare loop")).collect();
        let begin = works.iter().map(|work| work.begin).min().expect("a thread");
        let end = works.iter().map(|work| work.end).max().expect("a thread");
        works.iter().map(|work| work.ops).sum::<u64>() as f64 / (end - begin).as_secs_f64()
    }
}

/// Opens a directory.
fn open_dir(dir: &Path) -> OwnedFd {
    fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).expect("the directory")
}

/// Creates a file of `bytes` bytes.
fn make_file(root: BorrowedFd<'_>, i: u64, bytes: u64, buf: &[u8]) {
    let name = leaf(i);
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::TRUNC | OFlags::CLOEXEC;
    let fd = fs::openat(root, path(&name), flags, Mode::from_raw_mode(0o666)).expect("a file");
    let mut left = bytes;
    while left > 0 {
        left -= io::write(&fd, &buf[..left.min(buf.len() as u64) as usize]).expect("a write") as u64;
    }
}

/// Creates the directories of `files` files.
fn make_dirs(root: BorrowedFd<'_>, files: u64) {
    for d in 0..=(files.max(1) - 1) / 1000 {
        let name = leaf(d * 1000);
        let dir = std::ffi::CString::new(&name[..8]).unwrap();
        match fs::mkdirat(root, &dir, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(io::Errno::EXIST) => {}
            Err(e) => panic!("mkdir: {e}"),
        }
    }
}

// The system calls `pread` and `fstatat` are made in functions that are not inlined, as in the C library. Where the
// kernel protects its return instructions (AMD's "Safe RET"), a loop without a return instruction between system calls
// is up to a quarter faster, but no real program has such a loop. The other loops close files, which is a function call
// in any case.

#[inline(never)]
fn pread(fd: &OwnedFd, buf: &mut [u8], at: u64) -> io::Result<usize> {
    io::pread(fd, buf, at)
}

#[inline(never)]
fn statat(root: &OwnedFd, name: &[u8; 18]) -> io::Result<fs::Stat> {
    fs::statat(root, path(name), AtFlags::empty())
}

/// Returns a page-aligned buffer of `size` bytes in `room`, which must be at least one page longer.
fn aligned(room: &mut [u8], size: usize) -> &mut [u8] {
    let at = room.as_ptr().align_offset(PAGE);
    &mut room[at..at + size]
}

/// Aligned random reads of one file, the largest in the directory. Each thread opens it separately, because the
/// reference count of a shared open file would be transferred between the processors' caches.
pub(super) fn randread(dir: &Path, threads: usize, size: u64) -> Bare {
    let (path, bytes) = super::peers::largest(dir).expect("the file that was made");
    let blocks = bytes / size;
    let body = move |t: usize, slice: &Slice| {
        let fd = fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).expect("the file");
        let (mut state, mut ops) = (t as u64 + 1, 0);
        let mut room = vec![1_u8; size as usize + PAGE];
        let buf = aligned(&mut room, size as usize);
        let begin = slice.begin();
        while slice.continues() {
            let n = pread(&fd, buf, below(&mut state, blocks) * size).expect("a read");
            assert_eq!(n as u64, size);
            ops += 1;
        }
        Work::end(begin, ops)
    };
    Bare { threads, body: Arc::new(body), fixed_work: false }
}

/// Calls `fstatat` on the files of the file set `s`, in order or at random.
pub(super) fn stat(dir: &Path, threads: usize, files: u64, random: bool) -> Bare {
    let root = Arc::new(open_dir(&dir.join("s")));
    let body = move |t: usize, slice: &Slice| {
        let (mut state, mut ops, mut i) = (t as u64 + 1, 0, t as u64 * files / threads as u64);
        let begin = slice.begin();
        while slice.continues() {
            i = if random { below(&mut state, files) } else { (i + 1) % files };
            statat(&root, &leaf(i)).expect("a stat");
            ops += 1;
        }
        Work::end(begin, ops)
    };
    Bare { threads, body: Arc::new(body), fixed_work: false }
}

/// Creates empty files, each thread in separate directories. Each run creates all files in a fresh directory.
pub(super) fn create(dir: &Path, threads: usize, files: u64) -> Bare {
    let dir = dir.to_owned();
    let threads_started = Arc::new(AtomicU64::new(0));
    let body = move |t: usize, slice: &Slice| {
        let run = threads_started.fetch_add(1, Relaxed) / threads as u64;
        let run_dir = dir.join(format!("run{run}"));
        let _ = std::fs::create_dir(&run_dir);
        let root = open_dir(&run_dir);
        let (mut ops, mut d) = (0, t as u64);
        let begin = slice.begin();
        while d * 1000 < files {
            let name = leaf(d * 1000);
            let dir_name = std::ffi::CString::new(&name[..8]).unwrap();
            fs::mkdirat(&root, &dir_name, Mode::from_raw_mode(0o777)).expect("a directory");
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let at = fs::openat(&root, &dir_name, flags, Mode::empty()).expect("a directory");
            for i in d * 1000..files.min(d * 1000 + 1000) {
                let name = leaf(i);
                let last = std::ffi::CStr::from_bytes_with_nul(&name[9..]).unwrap();
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                drop(fs::openat(&at, last, flags, Mode::from_raw_mode(0o666)).expect("a file"));
                ops += 1;
            }
            d += threads as u64;
        }
        Work::end(begin, ops)
    };
    Bare { threads, body: Arc::new(body), fixed_work: true }
}

/// Reads a file from its current offset to its end.
fn read_whole(fd: &OwnedFd, buf: &mut [u8]) {
    while io::read(fd, &mut *buf).expect("a read") == buf.len() {}
}

/// Appends a random number of bytes.
fn append(fd: &OwnedFd, buf: &[u8], state: &mut u64) {
    fs::seek(fd, SeekFrom::End(0)).expect("a seek");
    let n = below(state, MEAN_SIZE) as usize;
    assert_eq!(io::write(fd, &buf[..n]).expect("a write"), n);
}

/// The states of the files, shared by all threads. Files are picked in the common order that the language prescribes.
struct Pool {
    /// 0: absent, 1: existing, 2: claimed by a thread.
    files: Vec<AtomicU8>,
    /// The positions of the rotations over absent and over existing files.
    cursors: [AtomicU64; 2],
}

impl Pool {
    /// Creates a pool in which the first `existing` files exist.
    fn new(files: u64, existing: u64) -> Self {
        let files = (0..files).map(|i| AtomicU8::new(u8::from(i < existing))).collect();
        Self { files, cursors: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    /// Claims the next file in the given state.
    fn take(&self, state: u8) -> u64 {
        loop {
            let i = self.cursors[state as usize].fetch_add(1, Relaxed) % self.files.len() as u64;
            if self.files[i as usize].compare_exchange(state, 2, Relaxed, Relaxed).is_ok() {
                return i;
            }
        }
    }

    /// Releases a file in the given state.
    fn put(&self, i: u64, state: u8) {
        self.files[i as usize].store(state, Relaxed);
    }
}

/// The thirteen flowops of `varmail` on files that all threads share, of which four in five exist.
pub(super) fn varmail(dir: &Path, threads: usize, files: u64) -> Bare {
    let root = Arc::new(open_dir(dir));
    make_dirs(root.as_fd(), files);
    let existing = files * 4 / 5;
    let buf = vec![1_u8; FILE_BUFFER];
    (0..existing).for_each(|i| make_file(root.as_fd(), i, MEAN_SIZE, &buf));
    let pool = Pool::new(files, existing);
    let body = move |t: usize, slice: &Slice| {
        let (mut state, mut ops) = (t as u64 + 1, 0);
        let mut room = vec![1_u8; FILE_BUFFER + PAGE];
        let buf = aligned(&mut room, FILE_BUFFER);
        let open = |i: u64, flags: OFlags| {
            let flags = flags | OFlags::RDWR | OFlags::CLOEXEC;
            fs::openat(&*root, path(&leaf(i)), flags, Mode::from_raw_mode(0o666)).expect("a file")
        };
        let open_next = || {
            let i = pool.take(1);
            let fd = open(i, OFlags::empty());
            pool.put(i, 1);
            fd
        };
        let begin = slice.begin();
        while slice.continues() {
            let i = pool.take(1);
            fs::unlinkat(&*root, path(&leaf(i)), AtFlags::empty()).expect("an unlink");
            pool.put(i, 0);
            let i = pool.take(0);
            let fd = open(i, OFlags::CREATE);
            pool.put(i, 1);
            append(&fd, buf, &mut state);
            fs::fsync(&fd).expect("an fsync");
            drop(fd);
            let fd = open_next();
            read_whole(&fd, buf);
            append(&fd, buf, &mut state);
            fs::fsync(&fd).expect("an fsync");
            drop(fd);
            let fd = open_next();
            read_whole(&fd, buf);
            drop(fd);
            ops += 13;
        }
        Work::end(begin, ops)
    };
    Bare { threads, body: Arc::new(body), fixed_work: false }
}

/// Opens, reads and closes ten files of the file set `bigfileset`, then appends to a common log.
pub(super) fn webserver(dir: &Path, threads: usize, files: u64) -> Bare {
    let root = Arc::new(open_dir(&dir.join("bigfileset")));
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC;
    let log = Arc::new(fs::open(dir.join("log"), flags, Mode::from_raw_mode(0o666)).expect("the log"));
    let cursor = AtomicU64::new(0);
    let body = move |t: usize, slice: &Slice| {
        let (mut state, mut iterations) = (t as u64 + 1, 0_u64);
        let mut room = vec![1_u8; FILE_BUFFER + PAGE];
        let buf = aligned(&mut room, FILE_BUFFER);
        let begin = slice.begin();
        while slice.continues() {
            for _ in 0..10 {
                let name = leaf(cursor.fetch_add(1, Relaxed) % files);
                let fd =
                    fs::openat(&*root, path(&name), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).expect("a file");
                read_whole(&fd, buf);
            }
            append(&log, buf, &mut state);
            if iterations % 256 == 0 && fs::seek(&*log, SeekFrom::End(0)).expect("a seek") > MAX_LOG {
                fs::ftruncate(&*log, 0).expect("the log is truncated");
            }
            iterations += 1;
        }
        Work::end(begin, iterations * 31)
    };
    Bare { threads, body: Arc::new(body), fixed_work: false }
}
