//! The recorder that any user may use: `ptrace`. It sees system calls; page faults and `io_uring` it does not.

use super::call::{InodeId, TraceEvent};
use super::kind::{CallArg, CallClass, KINDS, KindId, KindSource};
use super::paths::PathTable;
use super::raw::{RawCall, StatFacts};
use super::resolver::TraceResolver;
use super::scope::TraceScope;
use super::spread::Spread;
use super::view::{NoView, ProcView, ProcessView as _};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};
use wml_os::Errno;
use wml_os::clock::monotonic_ns;
use wml_os::ptrace::{self, CallInfo, Resume, ThreadStop};

/// What is recorded.
#[derive(Clone, Debug)]
pub enum Recorded {
    /// A command, which is started.
    Command(Vec<OsString>),
    /// A process that runs, with all that it starts.
    Process(i32),
    /// A process that makes so many calls, to measure what a call costs.
    Calls(u32),
}

/// What the recorder does when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingWish {
    Continue,
    /// A command is asked to end, and recorded until it does; a process goes on without its recorder.
    Stop,
}

/// How a recording ended.
#[derive(Clone, Debug, Default)]
pub struct RecordingEnd {
    /// The exit status of the command; of one that a signal ended 128 and its number.
    pub status: Option<i32>,
    /// From the start of the command to its end, as its parent sees them: what it has started may run on.
    pub took: Option<Duration>,
    /// Programs that ran without the rights of their owner, because of the recorder.
    pub setuid: BTreeSet<String>,
    /// Calls whose end was not seen, such as those of threads that were killed in them.
    pub unfinished: u64,
    /// Requests of `io_uring`, which `ptrace` does not see.
    pub requests: u64,
}

/// A thread that is followed.
#[derive(Default)]
struct FollowedThread {
    process: u32,
    /// The call it is in: the beginning of what is reported at its end.
    call: Option<Box<RawCall>>,
    /// The number of a call that is not reported.
    other: Option<i64>,
}

/// A recorder and its threads.
struct Follower<'r, 'a> {
    resolver: &'r mut TraceResolver<'a>,
    kinds: HashMap<i64, KindId>,
    threads: HashMap<i32, FollowedThread>,
    /// Threads that have stopped before their parent has reported them.
    early: BTreeSet<i32>,
    /// True if threads stop at all calls.
    is_attached: bool,
    is_detaching: bool,
    main: i32,
    began: Instant,
    end: RecordingEnd,
}

/// How often `wish` is asked, at least.
const ASK: Duration = Duration::from_millis(100);

/// The kinds that have a system call here, by its number. `munmap` costs more than it tells.
fn traced_kinds() -> HashMap<i64, KindId> {
    let number = |(n, kind): (usize, &super::kind::CallKind)| match kind.from {
        KindSource::Syscall(Some(number)) if kind.name != "munmap" => Some((number, KindId(n as u16))),
        _ => None,
    };
    KINDS.iter().enumerate().filter_map(number).collect()
}

/// Records until the program ends, or `wish` says so, which is asked ten times a second.
pub fn record_by_ptrace(
    what: &Recorded,
    resolver: &mut TraceResolver,
    wish: &mut dyn FnMut() -> RecordingWish,
) -> io::Result<RecordingEnd> {
    let kinds = traced_kinds();
    let began = Instant::now();
    let (main, is_attached, threads) = match what {
        Recorded::Command(words) => {
            let mut calls: Vec<i64> =
                kinds.keys().copied().chain([libc::SYS_unshare, libc::SYS_io_uring_enter]).collect();
            calls.sort_unstable();
            let child = ptrace::start(words, &calls)?;
            (child, false, vec![child])
        }
        Recorded::Calls(times) => {
            let child = ptrace::start_calls(*times)?;
            (child, false, vec![child])
        }
        Recorded::Process(process) => (*process, true, ptrace::seize(*process)?),
    };
    let of_main = |thread| (thread, FollowedThread { process: main as u32, ..FollowedThread::default() });
    let mut follower = Follower {
        resolver,
        kinds,
        threads: threads.into_iter().map(of_main).collect(),
        early: BTreeSet::new(),
        is_attached,
        is_detaching: false,
        main,
        began,
        end: RecordingEnd::default(),
    };
    ptrace::start_timer();
    let done = follower.follow(wish);
    ptrace::stop_timer();
    if let Err(error) = done {
        // What can't be recorded further goes on, or was started for the recording only.
        follower.abandon();
        return Err(error);
    }
    Ok(follower.end)
}

/// What a call costs that is recorded, in nanoseconds: the least and the most of nine tenths of those of a process that does
/// nothing else. Threads that sleep on an idle machine wake slowly.
pub fn ptrace_cost() -> Option<[f64; 2]> {
    const CALLS: u32 = 3000;
    let (mut costs, mut last) = (Spread::default(), None);
    let sink = Box::new(|event: &TraceEvent, _: &PathTable| {
        if let TraceEvent::Call(call) = event {
            last.replace(call.start).into_iter().for_each(|last| costs.add(call.start.saturating_sub(last)));
        }
        Ok(())
    });
    let mut resolver = TraceResolver::new(0, TraceScope::default(), Box::new(NoView), sink);
    record_by_ptrace(&Recorded::Calls(CALLS), &mut resolver, &mut || RecordingWish::Continue).ok()?;
    drop(resolver);
    Some([costs.quantile(0.05)? as f64, costs.quantile(0.95)? as f64])
}

impl Follower<'_, '_> {
    fn follow(&mut self, wish: &mut dyn FnMut() -> RecordingWish) -> io::Result<()> {
        let (mut asked, mut has_asked) = (Instant::now(), false);
        loop {
            let stop = match ptrace::next_stop() {
                Ok(stop) => stop,
                Err(Errno::CHILD) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            // The timer ends no wait while threads stop all the time.
            if stop.is_none() || asked.elapsed() >= ASK {
                asked = Instant::now();
                if wish() == RecordingWish::Stop && !has_asked {
                    has_asked = true;
                    match self.is_attached {
                        true => self.detach(),
                        false => ptrace::kill(self.main, libc::SIGTERM),
                    }
                }
            }
            if let Some((thread, stop)) = stop {
                self.stopped(thread, stop)?;
            }
            if self.is_detaching && self.threads.is_empty() {
                return Ok(());
            }
        }
    }

    /// Stops all threads, each of which is left alone then.
    fn detach(&mut self) {
        self.is_detaching = true;
        self.threads.keys().for_each(|thread| ptrace::interrupt(*thread));
    }

    /// Lets an attached process go on. A command dies with its recorder.
    fn abandon(&mut self) {
        if self.is_attached {
            self.detach();
            while let (false, Ok(stop)) = (self.threads.is_empty(), ptrace::next_stop()) {
                if let Some((thread, stop)) = stop {
                    self.leave(thread, stop);
                }
            }
        } else {
            ptrace::kill(self.main, libc::SIGKILL);
        }
    }

    fn leave(&mut self, thread: i32, stop: ThreadStop) {
        self.threads.remove(&thread);
        match stop {
            ThreadStop::Ended(_) => {}
            ThreadStop::Signal(signal) => ptrace::resume(thread, Resume::Detached, signal),
            _ => ptrace::resume(thread, Resume::Detached, 0),
        }
        if let ThreadStop::Child(child) = stop {
            self.threads.entry(child).or_default();
        }
    }

    fn stopped(&mut self, thread: i32, stop: ThreadStop) -> io::Result<()> {
        if self.is_detaching {
            self.leave(thread, stop);
            return Ok(());
        }
        if !self.threads.contains_key(&thread) && !matches!(stop, ThreadStop::Ended(_) | ThreadStop::Exec(_)) {
            // Its parent has not reported it yet.
            self.early.insert(thread);
            return Ok(());
        }
        match stop {
            ThreadStop::Call | ThreadStop::Filtered => return self.at_call(thread),
            ThreadStop::Child(child) => self.child(thread, child)?,
            ThreadStop::Exec(former) => self.exec(thread, former)?,
            ThreadStop::Signal(signal) => {
                self.resume(thread, signal);
                return Ok(());
            }
            ThreadStop::Group => {
                ptrace::resume(thread, Resume::Listen, 0);
                return Ok(());
            }
            ThreadStop::Seized => {}
            ThreadStop::Ended(status) => {
                let known = self.threads.remove(&thread);
                self.end.unfinished += u64::from(known.is_some_and(|known| known.call.is_some()));
                if thread == self.main {
                    (self.end.status, self.end.took) = (Some(status), Some(self.began.elapsed()));
                }
                return self.resolver.exit(monotonic_ns(), thread as u32);
            }
        }
        self.resume(thread, 0);
        Ok(())
    }

    fn resume(&self, thread: i32, signal: i32) {
        let is_in_call =
            self.threads.get(&thread).is_some_and(|thread| thread.call.is_some() || thread.other.is_some());
        let how = if self.is_attached || is_in_call { Resume::ToCall } else { Resume::Free };
        ptrace::resume(thread, how, signal);
    }

    fn child(&mut self, parent: i32, child: i32) -> io::Result<()> {
        let process = self.threads.get(&parent).map_or(parent as u32, |parent| parent.process);
        // A thread is one of its process's tasks.
        let is_thread = std::fs::metadata(format!("/proc/{process}/task/{child}")).is_ok();
        let process = if is_thread { process } else { child as u32 };
        self.threads.insert(child, FollowedThread { process, ..FollowedThread::default() });
        self.resolver.fork(monotonic_ns(), parent as u32, child as u32, process, (is_thread, is_thread))?;
        if self.early.remove(&child) {
            self.resume(child, 0);
        }
        Ok(())
    }

    fn exec(&mut self, process: i32, former: i32) -> io::Result<()> {
        let own = self.threads.remove(&former).unwrap_or_default();
        self.threads.retain(|_, other| other.process != process as u32);
        let other = own.other.filter(|_| self.is_attached);
        self.threads.insert(process, FollowedThread { process: process as u32, call: None, other });
        let file = format!("/proc/{process}/exe");
        let path = std::fs::read_link(&file).ok();
        let has_rights = |mode: u32| mode & (libc::S_ISUID | libc::S_ISGID) != 0;
        if let Some(path) = &path
            && std::fs::metadata(&file).is_ok_and(|meta| has_rights(meta.mode()))
        {
            self.end.setuid.insert(path.display().to_string());
        }
        let name = path.map(|path| path.into_os_string().into_encoded_bytes());
        self.resolver.exec(monotonic_ns(), former as u32, process as u32, name.as_deref(), None)
    }

    fn at_call(&mut self, thread: i32) -> io::Result<()> {
        match ptrace::call_info(thread) {
            CallInfo::Entry { number, args } => {
                let process = self.threads[&thread].process;
                let kind = self.kinds.get(&number).copied();
                let call = kind.map(|kind| Box::new(self.begin(thread, process, kind, args)));
                let Some(own) = self.threads.get_mut(&thread) else { return Ok(()) };
                own.other = call.is_none().then_some(number);
                own.call = call;
                if number == libc::SYS_unshare {
                    // It fails seldom, and then little is lost: the tables are equal still.
                    let flags = args[0] as i32;
                    let (files, cwd) = (flags & libc::CLONE_FILES != 0, flags & libc::CLONE_FS != 0);
                    self.resolver.unshare(thread as u32, process, files, cwd);
                }
                if let Some(call) = &mut own.call {
                    call.start = monotonic_ns();
                }
            }
            CallInfo::Exit { result } => {
                let now = monotonic_ns();
                let Some(own) = self.threads.get_mut(&thread) else { return Ok(()) };
                if own.other.take() == Some(libc::SYS_io_uring_enter) {
                    self.end.requests += u64::try_from(result).unwrap_or(0);
                }
                if let Some(mut call) = own.call.take() {
                    (call.end, call.result) = (now, result);
                    look_at_result(&mut call);
                    // The kernel makes those again that a signal interrupted.
                    if !(-514..=-512).contains(&result) {
                        self.resolver.call(&call)?;
                    }
                }
            }
            CallInfo::Unknown => {}
        }
        self.resume(thread, 0);
        Ok(())
    }

    /// What is known of a call before it is made.
    fn begin(&self, thread: i32, process: u32, kind: KindId, args: [u64; 6]) -> RawCall {
        let mut raw = RawCall { thread: thread as u32, process, kind, args, ..RawCall::default() };
        let kind = kind.get();
        let value = |arg| kind.arg(arg).map(|at| args[at]);
        for (n, arg) in [CallArg::Path, CallArg::Path2].into_iter().enumerate() {
            raw.names[n] = value(arg).and_then(|at| match at {
                // The file of the descriptor itself.
                0 if kind.arg(CallArg::Dir).is_some() => Some(Vec::new()),
                at => ptrace::read_text(thread, at),
            });
        }
        for (n, arg) in [CallArg::Fd, CallArg::Fd2].into_iter().enumerate() {
            if let Some(at) = kind.arg(arg) {
                let is_known = raw.fd(at) < 0 || self.resolver.knows(raw.thread, process, raw.fd(at));
                raw.files[n] = if is_known { None } else { ProcView.descriptor(process, raw.fd(at)) };
            }
        }
        raw.offset = value(CallArg::OffsetAt).filter(|at| *at != 0).and_then(|at| number_at(thread, at));
        raw.how_flags = value(CallArg::How).and_then(|at| number_at(thread, at)).map(|flags| flags as u32);
        raw.wanted = kind.arg(CallArg::Iov).and_then(|at| lengths(thread, args[at], args[at + 1]));
        raw
    }
}

fn number_at(thread: i32, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (ptrace::read_memory(thread, address, &mut bytes) == 8).then(|| u64::from_ne_bytes(bytes))
}

/// The sum of the lengths of vectors.
fn lengths(thread: i32, address: u64, count: u64) -> Option<u64> {
    let mut bytes = vec![0; usize::try_from(count).ok()?.min(1024) * 16];
    let length = bytes.len();
    let is_whole = ptrace::read_memory(thread, address, &mut bytes) == length;
    let of_one = |pair: &[u8]| u64::from_ne_bytes([8, 9, 10, 11, 12, 13, 14, 15].map(|at| pair[at]));
    is_whole.then(|| bytes.chunks_exact(16).map(of_one).fold(0, u64::saturating_add))
}

/// What is known after a call that succeeded: the file that was opened, what `stat` returned.
fn look_at_result(raw: &mut RawCall) {
    if raw.result < 0 {
        return;
    }
    let kind = raw.kind.get();
    if kind.class == CallClass::Open {
        raw.files[0] = ProcView::file(raw.process, raw.result as i32);
    }
    let thread = raw.thread as i32;
    let mut bytes = [0; 256];
    if let Some(at) = kind.arg(CallArg::Stat) {
        let size = size_of::<libc::stat>();
        if ptrace::read_memory(thread, raw.args[at], &mut bytes[..size]) == size {
            raw.stat = Some(StatFacts {
                size: u64_at(&bytes, offset_of!(libc::stat, st_size)),
                mode: u32_at(&bytes, offset_of!(libc::stat, st_mode)),
                id: Some(InodeId {
                    device: u64_at(&bytes, offset_of!(libc::stat, st_dev)),
                    inode: u64_at(&bytes, offset_of!(libc::stat, st_ino)),
                    generation: None,
                }),
            });
        }
    } else if let Some(at) = kind.arg(CallArg::Statx) {
        let size = size_of::<libc::statx>();
        if ptrace::read_memory(thread, raw.args[at], &mut bytes[..size]) == size {
            let device = |at| u32_at(&bytes, at);
            let (major, minor) =
                (device(offset_of!(libc::statx, stx_dev_major)), device(offset_of!(libc::statx, stx_dev_minor)));
            let mode = offset_of!(libc::statx, stx_mode);
            raw.stat = Some(StatFacts {
                size: u64_at(&bytes, offset_of!(libc::statx, stx_size)),
                mode: u32::from(u16::from_ne_bytes([bytes[mode], bytes[mode + 1]])),
                id: Some(InodeId {
                    device: libc::makedev(major, minor),
                    inode: u64_at(&bytes, offset_of!(libc::statx, stx_ino)),
                    generation: None,
                }),
            });
        }
    }
}

fn u64_at(bytes: &[u8; 256], at: usize) -> u64 {
    u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|n| bytes[at + n]))
}

fn u32_at(bytes: &[u8; 256], at: usize) -> u32 {
    u32::from_ne_bytes([0, 1, 2, 3].map(|n| bytes[at + n]))
}
