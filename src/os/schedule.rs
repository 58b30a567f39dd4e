//! The thread that steers a run gets a processor when it needs one, however many threads are ready to run.
//!
//! It does little, and what it does late makes what is measured longer: with a thousand busy threads on two processors an
//! ordinary thread waits seconds for each of its turns.

/// What the kernel's `sched_attr` has in its first version.
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
/// Threads that this one starts are ordinary ones.
const RESET_ON_FORK: u64 = 1;
/// The least slice that the kernel takes, in nanoseconds: who runs for a short time has its turn soon.
const SLICE: u64 = 100_000;

/// The calling thread goes before others as long as this lives, unless the user has said how it is to be scheduled.
#[derive(Debug)]
pub struct First {
    changed: bool,
}

impl First {
    /// In real time, where that is allowed; elsewhere by a short slice of time (since Linux 6.12).
    pub fn new() -> Self {
        // SAFETY: numbers in, a number out.
        let changed = unsafe { libc::sched_getscheduler(0) } == OTHER as i32;
        if changed && !set(&Attributes { policy: FIFO, flags: RESET_ON_FORK, priority: 1, ..Attributes::default() }) {
            set(&Attributes { policy: OTHER, runtime: SLICE, ..Attributes::default() });
        }
        Self { changed }
    }
}

impl Default for First {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for First {
    fn drop(&mut self) {
        if self.changed {
            set(&Attributes { policy: OTHER, ..Attributes::default() });
        }
    }
}

fn set(attributes: &Attributes) -> bool {
    // SAFETY: numbers in, a number out. The niceness that the thread has stays.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = Attributes { size: size_of::<Attributes>() as u32, nice, ..*attributes };
    // SAFETY: the pointer is to a live value of the size that it names, and the kernel only reads it.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}
