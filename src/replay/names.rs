//! Names in one text, each with a zero byte behind it, ready for a system call.

use std::collections::HashMap;
use std::ffi::CStr;

/// A name, by where it begins in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameId(pub(crate) u32);

/// The names.
#[derive(Debug, Default)]
pub(crate) struct ReplayNames {
    text: Vec<u8>,
    numbers: HashMap<Box<[u8]>, NameId>,
}

impl ReplayNames {
    pub(crate) fn number(&mut self, name: &[u8]) -> NameId {
        if let Some(id) = self.numbers.get(name) {
            return *id;
        }
        let id = NameId(self.text.len() as u32);
        self.text.extend_from_slice(name);
        self.text.push(0);
        self.numbers.insert(name.into(), id);
        id
    }

    #[inline]
    pub(crate) fn get(&self, id: NameId) -> &CStr {
        self.text.get(id.0 as usize..).and_then(|text| CStr::from_bytes_until_nul(text).ok()).unwrap_or_default()
    }
}
