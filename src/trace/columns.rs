//! A block of events in columns: what is alike stands together, and is written as the difference from what was expected.
//!
//! A value that may be unknown is 0 for unknown, 1 for as expected, and else 2 more than its difference. What is expected is
//! what the same thread or the same file had last in the block.

#![allow(clippy::option_option, reason = "damaged, unknown, or a value")]

use super::call::{InodeId, TimeBetween, TraceEvent, TracedCall, TracedWait};
use super::kind::KindId;
use super::paths::PathId;
use super::varint::{difference, put, sum, take};
use std::collections::HashMap;

/// The most events of a block.
pub(crate) const BLOCK_EVENTS: usize = 1 << 16;
/// The unit of times, in nanoseconds.
pub(crate) const UNIT_NS: u64 = 100;

/// The columns, by what is in them. `docs/trace-format.md` says the same in words.
#[derive(Clone, Copy)]
enum ColumnId {
    Event,
    Thread,
    NewThread,
    Gap,
    Duration,
    Kind,
    Wanted,
    Result,
    File,
    NewFile,
    Path,
    SecondPath,
    Offset,
    Size,
    Flags,
    StatSize,
    Mode,
    Between,
    Process,
    // Older traces end here.
    Runnable,
    Descriptor,
}

const COLUMNS: usize = ColumnId::Descriptor as usize + 1;

/// What a file had last.
#[derive(Clone, Copy, Default)]
struct FileMemory {
    path: Option<u32>,
    end: u64,
    size: u64,
    flags: u64,
    mode: u64,
    descriptor: u64,
}

/// What both sides know of the events before.
#[derive(Default)]
struct BlockMemory {
    /// Threads with their processes and the ends of their last events.
    threads: Vec<(u32, u32, u64)>,
    thread_numbers: HashMap<(u32, u32), usize>,
    /// The last number of each thread, for events that need no process.
    last_numbers: HashMap<u32, usize>,
    files: Vec<(InodeId, FileMemory)>,
    file_numbers: HashMap<InodeId, usize>,
    /// The files without an identity, by their paths.
    unnamed: HashMap<u32, FileMemory>,
    no_file: FileMemory,
    last_end: u64,
    last_path: u32,
    /// The wanted size of the last call of each kind.
    wanted: HashMap<u128, u64>,
}

impl BlockMemory {
    fn file(&mut self, number: Option<usize>, path: Option<u32>) -> &mut FileMemory {
        match (number, path) {
            (Some(n), _) => &mut self.files[n].1,
            (None, Some(path)) => self.unnamed.entry(path).or_default(),
            (None, None) => &mut self.no_file,
        }
    }

    /// Takes what a call told.
    fn learn(&mut self, call: &TracedCall, kind: u128, number: Option<usize>) {
        let path = call.path.map(|path| path.0);
        self.last_path = path.unwrap_or(self.last_path);
        if let Some(wanted) = call.wanted {
            self.wanted.insert(kind, wanted);
        }
        let memory = self.file(number, path);
        memory.path = path.or(memory.path);
        let bytes = call.bytes().unwrap_or(0);
        if let Some(offset) = call.offset {
            memory.end = offset.wrapping_add(bytes);
        }
        memory.size = call.size.unwrap_or(memory.size);
        if call.kind.get().class == super::kind::CallClass::Write && bytes > 0 {
            memory.size = memory.size.max(memory.end);
        }
        memory.size = call.stat_size.unwrap_or(memory.size);
        memory.flags = call.flags.map_or(memory.flags, u64::from);
        memory.mode = call.mode.map_or(memory.mode, u64::from);
        let opened = u32::try_from(call.result).ok().filter(|_| call.kind.get().class == super::kind::CallClass::Open);
        memory.descriptor = call.descriptor.or(opened).map_or(memory.descriptor, u64::from);
    }
}

fn put_known(out: &mut Vec<u8>, value: Option<u64>, expected: u64) {
    match value {
        None => out.push(0),
        Some(value) if value == expected => out.push(1),
        Some(value) => put(out, difference(value, expected) + 2),
    }
}

fn take_known(bytes: &mut &[u8], expected: u64) -> Option<Option<u64>> {
    Some(match take(bytes)? {
        0 => None,
        1 => Some(expected),
        n => Some(sum(expected, n - 2)),
    })
}

/// The parts of a block, which is these bytes together. Paths are those of the file.
pub(crate) fn encode(events: &[TraceEvent]) -> Vec<Vec<u8>> {
    let mut columns: [Vec<u8>; COLUMNS] = Default::default();
    let mut memory = BlockMemory::default();
    for event in events {
        let out = |columns: &mut [Vec<u8>; COLUMNS], id: ColumnId, n: u128| put(&mut columns[id as usize], n);
        let (tag, thread, process) = match event {
            TraceEvent::Call(call) => (0, call.thread, Some(call.process)),
            TraceEvent::Wait(wait) => (1, wait.thread, None),
            TraceEvent::Fork { parent, .. } => (2, *parent, None),
            TraceEvent::Exec { process, .. } => (3, *process, Some(*process)),
            TraceEvent::Exit { thread, .. } => (4, *thread, None),
        };
        out(&mut columns, ColumnId::Event, tag);
        let known = memory.threads.len();
        let number = match process {
            Some(process) => *memory.thread_numbers.entry((thread, process)).or_insert(known),
            None => memory.last_numbers.get(&thread).copied().unwrap_or(known),
        };
        memory.last_numbers.insert(thread, number);
        if number == known {
            let process = process.unwrap_or(0);
            memory.threads.push((thread, process, memory.last_end));
            out(&mut columns, ColumnId::NewThread, u128::from(thread));
            out(&mut columns, ColumnId::NewThread, u128::from(process));
        }
        out(&mut columns, ColumnId::Thread, number as u128);
        let (start, end) = match event {
            TraceEvent::Call(call) => (call.start / UNIT_NS, call.end() / UNIT_NS),
            TraceEvent::Wait(wait) => (wait.start / UNIT_NS, event.time() / UNIT_NS),
            _ => (event.time() / UNIT_NS, event.time() / UNIT_NS),
        };
        out(&mut columns, ColumnId::Gap, difference(start, memory.threads[number].2));
        memory.threads[number].2 = end;
        memory.last_end = end;
        match event {
            TraceEvent::Call(call) => {
                out(&mut columns, ColumnId::Duration, u128::from(end.saturating_sub(start)));
                encode_call(call, &mut columns, &mut memory);
            }
            TraceEvent::Wait(wait) => {
                out(&mut columns, ColumnId::Duration, u128::from(end.saturating_sub(start)));
                put_known(&mut columns[ColumnId::Process as usize], wait.woken_by.map(u64::from), 0);
            }
            TraceEvent::Fork { thread, process, .. } => {
                out(&mut columns, ColumnId::Process, u128::from(*thread));
                out(&mut columns, ColumnId::Process, u128::from(*process));
            }
            TraceEvent::Exec { path, .. } => {
                put_known(&mut columns[ColumnId::Process as usize], path.map(|path| u64::from(path.0)), 0);
            }
            TraceEvent::Exit { .. } => {}
        }
    }
    let mut parts = vec![Vec::new()];
    put(&mut parts[0], events.len() as u128);
    for column in columns {
        let mut length = Vec::new();
        put(&mut length, column.len() as u128);
        parts.push([length, column].concat());
    }
    parts
}

fn encode_call(call: &TracedCall, columns: &mut [Vec<u8>; COLUMNS], memory: &mut BlockMemory) {
    let mut known = |id: ColumnId, value, expected| put_known(&mut columns[id as usize], value, expected);
    let kind = u128::from(call.kind.0);
    known(ColumnId::Wanted, call.wanted, memory.wanted.get(&kind).copied().unwrap_or(0));
    let mut new_file = None;
    let number = call.file.map(|id| {
        let next = memory.files.len();
        let number = *memory.file_numbers.entry(id).or_insert(next);
        if number == next {
            new_file = Some((id, memory.files.last().map(|(last, _)| *last)));
            memory.files.push((id, FileMemory::default()));
        }
        number
    });
    known(ColumnId::File, number.map(|n| n as u64), 0);
    let path = call.path.map(|path| path.0);
    let expected = number.and_then(|n| memory.files[n].1.path).unwrap_or(memory.last_path);
    known(ColumnId::Path, path.map(u64::from), u64::from(expected));
    known(ColumnId::SecondPath, call.second_path.map(|path| u64::from(path.0)), u64::from(memory.last_path));
    let state = *memory.file(number, path);
    known(ColumnId::Offset, call.offset, state.end);
    known(ColumnId::Size, call.size, state.size);
    known(ColumnId::Flags, call.flags.map(u64::from), state.flags);
    known(ColumnId::StatSize, call.stat_size, state.size);
    known(ColumnId::Mode, call.mode.map(u64::from), state.mode);
    known(ColumnId::Between, call.between.map(|between| between.runnable / UNIT_NS), 0);
    if let Some(between) = call.between {
        known(ColumnId::Between, Some(between.blocked / UNIT_NS), 0);
    }
    known(ColumnId::Runnable, call.runnable.map(|runnable| runnable / UNIT_NS), 0);
    known(ColumnId::Descriptor, call.descriptor.map(u64::from), state.descriptor);
    put(&mut columns[ColumnId::Kind as usize], kind);
    let moved = call.wanted.filter(|_| call.kind.get().class.moves_data()).unwrap_or(0);
    put(&mut columns[ColumnId::Result as usize], difference(call.result as u64, moved));
    if let Some((id, last)) = new_file {
        let out = &mut columns[ColumnId::NewFile as usize];
        put(out, difference(id.device, last.map_or(0, |last| last.device)));
        put(out, difference(id.inode, last.map_or(0, |last| last.inode)));
        put_known(out, id.generation.map(u64::from), 0);
    }
    memory.learn(call, kind, number);
}

/// The columns of a block that is read.
struct BlockColumns<'a> {
    columns: [&'a [u8]; COLUMNS],
    has: [bool; COLUMNS],
}

impl BlockColumns<'_> {
    fn take(&mut self, id: ColumnId) -> Option<u128> {
        take(&mut self.columns[id as usize])
    }

    fn number(&mut self, id: ColumnId) -> Option<u64> {
        u64::try_from(self.take(id)?).ok()
    }

    fn small(&mut self, id: ColumnId) -> Option<u32> {
        u32::try_from(self.take(id)?).ok()
    }

    fn known(&mut self, id: ColumnId, expected: u64) -> Option<Option<u64>> {
        take_known(&mut self.columns[id as usize], expected)
    }

    fn known_small(&mut self, id: ColumnId, expected: u64) -> Option<Option<u32>> {
        self.known(id, expected)?.map_or(Some(None), |n| u32::try_from(n).ok().map(Some))
    }

    /// A path, which must be one of the table.
    fn path(&mut self, id: ColumnId, expected: u32, paths: usize) -> Option<Option<PathId>> {
        let path = self.known_small(id, u64::from(expected))?;
        path.is_none_or(|path| (path as usize) < paths).then_some(path.map(PathId))
    }
}

/// The events of a block; `None` if it is damaged. `kinds` are the kinds of calls by their numbers in the file, and `paths` is
/// how many paths there are.
pub(crate) fn decode(mut bytes: &[u8], kinds: &[KindId], paths: usize) -> Option<Vec<TraceEvent>> {
    let count = usize::try_from(take(&mut bytes)?).ok().filter(|count| *count <= BLOCK_EVENTS)?;
    let mut columns = BlockColumns { columns: [&[]; COLUMNS], has: [false; COLUMNS] };
    for (n, column) in columns.columns.iter_mut().enumerate() {
        if n >= ColumnId::Runnable as usize && bytes.is_empty() {
            break;
        }
        let length = usize::try_from(take(&mut bytes)?).ok()?;
        (*column, bytes) = bytes.split_at_checked(length)?;
    }
    columns.has = columns.columns.map(|column| !column.is_empty());
    // Each event has a byte at least.
    let mut events = Vec::with_capacity(count.min(columns.columns[0].len()));
    let mut memory = BlockMemory::default();
    for _ in 0..count {
        let tag = columns.take(ColumnId::Event)?;
        let number = usize::try_from(columns.take(ColumnId::Thread)?).ok()?;
        if number == memory.threads.len() {
            let new = (columns.small(ColumnId::NewThread)?, columns.small(ColumnId::NewThread)?);
            memory.threads.push((new.0, new.1, memory.last_end));
        }
        let (thread, process, last) = *memory.threads.get(number)?;
        let start = sum(last, columns.take(ColumnId::Gap)?);
        let duration = if tag < 2 { columns.number(ColumnId::Duration)? } else { 0 };
        let end = start.wrapping_add(duration);
        memory.threads[number].2 = end;
        memory.last_end = end;
        let time = start.saturating_mul(UNIT_NS);
        events.push(match tag {
            0 => {
                let call = TracedCall {
                    start: time,
                    duration: duration.saturating_mul(UNIT_NS),
                    thread,
                    process,
                    ..TracedCall::default()
                };
                TraceEvent::Call(decode_call(call, &mut columns, &mut memory, kinds, paths)?)
            }
            1 => TraceEvent::Wait(TracedWait {
                start: time,
                duration: duration.saturating_mul(UNIT_NS),
                thread,
                woken_by: columns.known_small(ColumnId::Process, 0)?,
            }),
            2 => TraceEvent::Fork {
                time,
                parent: thread,
                thread: columns.small(ColumnId::Process)?,
                process: columns.small(ColumnId::Process)?,
            },
            3 => TraceEvent::Exec { time, process, path: columns.path(ColumnId::Process, 0, paths)? },
            4 => TraceEvent::Exit { time, thread },
            _ => return None,
        });
    }
    Some(events)
}

fn decode_call(
    mut call: TracedCall,
    columns: &mut BlockColumns,
    memory: &mut BlockMemory,
    kinds: &[KindId],
    paths: usize,
) -> Option<TracedCall> {
    let kind = columns.take(ColumnId::Kind)?;
    call.kind = *kinds.get(usize::try_from(kind).ok()?)?;
    call.wanted = columns.known(ColumnId::Wanted, memory.wanted.get(&kind).copied().unwrap_or(0))?;
    let moved = call.wanted.filter(|_| call.kind.get().class.moves_data()).unwrap_or(0);
    call.result = sum(moved, columns.take(ColumnId::Result)?) as i64;
    let number = columns.known(ColumnId::File, 0)?.map(|n| n as usize);
    if number == Some(memory.files.len()) {
        let last = memory.files.last().map(|(last, _)| *last);
        let id = InodeId {
            device: sum(last.map_or(0, |last| last.device), columns.take(ColumnId::NewFile)?),
            inode: sum(last.map_or(0, |last| last.inode), columns.take(ColumnId::NewFile)?),
            generation: columns.known_small(ColumnId::NewFile, 0)?,
        };
        memory.files.push((id, FileMemory::default()));
    }
    let file = match number {
        Some(n) => Some(*memory.files.get(n)?),
        None => None,
    };
    call.file = file.map(|(id, _)| id);
    let expected = file.and_then(|(_, state)| state.path).unwrap_or(memory.last_path);
    call.path = columns.path(ColumnId::Path, expected, paths)?;
    call.second_path = columns.path(ColumnId::SecondPath, memory.last_path, paths)?;
    let state = *memory.file(number, call.path.map(|path| path.0));
    call.offset = columns.known(ColumnId::Offset, state.end)?;
    call.size = columns.known(ColumnId::Size, state.size)?;
    call.flags = columns.known_small(ColumnId::Flags, state.flags)?;
    call.stat_size = columns.known(ColumnId::StatSize, state.size)?;
    call.mode = columns.known_small(ColumnId::Mode, state.mode)?;
    if let Some(runnable) = columns.known(ColumnId::Between, 0)? {
        let blocked = columns.known(ColumnId::Between, 0)??;
        call.between =
            Some(TimeBetween { runnable: runnable.saturating_mul(UNIT_NS), blocked: blocked.saturating_mul(UNIT_NS) });
    }
    if columns.has[ColumnId::Runnable as usize] {
        call.runnable = columns.known(ColumnId::Runnable, 0)?.map(|runnable| runnable.saturating_mul(UNIT_NS));
    }
    if columns.has[ColumnId::Descriptor as usize] {
        call.descriptor = columns.known_small(ColumnId::Descriptor, state.descriptor)?;
    }
    memory.learn(&call, kind, number);
    Some(call)
}
