//! What each thread did, call after call, in the words of the language.

use crate::action::{ActionTarget, Before, CallAction};
use crate::descriptors::CopiedDescriptors;
use crate::files::Files;
use crate::own_looks::{CallsBefore, LookAgain, OwnLooks, opens_place};
use crate::sets::LearnedSets;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use wml_trace::{CallArg, CallClass, PathId, TraceEvent, TracedCall, flags as numbers};

/// No slot: the file stays open, or the call is on a name.
pub(crate) const NO_SLOT: u8 = 0;
/// The offset of a look at a file that was looked at shortly before.
const AGAIN: u64 = u64::MAX - 1;
/// The most files that a thread has open in slots.
const MOST_SLOTS: usize = 250;

/// What a call does, and on which file of the script. Calls alike have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallSymbol {
    pub(crate) action: CallAction,
    pub(crate) set: u16,
    /// The set to which a rename goes; of a copy, the slot of its source.
    pub(crate) to: u16,
    pub(crate) slot: u8,
}

impl CallSymbol {
    /// The same in any slot.
    pub(crate) fn anywhere(self) -> Self {
        Self { slot: NO_SLOT, ..self }
    }
}

/// Where a transfer is.
pub(crate) mod bits {
    /// At the end of the one before on the file, or at its start.
    pub(crate) const NEXT: u8 = 1;
    /// At the end of the file.
    pub(crate) const APPEND: u8 = 2;
    /// It ends where the file ends.
    pub(crate) const TO_END: u8 = 4;
    /// At the start of the file.
    pub(crate) const START: u8 = 8;
    /// The file was opened with `O_DIRECT`, or the open asks for it.
    pub(crate) const DIRECT: u8 = 16;
    /// Likewise `O_SYNC` or `O_DSYNC`.
    pub(crate) const SYNC: u8 = 32;
    /// A read that finds the end of the file.
    pub(crate) const END: u8 = 64;
    /// A rename that replaces a file.
    pub(crate) const OVER: u8 = 128;
}

/// A call of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallStep {
    /// Nanoseconds since the beginning of the trace.
    pub(crate) start: u64,
    /// `u64::MAX` if it has none.
    pub(crate) offset: u64,
    /// Nanoseconds.
    pub(crate) duration: u32,
    /// Time since the last call of the thread that it ran, and that it slept without waiting for another traced thread.
    pub(crate) running: u32,
    pub(crate) asleep: u32,
    /// Bytes moved; of a read, those asked for.
    pub(crate) bytes: u32,
    pub(crate) symbol: u16,
    pub(crate) bits: u8,
}

impl CallStep {
    /// No call, but a halt of a thread that waits for others.
    pub(crate) fn halt(start: u64, symbol: u16) -> Self {
        Self { start, offset: u64::MAX, duration: 0, running: 0, asleep: 0, bytes: 0, symbol, bits: 0 }
    }

    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.duration))
    }
}

/// A part of a thread's calls.
pub(crate) struct ThreadPart {
    pub(crate) thread: u32,
    pub(crate) steps: Vec<CallStep>,
}

impl ThreadPart {
    /// When it begins and ends.
    pub(crate) fn span(&self) -> (u64, u64) {
        let begin = self.steps.first().map_or(0, |step| step.start);
        (begin, self.steps.last().map_or(0, CallStep::end))
    }
}

/// A sleep that another traced thread ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AwaitedSleep {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) ended_by: u32,
}

/// The calls of a thread.
#[derive(Debug, Default)]
pub(crate) struct CallStream {
    pub(crate) process: u32,
    pub(crate) steps: Vec<CallStep>,
    pub(crate) sleeps: Vec<AwaitedSleep>,
}

/// An open file of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct OpenSlot {
    path: Option<PathId>,
    /// The name that it was given while it is open: calls on the descriptor keep the old one.
    renamed: Option<PathId>,
    is_open: bool,
    next: u64,
    flags: i32,
    /// The last write, by its number in the stream: the file ends there if nothing follows.
    last_write: Option<usize>,
}

#[derive(Debug, Default)]
struct ThreadState {
    stream: CallStream,
    slots: Vec<OpenSlot>,
    last_end: Option<u64>,
    /// Sleep that another traced thread ended.
    awaited: u64,
    /// Time that it ran and slept since the last call of the stream.
    pending: (u64, u64),
    before: CallsBefore,
    /// The directories that are being listed, and whose end was not reached yet: a walk lists those below meanwhile.
    listing: Vec<PathId>,
}

impl ThreadState {
    /// Takes note of the process of a call. What another one had open before is closed.
    fn belongs_to(&mut self, process: u32) {
        if std::mem::replace(&mut self.stream.process, process) != process {
            self.slots.iter_mut().for_each(|slot| slot.is_open = false);
            self.listing.clear();
            self.last_end = None;
        }
    }

    /// Counts the time before a call.
    fn time_before(&mut self, call: &TracedCall) {
        let gap = self.last_end.map_or(0, |end| call.start.saturating_sub(end));
        self.last_end = Some(call.end());
        let awaited = std::mem::take(&mut self.awaited);
        let Some(between) = call.between else { return };
        let running = gap.saturating_sub(between.runnable).saturating_sub(between.blocked);
        self.pending.0 = self.pending.0.saturating_add(running);
        // A thread of a pool slept while others made calls.
        let blocked = between.blocked.min(gap);
        self.pending.1 = self.pending.1.saturating_add(blocked.saturating_sub(awaited));
    }

    /// Takes the last steps away: the next call makes them by itself.
    fn take_back(&mut self, steps: usize) {
        for step in self.stream.steps.drain(self.stream.steps.len().saturating_sub(steps)..) {
            self.pending.0 = self.pending.0.saturating_add(u64::from(step.running));
            self.pending.1 = self.pending.1.saturating_add(u64::from(step.asleep));
        }
    }

    /// True if a call reads more of a directory that is being listed.
    fn goes_on_listing(&mut self, action: CallAction, path: PathId, result: i64) -> bool {
        match action {
            CallAction::ListDir | CallAction::CloseDir => {
                let lists = action == CallAction::ListDir;
                let begun = self.listing.iter().rposition(|listed| *listed == path);
                match begun {
                    Some(n) if !lists || result <= 0 => drop(self.listing.remove(n)),
                    None if lists && result > 0 => self.listing.push(path),
                    _ => {}
                }
                lists && begun.is_some()
            }
            _ => false,
        }
    }

    fn open_slot(&mut self, path: PathId, flags: i32) -> u8 {
        let slot = OpenSlot { path: Some(path), is_open: true, flags, ..OpenSlot::default() };
        let free = self.slots.iter().position(|slot| !slot.is_open);
        let n = match free {
            Some(n) => {
                self.slots[n] = slot;
                n
            }
            None if self.slots.len() < MOST_SLOTS => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
            None => return NO_SLOT,
        };
        n as u8 + 1
    }

    /// The slot in which a file is open, else the one in which it was last.
    fn slot(&self, path: PathId) -> Option<u8> {
        let of = |is_open| {
            let is_it = |slot: &OpenSlot| [slot.path, slot.renamed].contains(&Some(path)) && slot.is_open == is_open;
            self.slots.iter().rposition(is_it)
        };
        of(true).or_else(|| of(false)).map(|n| n as u8 + 1)
    }
}

/// All threads' calls.
#[derive(Debug, Default)]
pub(crate) struct CallStreams {
    pub(crate) threads: BTreeMap<u32, CallStream>,
    pub(crate) symbols: Vec<CallSymbol>,
    /// Calls that no flowop makes, by their names: how many, and their bytes.
    pub(crate) not_modelled: BTreeMap<&'static str, (u64, u64)>,
    pub(crate) calls: u64,
    /// Calls that flowops make by themselves.
    pub(crate) implied: u64,
    /// False if the recorder did not see how threads spent the time between calls.
    pub(crate) knows_time: bool,
    /// Files that were made (1) or removed (−1) of each set, with the time.
    pub(crate) changes: Vec<(u64, u16, i8)>,
    /// How often files of each set are written from their start.
    pub(crate) starts: BTreeMap<u16, u64>,
    /// The length of the first write to what a file of each set has already.
    pub(crate) rewrites: BTreeMap<u16, u64>,
    /// Of each set whose files stay open, the files that threads have open: one for each thread and file.
    pub(crate) lasting: BTreeSet<(u16, u32, PathId)>,
}

/// Takes the calls of a trace.
pub(crate) struct StreamBuilder<'a> {
    files: &'a mut Files,
    sets: &'a LearnedSets,
    threads: HashMap<u32, ThreadState>,
    numbers: HashMap<CallSymbol, u16>,
    /// Where the next sequential call on a file that stays open begins.
    next: HashMap<PathId, u64>,
    looks: OwnLooks,
    copies: CopiedDescriptors,
    streams: CallStreams,
}

impl<'a> StreamBuilder<'a> {
    pub(crate) fn new(files: &'a mut Files, sets: &'a LearnedSets) -> Self {
        Self {
            files,
            sets,
            threads: HashMap::new(),
            numbers: HashMap::new(),
            next: HashMap::new(),
            looks: OwnLooks::default(),
            copies: CopiedDescriptors::default(),
            streams: CallStreams::default(),
        }
    }

    pub(crate) fn done(mut self) -> CallStreams {
        let (looks, symbols, mut implied) = (&self.looks, &self.streams.symbols, 0);
        let own = |step: &CallStep| {
            let symbol = symbols[usize::from(step.symbol)];
            step.offset == AGAIN && looks.are_own(symbol.set, symbol.action)
        };
        let mut done = |mut stream: CallStream| {
            let (mut running, mut asleep) = (0u32, 0u32);
            stream.steps.retain_mut(|step| {
                step.running = step.running.saturating_add(std::mem::take(&mut running));
                step.asleep = step.asleep.saturating_add(std::mem::take(&mut asleep));
                if own(step) {
                    implied += 1;
                    (running, asleep) = (step.running, step.asleep);
                    return false;
                }
                step.offset = if step.offset == AGAIN { u64::MAX } else { step.offset };
                true
            });
            stream
        };
        let threads = self.threads.into_iter().map(|(thread, all)| (thread, done(all.stream))).collect();
        self.streams.threads = threads;
        self.streams.implied += implied;
        self.streams
    }

    pub(crate) fn add(&mut self, event: &TraceEvent) {
        match event {
            TraceEvent::Wait(wait) => {
                let Some(ended_by) = wait.woken_by else { return };
                let thread = self.threads.entry(wait.thread).or_default();
                thread.awaited = thread.awaited.saturating_add(wait.duration);
                let end = wait.start.saturating_add(wait.duration);
                thread.stream.sleeps.push(AwaitedSleep { start: wait.start, end, ended_by });
            }
            TraceEvent::Call(call) => self.call(call),
            _ => {}
        }
    }

    fn symbol(&mut self, symbol: CallSymbol) -> u16 {
        let all = &mut self.streams.symbols;
        *self.numbers.entry(symbol).or_insert_with(|| {
            // More than a trace of a program has: the last one stands for the others.
            if all.len() < usize::from(u16::MAX) - 1 {
                all.push(symbol);
            }
            (all.len() - 1) as u16
        })
    }

    /// Notes which files came and went.
    fn note_changes(&mut self, call: &TracedCall, before: Before) {
        let Some(path) = call.path else { return };
        let (sets, time) = (self.sets, call.end());
        let changed = |path: PathId, existed: bool, exists: bool| {
            let change = i8::from(exists) - i8::from(existed);
            sets.of(path).filter(|_| change != 0).map(|set| (time, set, change))
        };
        let first = changed(path, before.exists, self.files.get(path).exists);
        let second = call.second_path.and_then(|path| changed(path, before.second_exists, self.files.get(path).exists));
        self.streams.changes.extend(first.into_iter().chain(second).filter(|_| !before.is_dir));
    }

    /// The slots of the files between which a call copies, if both are open in some.
    fn copied(&self, call: &TracedCall) -> Option<(u8, u8)> {
        let thread = self.threads.get(&call.thread)?;
        let open = |path: Option<PathId>| thread.slot(path?).filter(|n| thread.slots[usize::from(*n) - 1].is_open);
        let (from, to) = (open(call.path)?, open(call.second_path)?);
        (from != to).then_some((from, to))
    }

    fn call(&mut self, call: &TracedCall) {
        self.streams.calls += 1;
        self.threads.entry(call.thread).or_default().belongs_to(call.process);
        let before = self.files.before(call);
        self.files.apply(call, before);
        self.note_changes(call, before);
        if self.copies.has(call) {
            self.streams.implied += 1;
            return self.threads.entry(call.thread).or_default().time_before(call);
        }
        let action = CallAction::of(call, before);
        // A copy is between two open files.
        let copied = (action == Some(CallAction::CopyRange)).then(|| self.copied(call));
        let action = action.filter(|_| copied.is_none_or(|slots| slots.is_some()));
        // A call by name is none on an open file.
        let by_name = call.kind.get().arg(CallArg::Fd).is_none();
        let action = action.filter(|action| !by_name || action.row().names != ActionTarget::Slot);
        let known = call.path.zip(action);
        let Some((path, action)) = known else {
            let (calls, bytes) = self.streams.not_modelled.entry(call.kind.get().name).or_default();
            *calls += 1;
            // One that failed has moved none.
            let moved = call.bytes().or(call.wanted).filter(|_| call.result >= 0);
            *bytes = bytes.saturating_add(moved.unwrap_or(0));
            self.threads.entry(call.thread).or_default().time_before(call);
            return;
        };
        let set = self.sets.of(path).unwrap_or(0);
        let second = call.second_path.and_then(|second| self.sets.of(second)).unwrap_or(set);
        let (set, to) = match copied.flatten() {
            Some((from, _)) => (second, u16::from(from)),
            None => (set, second),
        };
        let stays = self.sets.sets[usize::from(set)].stays_open && !before.is_dir;
        let size = self.files.get(path).most_size;
        let class = call.kind.get().class;
        let flags = call.flags.unwrap_or(0) as i32;
        let names = action.row().names;
        let thread = self.threads.entry(call.thread).or_default();
        let found = thread.slot(path);
        let mut file_flags = flags;
        let slot = match (names, action) {
            (ActionTarget::Opens, action) if action.opens() => {
                if stays || opens_place(action, call) {
                    NO_SLOT
                } else {
                    thread.open_slot(path, flags)
                }
            }
            (ActionTarget::Opens | ActionTarget::Set, _) => NO_SLOT,
            (ActionTarget::Slot, CallAction::CopyRange) => copied.flatten().map_or(NO_SLOT, |(_, to)| to),
            (ActionTarget::Slot | ActionTarget::DirSlot, _) => {
                let is_open = |n: &u8| thread.slots[usize::from(*n) - 1].is_open;
                found.filter(|n| !stays || is_open(n)).unwrap_or(NO_SLOT)
            }
            (ActionTarget::Path, _) => found.filter(|n| thread.slots[usize::from(*n) - 1].is_open).unwrap_or(NO_SLOT),
            (ActionTarget::OldSlot, _) => found.unwrap_or(NO_SLOT),
        };
        // The open of a file that stays open is made by the first call on it.
        let is_dropped = stays
            && slot == NO_SLOT
            && matches!(action, CallAction::OpenFile | CallAction::CreateFile | CallAction::CloseFile);
        let own = slot.checked_sub(1).map(usize::from);
        thread.before.begin(call.start);
        let is_open = own.is_some_and(|own| thread.slots[own].is_open);
        let looked = self.looks.before_change(action, call, &thread.before);
        let again = self.looks.again(set, action, call, &thread.before, looked);
        let is_implied = self.looks.is_on_place(action, call, is_open)
            || thread.goes_on_listing(action, path, call.result)
            || self.looks.is_behind_open(action, call, &thread.before);
        thread.take_back(looked);
        if let Some(last) = thread.stream.steps.last_mut().filter(|_| again == LookAgain::Last) {
            last.offset = AGAIN;
        }
        self.streams.implied += looked as u64 + u64::from(is_implied);
        thread.before.add(action, path);
        if let Some(own) = own {
            file_flags = thread.slots[own].flags;
            if matches!(action, CallAction::CloseFile | CallAction::CloseDir) {
                thread.slots[own].is_open = false;
                let OpenSlot { next, last_write, .. } = thread.slots[own];
                let ended = last_write.filter(|_| call.size.is_none_or(|size| size == next));
                ended.into_iter().for_each(|n| thread.stream.steps[n].bits |= bits::TO_END);
            }
            // The slot goes on under the new name.
            if action == CallAction::Rename {
                thread.slots[own].renamed = call.second_path;
            }
        }
        let next = match own {
            Some(own) => &mut thread.slots[own].next,
            None => self.next.entry(path).or_default(),
        };
        let mut bits = 0;
        if let Some(offset) = call.offset {
            let end = offset.saturating_add(call.bytes().unwrap_or(0));
            let mut has = |is: bool, bit: u8| bits |= if is { bit } else { 0 };
            has(offset == *next, bits::NEXT);
            has(offset == 0, bits::START);
            has(call.size == Some(offset), bits::APPEND);
            has(class == CallClass::Read && end >= call.size.unwrap_or(size), bits::TO_END);
            has(action == CallAction::ReadEnd, bits::END);
            if class.moves_data() && action != CallAction::ReadEnd {
                *next = end;
            } else if matches!(action, CallAction::SeekSet | CallAction::SeekCurrent | CallAction::SeekEnd)
                && call.result >= 0
            {
                *next = call.result as u64;
            }
        }
        if class == CallClass::Write && bits & bits::START != 0 {
            *self.streams.starts.entry(set).or_default() += 1;
        }
        let changes_data = call.offset.zip(call.size).is_some_and(|(offset, size)| offset < size);
        if class == CallClass::Write
            && changes_data
            && let Some(bytes) = call.bytes()
        {
            self.streams.rewrites.entry(set).or_insert(bytes);
        }
        if before.second_exists {
            bits |= bits::OVER;
        }
        if file_flags & numbers::O_DIRECT != 0 {
            bits |= bits::DIRECT;
        }
        if file_flags & numbers::O_DSYNC != 0 {
            bits |= bits::SYNC;
        }
        self.streams.knows_time |= call.between.is_some();
        thread.time_before(call);
        let moved = match action {
            CallAction::Read | CallAction::ReadVec | CallAction::ReadEnd => call.wanted.or(call.bytes()),
            CallAction::Truncate
            | CallAction::SeekSet
            | CallAction::Advise
            | CallAction::SyncRange
            | CallAction::Allocate
            | CallAction::Punch => call.wanted,
            _ => call.bytes().or(call.wanted),
        };
        let short = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        if is_dropped || is_implied {
            return;
        }
        // The close of what another process opened, or what was open before.
        if matches!(action, CallAction::CloseFile | CallAction::CloseDir) && !is_open {
            self.streams.not_modelled.entry("close of what was open before").or_default().0 += 1;
            return;
        }
        let (running, asleep) = std::mem::take(&mut thread.pending);
        let offset = match action {
            CallAction::SeekSet => u64::try_from(call.result).unwrap_or(0),
            _ if again == LookAgain::This => AGAIN,
            _ => call.offset.map_or(u64::MAX, |offset| offset.min(AGAIN - 1)),
        };
        let step = CallStep {
            start: call.start,
            offset,
            duration: short(call.duration),
            running: short(running),
            asleep: short(asleep),
            bytes: short(moved.unwrap_or(0)),
            symbol: 0,
            bits,
        };
        if stays && names == ActionTarget::Slot {
            self.streams.lasting.insert((set, call.thread, path));
        }
        // That a read finds the end is part of the reading.
        let action = if action == CallAction::ReadEnd { CallAction::Read } else { action };
        let symbol = self.symbol(CallSymbol { action, set, to, slot });
        let thread = self.threads.entry(call.thread).or_default();
        if let Some(own) = own.filter(|_| class == CallClass::Write) {
            thread.slots[own].last_write = Some(thread.stream.steps.len());
        }
        thread.stream.steps.push(CallStep { symbol, ..step });
        join_directory_job(&mut thread.stream.steps, &mut self.streams.symbols, &mut self.numbers);
    }
}

/// A directory that is opened, synced or listed, and closed is one flowop.
fn join_directory_job(
    steps: &mut Vec<CallStep>,
    symbols: &mut Vec<CallSymbol>,
    numbers: &mut HashMap<CallSymbol, u16>,
) {
    let [.., open, sync, close] = steps.as_slice() else { return };
    let of = |step: &CallStep| symbols[usize::from(step.symbol)];
    let (first, middle, last) = (of(open), of(sync), of(close));
    let is_it = first.action == CallAction::OpenDir
        && matches!(middle.action, CallAction::FsyncDir | CallAction::FdatasyncDir | CallAction::ListDir)
        && last.action == CallAction::CloseDir
        && first.slot == last.slot;
    if !is_it {
        return;
    }
    let joined = CallSymbol { slot: NO_SLOT, ..middle };
    let number = *numbers.entry(joined).or_insert_with(|| {
        symbols.push(joined);
        (symbols.len() - 1) as u16
    });
    let step = CallStep {
        symbol: number,
        duration: open.duration.saturating_add(sync.duration).saturating_add(close.duration),
        running: open.running.saturating_add(sync.running).saturating_add(close.running),
        asleep: open.asleep.saturating_add(sync.asleep).saturating_add(close.asleep),
        ..*open
    };
    steps.truncate(steps.len() - 3);
    steps.push(step);
}
