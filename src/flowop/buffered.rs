//! `bufread`, `bufwrite`: I/O through a buffer of the program, as by `fread` and `fwrite` of the C library.
//!
//! Each slot has a buffer of 4 KiB, what the C library takes for an ordinary file. Small reads are served from it and small
//! writes gathered in it; of large ones only what fills no whole buffer goes through it. An operation that the buffer serves
//! makes no system call. What is gathered is written when the buffer is full, when reads follow writes, and by `closefile`,
//! as by `fclose`; `fsync` forces down what has been written, not what is still gathered.

use super::args::Args;
use super::read::small_buffer;
use super::transfer::{FileUse, exactly, largest};
use super::{BuiltOp, Effects, FlowopEntry, OpCx, Outcome, Stateless};
use crate::engine::{Engine, Handle};
use crate::os::map::Map;
use crate::os::{Errno, NOTHING_WRITTEN};
use crate::random::Quantity;
use crate::spec::{Class, Flowop, Origin, Role, Way};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a buffer.
const SIZE: usize = 4096;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "bufread",
            class: Class::Io,
            way: Way::Read,
            uses: &["filesetname", "fd", "iosize", "opennext", "indexed", "directio", "noreadahead"],
            roles: &[Role::UsesSlot, Role::NeedsFile],
            origin: Origin::Ours,
            doc: "reads on through a buffer of the program, as `fread`; starts over at the end of the file",
            example: "flowop bufread name=rd,filename=data,iosize=100,iters=50",
        },
        build: |args| Buffered::build(args, false),
    },
    FlowopEntry {
        spec: Flowop {
            name: "bufwrite",
            class: Class::Io,
            way: Way::Write,
            uses: &["filesetname", "fd", "iosize", "opennext", "indexed", "directio", "dsync", "wrap"],
            roles: &[Role::UsesSlot, Role::NeedsFile],
            origin: Origin::Ours,
            doc: "writes on through a buffer of the program, as `fwrite`; makes its file longer, unless `wrap=` bounds it",
            example: "flowop bufwrite name=wr,filename=data,fd=1,iosize=100,iters=50\nflowop closefile name=cl,fd=1",
        },
        build: |args| Buffered::build(args, true),
    },
];

impl Buffered {
    fn build(args: &Args<'_>, write: bool) -> BuiltOp {
        Ok(Arc::new(Self {
            file: FileUse::new(args, true)?,
            iosize: args.need_iosize()?,
            write,
            wrap: args.int("wrap", 0)?,
        }))
    }
}

/// The buffer of one slot.
#[derive(Debug)]
pub(super) struct BufferedStream {
    /// Page aligned, so that it can be used with `O_DIRECT`.
    memory: Map,
    /// Bytes read and not yet taken, or gathered and not yet written.
    held: Range<usize>,
    /// Whether they are to be written.
    dirty: bool,
    /// Which opening of a file they belong to.
    opening: u64,
}

impl BufferedStream {
    /// What is gathered goes to the file.
    fn flush(&mut self, engine: &dyn Engine, handle: &mut Handle) -> Result<u64, Errno> {
        if !self.dirty {
            return Ok(0);
        }
        self.dirty = false;
        let held = std::mem::take(&mut self.held);
        write_all(engine, handle, &self.memory.bytes()[held])
    }

    /// What was read ahead is forgotten: the file goes on where its reader stands.
    fn forget(&mut self, engine: &dyn Engine, handle: &mut Handle) -> Result<u64, Errno> {
        let ahead = std::mem::take(&mut self.held).len() as u64;
        if ahead == 0 {
            return Ok(0);
        }
        engine.seek(handle, handle.position - ahead).map(|()| 1)
    }

    /// Reads as much as there is, up to all of `out`. Bytes, and the calls that it took.
    fn read(&mut self, engine: &dyn Engine, handle: &mut Handle, out: &mut [u8]) -> Result<(u64, u64), Errno> {
        let mut calls = self.flush(engine, handle)?;
        let mut done = 0;
        while done < out.len() {
            let wanted = out.len() - done;
            if !self.held.is_empty() {
                let n = wanted.min(self.held.len());
                let from = self.held.start;
                out[done..done + n].copy_from_slice(&self.memory.bytes()[from..from + n]);
                self.held.start += n;
                done += n;
                continue;
            }
            calls += 1;
            let n = if wanted >= SIZE {
                let n = engine.read(handle, &mut out[done..done + wanted - wanted % SIZE])?;
                done += n;
                n
            } else {
                let n = engine.read(handle, self.memory.bytes_mut())?;
                self.held = 0..n;
                n
            };
            if n == 0 {
                break;
            }
        }
        Ok((done as u64, calls))
    }

    /// Takes all of `data`; the calls that it took.
    fn write(&mut self, engine: &dyn Engine, handle: &mut Handle, data: &[u8]) -> Result<u64, Errno> {
        let mut calls = if self.dirty { 0 } else { self.forget(engine, handle)? };
        let mut done = 0;
        while done < data.len() {
            let rest = &data[done..];
            if self.held.is_empty() && rest.len() >= SIZE {
                let n = rest.len() - rest.len() % SIZE;
                calls += write_all(engine, handle, &rest[..n])?;
                done += n;
                continue;
            }
            let at = self.held.end;
            let n = rest.len().min(SIZE - at);
            self.memory.bytes_mut()[at..at + n].copy_from_slice(&rest[..n]);
            self.held.end += n;
            self.dirty = true;
            done += n;
            if self.held.end == SIZE {
                calls += self.flush(engine, handle)?;
            }
        }
        Ok(calls)
    }
}

/// Writes everything; the calls that it took.
fn write_all(engine: &dyn Engine, handle: &mut Handle, mut data: &[u8]) -> Result<u64, Errno> {
    let mut calls = 0;
    while !data.is_empty() {
        let n = engine.write(handle, data)?;
        if n == 0 {
            return Err(NOTHING_WRITTEN);
        }
        data = &data[n..];
        calls += 1;
    }
    Ok(calls)
}

/// Writes what is gathered for a slot, if anything is: it is about to be closed.
#[inline]
pub(super) fn flush(cx: &mut OpCx<'_>, slot: usize) -> Result<(), Errno> {
    if cx.slots.streams.is_empty() { Ok(()) } else { flush_stream(cx, slot) }
}

#[cold]
fn flush_stream(cx: &mut OpCx<'_>, slot: usize) -> Result<(), Errno> {
    let engine = cx.engine;
    let (opening, handle) = (cx.slots.get(slot).opening, cx.slots.get(slot).handle);
    let (Some(Some(stream)), Some(mut handle)) = (cx.slots.streams.get_mut(slot), handle) else { return Ok(()) };
    if stream.opening != opening {
        return Ok(());
    }
    let calls = stream.flush(engine, &mut handle)?;
    stream.held = 0..0;
    cx.slots.get_mut(slot).handle = Some(handle);
    if calls > 0 {
        cx.cell().add_calls(calls);
    }
    Ok(())
}

#[derive(Debug)]
struct Buffered {
    file: FileUse,
    iosize: Quantity,
    write: bool,
    wrap: u64,
}

impl Stateless for Buffered {
    fn describe(&self) -> String {
        let wrap = if self.wrap > 0 { format!(" wrap={}", self.wrap) } else { String::new() };
        format!("{} iosize={}{wrap}", self.file.describe(), self.iosize)
    }

    fn preserves(&self) -> bool {
        !self.write
    }

    fn effects(&self) -> Effects {
        Effects { buffer: largest(&self.iosize), exact_buffer: exactly(&self.iosize), ..self.file.effects() }
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Outcome {
        let slot = match self.file.ensure(cx) {
            Ok(slot) => slot,
            Err(outcome) => return outcome,
        };
        let len = self.iosize.draw(&mut cx.rng);
        let range = if self.write { cx.buffer.data(len) } else { cx.buffer.place(len) };
        let Some(range) = range else { return small_buffer(cx, len) };
        if !ready(cx, slot) {
            return cx.misuse("no memory for the buffer of a slot", "use fewer slots or threads");
        }
        cx.begin();
        let done = if self.write { self.write(cx, slot, range) } else { read(cx, slot, range) };
        match done {
            Ok((bytes, calls)) => {
                if calls > 0 {
                    cx.cell().add_calls(calls);
                }
                cx.end(bytes)
            }
            Err(errno) => {
                let file = cx.slots.get(slot).file;
                cx.failed(if self.write { "write failed" } else { "read failed" }, errno, file)
            }
        }
    }
}

/// Sees to it that the slot has a buffer, empty if its file was opened since. False: there is no memory for it.
#[inline]
fn ready(cx: &mut OpCx<'_>, slot: usize) -> bool {
    let opening = cx.slots.get(slot).opening;
    match cx.slots.streams.get_mut(slot) {
        Some(Some(stream)) if stream.opening == opening => true,
        Some(Some(stream)) => {
            (stream.held, stream.dirty, stream.opening) = (0..0, false, opening);
            true
        }
        _ => make(cx, slot, opening),
    }
}

#[cold]
fn make(cx: &mut OpCx<'_>, slot: usize, opening: u64) -> bool {
    let Ok(memory) = Map::new(SIZE) else { return false };
    if cx.slots.streams.is_empty() {
        let n = cx.slots.len();
        cx.slots.streams.resize_with(n, || None);
    }
    cx.slots.streams[slot] = Some(Box::new(BufferedStream { memory, held: 0..0, dirty: false, opening }));
    cx.restamp();
    true
}

/// Reads into a slice of the thread's buffer. Bytes, and the calls that it took.
#[inline]
fn read(cx: &mut OpCx<'_>, slot: usize, range: Range<usize>) -> Result<(u64, u64), Errno> {
    let engine = cx.engine;
    let mut handle = cx.slots.get(slot).handle.ok_or(Errno::BADF)?;
    let stream = cx.slots.streams.get_mut(slot).and_then(Option::as_mut).ok_or(Errno::BADF)?;
    let out = cx.buffer.get_mut(range);
    let mut done = stream.read(engine, &mut handle, out)?;
    if done.0 == 0 && !out.is_empty() {
        // The end of the file: from its start again.
        engine.seek(&mut handle, 0)?;
        let calls = done.1 + 1;
        done = stream.read(engine, &mut handle, out)?;
        done.1 += calls;
    }
    cx.slots.get_mut(slot).handle = Some(handle);
    Ok(done)
}

impl Buffered {
    /// Writes a slice of the thread's buffer; goes back to the start of the file before it would pass `wrap`.
    #[inline]
    fn write(&self, cx: &mut OpCx<'_>, slot: usize, range: Range<usize>) -> Result<(u64, u64), Errno> {
        let engine = cx.engine;
        let len = range.len() as u64;
        let mut handle = cx.slots.get(slot).handle.ok_or(Errno::BADF)?;
        let stream = cx.slots.streams.get_mut(slot).and_then(Option::as_mut).ok_or(Errno::BADF)?;
        let mut calls = 0;
        let gathered = if stream.dirty { stream.held.len() as u64 } else { 0 };
        if self.wrap > 0 && handle.position + gathered + len > self.wrap {
            calls += stream.flush(engine, &mut handle)? + 1;
            stream.held = 0..0;
            engine.seek(&mut handle, 0)?;
        }
        calls += stream.write(engine, &mut handle, cx.buffer.get(range))?;
        cx.slots.get_mut(slot).handle = Some(handle);
        Ok((len, calls))
    }
}
