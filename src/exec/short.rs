//! Short transfers: the rest is transferred by further calls of the same operation.
//!
//! A short read or write is not an error. An operation that cannot continue is counted with the bytes that it has
//! moved; only a write of which nothing was accepted fails, as [`NOTHING_WRITTEN`]. Bytes that were moved before an
//! error are counted too.

use super::OpCx;
use crate::os::{Errno, NOTHING_WRITTEN};
use std::ops::Range;

/// Number of calls of one operation between two checks of the deadline.
const CHECK_INTERVAL: u64 = 1000;

/// Returns whether the error means that the transfer cannot continue at this offset: direct I/O that stopped between
/// two blocks.
fn is_end(errno: Errno) -> bool {
    errno == Errno::INVAL
}

/// Continues a write of a slice of which `done` bytes were accepted. Returns the total number of bytes written.
///
/// `#[cold]`, as [`read_rest`]: nearly all transfers are complete after one call.
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
    while done < range.len() && (calls % CHECK_INTERVAL != CHECK_INTERVAL - 1 || !cx.expired()) {
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

/// Continues a read of `len` bytes that returned `done`, unless the file ends there. Returns the total number of bytes
/// read.
#[cold]
pub(crate) fn read_rest(
    cx: &mut OpCx<'_>,
    slot: usize,
    len: u64,
    offset: Option<u64>,
    mut done: usize,
) -> Result<u64, Errno> {
    let (mut calls, mut failed) = (0, Ok(()));
    while done > 0 && (done as u64) < len && (calls % CHECK_INTERVAL != CHECK_INTERVAL - 1 || !cx.expired()) {
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

/// Counts the further calls, and decides whether the operation failed.
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
