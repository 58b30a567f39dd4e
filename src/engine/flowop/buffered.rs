//! Buffered I/O in user space: `bufread`, `bufwrite`, as `fread` and `fwrite` of the C library.
//!
//! Each slot has a buffer of 4 KiB, the size that the C library uses for a regular file. Small reads are served from
//! it, and small writes are collected in it; of larger ones only the part that does not fill a buffer goes through it.
//! An operation on the buffer alone makes no system call. Collected data is written when the buffer is full, when a
//! read follows a write, and by `closefile`, which closes the file even if that fails, as `fclose`. `fsync` flushes
//! only data that has been written, not data in the buffer.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, entry, stateless};
use super::transfer::{FileUse, constant_size, max_size};
use crate::exec::buffered::{BufferState, ready};
use crate::exec::{OpCx, Stop};
use crate::random::Quantity;
use std::ops::Range;
use wml_language::spec::{IoDirection, Role};
use wml_os::Errno;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("bufread", |args| Buffered::build(args, false))
        .direction(IoDirection::Read)
        .uses(&["filesetname", "fd", "iosize", "opennext", "indexed", "uniform", "recent", "directio", "noreadahead"])
        .roles(&[Role::UsesSlot, Role::NeedsFile, Role::Buffers])
        .doc(
            "reads `iosize` bytes sequentially through a buffer of 4 KiB in user space, as `fread`; returns to \
             the start at the end of the file",
        )
        .example("flowop bufread name=rd,filename=data,iosize=100,iters=50"),
    entry("bufwrite", |args| Buffered::build(args, true))
        .direction(IoDirection::Write)
        .uses(&["filesetname", "fd", "iosize", "opennext", "indexed", "uniform", "recent", "directio", "dsync", "wrap"])
        .roles(&[Role::UsesSlot, Role::NeedsFile, Role::Buffers])
        .doc(
            "writes `iosize` bytes sequentially through a buffer of 4 KiB in user space, as `fwrite`; extends its \
             file without limit, unless `wrap=` is given",
        )
        .example("flowop bufwrite name=wr,filename=data,fd=1,iosize=100,iters=50\nflowop closefile name=cl,fd=1"),
];

impl Buffered {
    fn build(args: &Args<'_>, write: bool) -> BuiltOp {
        let (file, iosize, wrap) = (FileUse::new(args, true)?, args.need_iosize()?, args.int("wrap", 0)?);
        let wraps = if wrap > 0 { format!(" wrap={wrap}") } else { String::new() };
        let described = format!("{} iosize={iosize}{wraps}", file.describe());
        let (buffer, exact_buffer) = (max_size(&iosize), constant_size(&iosize));
        let effects = Effects { preserves: !write, buffer, exact_buffer, ..file.effects() };
        let op = Self { file, iosize, write, wrap };
        Ok(stateless(described, effects, move |cx| op.run(cx)))
    }
}

struct Buffered {
    file: FileUse,
    iosize: Quantity,
    write: bool,
    wrap: u64,
}

impl Buffered {
    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let slot = self.file.ensure_open(cx)?;
        let len = self.iosize.draw(&mut cx.rng);
        let range = if self.write { cx.data(slot, len)? } else { cx.place(len)? };
        match ready(&mut cx.io.slots, slot) {
            BufferState::Ready => {}
            BufferState::Made => cx.restamp(),
            BufferState::Missing => {
                return Err(
                    cx.misuse(|| "out of memory for the buffer of a slot".to_owned(), "use fewer slots or threads")
                );
            }
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
            Err(errno) => Err(cx.failed_in_slot(if self.write { "write failed" } else { "read failed" }, errno, slot)),
        }
    }
}

/// Reads into a range of the thread's buffer. Returns the bytes read and the number of system calls.
#[inline]
fn read(cx: &mut OpCx<'_>, slot: usize, range: Range<usize>) -> Result<(u64, u64), Errno> {
    let engine = cx.env.engine;
    let mut handle = cx.io.slots.get(slot).handle.ok_or(Errno::BADF)?;
    let stream = cx.io.slots.streams.get_mut(slot).and_then(Option::as_mut).ok_or(Errno::BADF)?;
    let out = cx.io.buffer.get_mut(range);
    let mut done = stream.read(engine, &mut handle, out)?;
    if done.0 == 0 && !out.is_empty() {
        // End of the file: return to its start.
        handle.seek(0)?;
        let calls = done.1 + 1;
        done = stream.read(engine, &mut handle, out)?;
        done.1 += calls;
    }
    cx.io.slots.get_mut(slot).handle = Some(handle);
    Ok(done)
}

impl Buffered {
    /// Writes a range of the thread's buffer; returns to the start of the file first if the write would pass `wrap`.
    /// Returns the bytes written and the number of system calls.
    #[inline]
    fn write(&self, cx: &mut OpCx<'_>, slot: usize, range: Range<usize>) -> Result<(u64, u64), Errno> {
        let engine = cx.env.engine;
        let len = range.len() as u64;
        let mut handle = cx.io.slots.get(slot).handle.ok_or(Errno::BADF)?;
        let stream = cx.io.slots.streams.get_mut(slot).and_then(Option::as_mut).ok_or(Errno::BADF)?;
        let mut calls = 0;
        let buffered = if stream.dirty { stream.held.len() as u64 } else { 0 };
        if self.wrap > 0 && handle.position + buffered + len > self.wrap {
            calls += stream.flush(engine, &mut handle)? + 1;
            stream.held = 0..0;
            handle.seek(0)?;
        }
        calls += stream.write(engine, &mut handle, cx.io.buffer.get(range))?;
        cx.io.slots.get_mut(slot).handle = Some(handle);
        Ok((len, calls))
    }
}
