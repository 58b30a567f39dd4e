//! `write`, `appendfile`, `appendfilerand`: one write to a file, at random, on from the last, or at its end.

use super::args::Args;
use super::read::small_buffer;
use super::transfer::{Aim, FileUse, OffsetSource, Offsets, TransferTarget, exactly, largest, units, workingset};
use super::{At, BuiltOp, Effects, FlowopEntry, Op, Step, Unit};
use crate::exec::{OpCx, Stop, short};
use crate::os::Errno;
use crate::random::{self, Quantity};
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::ops::Range;
use std::sync::Arc;

const APPEND: &[&str] =
    &["filesetname", "fd", "iosize", "opennext", "indexed", "uniform", "directio", "dsync", "wrap", "fsyncevery"];
const APPEND_RANDOM: &[&str] = &[
    "filesetname",
    "fd",
    "iosize",
    "opennext",
    "indexed",
    "uniform",
    "directio",
    "dsync",
    "wrap",
    "fsyncevery",
    "maxsize",
];

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "write",
            class: Class::Io,
            direction: IoDirection::Write,
            uses: placed!(
                "partial",
                "directio",
                "dsync",
                "wrap",
                "align",
                "stride",
                "backward",
                "reoffset",
                "fsyncevery"
            ),
            roles: &[Role::UsesSlot, Role::NeedsFile],
            origin: Origin::Both,
            doc: "one write; a sequential writer makes its file longer and longer, unless `wrap=` bounds it",
            example: "flowop write name=wr,filename=data,iosize=8k,random",
        },
        build: |args| Write::build(args, WriteEnd::No),
    },
    FlowopEntry {
        spec: Flowop {
            name: "appendfile",
            class: Class::Io,
            direction: IoDirection::Write,
            uses: APPEND,
            roles: &[Role::UsesSlot, Role::NeedsFile],
            origin: Origin::Both,
            doc: "one write at the end of the file",
            example: "flowop appendfile name=ap,filename=data,iosize=8k,wrap=1m",
        },
        build: |args| Write::build(args, WriteEnd::Whole),
    },
    FlowopEntry {
        spec: Flowop {
            name: "appendfilerand",
            class: Class::Io,
            direction: IoDirection::Write,
            uses: APPEND_RANDOM,
            roles: &[Role::UsesSlot, Role::NeedsFile],
            origin: Origin::Both,
            doc: "one write at the end of the file, of a random size below `iosize`; with `maxsize` writes of `iosize` that fill a random part of the room left",
            example: "flowop appendfilerand name=ap,filename=data,iosize=16k,wrap=1m",
        },
        build: |args| Write::build(args, WriteEnd::Random),
    },
];

impl Write {
    fn build(args: &Args<'_>, end: WriteEnd) -> BuiltOp {
        Ok(Arc::new(Self {
            file: FileUse::new(args, true)?,
            iosize: args.need_iosize()?,
            place: OffsetSource::new(args)?,
            workingset: workingset(args)?,
            end,
            wrap: args.int("wrap", 0)?,
            fsync_every: args.int("fsyncevery", 0)?,
            max_size: if end == WriteEnd::Random { args.int("maxsize", 0)? } else { 0 },
        }))
    }
}

/// Whether the write goes to the end of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WriteEnd {
    /// No: where `place` says.
    No,
    /// Yes, all of `iosize`.
    Whole,
    /// Yes, 0 to `iosize` − 1 bytes.
    Random,
}

#[derive(Debug)]
struct Write {
    file: FileUse,
    iosize: Quantity,
    place: OffsetSource,
    workingset: Quantity,
    end: WriteEnd,
    wrap: u64,
    fsync_every: u64,
    /// `maxsize=` of an append of random size; 0: none.
    max_size: u64,
}

impl Op for Write {
    fn instantiate<'r>(&'r self, at: &At<'_>) -> Box<dyn Step + 'r> {
        let workingset = self.workingset.draw(&mut random::stream(at.seed, &[at.ordinal as u64]));
        let offsets = Offsets::new(self.place.clone(), workingset);
        let target = TransferTarget::new(self.file.clone(), self.iosize.clone(), offsets);
        let step = WriteStep { op: self, target, unsynced: 0 };
        if self.max_size > 0 { Box::new(FillStep(step)) } else { Box::new(step) }
    }

    fn describe(&self) -> String {
        let mut text = format!("{} iosize={}{}", self.file.describe(), self.iosize, self.place.describe());
        for (word, n) in [("wrap", self.wrap), ("fsyncevery", self.fsync_every), ("maxsize", self.max_size)] {
            if n > 0 {
                text.push_str(&format!(" {word}={n}"));
            }
        }
        if !matches!(self.workingset, Quantity::Const(0)) {
            text.push_str(&format!(" workingset={}", self.workingset));
        }
        text
    }

    fn effects(&self) -> Effects {
        let mut units = units(&self.iosize, &self.place);
        units.extend((self.end != WriteEnd::No).then_some(Unit::FileSize));
        units.extend((self.end == WriteEnd::Random).then_some(Unit::Byte));
        Effects { buffer: largest(&self.iosize), exact_buffer: exactly(&self.iosize), units, ..self.file.effects() }
    }
}

struct WriteStep<'r> {
    op: &'r Write,
    target: TransferTarget,
    /// Bytes written since the last fsync of `fsyncevery=`.
    unsynced: u64,
}

/// Writes up to this are filled while the clock runs: it is cheaper than reading the clock.
pub(super) const CHEAP_FILL: u64 = 64 << 10;

impl Step for WriteStep<'_> {
    #[inline]
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let op = self.op;
        let (slot, offset, len) = self.aim(cx)?;
        let Some(range) = cx.io.buffer.data(len) else { return Err(small_buffer(cx, len)) };
        if len > CHEAP_FILL {
            cx.restamp();
        }
        if op.wrap > 0 && offset.is_none() {
            start_over(cx, slot, len, op.wrap, op.end)?;
        }
        cx.begin();
        if op.end != WriteEnd::No {
            let engine = cx.env.engine;
            let Some(handle) = cx.handle(slot) else { return Err(Stop::over()) };
            if let Err(errno) = engine.seek_end(handle) {
                return Err(fail(cx, slot, errno));
            }
            cx.io.last_offset = handle.position;
            cx.cell().add_calls(1);
        }
        match put(cx, slot, range, offset) {
            Ok(written) if op.fsync_every == 0 => cx.end(written),
            Ok(written) => self.sync(cx, slot, written),
            Err(errno) => Err(fail(cx, slot, errno)),
        }
    }
}

/// An append that fills a part of the room left: a step of its own, so that others need not ask.
struct FillStep<'r>(WriteStep<'r>);

impl Step for FillStep<'_> {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        self.0.fill(cx)
    }
}

impl WriteStep<'_> {
    #[inline]
    fn aim(&mut self, cx: &mut OpCx<'_>) -> Result<(usize, Option<u64>, u64), Stop> {
        let op = self.op;
        if op.end == WriteEnd::No {
            let Aim { slot, offset, len } = self.target.aim(cx)?;
            // A write of drawn size ends where `fsyncevery=` wants its fsync.
            let whole = op.fsync_every == 0 || matches!(op.iosize, Quantity::Const(_));
            return Ok((slot, offset, if whole { len } else { len.min(op.fsync_every - self.unsynced) }));
        }
        let slot = op.file.ensure(cx)?;
        let len = op.iosize.draw(&mut cx.rng);
        let len = if op.end == WriteEnd::Random { random::below(&mut cx.rng, len) } else { len };
        Ok((slot, None, len))
    }

    /// `maxsize=`: writes of `iosize` that fill a random part of the room left; a file that has none gets nothing.
    #[inline(never)]
    fn fill(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let op = self.op;
        let slot = op.file.ensure(cx)?;
        let chunk = op.iosize.draw(&mut cx.rng).max(1);
        cx.begin();
        let engine = cx.env.engine;
        let Some(handle) = cx.handle(slot) else { return Err(Stop::over()) };
        if let Err(errno) = engine.seek_end(handle) {
            return Err(fail(cx, slot, errno));
        }
        let start = handle.position;
        cx.io.last_offset = start;
        let room = op.max_size.saturating_sub(start);
        let len = if room > 0 { 1 + random::below(&mut cx.rng, room) } else { 0 };
        let (mut bytes, mut calls) = (0, 0);
        while bytes < len {
            let wanted = chunk.min(len - bytes);
            let Some(range) = cx.io.buffer.data(wanted) else { return Err(small_buffer(cx, wanted)) };
            match put(cx, slot, range, None) {
                Ok(written) => bytes += written,
                Err(errno) => {
                    cx.cell().add_calls(calls);
                    cx.moved(bytes);
                    return Err(fail(cx, slot, errno));
                }
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

    /// The fsync of `fsyncevery=` belongs to the write that made it due.
    fn sync(&mut self, cx: &mut OpCx<'_>, slot: usize, len: u64) -> Result<(), Stop> {
        self.unsynced += len;
        if self.unsynced >= self.op.fsync_every {
            self.unsynced = 0;
            let engine = cx.env.engine;
            let Some(handle) = cx.handle(slot) else { return Err(Stop::over()) };
            if let Err(errno) = engine.fsync(handle) {
                cx.moved(len);
                return Err(fail(cx, slot, errno));
            }
            cx.cell().add_calls(1);
        }
        cx.end(len)
    }
}

/// Writes a slice; what a short write leaves is written by further calls. Returns the bytes that went out.
#[inline]
pub(super) fn put(cx: &mut OpCx<'_>, slot: usize, range: Range<usize>, offset: Option<u64>) -> Result<u64, Errno> {
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

/// `wrap=`: a sequential writer goes back to the start of its file, and an appender cuts it to nothing, before it would pass
/// the bound. Not part of the operation: neither timed nor counted as one.
#[inline]
fn start_over(cx: &mut OpCx<'_>, slot: usize, len: u64, wrap: u64, end: WriteEnd) -> Result<(), Stop> {
    let engine = cx.env.engine;
    let Some(handle) = cx.handle(slot) else { return Err(Stop::over()) };
    let reach = if end == WriteEnd::No { handle.position } else { handle.size };
    if reach + len <= wrap {
        return Ok(());
    }
    let mut calls = 1;
    let again = match end {
        WriteEnd::No => engine.seek(handle, 0),
        // Others may have appended and cut meanwhile: ask before cutting.
        _ => match engine.stat_open(handle) {
            Ok(stat) if stat.size + len <= wrap => {
                handle.size = stat.size;
                Ok(())
            }
            Ok(_) => {
                calls = 2;
                engine.truncate(handle, 0)
            }
            Err(errno) => Err(errno),
        },
    };
    cx.cell().add_calls(calls);
    cx.restamp();
    again.map_err(|errno| fail(cx, slot, errno))
}

#[cold]
pub(super) fn fail(cx: &mut OpCx<'_>, slot: usize, errno: Errno) -> Stop {
    let file = cx.io.slots.get(slot).file;
    cx.failed("write failed", errno, file)
}
