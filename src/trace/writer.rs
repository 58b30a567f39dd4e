//! Writes a trace. What is written is whole blocks, so that one that is cut short loses only its end.

use super::call::TraceEvent;
use super::columns::{self, BLOCK_EVENTS};
use super::format::{self, TraceEnd, TraceHeader};
use super::paths::{PathId, PathTable};
use super::varint::put;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write};
use std::time::{Duration, Instant};
use wml_text::printable;

/// How many bytes of new paths end a block.
const MOST_NEW_PATHS: u64 = 8 << 20;

/// A path of the tree at the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    pub path: PathId,
    /// Type and permissions, as `st_mode`.
    pub mode: u32,
    pub size: u64,
}

/// Where parts of a trace go: a new part replaces those before.
pub type NextPart<'a> = Box<dyn FnMut() -> io::Result<Box<dyn Write + 'a>> + 'a>;

/// A trace that is written.
pub struct TraceWriter<'a> {
    output: Box<dyn Write + 'a>,
    header: TraceHeader,
    /// Starts a part when the one before has this many bytes.
    parts: Option<(u64, NextPart<'a>)>,
    dropped_parts: u64,
    length: u64,
    /// The bytes of the longest block with its paths.
    longest: u64,
    events: Vec<TraceEvent>,
    /// When the first of these events was received.
    since: Option<Instant>,
    /// The numbers in the file of the paths of the table; 0 for none, as the root needs none.
    numbers: Vec<u32>,
    count: u32,
    new_paths: Vec<u8>,
    salt: RandomState,
    calls: u64,
}

impl<'a> TraceWriter<'a> {
    /// Begins a trace.
    pub fn new(mut output: Box<dyn Write + 'a>, mut header: TraceHeader) -> io::Result<Self> {
        header.kinds = TraceHeader::own_kinds();
        let salt = RandomState::new();
        if header.hashes_names {
            header.command.clear();
            // That the tree below them is in the trace, and where they are in it, is no secret.
            header.under.iter_mut().for_each(|dir| *dir = hashed_path(&salt, dir));
            (header.device, header.mount_options) = (None, None);
        }
        let length = begin(&mut *output, &header)?;
        Ok(Self {
            output,
            header,
            parts: None,
            dropped_parts: 0,
            length,
            longest: 0,
            events: Vec::new(),
            since: None,
            numbers: Vec::new(),
            count: 2,
            new_paths: Vec::new(),
            salt,
            calls: 0,
        })
    }

    /// Starts another part whenever one has this many bytes.
    #[must_use]
    pub fn with_parts(self, size: u64, next: NextPart<'a>) -> Self {
        Self { parts: Some((size, next)), ..self }
    }

    /// How many calls were written.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// The number in the file of a path, which is written with the next block.
    fn number(&mut self, id: PathId, paths: &PathTable) -> PathId {
        if id.0 <= PathId::UNKNOWN.0 {
            return id;
        }
        // A path as deep as names are many must not fill the stack.
        let mut missing = Vec::new();
        let mut at = id;
        while at.0 > PathId::UNKNOWN.0 && self.numbers.get(at.0 as usize).is_none_or(|n| *n == 0) {
            missing.push(at);
            at = paths.parent(at);
        }
        while let Some(at) = missing.pop() {
            let parent = paths.parent(at);
            let parent = if parent.0 <= 1 { parent.0 } else { self.numbers[parent.0 as usize] };
            put(&mut self.new_paths, u128::from(parent));
            let hashed = self.header.hashes_names.then(|| hashed(&self.salt, paths.name(at)));
            let name = hashed.as_deref().map_or(paths.name(at), str::as_bytes);
            put(&mut self.new_paths, name.len() as u128);
            self.new_paths.extend_from_slice(name);
            if self.numbers.len() <= at.0 as usize {
                self.numbers.resize(paths.len(), 0);
            }
            self.numbers[at.0 as usize] = self.count;
            self.count += 1;
        }
        PathId(self.numbers[id.0 as usize])
    }

    /// Writes the tree at the beginning.
    pub fn tree(&mut self, entries: &[TreeEntry], paths: &PathTable) -> io::Result<()> {
        for part in entries.chunks(BLOCK_EVENTS) {
            let mut bytes = Vec::new();
            put(&mut bytes, part.len() as u128);
            for entry in part {
                let path = self.number(entry.path, paths);
                for n in [u64::from(path.0), u64::from(entry.mode), entry.size] {
                    put(&mut bytes, u128::from(n));
                }
            }
            self.flush_paths()?;
            self.length += format::write_block(&mut *self.output, format::TREE, &[bytes])?;
        }
        Ok(())
    }

    /// Writes an event.
    pub fn event(&mut self, event: &TraceEvent, paths: &PathTable) -> io::Result<()> {
        let mut event = event.clone();
        match &mut event {
            TraceEvent::Call(call) => {
                self.calls += 1;
                call.path = call.path.map(|path| self.number(path, paths));
                call.second_path = call.second_path.map(|path| self.number(path, paths));
            }
            TraceEvent::Exec { path, .. } => *path = path.map(|path| self.number(path, paths)),
            _ => {}
        }
        self.since.get_or_insert_with(Instant::now);
        self.events.push(event);
        // No block is longer than half a part: an event has some 8 bytes, and names may be longer than all else.
        let part = self.parts.as_ref().map_or(u64::MAX, |(most, _)| *most);
        let most_events = (BLOCK_EVENTS as u64).min(part / 64);
        if self.events.len() as u64 >= most_events || self.new_paths.len() as u64 >= MOST_NEW_PATHS.min(part / 4) {
            self.flush()?;
        }
        Ok(())
    }

    fn flush_paths(&mut self) -> io::Result<()> {
        if !self.new_paths.is_empty() {
            self.length += format::write_block(&mut *self.output, format::PATHS, &[&self.new_paths])?;
            self.new_paths.clear();
        }
        Ok(())
    }

    /// Writes the events that were received, if the first of them was that long ago.
    pub fn flush_older(&mut self, age: Duration) -> io::Result<()> {
        if self.since.is_some_and(|since| since.elapsed() >= age) { self.flush() } else { Ok(()) }
    }

    /// Writes the events that were received as a block.
    pub fn flush(&mut self) -> io::Result<()> {
        let before = self.length;
        self.since = None;
        self.flush_paths()?;
        if !self.events.is_empty() {
            let parts = columns::encode(&self.events);
            self.events.clear();
            self.length += format::write_block(&mut *self.output, format::EVENTS, &parts)?;
        }
        self.longest = self.longest.max(self.length - before);
        if let Some((most, next)) = &mut self.parts
            // The next block may be as long.
            && self.length + self.longest.min(*most / 2) > *most
        {
            self.output.flush()?;
            self.output = next()?;
            self.dropped_parts += 1;
            (self.count, self.numbers) = (2, Vec::new());
            self.length = begin(&mut *self.output, &self.header)?;
        }
        Ok(())
    }

    /// Ends the trace.
    pub fn finish(mut self, end: TraceEnd) -> io::Result<TraceEnd> {
        self.flush()?;
        // The part before the last is still there.
        let dropped_parts = self.dropped_parts.saturating_sub(1);
        let end = TraceEnd { calls: self.calls, dropped_parts, ..end };
        format::write_block(&mut *self.output, format::END, &[serde_json::to_vec(&end)?])?;
        self.output.flush()?;
        Ok(end)
    }
}

fn begin(out: &mut dyn Write, header: &TraceHeader) -> io::Result<u64> {
    out.write_all(format::TRACE_MARK)?;
    Ok(8 + format::write_block(out, format::HEADER, &[serde_json::to_vec(header)?])?)
}

/// A name that tells of another only its class of length and its extension.
fn hashed(salt: &RandomState, name: &[u8]) -> String {
    let dot = name.iter().rposition(|c| *c == b'.').filter(|at| *at > 0);
    let extension = dot.map(|at| &name[at..]).filter(|e| (2..=6).contains(&e.len()));
    let extension = extension.filter(|e| e[1..].iter().all(u8::is_ascii_alphanumeric));
    let extension = extension.map_or_else(String::new, |e| printable::line(&String::from_utf8_lossy(e)).into_owned());
    // 4, 8, 16, … characters in all.
    let length = name.len().next_power_of_two().clamp(16, 128);
    let hash = format!("{:016x}", salt.hash_one(name));
    format!("{hash:0<width$}{extension}", width = length.saturating_sub(extension.len()))
}

/// A path in which each name is hashed.
fn hashed_path(salt: &RandomState, path: &str) -> String {
    let hashed = |name: &str| if name.is_empty() { String::new() } else { hashed(salt, name.as_bytes()) };
    path.split('/').map(hashed).collect::<Vec<_>>().join("/")
}
