//! Calls on a range of the file in the slot that transfer no data to or from the program: `fallocate`, `punchhole`,
//! `readahead`, `fadvise`, `syncrange`, `lock`, `unlock`.

use super::args::Args;
use super::transfer::{FileUse, OffsetSource, Offsets, UnsizedEnd};
use super::working_set::WorkingSet;
use super::{BuiltOp, Effects, FILE_CALL, FlowopEntry, Op, Step, StepInit, lost_file};
use crate::diag::{Code, Diagnostic};
use crate::engine::{Engine, Handle};
use crate::exec::{OpCx, Stop};
use crate::os::Advice;
use crate::os::Errno;
use crate::os::range::Lock;
use crate::random::Quantity;
use crate::spec::{Flowop, Role};
use std::sync::Arc;
use std::time::Duration;

/// The common attributes of this family, followed by those that only one of its flowops has.
macro_rules! uses {
    ($($own:literal),*) => {
        placed!("align", "stride", "offset", "backward", "reoffset" $(, $own)*)
    };
}

const ON_OPEN_FILE: &[Role] = &[Role::UsesSlot, Role::NeedsFile];

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "fallocate",
            uses: uses!("keepsize"),
            roles: &[Role::UsesSlot, Role::NeedsFile, Role::TakesSpace],
            doc: "allocates disk space for `iosize` bytes of the file in the slot; extends the file unless `keepsize` \
                  is given (`fallocate`)",
            example: "flowop fallocate name=al,filesetname=data,iosize=16k",
            ..FILE_CALL
        },
        build: |args| FileRange::with_size(args, RangeCall::Allocate { keep_size: args.flag("keepsize")? }),
    },
    FlowopEntry {
        spec: Flowop {
            name: "punchhole",
            uses: uses!(),
            roles: ON_OPEN_FILE,
            doc: "deallocates `iosize` bytes of the file in the slot, which then read as zeros; its size does not \
                  change (FALLOC_FL_PUNCH_HOLE)",
            example: "flowop punchhole name=ph,filename=data,iosize=4k,random",
            ..FILE_CALL
        },
        build: |args| FileRange::with_size(args, RangeCall::PunchHole),
    },
    FlowopEntry {
        spec: Flowop {
            name: "readahead",
            uses: uses!(),
            roles: ON_OPEN_FILE,
            doc: "starts reading `iosize` bytes of the file in the slot into the page cache, and does not wait for \
                  them (POSIX_FADV_WILLNEED)",
            example: "flowop readahead name=ra,filename=data,iosize=64k",
            ..FILE_CALL
        },
        build: |args| FileRange::with_size(args, RangeCall::Advise(Advice::WillNeed)),
    },
    FlowopEntry {
        spec: Flowop {
            name: "fadvise",
            uses: uses!("advice"),
            roles: ON_OPEN_FILE,
            doc: "gives the kernel the advice `advice=` on `iosize` bytes of the file in the slot, default all \
                  (`posix_fadvise`)",
            example: "flowop fadvise name=ad,filename=data,advice=dontneed",
            ..FILE_CALL
        },
        build: |args| FileRange::build(args, RangeCall::Advise(advice(args)?)),
    },
    FlowopEntry {
        spec: Flowop {
            name: "syncrange",
            uses: uses!("wait"),
            roles: ON_OPEN_FILE,
            doc: "starts writeback of `iosize` bytes of the file in the slot, default all; flushes neither metadata \
                  nor the device's cache (`sync_file_range`)",
            example: "flowop write name=wr,filename=data,iosize=64k\nflowop syncrange \
                      name=sr,filename=data,iosize=64k,reoffset",
            ..FILE_CALL
        },
        build: |args| FileRange::build(args, RangeCall::Sync { wait: args.flag("wait")? }),
    },
    FlowopEntry {
        spec: Flowop {
            name: "lock",
            uses: uses!("shared"),
            roles: ON_OPEN_FILE,
            doc: "locks `iosize` bytes of the file in the slot, default all, against other slots and threads \
                  (F_OFD_SETLK). If another one holds the lock, it retries after 20 µs, then after twice the time \
                  before, at most 1 ms",
            example: "flowop lock name=lk,filename=data,iosize=4k,random\nflowop unlock name=ul,filename=data",
            ..FILE_CALL
        },
        build: |args| {
            let kind = if args.flag("shared")? { Lock::Shared } else { Lock::Exclusive };
            FileRange::build(args, RangeCall::Lock(kind))
        },
    },
    FlowopEntry {
        spec: Flowop {
            name: "unlock",
            uses: uses!(),
            roles: ON_OPEN_FILE,
            doc: "releases the locks on `iosize` bytes of the file in the slot, default all",
            example: "flowop lock name=lk,filename=data\nflowop unlock name=ul,filename=data",
            ..FILE_CALL
        },
        build: |args| FileRange::build(args, RangeCall::Unlock),
    },
];

/// The values of `advice=`.
const ADVICES: [(&str, Advice); 6] = [
    ("normal", Advice::Normal),
    ("sequential", Advice::Sequential),
    ("random", Advice::Random),
    ("willneed", Advice::WillNeed),
    ("dontneed", Advice::DontNeed),
    ("noreuse", Advice::NoReuse),
];

/// Returns the advice of `fadvise`. `Err` when `advice=` is not given.
fn advice(args: &Args<'_>) -> Result<Advice, Diagnostic> {
    let text = args.text("advice").unwrap_or_default();
    ADVICES.iter().find(|(word, _)| *word == text).map(|(_, advice)| *advice).ok_or_else(|| {
        let message = format!("flowop `{}` of type `{}` has no `advice=`", args.name, args.spec.name);
        Diagnostic::error(Code::MissingAttribute, args.span_of("advice"), message)
            .help("add `advice=…`, such as `advice=dontneed`")
    })
}

/// A call on a range of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RangeCall {
    Allocate { keep_size: bool },
    PunchHole,
    Advise(Advice),
    Sync { wait: bool },
    Lock(Lock),
    Unlock,
}

impl RangeCall {
    /// Returns the message for its failure.
    fn failure(self) -> &'static str {
        match self {
            Self::Allocate { .. } => "fallocate failed",
            Self::PunchHole => "punching a hole failed",
            Self::Advise(_) => "posix_fadvise failed",
            Self::Sync { .. } => "sync_file_range failed",
            Self::Lock(_) => "locking failed",
            Self::Unlock => "unlocking failed",
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Allocate { keep_size: true } => " keepsize".to_owned(),
            Self::Advise(advice) => {
                let word = ADVICES.iter().find(|(_, value)| *value == advice).map_or("", |(word, _)| *word);
                format!(" advice={word}")
            }
            Self::Sync { wait: true } => " wait".to_owned(),
            Self::Lock(Lock::Shared) => " shared".to_owned(),
            _ => String::new(),
        }
    }

    fn make(self, engine: &dyn Engine, file: &mut Handle, offset: u64, len: u64) -> Result<(), Errno> {
        match self {
            Self::Allocate { keep_size } => engine.allocate(file, offset, len, keep_size),
            Self::PunchHole => engine.punch(file, offset, len),
            Self::Advise(advice) => engine.advise(file, offset, len, advice),
            Self::Sync { wait } => engine.sync_range(file, offset, len, wait),
            Self::Lock(lock) => engine.lock(file, offset, len, Some(lock)),
            Self::Unlock => engine.lock(file, offset, len, None),
        }
    }
}

#[derive(Debug)]
struct FileRange {
    file: FileUse,
    /// Length of the range in bytes; 0: the whole file.
    size: Quantity,
    offset_source: OffsetSource,
    workingset: WorkingSet,
    call: RangeCall,
}

impl FileRange {
    /// Makes an operation that needs `iosize=`.
    fn with_size(args: &Args<'_>, call: RangeCall) -> BuiltOp {
        Self::of_size(args, args.need_iosize()?, call)
    }

    /// Makes an operation that works on the whole file if `iosize=` is not given.
    fn build(args: &Args<'_>, call: RangeCall) -> BuiltOp {
        Self::of_size(args, args.quantity_or("iosize", 0)?, call)
    }

    fn of_size(args: &Args<'_>, size: Quantity, call: RangeCall) -> BuiltOp {
        Ok(Arc::new(Self {
            file: FileUse::new(args, true)?,
            size,
            offset_source: OffsetSource::with_offset(args)?,
            workingset: WorkingSet::new(args)?,
            call,
        }))
    }
}

impl Op for FileRange {
    fn instantiate<'r>(&'r self, init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        let workingset = self.workingset.draw(init);
        Box::new(FileRangeStep {
            op: self,
            offsets: Offsets::new(self.offset_source.clone(), workingset, UnsizedEnd::Defined),
        })
    }

    fn describe(&self) -> String {
        let (size, call) = (&self.size, self.call.describe());
        format!("{} iosize={size}{}{call}", self.file.describe(), self.offset_source.describe())
    }

    fn preserves(&self) -> bool {
        !matches!(self.call, RangeCall::Allocate { .. } | RangeCall::PunchHole)
    }

    fn effects(&self) -> Effects {
        self.file.effects()
    }
}

struct FileRangeStep<'r> {
    op: &'r FileRange,
    offsets: Offsets,
}

impl Step for FileRangeStep<'_> {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let call = self.op.call;
        let slot = self.op.file.ensure_open(cx)?;
        let len = self.op.size.draw(&mut cx.rng);
        let offset = match call {
            // Space for later appends, behind the end of the file.
            RangeCall::Allocate { keep_size: true } => cx.file_size(slot)?,
            _ if len == 0 => 0,
            _ => self.offsets.next(cx, slot, len)?.unwrap_or(0),
        };
        let engine = cx.env.engine;
        let mut wait = MIN_LOCK_WAIT;
        cx.begin();
        loop {
            let Some(handle) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
            match call.make(engine, handle, offset, len) {
                Ok(()) => return cx.end(0),
                Err(Errno::AGAIN | Errno::ACCESS) if matches!(call, RangeCall::Lock(_)) => {
                    wait_for_lock(cx, &mut wait)?;
                }
                Err(errno) => {
                    return Err(cx.failed_in_slot(call.failure(), errno, slot));
                }
            }
        }
    }
}

/// First wait before a lock is tried again.
const MIN_LOCK_WAIT: Duration = Duration::from_micros(20);

/// Longest wait before a lock is tried again. The alternative, a call that waits in the kernel, would not return at the
/// end of the run if threads deadlock.
const MAX_LOCK_WAIT: Duration = Duration::from_millis(1);

/// Sleeps for `wait` and doubles it. `Err` when the run ends meanwhile.
#[cold]
fn wait_for_lock(cx: &OpCx<'_>, wait: &mut Duration) -> Result<(), Stop> {
    let clock = cx.env.clock;
    let until = clock.raw().saturating_add(clock.ticks(wait.as_nanos() as u64));
    *wait = (*wait * 2).min(MAX_LOCK_WAIT);
    if cx.env.gate.sleep_until(clock, until) { Err(Stop::over()) } else { Ok(()) }
}
