//! A thread's file slots: which file each holds, and which one a flowop means.

use super::buffered::BufferedStream;
use crate::engine::Handle;

/// The highest slot that `fd=` can name.
pub const MAX_FD: usize = 128;

/// A file of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileRef {
    /// Which set.
    pub set: usize,
    /// Which file.
    pub index: u64,
}

/// One slot. It remembers its file after that is closed, as Filebench's do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// The open file.
    pub handle: Option<Handle>,
    /// The file that is or was open here.
    pub file: Option<FileRef>,
    /// That file's nominal size, in bytes.
    pub nominal: u64,
    /// The how-manieth opening of this thread it is: tells a file from another, or the same, in the same slot later.
    pub opening: u64,
}

impl Slot {
    /// Whether a file of this set is open here.
    #[inline]
    pub fn holds(&self, set: usize) -> bool {
        self.handle.is_some() && self.file.is_some_and(|f| f.set == set)
    }
}

/// The slot that a flowop works on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotRule {
    /// `fd=`; 0: none named.
    pub fd: usize,
    /// `opennext`: slot after slot, over so many; 0: no.
    pub rotate: usize,
    /// The flowop's file set, if it names one.
    pub set: Option<usize>,
}

/// All slots of a thread.
#[derive(Debug)]
pub struct Slots {
    table: Vec<Slot>,
    /// The buffers of `bufread` and `bufwrite`, by slot; none as long as no such flowop has run.
    pub(crate) streams: Vec<Option<Box<BufferedStream>>>,
    openings: u64,
    /// Changes with whatever may change in a slot.
    version: u64,
    /// Where the slots of their own begin, one for each file set.
    own: usize,
    rotor: usize,
    /// The slot that was chosen last, for the stream of operations.
    last: usize,
    /// The first part of each set; empty if no set has parts.
    firsts: Vec<usize>,
}

impl Slots {
    /// Slots up to `max_fd`, and one more for each file set.
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

    /// Files of all parts of a set are files of one set: `firsts` holds the first part of each; empty, none has any.
    #[must_use]
    pub fn with_parts(mut self, firsts: Vec<usize>) -> Self {
        self.firsts = firsts;
        self
    }

    /// The set that a file belongs to: the first part, of several.
    #[inline]
    pub fn set_of(&self, file: FileRef) -> usize {
        self.firsts.get(file.set).copied().unwrap_or(file.set)
    }

    /// The slot that the rule means now. Advances the rotation.
    #[inline]
    pub fn choose(&mut self, rule: &SlotRule) -> usize {
        let slot = self.by_rule(rule);
        self.last = slot;
        slot
    }

    /// As long as this stays the same, so does every slot.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A slot is worked on without having been chosen.
    #[inline]
    pub fn note(&mut self, slot: usize) {
        self.last = slot;
    }

    /// The file of the slot that was worked on last, if any was since this was asked last.
    pub fn take_last(&mut self) -> Option<FileRef> {
        let slot = std::mem::replace(&mut self.last, usize::MAX);
        self.table.get(slot).and_then(|s| s.file)
    }

    #[inline]
    fn by_rule(&mut self, rule: &SlotRule) -> usize {
        if rule.rotate == 0 {
            return match rule.set {
                _ if rule.fd > 0 => rule.fd,
                // What is open in the set's own slot stays there, whatever becomes of the first.
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
        // Counting down from the top, as Filebench does: 127, 126, … 0, 127.
        self.rotor = if self.rotor == 0 { rule.rotate - 1 } else { (self.rotor - 1).min(rule.rotate - 1) };
        self.rotor
    }

    /// A slot.
    #[inline]
    pub fn get(&self, slot: usize) -> &Slot {
        &self.table[slot]
    }

    /// A slot, to change.
    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> &mut Slot {
        self.version += 1;
        &mut self.table[slot]
    }

    /// A file was opened into a slot.
    #[inline]
    pub fn fill(&mut self, slot: usize, handle: Handle, file: FileRef, nominal: u64) {
        self.openings += 1;
        self.version += 1;
        self.table[slot] = Slot { handle: Some(handle), file: Some(file), nominal, opening: self.openings };
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is none.
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
    fn a_named_slot_is_taken_as_named() {
        let mut slots = Slots::new(5, 2);
        assert_eq!(slots.choose(&SlotRule { fd: 5, rotate: 0, set: Some(1) }), 5);
    }

    #[test]
    fn rotation_counts_down_and_starts_over() {
        let mut slots = Slots::new(MAX_FD, 1);
        let rule = SlotRule { fd: 0, rotate: 128, set: Some(0) };
        let order: Vec<usize> = (0..130).map(|_| slots.choose(&rule)).collect();
        assert_eq!(order[..3], [127, 126, 125]);
        assert_eq!(order[127..], [0, 127, 126]);
    }

    #[test]
    fn without_a_name_a_set_keeps_to_a_slot_of_its_own_when_the_first_is_anothers() {
        let mut slots = Slots::new(0, 2);
        let rule = |set| SlotRule { fd: 0, rotate: 0, set: Some(set) };
        assert_eq!(slots.choose(&rule(0)), 0);
        slots.fill(0, handle(), FileRef { set: 0, index: 1 }, 0);
        assert_eq!(slots.choose(&rule(0)), 0);
        assert_eq!(slots.choose(&rule(1)), 2);
    }
}
