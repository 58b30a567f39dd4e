//! How much space the files of a replay take at most, as calls come in the order of the trace: an upper bound of what they
//! write and allocate. A hole takes nothing, and a file takes its space until its last name and descriptor are gone.

use crate::file_kind::FileKind;
use crate::tree::{ROOT, ReplayTree};
use std::collections::HashMap;

/// A file that takes other space than at the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct FileSpace {
    /// Bytes beyond those of the beginning.
    grown: i128,
    /// The end of what is allocated beyond its end.
    reach: u64,
    open: u32,
    is_gone: bool,
}

/// A number beyond that of the beginning, and the most that it was.
#[derive(Clone, Copy, Debug, Default)]
struct PeakNumber {
    now: i128,
    most: i128,
}

impl PeakNumber {
    fn add(&mut self, more: i128) {
        self.now += more;
        self.most = self.most.max(self.now);
    }

    fn beyond(self, first: u64) -> u64 {
        first.saturating_add(u64::try_from(self.most).unwrap_or(u64::MAX))
    }
}

/// Files, directories and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSize {
    pub files: u64,
    pub directories: u64,
    pub bytes: u64,
}

/// What the calls of a trace add to the tree of the beginning.
#[derive(Debug, Default)]
pub(crate) struct ReplaySpace {
    touched: HashMap<u32, FileSpace>,
    files: PeakNumber,
    directories: PeakNumber,
    bytes: PeakNumber,
}

impl ReplaySpace {
    fn number(&mut self, kind: FileKind) -> &mut PeakNumber {
        if kind == FileKind::Directory { &mut self.directories } else { &mut self.files }
    }

    /// A call makes a file.
    pub(crate) fn is_made(&mut self, kind: FileKind) {
        self.number(kind).add(1);
    }

    pub(crate) fn is_opened(&mut self, node: u32) {
        self.touched.entry(node).or_default().open += 1;
    }

    /// A file turns out to be another one, which its descriptors hold to the end: which of them close later is not known.
    pub(crate) fn is_other(&mut self, node: u32, into: u32) {
        let was = self.touched.entry(node).or_default();
        let open = was.open;
        was.is_gone = true;
        self.touched.entry(into).or_default().open += open;
    }

    /// The most that there is at a time, from what there is at the beginning.
    pub(crate) fn most(&self, first: TreeSize) -> TreeSize {
        TreeSize {
            files: self.files.beyond(first.files),
            directories: self.directories.beyond(first.directories),
            bytes: self.bytes.beyond(first.bytes),
        }
    }
}

impl ReplayTree {
    /// A call writes or allocates so many bytes of a file: they may replace others.
    pub(crate) fn adds(&mut self, node: u32, bytes: u64) {
        let (first, size) = (i128::from(self.nodes[node as usize].first_bytes()), self.nodes[node as usize].size);
        let file = self.space.touched.entry(node).or_default();
        let limit = i128::from(size.max(file.reach)) - first;
        let grown = (file.grown + i128::from(bytes)).min(limit);
        self.space.bytes.add(grown - file.grown);
        file.grown = grown;
    }

    /// A call gives a file another size.
    pub(crate) fn cuts(&mut self, node: u32, size: u64) {
        self.set_size(node, size);
        self.space.touched.entry(node).or_default().reach = 0;
        self.adds(node, 0);
    }

    /// A call allocates so many bytes up to here, whatever the size is.
    pub(crate) fn allocates(&mut self, node: u32, end: u64, bytes: u64) {
        let file = self.space.touched.entry(node).or_default();
        file.reach = file.reach.max(end);
        self.adds(node, bytes);
    }

    /// A descriptor of a file is closed.
    pub(crate) fn is_closed(&mut self, node: u32) {
        let file = self.space.touched.entry(node).or_default();
        file.open = file.open.saturating_sub(1);
        self.may_be_gone(node);
    }

    /// A name or descriptor of a file has gone: without another one its space is free.
    pub(crate) fn may_be_gone(&mut self, node: u32) {
        let found = self.nodes.get(node as usize).filter(|found| node != ROOT && found.names == 0);
        let Some(found) = found else { return };
        let file = self.space.touched.entry(node).or_default();
        if file.open == 0 && !std::mem::replace(&mut file.is_gone, true) {
            let taken = i128::from(found.first_bytes()) + file.grown;
            self.space.bytes.add(-taken);
            self.space.number(found.kind).add(-1);
        }
    }
}
