//! Reads a trace, block by block. The memory it takes is that of a block and of the paths.

use super::call::TraceEvent;
use super::columns;
use super::format::{self, ReadBlock, TRACE_MARK, TraceEnd, TraceError, TraceHeader};
use super::kind::KindId;
use super::paths::{PathId, PathTable};
use super::varint::take;
use super::writer::TreeEntry;
use std::io::Read;

/// A trace that is read.
pub struct TraceReader<R> {
    input: R,
    header: TraceHeader,
    kinds: Vec<KindId>,
    /// The path of each number of the file. They are as in the file, which may have a path twice.
    paths: PathTable,
    numbers: Vec<PathId>,
    tree: Vec<TreeEntry>,
    end: Option<TraceEnd>,
    cut_short: Option<u64>,
    is_over: bool,
}

impl<R: Read> TraceReader<R> {
    /// Begins to read.
    pub fn new(mut input: R) -> Result<Self, TraceError> {
        let mut mark = Vec::new();
        input.by_ref().take(8).read_to_end(&mut mark)?;
        if mark.len() < 8 || mark[..6] != TRACE_MARK[..6] || mark[7] != b'\n' {
            return Err(TraceError::new("it is no trace", "`wmlrun record` and `wmlrun trace import` write traces"));
        }
        if mark[6] != TRACE_MARK[6] {
            let text = format!("the trace has version {} of the format, and this wmlrun reads version 1", mark[6]);
            return Err(TraceError::new(text, "use the wmlrun that wrote it, or a newer one"));
        }
        let ReadBlock::Whole(format::HEADER, bytes) = format::read_block(&mut input)? else {
            return Err(TraceError::damaged("it has no header"));
        };
        let header: TraceHeader =
            serde_json::from_slice(&bytes).map_err(|_| TraceError::damaged("its header can't be read"))?;
        Ok(Self {
            kinds: header.kind_ids(),
            input,
            header,
            paths: PathTable::new(),
            numbers: vec![PathId::ROOT, PathId::UNKNOWN],
            tree: Vec::new(),
            end: None,
            cut_short: None,
            is_over: false,
        })
    }

    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    pub fn paths(&self) -> &PathTable {
        &self.paths
    }

    /// All paths, of a trace that was read.
    pub fn into_paths(self) -> PathTable {
        self.paths
    }

    /// The tree at the beginning, as far as it was read.
    pub fn tree(&self) -> &[TreeEntry] {
        &self.tree
    }

    /// What the trace says at its end.
    pub fn end(&self) -> Option<&TraceEnd> {
        self.end.as_ref()
    }

    /// How many bytes at the end are no whole block; `None` if the trace has its end.
    pub(crate) fn cut_short(&self) -> Option<u64> {
        self.cut_short
    }

    /// What it lacks, as far as it was read, in words; none if it is complete.
    pub fn missing(&self) -> Vec<String> {
        format::missing(self.end(), self.cut_short)
    }

    /// The events of the next block; `None` behind the last.
    pub fn block(&mut self) -> Result<Option<Vec<TraceEvent>>, TraceError> {
        while !self.is_over {
            let (kind, bytes) = match format::read_block(&mut self.input)? {
                ReadBlock::Whole(kind, bytes) => (kind, bytes),
                ReadBlock::CutShort(bytes) => {
                    (self.cut_short, self.is_over) = (Some(bytes), true);
                    break;
                }
                ReadBlock::Nothing => {
                    (self.cut_short, self.is_over) = (Some(0), true);
                    break;
                }
            };
            let damaged = || TraceError::damaged("the content of a block makes no sense");
            match kind {
                format::PATHS => self.add_paths(&bytes).ok_or_else(damaged)?,
                format::TREE => self.add_tree(&bytes).ok_or_else(damaged)?,
                format::EVENTS => {
                    let events = columns::decode(&bytes, &self.kinds, self.numbers.len()).ok_or_else(damaged)?;
                    return Ok(Some(self.with_paths(events)));
                }
                format::END => {
                    self.end = Some(serde_json::from_slice(&bytes).map_err(|_| damaged())?);
                    self.is_over = true;
                }
                // Of a newer version.
                _ => {}
            }
        }
        Ok(None)
    }

    /// Calls `each` with every event.
    pub fn for_each(&mut self, mut each: impl FnMut(&TraceEvent, &PathTable)) -> Result<(), TraceError> {
        while let Some(events) = self.block()? {
            events.iter().for_each(|event| each(event, &self.paths));
        }
        Ok(())
    }

    fn add_paths(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let parent = usize::try_from(take(&mut bytes)?).ok()?;
            let length = usize::try_from(take(&mut bytes)?).ok()?;
            let (name, rest) = bytes.split_at_checked(length)?;
            bytes = rest;
            let parent = *self.numbers.get(parent)?;
            let id = self.paths.takes(parent, name).then(|| self.paths.entry(parent, name))?;
            self.numbers.push(id);
        }
        Some(())
    }

    fn add_tree(&mut self, mut bytes: &[u8]) -> Option<()> {
        let count = take(&mut bytes)?;
        for _ in 0..count {
            let path = *self.numbers.get(usize::try_from(take(&mut bytes)?).ok()?)?;
            let mode = u32::try_from(take(&mut bytes)?).ok()?;
            let size = u64::try_from(take(&mut bytes)?).ok()?;
            self.tree.push(TreeEntry { path, mode, size });
        }
        Some(())
    }

    fn with_paths(&self, mut events: Vec<TraceEvent>) -> Vec<TraceEvent> {
        let own = |path: &mut Option<PathId>| *path = path.map(|path| self.numbers[path.0 as usize]);
        for event in &mut events {
            match event {
                TraceEvent::Call(call) => {
                    own(&mut call.path);
                    own(&mut call.second_path);
                }
                TraceEvent::Exec { path, .. } => own(path),
                _ => {}
            }
        }
        events
    }
}
