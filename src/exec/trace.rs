//! The stream of a thread's operations: a digest of them, and the first of them in full.
//!
//! Two runs that did the same are told by one number: each operation that was counted, as (flowop, file, offset, size), goes
//! into a hash. Only the first operations of a thread are hashed, as many as were asked for: how many it does in all depends
//! on how fast it is. Threads that are not asked for a stream pay one branch at the end of an operation.
//!
//! Deliberately absent: threads, and where the entries are written to.

use super::slots::FileRef;
use crate::random;

/// What is wanted of every thread.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WantedStream {
    /// How many operations are hashed.
    pub hashed: u64,
    /// How many are kept in full.
    pub kept: usize,
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The flowop, by its place in the thread.
    pub flowop: usize,
    /// The file, or the empty directory; none for a flowop that works on neither.
    pub file: Option<FileRef>,
    /// Where in the file, in bytes; none for a flowop that moves no data.
    pub offset: Option<u64>,
    /// Bytes moved.
    pub size: u64,
}

/// The stream of one thread.
#[derive(Clone, Debug)]
pub struct Stream {
    wanted: WantedStream,
    /// By flowop of the thread: whether it belongs to the stream, and whether it has an offset.
    shapes: Vec<StreamShape>,
    seen: u64,
    hash: u64,
    entries: Vec<Entry>,
}

/// What a stream holds of a flowop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamShape {
    /// Nothing: it waits, counts or limits.
    Absent,
    /// The file: it opens, removes, asks.
    File,
    /// File, offset and size: it moves data.
    Data,
}

/// Entries whose memory is taken before a run.
const AT_FIRST: usize = 16 << 10;

/// The sum of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sum {
    /// Operations that were hashed.
    pub hashed: u64,
    /// The hash.
    pub hash: u64,
}

impl Stream {
    /// An empty stream for a thread with these flowops. The memory for its first entries is taken now, for more as they come.
    pub fn new(wanted: WantedStream, shapes: Vec<StreamShape>) -> Self {
        Self { wanted, shapes, seen: 0, hash: 0, entries: Vec::with_capacity(wanted.kept.min(AT_FIRST)) }
    }

    /// Takes note of an operation.
    #[cold]
    pub fn push(&mut self, flowop: usize, file: Option<FileRef>, offset: u64, size: u64) {
        let shape = self.shapes.get(flowop).copied().unwrap_or(StreamShape::Absent);
        if shape == StreamShape::Absent {
            return;
        }
        let offset = (shape == StreamShape::Data).then_some(offset);
        if self.seen < self.wanted.hashed {
            // No file and no offset are other than the first of either.
            let (set, index) = file.map_or((0, 0), |f| (f.set as u64 + 1, f.index));
            for part in [flowop as u64, set, index, offset.map_or(0, |o| o.wrapping_add(1)), size] {
                self.hash = random::mix(self.hash, part);
            }
        }
        if self.entries.len() < self.wanted.kept {
            if self.entries.try_reserve(1).is_ok() {
                self.entries.push(Entry { flowop, file, offset, size });
            } else {
                // No more memory: the trace ends here, the run goes on.
                self.wanted.kept = self.entries.len();
            }
        }
        self.seen += 1;
    }

    /// The digest so far.
    pub fn sum(&self) -> Sum {
        Sum { hashed: self.seen.min(self.wanted.hashed), hash: self.hash }
    }

    /// The operations that were kept, in order.
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
    fn every_part_of_an_operation_counts() {
        let wanted = WantedStream { hashed: 10, kept: 0 };
        let sum = |flowop, file, offset, size| {
            let mut s = stream(wanted);
            s.push(flowop, file, offset, size);
            s.sum().hash
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
    fn order_counts_and_so_do_only_the_first() {
        let wanted = WantedStream { hashed: 2, kept: 3 };
        let run = |offsets: &[u64]| {
            let mut s = stream(wanted);
            offsets.iter().for_each(|o| s.push(0, FILE, *o, 8));
            s
        };
        assert_ne!(run(&[1, 2]).sum(), run(&[2, 1]).sum());
        assert_eq!(run(&[1, 2, 3]).sum(), run(&[1, 2, 9, 9, 9]).sum());
        assert_eq!(run(&[1, 2, 3]).sum().hashed, 2);
        assert_eq!(run(&[1, 2, 9, 9, 9]).entries().len(), 3);
    }

    #[test]
    fn what_waits_is_no_part_and_what_moves_no_data_has_no_offset() {
        let mut s = stream(WantedStream { hashed: 9, kept: 9 });
        s.push(2, FILE, 0, 0);
        s.push(1, FILE, 77, 0);
        assert_eq!(s.entries(), [Entry { flowop: 1, file: FILE, offset: None, size: 0 }]);
    }
}
