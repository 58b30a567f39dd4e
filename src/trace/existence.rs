//! What a call tells of a name before it.

use super::call::TracedCall;
use super::kind::CallClass;
use super::own_links::follows;
use super::paths::PathId;

impl TracedCall {
    /// Whether a name of the call existed before it, if no call before tells. `has_tree`: the trace has the tree at its
    /// beginning, and the name is not in it.
    pub fn existed_before(&self, path: PathId, has_tree: bool) -> bool {
        let flags = self.flags.unwrap_or(0) as i32;
        let makes = match self.kind.get().class {
            CallClass::Open => {
                let new = libc::O_EXCL | libc::O_TRUNC;
                flags & libc::O_CREAT != 0 && self.result >= 0 && (has_tree || flags & new != 0)
            }
            CallClass::Mkdir | CallClass::Mknod | CallClass::Symlink => self.result >= 0,
            // The new name of a rename or link.
            CallClass::Rename | CallClass::Link => self.second_path == Some(path) && self.path != Some(path),
            _ => false,
        };
        !makes && self.result != -i64::from(libc::ENOENT)
    }

    /// True if the call is on what a symbolic link stands for, and not on the link.
    pub fn follows_links(&self) -> bool {
        follows(self.kind.get(), self.flags)
    }
}
