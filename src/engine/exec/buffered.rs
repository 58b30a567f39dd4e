//! The buffered streams of `bufread` and `bufwrite`: one buffer per slot, which works like `FILE` of the C library.

use super::slots::Slots;
use crate::io_engine::{Engine, Handle};
use crate::stats::recorder::Cell;
use std::ops::Range;
use wml_os::map::Map;
use wml_os::{Errno, NOTHING_WRITTEN};

/// Size of a buffer, in bytes.
const SIZE: usize = 4096;

/// The buffered stream of one slot.
#[derive(Debug)]
pub(crate) struct BufferedStream {
    /// Page aligned, as `O_DIRECT` needs it.
    memory: Map,
    /// Range of the bytes that were read and not yet consumed, or buffered and not yet written.
    pub(crate) held: Range<usize>,
    /// Whether these bytes are to be written.
    pub(crate) dirty: bool,
    /// Number of the open (see `Slot::opening`) to which the bytes belong.
    opening: u64,
}

impl BufferedStream {
    /// Writes the buffered data to the file. Returns the number of system calls.
    pub(crate) fn flush(&mut self, engine: &dyn Engine, handle: &mut Handle) -> Result<u64, Errno> {
        if !self.dirty {
            return Ok(0);
        }
        self.dirty = false;
        let held = std::mem::take(&mut self.held);
        write_all(engine, handle, &self.memory.bytes()[held])
    }

    /// Discards the data that was read ahead and moves the file position back to the reader's. Returns the number of
    /// system calls.
    fn discard_read_ahead(&mut self, handle: &mut Handle) -> Result<u64, Errno> {
        let ahead = std::mem::take(&mut self.held).len() as u64;
        if ahead == 0 {
            return Ok(0);
        }
        handle.seek(handle.position - ahead).map(|()| 1)
    }

    /// Reads until `out` is full or the file ends. Returns the number of bytes, and of system calls.
    pub(crate) fn read(
        &mut self,
        engine: &dyn Engine,
        handle: &mut Handle,
        out: &mut [u8],
    ) -> Result<(u64, u64), Errno> {
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

    /// Buffers or writes all of `data`. Returns the number of system calls.
    #[inline]
    pub(crate) fn write(&mut self, engine: &dyn Engine, handle: &mut Handle, data: &[u8]) -> Result<u64, Errno> {
        let mut calls = if self.dirty { 0 } else { self.discard_read_ahead(handle)? };
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

/// Writes all of `data`. Returns the number of system calls.
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

/// The slow half of `OpCx::flush_buffer`: writes the data if the buffer belongs to the open file.
#[cold]
pub(super) fn flush_slow(slots: &mut Slots, slot: usize, engine: &dyn Engine, cell: &Cell) -> Result<(), Errno> {
    let (opening, handle) = (slots.get(slot).opening, slots.get(slot).handle);
    let (Some(Some(stream)), Some(mut handle)) = (slots.streams.get_mut(slot), handle) else { return Ok(()) };
    if stream.opening != opening {
        return Ok(());
    }
    let calls = stream.flush(engine, &mut handle)?;
    stream.held = 0..0;
    slots.get_mut(slot).handle = Some(handle);
    if calls > 0 {
        cell.add_calls(calls);
    }
    Ok(())
}

/// Returns the place in the file to which the user of the stream in the last used slot has come. `None` without a stream.
pub(super) fn place(slots: &Slots) -> Option<u64> {
    let slot = slots.last()?;
    let stream = slots.streams.get(slot)?.as_ref()?;
    let (position, held) = (slots.get(slot).handle?.position, stream.held.len() as u64);
    Some(if stream.dirty { position + held } else { position.saturating_sub(held) })
}

/// The state of a slot's buffer.
pub(crate) enum BufferState {
    /// The slot has a buffer.
    Ready,
    /// The buffer was allocated by this call.
    Made,
    /// No memory is available for the buffer.
    Missing,
}

/// Ensures that the slot has a buffer, which is empty if the file was opened since the last use.
///
/// Split for speed: `ready_slow` allocates the buffer at the first use of a slot; `#[cold]` keeps the allocation out
/// of the inlined part.
#[inline]
pub(crate) fn ready(slots: &mut Slots, slot: usize) -> BufferState {
    let opening = slots.get(slot).opening;
    match slots.streams.get_mut(slot) {
        Some(Some(stream)) if stream.opening == opening => BufferState::Ready,
        Some(Some(stream)) => {
            (stream.held, stream.dirty, stream.opening) = (0..0, false, opening);
            BufferState::Ready
        }
        _ => ready_slow(slots, slot, opening),
    }
}

/// The slow half of [`ready`]: allocates the buffer.
#[cold]
fn ready_slow(slots: &mut Slots, slot: usize, opening: u64) -> BufferState {
    let Ok(memory) = Map::new(SIZE) else { return BufferState::Missing };
    if slots.streams.is_empty() {
        let n = slots.len();
        slots.streams.resize_with(n, || None);
    }
    slots.streams[slot] = Some(Box::new(BufferedStream { memory, held: 0..0, dirty: false, opening }));
    BufferState::Made
}
