//! Asynchronous I/O: `aiowrite`, `aioread`, `aiosubmit`, `aiowait`.
//!
//! The latency of an operation is the time from its submission to its completion. Its thread counts it when it collects
//! the completion, with the time at which it completed. Each operation in flight has a separate buffer.
//!
//! Deliberately absent: the backend, `io_uring` or a pool of threads (`exec::aio`).

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, Op, Step, StepInit, entry, lost_aio, lost_file, stateless};
use super::transfer::{FileUse, OffsetSource, Offsets, UnsizedEnd, constant_size, max_size, units};
use super::working_set::WorkingSet;
use crate::exec::aio::{Aio, AioRequest, Outstanding};
use crate::exec::{OpCx, Stop};
use crate::random::Quantity;
use std::sync::Arc;
use wml_language::diag::{Code, Diagnostic};
use wml_language::spec::{Class, IoDirection, Origin, Role};

const IO: &[&str] = placed!("directio", "dsync", "iodepth");

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("aiowrite", |args| Submit::build(args, true))
        .class(Class::Aio)
        .direction(IoDirection::Write)
        .origin(Origin::Both)
        .uses(IO)
        .roles(&[Role::UsesSlot, Role::NeedsFile])
        .doc("submits an asynchronous write of `iosize` bytes; its latency is the time to its completion")
        .example("flowop aiowrite name=wr,filename=data,iosize=4k,random\nflowop aiowait name=wait"),
    entry("aioread", |args| Submit::build(args, false))
        .class(Class::Aio)
        .direction(IoDirection::Read)
        .uses(IO)
        .roles(&[Role::UsesSlot, Role::NeedsFile])
        .doc("submits an asynchronous read of `iosize` bytes; its latency is the time to its completion")
        .example("flowop aioread name=rd,filename=data,iosize=4k,random\nflowop aiowait name=wait"),
    entry("aiosubmit", |_| {
        Ok(stateless(String::new(), Effects { preserves: true, non_blocking: true, ..Effects::default() }, |cx| {
            cx.begin();
            cx.end(0)
        }))
    })
    .class(Class::Other)
    .origin(Origin::Sun)
    .doc("does nothing, because `aiowrite` submits its write itself; for scripts of Filebench 1.1")
    .example(
        "flowop aiowrite name=wr,filename=data,iosize=4k,random\nflowop aiosubmit name=submit\n\
             flowop aiowait name=wait",
    ),
    entry("aiowait", |_| Ok(wait()))
        .class(Class::Aio)
        .origin(Origin::Both)
        .doc("waits until half of the thread's asynchronous operations in flight have completed")
        .example("flowop aiowrite name=wr,filename=data,iosize=4k,random\nflowop aiowait name=wait"),
];

impl Submit {
    fn build(args: &Args<'_>, write: bool) -> BuiltOp {
        let depth = args.int("iodepth", 0)?;
        if depth > MAX_DEPTH {
            let message = format!("`iodepth` of flowop `{}` is {depth}", args.name);
            return Err(Diagnostic::error(Code::OutOfRange, args.span_of("iodepth"), message)
                .help(format!("a thread can have up to {MAX_DEPTH} operations in flight")));
        }
        Ok(Arc::new(Self {
            file: FileUse::new(args, true)?,
            iosize: args.need_iosize()?,
            offset_source: OffsetSource::new(args)?,
            workingset: WorkingSet::new(args)?,
            write,
            depth,
        }))
    }
}

/// Largest number of operations of a thread in flight without `iodepth=`. More would need memory that the script did
/// not ask for, and their latency would be mostly time in the queue.
const DEFAULT_DEPTH: u64 = 4096;

/// Largest number of bytes in flight without `iodepth=`, for the same reason.
const DEFAULT_DEPTH_BYTES: u64 = 256 << 20;

/// Largest `iodepth=`: the size limit of an `io_uring` submission queue.
const MAX_DEPTH: u64 = 32_768;

#[derive(Debug)]
struct Submit {
    file: FileUse,
    iosize: Quantity,
    offset_source: OffsetSource,
    workingset: WorkingSet,
    write: bool,
    depth: u64,
}

impl Op for Submit {
    fn instantiate<'r>(&'r self, init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        let workingset = self.workingset.draw(init);
        let end = if self.write { UnsizedEnd::Unlimited } else { UnsizedEnd::Actual };
        let offsets = Offsets::new(self.offset_source.clone(), workingset, end);
        Box::new(SubmitStep { op: self, offsets, max_in_flight: self.max_in_flight() })
    }

    fn describe(&self) -> String {
        let depth = if self.depth > 0 { format!(" iodepth={}", self.depth) } else { String::new() };
        format!("{} iosize={}{}{depth}", self.file.describe(), self.iosize, self.offset_source.describe())
    }

    fn effects(&self) -> Effects {
        let size = max_size(&self.iosize);
        let aio = Aio { depth: self.max_in_flight(), size, bounded: self.depth > 0 };
        Effects {
            preserves: !self.write,
            non_blocking: true,
            aio: Some(aio),
            buffer: size,
            exact_buffer: constant_size(&self.iosize),
            units: units(&self.iosize, &self.offset_source),
            ..self.file.effects()
        }
    }
}

impl Submit {
    /// Returns the largest number of operations of the thread in flight, this one included.
    fn max_in_flight(&self) -> u64 {
        if self.depth > 0 {
            self.depth
        } else {
            (DEFAULT_DEPTH_BYTES / max_size(&self.iosize).max(1)).clamp(1, DEFAULT_DEPTH)
        }
    }
}

struct SubmitStep<'r> {
    op: &'r Submit,
    offsets: Offsets,
    max_in_flight: u64,
}

impl Step for SubmitStep<'_> {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let slot = self.op.file.ensure_open(cx)?;
        let len = self.op.iosize.draw(&mut cx.rng);
        let offset = self.offsets.next(cx, slot, len)?;
        if offset.is_none() && !self.op.write {
            cx.file_size(slot)?;
        }
        let Some(mut aio) = cx.io.aio.take() else { return Err(lost_aio(cx)) };
        let outcome = self.submit(cx, &mut aio, slot, len, offset);
        cx.io.aio = Some(aio);
        outcome
    }
}

impl SubmitStep<'_> {
    /// Submits one operation, after waiting for completions if the largest number is in flight.
    fn submit(
        &self,
        cx: &mut OpCx<'_>,
        aio: &mut Outstanding,
        slot: usize,
        len: u64,
        offset: Option<u64>,
    ) -> Result<(), Stop> {
        cx.restamp();
        // Collects what has completed, and waits for completions if this operation would exceed the limit.
        let excess = (aio.in_flight() + 1).saturating_sub(self.max_in_flight);
        aio.reap(cx, excess, false)?;
        let Some(handle) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
        let write = self.op.write;
        // A sequential reader returns to the start at the end of the file.
        let in_order = offset.is_none();
        let next = if !write && handle.cursor >= handle.size { 0 } else { handle.cursor };
        let offset = offset.unwrap_or(next);
        if in_order {
            handle.cursor = offset + len;
        }
        if write {
            handle.size = handle.size.max(offset + len);
        }
        let wanted = AioRequest { slot, file: *handle, offset, len: len as usize, write, in_order };
        cx.io.last_offset = offset;
        if cx.account.stream.is_some() {
            cx.record_in_stream(len);
        }
        let full = aio.in_flight() + 1 >= self.max_in_flight;
        match aio.start(cx, &wanted, full) {
            Ok(()) => cx.skip(),
            Err(stop) => Err(stop),
        }
    }
}

fn wait() -> Arc<dyn Op> {
    let aio = Some(Aio { depth: 0, size: 0, bounded: true });
    stateless(String::new(), Effects { aio, preserves: true, non_blocking: true, ..Effects::default() }, |cx| {
        cx.begin();
        let Some(mut aio) = cx.io.aio.take() else { return Err(lost_aio(cx)) };
        let noticed = aio.reap(cx, aio.in_flight().div_ceil(2), false);
        cx.io.aio = Some(aio);
        match noticed {
            // A wait that the end of the run interrupted counts as late.
            Err(stop) if !stop.is_over() => Err(stop),
            _ => cx.end(0),
        }
    })
}
