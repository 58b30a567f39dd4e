//! Asynchronous reads and writes with `io_uring`, and their completions. The only module that uses the `io_uring`
//! library.
//!
//! A [`Ring`] belongs to one thread and owns the buffers of all requests in flight, so that no other code accesses
//! memory that the kernel works on. It is created, used and dropped in one descriptor table. How completions are reaped
//! is decided at its creation: by the owner thread, after each entry into the kernel, or by a [`Watcher`], which sleeps
//! in the kernel until a completion arrives.
//!
//! Not here: what is read or written and why, latencies, policy.
//!
//! Requires Linux 5.11 (waits with a time limit). Uses where available: registered files (5.19) and registered buffers
//! (up to the limit on locked memory), and completions that interrupt no thread (6.1).

use super::fd::{Fd, Result};
use super::map::MapSlice;
use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, opcode, squeue, types};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The tag of the entry that ends the watcher.
const SHUT_DOWN: u64 = u64::MAX;

/// The longest submission queue. The kernel also limits its worker threads by this length, so it must not be small.
const MAX_ENTRIES: u32 = 1024;

/// A read or a write to be started.
#[derive(Debug)]
pub struct Request {
    /// The tag: unique among the requests in flight, and below the ring's depth.
    pub tag: u32,
    /// The descriptor of the file.
    pub fd: Fd,
    /// The slot of the file among the registered files. `None` if it is not registered.
    pub registered: Option<u32>,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The number of bytes to transfer.
    pub len: u32,
    pub write: bool,
    /// The buffer. It is returned with the completion.
    pub buf: MapSlice,
}

#[derive(Debug)]
pub struct Completion {
    /// The tag of the request.
    pub tag: u32,
    /// The clock tick at which the completion was found.
    pub completed: u64,
    /// The number of bytes transferred, or the error.
    pub result: Result<usize>,
    /// The buffer of the request.
    pub buf: MapSlice,
}

/// A request that the kernel has completed and whose buffer is still in the ring. Only a [`Watcher`] makes it, once for
/// each completion, so that a buffer is not returned while the kernel may write to it.
#[derive(Debug)]
pub struct Reaped {
    tag: u32,
    /// The number of the ring.
    ring: u64,
}

impl Reaped {
    /// Returns the tag of the request.
    #[inline]
    pub fn tag(&self) -> u32 {
        self.tag
    }
}

/// An `io_uring` instance for the asynchronous I/O of one thread.
pub struct Ring {
    kernel: Arc<IoUring>,
    /// Identifies the ring in the process.
    number: u64,
    /// The buffers of the requests in flight, by tag.
    buffers: Vec<Option<MapSlice>>,
    in_flight: usize,
    /// Completions that were reaped and not yet taken.
    reaped: VecDeque<Completion>,
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

/// The consumer of a ring's completions in a separate thread.
pub struct Watcher {
    kernel: Arc<IoUring>,
    /// The number of the ring.
    ring: u64,
}

/// Checks that this kernel supports the features of `io_uring` that are needed here. Fails with `ENOSYS` if the kernel
/// has no `io_uring`, with `EPERM` if this user or container may not use it, and with `EOPNOTSUPP` if a feature is
/// missing. The result is cached.
pub fn available() -> Result<()> {
    static FOUND: OnceLock<Result<()>> = OnceLock::new();
    *FOUND.get_or_init(probe)
}

fn probe() -> Result<()> {
    let ring = IoUring::new(2).map_err(|e| errno(&e))?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).map_err(|e| errno(&e))?;
    let codes = [opcode::Read::CODE, opcode::Write::CODE, opcode::ReadFixed::CODE, opcode::WriteFixed::CODE];
    let supported = codes.iter().all(|code| probe.is_supported(*code));
    if supported && ring.params().is_feature_ext_arg() && ring.params().is_feature_nodrop() {
        Ok(())
    } else {
        Err(Errno::OPNOTSUPP)
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

impl Ring {
    /// Creates a ring for up to `depth` requests in flight and `files` registered files. If `watched`, completions are
    /// reaped by the [`Ring::watcher`], not by [`Ring::reap`].
    pub fn new(depth: u32, files: u32, watched: bool) -> Result<Self> {
        static RINGS: AtomicU64 = AtomicU64::new(0);
        let entries = depth.next_power_of_two().clamp(8, MAX_ENTRIES);
        // One more completion entry, for the no-op that ends the watcher.
        let completion_entries = (depth + 1).next_power_of_two().max(2 * entries);
        let build = |defer_taskrun: bool| {
            let mut builder = IoUring::builder();
            builder.setup_cqsize(completion_entries).setup_clamp();
            if defer_taskrun {
                builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
            }
            builder.build(entries)
        };
        // If the owner thread reaps the completions, the kernel posts them when that thread enters it (`DEFER_TASKRUN`)
        // instead of interrupting the thread.
        let ring = if watched { build(false) } else { build(true).or_else(|_| build(false)) };
        let ring = ring.map_err(|e| errno(&e))?;
        let fixed_files = files > 0 && ring.submitter().register_files_sparse(files).is_ok();
        Ok(Self {
            kernel: Arc::new(ring),
            number: RINGS.fetch_add(1, Ordering::Relaxed),
            buffers: (0..depth).map(|_| None).collect(),
            in_flight: 0,
            reaped: VecDeque::with_capacity(depth as usize),
            watched,
            fixed_buffers: false,
            fixed_files,
        })
    }

    /// Registers the mapping that contains all buffers, instead of a mapping registered before. If the limit on locked
    /// memory does not permit it, the kernel pins each buffer when it is used.
    pub fn register(&mut self, slice: &MapSlice) {
        let (at, len) = slice.mapping();
        if std::mem::take(&mut self.fixed_buffers) {
            let _ = self.kernel.submitter().unregister_buffers();
        }
        let iovec = libc::iovec { iov_base: at.cast(), iov_len: len };
        // SAFETY: `iovec` describes a live mapping, which lives as long as any of its slices. It may be unmapped before
        // the ring is dropped: the kernel holds references to the pages, and the buffers of all later requests are
        // slices of the registered mapping.
        self.fixed_buffers = unsafe { self.kernel.submitter().register_buffers(&[iovec]) }.is_ok();
    }

    /// Puts a file into a slot of the registered files, or clears the slot if `fd` is [`super::NONE`]. Returns `false`
    /// if that is not possible: then requests have to use the descriptor.
    #[inline]
    pub fn set_file(&mut self, slot: u32, fd: Fd) -> bool {
        self.fixed_files && self.kernel.submitter().register_files_update(slot, &[fd]).is_ok()
    }

    /// Returns the number of requests that were queued and whose buffers were not returned yet.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Queues a request. It starts with the next [`Ring::submit`] or [`Ring::wait`]. If it can't be queued, the error
    /// has the buffer.
    pub fn queue(&mut self, request: Request) -> std::result::Result<(), (Errno, MapSlice)> {
        let Request { tag, fd, registered, offset, len, write, mut buf } = request;
        if self.buffers.get(tag as usize).is_none_or(Option::is_some) {
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
        // SAFETY: the buffer is owned by `self.buffers` from here on until the request has completed, so no other code
        // accesses it. The kernel checks the descriptor.
        match unsafe { self.push(&entry.user_data(tag.into())) } {
            Ok(()) => {
                self.buffers[tag as usize] = Some(buf);
                self.in_flight += 1;
                Ok(())
            }
            Err(errno) => Err((errno, buf)),
        }
    }

    /// # Safety
    /// The memory that the entry refers to must stay valid, and unused by other code, until the entry has completed.
    unsafe fn push(&mut self, entry: &squeue::Entry) -> Result<()> {
        // SAFETY: only the owner of the ring accesses the submission queue, and `&mut self` excludes a second access.
        let mut queue = unsafe { self.kernel.submission_shared() };
        if queue.is_full() {
            drop(queue);
            self.submit()?;
            // SAFETY: as above; the previous handle was dropped.
            queue = unsafe { self.kernel.submission_shared() };
        }
        // SAFETY: the caller upholds the contract of this function, which is that of `push`.
        unsafe { queue.push(entry) }.map_err(|_| Errno::AGAIN)
    }

    /// Submits the queued requests. Does not wait for completions.
    pub fn submit(&mut self) -> Result<()> {
        loop {
            match self.kernel.submitter().submit() {
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                done => return done.map(drop).map_err(|e| errno(&e)),
            }
        }
    }

    /// Submits the queued requests and waits until `n` completions are available, for at most `limit`. One system call.
    pub fn wait(&mut self, n: u32, limit: Duration) -> Result<()> {
        let limit = Timespec::new().sec(limit.as_secs()).nsec(limit.subsec_nanos());
        match self.kernel.submitter().submit_with_args(n as usize, &SubmitArgs::new().timespec(&limit)) {
            Ok(_) => Ok(()),
            Err(e) if matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            Err(e) => Err(errno(&e)),
        }
    }

    /// Reaps the available completions. `now` returns the current tick and is called only if there are any.
    pub fn reap(&mut self, now: impl FnOnce() -> u64) {
        if self.watched {
            return;
        }
        // SAFETY: the ring is not watched, so its completions are reaped only here, and `&mut self` excludes a second
        // access.
        let queue = unsafe { self.kernel.completion_shared() };
        if queue.is_empty() {
            return;
        }
        let completed = now();
        for entry in queue {
            let (tag, result) = (entry.user_data() as u32, to_result(entry.result()));
            if let Some(buf) = self.buffers.get_mut(tag as usize).and_then(Option::take) {
                self.in_flight -= 1;
                self.reaped.push_back(Completion { tag, completed, result, buf });
            }
        }
    }

    /// Returns the next reaped completion.
    #[inline]
    pub fn next_completion(&mut self) -> Option<Completion> {
        self.reaped.pop_front()
    }

    /// Returns the buffer of a request whose completion the watcher has reaped. `None` if it is a request of another
    /// ring.
    pub fn return_buffer(&mut self, Reaped { tag, ring }: Reaped) -> Option<MapSlice> {
        if ring != self.number {
            return None;
        }
        let buf = self.buffers.get_mut(tag as usize)?.take()?;
        self.in_flight -= 1;
        Some(buf)
    }

    /// Creates the watcher of a watched ring. `None` if the ring is not watched or has a watcher.
    pub fn watcher(&self) -> Option<Watcher> {
        (self.watched && Arc::strong_count(&self.kernel) == 1)
            .then(|| Watcher { kernel: Arc::clone(&self.kernel), ring: self.number })
    }

    /// Ends the watcher. To be called when no request is in flight.
    pub fn end_watcher(&mut self) -> Result<()> {
        // SAFETY: a no-op entry refers to no memory.
        unsafe { self.push(&opcode::Nop::new().build().user_data(SHUT_DOWN)) }?;
        self.submit()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel tears a closed ring down later. Until then, its registrations would keep files and memory in use.
        if self.fixed_files {
            let _ = self.kernel.submitter().unregister_files();
        }
        if self.fixed_buffers {
            let _ = self.kernel.submitter().unregister_buffers();
        }
        // If the owner thread has panicked, the kernel may still access these buffers, so they are leaked.
        self.buffers.drain(..).for_each(std::mem::forget);
    }
}

impl Watcher {
    /// Waits for completions and calls `each` with request and result (bytes transferred) of each. Returns `false` if
    /// there will be no more.
    pub fn wait(&mut self, mut each: impl FnMut(Reaped, Result<usize>)) -> bool {
        // SAFETY: no argument structure is passed. If the call fails or is interrupted, the queue is only read too
        // early.
        let entered = unsafe { self.kernel.submitter().enter::<()>(0, 1, GETEVENTS, None) };
        // SAFETY: the completions of a watched ring are reaped only here, and a ring has one watcher, borrowed
        // exclusively.
        let queue = unsafe { self.kernel.completion_shared() };
        for entry in queue {
            if entry.user_data() == SHUT_DOWN {
                return false;
            }
            let reaped = Reaped { tag: entry.user_data() as u32, ring: self.ring };
            each(reaped, to_result(entry.result()));
        }
        entered.is_ok() || matches!(entered.map_err(|e| e.raw_os_error()), Err(Some(libc::EINTR)))
    }
}

/// `IORING_ENTER_GETEVENTS`: wait for completions.
const GETEVENTS: u32 = 1;

#[inline]
fn to_result(result: i32) -> Result<usize> {
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

    /// Returns `None` on kernels without `io_uring`, where there is nothing to test; there, the thread pool is used.
    fn ring(watched: bool) -> Option<Ring> {
        available().ok().map(|()| Ring::new(4, 2, watched).unwrap())
    }

    #[test]
    fn written_data_is_read_back_with_and_without_registration() {
        let Some(mut ring) = ring(false) else { return };
        let file = tempfile::tempfile().unwrap();
        let mut slices = MapSlice::allocate(4, 4096).unwrap();
        for registered in [false, true] {
            let base = 7 + u8::from(registered);
            if registered {
                ring.register(&slices[0]);
                assert!(ring.set_file(1, file.as_raw_fd()) || !ring.fixed_files);
            }
            let slot = (registered && ring.fixed_files).then_some(1);
            for write in [true, false] {
                for (tag, mut buf) in (0..).zip(std::mem::take(&mut slices)) {
                    buf.fill(if write { base + tag as u8 } else { 0 });
                    ring.queue(request(tag, file.as_raw_fd(), slot, write, buf)).unwrap();
                }
                assert_eq!(ring.in_flight(), 4);
                while ring.in_flight() > 0 {
                    ring.wait(ring.in_flight() as u32, LONG).unwrap();
                    ring.reap(|| 5);
                }
                let mut done: Vec<_> = std::iter::from_fn(|| ring.next_completion()).collect();
                done.sort_by_key(|d| d.tag);
                assert!(done.iter().all(|d| d.result == Ok(4096) && d.completed == 5));
                assert!(done.iter().all(|d| d.buf.iter().all(|b| *b == base + d.tag as u8)));
                slices = done.into_iter().map(|d| d.buf).collect();
            }
            let mut byte = [0];
            file.read_exact_at(&mut byte, 3 * 4096).unwrap();
            assert_eq!(byte[0], base + 3);
        }
    }

    #[test]
    fn a_watcher_reaps_every_completion_and_ends() {
        let Some(mut ring) = ring(true) else { return };
        let file = tempfile::tempfile().unwrap();
        let mut watcher = ring.watcher().unwrap();
        assert!(ring.watcher().is_none(), "a ring has one watcher");
        let (seen, received) = std::sync::mpsc::channel();
        let work = move || while watcher.wait(|reaped, result| seen.send((reaped, result)).unwrap()) {};
        let thread = std::thread::spawn(work);
        for (tag, buf) in (0..).zip(MapSlice::allocate(4, 4096).unwrap()) {
            ring.queue(request(tag, file.as_raw_fd(), None, true, buf)).unwrap();
            ring.submit().unwrap();
        }
        let mut reaped: Vec<Reaped> = (0..4).map(|_| received.recv().unwrap()).map(|(reaped, _)| reaped).collect();
        reaped.sort_unstable_by_key(Reaped::tag);
        assert_eq!(reaped.iter().map(Reaped::tag).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(reaped.into_iter().all(|reaped| ring.return_buffer(reaped).is_some()));
        ring.end_watcher().unwrap();
        thread.join().unwrap();
        assert_eq!(ring.in_flight(), 0);
    }

    #[test]
    fn a_ring_returns_no_buffer_for_a_completion_of_another() {
        let (Some(mut ring), Some(mut other)) = (ring(true), ring(true)) else { return };
        let file = tempfile::tempfile().unwrap();
        for (ring, buf) in [&mut ring, &mut other].into_iter().zip(MapSlice::allocate(2, 4096).unwrap()) {
            ring.queue(request(0, file.as_raw_fd(), None, true, buf)).unwrap();
            ring.submit().unwrap();
        }
        let (mut watcher, mut reaped) = (other.watcher().unwrap(), Vec::new());
        while reaped.is_empty() {
            assert!(watcher.wait(|done, _| reaped.push(done)));
        }
        assert!(ring.return_buffer(reaped.remove(0)).is_none());
        assert_eq!((ring.in_flight(), other.in_flight()), (1, 1));
    }

    #[test]
    fn errors_have_their_numbers_and_waits_time_out() {
        let Some(mut ring) = ring(false) else { return };
        let mut slices = MapSlice::allocate(2, 4096).unwrap();
        ring.wait(1, Duration::from_millis(1)).unwrap();
        ring.reap(|| 0);
        assert!(ring.next_completion().is_none(), "nothing was in flight");
        ring.queue(request(2, 1_000_000, None, false, slices.remove(0))).unwrap();
        let again = ring.queue(request(2, 0, None, false, slices.remove(0)));
        assert_eq!(again.map_err(|(errno, _)| errno), Err(Errno::INVAL), "the tag is in use");
        ring.wait(1, LONG).unwrap();
        ring.reap(|| 0);
        assert_eq!(ring.next_completion().map(|d| (d.tag, d.result)), Some((2, Err(Errno::BADF))));
    }
}
