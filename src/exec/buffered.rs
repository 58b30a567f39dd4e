//! The buffer of a slot that `bufread` and `bufwrite` go through, as `FILE` of the C library.

use super::slots::Slots;
use crate::engine::{Engine, Handle};
use crate::os::map::Map;
use crate::os::{Errno, NOTHING_WRITTEN};
use crate::stats::recorder::Cell;
use std::ops::Range;

/// Bytes of a buffer.
const SIZE: usize = 4096;

/// The buffer of one slot.
#[derive(Debug)]
pub(crate) struct BufferedStream {
    /// Page aligned, so that it can be used with `O_DIRECT`.
    memory: Map,
    /// Bytes read and not yet taken, or gathered and not yet written.
    pub(crate) held: Range<usize>,
    /// Whether they are to be written.
    pub(crate) dirty: bool,
    /// Which opening of a file they belong to.
    opening: u64,
}

impl BufferedStream {
    /// What is gathered goes to the file.
    pub(crate) fn flush(&mut self, engine: &dyn Engine, handle: &mut Handle) -> Result<u64, Errno> {
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

    /// Takes all of `data`; the calls that it took.
    pub(crate) fn write(&mut self, engine: &dyn Engine, handle: &mut Handle, data: &[u8]) -> Result<u64, Errno> {
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
pub(crate) fn flush(slots: &mut Slots, slot: usize, engine: &dyn Engine, cell: &Cell) -> Result<(), Errno> {
    if slots.streams.is_empty() { Ok(()) } else { flush_stream(slots, slot, engine, cell) }
}

#[cold]
fn flush_stream(slots: &mut Slots, slot: usize, engine: &dyn Engine, cell: &Cell) -> Result<(), Errno> {
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

/// What the buffer of a slot is.
pub(crate) enum BufferState {
    /// There.
    Ready,
    /// Made just now.
    Made,
    /// There is no memory for it.
    Missing,
}

/// Sees to it that the slot has a buffer, empty if its file was opened since.
#[inline]
pub(crate) fn ready(slots: &mut Slots, slot: usize) -> BufferState {
    let opening = slots.get(slot).opening;
    match slots.streams.get_mut(slot) {
        Some(Some(stream)) if stream.opening == opening => BufferState::Ready,
        Some(Some(stream)) => {
            (stream.held, stream.dirty, stream.opening) = (0..0, false, opening);
            BufferState::Ready
        }
        _ => make(slots, slot, opening),
    }
}

#[cold]
fn make(slots: &mut Slots, slot: usize, opening: u64) -> BufferState {
    let Ok(memory) = Map::new(SIZE) else { return BufferState::Missing };
    if slots.streams.is_empty() {
        let n = slots.len();
        slots.streams.resize_with(n, || None);
    }
    slots.streams[slot] = Some(Box::new(BufferedStream { memory, held: 0..0, dirty: false, opening }));
    BufferState::Made
}
