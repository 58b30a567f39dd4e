//! Traces: what a program did with its files, call by call.
//!
//! A *source* sees the calls: `ptrace`, eBPF, or the text of strace. It sends each as a [`RawCall`] when it ends, with what
//! it knows: arguments, result, names as the program gave them, facts of the file. It reports forks, `exec` and the end of
//! threads too. The [`TraceResolver`] knows descriptors and working directories of all processes: it makes names absolute,
//! follows positions, asks the [`ProcessView`] about descriptors that it has not seen opened, and leaves out what is outside
//! of the [`TraceScope`]. It passes each call on, as a [`TracedCall`], to a function that writes or counts it.
//!
//! So a source need not know paths, positions or descriptors. What it knows better (the identity of a file, its position
//! and its size before the call, from the kernel) it states in [`RawCall::files`], and the resolver takes that. Everything
//! unknown is `None`, in no case 0.
//!
//! Times are nanoseconds of `CLOCK_MONOTONIC`. Calls come in the order of their ends; forks before the calls of the child.
//! The kinds of calls, their arguments and classes are one table, [`KINDS`].
//!
//! Not here: the command line, and what is made of traces.

mod bpf;
mod call;
mod columns;
mod comparison;
mod comparison_files;
mod comparison_sheet;
mod existence;
mod format;
mod kind;
mod listing;
mod own_links;
mod partly_known;
mod paths;
mod ptrace;
mod raw;
mod reader;
mod resolver;
mod scope;
mod spread;
mod strace;
mod strace_values;
mod summary;
mod summary_sheet;
mod tables;
mod used_files;
mod varint;
mod view;
mod writer;

/// What the numbers in a trace mean: those of Linux, whatever program reads it.
pub mod flags {
    pub use libc::{
        EACCES, EBADF, EEXIST, EINTR, ENOENT, ENOTDIR, EPERM, EROFS, EXDEV, F_DUPFD_CLOEXEC, F_GETLK, F_OFD_GETLK,
        FALLOC_FL_PUNCH_HOLE, O_ACCMODE, O_APPEND, O_CLOEXEC, O_CREAT, O_DIRECT, O_DIRECTORY, O_DSYNC, O_EXCL,
        O_NOFOLLOW, O_PATH, O_RDWR, O_TMPFILE, O_TRUNC, O_WRONLY, RENAME_EXCHANGE, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT,
        S_IFREG, S_IFSOCK, SEEK_CUR, SEEK_DATA, SEEK_END, SEEK_HOLE, SEEK_SET,
    };
}

pub use bpf::{BpfLosses, BpfRecorder, BpfRefusal};
pub use call::{InodeId, TimeBetween, TraceEvent, TracedCall, TracedWait};
pub use comparison::TraceComparison;
pub use comparison_files::ComparedFile;
pub use comparison_sheet::TraceComparisonDocument;
pub use format::{TRACE_MARK, TraceEnd, TraceError, TraceHeader};
pub use kind::{CALL_CLASSES, CallArg, CallClass, CallKind, KINDS, KindId};
pub use listing::{call_line, calls_heading};
pub use partly_known::{CallsAndBytes, PartlyKnown};
pub use paths::{PathId, PathTable};
pub use ptrace::{Recorded, RecordingEnd, RecordingWish, ptrace_cost, record_by_ptrace};
pub use raw::{FdFacts, RawCall, StatFacts};
pub use reader::TraceReader;
pub use resolver::{EventSink, TraceResolver};
pub use scope::TraceScope;
pub use spread::Spread;
pub use strace::{ImportedTrace, import_strace};
pub use summary::{ClassFigures, TraceSummary};
pub use summary_sheet::TraceDocument;
pub use used_files::FileFigures;
pub use view::{NoView, ProcView, ProcessView};
pub use writer::{NextPart, TraceWriter, TreeEntry};
