//! The threads of a replay: each makes its calls one after another, and waits for those of others by their counters.

use crate::call::{LONGEST_LINK, MOST_BUFFER, ReplayFiles};
use crate::plan::{ANY_RESULT, AWAITED, NAMED, OWN, ReplayAction, ReplayOp, ReplayPlan, ReplayThread, SIGN_ONLY};
use crate::root::content;
use crate::wish::{ReplaySpeed, ReplayStop, ReplayWish};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use wml_os::held_dir::HeldDir;
use wml_os::map::Map;
use wml_os::{Clock, NONE, OFlags, clock, fd, futex, limits};
use wml_trace::KINDS;

/// How often a thread looks at the counter of another one before it sleeps.
const LOOKS: u32 = 200;
/// A thread that sleeps looks again after this time: the replay may have been broken off.
const NAP: Duration = Duration::from_millis(200);
/// The numbers of errors are below this one.
const ERRORS: usize = 4096;
const STACK: usize = 256 << 10;
/// Descriptors that the program itself has.
const OWN_DESCRIPTORS: u64 = 64;

/// How far a thread is. One that has ended has made all its calls.
#[repr(align(128))]
#[derive(Default)]
struct ThreadProgress {
    done: AtomicU32,
    sleepers: AtomicU32,
}

impl ThreadProgress {
    /// Waits until so many calls are done. False if the replay was broken off.
    #[inline]
    fn wait(&self, calls: u32, stop: &AtomicBool) -> bool {
        for _ in 0..LOOKS {
            if self.done.load(Ordering::Acquire) >= calls {
                return true;
            }
            std::hint::spin_loop();
        }
        self.sleep(calls, stop)
    }

    #[cold]
    fn sleep(&self, calls: u32, stop: &AtomicBool) -> bool {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut is_done = false;
        while !is_done && !stop.load(Ordering::Relaxed) {
            let seen = self.done.load(Ordering::SeqCst);
            is_done = seen >= calls;
            if !is_done {
                let _ = futex::wait(&self.done, seen, Some(NAP));
            }
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        is_done
    }

    #[inline]
    fn set(&self, calls: u32) {
        self.done.store(calls, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            futex::wake(&self.done, u32::MAX);
        }
    }
}

/// A call whose result is not the recorded one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherResult {
    pub(crate) op: u32,
    pub(crate) result: i64,
    pub(crate) at: u64,
}

/// What a thread did.
pub(crate) struct ThreadDone {
    /// How long each call took, in nanoseconds.
    pub(crate) durations: Vec<u64>,
    pub(crate) others: Vec<OtherResult>,
    /// How many of each kind of call.
    pub(crate) differ: Vec<u64>,
    /// How many calls failed as they did when they were recorded, by the number of the error.
    pub(crate) failed: Vec<u64>,
    /// The sum of the results that are no errors, of each kind of call: the bytes, of those that move data.
    pub(crate) moved: Vec<u64>,
    /// How much later than due each call began, in nanoseconds. Empty without times.
    pub(crate) lateness: Vec<u64>,
    pub(crate) done: u32,
}

/// What all threads did.
pub struct ReplayDone {
    pub(crate) threads: Vec<ThreadDone>,
    /// Nanoseconds from the start to the end of the last call.
    pub elapsed: u64,
    pub(crate) is_broken_off: bool,
}

/// Opens the directories whose names are used.
fn held_dirs(plan: &ReplayPlan, root: &HeldDir, paths: &[Option<std::ffi::CString>]) -> io::Result<Vec<AtomicI32>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let open = |node: &u32| match paths.get(*node as usize) {
        Some(Some(path)) if path.is_empty() => fd::duplicate(root.as_fd().as_raw_fd()),
        Some(Some(path)) => fd::open_beneath(root.as_fd().as_raw_fd(), path, flags),
        // The trace makes it.
        _ => Ok(NONE),
    };
    plan.tree.handles.iter().map(|node| Ok(AtomicI32::new(open(node)?))).collect()
}

/// Runs a plan below a root in which everything is as at the beginning. `paths`: of the directories that exist, by their
/// numbers.
pub(crate) fn run(
    plan: &ReplayPlan,
    root: &HeldDir,
    paths: &[Option<std::ffi::CString>],
    wish: &ReplayWish,
    stop: &AtomicBool,
) -> Result<ReplayDone, ReplayStop> {
    let needed = plan.tree.handles.len() as u64 + plan.most_open as u64 + plan.threads.len() as u64 + OWN_DESCRIPTORS;
    let limit = limits::raise_descriptors(needed);
    if limit < needed {
        return Err(ReplayStop::Descriptors(limit, needed));
    }
    let mut link_text = vec![b'x'; LONGEST_LINK];
    link_text.push(0);
    let root_fd = fd::open_beneath(root.as_fd().as_raw_fd(), c".", OFlags::RDONLY | OFlags::DIRECTORY)?;
    // It would grow in the opens of the trace.
    fd::make_room(root_fd, needed);
    let files = ReplayFiles {
        names: &plan.tree.names,
        files: (0..plan.files).map(|_| AtomicI32::new(NONE)).collect(),
        dirs: held_dirs(plan, root, paths)?,
        root: root_fd,
        link_text,
    };
    let progress: Vec<ThreadProgress> = plan.threads.iter().map(|_| ThreadProgress::default()).collect();
    let gate = ThreadProgress::default();
    let (mut buffers, content) = (Vec::new(), content(wish.seed));
    for thread in &plan.threads {
        let length = thread.largest.clamp(64 << 10, MOST_BUFFER) as usize;
        let mut buffer = Map::new_filled(length)?;
        for part in buffer.bytes_mut().chunks_mut(content.len()) {
            part.copy_from_slice(&content[..part.len()]);
        }
        buffers.push(buffer);
    }
    futex::expect_sleepers(plan.threads.len());
    let began = AtomicU64::new(0);
    let mut threads = Vec::new();
    let failed = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for ((n, thread), mut buffer) in plan.threads.iter().enumerate().zip(buffers) {
            let (files, progress, gate, began) = (&files, &progress, &gate, &began);
            let work = move || {
                let _ended = EndOfThread(&progress[n]);
                gate.wait(1, stop);
                let run = ThreadRun { thread, progress, files, stop, start: began.load(Ordering::Acquire), wish };
                run.run(n, buffer.bytes_mut())
            };
            let started = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            match started {
                Ok(handle) => running.push(handle),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    gate.set(1);
                    return Err(error);
                }
            }
        }
        began.store(clock::monotonic_ns(), Ordering::Release);
        gate.set(1);
        for handle in running {
            threads.push(handle.join().map_err(|_| io::Error::other("a thread of the replay failed"))?);
        }
        Ok(())
    });
    let end = threads.iter().filter_map(|(_, end)| *end).max().unwrap_or(0);
    for fd in files.files.iter().chain(&files.dirs).chain([&AtomicI32::new(files.root)]) {
        let fd = fd.swap(NONE, Ordering::AcqRel);
        if fd != NONE {
            fd::close(fd);
        }
    }
    failed?;
    Ok(ReplayDone {
        threads: threads.into_iter().map(|(done, _)| done).collect(),
        elapsed: end.saturating_sub(began.load(Ordering::Acquire)),
        is_broken_off: stop.load(Ordering::Relaxed),
    })
}

/// Lets those go on that wait for a thread, however it ends.
struct EndOfThread<'a>(&'a ThreadProgress);

impl Drop for EndOfThread<'_> {
    fn drop(&mut self) {
        self.0.set(u32::MAX);
    }
}

/// A thread that runs.
struct ThreadRun<'a> {
    thread: &'a ReplayThread,
    progress: &'a [ThreadProgress],
    files: &'a ReplayFiles<'a>,
    stop: &'a AtomicBool,
    start: u64,
    wish: &'a ReplayWish,
}

impl ThreadRun<'_> {
    /// Makes all calls. Returns what came of them, and when the last one ended.
    fn run(&self, number: usize, buffer: &mut [u8]) -> (ThreadDone, Option<u64>) {
        let ops = &self.thread.ops;
        let is_timed = self.wish.speed != ReplaySpeed::Fast && !self.wish.leaves_out_thinking;
        let mut done = ThreadDone {
            durations: vec![0; ops.len()],
            others: Vec::with_capacity(NAMED),
            differ: vec![0; KINDS.len()],
            failed: vec![0; ERRORS],
            moved: vec![0; KINDS.len()],
            lateness: if is_timed { vec![0; ops.len()] } else { Vec::new() },
            done: 0,
        };
        let clock = Clock::get();
        let own = &self.progress[number];
        let mut waits = 0;
        for (n, op) in ops.iter().enumerate() {
            for wait in &self.thread.waits[waits..op.waits_end as usize] {
                if !self.progress[wait.thread as usize].wait(wait.op + 1, self.stop) {
                    break;
                }
            }
            waits = op.waits_end as usize;
            if let ReplaySpeed::Timed(factor) = self.wish.speed {
                let late = self.pause(n, factor);
                if let Some(place) = done.lateness.get_mut(n) {
                    *place = late;
                }
            }
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let made = self.files.call(op, buffer, clock);
            done.durations[n] = clock.ns(made.start, made.end);
            if let (Some(moved), Ok(bytes), true) =
                (done.moved.get_mut(usize::from(op.kind.0)), u64::try_from(made.result), op.bits & OWN == 0)
            {
                *moved = moved.saturating_add(bytes);
            }
            if made.result < 0
                && op.bits & OWN == 0
                && made.result == i64::from(op.expected)
                && let Some(known) = done.failed.get_mut(made.result.unsigned_abs() as usize)
            {
                *known += 1;
            }
            if differs(op, made.result) {
                if let Some(known) = done.differ.get_mut(usize::from(op.kind.0)) {
                    *known += 1;
                }
                if done.others.len() < NAMED {
                    let at = clock::monotonic_ns();
                    done.others.push(OtherResult { op: n as u32, result: made.result, at });
                }
            }
            done.done = n as u32 + 1;
            if op.bits & AWAITED != 0 {
                own.set(done.done);
            }
        }
        let end = (done.done > 0).then(clock::monotonic_ns);
        (done, end)
    }

    /// Waits until a call is due. Returns how long ago that is then.
    fn pause(&self, n: usize, factor: f64) -> u64 {
        let due = (self.thread.due[n] as f64 / factor) as u64;
        let now = clock::monotonic_ns();
        let at = if self.wish.leaves_out_thinking { now } else { self.start }.saturating_add(due);
        // A part of it at a time, so that a signal ends a long pause.
        while !self.stop.load(Ordering::Relaxed) && clock::monotonic_ns() < at {
            clock::wait_until(at.min(clock::monotonic_ns() + NAP.as_nanos() as u64));
        }
        clock::monotonic_ns().saturating_sub(at)
    }
}

/// True if a call did not end as it did when it was recorded.
fn differs(op: &ReplayOp, result: i64) -> bool {
    if op.bits & (ANY_RESULT | OWN) != 0 {
        return false;
    }
    let expected = if op.action == ReplayAction::Seek { op.y as i64 } else { i64::from(op.expected) };
    match op.bits & SIGN_ONLY != 0 && expected >= 0 {
        true => result < 0,
        false => result != expected,
    }
}
