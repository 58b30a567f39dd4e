//! One call on a range of the file in the slot that moves no data through the program: `fallocate`, `punchhole`, `readahead`,
//! `fadvise`, `syncrange`, `lock`, `unlock`.

use super::args::Args;
use super::transfer::{FileUse, OffsetSource, Offsets, workingset};
use super::{At, Build, BuiltOp, Effects, FlowopEntry, Op, Step};
use crate::diag::{Code, Diagnostic};
use crate::engine::{Engine, Handle};
use crate::exec::{OpCx, Stop};
use crate::os::Advice;
use crate::os::Errno;
use crate::os::range::Lock;
use crate::random::{self, Quantity};
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::sync::Arc;
use std::time::Duration;

/// The attributes of all flowops here, and those that a few have besides.
macro_rules! uses {
    ($($own:literal),*) => {
        placed!("align", "stride", "backward", "reoffset" $(, $own)*)
    };
}

const fn ours(
    name: &'static str,
    build: Build,
    uses: &'static [&'static str],
    doc: &'static str,
    example: &'static str,
) -> FlowopEntry {
    let roles = &[Role::UsesSlot, Role::NeedsFile];
    let spec = Flowop {
        name,
        class: Class::Io,
        direction: IoDirection::None,
        roles,
        uses,
        origin: Origin::Wmlrun,
        doc,
        example,
    };
    FlowopEntry { spec, build }
}

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    ours(
        "fallocate",
        |args| FileRange::part(args, RangeCall::Allocate { keep_size: args.flag("keepsize")? }),
        uses!("keepsize"),
        "allocates `iosize` bytes of the file in the slot, in order or where `random` says",
        "flowop fallocate name=al,filesetname=data,iosize=16k",
    ),
    ours(
        "punchhole",
        |args| FileRange::part(args, RangeCall::PunchHole),
        uses!(),
        "gives back `iosize` bytes of the file in the slot, which read as zeros then",
        "flowop punchhole name=ph,filename=data,iosize=4k,random",
    ),
    ours(
        "readahead",
        |args| FileRange::part(args, RangeCall::Advise(Advice::WillNeed)),
        uses!(),
        "has the kernel read `iosize` bytes of the file in the slot into its cache, and does not wait for them",
        "flowop readahead name=ra,filename=data,iosize=64k",
    ),
    ours(
        "fadvise",
        |args| FileRange::any(args, RangeCall::Advise(advice(args)?)),
        uses!("advice"),
        "tells the kernel by `advice=` how `iosize` bytes of the file in the slot will be used, or all of it (`posix_fadvise`)",
        "flowop fadvise name=ad,filename=data,advice=dontneed",
    ),
    ours(
        "syncrange",
        |args| FileRange::any(args, RangeCall::Sync { wait: args.flag("wait")? }),
        uses!("wait"),
        "has the kernel begin to write `iosize` dirty bytes of the file in the slot, or all; no metadata and no flush of the \
         device (`sync_file_range`)",
        "flowop write name=wr,filename=data,iosize=64k\nflowop syncrange name=sr,filename=data,iosize=64k,reoffset",
    ),
    ours(
        "lock",
        |args| {
            let kind = if args.flag("shared")? { Lock::Shared } else { Lock::Exclusive };
            FileRange::any(args, RangeCall::Lock(kind))
        },
        uses!("shared"),
        "locks `iosize` bytes of the file in the slot, or all, against other open files; one that is taken is tried again after \
         20 µs, then twice as long, up to 1 ms (`F_OFD_SETLK`)",
        "flowop lock name=lk,filename=data,iosize=4k,random\nflowop unlock name=ul,filename=data",
    ),
    ours(
        "unlock",
        |args| FileRange::any(args, RangeCall::Unlock),
        uses!(),
        "gives back the locks on `iosize` bytes of the file in the slot, or all",
        "flowop lock name=lk,filename=data\nflowop unlock name=ul,filename=data",
    ),
];

/// What `fadvise` tells, in the words of its attribute.
fn advice(args: &Args<'_>) -> Result<Advice, Diagnostic> {
    let advices = [
        ("normal", Advice::Normal),
        ("sequential", Advice::Sequential),
        ("random", Advice::Random),
        ("willneed", Advice::WillNeed),
        ("dontneed", Advice::DontNeed),
        ("noreuse", Advice::NoReuse),
    ];
    let text = args.text("advice").unwrap_or_default();
    advices.iter().find(|(word, _)| *word == text).map(|(_, advice)| *advice).ok_or_else(|| {
        let message = format!("flowop `{}` of type `{}` gives no advice", args.name, args.spec.name);
        Diagnostic::error(Code::MissingAttribute, args.at("advice"), message)
            .help("add `advice=…`, such as `advice=dontneed`")
    })
}

/// The call of a flowop on a range of a file.
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
    /// What its failure is called.
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
            Self::Advise(advice) => format!(" advice={}", format!("{advice:?}").to_lowercase()),
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
    /// Bytes; 0: the whole file.
    size: Quantity,
    place: OffsetSource,
    workingset: Quantity,
    call: RangeCall,
}

impl FileRange {
    /// A call that must be told how many bytes.
    fn part(args: &Args<'_>, call: RangeCall) -> BuiltOp {
        args.need_iosize()?;
        Self::any(args, call)
    }

    /// A call on the whole file, if it is not told how many bytes.
    fn any(args: &Args<'_>, call: RangeCall) -> BuiltOp {
        Ok(Arc::new(Self {
            file: FileUse::new(args, true)?,
            size: args.quantity_or("iosize", 0)?,
            place: OffsetSource::with_offset(args)?,
            workingset: workingset(args)?,
            call,
        }))
    }
}

impl Op for FileRange {
    fn instantiate<'r>(&'r self, at: &At<'_>) -> Box<dyn Step + 'r> {
        let workingset = self.workingset.draw(&mut random::stream(at.seed, &[at.ordinal as u64]));
        Box::new(FileRangeStep { op: self, offsets: Offsets::new(self.place.clone(), workingset) })
    }

    fn describe(&self) -> String {
        let (size, call) = (&self.size, self.call.describe());
        format!("{} iosize={size}{}{call}", self.file.describe(), self.place.describe())
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
        let slot = self.op.file.ensure(cx)?;
        let len = match (self.op.size.draw(&mut cx.rng), call) {
            (0, RangeCall::Allocate { .. } | RangeCall::PunchHole) => 1,
            (len, _) => len,
        };
        let offset = match call {
            // Room ahead of what is appended.
            RangeCall::Allocate { keep_size: true } => cx.handle(slot).map_or(0, |handle| handle.size),
            _ if len == 0 => 0,
            _ => self.offsets.next(cx, slot, len)?.unwrap_or(0),
        };
        let engine = cx.env.engine;
        let mut wait = FIRST_WAIT;
        cx.begin();
        loop {
            let Some(handle) = cx.handle(slot) else { return Err(Stop::over()) };
            match call.make(engine, handle, offset, len) {
                Ok(()) => return cx.end(0),
                Err(Errno::AGAIN | Errno::ACCESS) if matches!(call, RangeCall::Lock(_)) => {
                    wait_for_lock(cx, &mut wait)?;
                }
                Err(errno) => {
                    let file = cx.io.slots.get(slot).file;
                    return Err(cx.failed(call.failure(), errno, file));
                }
            }
        }
    }
}

/// The first wait for a lock that another holds.
const FIRST_WAIT: Duration = Duration::from_micros(20);

/// The longest. The call that waits in the kernel would outlast the run where threads wait for one another.
const LONGEST_WAIT: Duration = Duration::from_millis(1);

#[cold]
fn wait_for_lock(cx: &OpCx<'_>, wait: &mut Duration) -> Result<(), Stop> {
    let clock = cx.env.clock;
    let until = clock.raw().saturating_add(clock.ticks(wait.as_nanos() as u64));
    *wait = (*wait * 2).min(LONGEST_WAIT);
    if cx.env.gate.sleep_until(clock, until) { Err(Stop::over()) } else { Ok(()) }
}
