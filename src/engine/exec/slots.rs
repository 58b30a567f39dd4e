//! The file slots of a thread: the file in each slot, and the choice of the slot for a flowop.

use super::buffered::BufferedStream;
use crate::io_engine::Handle;

/// The highest slot number for `fd=`.
pub(crate) const MAX_FD: usize = 128;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileRef {
    /// Index of the set.
    pub set: usize,
    pub index: u64,
}

/// A slot. It keeps its file after that is closed, as Filebench's slots do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// The open file.
    pub handle: Option<Handle>,
    /// The file that is open in this slot, or was open last.
    pub file: Option<FileRef>,
    /// Nominal size of that file, in bytes.
    pub nominal: u64,
    /// Number of the open in this thread. It distinguishes two opens in the same slot, of the same file or of two.
    pub opening: u64,
    /// Whether the size in `handle` was read since the open. Otherwise it is the nominal size, extended by writes.
    pub is_size_known: bool,
}

impl Slot {
    /// True if a file of this set is open in this slot.
    #[inline]
    pub fn holds(&self, set: usize) -> bool {
        self.handle.is_some() && self.file.is_some_and(|f| f.set == set)
    }
}

/// The rule that determines the slot of a flowop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotRule {
    /// `fd=`; 0 when the flowop names no slot.
    pub fd: usize,
    /// Number of slots that `opennext` rotates through; 0 when the flowop does not rotate.
    pub rotate: usize,
    /// The file set of the flowop, if it names one.
    pub set: Option<usize>,
}

/// All slots of a thread.
#[derive(Debug)]
pub struct Slots {
    table: Vec<Slot>,
    /// The buffers of `bufread` and `bufwrite`, by slot. Empty until such a flowop has run.
    pub(crate) streams: Vec<Option<Box<BufferedStream>>>,
    openings: u64,
    /// A version number that is incremented before any change of a slot.
    version: u64,
    /// Index of the first of the slots that belong to the file sets, one for each set.
    own: usize,
    rotor: usize,
    /// The slot that was used last, for the stream of operations.
    last: usize,
    /// The first part of each set; empty if no set has several parts.
    firsts: Vec<usize>,
}

impl Slots {
    /// Returns empty slots up to `max_fd`, and one more for each file set.
    pub fn new(max_fd: usize, sets: usize) -> Self {
        Self {
            table: vec![Slot::default(); max_fd + 1 + sets],
            streams: Vec::new(),
            openings: 0,
            version: 0,
            own: max_fd + 1,
            rotor: 0,
            last: usize::MAX,
            firsts: Vec::new(),
        }
    }

    /// Treats the files of all parts of a set as files of one set. `firsts` has the first part of each set; empty if no
    /// set has several parts.
    #[must_use]
    pub(crate) fn with_parts(mut self, firsts: Vec<usize>) -> Self {
        self.firsts = firsts;
        self
    }

    /// Returns the set of a file; the first part, if the set has several.
    #[inline]
    pub fn set_of(&self, file: FileRef) -> usize {
        self.firsts.get(file.set).copied().unwrap_or(file.set)
    }

    /// Returns the slot for this rule, and advances the rotation.
    #[inline]
    pub fn choose(&mut self, rule: &SlotRule) -> usize {
        let slot = self.by_rule(rule);
        self.last = slot;
        slot
    }

    /// Returns the version: as long as it is unchanged, no slot has changed.
    ///
    /// Random I/O caches the slot, file and bounds of its last operation under this number, so that the next operation
    /// checks them with one comparison. The step of changes to which this belongs took a random read from 184 to 169
    /// instructions.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Notes the use of a slot without choosing it by a rule.
    #[inline]
    pub(crate) fn set_last(&mut self, slot: usize) {
        self.last = slot;
    }

    /// Returns the file of the slot that was used last. `None` when no slot was used since the last call.
    pub(crate) fn take_last(&mut self) -> Option<FileRef> {
        let slot = std::mem::replace(&mut self.last, usize::MAX);
        self.table.get(slot).and_then(|s| s.file)
    }

    /// Returns the slot that was used last. `None` when no slot was used since the last call of [`Self::take_last`].
    pub(super) fn last(&self) -> Option<usize> {
        (self.last < self.table.len()).then_some(self.last)
    }

    /// Returns the slot for this rule, and advances the rotation.
    #[inline]
    fn by_rule(&mut self, rule: &SlotRule) -> usize {
        if rule.rotate == 0 {
            return match rule.set {
                _ if rule.fd > 0 => rule.fd,
                // A file that is open in the set's own slot stays there, even if slot 0 is free again.
                Some(set) if self.table[self.own + set].handle.is_some() => self.own + set,
                Some(set)
                    if self.table[0].file.is_some_and(|f| self.set_of(f) != set) && self.table[0].handle.is_some() =>
                {
                    self.own + set
                }
                _ => 0,
            };
        }
        if rule.fd > 0 {
            return rule.fd;
        }
        // Counts down from 127 through that many slots, as Filebench does: 127, 126, … 0, 127 for 128 of them.
        let next = if self.rotor == 0 { MAX_FD - 1 } else { self.rotor - 1 };
        self.rotor = if MAX_FD - next > rule.rotate { MAX_FD - 1 } else { next };
        self.rotor
    }

    #[inline]
    pub fn get(&self, slot: usize) -> &Slot {
        &self.table[slot]
    }

    /// Returns a slot for modification, and increments the version.
    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> &mut Slot {
        self.version += 1;
        &mut self.table[slot]
    }

    /// Stores an open file in a slot.
    #[inline]
    pub fn fill(&mut self, slot: usize, handle: Handle, file: FileRef, nominal: u64) {
        self.openings += 1;
        self.version += 1;
        let opening = self.openings;
        self.table[slot] = Slot { handle: Some(handle), file: Some(file), nominal, opening, is_size_known: false };
    }

    /// Stores an open directory or unnamed file in a slot: it is no file of a set.
    pub(crate) fn fill_nameless(&mut self, slot: usize, handle: Handle) {
        self.openings += 1;
        *self.get_mut(slot) = Slot { handle: Some(handle), opening: self.openings, ..Slot::default() };
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// True if there are no slots.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> Handle {
        Handle { fd: 9, position: 0, cursor: 0, size: 0 }
    }

    #[test]
    fn a_named_slot_is_used() {
        let mut slots = Slots::new(5, 2);
        assert_eq!(slots.choose(&SlotRule { fd: 5, rotate: 0, set: Some(1) }), 5);
    }

    #[test]
    fn rotation_counts_down_and_wraps() {
        let mut slots = Slots::new(MAX_FD, 1);
        let rule = SlotRule { fd: 0, rotate: 128, set: Some(0) };
        let order: Vec<usize> = (0..130).map(|_| slots.choose(&rule)).collect();
        assert_eq!(order[..3], [127, 126, 125]);
        assert_eq!(order[127..], [0, 127, 126]);
        // Fewer slots are the upper ones.
        let mut slots = Slots::new(MAX_FD, 1);
        let rule = SlotRule { rotate: 3, ..rule };
        assert_eq!([0; 5].map(|_| slots.choose(&rule)), [127, 126, 125, 127, 126]);
    }

    #[test]
    fn a_set_uses_its_own_slot_while_slot_0_has_a_file_of_another_set() {
        let mut slots = Slots::new(0, 2);
        let rule = |set| SlotRule { fd: 0, rotate: 0, set: Some(set) };
        assert_eq!(slots.choose(&rule(0)), 0);
        slots.fill(0, handle(), FileRef { set: 0, index: 1 }, 0);
        assert_eq!(slots.choose(&rule(0)), 0);
        assert_eq!(slots.choose(&rule(1)), 2);
    }
}
