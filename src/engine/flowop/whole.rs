//! `readwholefile`, `writewholefile`, `sendfile`: transfers of a whole file in chunks, as one operation.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, Op, Step, StepInit, Unit, entry, lost_file, stateless};
use super::transfer::{FileUse, constant_size, max_size};
use super::working_set::WorkingSet;
use super::write;
use crate::exec::{OpCx, Stop};
use crate::random::Quantity;
use std::sync::Arc;
use wml_language::spec::{IoDirection, Origin, Role};

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("readwholefile", read_whole)
        .direction(IoDirection::Read)
        .origin(Origin::Both)
        .uses(&["filesetname", "fd", "iosize", "opennext", "indexed", "uniform", "recent", "directio"])
        .roles(&[Role::UsesSlot, Role::NeedsFile])
        .doc(
            "reads the file in the slot from start to end, in calls of `iosize` bytes, default the whole file; \
             one operation",
        )
        .example("flowop readwholefile name=rd,filesetname=data,iosize=1m"),
    entry("writewholefile", WriteWhole::build)
        .direction(IoDirection::Write)
        .origin(Origin::Both)
        .uses(&[
            "filesetname",
            "fd",
            "srcfd",
            "iosize",
            "workingset",
            "opennext",
            "indexed",
            "uniform",
            "recent",
            "directio",
            "dsync",
            "exact",
        ])
        .roles(&[Role::UsesSlot, Role::NeedsFile])
        .doc(
            "writes as many bytes as the file in slot `srcfd` has (default: the file that slot 0 holds or has held; \
             without one `workingset`, else the size of the file itself) from the current position, in calls of \
             `iosize` bytes (default: all); one operation",
        )
        .example("flowop writewholefile name=wr,filesetname=data,iosize=1m"),
    entry("sendfile", send_file)
        .direction(IoDirection::Read)
        .uses(&["filesetname", "fd", "iosize", "opennext", "indexed", "uniform", "recent", "directio"])
        .roles(&[Role::UsesSlot, Role::NeedsFile])
        .doc(
            "sends the file in the slot from start to end to /dev/null, in calls of `iosize` bytes, default the \
             whole file, without a copy to user space (`sendfile`); one operation",
        )
        .example("flowop sendfile name=send,filesetname=data"),
];

impl WriteWhole {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self {
            file: FileUse::new(args, true)?,
            iosize: args.quantity_or("iosize", 0)?,
            source: args.slot_number("srcfd")?,
            workingset: WorkingSet::new(args)?,
            exact: args.flag("exact")?,
        }))
    }
}

/// Returns the buffer size that a whole-file operation needs: its chunk. Without `iosize` the size of a file is not
/// known here, and the buffer grows when it is too small.
fn whole_buffer(iosize: &Quantity) -> u64 {
    max_size(iosize)
}

/// Smallest call of `readwholefile` without `iosize` on a file that is defined as empty, in bytes.
const MIN_CHUNK: u64 = 4096;

/// Returns the size of the calls that read the whole file in a slot: its defined size, as in Filebench. A file that is
/// defined as empty may have grown since; then what is known of its size, in whole blocks for direct I/O.
fn whole_file(cx: &OpCx<'_>, slot: usize) -> u64 {
    let slot = cx.io.slots.get(slot);
    let known = || slot.handle.map_or(0, |handle| handle.size).max(1).next_multiple_of(MIN_CHUNK);
    if slot.nominal > 0 { slot.nominal } else { known() }
}

/// Returns the unit of its calls: `iosize`, or without it the size of the file.
fn chunk_unit(iosize: &Quantity) -> Vec<Unit> {
    vec![if let Quantity::Const(0) = iosize { Unit::FileSize } else { Unit::Attribute("iosize", iosize.clone()) }]
}

fn read_whole(args: &Args<'_>) -> BuiltOp {
    let (file, iosize) = (FileUse::new(args, true)?, args.quantity_or("iosize", 0)?);
    let effects = Effects {
        buffer: whole_buffer(&iosize),
        exact_buffer: constant_size(&iosize),
        whole_files: matches!(iosize, Quantity::Const(0)),
        units: chunk_unit(&iosize),
        preserves: true,
        ..file.effects()
    };
    Ok(stateless(format!("{} iosize={iosize}", file.describe()), effects, move |cx| {
        let slot = file.ensure_open(cx)?;
        let chunk = match iosize.draw(&mut cx.rng) {
            0 => whole_file(cx, slot),
            n => n,
        };
        let range = cx.place(chunk)?;
        let engine = cx.env.engine;
        cx.begin();
        let mut calls = 0;
        let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(lost_file(cx, slot)) };
        if handle.position != 0 {
            if let Err(errno) = handle.seek(0) {
                return Err(cx.failed_in_slot("read failed", errno, slot));
            }
            calls += 1;
        }
        cx.io.last_offset = 0;
        let mut bytes = 0;
        loop {
            let buf = cx.io.buffer.get_mut(range.clone());
            let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(lost_file(cx, slot)) };
            match engine.read(handle, buf) {
                Ok(n) => {
                    bytes += n as u64;
                    // A short read that reaches the known size is at the end: no further call is needed to detect it.
                    if n < range.len() && (n == 0 || handle.position >= handle.size) {
                        break;
                    }
                }
                Err(errno) => return Err(cx.failed_after(calls, bytes, "read failed", errno, slot)),
            }
            // The operation counts as one call: only the calls before the last are added.
            if cx.expired() {
                break;
            }
            calls += 1;
        }
        if calls > 0 {
            cx.cell().add_calls(calls);
        }
        cx.end(bytes)
    }))
}

/// Length of a call that is to send the whole file, however long it has become: what one call can transfer at most, in
/// whole pages.
const WHOLE: u64 = 0x7fff_f000;

fn send_file(args: &Args<'_>) -> BuiltOp {
    let (file, iosize) = (FileUse::new(args, true)?, args.quantity_or("iosize", 0)?);
    // A call that sends the whole file asks for whole pages, which direct I/O accepts on files of any size.
    let units = if let Quantity::Const(0) = iosize { Vec::new() } else { chunk_unit(&iosize) };
    let effects = Effects { sends: true, units, preserves: true, ..file.effects() };
    Ok(stateless(format!("{} iosize={iosize}", file.describe()), effects, move |cx| {
        let slot = file.ensure_open(cx)?;
        let chunk = match iosize.draw(&mut cx.rng) {
            0 => WHOLE,
            n => n,
        };
        let (engine, sink) = (cx.env.engine, cx.io.sink.fd());
        cx.begin();
        let (mut bytes, mut calls) = (0, 0);
        cx.io.last_offset = 0;
        loop {
            let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(lost_file(cx, slot)) };
            match engine.send(handle, bytes, sink, chunk) {
                Ok(n) => {
                    bytes += n;
                    // As in `readwholefile`: a short call that reaches the known size is at the end.
                    if n < chunk && (n == 0 || bytes >= handle.size) {
                        break;
                    }
                }
                Err(errno) => return Err(cx.failed_after(calls, bytes, "sendfile failed", errno, slot)),
            }
            if cx.expired() {
                break;
            }
            calls += 1;
        }
        if calls > 0 {
            cx.cell().add_calls(calls);
        }
        cx.end(bytes)
    }))
}

#[derive(Debug)]
struct WriteWhole {
    file: FileUse,
    iosize: Quantity,
    source: usize,
    workingset: WorkingSet,
    exact: bool,
}

impl WriteWhole {
    /// True if it always writes the size of its own file: that is the file in slot 0, which counts before
    /// `workingset`.
    fn writes_own_size(&self) -> bool {
        self.source == 0 && self.file.slot.fd == 0 && self.file.slot.rotate == 0
    }

    /// Returns the units of its calls. Those of another size than that of its own file are known in the run only.
    fn units(&self) -> Vec<Unit> {
        if matches!(self.iosize, Quantity::Const(0)) || !self.writes_own_size() {
            return chunk_unit(&self.iosize);
        }
        // With `exact`, the last call has the rest.
        let rest = self.exact.then_some(Unit::FileSize);
        rest.into_iter().chain([Unit::Chunk(self.iosize.clone())]).collect()
    }
}

impl Op for WriteWhole {
    fn instantiate<'r>(&'r self, init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        let workingset = self.workingset.draw(init);
        Box::new(WriteWholeStep { op: self, workingset })
    }

    fn describe(&self) -> String {
        let source = if self.source > 0 { format!(" srcfd={}", self.source) } else { String::new() };
        let exact = if self.exact { " exact" } else { "" };
        format!("{}{source} iosize={}{exact}", self.file.describe(), self.iosize)
    }

    fn effects(&self) -> Effects {
        let mut effects = Effects {
            buffer: whole_buffer(&self.iosize),
            exact_buffer: constant_size(&self.iosize),
            whole_files: matches!(self.iosize, Quantity::Const(0))
                && (self.writes_own_size() || !self.workingset.is_given()),
            units: self.units(),
            ..self.file.effects()
        };
        effects.max_fd = effects.max_fd.max(self.source);
        effects
    }
}

struct WriteWholeStep<'r> {
    op: &'r WriteWhole,
    workingset: u64,
}

impl Step for WriteWholeStep<'_> {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let slot = self.op.file.ensure_open(cx)?;
        let size = self.size(cx, slot)?;
        let chunk = match self.op.iosize.draw(&mut cx.rng) {
            0 => size,
            n => n.min(size),
        };
        if size == 0 {
            cx.io.last_offset = cx.handle(slot).map_or(0, |h| h.position);
            cx.begin();
            return cx.end(0);
        }
        // As in Filebench all writes are whole chunks, so that the last one can exceed the size, unless `exact` is
        // given.
        let chunks = size.div_ceil(chunk);
        let last = if self.op.exact { size - (chunks - 1) * chunk } else { chunk };
        let start = cx.handle(slot).map_or(0, |h| h.position);
        let (mut bytes, mut calls) = (0, 0);
        for done in 0..chunks {
            let wanted = if done + 1 < chunks { chunk } else { last };
            let range = if done == 0 {
                let range = cx.data(slot, wanted)?;
                cx.begin();
                range
            } else {
                cx.further_data(slot, wanted)?
            };
            match write::write_range(cx, slot, range, None) {
                Ok(written) => bytes += written,
                Err(errno) => return Err(cx.failed_after(calls, bytes, "write failed", errno, slot)),
            }
            calls += 1;
            // After a short write no more can be written.
            if bytes < (calls - 1) * chunk + wanted || done + 1 < chunks && cx.expired() {
                break;
            }
        }
        if calls > 1 {
            cx.cell().add_calls(calls - 1);
        }
        cx.io.last_offset = start;
        cx.end(bytes)
    }
}

impl WriteWholeStep<'_> {
    /// Returns the bytes to write, by the rules of Filebench: the size of the file in slot `srcfd`, else of the file that
    /// slot 0 holds or has held, else the working set, else the size of the file itself.
    fn size(&self, cx: &mut OpCx<'_>, slot: usize) -> Result<u64, Stop> {
        if self.op.source > 0 {
            let source = cx.io.slots.get(self.op.source);
            if source.file.is_none() {
                let what = || format!("slot {} (`srcfd`) has no file", self.op.source);
                return Err(cx.misuse(what, "open a file there first, or leave `srcfd=` out"));
            }
            return Ok(source.nominal);
        }
        let own = cx.io.slots.get(slot).nominal;
        let first = cx.io.slots.get(0);
        Ok(match first.file {
            _ if self.op.writes_own_size() => own,
            Some(_) => first.nominal,
            None if self.workingset > 0 => self.workingset,
            None => own,
        })
    }
}
