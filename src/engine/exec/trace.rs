//! The stream of a thread's operations: a digest of all, and the first operations in full.
//!
//! One number shows whether two runs did the same: each counted operation is hashed as (flowop, file, offset, size).
//! Only the requested number of operations at the start of a thread is hashed, since the total depends on the speed of
//! the thread. A thread without a stream pays one branch at the end of an operation.
//!
//! Deliberately absent: threads, and the file to which the entries are written.

use super::slots::FileRef;
use crate::random;

/// The requested stream of every thread.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WantedStream {
    /// The number of operations that are hashed.
    pub hashed: u64,
    /// The number of operations that are kept in full.
    pub kept: usize,
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Index of the flowop in the thread.
    pub flowop: usize,
    /// The file, or the empty directory. `None` for a flowop that works on neither.
    pub file: Option<FileRef>,
    /// Offset in the file, in bytes. `None` for a flowop that moves no data.
    pub offset: Option<u64>,
    /// Bytes moved.
    pub size: u64,
}

/// The stream of one thread.
#[derive(Clone, Debug)]
pub struct Stream {
    wanted: WantedStream,
    /// By flowop of the thread: the parts of an operation that are recorded.
    shapes: Vec<StreamShape>,
    seen: u64,
    hash: u64,
    entries: Vec<Entry>,
}

/// The parts of a flowop's operations that a stream records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamShape {
    /// None: the flowop waits, counts or limits.
    Absent,
    /// The file: the flowop opens, removes or queries.
    File,
    /// File, offset and size: the flowop moves data.
    Data,
    /// The same of a flowop that moves data through the buffer of its slot, whose place gives the offset.
    Buffered,
}

/// Maximum number of entries for which memory is allocated before the run.
const PREALLOCATED: usize = 16 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamDigest {
    /// The number of operations that were hashed.
    pub hashed: u64,
    pub hash: u64,
}

impl Stream {
    /// Returns an empty stream for a thread with these flowops. Memory for the first entries is allocated now, for
    /// further ones on demand.
    pub fn new(wanted: WantedStream, shapes: Vec<StreamShape>) -> Self {
        Self { wanted, shapes, seen: 0, hash: 0, entries: Vec::with_capacity(wanted.kept.min(PREALLOCATED)) }
    }

    /// True if a flowop moves data through the buffer of its slot.
    pub(crate) fn is_buffered(&self, flowop: usize) -> bool {
        self.shapes.get(flowop) == Some(&StreamShape::Buffered)
    }

    /// Records an operation.
    ///
    /// `#[cold]`: most runs record no stream, so the branch at the end of an operation is arranged for them.
    #[cold]
    pub fn push(&mut self, flowop: usize, file: Option<FileRef>, offset: u64, size: u64) {
        let shape = self.shapes.get(flowop).copied().unwrap_or(StreamShape::Absent);
        if shape == StreamShape::Absent {
            return;
        }
        let offset = (shape != StreamShape::File).then_some(offset);
        if self.seen < self.wanted.hashed {
            // A missing file and a missing offset hash differently from index 0 and offset 0.
            let (set, index) = file.map_or((0, 0), |f| (f.set as u64 + 1, f.index));
            for part in [flowop as u64, set, index, offset.map_or(0, |o| o.wrapping_add(1)), size] {
                self.hash = random::mix(self.hash, part);
            }
        }
        if self.entries.len() < self.wanted.kept {
            if self.entries.try_reserve(1).is_ok() {
                self.entries.push(Entry { flowop, file, offset, size });
            } else {
                // Without memory the trace ends here and the run continues.
                self.wanted.kept = self.entries.len();
            }
        }
        self.seen += 1;
    }

    /// Returns the digest so far.
    pub fn digest(&self) -> StreamDigest {
        StreamDigest { hashed: self.seen.min(self.wanted.hashed), hash: self.hash }
    }

    /// Returns the operations that were kept, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(wanted: WantedStream) -> Stream {
        Stream::new(wanted, vec![StreamShape::Data, StreamShape::File, StreamShape::Absent])
    }

    const FILE: Option<FileRef> = Some(FileRef { set: 0, index: 0 });

    #[test]
    fn every_part_of_an_operation_changes_the_digest() {
        let wanted = WantedStream { hashed: 10, kept: 0 };
        let sum = |flowop, file, offset, size| {
            let mut s = stream(wanted);
            s.push(flowop, file, offset, size);
            s.digest().hash
        };
        let all = [
            sum(0, FILE, 0, 8),
            sum(0, FILE, 8, 8),
            sum(0, FILE, 0, 16),
            sum(0, None, 0, 8),
            sum(0, Some(FileRef { set: 1, index: 0 }), 0, 8),
            sum(0, Some(FileRef { set: 0, index: 1 }), 0, 8),
            sum(1, FILE, 0, 8),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(!all[..i].contains(a), "{i}");
        }
    }

    #[test]
    fn the_digest_depends_on_the_order_and_on_the_first_operations_only() {
        let wanted = WantedStream { hashed: 2, kept: 3 };
        let run = |offsets: &[u64]| {
            let mut s = stream(wanted);
            offsets.iter().for_each(|o| s.push(0, FILE, *o, 8));
            s
        };
        assert_ne!(run(&[1, 2]).digest(), run(&[2, 1]).digest());
        assert_eq!(run(&[1, 2, 3]).digest(), run(&[1, 2, 9, 9, 9]).digest());
        assert_eq!(run(&[1, 2, 3]).digest().hashed, 2);
        assert_eq!(run(&[1, 2, 9, 9, 9]).entries().len(), 3);
    }

    #[test]
    fn a_waiting_flowop_is_not_recorded_and_one_without_data_has_no_offset() {
        let mut s = stream(WantedStream { hashed: 9, kept: 9 });
        s.push(2, FILE, 0, 0);
        s.push(1, FILE, 77, 0);
        assert_eq!(s.entries(), [Entry { flowop: 1, file: FILE, offset: None, size: 0 }]);
    }
}
