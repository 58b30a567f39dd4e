//! The data that a thread writes: of one source, or of one for each file set.
//!
//! Deliberately absent: the buffers with the data (`buffer.rs`, `aio`), and how it is generated (`fileset::content`).

use super::slots::FileRef;
use crate::fileset::content::{DataSource, Stamper};
use crate::random::mix;

/// The data that a thread writes.
#[derive(Clone, Debug)]
pub struct WrittenData {
    /// The data of all files, or of those without a separate source.
    pub(super) common: ThreadSource,
    /// Data that differs from that of other files of the thread, or is redundant in a thread that also reads. It is in
    /// memory into which nothing is read: what was read may be more or less redundant.
    pub(super) separate: Vec<ThreadSource>,
    /// By file set, the index in `separate`.
    of_set: Vec<Option<usize>>,
}

/// A source of data, and the stamps with which one thread makes its blocks unique or copies.
#[derive(Clone, Debug)]
pub(super) struct ThreadSource {
    pub(super) source: DataSource,
    pub(super) stamper: Stamper,
}

impl ThreadSource {
    fn new(source: DataSource, seed: u64, thread: u64) -> Self {
        let stamper = source.stamper(seed, thread);
        Self { source, stamper }
    }
}

impl WrittenData {
    /// Returns the data of a thread of which all files have the same source. Different seeds and threads produce
    /// different blocks.
    pub fn of_one(source: DataSource, seed: u64, thread: u64) -> Self {
        Self { common: ThreadSource::new(source, seed, thread), separate: Vec::new(), of_set: Vec::new() }
    }

    /// Returns the data of a thread whose files have several sources. `of_set`: by file set, the index of its source.
    pub(crate) fn of_several(sources: Vec<DataSource>, of_set: Vec<Option<usize>>, seed: u64, thread: u64) -> Self {
        let numbered = (1..).zip(sources);
        let separate = numbered.map(|(n, source)| ThreadSource::new(source, mix(seed, n), thread)).collect();
        Self { separate, of_set, ..Self::of_one(DataSource::default(), seed, thread) }
    }

    /// True if the data of all files is of one source without copies, so that it only needs unique stamps.
    pub(super) fn is_plain(&self) -> bool {
        self.separate.is_empty() && !self.common.stamper.has_copies()
    }

    pub(super) fn source_of(&mut self, file: Option<FileRef>) -> &mut ThreadSource {
        match self.separate_of(file) {
            Some(i) => &mut self.separate[i],
            None => &mut self.common,
        }
    }

    /// Returns the index in `separate` of the source of a file. `None` when it is the common one.
    pub(super) fn separate_of(&self, file: Option<FileRef>) -> Option<usize> {
        self.of_set.get(file?.set).copied().flatten()
    }
}
