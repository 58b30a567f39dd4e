//! The size of an open file, which may differ from the size that its file set defines: an append or `ftruncate` through
//! an earlier open has changed it, or the file was created as an empty one.

use super::{OpCx, Stop};
use crate::io_engine::Handle;

impl OpCx<'_> {
    /// Returns the size in bytes of the file in a slot. It is read when it is first needed after an open, as a further
    /// call of the flowop whose time is not that of its operation. From then on the slot follows the calls of this
    /// thread; what other threads append is not known.
    #[inline]
    pub fn file_size(&mut self, slot: usize) -> Result<u64, Stop> {
        let held = self.io.slots.get(slot);
        match held.handle {
            None => Err(Stop::over()),
            Some(handle) if held.is_size_known => Ok(handle.size),
            Some(handle) => self.read_size(slot, handle),
        }
    }

    /// Reads the size from the kernel.
    #[cold]
    fn read_size(&mut self, slot: usize, handle: Handle) -> Result<u64, Stop> {
        self.begin();
        let read = match handle.read_size() {
            Ok(size) => size,
            Err(errno) => return Err(self.failed_in_slot("fstat failed", errno, slot)),
        };
        self.cell().add_calls(1);
        self.restamp();
        let held = self.io.slots.get_mut(slot);
        // Writes of this thread may still be in flight.
        let size = if handle.size > held.nominal { read.max(handle.size) } else { read };
        held.is_size_known = true;
        held.handle = Some(Handle { size, ..handle });
        Ok(size)
    }
}
