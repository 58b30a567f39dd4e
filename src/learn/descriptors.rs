//! Calls on descriptors that no file system sees: copies of them, their flags, whether they are terminals, and the closes
//! of copies.

use std::collections::HashMap;
use wml_trace::{CallClass, PathId, TracedCall};

/// The descriptors that processes have of files.
#[derive(Debug, Default)]
pub(crate) struct CopiedDescriptors {
    of: HashMap<(u32, PathId), FileDescriptors>,
}

/// Those of a process and a file: by opening it, and by copying.
#[derive(Debug, Default)]
struct FileDescriptors {
    opened: u32,
    copies: u32,
}

impl CopiedDescriptors {
    /// True for such a call. Of a descriptor and its copies, the close that comes first stands for all.
    pub(crate) fn has(&mut self, call: &TracedCall) -> bool {
        let class = call.kind.get().class;
        if class == CallClass::Control {
            return call.is_of_descriptor_only();
        }
        let path = call.path.filter(|_| matches!(class, CallClass::Open | CallClass::Dup | CallClass::Close));
        let Some(path) = path else { return false };
        let of = self.of.entry((call.process, path)).or_default();
        match class {
            CallClass::Open => {
                of.opened += u32::from(call.result >= 0);
                false
            }
            CallClass::Dup => {
                of.copies += u32::from(call.copies_descriptor());
                call.is_of_descriptor_only()
            }
            CallClass::Close if of.opened > 0 => {
                of.opened -= 1;
                false
            }
            CallClass::Close if of.copies > 0 => {
                of.copies -= 1;
                true
            }
            _ => false,
        }
    }
}
