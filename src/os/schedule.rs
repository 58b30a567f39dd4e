//! Scheduling priority for the controller thread of a run, however many threads are ready to run.
//!
//! The controller does little work, but its delays lengthen the measured time: with a thousand busy threads on two
//! processors, an ordinary thread waits for seconds each time before it gets a processor.

use std::marker::PhantomData;

/// `struct sched_attr` of the kernel in its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const OTHER: u32 = 0;
const FIFO: u32 = 1;
/// `SCHED_FLAG_RESET_ON_FORK`: new threads have the default policy.
const RESET_ON_FORK: u64 = 1;
/// The shortest time slice that the kernel accepts, in nanoseconds. A thread with a short slice is scheduled sooner.
const SLICE: u64 = 100_000;

/// A guard that raises the priority of the calling thread until it is dropped. It does nothing if the user has chosen a
/// scheduling policy.
#[derive(Debug)]
pub struct PriorityGuard {
    changed: bool,
    /// The guard has to be dropped by the thread whose priority it raised, so it is not `Send`.
    not_send: PhantomData<*const ()>,
}

impl PriorityGuard {
    /// Selects the real-time policy `SCHED_FIFO` where that is permitted, else a short time slice (since Linux 6.12).
    pub fn new() -> Self {
        // SAFETY: the argument is an integer.
        let changed = unsafe { libc::sched_getscheduler(0) } == OTHER as i32;
        if changed && !set(&Attributes { policy: FIFO, flags: RESET_ON_FORK, priority: 1, ..Attributes::default() }) {
            set(&Attributes { policy: OTHER, runtime: SLICE, ..Attributes::default() });
        }
        Self { changed, not_send: PhantomData }
    }
}

impl Default for PriorityGuard {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for PriorityGuard {
    fn drop(&mut self) {
        if self.changed && !set(&Attributes { policy: OTHER, ..Attributes::default() }) {
            // The flag can be removed only with CAP_SYS_NICE. It has no effect on threads of this policy.
            set(&Attributes { policy: OTHER, flags: RESET_ON_FORK, ..Attributes::default() });
        }
    }
}

fn set(attributes: &Attributes) -> bool {
    // SAFETY: the arguments are integers. The current niceness is read to be kept.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = Attributes { size: size_of::<Attributes>() as u32, nice, ..*attributes };
    // SAFETY: the pointer is to a live value whose size is in its first field; the kernel only reads it.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}
