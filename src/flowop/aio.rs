//! `aiowrite`, `aioread`, `aiowait`: I/O that runs on while the thread goes on.
//!
//! An operation's latency runs from its submission to its completion, and it is counted when its thread takes notice, by the time
//! at which it completed. Each one that is out has a buffer of its own. What runs them, `io_uring` or a pool
//! of threads, is not known here (`exec::aio`).

use super::args::Args;
use super::transfer::{FileUse, OffsetSource, Offsets, exactly, largest, units, workingset};
use super::{At, BuiltOp, Effects, FlowopEntry, Op, Stateless, Step};
use crate::diag::{Code, Diagnostic};
use crate::exec::aio::{Aio, AioRequest, Outstanding};
use crate::exec::{OpCx, Stop};
use crate::random::{self, Quantity};
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::sync::Arc;

const IO: &[&str] = placed!("directio", "dsync", "iodepth");

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "aiowrite",
            class: Class::Aio,
            direction: IoDirection::Write,
            uses: IO,
            roles: &[Role::UsesSlot, Role::NeedsFile],
            origin: Origin::Both,
            doc: "starts a write; its time runs to its completion",
            example: "flowop aiowrite name=wr,filename=data,iosize=4k,random\nflowop aiowait name=wait",
        },
        build: |args| Submit::build(args, true),
    },
    FlowopEntry {
        spec: Flowop {
            name: "aioread",
            class: Class::Aio,
            direction: IoDirection::Read,
            uses: IO,
            roles: &[Role::UsesSlot, Role::NeedsFile],
            origin: Origin::Wmlrun,
            doc: "starts a read; its time runs to its completion",
            example: "flowop aioread name=rd,filename=data,iosize=4k,random\nflowop aiowait name=wait",
        },
        build: |args| Submit::build(args, false),
    },
    FlowopEntry {
        spec: Flowop {
            name: "aiowait",
            class: Class::Aio,
            direction: IoDirection::None,
            uses: &[],
            roles: &[],
            origin: Origin::Both,
            doc: "waits for half of the asynchronous operations in flight",
            example: "flowop aiowrite name=wr,filename=data,iosize=4k,random\nflowop aiowait name=wait",
        },
        build: |_| Ok(Arc::new(Wait)),
    },
];

impl Submit {
    fn build(args: &Args<'_>, write: bool) -> BuiltOp {
        let depth = args.int("iodepth", 0)?;
        if depth > DEEPEST {
            let message = format!("`iodepth` of flowop `{}` is {depth}", args.name);
            return Err(Diagnostic::error(Code::OutOfRange, args.at("iodepth"), message)
                .help(format!("a thread can have up to {DEEPEST} operations out")));
        }
        Ok(Arc::new(Self {
            file: FileUse::new(args, true)?,
            iosize: args.need_iosize()?,
            place: OffsetSource::new(args)?,
            workingset: workingset(args)?,
            write,
            depth,
        }))
    }
}

/// Without `iodepth=`, so many operations of a thread may be out, and so many bytes of them: what is more waits in memory that
/// the run was not asked for, and its latency would be the queue's.
const MOST: u64 = 4096;
const MOST_BYTES: u64 = 256 << 20;

/// The largest `iodepth=`: what a ring of the kernel can hold.
const DEEPEST: u64 = 32_768;

#[derive(Debug)]
struct Submit {
    file: FileUse,
    iosize: Quantity,
    place: OffsetSource,
    workingset: Quantity,
    write: bool,
    depth: u64,
}

impl Op for Submit {
    fn instantiate<'r>(&'r self, at: &At<'_>) -> Box<dyn Step + 'r> {
        let workingset = self.workingset.draw(&mut random::stream(at.seed, &[at.ordinal as u64]));
        let offsets = Offsets::new(self.place.clone(), workingset);
        Box::new(SubmitStep { op: self, offsets, most: self.most() })
    }

    fn describe(&self) -> String {
        let depth = if self.depth > 0 { format!(" iodepth={}", self.depth) } else { String::new() };
        format!("{} iosize={}{}{depth}", self.file.describe(), self.iosize, self.place.describe())
    }

    fn preserves(&self) -> bool {
        !self.write
    }

    fn effects(&self) -> Effects {
        let size = largest(&self.iosize);
        let aio = Aio { depth: self.most(), size, bounded: self.depth > 0 };
        Effects {
            aio: Some(aio),
            buffer: size,
            exact_buffer: exactly(&self.iosize),
            units: units(&self.iosize, &self.place),
            ..self.file.effects()
        }
    }

    fn non_blocking(&self) -> bool {
        true
    }
}

impl Submit {
    /// How many operations of the thread may be out once this one is.
    fn most(&self) -> u64 {
        if self.depth > 0 { self.depth } else { (MOST_BYTES / largest(&self.iosize).max(1)).clamp(1, MOST) }
    }
}

struct SubmitStep<'r> {
    op: &'r Submit,
    offsets: Offsets,
    most: u64,
}

impl Step for SubmitStep<'_> {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let slot = self.op.file.ensure(cx)?;
        let len = self.op.iosize.draw(&mut cx.rng);
        let offset = self.offsets.next(cx, slot, len)?;
        let Some(mut aio) = cx.io.aio.take() else { return Err(Stop::over()) };
        let outcome = self.submit(cx, &mut aio, slot, len, offset);
        cx.io.aio = Some(aio);
        outcome
    }
}

impl SubmitStep<'_> {
    fn submit(
        &self,
        cx: &mut OpCx<'_>,
        aio: &mut Outstanding,
        slot: usize,
        len: u64,
        offset: Option<u64>,
    ) -> Result<(), Stop> {
        cx.restamp();
        // What has completed meanwhile makes room; the next one waits until there is some.
        let over = (aio.in_flight() + 1).saturating_sub(self.most);
        aio.reap(cx, over, false)?;
        let Some(handle) = cx.handle(slot) else { return Err(Stop::over()) };
        let write = self.op.write;
        // Reads in order start over at the end of the file, as far as this slot knows it.
        let in_order = offset.is_none();
        let on = if !write && handle.cursor >= handle.size { 0 } else { handle.cursor };
        let offset = offset.unwrap_or(on);
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
        let full = aio.in_flight() + 1 >= self.most;
        match aio.start(cx, &wanted, full) {
            Ok(()) => cx.skip(),
            Err(stop) => Err(stop),
        }
    }
}

#[derive(Debug)]
struct Wait;

impl Stateless for Wait {
    fn describe(&self) -> String {
        String::new()
    }

    fn preserves(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects { aio: Some(Aio { depth: 0, size: 0, bounded: true }), ..Effects::default() }
    }

    fn non_blocking(&self) -> bool {
        true
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        cx.begin();
        let Some(mut aio) = cx.io.aio.take() else { return Err(Stop::over()) };
        let noticed = aio.reap(cx, aio.in_flight().div_ceil(2), false);
        cx.io.aio = Some(aio);
        match noticed {
            // A wait that the end of the run has ended counts as late.
            Err(stop) if !stop.is_over() => Err(stop),
            _ => cx.end(0),
        }
    }
}
