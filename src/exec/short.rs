//! Transfers of which the file system took or gave only a part: what is left is moved by further calls of the same operation.
//!
//! A short read or write is no error, and none is made up: an operation that can't get on is counted with the bytes that it moved, and
//! only a write of which nothing at all was taken fails, as [`NOTHING_WRITTEN`]. What was moved before an error is counted too.

use super::OpCx;
use crate::os::{Errno, NOTHING_WRITTEN};
use std::ops::Range;

/// Calls of one operation between two looks at the deadline.
const LOOK: u64 = 1000;

/// Whether a further call can't succeed where the one before it ended: direct I/O that stopped between two blocks.
fn is_end(errno: Errno) -> bool {
    errno == Errno::INVAL
}

/// Goes on with a write of a slice of which `done` bytes were taken. Returns the bytes written in all.
#[cold]
pub(crate) fn write_rest(
    cx: &mut OpCx<'_>,
    slot: usize,
    range: Range<usize>,
    offset: Option<u64>,
    mut done: usize,
) -> Result<u64, Errno> {
    if done == 0 {
        return Err(NOTHING_WRITTEN);
    }
    let (mut calls, mut failed) = (0, Ok(()));
    while done < range.len() && (calls % LOOK != LOOK - 1 || !cx.expired()) {
        let buf = cx.io.buffer.get(range.start + done..range.end);
        let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(Errno::BADF) };
        let result = match offset {
            Some(offset) => cx.env.engine.pwrite(handle, buf, offset + done as u64),
            None => cx.env.engine.write(handle, buf),
        };
        match result {
            Ok(n) => (done, calls) = (done + n, calls + 1),
            Err(errno) => failed = Err(errno),
        }
        if failed.is_err() || matches!(result, Ok(0)) {
            break;
        }
    }
    finish(cx, calls, done, failed)
}

/// Goes on with a read of `len` bytes that brought `done`, if that was not all that the file has. Returns the bytes read in all.
#[cold]
pub(crate) fn read_rest(
    cx: &mut OpCx<'_>,
    slot: usize,
    len: u64,
    offset: Option<u64>,
    mut done: usize,
) -> Result<u64, Errno> {
    let (mut calls, mut failed) = (0, Ok(()));
    while done > 0 && (done as u64) < len && (calls % LOOK != LOOK - 1 || !cx.expired()) {
        let Some(range) = cx.io.buffer.place(len - done as u64) else { break };
        let buf = cx.io.buffer.get_mut(range);
        let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(Errno::BADF) };
        if offset.map_or(handle.position, |offset| offset + done as u64) >= handle.size {
            break;
        }
        let result = match offset {
            Some(offset) => cx.env.engine.pread(handle, buf, offset + done as u64),
            None => cx.env.engine.read(handle, buf),
        };
        match result {
            Ok(n) => (done, calls) = (done + n, calls + 1),
            Err(errno) => failed = Err(errno),
        }
        if failed.is_err() || matches!(result, Ok(0)) {
            break;
        }
    }
    finish(cx, calls, done, failed)
}

fn finish(cx: &mut OpCx<'_>, calls: u64, done: usize, failed: Result<(), Errno>) -> Result<u64, Errno> {
    let calls = calls + u64::from(failed.is_err());
    if calls > 0 {
        cx.cell().add_calls(calls);
    }
    match failed {
        Err(errno) if !is_end(errno) => {
            cx.moved(done as u64);
            Err(errno)
        }
        _ => Ok(done as u64),
    }
}
