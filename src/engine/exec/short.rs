//! Short transfers: the rest is transferred by further calls of the same operation.
//!
//! A short read or write is not an error. An operation that cannot continue is counted with the bytes that it has
//! moved; only a write of which nothing was accepted fails, as [`NOTHING_WRITTEN`]. Bytes that were moved before an
//! error are counted too.

use super::OpCx;
use std::ops::Range;
use wml_os::{Errno, NOTHING_WRITTEN};

/// Number of calls of one operation between two checks of the deadline.
const CHECK_INTERVAL: u64 = 1000;

/// True if the error means that the transfer cannot continue at this offset: direct I/O that stopped between
/// two blocks.
fn is_end(errno: Errno) -> bool {
    errno == Errno::INVAL
}

/// The further calls of an operation.
#[derive(Debug)]
pub(super) struct FurtherCalls {
    /// The bytes moved, including those of the first call.
    done: usize,
    /// The number of calls that succeeded.
    pub(super) calls: u64,
    /// The error of the last call.
    failed: Option<Errno>,
}

impl FurtherCalls {
    /// Returns the total number of bytes moved, or the error of the operation.
    pub(super) fn result(&self) -> Result<usize, Errno> {
        match self.failed {
            Some(errno) if !is_end(errno) => Err(errno),
            _ => Ok(self.done),
        }
    }

    /// Returns the total number of bytes moved, also by an operation that failed.
    pub(super) fn moved(&self) -> u64 {
        self.done as u64
    }
}

/// Continues an operation of `len` bytes of which `done` were moved, until all are, a call moves none or fails, or the
/// run is over. `call` makes a call behind the bytes that were moved so far; `None` if there is nothing to move.
pub(super) fn continue_transfer<'r>(
    cx: &mut OpCx<'r>,
    len: u64,
    done: usize,
    mut call: impl FnMut(&mut OpCx<'r>, usize) -> Option<Result<usize, Errno>>,
) -> FurtherCalls {
    let mut further = FurtherCalls { done, calls: 0, failed: None };
    while further.done > 0
        && further.moved() < len
        && (further.calls % CHECK_INTERVAL != CHECK_INTERVAL - 1 || !cx.expired())
    {
        match call(cx, further.done) {
            Some(Ok(n)) => {
                further.done += n;
                further.calls += 1;
                if n == 0 {
                    break;
                }
            }
            Some(Err(errno)) => {
                further.failed = Some(errno);
                break;
            }
            None => break,
        }
    }
    further
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
    done: usize,
) -> Result<u64, Errno> {
    if done == 0 {
        return Err(NOTHING_WRITTEN);
    }
    let further = continue_transfer(cx, range.len() as u64, done, |cx, done| {
        let buf = cx.io.buffer.get(range.start + done..range.end);
        let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Some(Err(Errno::BADF)) };
        Some(match offset {
            Some(offset) => cx.env.engine.pwrite(handle, buf, offset + done as u64),
            None => cx.env.engine.write(handle, buf),
        })
    });
    finish(cx, &further)
}

/// Continues a read of `len` bytes that returned `done`, unless the file ends there. Returns the total number of bytes
/// read.
#[cold]
pub(crate) fn read_rest(
    cx: &mut OpCx<'_>,
    slot: usize,
    len: u64,
    offset: Option<u64>,
    done: usize,
) -> Result<u64, Errno> {
    let further = continue_transfer(cx, len, done, |cx, done| {
        let range = cx.io.buffer.place(len - done as u64)?;
        let buf = cx.io.buffer.get_mut(range);
        let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Some(Err(Errno::BADF)) };
        if offset.map_or(handle.position, |offset| offset + done as u64) >= handle.size {
            return None;
        }
        Some(match offset {
            Some(offset) => cx.env.engine.pread(handle, buf, offset + done as u64),
            None => cx.env.engine.read(handle, buf),
        })
    });
    finish(cx, &further)
}

/// Counts the further calls, and decides whether the operation failed.
fn finish(cx: &mut OpCx<'_>, further: &FurtherCalls) -> Result<u64, Errno> {
    let calls = further.calls + u64::from(further.failed.is_some());
    if calls > 0 {
        cx.cell().add_calls(calls);
    }
    let result = further.result();
    if result.is_err() {
        cx.moved(further.moved());
    }
    result.map(|done| done as u64)
}
