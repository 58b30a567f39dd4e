//! Memory-mapped I/O: `mmapread`, `mmapwrite`.
//!
//! A step keeps the mapping of the file that it used last, as an application does. If the slot holds another file, or
//! the file was opened again, the next operation maps it, as part of its own time. The kernel writes dirty pages back
//! later, or on `fsync`.
//!
//! Mapped I/O does not use the file position of the kernel: sequential I/O goes from the start of the file to its end
//! and starts over. A file that is shorter than its nominal size is extended to it before it is written.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, Op, Step, StepInit, entry};
use super::transfer::{FileUse, OffsetSource, Offsets, UnsizedEnd, constant_size, max_size};
use super::working_set::WorkingSet;
use crate::exec::{OpCx, Stop};
use crate::io_engine;
use crate::random::Quantity;
use std::ops::Range;
use std::sync::Arc;
use wml_language::diag::{Code, Diagnostic};
use wml_language::spec::{IoDirection, Role};
use wml_os::Errno;
use wml_os::mapped::FileMap;

const USES: &[&str] = placed!("align", "stride", "offset", "backward", "reoffset");

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("mmapread", |args| Mapped::build(args, false))
        .direction(IoDirection::Read)
        .uses(USES)
        .roles(&[Role::UsesSlot, Role::NeedsFile])
        .doc("copies `iosize` bytes from the memory-mapped file in the slot, sequentially or at random offsets")
        .example("flowop mmapread name=rd,filename=data,iosize=4k,random"),
    entry("mmapwrite", |args| Mapped::build(args, true))
        .direction(IoDirection::Write)
        .uses(USES)
        .roles(&[Role::UsesSlot, Role::NeedsFile])
        .doc(
            "copies `iosize` bytes to the memory-mapped file in the slot, sequentially or at random offsets; \
             extends it first to its defined size",
        )
        .example("flowop mmapwrite name=wr,filename=data,iosize=4k,random"),
];

impl Mapped {
    fn build(args: &Args<'_>, write: bool) -> BuiltOp {
        let file = FileUse::new(args, true)?;
        // `mmap` needs a descriptor that is open for reading, and for a writable mapping one open for reading and
        // writing.
        if let Some(set) = file.set.as_ref().filter(|set| set.writeonly || (write && set.readonly)) {
            let word = if set.writeonly { "writeonly" } else { "readonly" };
            let message = format!("flowop `{}` maps files of `{}`, which is `{word}`", args.name, set.name);
            return Err(Diagnostic::error(Code::OutOfRange, args.span_of("filesetname"), message)
                .help(format!("remove `{word}` from the file set")));
        }
        Ok(Arc::new(Self {
            file,
            iosize: args.need_iosize()?,
            offset_source: OffsetSource::with_offset(args)?,
            workingset: WorkingSet::new(args)?,
            write,
        }))
    }
}

#[derive(Debug)]
struct Mapped {
    file: FileUse,
    iosize: Quantity,
    offset_source: OffsetSource,
    workingset: WorkingSet,
    write: bool,
}

impl Op for Mapped {
    fn instantiate<'r>(&'r self, init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        let workingset = self.workingset.draw(init);
        let offsets = Offsets::new(self.offset_source.clone(), workingset, UnsizedEnd::Defined);
        Box::new(MappedStep { op: self, offsets, map: None })
    }

    fn describe(&self) -> String {
        format!("{} iosize={}{}", self.file.describe(), self.iosize, self.offset_source.describe())
    }

    fn effects(&self) -> Effects {
        let (buffer, exact_buffer) = (max_size(&self.iosize), constant_size(&self.iosize));
        Effects { preserves: !self.write, buffer, exact_buffer, ..self.file.effects() }
    }
}

struct MappedStep<'r> {
    op: &'r Mapped,
    offsets: Offsets,
    map: Option<CachedMap>,
}

/// The mapping of a file.
struct CachedMap {
    /// The opening of the file, as counted by [`crate::exec::slots::Slot::opening`].
    opening: u64,
    /// `None` in an engine without files.
    map: Option<FileMap>,
    /// File size in bytes when it was mapped.
    len: u64,
}

impl Step for MappedStep<'_> {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let slot = self.op.file.ensure_open(cx)?;
        let len = self.op.iosize.draw(&mut cx.rng);
        let offset = self.offsets.next(cx, slot, len)?.unwrap_or(0);
        let range = if self.op.write { cx.data(slot, len)? } else { cx.place(len)? };
        cx.begin();
        match self.copy(cx, slot, offset, range) {
            Ok(bytes) => cx.end(bytes),
            Err(errno) => {
                // After a fault the mapping contains a page of zeros in place of the file's: it must not be used again.
                self.map = None;
                let what = if self.op.write { "mapped write failed" } else { "mapped read failed" };
                Err(cx.failed_in_slot(what, errno, slot))
            }
        }
    }
}

impl MappedStep<'_> {
    /// Copies between the mapping and the thread's buffer. Returns the bytes copied, which are fewer at the end of the
    /// file.
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
        if n == 0 {
            return Ok(0);
        }
        let range = range.start..range.start + n;
        match &mut held.map {
            Some(map) if self.op.write => map.write(offset, cx.io.buffer.get(range))?,
            Some(map) => map.read(offset, cx.io.buffer.get_mut(range))?,
            None => {}
        }
        Ok(n as u64)
    }

    /// Maps the file in the slot. For a write that ends at `end`, extends a shorter file first.
    #[cold]
    fn map(&self, cx: &mut OpCx<'_>, slot: usize, end: u64) -> Result<CachedMap, Errno> {
        let (opening, nominal) = (cx.io.slots.get(slot).opening, cx.io.slots.get(slot).nominal);
        let handle = cx.handle(slot).ok_or(Errno::BADF)?;
        let mut len = handle.read_size()?;
        let mut calls = 2;
        if self.op.write && len < end {
            len = nominal.max(end);
            handle.truncate(len)?;
            calls += 1;
        }
        let map = if len > 0 {
            io_engine::call(handle.fd, |fd| FileMap::new(fd, len as usize, self.op.write).map(Some))?
        } else {
            None
        };
        cx.cell().add_calls(calls);
        Ok(CachedMap { opening, map, len })
    }
}
