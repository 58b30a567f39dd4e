//! What a trace consists of.

use super::kind::{CallClass, KindId};
use super::paths::PathId;

/// What identifies a file while it exists. `i_generation` tells it from an earlier file with the same inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InodeId {
    pub device: u64,
    pub inode: u64,
    pub generation: Option<u32>,
}

/// How a thread spent the time since its last recorded call. The rest of it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeBetween {
    /// Ready, but without a processor.
    pub runnable: u64,
    /// Asleep.
    pub blocked: u64,
}

impl TimeBetween {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            runnable: self.runnable.saturating_add(other.runnable),
            blocked: self.blocked.saturating_add(other.blocked),
        }
    }
}

/// A call that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedCall {
    /// Nanoseconds since the beginning of the trace.
    pub start: u64,
    /// Nanoseconds.
    pub duration: u64,
    pub thread: u32,
    pub process: u32,
    pub kind: KindId,
    /// As the kernel returned it: below 0 the number of the error.
    pub result: i64,
    /// The descriptor of a call on one. That of an `open` is its result.
    pub descriptor: Option<u32>,
    /// The file, by its name or by that of its descriptor.
    pub path: Option<PathId>,
    /// The new name of `rename`, the destination of a copy.
    pub second_path: Option<PathId>,
    pub file: Option<InodeId>,
    /// Where a transfer began: of calls without an offset the position of the descriptor.
    pub offset: Option<u64>,
    /// The size of the file before the call.
    pub size: Option<u64>,
    /// The flags of the call; of calls with a descriptor and no flags, those of its `open`.
    pub flags: Option<u32>,
    /// How many bytes were asked for.
    pub wanted: Option<u64>,
    /// The size that `stat` returned.
    pub stat_size: Option<u64>,
    /// The type and permissions of the file, if known: of `stat`, what it returned.
    pub mode: Option<u32>,
    pub between: Option<TimeBetween>,
    /// Nanoseconds of the call that the thread was ready, but without a processor.
    pub runnable: Option<u64>,
}

impl TracedCall {
    /// When it ended.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.duration)
    }

    /// True for a write that waits until its data is on the device: to a file that was opened with `O_SYNC` or `O_DSYNC`,
    /// or one that asks for it itself.
    pub(crate) fn is_synchronous(&self) -> bool {
        let kind = self.kind.get();
        let asks = if kind.name == "pwritev2" { libc::RWF_DSYNC | libc::RWF_SYNC } else { libc::O_DSYNC };
        kind.class == CallClass::Write && self.flags.is_some_and(|flags| flags as i32 & asks != 0)
    }

    /// True for a call on what is known to be a directory.
    pub fn is_on_directory(&self) -> bool {
        self.mode.is_some_and(|mode| mode & libc::S_IFMT == libc::S_IFDIR)
    }

    /// The command of an `fcntl` that is no lock.
    fn command(&self) -> Option<i32> {
        self.flags.filter(|_| self.kind.get().name == "fcntl").map(|command| command as i32)
    }

    /// True for a call that is to make a copy of a descriptor.
    pub fn is_copy_of_descriptor(&self) -> bool {
        let is_copy =
            self.kind.get().name != "fcntl" || matches!(self.command(), Some(libc::F_DUPFD | libc::F_DUPFD_CLOEXEC));
        self.kind.get().class == CallClass::Dup && is_copy
    }

    /// True if it made a copy of a descriptor.
    pub fn copies_descriptor(&self) -> bool {
        let is_itself = self.descriptor.is_some_and(|from| i64::from(from) == self.result);
        self.is_copy_of_descriptor() && self.result >= 0 && !is_itself
    }

    /// True for a call on a descriptor that no file system sees: it makes a copy, is about the flags of the descriptor, or
    /// asks whether the file is a terminal, as Python and Perl do of each file that they open.
    pub fn is_of_descriptor_only(&self) -> bool {
        let asks_for_terminal = self.kind.get().name == "ioctl" && self.flags == Some(libc::TCGETS as u32);
        let is_of_flags = matches!(self.command(), Some(libc::F_GETFD | libc::F_SETFD | libc::F_GETFL));
        self.is_copy_of_descriptor() || is_of_flags || asks_for_terminal
    }

    /// How many bytes were transferred.
    pub fn bytes(&self) -> Option<u64> {
        self.kind.get().class.moves_data().then(|| u64::try_from(self.result).ok()).flatten()
    }
}

/// A thread that slept between two calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracedWait {
    pub start: u64,
    pub duration: u64,
    pub thread: u32,
    /// The traced thread that woke it.
    pub woken_by: Option<u32>,
}

/// What follows one another in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    Call(TracedCall),
    Wait(TracedWait),
    /// A thread or process began.
    Fork {
        time: u64,
        parent: u32,
        thread: u32,
        process: u32,
    },
    /// A process executes another program.
    Exec {
        time: u64,
        process: u32,
        path: Option<PathId>,
    },
    /// A thread ended.
    Exit {
        time: u64,
        thread: u32,
    },
}

impl TraceEvent {
    /// When it ended.
    pub fn time(&self) -> u64 {
        match self {
            Self::Call(call) => call.end(),
            Self::Wait(wait) => wait.start.saturating_add(wait.duration),
            Self::Fork { time, .. } | Self::Exec { time, .. } | Self::Exit { time, .. } => *time,
        }
    }
}
