//! `read`: one sequential or random read from a file.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, Op, Step, StepInit, entry, lost_file};
use super::transfer::{
    FileUse, OffsetSource, Offsets, Transfer, TransferTarget, UnsizedEnd, constant_size, max_size, units,
};
use super::working_set::WorkingSet;
use crate::exec::{OpCx, Stop, short};
use crate::random::Quantity;
use std::ops::Range;
use std::sync::Arc;
use wml_language::spec::{IoDirection, Origin, Role};

pub(super) const FLOWOPS: &[FlowopEntry] = &[entry("read", Read::build)
    .direction(IoDirection::Read)
    .origin(Origin::Both)
    .uses(placed!("partial", "directio", "dsync", "noreadahead", "align", "stride", "offset", "backward", "reoffset"))
    .roles(&[Role::UsesSlot, Role::NeedsFile])
    .doc(
        "reads `iosize` bytes of the file in the slot, sequentially or at random offsets; at its end a sequential \
              reader returns to its start",
    )
    .example("flowop read name=rd,filename=data,iosize=8k,random")];

impl Read {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self {
            file: FileUse::new(args, true)?,
            iosize: args.need_iosize()?,
            offset_source: OffsetSource::new(args)?,
            workingset: WorkingSet::new(args)?,
        }))
    }
}

#[derive(Clone, Debug)]
struct Read {
    file: FileUse,
    iosize: Quantity,
    offset_source: OffsetSource,
    workingset: WorkingSet,
}

impl Op for Read {
    fn instantiate<'r>(&'r self, init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        let workingset = self.workingset.draw(init);
        let offsets = Offsets::new(self.offset_source.clone(), workingset, UnsizedEnd::Actual);
        Box::new(ReadStep { target: TransferTarget::new(self.file.clone(), self.iosize.clone(), offsets) })
    }

    fn describe(&self) -> String {
        let (places, set) = (self.offset_source.describe(), self.workingset.describe());
        format!("{} iosize={}{places}{set}", self.file.describe(), self.iosize)
    }

    fn effects(&self) -> Effects {
        Effects {
            preserves: true,
            buffer: max_size(&self.iosize),
            exact_buffer: constant_size(&self.iosize),
            units: units(&self.iosize, &self.offset_source),
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
        if let Some(outcome) = self.run_fast(cx) { outcome } else { self.run_slow(cx) }
    }
}

impl ReadStep {
    /// Reads from the file of the previous read, at random and with a constant size, with the cached target: a draw, a
    /// comparison and the call. `None` when the target is not cached or no longer valid. This and smaller changes of
    /// the same step cut a random read from 184 to 169 instructions.
    #[inline]
    fn run_fast(&mut self, cx: &mut OpCx<'_>) -> Option<Result<(), Stop>> {
        let cached = self.target.cached.as_mut()?;
        cx.begin();
        let offset = cached.next_offset(&mut cx.io.slots, &mut cx.rng)?;
        let buf = cx.io.buffer.slice(cached.len)?;
        cx.io.last_offset = offset;
        Some(match cx.env.engine.pread(&mut cached.handle, buf, offset) {
            Ok(n) if n as u64 == cached.len => cx.end_fast(n as u64),
            Ok(n) => {
                let (slot, len) = (cached.slot, cached.len);
                end_short(cx, slot, len, Some(offset), n)
            }
            Err(errno) => Err(cx.failed_in_slot("read failed", errno, cached.slot)),
        })
    }

    /// Reads in all other cases. Separate from [`Self::run_fast`] so that the latter stays small enough to be inlined.
    #[inline(never)]
    fn run_slow(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let Transfer { slot, offset, len } = self.target.next_transfer(cx)?;
        let range = cx.place(len)?;
        cx.begin();
        let buf = cx.io.buffer.get_mut(range.clone());
        let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(lost_file(cx, slot)) };
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
            // With `at` the call that was asked for, and no other: where it ends, the file ends.
            Ok(n) if self.target.offsets.is_at() => cx.end(n as u64),
            Ok(n) => end_short(cx, slot, len, offset, n),
            Err(errno) => Err(cx.failed_in_slot("read failed", errno, slot)),
        }
    }
}

/// Ends a read that returned fewer bytes than requested: reads the rest, up to the end of the file.
#[cold]
fn end_short(cx: &mut OpCx<'_>, slot: usize, len: u64, offset: Option<u64>, done: usize) -> Result<(), Stop> {
    match short::read_rest(cx, slot, len, offset, done) {
        Ok(bytes) => cx.end(bytes),
        Err(errno) => Err(cx.failed_in_slot("read failed", errno, slot)),
    }
}

/// Returns to the start of the file and reads there. The read that returned 0 bytes at the end is not counted as an
/// operation.
#[cold]
fn rewind_and_read(cx: &mut OpCx<'_>, slot: usize, range: Range<usize>) -> Result<(), Stop> {
    let engine = cx.env.engine;
    let Some(handle) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
    if let Err(errno) = handle.seek(0) {
        return Err(cx.failed_in_slot("read failed", errno, slot));
    }
    cx.cell().add_calls(2);
    cx.io.last_offset = 0;
    cx.restamp();
    cx.begin();
    let len = range.len() as u64;
    let buf = cx.io.buffer.get_mut(range);
    let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(lost_file(cx, slot)) };
    cx.io.last_offset = 0;
    match engine.read(handle, buf) {
        Ok(n) => end_short(cx, slot, len, None, n),
        Err(errno) => Err(cx.failed_in_slot("read failed", errno, slot)),
    }
}
