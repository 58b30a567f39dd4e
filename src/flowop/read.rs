//! `read`: one read from a file, at random or on from the last.

use super::args::Args;
use super::transfer::{Aim, FileUse, OffsetSource, Offsets, TransferTarget, exactly, largest, units, workingset};
use super::{At, BuiltOp, Effects, FlowopEntry, Op, Step};
use crate::exec::{OpCx, Stop, short};
use crate::os::Errno;
use crate::random::{self, Quantity};
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::ops::Range;
use std::sync::Arc;

pub(super) const FLOWOPS: &[FlowopEntry] = &[FlowopEntry {
    spec: Flowop {
        name: "read",
        class: Class::Io,
        direction: IoDirection::Read,
        uses: placed!("partial", "directio", "dsync", "noreadahead", "align", "stride", "backward", "reoffset"),
        roles: &[Role::UsesSlot, Role::NeedsFile],
        origin: Origin::Both,
        doc: "one read; sequential reads start over at the end of the file",
        example: "flowop read name=rd,filename=data,iosize=8k,random",
    },
    build: Read::build,
}];

impl Read {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self {
            file: FileUse::new(args, true)?,
            iosize: args.need_iosize()?,
            place: OffsetSource::new(args)?,
            workingset: workingset(args)?,
        }))
    }
}

#[derive(Clone, Debug)]
struct Read {
    file: FileUse,
    iosize: Quantity,
    place: OffsetSource,
    workingset: Quantity,
}

impl Op for Read {
    fn instantiate<'r>(&'r self, at: &At<'_>) -> Box<dyn Step + 'r> {
        let workingset = self.workingset.draw(&mut random::stream(at.seed, &[at.ordinal as u64]));
        let offsets = Offsets::new(self.place.clone(), workingset);
        Box::new(ReadStep { target: TransferTarget::new(self.file.clone(), self.iosize.clone(), offsets) })
    }

    fn describe(&self) -> String {
        let set = match &self.workingset {
            Quantity::Const(0) => String::new(),
            q => format!(" workingset={q}"),
        };
        format!("{} iosize={}{}{set}", self.file.describe(), self.iosize, self.place.describe())
    }

    fn preserves(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects {
            buffer: largest(&self.iosize),
            exact_buffer: exactly(&self.iosize),
            units: units(&self.iosize, &self.place),
            ..self.file.effects()
        }
    }
}

struct ReadStep {
    target: TransferTarget,
}

impl Step for ReadStep {
    #[inline]
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        if let Some(outcome) = self.again(cx) { outcome } else { self.anywhere(cx) }
    }
}

impl ReadStep {
    /// One more random read of the file that the last one was of. `None`: it is not that simple.
    #[inline]
    fn again(&mut self, cx: &mut OpCx<'_>) -> Option<Result<(), Stop>> {
        let known = self.target.known.as_mut()?;
        cx.begin();
        let offset = known.aim(&mut cx.io.slots, &mut cx.rng)?;
        let buf = cx.io.buffer.slice(known.len)?;
        cx.io.last_offset = offset;
        Some(match cx.env.engine.pread(&mut known.handle, buf, offset) {
            Ok(n) if n as u64 == known.len => cx.end_fast(n as u64),
            Ok(n) => {
                let (slot, len) = (known.slot, known.len);
                end_short(cx, slot, len, Some(offset), n)
            }
            Err(errno) => Err(fail(cx, known.slot, errno)),
        })
    }

    #[inline(never)]
    fn anywhere(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let Aim { slot, offset, len } = self.target.aim(cx)?;
        let Some(range) = cx.io.buffer.place(len) else { return Err(small_buffer(cx, len)) };
        cx.begin();
        let buf = cx.io.buffer.get_mut(range.clone());
        let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(Stop::over()) };
        let result = match offset {
            Some(offset) => cx.env.engine.pread(handle, buf, offset),
            None => {
                cx.io.last_offset = handle.position;
                cx.env.engine.read(handle, buf)
            }
        };
        match result {
            Ok(n) if n as u64 == len => cx.end(n as u64),
            Ok(0) if offset.is_none() => rewind_and_read(cx, slot, range),
            Ok(n) => end_short(cx, slot, len, offset, n),
            Err(errno) => Err(fail(cx, slot, errno)),
        }
    }
}

/// The end of a read that brought less than was asked for: at the end of the file that is all there is.
#[cold]
fn end_short(cx: &mut OpCx<'_>, slot: usize, len: u64, offset: Option<u64>, done: usize) -> Result<(), Stop> {
    match short::read_rest(cx, slot, len, offset, done) {
        Ok(bytes) => cx.end(bytes),
        Err(errno) => Err(fail(cx, slot, errno)),
    }
}

/// At the end of the file: back to its start. The read that only found the end is no operation.
#[cold]
fn rewind_and_read(cx: &mut OpCx<'_>, slot: usize, range: Range<usize>) -> Result<(), Stop> {
    let engine = cx.env.engine;
    let Some(handle) = cx.handle(slot) else { return Err(Stop::over()) };
    if let Err(errno) = engine.seek(handle, 0) {
        return Err(fail(cx, slot, errno));
    }
    cx.cell().add_calls(2);
    cx.io.last_offset = 0;
    cx.restamp();
    cx.begin();
    let len = range.len() as u64;
    let buf = cx.io.buffer.get_mut(range);
    let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(Stop::over()) };
    cx.io.last_offset = 0;
    match engine.read(handle, buf) {
        Ok(n) => end_short(cx, slot, len, None, n),
        Err(errno) => Err(fail(cx, slot, errno)),
    }
}

#[cold]
fn fail(cx: &mut OpCx<'_>, slot: usize, errno: Errno) -> Stop {
    let file = cx.io.slots.get(slot).file;
    cx.failed("read failed", errno, file)
}

/// The thread's `memsize` is smaller than an I/O.
#[cold]
pub(super) fn small_buffer(cx: &mut OpCx<'_>, len: u64) -> Stop {
    cx.misuse(
        format!("an I/O of {len} bytes is larger than the thread's `memsize`"),
        "make `memsize` at least as large as `iosize`",
    )
}
