//! The common part of all flowops on open files: selection of the slot, of the file to open in a closed slot, and of
//! the offset.

use super::args::{Args, SetInfo};
use super::op::{Effects, Unit};
use super::pick_rule::PickRule;
use crate::exec::slots::{MAX_FD, SlotRule, Slots};
use crate::exec::{OpCx, Stop};
use crate::fileset::Want;
use crate::io_engine::Handle;
use crate::random::{self, Quantity, Rng, Shuffle};
use wml_language::diag::{Code, Diagnostic};
use wml_os::OFlags;
use wml_os::fd::DATA_SYNC;

/// The slot that a flowop works on, and the file that it opens there.
#[derive(Clone, Debug)]
pub(super) struct FileUse {
    pub(super) slot: SlotRule,
    /// `None` when the flowop names no file set: it can only use an open slot.
    pub(super) set: Option<SetInfo>,
    pub(super) pick: PickRule,
    /// Flags for opening the file.
    pub(super) flags: OFlags,
    /// Whether readahead stays enabled for a file that it opens.
    pub(super) readahead: bool,
}

impl FileUse {
    /// Makes it from attributes. `opennext`: whether that attribute has an effect in both dialects.
    pub(super) fn new(args: &Args<'_>, opennext: bool) -> Result<Self, Diagnostic> {
        let set = args.fileset()?;
        let rotates = opennext || !args.dialect.semantics().opennext_only_io;
        let slot = args.slot(set.as_ref(), rotates)?;
        let pick = PickRule::new(args, set.as_ref(), rotates)?;
        let mut flags = match &set {
            Some(s) if s.readonly => OFlags::RDONLY,
            Some(s) if s.writeonly => OFlags::WRONLY,
            _ => OFlags::RDWR,
        };
        if args.text("dsync").as_deref() == Some("data") {
            flags |= DATA_SYNC;
        } else if args.flag("dsync")? {
            flags |= OFlags::SYNC;
        }
        if args.flag("directio")? {
            flags |= OFlags::DIRECT;
        }
        let readahead = !args.flag("noreadahead")?;
        Ok(Self { slot, set, pick, flags, readahead })
    }

    /// Returns the slot for this execution. Opens a file in it first if it is closed.
    #[inline]
    pub(super) fn ensure_open(&self, cx: &mut OpCx<'_>) -> Result<usize, Stop> {
        let slot = cx.io.slots.choose(&self.slot);
        let state = cx.io.slots.get(slot);
        if state.handle.is_none() {
            self.open_implicitly(cx, slot)?;
        } else if self.slot.set.is_some() && state.file.is_some_and(|f| Some(cx.io.slots.set_of(f)) != self.slot.set) {
            return Err(self.conflict(cx, slot));
        }
        Ok(slot)
    }

    /// Returns the slot for this execution of a flowop that works on the file in it, or on one by its name; 0: none.
    #[inline]
    pub(super) fn slot_or_none(&self, cx: &mut OpCx<'_>) -> usize {
        if self.slot.rotate > 0 { cx.io.slots.choose(&self.slot) } else { self.slot.fd }
    }

    /// Picks a file and opens it in a slot. The open is counted and timed separately from the operation.
    fn open_implicitly(&self, cx: &mut OpCx<'_>, slot: usize) -> Result<(), Stop> {
        let Some(set) = &self.set else {
            let what = || format!("slot {slot} is closed, and the flowop has no `filesetname=` to open a file of");
            return Err(cx.misuse(what, "open the slot first, or add `filesetname=`"));
        };
        if self.slot.fd > 0 && cx.io.slots.get(slot).file.is_some_and(|f| cx.io.slots.set_of(f) != set.id) {
            return Err(self.conflict(cx, slot));
        }
        let by = self.pick.draw(cx);
        let file = cx.pick(set.id, Want::Existing, by, true)?;
        let opened = cx.open(slot, file, self.flags, self.readahead).and_then(|()| cx.end_open());
        // After the end of the open, because it may wake threads.
        if cx.release(file) {
            cx.restamp();
        }
        opened
    }

    #[cold]
    pub(super) fn conflict(&self, cx: &mut OpCx<'_>, slot: usize) -> Stop {
        let (held, views) = (cx.io.slots.get(slot).file, cx.files.views);
        let what = || {
            let held = held.map_or("", |file| views[file.set].set.spec.name.as_str());
            let wanted = self.set.as_ref().map_or("", |set| set.name.as_str());
            format!("slot {slot} holds a file of `{held}`, and the flowop works on `{wanted}`")
        };
        cx.misuse(what, "use another `fd=` for each file set")
    }

    pub(super) fn describe(&self) -> String {
        let mut text = self.set.as_ref().map_or(String::new(), |s| format!(" {}", s.name));
        match &self.slot {
            SlotRule { fd: 1.., .. } => text.push_str(&format!(" fd={}", self.slot.fd)),
            SlotRule { rotate: 1.., .. } => text.push_str(&format!(" slots={}", self.slot.rotate)),
            _ => {}
        }
        text.push_str(&self.pick.describe());
        // O_SYNC includes the bit of O_DSYNC.
        if self.flags.contains(OFlags::SYNC) {
            text.push_str(" dsync");
        } else if self.flags.contains(DATA_SYNC) {
            text.push_str(" dsync=data");
        }
        if self.flags.contains(OFlags::DIRECT) {
            text.push_str(" directio");
        }
        if !self.readahead {
            text.push_str(" noreadahead");
        }
        text
    }

    pub(super) fn effects(&self) -> Effects {
        Effects {
            sets: self.set.iter().map(|s| s.id).collect(),
            slot: self.slot.fd,
            max_fd: if self.slot.rotate > 0 { MAX_FD } else { self.slot.fd },
            rotating: self.slot.rotate,
            direct: self.flags.contains(OFlags::DIRECT),
            by_age: match self.pick {
                PickRule::Recent { .. } => self.set.iter().map(|s| s.id).collect(),
                _ => Vec::new(),
            },
            ..Effects::default()
        }
    }
}

/// The rule by which offsets are chosen. All numbers are in bytes.
#[derive(Clone, Debug)]
pub(super) enum OffsetSource {
    /// Sequential, at the file position of the kernel.
    Sequential,
    /// Random multiples of `align` (0: of the I/O size) within the working set.
    Random { align: u64 },
    /// As `Random`, but up to the end of the file, where the I/O is shortened.
    Partial { align: u64 },
    /// As `Random`, but without repetition: each position once in each pass.
    Shuffle { align: u64 },
    /// Sequential, with a gap of this many bytes after each I/O. Each pass begins at `start`; without one it begins one
    /// I/O later than the pass before.
    Stride { gap: u64, start: Option<u64> },
    /// Sequential from the end of the file to its start.
    Backward,
    /// The offset of the thread's previous I/O.
    Same,
    /// An offset that is drawn for each I/O, wherever the file ends.
    At(Quantity),
}

impl OffsetSource {
    /// Makes the rule from attributes. `Err` when two of them contradict each other.
    pub(super) fn new(args: &Args<'_>) -> Result<Self, Diagnostic> {
        let gap = args.int("stride", 0)?;
        let start = args.value("offset").map(|_| args.int("offset", 0)).transpose()?;
        let in_order = if gap > 0 { "stride" } else { "offset" };
        let (shuffle, align) = (args.flag("shuffle")?, args.int("align", 0)?);
        let random = if args.flag("partial")? { Self::Partial { align } } else { Self::Random { align } };
        let chosen: Vec<(&str, Self)> = [
            ("shuffle", shuffle, Self::Shuffle { align }),
            ("random", args.flag("random")? && !shuffle, random),
            (in_order, gap > 0 || start.is_some(), Self::Stride { gap, start }),
            ("backward", args.flag("backward")?, Self::Backward),
            ("reoffset", args.flag("reoffset")?, Self::Same),
        ]
        .into_iter()
        .filter(|(_, on, _)| *on)
        .map(|(name, _, source)| (name, source))
        .chain(args.quantity("at")?.map(|at| ("at", Self::At(at))))
        .collect();
        match chosen.as_slice() {
            [] => Ok(Self::Sequential),
            [(_, source)] => Ok(source.clone()),
            [(a, _), (b, _), ..] => Err(Diagnostic::error(
                Code::OutOfRange,
                args.span_of(b),
                format!("flowop `{}` has both `{a}` and `{b}`", args.name),
            )
            .help("choose one: each of them determines the offset of the next I/O")),
        }
    }

    /// Makes the rule for calls that do not use the file position of the kernel. Sequential offsets are then counted
    /// here: from the start of the file to its end, and from the start again.
    pub(super) fn with_offset(args: &Args<'_>) -> Result<Self, Diagnostic> {
        Ok(match Self::new(args)? {
            Self::Sequential => Self::Stride { gap: 0, start: None },
            other => other,
        })
    }

    /// Returns its part of a description in a plan.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Sequential | Self::Stride { gap: 0, start: None } => String::new(),
            Self::Random { align: 0 } => " random".to_owned(),
            Self::Random { align } => format!(" random align={align}"),
            Self::Partial { align: 0 } => " random partial".to_owned(),
            Self::Partial { align } => format!(" random partial align={align}"),
            Self::Shuffle { align: 0 } => " shuffle".to_owned(),
            Self::Shuffle { align } => format!(" shuffle align={align}"),
            Self::Stride { gap, start: None } => format!(" stride={gap}"),
            Self::Stride { gap: 0, start: Some(start) } => format!(" offset={start}"),
            Self::Stride { gap, start: Some(start) } => format!(" stride={gap} offset={start}"),
            Self::Backward => " backward".to_owned(),
            Self::Same => " reoffset".to_owned(),
            Self::At(at) => format!(" at={at}"),
        }
    }
}

/// The offsets of a flowop in one thread.
#[derive(Clone, Debug)]
pub(super) struct Offsets {
    source: OffsetSource,
    /// `workingset` of this thread in bytes; 0: the whole file.
    workingset: u64,
    /// Size of the file and I/O size for which `positions` was computed.
    cached: (u64, u64),
    /// Number of positions for an I/O in the file.
    positions: u64,
    shuffle: Shuffle,
    unsized_end: UnsizedEnd,
}

/// The end of a pass over a file whose set has the size 0, for offsets in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UnsizedEnd {
    /// 0, as the set says.
    Defined,
    /// The size that the file has.
    Actual,
    /// None: the writer extends the file.
    Unlimited,
}

impl Offsets {
    pub(super) fn new(source: OffsetSource, workingset: u64, unsized_end: UnsizedEnd) -> Self {
        Self { source, workingset, cached: (0, 0), positions: 0, shuffle: Shuffle::new(), unsized_end }
    }

    pub(super) fn is_at(&self) -> bool {
        matches!(self.source, OffsetSource::At(_))
    }

    /// Returns the offset of the next I/O of `len` bytes in the file of `slot`. `None` when the I/O is at the file
    /// position of the kernel; `Err` when it does not fit in the file.
    #[inline]
    pub(super) fn next(&mut self, cx: &mut OpCx<'_>, slot: usize, len: u64) -> Result<Option<u64>, Stop> {
        let nominal = cx.io.slots.get(slot).nominal;
        let offset = match &self.source {
            OffsetSource::At(at) => at.draw(&mut cx.rng),
            OffsetSource::Sequential => {
                cx.io.last_offset = cx.io.slots.get(slot).handle.map_or(0, |handle| handle.position);
                return Ok(None);
            }
            &(OffsetSource::Random { align } | OffsetSource::Partial { align } | OffsetSource::Shuffle { align }) => {
                let size = if nominal == 0 { self.end_of_unsized(cx, slot)? } else { nominal };
                if self.cached != (size, len) {
                    self.count_positions(cx, size, len, align)?;
                }
                let position = match self.source {
                    OffsetSource::Shuffle { .. } => self.shuffle.draw(&mut cx.rng, self.positions),
                    _ => random::below(&mut cx.rng, self.positions),
                };
                position * if align > 0 { align } else { len }
            }
            _ => {
                let size = if nominal == 0 { self.end_of_unsized(cx, slot)? } else { nominal };
                self.next_in_order(cx, slot, len, size)
            }
        };
        cx.io.last_offset = offset;
        Ok(Some(offset))
    }

    /// Computes the number of positions for an I/O, including the last one, unlike Filebench. `Err` when the I/O is
    /// larger than the working set or, without one, the file. A file smaller than the working set is allowed: a read
    /// ends at its end, a write extends it.
    fn count_positions(&mut self, cx: &mut OpCx<'_>, size: u64, len: u64, align: u64) -> Result<(), Stop> {
        let bound = if self.workingset > 0 { self.workingset } else { size };
        if let OffsetSource::Partial { .. } = self.source {
            self.positions = bound.min(size).div_ceil(if align > 0 { align } else { len }.max(1)).max(1);
            self.cached = (size, len);
            return Ok(());
        }
        if len > bound || len == 0 {
            let of = if self.workingset > 0 { "working set" } else { "file" };
            let what = || format!("a random I/O of {len} bytes does not fit in a {of} of {bound} bytes");
            return Err(cx.misuse(
                what,
                "make `iosize` smaller, the files (or `workingset`) larger, or add `partial`, which cuts it at the end",
            ));
        }
        let range = bound.min(size).max(len);
        self.positions = (range - len).checked_div(align).map_or(range / len, |last| last + 1);
        self.cached = (size, len);
        Ok(())
    }

    /// Returns the end of a pass over the file in the slot, whose set has the size 0. Offsets at random need a working set.
    fn end_of_unsized(&self, cx: &mut OpCx<'_>, slot: usize) -> Result<u64, Stop> {
        use OffsetSource::{Partial, Random, Same, Shuffle, Stride};
        match (&self.source, self.unsized_end) {
            (Same, _) | (_, UnsizedEnd::Defined) => Ok(0),
            (Random { .. } | Partial { .. } | Shuffle { .. }, _) if self.workingset == 0 => Ok(0),
            (_, UnsizedEnd::Actual) => cx.file_size(slot),
            (Stride { .. } | Random { .. } | Partial { .. } | Shuffle { .. }, UnsizedEnd::Unlimited) => Ok(u64::MAX),
            (_, UnsizedEnd::Unlimited) => Ok(0),
        }
    }

    /// Returns the next offset of all rules that draw no random number, in a file of `size` bytes.
    fn next_in_order(&self, cx: &mut OpCx<'_>, slot: usize, len: u64, size: u64) -> u64 {
        let last = cx.io.last_offset;
        let end = if self.workingset > 0 { self.workingset.min(size) } else { size };
        let Some(handle) = cx.handle(slot) else { return 0 };
        match self.source {
            OffsetSource::Same => last,
            OffsetSource::Backward => {
                if handle.cursor < len {
                    handle.cursor = end.max(len);
                }
                handle.cursor -= len;
                handle.cursor
            }
            OffsetSource::Stride { gap, start } => {
                let step = len + gap;
                let cursor = handle.cursor.max(start.unwrap_or_default());
                let offset = if cursor + len <= end {
                    cursor
                } else if let Some(start) = start {
                    start
                } else {
                    // Each pass begins one I/O later than the one before; after the last such pass the start is 0
                    // again.
                    let start = handle.cursor % step.max(1) + len;
                    if start >= step || start + len > end { 0 } else { start }
                };
                handle.cursor = offset + step;
                offset
            }
            OffsetSource::Sequential
            | OffsetSource::At(_)
            | OffsetSource::Random { .. }
            | OffsetSource::Partial { .. }
            | OffsetSource::Shuffle { .. } => 0,
        }
    }
}

/// Returns the largest I/O size of a quantity in bytes; for an unbounded random variable an estimate, four times its
/// mean.
pub(super) fn max_size(iosize: &Quantity) -> u64 {
    iosize.max_hint().unwrap_or_else(|| (iosize.mean() * 4.0) as u64)
}

/// Returns the units of the sizes and offsets of a flowop's I/O.
pub(super) fn units(iosize: &Quantity, source: &OffsetSource) -> Vec<Unit> {
    let mut units = vec![Unit::Attribute("iosize", iosize.clone())];
    units.extend(match source {
        OffsetSource::Random { align: n @ 1.. }
        | OffsetSource::Partial { align: n @ 1.. }
        | OffsetSource::Shuffle { align: n @ 1.. } => Some(Unit::Attribute("align", (*n).into())),
        OffsetSource::Stride { gap: n @ 1.., .. } => Some(Unit::Attribute("stride", (*n).into())),
        OffsetSource::Backward => Some(Unit::FileSize),
        OffsetSource::At(at) => Some(Unit::Attribute("at", at.clone())),
        _ => None,
    });
    units
}

/// Returns a constant I/O size in bytes; 0 for a random one.
pub(super) fn constant_size(iosize: &Quantity) -> u64 {
    if let Quantity::Const(n) = iosize { *n } else { 0 }
}

/// Slot, offset and length of one I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) slot: usize,
    /// Offset in bytes; `None`: at the file position of the kernel.
    pub(super) offset: Option<u64>,
    pub(super) len: u64,
}

/// Selection of slot, offset and length for a flowop that reads or writes, with the state of one thread.
#[derive(Clone, Debug)]
pub(super) struct TransferTarget {
    pub(super) file: FileUse,
    pub(super) iosize: Quantity,
    pub(super) offsets: Offsets,
    pub(super) cached: Option<CachedTarget>,
}

/// The parameters of the previous transfer, kept for random I/O of a constant size in one slot.
///
/// They stay valid while the slot holds a file of the same set and size. The next offset then needs only a comparison
/// of the slots' version, which changes with any change of a slot, and a random number. This is the fast path of random
/// I/O: see docs/performance.md, "What the tool costs".
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedTarget {
    pub(super) slot: usize,
    pub(super) len: u64,
    /// Copy of the open file, for calls that do not change its position or size.
    pub(super) handle: Handle,
    /// [`Slots::version`] at the last check.
    version: u64,
    set: usize,
    nominal: u64,
    /// Distance between two positions in bytes.
    step: u64,
    /// Number of positions.
    positions: u64,
}

impl CachedTarget {
    /// Returns the offset of the next I/O. `None` when the slot no longer holds a file of the same set and size.
    #[inline]
    pub(super) fn next_offset(&mut self, slots: &mut Slots, rng: &mut Rng) -> Option<u64> {
        if slots.version() != self.version {
            self.revalidate(slots)?;
        }
        slots.set_last(self.slot);
        Some(random::below(rng, self.positions) * self.step)
    }

    /// Checks the slot after a change of any slot. `None` when its file differs.
    #[inline(never)]
    fn revalidate(&mut self, slots: &Slots) -> Option<()> {
        let slot = slots.get(self.slot);
        if slot.nominal != self.nominal || !slot.holds(self.set) {
            return None;
        }
        self.handle = slot.handle?;
        self.version = slots.version();
        Some(())
    }
}

impl TransferTarget {
    pub(super) fn new(file: FileUse, iosize: Quantity, offsets: Offsets) -> Self {
        Self { file, iosize, offsets, cached: None }
    }

    /// Returns the next transfer. Opens a file first if the slot is closed.
    #[inline]
    pub(super) fn next_transfer(&mut self, cx: &mut OpCx<'_>) -> Result<Transfer, Stop> {
        if let Some(cached) = &mut self.cached
            && let Some(offset) = cached.next_offset(&mut cx.io.slots, &mut cx.rng)
        {
            cx.io.last_offset = offset;
            return Ok(Transfer { slot: cached.slot, offset: Some(offset), len: cached.len });
        }
        self.next_transfer_slow(cx)
    }

    /// Chooses slot, size and offset without the cached target, and caches them if possible. Not inlined, so that the
    /// fast path stays small.
    #[inline(never)]
    fn next_transfer_slow(&mut self, cx: &mut OpCx<'_>) -> Result<Transfer, Stop> {
        let slot = self.file.ensure_open(cx)?;
        let len = self.iosize.draw(&mut cx.rng);
        let offset = self.offsets.next(cx, slot, len)?;
        let state = cx.io.slots.get(slot);
        // The size of a file that its set does not define may change.
        if let (OffsetSource::Random { align }, Quantity::Const(_), 0, 1.., Some(file), Some(handle)) =
            (&self.offsets.source, &self.iosize, self.file.slot.rotate, state.nominal, state.file, state.handle)
        {
            self.cached = Some(CachedTarget {
                slot,
                handle,
                version: cx.io.slots.version(),
                set: file.set,
                nominal: state.nominal,
                len,
                step: if *align > 0 { *align } else { len },
                positions: self.offsets.positions,
            });
        }
        let len = match (&self.offsets.source, offset) {
            (OffsetSource::Partial { .. }, Some(offset)) => {
                len.min(self.offsets.cached.0.saturating_sub(offset).max(1))
            }
            _ => len,
        };
        Ok(Transfer { slot, offset, len })
    }
}
