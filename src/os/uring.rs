//! `io_uring`: reads and writes that run on in the kernel, and what became of them. The one file that knows the `io_uring` library.
//!
//! A [`Ring`] belongs to one thread and holds the memory of everything that is out, so that nobody touches what the kernel works
//! on. It is made, used and dropped in one descriptor table. Who takes the completions is decided when it is made: the thread
//! itself, with what each entry into the kernel brings, or a [`Watcher`] that sleeps in the kernel and is there at once.
//! Deliberately absent: what is read or written and why, latencies, policy.
//!
//! Needed: Linux 5.11 (waits with a time limit). Used where it is there: registered files (5.19) and buffers (as far as the
//! limit on locked memory goes), completions that interrupt nobody (6.1).

use super::fd::{Fd, Result};
use super::map::MapSlice;
use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, opcode, squeue, types};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Marks the entry that tells a watcher to go home.
const SHUT_DOWN: u64 = u64::MAX;

/// The longest submission queue. The kernel also takes it as a bound on its own workers, so that it must not be short.
const MOST_ENTRIES: u32 = 1024;

/// A read or a write that is to be started.
#[derive(Debug)]
pub struct Request {
    /// Tells it apart from all others that are out; below the ring's depth.
    pub tag: u32,
    /// The file.
    pub fd: Fd,
    /// The same among the registered files, if it is there.
    pub registered: Option<u32>,
    /// Where in the file.
    pub offset: u64,
    /// Bytes of the buffer that are moved.
    pub len: u32,
    /// Which way.
    pub write: bool,
    /// What it works on. Comes back with the completion.
    pub buf: MapSlice,
}

/// What became of one.
#[derive(Debug)]
pub struct Completion {
    /// Which.
    pub tag: u32,
    /// The tick at which it was found to have completed.
    pub completed: u64,
    /// Bytes moved.
    pub result: Result<usize>,
    /// Its buffer.
    pub buf: MapSlice,
}

/// Asynchronous I/O of one thread.
pub struct Ring {
    kernel: Arc<IoUring>,
    /// What the kernel works on, by tag.
    held: Vec<Option<MapSlice>>,
    in_flight: usize,
    /// Completions that were found and not yet taken.
    found: VecDeque<Completion>,
    watched: bool,
    fixed_buffers: bool,
    fixed_files: bool,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("in_flight", &self.in_flight)
            .field("watched", &self.watched)
            .finish_non_exhaustive()
    }
}

/// Takes the completions of a ring, in a thread of its own.
pub struct Watcher {
    kernel: Arc<IoUring>,
}

/// Whether this kernel gives rings that can do what is needed here, and if not, why: `ENOSYS` for none at all, `EPERM` for not
/// to this user or in this container.
pub fn available() -> Result<()> {
    static FOUND: OnceLock<Result<()>> = OnceLock::new();
    *FOUND.get_or_init(probe)
}

fn probe() -> Result<()> {
    let ring = IoUring::new(2).map_err(|e| errno(&e))?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).map_err(|e| errno(&e))?;
    let codes = [opcode::Read::CODE, opcode::Write::CODE, opcode::ReadFixed::CODE, opcode::WriteFixed::CODE];
    let able = codes.iter().all(|code| probe.is_supported(*code));
    if able && ring.params().is_feature_ext_arg() && ring.params().is_feature_nodrop() {
        Ok(())
    } else {
        Err(Errno::OPNOTSUPP)
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

impl Ring {
    /// A ring for up to `depth` operations at a time, on files of up to `files` slots. `watched`: its completions are for
    /// [`Ring::watcher`], and not for [`Ring::take`].
    pub fn new(depth: u32, files: u32, watched: bool) -> Result<Self> {
        let entries = depth.next_power_of_two().clamp(8, MOST_ENTRIES);
        // One place more for the entry that sends the watcher home.
        let room = (depth + 1).next_power_of_two().max(2 * entries);
        let build = |quiet: bool| {
            let mut builder = IoUring::builder();
            builder.setup_cqsize(room).setup_clamp();
            if quiet {
                builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
            }
            builder.build(entries)
        };
        // A thread that takes its own completions has them brought in when it enters the kernel, not by an interrupt.
        let ring = if watched { build(false) } else { build(true).or_else(|_| build(false)) };
        let ring = ring.map_err(|e| errno(&e))?;
        let fixed_files = files > 0 && ring.submitter().register_files_sparse(files).is_ok();
        Ok(Self {
            kernel: Arc::new(ring),
            held: (0..depth).map(|_| None).collect(),
            in_flight: 0,
            found: VecDeque::with_capacity(depth as usize),
            watched,
            fixed_buffers: false,
            fixed_files,
        })
    }

    /// Registers the memory that all buffers are pieces of, in place of what was registered before; where the limit on locked
    /// memory does not allow it, the kernel maps each buffer when it is used.
    pub fn register(&mut self, slice: &MapSlice) {
        let (at, len) = slice.whole();
        if std::mem::take(&mut self.fixed_buffers) {
            let _ = self.kernel.submitter().unregister_buffers();
        }
        let whole = libc::iovec { iov_base: at.cast(), iov_len: len };
        // SAFETY: the memory is a mapping that lives as long as any piece of it. It may be unmapped before the ring goes: the
        // kernel holds the pages themselves, and no request names a buffer that is no piece of the registered mapping.
        self.fixed_buffers = unsafe { self.kernel.submitter().register_buffers(&[whole]) }.is_ok();
    }

    /// Puts a file into a slot of the registered ones, or with [`super::NONE`] takes it out. False if it can't be: then it goes
    /// by its descriptor.
    pub fn set_file(&mut self, slot: u32, fd: Fd) -> bool {
        self.fixed_files && self.kernel.submitter().register_files_update(slot, &[fd]).is_ok()
    }

    /// Operations that were queued and not taken back.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Queues a request. It starts with the next [`Ring::submit`] or [`Ring::wait`]. One that can't be queued gives its buffer
    /// back.
    pub fn queue(&mut self, request: Request) -> std::result::Result<(), (Errno, MapSlice)> {
        let Request { tag, fd, registered, offset, len, write, mut buf } = request;
        if self.held.get(tag as usize).is_none_or(Option::is_some) {
            return Err((Errno::INVAL, buf));
        }
        let len = len.min(u32::try_from(buf.len()).unwrap_or(u32::MAX));
        let at = buf.as_mut_ptr();
        macro_rules! entry {
            ($fd:expr) => {
                match (write, self.fixed_buffers) {
                    (true, true) => opcode::WriteFixed::new($fd, at, len, 0).offset(offset).build(),
                    (true, false) => opcode::Write::new($fd, at, len).offset(offset).build(),
                    (false, true) => opcode::ReadFixed::new($fd, at, len, 0).offset(offset).build(),
                    (false, false) => opcode::Read::new($fd, at, len).offset(offset).build(),
                }
            };
        }
        let entry = match registered {
            Some(slot) => entry!(Fixed(slot)),
            None => entry!(types::Fd(fd)),
        };
        // SAFETY: the buffer is held from here on until the request has completed, and nobody else has it meanwhile; the
        // descriptor is a number that the kernel checks.
        match unsafe { self.push(&entry.user_data(tag.into())) } {
            Ok(()) => {
                self.held[tag as usize] = Some(buf);
                self.in_flight += 1;
                Ok(())
            }
            Err(errno) => Err((errno, buf)),
        }
    }

    /// # Safety
    /// Whatever the entry names stays valid until it has completed.
    unsafe fn push(&mut self, entry: &squeue::Entry) -> Result<()> {
        // SAFETY: only this ring's owner pushes, and it is borrowed for writing here.
        let mut queue = unsafe { self.kernel.submission_shared() };
        if queue.is_full() {
            drop(queue);
            self.submit()?;
            // SAFETY: as above; the one before is gone.
            queue = unsafe { self.kernel.submission_shared() };
        }
        // SAFETY: by this function's own contract.
        unsafe { queue.push(entry) }.map_err(|_| Errno::AGAIN)
    }

    /// Starts what is queued, and does not wait.
    pub fn submit(&mut self) -> Result<()> {
        loop {
            match self.kernel.submitter().submit() {
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                done => return done.map(drop).map_err(|e| errno(&e)),
            }
        }
    }

    /// Starts what is queued, and waits until `n` completions can be taken, or `limit` is over. One entry into the kernel.
    pub fn wait(&mut self, n: u32, limit: Duration) -> Result<()> {
        let limit = Timespec::new().sec(limit.as_secs()).nsec(limit.subsec_nanos());
        match self.kernel.submitter().submit_with_args(n as usize, &SubmitArgs::new().timespec(&limit)) {
            Ok(_) => Ok(()),
            Err(e) if matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            Err(e) => Err(errno(&e)),
        }
    }

    /// Looks at what has completed; `now` gives the tick, and is asked only if anything has.
    pub fn look(&mut self, now: impl FnOnce() -> u64) {
        if self.watched {
            return;
        }
        // SAFETY: an unwatched ring's completions are looked at here only, and it is borrowed for writing.
        let queue = unsafe { self.kernel.completion_shared() };
        if queue.is_empty() {
            return;
        }
        let completed = now();
        for entry in queue {
            let (tag, result) = (entry.user_data() as u32, outcome(entry.result()));
            if let Some(buf) = self.held.get_mut(tag as usize).and_then(Option::take) {
                self.in_flight -= 1;
                self.found.push_back(Completion { tag, completed, result, buf });
            }
        }
    }

    /// One of the completions that were found, if there is one.
    pub fn take(&mut self) -> Option<Completion> {
        self.found.pop_front()
    }

    /// The buffer of an operation whose completion the watcher has seen.
    pub fn give_back(&mut self, tag: u32) -> Option<MapSlice> {
        let buf = self.held.get_mut(tag as usize)?.take()?;
        self.in_flight -= 1;
        Some(buf)
    }

    /// What takes the completions of a watched ring; there is to be one.
    pub fn watcher(&self) -> Option<Watcher> {
        (self.watched && Arc::strong_count(&self.kernel) == 1).then(|| Watcher { kernel: Arc::clone(&self.kernel) })
    }

    /// Sends the watcher home, when nothing is out any more.
    pub fn dismiss(&mut self) -> Result<()> {
        // SAFETY: an entry that does nothing names nothing.
        unsafe { self.push(&opcode::Nop::new().build().user_data(SHUT_DOWN)) }?;
        self.submit()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // A ring that is closed is torn down later: what it was given must not keep files busy till then.
        if self.fixed_files {
            let _ = self.kernel.submitter().unregister_files();
        }
        if self.fixed_buffers {
            let _ = self.kernel.submitter().unregister_buffers();
        }
        // What the kernel may still work on, because its thread panicked, stays where it is for ever.
        self.held.drain(..).for_each(std::mem::forget);
    }
}

impl Watcher {
    /// Waits for completions and shows each, by tag and bytes moved. False if there will be no more.
    pub fn wait(&mut self, mut each: impl FnMut(u32, Result<usize>)) -> bool {
        // SAFETY: no argument is passed along. A call that is interrupted or refused only looks too early.
        let entered = unsafe { self.kernel.submitter().enter::<()>(0, 1, GETEVENTS, None) };
        // SAFETY: a watched ring's completions are taken here only, and there is one watcher.
        let queue = unsafe { self.kernel.completion_shared() };
        for entry in queue {
            if entry.user_data() == SHUT_DOWN {
                return false;
            }
            each(entry.user_data() as u32, outcome(entry.result()));
        }
        entered.is_ok() || matches!(entered.map_err(|e| e.raw_os_error()), Err(Some(libc::EINTR)))
    }
}

/// `IORING_ENTER_GETEVENTS`: wait.
const GETEVENTS: u32 = 1;

fn outcome(result: i32) -> Result<usize> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    const LONG: Duration = Duration::from_secs(10);

    fn request(tag: u32, fd: Fd, registered: Option<u32>, write: bool, buf: MapSlice) -> Request {
        Request { tag, fd, registered, offset: u64::from(tag) * 4096, len: 4096, write, buf }
    }

    /// On kernels without rings there is nothing to test, and the pool is what is used.
    fn ring(watched: bool) -> Option<Ring> {
        available().ok().map(|()| Ring::new(4, 2, watched).unwrap())
    }

    #[test]
    fn what_is_written_is_read_again_with_and_without_registration() {
        let Some(mut ring) = ring(false) else { return };
        let file = tempfile::tempfile().unwrap();
        let mut slices = MapSlice::cut(4, 4096).unwrap();
        for registered in [false, true] {
            let mark = 7 + u8::from(registered);
            if registered {
                ring.register(&slices[0]);
                assert!(ring.set_file(1, file.as_raw_fd()) || !ring.fixed_files);
            }
            let slot = (registered && ring.fixed_files).then_some(1);
            for write in [true, false] {
                for (tag, mut buf) in (0..).zip(std::mem::take(&mut slices)) {
                    buf.fill(if write { mark + tag as u8 } else { 0 });
                    ring.queue(request(tag, file.as_raw_fd(), slot, write, buf)).unwrap();
                }
                assert_eq!(ring.in_flight(), 4);
                while ring.in_flight() > 0 {
                    ring.wait(ring.in_flight() as u32, LONG).unwrap();
                    ring.look(|| 5);
                }
                let mut done: Vec<_> = std::iter::from_fn(|| ring.take()).collect();
                done.sort_by_key(|d| d.tag);
                assert!(done.iter().all(|d| d.result == Ok(4096) && d.completed == 5));
                assert!(done.iter().all(|d| d.buf.iter().all(|b| *b == mark + d.tag as u8)));
                slices = done.into_iter().map(|d| d.buf).collect();
            }
            let mut byte = [0];
            file.read_exact_at(&mut byte, 3 * 4096).unwrap();
            assert_eq!(byte[0], mark + 3);
        }
    }

    #[test]
    fn a_watcher_sees_every_completion_and_goes_home() {
        let Some(mut ring) = ring(true) else { return };
        let file = tempfile::tempfile().unwrap();
        let mut watcher = ring.watcher().unwrap();
        assert!(ring.watcher().is_none(), "there is only one");
        let (seen, heard) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || while watcher.wait(|tag, result| seen.send((tag, result)).unwrap()) {});
        for (tag, buf) in (0..).zip(MapSlice::cut(4, 4096).unwrap()) {
            ring.queue(request(tag, file.as_raw_fd(), None, true, buf)).unwrap();
            ring.submit().unwrap();
        }
        let mut tags: Vec<u32> = (0..4).map(|_| heard.recv().unwrap()).map(|(tag, _)| tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, [0, 1, 2, 3]);
        assert!(tags.iter().all(|tag| ring.give_back(*tag).is_some()));
        ring.dismiss().unwrap();
        thread.join().unwrap();
        assert_eq!(ring.in_flight(), 0);
    }

    #[test]
    fn errors_come_with_their_numbers_and_waits_end() {
        let Some(mut ring) = ring(false) else { return };
        let mut slices = MapSlice::cut(2, 4096).unwrap();
        ring.wait(1, Duration::from_millis(1)).unwrap();
        ring.look(|| 0);
        assert!(ring.take().is_none(), "nothing was in flight");
        ring.queue(request(2, 1_000_000, None, false, slices.remove(0))).unwrap();
        let again = ring.queue(request(2, 0, None, false, slices.remove(0)));
        assert_eq!(again.map_err(|(errno, _)| errno), Err(Errno::INVAL), "two of one tag");
        ring.wait(1, LONG).unwrap();
        ring.look(|| 0);
        assert_eq!(ring.take().map(|d| (d.tag, d.result)), Some((2, Err(Errno::BADF))));
    }
}
