//! What all flowops on open files share: which slot, which file if the slot is closed, and where in the file.

use super::args::{Args, SetInfo};
use super::{Effects, Unit};
use crate::diag::{Code, Diagnostic};
use crate::engine::Handle;
use crate::exec::PickBy;
use crate::exec::slots::{SlotRule, Slots};
use crate::exec::{OpCx, Stop};
use crate::fileset::Want;
use crate::os::OFlags;
use crate::os::fd::DATA_SYNC;
use crate::random::{self, Permutation, Quantity, Rng, Shuffle};
use rand::RngExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a flowop picks a file of its set.
#[derive(Clone, Debug)]
pub(super) enum PickRule {
    /// The shared rotation.
    Rotate,
    /// The thread's own rotation (`opennext`).
    Own,
    /// `shuffle`: each file once, all threads together, in a new order each lap.
    Shuffle {
        /// Draws so far.
        drawn: Arc<AtomicU64>,
        /// How many files there are.
        entries: u64,
        /// Of the order.
        seed: u64,
    },
    /// `uniform`: any file in the state that is wanted, each as likely.
    Uniform,
    /// `indexed=`.
    Index {
        /// What is drawn.
        value: Quantity,
        /// How many files there are.
        entries: u64,
        /// Half the entries, which the value is multiplied with (sun), or 0: the value itself (fsl).
        scale: u64,
    },
}

impl PickRule {
    pub(super) fn new(args: &Args<'_>, set: Option<&SetInfo>, opennext: bool, io: bool) -> Result<Self, Diagnostic> {
        if let (Some(value), Some(set)) = (args.quantity("indexed")?, set) {
            let entries = set.entries.max(1);
            let scale = if args.dialect.semantics().indexed_scaled { entries / 2 } else { 0 };
            return Ok(Self::Index { value, entries, scale });
        }
        if let (true, false, Some(set)) = (args.flag("shuffle")?, io, set) {
            let seed = random::mix(args.id as u64, set.entries);
            return Ok(Self::Shuffle { drawn: Arc::default(), entries: set.entries.max(1), seed });
        }
        if args.flag("uniform")? {
            return Ok(Self::Uniform);
        }
        Ok(if opennext && args.flag("opennext")? { Self::Own } else { Self::Rotate })
    }

    /// Most flowops rotate: the others are apart, so that those have one comparison.
    #[inline]
    pub(super) fn by(&self, rng: &mut Rng) -> PickBy {
        if matches!(self, Self::Rotate) { PickBy::Rotate } else { self.by_draw(rng) }
    }

    #[inline(never)]
    fn by_draw(&self, rng: &mut Rng) -> PickBy {
        match self {
            Self::Rotate => PickBy::Rotate,
            Self::Own => PickBy::Own,
            Self::Uniform => PickBy::Uniform(rng.random()),
            Self::Shuffle { drawn, entries, seed } => {
                let n = drawn.fetch_add(1, Ordering::Relaxed);
                PickBy::Index(Permutation::new(*entries, random::mix(*seed, n / entries)).at(n % entries))
            }
            Self::Index { value, entries, scale } => PickBy::Index(index(value, *entries, *scale, rng)),
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::Rotate => String::new(),
            Self::Own => " opennext".to_owned(),
            Self::Shuffle { .. } => " shuffle".to_owned(),
            Self::Uniform => " uniform".to_owned(),
            Self::Index { value, .. } => format!(" indexed={value}"),
        }
    }
}

#[inline(never)]
fn index(value: &Quantity, entries: u64, scale: u64, rng: &mut Rng) -> u64 {
    let drawn = match scale {
        0 => value.draw(rng),
        _ => (value.draw_f64(rng) * scale as f64).max(0.0) as u64,
    };
    drawn % entries
}

/// The slot and file that a flowop works on.
#[derive(Clone, Debug)]
pub(super) struct FileUse {
    pub(super) slot: SlotRule,
    pub(super) set: Option<SetInfo>,
    pub(super) pick: PickRule,
    pub(super) flags: OFlags,
    pub(super) readahead: bool,
}

impl FileUse {
    /// From the attributes. `io`: a flowop that reads or writes, for which `opennext` always means something.
    pub(super) fn new(args: &Args<'_>, io: bool) -> Result<Self, Diagnostic> {
        let set = args.fileset()?;
        let rotates = io || !args.dialect.semantics().opennext_only_io;
        let slot = args.slot(set.as_ref(), rotates)?;
        let pick = PickRule::new(args, set.as_ref(), rotates, io)?;
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

    /// The slot, opened if it was closed.
    #[inline]
    pub(super) fn ensure(&self, cx: &mut OpCx<'_>) -> Result<usize, Stop> {
        let slot = cx.io.slots.choose(&self.slot);
        let state = cx.io.slots.get(slot);
        if state.handle.is_none() {
            self.open_implicitly(cx, slot)?;
        } else if self.slot.fd > 0
            && self.slot.set.is_some()
            && state.file.map(|f| cx.io.slots.set_of(f)) != self.slot.set
        {
            return Err(self.conflict(cx, slot));
        }
        Ok(slot)
    }

    fn open_implicitly(&self, cx: &mut OpCx<'_>, slot: usize) -> Result<(), Stop> {
        let Some(set) = &self.set else {
            let what = format!("slot {slot} is closed, and the flowop names no file set to open a file of");
            return Err(cx.misuse(what, "open the slot first, or add `filesetname=`"));
        };
        if self.slot.fd > 0 && cx.io.slots.get(slot).file.is_some_and(|f| cx.io.slots.set_of(f) != set.id) {
            return Err(self.conflict(cx, slot));
        }
        let by = self.pick.by(&mut cx.rng);
        let file = cx.pick(set.id, Want::Existing, by, true)?;
        let opened = cx.open(slot, file, self.flags, self.readahead);
        cx.files.views[file.set].set.state.release(file.index);
        opened?;
        cx.end_open()
    }

    #[cold]
    fn conflict(&self, cx: &mut OpCx<'_>, slot: usize) -> Stop {
        let held = cx.io.slots.get(slot).file.map_or(String::new(), |f| cx.files.views[f.set].set.spec.name.clone());
        let wanted = self.set.as_ref().map_or("", |s| s.name.as_str());
        cx.misuse(
            format!("slot {slot} conflicts: it holds a file of `{held}`, and the flowop works on `{wanted}`"),
            "use another `fd=` for each file set",
        )
    }

    pub(super) fn describe(&self) -> String {
        let mut text = self.set.as_ref().map_or(String::new(), |s| format!(" {}", s.name));
        match &self.slot {
            SlotRule { fd: 1.., .. } => text.push_str(&format!(" fd={}", self.slot.fd)),
            SlotRule { rotate: 1.., .. } => text.push_str(&format!(" slots={}", self.slot.rotate)),
            _ => {}
        }
        text.push_str(&self.pick.describe());
        // O_SYNC has the bit of O_DSYNC.
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
            max_fd: self.slot.rotate.max(self.slot.fd),
            opennext: self.slot.rotate > 0,
            direct: self.flags.contains(OFlags::DIRECT),
            ..Effects::default()
        }
    }
}

/// Where in the file each I/O goes.
#[derive(Clone, Debug)]
pub(super) enum OffsetSource {
    /// On from the last one, by the kernel's own position.
    Sequential,
    /// At random, in multiples of `align` (0: of the I/O's size), below the working set.
    Random { align: u64 },
    /// The same up to the file's end, where the I/O is as long as what is left.
    Partial { align: u64 },
    /// The same, each place once a lap.
    Shuffle { align: u64 },
    /// On from the last one, with a gap; each lap begins one I/O later.
    Stride(u64),
    /// Down from the end of the file.
    Backward,
    /// Where the thread's last I/O was.
    Same,
}

impl OffsetSource {
    pub(super) fn new(args: &Args<'_>) -> Result<Self, Diagnostic> {
        let stride = args.int("stride", 0)?;
        let (shuffle, align) = (args.flag("shuffle")?, args.int("align", 0)?);
        let random = if args.flag("partial")? { Self::Partial { align } } else { Self::Random { align } };
        let chosen: Vec<(&str, Self)> = [
            ("shuffle", shuffle, Self::Shuffle { align }),
            ("random", args.flag("random")? && !shuffle, random),
            ("stride", stride > 0, Self::Stride(stride)),
            ("backward", args.flag("backward")?, Self::Backward),
            ("reoffset", args.flag("reoffset")?, Self::Same),
        ]
        .into_iter()
        .filter(|(_, on, _)| *on)
        .map(|(name, _, place)| (name, place))
        .collect();
        match chosen.as_slice() {
            [] => Ok(Self::Sequential),
            [(_, place)] => Ok(place.clone()),
            [(a, _), (b, _), ..] => Err(Diagnostic::error(
                Code::OutOfRange,
                args.at(b),
                format!("flowop `{}` is both `{a}` and `{b}`", args.name),
            )
            .help("choose one: each says where the next I/O goes")),
        }
    }

    /// The same for calls that need an offset, because the kernel's position is not theirs: in order means from the start of
    /// the file to its end, and over again.
    pub(super) fn with_offset(args: &Args<'_>) -> Result<Self, Diagnostic> {
        Ok(match Self::new(args)? {
            Self::Sequential => Self::Stride(0),
            other => other,
        })
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::Sequential | Self::Stride(0) => String::new(),
            Self::Random { align: 0 } => " random".to_owned(),
            Self::Random { align } => format!(" random align={align}"),
            Self::Partial { align: 0 } => " random partial".to_owned(),
            Self::Partial { align } => format!(" random partial align={align}"),
            Self::Shuffle { align: 0 } => " shuffle".to_owned(),
            Self::Shuffle { align } => format!(" shuffle align={align}"),
            Self::Stride(n) => format!(" stride={n}"),
            Self::Backward => " backward".to_owned(),
            Self::Same => " reoffset".to_owned(),
        }
    }
}

/// The offset of the next I/O of a flowop in a thread.
#[derive(Clone, Debug)]
pub(super) struct Offsets {
    place: OffsetSource,
    /// `workingset`, drawn once; 0: the whole file.
    workingset: u64,
    /// What `places` was computed for, and it.
    cached: (u64, u64),
    places: u64,
    shuffle: Shuffle,
}

impl Offsets {
    pub(super) fn new(place: OffsetSource, workingset: u64) -> Self {
        Self { place, workingset, cached: (0, 0), places: 0, shuffle: Shuffle::new() }
    }

    /// The offset for `len` bytes in the file of `slot`; `None`: by the kernel's position.
    /// An error if the I/O does not fit.
    #[inline]
    pub(super) fn next(&mut self, cx: &mut OpCx<'_>, slot: usize, len: u64) -> Result<Option<u64>, Stop> {
        let nominal = cx.io.slots.get(slot).nominal;
        let offset = match self.place {
            OffsetSource::Sequential => {
                cx.io.last_offset = cx.io.slots.get(slot).handle.map_or(0, |handle| handle.position);
                return Ok(None);
            }
            OffsetSource::Random { align } | OffsetSource::Partial { align } => {
                if self.cached != (nominal, len) {
                    self.fit(cx, nominal, len, align)?;
                }
                let step = if align > 0 { align } else { len };
                random::below(&mut cx.rng, self.places) * step
            }
            OffsetSource::Shuffle { align } => {
                if self.cached != (nominal, len) {
                    self.fit(cx, nominal, len, align)?;
                }
                let step = if align > 0 { align } else { len };
                self.shuffle.draw(&mut cx.rng, self.places) * step
            }
            _ => self.walk(cx, slot, len, nominal),
        };
        cx.io.last_offset = offset;
        Ok(Some(offset))
    }

    /// How many places there are for an I/O: the last one included, unlike in Filebench. It need not fit a file that is smaller
    /// than the working set: a read comes to its end, and a write makes it longer.
    fn fit(&mut self, cx: &mut OpCx<'_>, nominal: u64, len: u64, align: u64) -> Result<(), Stop> {
        let bound = if self.workingset > 0 { self.workingset } else { nominal };
        if let OffsetSource::Partial { .. } = self.place {
            self.places = bound.min(nominal).div_ceil(if align > 0 { align } else { len }.max(1)).max(1);
            self.cached = (nominal, len);
            return Ok(());
        }
        if len > bound || len == 0 {
            let of = if self.workingset > 0 { "working set" } else { "file" };
            let what = format!("an I/O of {len} bytes at random does not fit a {of} of {bound} bytes");
            return Err(cx.misuse(what, "make `iosize` smaller, or the files (or `workingset`) larger"));
        }
        let room = bound.min(nominal).max(len);
        self.places = (room - len).checked_div(align).map_or(room / len, |last| last + 1);
        self.cached = (nominal, len);
        Ok(())
    }

    fn walk(&self, cx: &mut OpCx<'_>, slot: usize, len: u64, nominal: u64) -> u64 {
        let last = cx.io.last_offset;
        let end = if self.workingset > 0 { self.workingset.min(nominal) } else { nominal };
        let Some(handle) = cx.handle(slot) else { return 0 };
        match self.place {
            OffsetSource::Same => last,
            OffsetSource::Backward => {
                if handle.cursor < len {
                    handle.cursor = end.max(len);
                }
                handle.cursor -= len;
                handle.cursor
            }
            OffsetSource::Stride(gap) => {
                let step = len + gap;
                let at = if handle.cursor + len <= end {
                    handle.cursor
                } else {
                    // One I/O later than the lap that is over; after the last such lap from the start.
                    let start = handle.cursor % step.max(1) + len;
                    if start >= step || start + len > end { 0 } else { start }
                };
                handle.cursor = at + step;
                at
            }
            OffsetSource::Sequential
            | OffsetSource::Random { .. }
            | OffsetSource::Partial { .. }
            | OffsetSource::Shuffle { .. } => 0,
        }
    }
}

/// `workingset`: drawn once for each thread, as in Filebench.
pub(super) fn workingset(args: &Args<'_>) -> Result<Quantity, Diagnostic> {
    args.quantity_or("workingset", 0)
}

/// The largest I/O that a quantity may ask for, where it is known.
pub(super) fn largest(iosize: &Quantity) -> u64 {
    iosize.max_hint().unwrap_or_else(|| (iosize.mean() * 4.0) as u64)
}

/// What the sizes and offsets of a flowop's I/O are made of.
pub(super) fn units(iosize: &Quantity, place: &OffsetSource) -> Vec<Unit> {
    let mut units = vec![Unit::Attribute("iosize", iosize.clone())];
    units.extend(match place {
        OffsetSource::Random { align: n @ 1.. }
        | OffsetSource::Partial { align: n @ 1.. }
        | OffsetSource::Shuffle { align: n @ 1.. } => Some(Unit::Attribute("align", (*n).into())),
        OffsetSource::Stride(n @ 1..) => Some(Unit::Attribute("stride", (*n).into())),
        OffsetSource::Backward => Some(Unit::FileSize),
        _ => None,
    });
    units
}

/// The size that every I/O has, or 0 if it is drawn.
pub(super) fn exactly(iosize: &Quantity) -> u64 {
    if let Quantity::Const(n) = iosize { *n } else { 0 }
}

/// Where one I/O goes: slot, offset and length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    pub(super) slot: usize,
    /// `None`: on from the kernel's own position.
    pub(super) offset: Option<u64>,
    pub(super) len: u64,
}

/// What a flowop that reads or writes aims at, with the state of one thread.
#[derive(Clone, Debug)]
pub(super) struct TransferTarget {
    pub(super) file: FileUse,
    pub(super) iosize: Quantity,
    pub(super) offsets: Offsets,
    pub(super) known: Option<KnownSize>,
}

/// What the last aim found out, for as long as the slot holds a file of that set and size: random I/O of one size in one
/// slot then needs no more than a draw.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownSize {
    pub(super) slot: usize,
    pub(super) len: u64,
    /// The open file, for calls that leave it as it is.
    pub(super) handle: Handle,
    /// That of the slots when this was looked at last.
    version: u64,
    set: usize,
    nominal: u64,
    step: u64,
    places: u64,
}

impl KnownSize {
    /// The offset of the next I/O, if the slot still holds such a file.
    #[inline]
    pub(super) fn aim(&mut self, slots: &mut Slots, rng: &mut Rng) -> Option<u64> {
        if slots.version() != self.version {
            self.look_again(slots)?;
        }
        slots.set_last(self.slot);
        Some(random::below(rng, self.places) * self.step)
    }

    #[inline(never)]
    fn look_again(&mut self, slots: &Slots) -> Option<()> {
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
        Self { file, iosize, offsets, known: None }
    }

    /// The next I/O; opens the file if need be.
    #[inline]
    pub(super) fn aim(&mut self, cx: &mut OpCx<'_>) -> Result<Aim, Stop> {
        if let Some(known) = &mut self.known
            && let Some(offset) = known.aim(&mut cx.io.slots, &mut cx.rng)
        {
            cx.io.last_offset = offset;
            return Ok(Aim { slot: known.slot, offset: Some(offset), len: known.len });
        }
        self.look(cx)
    }

    #[inline(never)]
    fn look(&mut self, cx: &mut OpCx<'_>) -> Result<Aim, Stop> {
        let slot = self.file.ensure(cx)?;
        let len = self.iosize.draw(&mut cx.rng);
        let offset = self.offsets.next(cx, slot, len)?;
        let state = cx.io.slots.get(slot);
        if let (OffsetSource::Random { align }, Quantity::Const(_), 0, Some(file), Some(handle)) =
            (&self.offsets.place, &self.iosize, self.file.slot.rotate, state.file, state.handle)
        {
            self.known = Some(KnownSize {
                slot,
                handle,
                version: cx.io.slots.version(),
                set: file.set,
                nominal: state.nominal,
                len,
                step: if *align > 0 { *align } else { len },
                places: self.offsets.places,
            });
        }
        let len = match (&self.offsets.place, offset) {
            (OffsetSource::Partial { .. }, Some(offset)) => len.min(state.nominal.saturating_sub(offset).max(1)),
            _ => len,
        };
        Ok(Aim { slot, offset, len })
    }
}
