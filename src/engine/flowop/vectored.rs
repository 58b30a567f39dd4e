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
use wml_os::OFlags;
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

/// The largest block of the devices that direct I/O meets, in bytes.
const BLOCK: usize = 4096;

fn vectored<const WRITES: bool>(args: &Args<'_>) -> BuiltOp {
    let (file, iosize, source) = (FileUse::new(args, true)?, args.need_iosize()?, OffsetSource::new(args)?);
    let workingset = WorkingSet::new(args)?;
    let segments = args.int("segments", 2)? as usize;
    if !(1..=MOST).contains(&segments) {
        let message = format!("`segments` of flowop `{}` is {segments}", args.name);
        return Err(Diagnostic::error(Code::OutOfRange, args.span_of("segments"), message)
            .help(format!("give a number of buffers from 1 to {MOST}")));
    }
    // Direct I/O needs each buffer at a multiple of a block.
    let unit = if file.flags.contains(OFlags::DIRECT) { BLOCK } else { 1 };
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
        let mut moved = call::<WRITES>(cx, slot, range.clone(), (segments, unit), offset);
        if !WRITES && offset.is_none() && moved == Ok(0) {
            // At its end a sequential reader returns to its start, as `read` does.
            cx.cell().add_calls(2);
            cx.restamp();
            let Some(handle) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
            let at_start = handle.seek(0);
            cx.begin();
            moved = at_start.and_then(|()| call::<WRITES>(cx, slot, range.clone(), (segments, unit), offset));
        }
        let done = match moved {
            Ok(n) if n as u64 == len => Ok(len),
            Ok(n) if WRITES => short::write_rest(cx, slot, range, offset, n),
            Ok(n) if target.offsets.is_at() => Ok(n as u64),
            Ok(n) => short::read_rest(cx, slot, len, offset, n),
            Err(errno) => Err(errno),
        };
        match done {
            Ok(bytes) => cx.end(bytes),
            Err(errno) => Err(cx.failed_in_slot(if WRITES { "write failed" } else { "read failed" }, errno, slot)),
        }
    }))
}

/// Makes the call with a range of the buffer, cut into parts whose lengths differ by one unit at most. Returns the bytes
/// moved.
fn call<const WRITES: bool>(
    cx: &mut OpCx<'_>,
    slot: usize,
    range: Range<usize>,
    (segments, unit): (usize, usize),
    offset: Option<u64>,
) -> OsResult<usize> {
    let engine = cx.env.engine;
    let Some(handle) = cx.io.slots.get_mut(slot).handle.as_mut() else { return Err(wml_os::Errno::BADF) };
    cx.io.last_offset = offset.unwrap_or(handle.position);
    let units = range.len().div_ceil(unit);
    let (each, longer) = (units / segments, units % segments);
    let len = |n: usize, left: usize| left.min(unit * (each + usize::from(n < longer)));
    if WRITES {
        let (mut parts, mut rest) = ([IoSlice::new(&[]); MOST], cx.io.buffer.get(range));
        for (n, part) in parts[..segments].iter_mut().enumerate() {
            let (own, behind) = rest.split_at(len(n, rest.len()));
            (*part, rest) = (IoSlice::new(own), behind);
        }
        engine.writev(handle, &parts[..segments], offset)
    } else {
        let mut parts = std::array::from_fn::<_, MOST, _>(|_| IoSliceMut::new(&mut []));
        let mut rest = cx.io.buffer.get_mut(range);
        for (n, part) in parts[..segments].iter_mut().enumerate() {
            let (own, behind) = rest.split_at_mut(len(n, rest.len()));
            (*part, rest) = (IoSliceMut::new(own), behind);
        }
        engine.readv(handle, &mut parts[..segments], offset)
    }
}
