//! All paths of a trace, as a tree: each has its directory and its last name. A path costs its last name and some 20 bytes.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A path, by its number in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(pub u32);

impl PathId {
    pub const ROOT: Self = Self(0);
    /// A directory that is not known, to which names are relative.
    pub const UNKNOWN: Self = Self(1);
}

/// The longest name: one that is too long for a file is looked for too.
const LONGEST_NAME: usize = libc::PATH_MAX as usize;
/// How deep a path can be. What is deeper is not known.
const DEEPEST: u16 = 2048;

#[derive(Clone, Copy, Debug)]
struct PathNode {
    parent: u32,
    depth: u16,
    /// Where its name ends in the text; it begins where that of the node before ends.
    end: u64,
}

/// The paths.
#[derive(Debug)]
pub struct PathTable {
    nodes: Vec<PathNode>,
    text: Vec<u8>,
    /// Numbers of nodes by hash, 0 where there is none: the root is found without it.
    slots: Vec<u32>,
    hashes: RandomState,
}

impl Default for PathTable {
    fn default() -> Self {
        Self::new()
    }
}

impl PathTable {
    /// A table of the two roots.
    pub fn new() -> Self {
        let node = PathNode { parent: 0, depth: 0, end: 0 };
        Self { nodes: vec![node, node], text: Vec::new(), slots: vec![0; 64], hashes: RandomState::new() }
    }

    /// How many there are.
    #[allow(clippy::len_without_is_empty, reason = "it is not empty")]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The directory of a path; the roots are their own.
    pub fn parent(&self, id: PathId) -> PathId {
        if id == PathId::UNKNOWN { id } else { PathId(self.nodes[id.0 as usize].parent) }
    }

    /// The last name.
    pub fn name(&self, id: PathId) -> &[u8] {
        let at = id.0 as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.nodes[before].end);
        &self.text[start as usize..self.nodes[at].end as usize]
    }

    fn hash(&self, parent: PathId, name: &[u8]) -> u64 {
        let mut hasher = self.hashes.build_hasher();
        hasher.write_u32(parent.0);
        hasher.write(name);
        hasher.finish()
    }

    /// The slot of a path, or the empty one where it belongs.
    fn slot(&self, parent: PathId, name: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.hash(parent, name) as usize & mask;
        loop {
            let id = PathId(self.slots[at]);
            if id.0 == 0 || self.nodes[id.0 as usize].parent == parent.0 && self.name(id) == name {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// True if a directory can have this name: what the table takes, a reader takes.
    pub(crate) fn takes(&self, parent: PathId, name: &[u8]) -> bool {
        let is_name = !name.contains(&b'/') && !name.contains(&0) && name != b"." && name != b"..";
        is_name && (1..=LONGEST_NAME).contains(&name.len()) && self.nodes[parent.0 as usize].depth < DEEPEST
    }

    /// The path of a name in a directory; an unknown one if there can be no such name.
    pub fn entry(&mut self, parent: PathId, name: &[u8]) -> PathId {
        let at = self.slot(parent, name);
        if self.slots[at] != 0 {
            return PathId(self.slots[at]);
        }
        let Some(id) = u32::try_from(self.nodes.len()).ok().filter(|_| self.takes(parent, name)) else {
            return PathId::UNKNOWN;
        };
        self.text.extend_from_slice(name);
        let depth = self.nodes[parent.0 as usize].depth + 1;
        self.nodes.push(PathNode { parent: parent.0, depth, end: self.text.len() as u64 });
        self.slots[at] = id;
        if self.nodes.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        PathId(id)
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        for id in 2..self.nodes.len() as u32 {
            let at = self.slot(PathId(self.nodes[id as usize].parent), self.name(PathId(id)));
            self.slots[at] = id;
        }
    }

    /// The path of a name as a program gives it, relative to a directory. `..` is resolved by the text.
    pub fn resolve(&mut self, dir: PathId, name: &[u8]) -> PathId {
        let mut at = if name.first() == Some(&b'/') { PathId::ROOT } else { dir };
        for part in name.split(|c| *c == b'/') {
            at = match part {
                b"" | b"." => at,
                b".." => self.parent(at),
                name => self.entry(at, name),
            };
        }
        at
    }

    /// The whole path. Relative to a directory that is not known, it has no `/` at the beginning.
    pub fn path(&self, id: PathId) -> Vec<u8> {
        let mut parts = Vec::new();
        let mut at = id;
        while at.0 > PathId::UNKNOWN.0 {
            parts.push(self.name(at));
            at = self.parent(at);
        }
        parts.reverse();
        let text = parts.join(&b'/');
        if at == PathId::ROOT { [b"/", text.as_slice()].concat() } else { text }
    }

    /// How many directories it is below its root.
    pub fn depth(&self, id: PathId) -> usize {
        usize::from(self.nodes[id.0 as usize].depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_resolved_and_paths_come_back() {
        let mut paths = PathTable::new();
        let dir = paths.resolve(PathId::ROOT, b"/a//b/./c/..");
        assert_eq!(paths.path(dir), b"/a/b");
        let file = paths.resolve(dir, b"../x y");
        assert_eq!((paths.path(file), paths.depth(file)), (b"/a/x y".to_vec(), 2));
        assert_eq!(paths.resolve(PathId::ROOT, b"../.."), PathId::ROOT);
        assert_eq!(paths.path(PathId::ROOT), b"/");
        let unknown = paths.resolve(PathId::UNKNOWN, b"d/e");
        assert_eq!(paths.path(unknown), b"d/e");
        assert_eq!(paths.resolve(PathId::ROOT, b"/a/x y"), file);
    }

    #[test]
    fn what_can_be_no_name_is_not_known() {
        let mut paths = PathTable::new();
        let mut resolve = |name: &[u8]| paths.resolve(PathId::ROOT, name);
        let longest = [b'a'; LONGEST_NAME + 1];
        assert_ne!(resolve(&longest[1..]), PathId::UNKNOWN);
        assert_eq!((resolve(&longest), resolve(b"/a\0b")), (PathId::UNKNOWN, PathId::UNKNOWN));
        let deepest = b"d/".repeat(usize::from(DEEPEST));
        assert_ne!(resolve(&deepest), PathId::UNKNOWN);
        let unknown = resolve(&[&deepest, b"e/f".as_slice()].concat());
        assert_eq!(paths.path(unknown), b"f");
    }

    #[test]
    fn many_paths_keep_their_numbers() {
        let mut paths = PathTable::new();
        let all: Vec<PathId> =
            (0..5000).map(|n| paths.resolve(PathId::ROOT, format!("/d{}/f{n}", n % 7).as_bytes())).collect();
        assert_eq!(paths.len(), 2 + 7 + 5000);
        for (n, id) in all.iter().enumerate() {
            assert_eq!(paths.path(*id), format!("/d{}/f{n}", n % 7).into_bytes());
            assert_eq!(paths.resolve(PathId::ROOT, &paths.path(*id)), *id);
        }
    }
}
