//! `readvec`, `writevec`: one read or write with several buffers.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, StepInit, entry, lost_file, stateful};
use super::transfer::{
    FileUse, OffsetSource, Offsets, Transfer, TransferTarget, UnsizedEnd, constant_size, max_size, units,
};
use super::working_set::WorkingSet;
use crate::exec::{OpCx, short};
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use wml_language::diag::{Code, Diagnostic};
use wml_language::spec::{IoDirection, Role};
use wml_os::fd::Result as OsResult;

const USES: &[&str] =
    placed!("segments", "partial", "directio", "dsync", "align", "stride", "offset", "backward", "reoffset");

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("readvec", vectored::<false>)
        .direction(IoDirection::Read)
        .uses(USES)
        .roles(&[Role::UsesSlot, Role::NeedsFile])
        .doc("as `read`, into `segments` buffers with one call (`preadv`, `readv`)")
        .example("flowop readvec name=rd,filename=data,iosize=64k,segments=8,random"),
    entry("writevec", vectored::<true>)
        .direction(IoDirection::Write)
        .uses(USES)
        .roles(&[Role::UsesSlot, Role::NeedsFile])
        .doc("as `write`, from `segments` buffers with one call (`pwritev`, `writev`)")
        .example("flowop writevec name=wr,filename=data,iosize=64k,segments=8,random"),
];

/// The most buffers of a call. They are listed on the stack.
const MOST: usize = 64;

fn vectored<const WRITES: bool>(args: &Args<'_>) -> BuiltOp {
    let (file, iosize, source) = (FileUse::new(args, true)?, args.need_iosize()?, OffsetSource::new(args)?);
    let workingset = WorkingSet::new(args)?;
    let segments = args.int("segments", 2)? as usize;
    if !(1..=MOST).contains(&segments) {
        let message = format!("`segments` of flowop `{}` is {segments}", args.name);
        return Err(Diagnostic::error(Code::OutOfRange, args.span_of("segments"), message)
            .help(format!("give a number of buffers from 1 to {MOST}")));
    }
    let (places, set) = (source.describe(), workingset.describe());
    let described = format!("{} iosize={iosize} segments={segments}{places}{set}", file.describe());
    let effects = Effects {
        preserves: !WRITES,
        buffer: max_size(&iosize),
        exact_buffer: constant_size(&iosize),
        units: units(&iosize, &source),
        ..file.effects()
    };
    let end = if WRITES { UnsizedEnd::Unlimited } else { UnsizedEnd::Actual };
    let make = move |init: &StepInit<'_>| {
        let offsets = Offsets::new(source.clone(), workingset.draw(init), end);
        TransferTarget::new(file.clone(), iosize.clone(), offsets)
    };
    Ok(stateful(described, effects, make, move |target, cx| {
        let Transfer { slot, offset, len } = target.next_transfer(cx)?;
        let range = if WRITES { cx.data(slot, len)? } else { cx.place(len)? };
        cx.begin();
        let mut moved = call::<WRITES>(cx, slot, range.clone(), segments, offset);
        if !WRITES && offset.is_none() && moved == Ok(0) {
            // At its end a sequential reader returns to its start, as `read` does.
            cx.cell().add_calls(2);
            cx.restamp();
            let Some(handle) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
            let at_start = handle.seek(0);
            cx.begin();
            moved = at_start.and_then(|()| call::<WRITES>(cx, slot, range.clone(), segments, offset));
        }
        let done = match moved {
            Ok(n) if n as u64 == len => Ok(len),
            Ok(n) if WRITES => short::write_rest(cx, slot, range, offset, n),
            Ok(n) => short::read_rest(cx, slot, len, offset, n),
            Err(errno) => Err(errno),
        };
        match done {
            Ok(bytes) => cx.end(bytes),
            Err(errno) => Err(cx.failed_in_slot(if WRITES { "write failed" } else { "read failed" }, errno, slot)),
        }
    }))
}

/// Makes the call with a range of the buffer, cut into equal parts. Returns the bytes moved.
fn call<const WRITES: bool>(
    cx: &mut OpCx<'_>,
    slot: usize,
    range: Range<usize>,
    segments: usize,
    offset: Option<u64>,
) -> OsResult<usize> {
    let part = range.len().div_ceil(segments).max(1);
    let engine = cx.env.engine;
    let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(wml_os::Errno::BADF) };
    cx.io.last_offset = offset.unwrap_or(handle.position);
    if WRITES {
        let mut parts = [IoSlice::new(&[]); MOST];
        let used =
            parts.iter_mut().zip(cx.io.buffer.get(range).chunks(part)).map(|(to, from)| *to = IoSlice::new(from));
        let used = used.count();
        engine.writev(handle, &parts[..used], offset)
    } else {
        let mut parts = std::array::from_fn::<_, MOST, _>(|_| IoSliceMut::new(&mut []));
        let buf = cx.io.buffer.get_mut(range).chunks_mut(part);
        let used = parts.iter_mut().zip(buf).map(|(to, from)| *to = IoSliceMut::new(from)).count();
        engine.readv(handle, &mut parts[..used], offset)
    }
}
