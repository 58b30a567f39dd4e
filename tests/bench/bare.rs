//! The bare loops: the least work that each workload can be done with.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom};
use rustix::{fs, io};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Mean bytes of a file, and the most that one append adds.
const MEAN: u64 = 16 << 10;
/// Bytes of a page: buffers begin at the start of one.
const PAGE: usize = 4096;
/// Bytes of a buffer for whole files.
const BIG: usize = 1 << 20;
/// The log is cut when it has grown so large.
const LOG: u64 = 256 << 20;

/// splitmix64.
pub(super) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn below(state: &mut u64, n: u64) -> u64 {
    ((u128::from(next(state)) * u128::from(n)) >> 64) as u64
}

/// `dddddddd/ffffffff`, 1000 files to a directory, with its end.
fn leaf(i: u64) -> [u8; 18] {
    let mut name = *b"00000000/00000000\0";
    let mut put = |at: usize, mut n: u64| {
        for place in (at..at + 8).rev() {
            name[place] = b'0' + (n % 10) as u8;
            n /= 10;
        }
    };
    put(0, i / 1000 + 1);
    put(9, i % 1000 + 1);
    name
}

fn path(name: &[u8; 18]) -> &std::ffi::CStr {
    std::ffi::CStr::from_bytes_with_nul(name).unwrap()
}

/// What a thread does between [`Turn::begin`] and [`Lap::end`], after and before what it needs for it; how many operations that was.
type Body = dyn Fn(usize, &Turn) -> Lap + Send + Sync;

/// One run of all threads.
struct Turn {
    gate: Barrier,
    stop: AtomicBool,
}

/// When a thread began and ended its work, and how much that was.
struct Lap {
    begin: Instant,
    end: Instant,
    ops: u64,
}

impl Turn {
    /// Waits for all others. It is the threads who look at the clock: whoever lets a hundred of them go is himself one of many who
    /// wait for a processor, and by then they have worked for a while.
    fn begin(&self) -> Instant {
        self.gate.wait();
        Instant::now()
    }

    fn is_on(&self) -> bool {
        !self.stop.load(Relaxed)
    }
}

impl Lap {
    fn end(begin: Instant, ops: u64) -> Self {
        Self { begin, end: Instant::now(), ops }
    }
}

/// A loop with its files, ready to run again and again.
pub(super) struct Bare {
    threads: usize,
    body: Arc<Body>,
    /// Runs to its end instead of for a time: the rate is over its own duration.
    whole: bool,
}

impl Bare {
    /// Operations a second, from when the first thread begins until the last one has ended.
    pub(super) fn run(&mut self, seconds: f64) -> f64 {
        let turn = Arc::new(Turn { gate: Barrier::new(self.threads + 1), stop: AtomicBool::new(false) });
        let threads: Vec<_> = (0..self.threads)
            .map(|t| {
                let (turn, body) = (turn.clone(), self.body.clone());
                std::thread::spawn(move || body(t, &turn))
            })
            .collect();
        turn.gate.wait();
        if !self.whole {
            std::thread::sleep(Duration::from_secs_f64(seconds));
            turn.stop.store(true, Relaxed);
        }
        let laps: Vec<_> = threads.into_iter().map(|t| t.join().expect("a thread of the bare loop")).collect();
        let begin = laps.iter().map(|lap| lap.begin).min().expect("a thread");
        let end = laps.iter().map(|lap| lap.end).max().expect("a thread");
        laps.iter().map(|lap| lap.ops).sum::<u64>() as f64 / (end - begin).as_secs_f64()
    }
}

fn root(dir: &Path) -> OwnedFd {
    fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).expect("the directory")
}

fn make(root: BorrowedFd<'_>, i: u64, bytes: u64, buf: &[u8]) {
    let name = leaf(i);
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::TRUNC | OFlags::CLOEXEC;
    let fd = fs::openat(root, path(&name), flags, Mode::from_raw_mode(0o666)).expect("a file");
    let mut left = bytes;
    while left > 0 {
        left -= io::write(&fd, &buf[..left.min(buf.len() as u64) as usize]).expect("a write") as u64;
    }
}

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

// The two calls that a loop could make in line are made as the C library makes them, by a function that returns. Where the
// kernel guards its own returns (AMD's "Safe RET"), a loop in which nothing returns between one call and the next is up to a
// quarter faster; a program that has functions can't be such a loop. The others close files, which is a function anyway.

#[inline(never)]
fn pread(fd: &OwnedFd, buf: &mut [u8], at: u64) -> io::Result<usize> {
    io::pread(fd, buf, at)
}

#[inline(never)]
fn statat(root: &OwnedFd, name: &[u8; 18]) -> io::Result<fs::Stat> {
    fs::statat(root, path(name), AtFlags::empty())
}

/// `size` bytes at the start of a page, as an allocator for I/O would give them; `room` has a page more.
fn aligned(room: &mut [u8], size: usize) -> &mut [u8] {
    let at = room.as_ptr().align_offset(PAGE);
    &mut room[at..at + size]
}

/// Aligned random reads of one file, the largest that is there. Each thread opens it for itself: one that all share has a count of
/// users that goes from processor to processor.
pub(super) fn randread(dir: &Path, threads: usize, size: u64) -> Bare {
    let (path, bytes) = super::peers::largest(dir).expect("the file that was made");
    let blocks = bytes / size;
    let body = move |t: usize, turn: &Turn| {
        let fd = fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).expect("the file");
        let (mut state, mut ops) = (t as u64 + 1, 0);
        let mut room = vec![1_u8; size as usize + PAGE];
        let buf = aligned(&mut room, size as usize);
        let begin = turn.begin();
        while turn.is_on() {
            let n = pread(&fd, buf, below(&mut state, blocks) * size).expect("a read");
            assert_eq!(n as u64, size);
            ops += 1;
        }
        Lap::end(begin, ops)
    };
    Bare { threads, body: Arc::new(body), whole: false }
}

/// `stat` of the files of a set `s`, in order or at random.
pub(super) fn stat(dir: &Path, threads: usize, files: u64, random: bool) -> Bare {
    let root = Arc::new(root(&dir.join("s")));
    let body = move |t: usize, turn: &Turn| {
        let (mut state, mut ops, mut i) = (t as u64 + 1, 0, t as u64 * files / threads as u64);
        let begin = turn.begin();
        while turn.is_on() {
            i = if random { below(&mut state, files) } else { (i + 1) % files };
            statat(&root, &leaf(i)).expect("a stat");
            ops += 1;
        }
        Lap::end(begin, ops)
    };
    Bare { threads, body: Arc::new(body), whole: false }
}

/// Makes empty files, each thread in directories of its own; each run makes all of them in a fresh directory.
pub(super) fn create(dir: &Path, threads: usize, files: u64) -> Bare {
    let dir = dir.to_owned();
    let rounds = Arc::new(AtomicU64::new(0));
    let body = move |t: usize, turn: &Turn| {
        let round = rounds.fetch_add(1, Relaxed) / threads as u64;
        let place = dir.join(format!("round{round}"));
        let _ = std::fs::create_dir(&place);
        let root = root(&place);
        let (mut ops, mut d) = (0, t as u64);
        let begin = turn.begin();
        while d * 1000 < files {
            let name = leaf(d * 1000);
            let own = std::ffi::CString::new(&name[..8]).unwrap();
            fs::mkdirat(&root, &own, Mode::from_raw_mode(0o777)).expect("a directory");
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let at = fs::openat(&root, &own, flags, Mode::empty()).expect("a directory");
            for i in d * 1000..files.min(d * 1000 + 1000) {
                let name = leaf(i);
                let last = std::ffi::CStr::from_bytes_with_nul(&name[9..]).unwrap();
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                drop(fs::openat(&at, last, flags, Mode::from_raw_mode(0o666)).expect("a file"));
                ops += 1;
            }
            d += threads as u64;
        }
        Lap::end(begin, ops)
    };
    Bare { threads, body: Arc::new(body), whole: true }
}

fn read_whole(fd: &OwnedFd, buf: &mut [u8]) {
    while io::read(fd, &mut *buf).expect("a read") == buf.len() {}
}

fn append(fd: &OwnedFd, buf: &[u8], state: &mut u64) {
    fs::seek(fd, SeekFrom::End(0)).expect("a seek");
    let n = below(state, MEAN) as usize;
    assert_eq!(io::write(fd, &buf[..n]).expect("a write"), n);
}

/// Which files are there, for all threads; picked in the shared rotation that the language prescribes.
struct Pool {
    /// 0 absent, 1 there, 2 somebody's at this moment.
    files: Vec<AtomicU8>,
    /// Where the rotations over absent and over existing files stand.
    cursors: [AtomicU64; 2],
}

impl Pool {
    fn new(files: u64, there: u64) -> Self {
        let files = (0..files).map(|i| AtomicU8::new(u8::from(i < there))).collect();
        Self { files, cursors: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    fn take(&self, there: u8) -> u64 {
        loop {
            let i = self.cursors[there as usize].fetch_add(1, Relaxed) % self.files.len() as u64;
            if self.files[i as usize].compare_exchange(there, 2, Relaxed, Relaxed).is_ok() {
                return i;
            }
        }
    }

    fn put(&self, i: u64, there: u8) {
        self.files[i as usize].store(there, Relaxed);
    }
}

/// Thirteen steps of a mail server on files that all threads share, four in five of them there.
pub(super) fn varmail(dir: &Path, threads: usize, files: u64) -> Bare {
    let root = Arc::new(root(dir));
    make_dirs(root.as_fd(), files);
    let there = files * 4 / 5;
    let buf = vec![1_u8; BIG];
    (0..there).for_each(|i| make(root.as_fd(), i, MEAN, &buf));
    let pool = Pool::new(files, there);
    let body = move |t: usize, turn: &Turn| {
        let (mut state, mut ops) = (t as u64 + 1, 0);
        let mut room = vec![1_u8; BIG + PAGE];
        let buf = aligned(&mut room, BIG);
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
        let begin = turn.begin();
        while turn.is_on() {
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
        Lap::end(begin, ops)
    };
    Bare { threads, body: Arc::new(body), whole: false }
}

/// Ten times open, read, close, and an append to one log; on the files of a set `bigfileset`.
pub(super) fn webserver(dir: &Path, threads: usize, files: u64) -> Bare {
    let root = Arc::new(root(&dir.join("bigfileset")));
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC;
    let log = Arc::new(fs::open(dir.join("log"), flags, Mode::from_raw_mode(0o666)).expect("the log"));
    let cursor = AtomicU64::new(0);
    let body = move |t: usize, turn: &Turn| {
        let (mut state, mut rounds) = (t as u64 + 1, 0_u64);
        let mut room = vec![1_u8; BIG + PAGE];
        let buf = aligned(&mut room, BIG);
        let begin = turn.begin();
        while turn.is_on() {
            for _ in 0..10 {
                let name = leaf(cursor.fetch_add(1, Relaxed) % files);
                let fd =
                    fs::openat(&*root, path(&name), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).expect("a file");
                read_whole(&fd, buf);
            }
            append(&log, buf, &mut state);
            if rounds % 256 == 0 && fs::seek(&*log, SeekFrom::End(0)).expect("a seek") > LOG {
                fs::ftruncate(&*log, 0).expect("a cut");
            }
            rounds += 1;
        }
        Lap::end(begin, rounds * 31)
    };
    Bare { threads, body: Arc::new(body), whole: false }
}
