//! Failures of operations: they are counted, and described for the report.
//!
//! Not in here: objects that do not belong to a file set (`ownership`), and what a failure does to the run (`runtime`).

use super::slots::FileRef;
use super::{OpCx, OpFailure, Stop, StopReason};
use wml_os::{Errno, errno_text};

impl OpCx<'_> {
    /// Returns the failure of a call of the current operation, and counts it.
    #[cold]
    pub fn failed(&mut self, what: &str, errno: Errno, file: Option<FileRef>) -> Stop {
        if let Some(foreign) = file.and_then(|file| self.foreign_object(file, errno)) {
            return foreign;
        }
        self.failed_of(self.current(), what, errno, file)
    }

    /// Returns the failure of a call on the file in a slot, and counts it.
    #[cold]
    pub(crate) fn failed_in_slot(&mut self, what: &str, errno: Errno, slot: usize) -> Stop {
        let file = self.io.slots.get(slot).file;
        self.failed(what, errno, file)
    }

    /// The same for one of several calls of an operation, after so many further calls and so many bytes, which count.
    #[cold]
    pub(crate) fn failed_after(&mut self, calls: u64, bytes: u64, what: &str, errno: Errno, slot: usize) -> Stop {
        self.cell().add_calls(calls);
        self.moved(bytes);
        self.failed_in_slot(what, errno, slot)
    }

    /// Returns the failure to open a directory of a set, of a file in it if it is known.
    #[cold]
    pub(crate) fn dir_failed(&mut self, errno: Errno, file: Option<FileRef>) -> Stop {
        self.failed("opening the directory failed", errno, file)
    }

    /// Returns the failure of a call that belongs to another flowop of the thread, and counts it there. If failures are
    /// only counted, nobody reads its message: then it has none, and the file system is not asked for its free space.
    #[cold]
    pub(crate) fn failed_of(&mut self, flowop: usize, what: &str, errno: Errno, file: Option<FileRef>) -> Stop {
        let number = errno.raw_os_error();
        self.account.stats.cell(flowop).error(number);
        self.restamp();
        self.account.last = self.env.clock.raw();
        if self.env.count_errors {
            return StopReason::Counted.into();
        }
        let root = file.map(|f| self.files.views[f.set].set.spec.root());
        StopReason::Failed(OpFailure {
            what: format!(
                "{what}: {}{}",
                errno_text(number),
                root.map_or_else(String::new, |at| free_space(errno, &at))
            ),
            path: file.map(|f| self.path(f)),
            errno: Some(number),
            help: advice(errno).to_owned(),
            flowop: Some(flowop),
        })
        .into()
    }

    /// Returns a failure of the current operation with its own message, and counts it. If failures are only counted,
    /// it has no message, and `what` is not called.
    #[cold]
    pub(crate) fn failed_as(&mut self, errno: Errno, what: impl FnOnce() -> String, help: &str) -> Stop {
        self.cell().error(errno.raw_os_error());
        self.restamp();
        self.account.last = self.env.clock.raw();
        self.failure(what, help)
    }

    /// Returns the failure of an operation that the script does not permit, and counts it under error number 0. As for
    /// [`OpCx::failed_as`], `what` may not be called.
    #[cold]
    pub(crate) fn misuse(&mut self, what: impl FnOnce() -> String, help: &str) -> Stop {
        self.cell().error(0);
        self.failure(what, help)
    }

    /// Returns a failure that has been counted.
    fn failure(&self, what: impl FnOnce() -> String, help: &str) -> Stop {
        if self.env.count_errors {
            return StopReason::Counted.into();
        }
        let help = help.to_owned();
        StopReason::Failed(OpFailure { what: what(), path: None, errno: None, help, flowop: None }).into()
    }
}

/// Describes the free space of a file system or quota that is full; empty for other errors.
fn free_space(errno: Errno, dir: &std::path::Path) -> String {
    if !matches!(errno, Errno::NOSPC | Errno::DQUOT) {
        return String::new();
    }
    wml_os::fd::statvfs_path(dir).map_or_else(
        |_| String::new(),
        |space| format!("; {} and {} inodes are free", wml_text::size::format(space.free), space.files_free),
    )
}

/// Returns the help text of an error number.
fn advice(errno: Errno) -> &'static str {
    match errno {
        Errno::NOSPC => "make the file sets smaller, or use a file system with more free space (`--dir`)",
        Errno::DQUOT => "the user's quota is exhausted: make the file sets smaller, or raise the quota",
        Errno::MFILE | Errno::NFILE => "raise the limit of open files (`ulimit -n`)",
        Errno::INVAL => "with direct I/O, use sizes and offsets that are multiples of the device's block size",
        Errno::FBIG => "the file would exceed the maximum file size of the file system: use `wrap=` for the writer",
        Errno::IO => "the device reported an error: see the kernel's log",
        Errno::ROFS => "the file system is mounted read-only: remount it, or use another one (`--dir`)",
        Errno::ACCESS | Errno::PERM => "check the permissions of the file and its directories",
        Errno::NOENT => "something other than this run has removed a file of the set: stop it and run again",
        Errno::EXIST => {
            "something other than this run has created a file at a path of the set: remove the file and run again"
        }
        Errno::BADF => {
            "the file is open for the other direction only: check `readonly` and `writeonly` of its file set"
        }
        _ => "use `--on-error count` to count such errors and continue",
    }
}
