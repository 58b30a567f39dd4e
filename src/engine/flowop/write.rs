//! `write`, `appendfile`, `appendfilerand`: one write to a file, sequential, random, or at its end.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, Op, Step, StepInit, Unit, entry, lost_file};
use super::transfer::{
    FileUse, OffsetSource, Offsets, Transfer, TransferTarget, UnsizedEnd, constant_size, max_size, units,
};
use super::working_set::WorkingSet;
use crate::exec::{OpCx, Stop, short};
use crate::io_engine;
use crate::random::{self, Quantity};
use std::ops::Range;
use std::sync::Arc;
use wml_language::diag::{Code, Diagnostic};
use wml_language::spec::{IoDirection, Origin, Role};
use wml_os::{Errno, fd};

/// The attributes of an append.
macro_rules! append {
    ($($own:literal),*) => {
        &[
            "filesetname", "fd", "iosize", "opennext", "indexed", "uniform", "recent", "directio", "dsync", "wrap",
            "fsyncevery" $(, $own)*
        ]
    };
}

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("write", |args| Write::build(args, AppendMode::No))
        .direction(IoDirection::Write)
        .origin(Origin::Both)
        .uses(placed!(
            "partial",
            "directio",
            "dsync",
            "wrap",
            "align",
            "stride",
            "offset",
            "backward",
            "reoffset",
            "fsyncevery"
        ))
        .roles(&[Role::UsesSlot, Role::NeedsFile])
        .doc(
            "writes `iosize` bytes to the file in the slot, sequentially or at random offsets; a sequential \
             writer extends its file without limit, unless `wrap=` is given",
        )
        .example("flowop write name=wr,filename=data,iosize=8k,random"),
    entry("appendfile", |args| {
        Write::build(args, if args.flag("onecall")? { AppendMode::OneCall } else { AppendMode::Whole })
    })
    .direction(IoDirection::Write)
    .origin(Origin::Both)
    .uses(append!("onecall"))
    .roles(&[Role::UsesSlot, Role::NeedsFile])
    .doc("writes `iosize` bytes at the end of the file in the slot")
    .example("flowop appendfile name=ap,filename=data,iosize=8k,wrap=1m"),
    entry("appendfilerand", |args| Write::build(args, AppendMode::Random))
        .direction(IoDirection::Write)
        .origin(Origin::Both)
        .uses(append!("maxsize"))
        .roles(&[Role::UsesSlot, Role::NeedsFile])
        .doc(
            "writes a random number of bytes, 0 to `iosize` − 1, at the end of the file in the slot; with \
             `maxsize`, a random part of the bytes between the end and `maxsize`, in writes of `iosize`",
        )
        .example("flowop appendfilerand name=ap,filename=data,iosize=16k,wrap=1m"),
];

impl Write {
    fn build(args: &Args<'_>, append: AppendMode) -> BuiltOp {
        if append == AppendMode::OneCall && args.int("wrap", 0)? > 0 {
            let message = format!("flowop `{}` has both `onecall` and `wrap`", args.name);
            return Err(Diagnostic::error(Code::OutOfRange, args.span_of("wrap"), message)
                .help("leave one of them out: the kernel does not say where the file ended"));
        }
        Ok(Arc::new(Self {
            file: FileUse::new(args, true)?,
            iosize: args.need_iosize()?,
            offset_source: OffsetSource::new(args)?,
            workingset: WorkingSet::new(args)?,
            append,
            wrap: args.int("wrap", 0)?,
            fsync_every: args.int("fsyncevery", 0)?,
            max_size: if append == AppendMode::Random { args.int("maxsize", 0)? } else { 0 },
        }))
    }
}

/// Whether a write appends to the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AppendMode {
    /// It does not: `offset_source` gives its offset.
    No,
    /// It appends `iosize` bytes.
    Whole,
    /// The same, with one call.
    OneCall,
    /// It appends 0 to `iosize` − 1 bytes.
    Random,
}

#[derive(Debug)]
struct Write {
    file: FileUse,
    iosize: Quantity,
    offset_source: OffsetSource,
    workingset: WorkingSet,
    append: AppendMode,
    wrap: u64,
    fsync_every: u64,
    /// `maxsize=` of an append of random size, in bytes; 0: none.
    max_size: u64,
}

impl Op for Write {
    fn instantiate<'r>(&'r self, init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        let workingset = self.workingset.draw(init);
        let offsets = Offsets::new(self.offset_source.clone(), workingset, UnsizedEnd::Unlimited);
        let target = TransferTarget::new(self.file.clone(), self.iosize.clone(), offsets);
        let step = WriteStep { op: self, target, unsynced: 0 };
        match self.append {
            AppendMode::OneCall => Box::new(AppendStep(step)),
            _ if self.max_size > 0 => Box::new(FillStep(step)),
            _ => Box::new(step),
        }
    }

    fn describe(&self) -> String {
        let mut text = format!("{} iosize={}{}", self.file.describe(), self.iosize, self.offset_source.describe());
        for (word, n) in [("wrap", self.wrap), ("fsyncevery", self.fsync_every), ("maxsize", self.max_size)] {
            if n > 0 {
                text.push_str(&format!(" {word}={n}"));
            }
        }
        if self.append == AppendMode::OneCall {
            text.push_str(" onecall");
        }
        text + &self.workingset.describe()
    }

    fn effects(&self) -> Effects {
        let mut units = units(&self.iosize, &self.offset_source);
        units.extend((self.append != AppendMode::No).then_some(Unit::FileSize));
        units.extend((self.append == AppendMode::Random).then_some(Unit::Byte));
        Effects {
            buffer: max_size(&self.iosize),
            exact_buffer: constant_size(&self.iosize),
            units,
            ..self.file.effects()
        }
    }
}

struct WriteStep<'r> {
    op: &'r Write,
    target: TransferTarget,
    /// Bytes written since the last fsync of `fsyncevery=`.
    unsynced: u64,
}

impl Step for WriteStep<'_> {
    #[inline]
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let op = self.op;
        let (slot, offset, len) = self.next_write(cx)?;
        let range = cx.data(slot, len)?;
        if op.append == AppendMode::No {
            if op.wrap > 0 && offset.is_none() {
                wrap_writer(cx, slot, len, op.wrap)?;
            }
            cx.begin();
        } else {
            cx.begin();
            let mut end = seek_end(cx, slot)?;
            if op.wrap > 0 && end + len > op.wrap {
                end = wrap_append(cx, slot)?;
            }
            cx.io.last_offset = end;
            cx.cell().add_calls(1);
        }
        match write_range(cx, slot, range, offset) {
            Ok(written) if op.fsync_every == 0 => cx.end(written),
            Ok(written) => self.sync(cx, slot, written),
            Err(errno) => Err(cx.failed_in_slot("write failed", errno, slot)),
        }
    }
}

/// The step of an append with `onecall`. A separate type, as [`FillStep`].
struct AppendStep<'r>(WriteStep<'r>);

impl Step for AppendStep<'_> {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let op = self.0.op;
        // Not by `next_write`: with two callers it is not inlined, and a write takes 33 instructions more.
        let slot = op.file.ensure_open(cx)?;
        let len = op.iosize.draw(&mut cx.rng);
        let range = cx.data(slot, len)?;
        cx.begin();
        match append_range(cx, slot, range) {
            Ok(written) if op.fsync_every == 0 => cx.end(written),
            Ok(written) => self.0.sync(cx, slot, written),
            Err(errno) => Err(cx.failed_in_slot("write failed", errno, slot)),
        }
    }
}

/// The step of an append with `maxsize=`. A separate type, so that other writes do not check for it.
struct FillStep<'r>(WriteStep<'r>);

impl Step for FillStep<'_> {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        self.0.fill(cx)
    }
}

impl WriteStep<'_> {
    /// Returns slot, offset and length of the next write. Offset `None`: at the file position.
    #[inline]
    fn next_write(&mut self, cx: &mut OpCx<'_>) -> Result<(usize, Option<u64>, u64), Stop> {
        let op = self.op;
        if op.append == AppendMode::No {
            let Transfer { slot, offset, len } = self.target.next_transfer(cx)?;
            // A write of random size is shortened to end where `fsyncevery=` needs its fsync.
            let whole = op.fsync_every == 0 || matches!(op.iosize, Quantity::Const(_));
            return Ok((slot, offset, if whole { len } else { len.min(op.fsync_every - self.unsynced) }));
        }
        let slot = op.file.ensure_open(cx)?;
        let len = op.iosize.draw(&mut cx.rng);
        let len = if op.append == AppendMode::Random { random::below(&mut cx.rng, len) } else { len };
        Ok((slot, None, len))
    }

    /// Appends a random part of the bytes that the file lacks of `maxsize`, in writes of `iosize`; nothing if it lacks
    /// none.
    #[inline(never)]
    fn fill(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let op = self.op;
        let slot = op.file.ensure_open(cx)?;
        let chunk = op.iosize.draw(&mut cx.rng);
        cx.begin();
        let start = seek_end(cx, slot)?;
        cx.io.last_offset = start;
        let missing = op.max_size.saturating_sub(start);
        let len = if missing > 0 { 1 + random::below(&mut cx.rng, missing) } else { 0 };
        let (mut bytes, mut calls) = (0, 0);
        while bytes < len {
            let wanted = chunk.min(len - bytes);
            let range = cx.further_data(slot, wanted)?;
            match write_range(cx, slot, range, None) {
                Ok(written) => bytes += written,
                Err(errno) => return Err(cx.failed_after(calls, bytes, "write failed", errno, slot)),
            }
            calls += 1;
            if bytes < len && (!bytes.is_multiple_of(chunk) || cx.expired()) {
                break;
            }
        }
        cx.cell().add_calls(calls);
        cx.io.last_offset = start;
        if op.fsync_every == 0 { cx.end(bytes) } else { self.sync(cx, slot, bytes) }
    }

    /// Ends a write with `fsyncevery=`. Calls fsync if it is due, as part of the operation.
    fn sync(&mut self, cx: &mut OpCx<'_>, slot: usize, len: u64) -> Result<(), Stop> {
        self.unsynced += len;
        if self.unsynced >= self.op.fsync_every {
            self.unsynced = 0;
            let Some(handle) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
            if let Err(errno) = io_engine::call(handle.fd, fd::fsync) {
                cx.moved(len);
                return Err(cx.failed_in_slot("write failed", errno, slot));
            }
            cx.cell().add_calls(1);
        }
        cx.end(len)
    }
}

/// Writes a range of the buffer, with further calls after a short write. Returns the bytes written.
#[inline]
pub(super) fn write_range(
    cx: &mut OpCx<'_>,
    slot: usize,
    range: Range<usize>,
    offset: Option<u64>,
) -> Result<u64, Errno> {
    let buf = cx.io.buffer.get(range.clone());
    let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(Errno::BADF) };
    let n = match offset {
        Some(offset) => cx.env.engine.pwrite(handle, buf, offset)?,
        None => {
            cx.io.last_offset = handle.position;
            cx.env.engine.write(handle, buf)?
        }
    };
    if n == range.len() { Ok(n as u64) } else { short::write_rest(cx, slot, range, offset, n) }
}

/// Appends a range of the buffer with one call if possible, with further calls after a short write. Returns the bytes
/// written.
fn append_range(cx: &mut OpCx<'_>, slot: usize, range: Range<usize>) -> Result<u64, Errno> {
    let (buf, engine) = (cx.io.buffer.get(range.clone()), cx.env.engine);
    let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(Errno::BADF) };
    let (n, calls) = engine.append(handle, buf)?;
    cx.io.last_offset = handle.position.saturating_sub(n as u64);
    cx.cell().add_calls(calls - 1);
    if n == range.len() { Ok(n as u64) } else { short::write_rest(cx, slot, range, None, n) }
}

/// Moves the file position to the end of the file, and returns it.
#[inline]
fn seek_end(cx: &mut OpCx<'_>, slot: usize) -> Result<u64, Stop> {
    let engine = cx.env.engine;
    let Some(handle) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
    match engine.seek_end(handle) {
        Ok(()) => Ok(handle.position),
        Err(errno) => Err(cx.failed_in_slot("write failed", errno, slot)),
    }
}

/// Applies `wrap=` before a write at the file position: a write that would make the file larger returns to its start.
/// This is not part of the operation: neither timed nor counted as one.
#[inline]
fn wrap_writer(cx: &mut OpCx<'_>, slot: usize, len: u64, wrap: u64) -> Result<(), Stop> {
    let Some(handle) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
    if handle.position + len <= wrap {
        return Ok(());
    }
    let wrapped = handle.seek(0);
    cx.cell().add_calls(1);
    cx.restamp();
    wrapped.map_err(|errno| cx.failed_in_slot("write failed", errno, slot))
}

/// Applies `wrap=` to an append that would make the file too large: truncates the file, and starts the operation again.
/// Until then nothing was part of it. Returns the new end.
///
/// The caller has moved to the end of the file: that position is its size, whatever other threads and earlier opens have
/// appended, while the size in the handle is only what this open knows. `#[cold]`: an append wraps rarely.
#[cold]
fn wrap_append(cx: &mut OpCx<'_>, slot: usize) -> Result<u64, Stop> {
    let Some(handle) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
    if let Err(errno) = handle.truncate(0) {
        return Err(cx.failed_in_slot("write failed", errno, slot));
    }
    cx.cell().add_calls(2);
    cx.restamp();
    cx.begin();
    seek_end(cx, slot)
}
