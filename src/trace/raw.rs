//! What a source of calls reports.

use super::call::{InodeId, TimeBetween};
use super::kind::{CallArg, CallClass, KindId};

/// What a source knows of an open file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FdFacts {
    pub id: Option<InodeId>,
    /// Its type and permissions, as `st_mode`.
    pub mode: Option<u32>,
    /// The position of the descriptor.
    pub position: Option<u64>,
    pub size: Option<u64>,
    /// The flags of its `open`, without `O_CLOEXEC`.
    pub flags: Option<u32>,
    /// Its absolute name.
    pub path: Option<Vec<u8>>,
    pub closes_on_exec: bool,
}

/// What `stat` returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatFacts {
    pub size: u64,
    pub mode: u32,
    pub id: Option<InodeId>,
}

/// A call that ended, as a source saw it.
#[derive(Clone, Debug, Default)]
pub struct RawCall {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub start: u64,
    pub end: u64,
    pub thread: u32,
    pub process: u32,
    pub kind: KindId,
    pub args: [u64; 6],
    /// As the kernel returned it: below 0 the number of the error.
    pub result: i64,
    /// The texts behind the arguments `Path` and `Path2`. `None` with such an argument: it could not be read.
    pub names: [Option<Vec<u8>>; 2],
    /// The files of the arguments `Fd` and `Fd2`, before the call; of one with an empty name, that of `Dir`; the first of an
    /// `open` that succeeded is the file that it returned, after it. The device of an identity is that of `stat`, not that of
    /// the kernel.
    pub files: [Option<FdFacts>; 2],
    /// What was behind the argument `OffsetAt` before the call; `None` without one.
    pub offset: Option<u64>,
    /// The flags of `struct open_how`.
    pub how_flags: Option<u32>,
    pub stat: Option<StatFacts>,
    /// The bytes asked for by a call with `struct iovec`.
    pub wanted: Option<u64>,
    /// How the thread spent the time since the end of its last call that was reported.
    pub between: Option<TimeBetween>,
    /// The time in the call itself that it did not run. If the call is left out, that is time between calls.
    pub within: Option<TimeBetween>,
}

impl RawCall {
    /// An argument as a descriptor.
    pub fn fd(&self, arg: usize) -> i32 {
        self.args[arg] as i32
    }

    /// Why a call is on no file at all, and did nothing: its name is none.
    pub(crate) fn without_name(&self) -> Option<&'static str> {
        let kind = self.kind.get();
        kind.arg(CallArg::Path)?;
        let name = self.names[0].as_deref();
        let is_empty = name.is_some_and(<[u8]>::is_empty);
        // With a directory's descriptor an empty name may stand for that.
        let has_dir = kind.arg(CallArg::Dir).is_some_and(|at| self.fd(at) != libc::AT_FDCWD);
        match i32::try_from(-self.result) {
            Ok(libc::EFAULT) if is_empty || name.is_none() => Some("with a bad address"),
            Ok(libc::ENOENT) if is_empty && !has_dir => Some("with an empty name"),
            Ok(libc::ENAMETOOLONG) if name.is_none_or(|name| name.len() + 1 >= libc::PATH_MAX as usize) => {
                Some("with a name that is too long")
            }
            _ => None,
        }
    }

    /// The kind of a call, where its arguments decide: locks by `fcntl`, and looking at an open file with an empty name.
    pub(crate) fn exact_kind(&self) -> KindId {
        let kind = self.kind.get();
        let named = |name| KindId::named(name).unwrap_or(self.kind);
        match kind.class {
            CallClass::Dup if kind.arg(CallArg::Command).is_some() => match self.args[1] as i32 {
                libc::F_GETLK | libc::F_SETLK | libc::F_SETLKW => named("fcntl_lock"),
                libc::F_OFD_GETLK | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => named("fcntl_lock"),
                _ => self.kind,
            },
            CallClass::Stat
                if kind.arg(CallArg::Dir).is_some_and(|at| self.fd(at) != libc::AT_FDCWD)
                    && self.names[0].as_ref().is_some_and(Vec::is_empty) =>
            {
                named(if kind.name == "statx" { "fstatx" } else { "fstat" })
            }
            _ => self.kind,
        }
    }
}
