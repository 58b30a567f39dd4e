//! `mmapread`, `mmapwrite`: files as memory.
//!
//! A thread keeps the map of the file that the flowop used last, as a program would; another file in the slot, or the same one
//! opened again, is mapped anew, within the operation that needs it. What is written reaches the device when the kernel sees
//! fit, or by `fsync`. Mapped I/O has no position of the kernel's: in order it goes from the start of the file to its end, and
//! over again; a file that is shorter than its nominal size is brought to it before it is written.

use super::args::Args;
use super::read::small_buffer;
use super::transfer::{FileUse, OffsetSource, Offsets, exactly, largest, workingset};
use super::{At, BuiltOp, Effects, FlowopEntry, Op, Step};
use crate::diag::{Code, Diagnostic};
use crate::exec::{OpCx, Stop};
use crate::os::Errno;
use crate::os::mapped::FileMap;
use crate::random::{self, Quantity};
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::ops::Range;
use std::sync::Arc;

const USES: &[&str] = placed!("align", "stride", "backward", "reoffset");

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "mmapread",
            class: Class::Io,
            direction: IoDirection::Read,
            uses: USES,
            roles: &[Role::UsesSlot, Role::NeedsFile],
            origin: Origin::Wmlrun,
            doc: "copies `iosize` bytes out of the mapped file",
            example: "flowop mmapread name=rd,filename=data,iosize=4k,random",
        },
        build: |args| Mapped::build(args, false),
    },
    FlowopEntry {
        spec: Flowop {
            name: "mmapwrite",
            class: Class::Io,
            direction: IoDirection::Write,
            uses: USES,
            roles: &[Role::UsesSlot, Role::NeedsFile],
            origin: Origin::Wmlrun,
            doc: "copies `iosize` bytes into the mapped file",
            example: "flowop mmapwrite name=wr,filename=data,iosize=4k,random",
        },
        build: |args| Mapped::build(args, true),
    },
];

impl Mapped {
    fn build(args: &Args<'_>, write: bool) -> BuiltOp {
        let file = FileUse::new(args, true)?;
        // The kernel maps only what is open for reading, and to be written for both.
        if let Some(set) = file.set.as_ref().filter(|set| set.writeonly || (write && set.readonly)) {
            let word = if set.writeonly { "writeonly" } else { "readonly" };
            let message = format!("flowop `{}` maps files of `{}`, which is `{word}`", args.name, set.name);
            return Err(Diagnostic::error(Code::OutOfRange, args.at("filesetname"), message)
                .help(format!("leave `{word}` of the file set out")));
        }
        Ok(Arc::new(Self {
            file,
            iosize: args.need_iosize()?,
            place: OffsetSource::with_offset(args)?,
            workingset: workingset(args)?,
            write,
        }))
    }
}

#[derive(Debug)]
struct Mapped {
    file: FileUse,
    iosize: Quantity,
    place: OffsetSource,
    workingset: Quantity,
    write: bool,
}

impl Op for Mapped {
    fn instantiate<'r>(&'r self, at: &At<'_>) -> Box<dyn Step + 'r> {
        let workingset = self.workingset.draw(&mut random::stream(at.seed, &[at.ordinal as u64]));
        let offsets = Offsets::new(self.place.clone(), workingset);
        Box::new(MappedStep { op: self, offsets, map: None })
    }

    fn describe(&self) -> String {
        format!("{} iosize={}{}", self.file.describe(), self.iosize, self.place.describe())
    }

    fn preserves(&self) -> bool {
        !self.write
    }

    fn effects(&self) -> Effects {
        Effects { buffer: largest(&self.iosize), exact_buffer: exactly(&self.iosize), ..self.file.effects() }
    }
}

struct MappedStep<'r> {
    op: &'r Mapped,
    offsets: Offsets,
    map: Option<Held>,
}

/// A map, and which opening of a file it is of.
struct Held {
    opening: u64,
    /// `None` without a file system.
    map: Option<FileMap>,
    /// Bytes of the file when it was mapped.
    len: u64,
}

impl Step for MappedStep<'_> {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let slot = self.op.file.ensure(cx)?;
        let len = self.op.iosize.draw(&mut cx.rng);
        let offset = self.offsets.next(cx, slot, len)?.unwrap_or(0);
        let range = if self.op.write { cx.io.buffer.data(len) } else { cx.io.buffer.place(len) };
        let Some(range) = range else { return Err(small_buffer(cx, len)) };
        cx.begin();
        match self.copy(cx, slot, offset, range) {
            Ok(bytes) => cx.end(bytes),
            Err(errno) => {
                // A page that was replaced by zeros must not be seen again.
                self.map = None;
                let file = cx.io.slots.get(slot).file;
                Err(cx.failed(if self.op.write { "mapped write failed" } else { "mapped read failed" }, errno, file))
            }
        }
    }
}

impl MappedStep<'_> {
    #[inline]
    fn copy(&mut self, cx: &mut OpCx<'_>, slot: usize, offset: u64, range: Range<usize>) -> Result<u64, Errno> {
        let opening = cx.io.slots.get(slot).opening;
        let end = offset + range.len() as u64;
        let held = match self.map.take() {
            Some(held) if held.opening == opening && held.len >= end => held,
            old => {
                drop(old);
                self.map(cx, slot, end)?
            }
        };
        let held = self.map.insert(held);
        let n = range.len().min(held.len.saturating_sub(offset) as usize);
        let range = range.start..range.start + n;
        match &mut held.map {
            Some(map) if self.op.write => map.write(offset, cx.io.buffer.get(range))?,
            Some(map) => map.read(offset, cx.io.buffer.get_mut(range))?,
            None => {}
        }
        Ok(n as u64)
    }

    /// Maps the file in the slot, for a write as long as it needs to be.
    #[cold]
    fn map(&self, cx: &mut OpCx<'_>, slot: usize, end: u64) -> Result<Held, Errno> {
        let engine = cx.env.engine;
        let (opening, nominal) = (cx.io.slots.get(slot).opening, cx.io.slots.get(slot).nominal);
        let handle = cx.handle(slot).ok_or(Errno::BADF)?;
        let mut len = engine.stat_open(handle)?.size;
        let mut calls = 2;
        if self.op.write && len < end {
            len = nominal.max(end);
            engine.truncate(handle, len)?;
            calls += 1;
        }
        let map = if len > 0 { engine.map(handle, len, self.op.write)? } else { None };
        cx.cell().add_calls(calls);
        Ok(Held { opening, map, len })
    }
}
