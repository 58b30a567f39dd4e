//! The first reading of a trace: what later calls tell of names whose first call does not say what they are.

use std::io::Read;
use wml_trace::{CallClass, PathId, TraceError, TraceEvent, TraceReader, TracedCall, flags as numbers};

/// It was a directory at the beginning: something below it was found.
const DIRECTORY: u8 = 1;
/// It was a symbolic link at the beginning.
const LINK: u8 = 2;
/// A call of the trace made it, or gave the name to something else.
const MADE: u8 = 4;
/// What the name stands for changes in the trace.
const CHANGES: u8 = 8;

/// What is known of the names, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Lookout {
    facts: Vec<u8>,
}

impl Lookout {
    /// Reads a trace to its end.
    pub(crate) fn read<R: Read>(reader: &mut TraceReader<R>) -> Result<Self, TraceError> {
        let mut own = Self::default();
        while let Some(events) = reader.block()? {
            own.facts.resize(reader.paths().len(), 0);
            for event in &events {
                if let TraceEvent::Call(call) = event {
                    own.add(call, |path| reader.paths().parent(path));
                }
            }
        }
        own.facts.resize(reader.paths().len(), 0);
        for entry in reader.tree() {
            if entry.mode & numbers::S_IFMT == numbers::S_IFLNK {
                own.facts[entry.path.0 as usize] |= LINK;
            }
        }
        Ok(own)
    }

    fn add(&mut self, call: &TracedCall, parent: impl Fn(PathId) -> PathId) {
        let class = call.kind.get().class;
        let paths = [call.path, call.second_path].into_iter().flatten();
        if call.result >= 0 {
            for path in paths.clone() {
                let mut above = parent(path);
                while above.0 > PathId::UNKNOWN.0 && self.facts[above.0 as usize] & (DIRECTORY | MADE) == 0 {
                    self.facts[above.0 as usize] |= DIRECTORY;
                    above = parent(above);
                }
            }
        }
        if let Some(path) = call.path.filter(|_| call.result >= 0) {
            let of_link = call.mode.is_some_and(|mode| mode & numbers::S_IFMT == numbers::S_IFLNK);
            let facts = &mut self.facts[path.0 as usize];
            if (class == CallClass::Readlink || of_link && !call.follows_links()) && *facts & MADE == 0 {
                *facts |= LINK;
            }
        }
        let makes = match class {
            CallClass::Open => call.flags.is_some_and(|flags| flags as i32 & numbers::O_CREAT != 0),
            CallClass::Mkdir | CallClass::Mknod | CallClass::Symlink => true,
            CallClass::Rename | CallClass::Link | CallClass::Unlink | CallClass::Rmdir => true,
            _ => false,
        };
        if makes {
            for path in paths {
                let is_made = call.result >= 0 && !(class == CallClass::Open && call.existed_before(path, false));
                self.facts[path.0 as usize] |= CHANGES | if is_made { MADE } else { 0 };
            }
        }
    }

    /// True if a call found something below a name that none had made.
    pub(crate) fn was_directory(&self, path: PathId) -> bool {
        self.facts[path.0 as usize] & DIRECTORY != 0
    }

    pub(crate) fn was_link(&self, path: PathId) -> bool {
        self.facts[path.0 as usize] & LINK != 0
    }

    pub(crate) fn changes(&self, path: PathId) -> bool {
        self.facts[path.0 as usize] & CHANGES != 0
    }

    pub(crate) fn len(&self) -> usize {
        self.facts.len()
    }
}
