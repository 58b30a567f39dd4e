//! The names of a trace as it goes on: which exist, and what they are. What existed at the beginning comes to light as calls
//! tell of it, and is made before the replay.
//!
//! A name is a place: a directory and the name in it. So a call after the rename of a directory still finds its files, and
//! a name that was first found after it existed below the old one.

pub(crate) use crate::file_kind::FileKind;
use crate::lookout::Lookout;
use crate::names::{NameId, ReplayNames};
use crate::order::{ReplayOrder, ResourceId};
use crate::space::ReplaySpace;
use std::collections::{BTreeSet, HashMap};
use wml_trace::{InodeId, PathId, PathTable, TracedCall, flags as numbers};

/// No file.
pub(crate) const NOTHING: u32 = u32::MAX;
/// The root of all.
pub(crate) const ROOT: u32 = 0;
/// Below it are the names that are relative to a directory that is not known.
const RELATIVE: &[u8] = b".relative";
/// Below it is what symbolic links lead to, if the trace does not say what that is.
const TARGETS: &[u8] = b".targets";
/// Nothing has this name there.
const MISSING: &[u8] = b"missing";
/// How many links a path may have.
const MOST_LINKS: usize = 40;
/// How long the text of a link is, if the trace does not tell.
pub(crate) const LINK_LENGTH: u64 = 16;

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePlace {
    pub(crate) dir: u32,
    pub(crate) name: NameId,
}

/// A file, directory or link.
#[derive(Debug)]
pub(crate) struct FileNode {
    pub(crate) kind: FileKind,
    /// It existed at the beginning.
    pub(crate) is_initial: bool,
    /// A call changed its size, so that later calls say nothing of that at the beginning.
    pub(crate) is_changed: bool,
    /// Of a directory: the trace has the names that it had at the beginning.
    is_listed: bool,
    pub(crate) is_size_known: bool,
    pub(crate) size: u64,
    pub(crate) first_size: u64,
    /// How many names it has.
    pub(crate) names: u32,
    pub(crate) place: FilePlace,
    id: Option<(u64, u64)>,
    /// Of a directory: its number in `dirs`, and all paths that it ever has.
    entries: u32,
    own_paths: Vec<PathId>,
    /// Of a directory: the number of the descriptor by which its names are reached.
    pub(crate) handle: u32,
    /// Of a directory that the trace makes: the call.
    pub(crate) made_by: Option<(u32, u32)>,
    /// Of a link.
    target: Option<FilePlace>,
    pub(crate) data: ResourceId,
    pub(crate) locks: ResourceId,
}

impl FileNode {
    /// The bytes of content that it has at the beginning.
    pub(crate) fn first_bytes(&self) -> u64 {
        if matches!(self.kind, FileKind::File | FileKind::Unknown) { self.first_size } else { 0 }
    }
}

/// What is known of a name.
#[derive(Clone, Copy, Debug)]
struct DirEntry {
    /// `NOTHING` if it does not exist.
    node: u32,
    resource: ResourceId,
}

/// Where a path leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundPath {
    pub(crate) place: FilePlace,
    /// What a call names in that directory: more than one component if the path is cut.
    pub(crate) name: NameId,
    /// `NOTHING` if it does not exist.
    pub(crate) node: u32,
    /// The path goes on below a name that does not exist, or is no directory.
    pub(crate) is_cut: bool,
}

/// The names.
#[derive(Debug)]
pub(crate) struct ReplayTree {
    pub(crate) nodes: Vec<FileNode>,
    dirs: Vec<HashMap<NameId, DirEntry>>,
    pub(crate) names: ReplayNames,
    /// All paths that ever exist.
    pub(crate) paths: PathTable,
    /// What existed at the beginning, in an order in which it can be made.
    pub(crate) initial: Vec<(FilePlace, u32)>,
    ids: HashMap<(u64, u64), u32>,
    /// Names that stand for something else at different times: others need no order.
    changing: BTreeSet<NameId>,
    lookout: Lookout,
    has_tree: bool,
    /// The directories whose names are used.
    pub(crate) handles: Vec<u32>,
    hidden: u32,
    /// The last path is one of a name that nothing made.
    pub(crate) is_unexplained: bool,
    chain: Vec<PathId>,
    /// The resources of the names on the way to the last path.
    pub(crate) passed: Vec<ResourceId>,
    pub(crate) space: ReplaySpace,
}

impl ReplayTree {
    pub(crate) fn new(lookout: Lookout, paths: &PathTable, has_tree: bool) -> Self {
        let mut own = Self {
            nodes: Vec::new(),
            dirs: Vec::new(),
            names: ReplayNames::default(),
            paths: PathTable::new(),
            initial: Vec::new(),
            ids: HashMap::new(),
            changing: BTreeSet::new(),
            lookout,
            has_tree,
            handles: Vec::new(),
            hidden: NOTHING,
            is_unexplained: false,
            chain: Vec::new(),
            passed: Vec::new(),
            space: ReplaySpace::default(),
        };
        for path in (0..own.lookout.len() as u32).map(PathId) {
            if own.lookout.changes(path) {
                let name = own.names.number(paths.name(path));
                own.changing.insert(name);
            }
        }
        let here = own.names.number(b".");
        let root = own.add_node(FileKind::Directory, true, FilePlace { dir: ROOT, name: here });
        own.nodes[root as usize].own_paths = vec![PathId::ROOT];
        own
    }

    fn add_node(&mut self, kind: FileKind, is_initial: bool, place: FilePlace) -> u32 {
        let id = self.nodes.len() as u32;
        self.nodes.push(FileNode {
            kind: FileKind::Unknown,
            is_initial,
            is_changed: false,
            is_listed: false,
            is_size_known: !is_initial,
            size: 0,
            first_size: 0,
            names: 0,
            place,
            id: None,
            entries: NOTHING,
            own_paths: Vec::new(),
            handle: NOTHING,
            made_by: None,
            target: None,
            data: ResourceId::NONE,
            locks: ResourceId::NONE,
        });
        self.set_kind(id, kind);
        if !is_initial {
            self.space.is_made(kind);
        }
        id
    }

    pub(crate) fn node(&mut self, id: u32) -> &mut FileNode {
        &mut self.nodes[id as usize]
    }

    /// A call tells what a file is.
    pub(crate) fn set_kind(&mut self, id: u32, kind: FileKind) {
        let node = &mut self.nodes[id as usize];
        if node.kind != FileKind::Unknown || kind == FileKind::Unknown {
            return;
        }
        node.kind = kind;
        match kind {
            FileKind::Directory => {
                node.entries = self.dirs.len() as u32;
                self.dirs.push(HashMap::new());
            }
            FileKind::Link if node.is_initial => (node.size, node.first_size) = (LINK_LENGTH, LINK_LENGTH),
            _ => {}
        }
    }

    fn entry(&self, place: FilePlace) -> Option<DirEntry> {
        self.dirs.get(self.nodes[place.dir as usize].entries as usize)?.get(&place.name).copied()
    }

    fn set_entry(&mut self, place: FilePlace, node: u32) {
        self.set_kind(place.dir, FileKind::Directory);
        let dir = &self.nodes[place.dir as usize];
        if let Some(entries) = self.dirs.get_mut(dir.entries as usize) {
            let new = DirEntry { node, resource: ResourceId::NONE };
            entries.entry(place.name).or_insert(new).node = node;
        }
    }

    /// The resource of a name.
    pub(crate) fn resource(&mut self, place: FilePlace, order: &mut ReplayOrder) -> ResourceId {
        if self.entry(place).is_none() {
            self.set_entry(place, NOTHING);
        }
        let entries = self.nodes[place.dir as usize].entries as usize;
        match self.dirs.get_mut(entries).and_then(|entries| entries.get_mut(&place.name)) {
            Some(entry) => order.at(&mut entry.resource),
            // Below a file there are no names.
            None => order.add(),
        }
    }

    /// Gives a file a name.
    fn attach(&mut self, place: FilePlace, node: u32) {
        self.set_entry(place, node);
        self.add_paths(place, node);
        let node = self.node(node);
        node.names += 1;
        node.place = place;
    }

    /// The paths that a file may have: if calls come in another order, it is below any that its directory ever has.
    fn add_paths(&mut self, place: FilePlace, node: u32) -> bool {
        let mut is_new = false;
        for n in 0..self.nodes[place.dir as usize].own_paths.len() {
            let above = self.nodes[place.dir as usize].own_paths[n];
            let path = self.paths.entry(above, self.names.get(place.name).to_bytes());
            let file = &mut self.nodes[node as usize];
            if matches!(file.kind, FileKind::Directory | FileKind::Unknown) && !file.own_paths.contains(&path) {
                file.own_paths.push(path);
                is_new = true;
            }
        }
        is_new
    }

    /// A call that failed to make a name may make it if calls come in another order.
    pub(crate) fn may_make(&mut self, found: &FoundPath) {
        for n in 0..self.nodes[found.place.dir as usize].own_paths.len() {
            let above = self.nodes[found.place.dir as usize].own_paths[n];
            self.paths.resolve(above, self.names.get(found.name).to_bytes());
        }
    }

    /// Makes a file in the trace.
    pub(crate) fn create(&mut self, place: FilePlace, kind: FileKind) -> u32 {
        let node = self.add_node(kind, false, place);
        self.attach(place, node);
        node
    }

    /// Makes a file that has no name.
    pub(crate) fn create_unnamed(&mut self, dir: u32) -> u32 {
        let name = self.names.number(b".");
        self.add_node(FileKind::File, false, FilePlace { dir, name })
    }

    /// It turns out that a file existed at the beginning.
    fn reveal(&mut self, place: FilePlace, kind: FileKind) -> u32 {
        let node = self.add_node(kind, true, place);
        self.attach(place, node);
        self.initial.push((place, node));
        node
    }

    /// A path of the tree at the beginning.
    pub(crate) fn add_initial(&mut self, path: PathId, mode: u32, size: u64, all: &PathTable) {
        // A device or a socket can't be made again.
        let kind = FileKind::of_mode(mode).unwrap_or(FileKind::File);
        let mut at = ROOT;
        self.set_chain(path, all);
        for n in 0..self.chain.len() {
            let place = FilePlace { dir: at, name: self.component(n, all) };
            let is_last = n + 1 == self.chain.len();
            self.nodes[at as usize].is_listed |= is_last;
            at = match self.entry(place) {
                Some(known) if known.node != NOTHING => known.node,
                _ => self.reveal(place, if is_last { kind } else { FileKind::Directory }),
            };
            self.nodes[at as usize].is_listed |= is_last;
            if is_last && matches!(kind, FileKind::File | FileKind::Link) {
                let node = self.node(at);
                (node.size, node.first_size, node.is_size_known) = (size, size, true);
            }
        }
    }

    fn set_chain(&mut self, path: PathId, all: &PathTable) {
        self.chain.clear();
        let mut at = path;
        while at.0 > PathId::UNKNOWN.0 {
            self.chain.push(at);
            at = all.parent(at);
        }
        if at == PathId::UNKNOWN {
            self.chain.push(at);
        }
        self.chain.reverse();
    }

    fn component(&mut self, n: usize, all: &PathTable) -> NameId {
        match self.chain[n] {
            PathId::UNKNOWN => self.names.number(RELATIVE),
            path => self.names.number(all.name(path)),
        }
    }

    /// Where a path of a call leads. What it tells of the beginning is taken.
    pub(crate) fn find(
        &mut self,
        path: PathId,
        call: &TracedCall,
        follows: bool,
        all: &PathTable,
        order: &mut ReplayOrder,
    ) -> FoundPath {
        self.passed.clear();
        self.set_chain(path, all);
        let mut links = 0;
        let mut place = self.nodes[ROOT as usize].place;
        let mut at = ROOT;
        let is_missing = call.result == -i64::from(numbers::ENOENT) || call.result == -i64::from(numbers::ENOTDIR);
        for n in 0..self.chain.len() {
            let (dir, component) = (at, self.chain[n]);
            let is_last = n + 1 == self.chain.len();
            place = FilePlace { dir, name: self.component(n, all) };
            at = match self.entry(place) {
                Some(known) => known.node,
                None => {
                    let exists = match is_last {
                        true => call.existed_before(component, self.has_tree),
                        false => !is_missing || self.lookout.was_directory(component),
                    };
                    let can_be = self.nodes[dir as usize].is_initial;
                    self.is_unexplained |= exists && (!can_be || self.nodes[dir as usize].is_listed);
                    match exists && can_be {
                        true if self.lookout.was_link(component) => self.reveal(place, FileKind::Link),
                        true if is_last => self.reveal(place, FileKind::Unknown),
                        true => self.reveal(place, FileKind::Directory),
                        false => {
                            self.set_entry(place, NOTHING);
                            NOTHING
                        }
                    }
                }
            };
            if self.changing.contains(&place.name) && !is_last {
                let resource = self.resource(place, order);
                self.passed.push(resource);
            }
            while at != NOTHING && self.nodes[at as usize].kind == FileKind::Link && (follows || !is_last) {
                let resource = self.resource(place, order);
                self.passed.push(resource);
                links += 1;
                if links > MOST_LINKS {
                    return self.cut(place, at, n, all);
                }
                let below = (n + 2 == self.chain.len()).then(|| self.component(n + 1, all));
                place = self.target(at, call, is_last, below);
                at = self.entry(place).map_or(NOTHING, |known| known.node);
            }
            if is_last {
                break;
            }
            if at == NOTHING {
                return self.cut(place, at, n, all);
            }
            let kind = self.nodes[at as usize].kind;
            if kind == FileKind::Unknown && call.result != -i64::from(numbers::ENOTDIR) {
                self.set_kind(at, FileKind::Directory);
            } else if kind != FileKind::Directory {
                self.set_kind(at, FileKind::File);
                return self.cut(place, at, n, all);
            }
        }
        FoundPath { place, name: place.name, node: at, is_cut: false }
    }

    /// A path that goes on where it can't.
    fn cut(&mut self, place: FilePlace, node: u32, at: usize, all: &PathTable) -> FoundPath {
        let mut text = self.names.get(place.name).to_bytes().to_vec();
        for part in &self.chain[at + 1..] {
            text.push(b'/');
            text.extend_from_slice(all.name(*part));
        }
        FoundPath { place, name: self.names.number(&text), node, is_cut: true }
    }

    /// What a link leads to: what the call says, or else something that nothing else leads to. `below` is the last name of the
    /// path, if that is in what the link leads to.
    fn target(&mut self, link: u32, call: &TracedCall, is_last: bool, below: Option<NameId>) -> FilePlace {
        if let Some(known) = self.nodes[link as usize].target {
            return known;
        }
        let known = call.file.and_then(|id| self.ids.get(&key(id)).copied());
        let known = known.map(|node| &self.nodes[node as usize]).filter(|node| node.kind != FileKind::Link);
        let known = match is_last {
            true => known.map(|node| node.place),
            false => known
                .filter(|node| below == Some(node.place.name))
                .map(|node| self.nodes[node.place.dir as usize].place),
        };
        let place = match known {
            Some(place) => place,
            None => {
                if self.hidden == NOTHING {
                    let place = FilePlace { dir: ROOT, name: self.names.number(TARGETS) };
                    self.hidden = self.reveal(place, FileKind::Directory);
                }
                let place = FilePlace { dir: self.hidden, name: self.names.number(link.to_string().as_bytes()) };
                match is_last {
                    // It may come to be there.
                    true if call.result == -i64::from(numbers::ENOENT) => {
                        let name = self.names.number(MISSING);
                        return FilePlace { name, ..place };
                    }
                    true => drop(self.reveal(place, FileKind::Unknown)),
                    false => drop(self.reveal(place, FileKind::Directory)),
                }
                place
            }
        };
        self.nodes[link as usize].target = Some(place);
        place
    }

    /// Takes what a call tells of a file that it found. Returns the file: a second name of one that is known is one of it.
    pub(crate) fn learn(&mut self, found: FoundPath, call: &TracedCall) -> u32 {
        let mut node = found.node;
        if let Some(id) = call.file.filter(|_| !found.is_cut) {
            match self.ids.get(&key(id)).copied() {
                Some(other) if other != node => {
                    let (one, two) = (&self.nodes[other as usize], &self.nodes[node as usize]);
                    let may_be_one = one.is_initial && two.is_initial && one.names > 0 && two.id.is_none();
                    let is_file = |kind| matches!(kind, FileKind::Unknown | FileKind::File);
                    if may_be_one && is_file(one.kind) && is_file(two.kind) && !two.is_changed {
                        self.merge(found.place, node, other);
                        node = other;
                    }
                }
                Some(_) => {}
                None => self.set_id(node, id),
            }
        }
        if let Some(kind) = call.mode.and_then(FileKind::of_mode) {
            self.set_kind(node, kind);
        }
        node
    }

    /// The second name of a file that existed at the beginning.
    fn merge(&mut self, place: FilePlace, node: u32, into: u32) {
        self.set_entry(place, into);
        self.nodes[into as usize].names += 1;
        self.nodes[node as usize].names -= 1;
        self.space.is_other(node, into);
        if let Some(known) = self.initial.iter_mut().rev().find(|(at, was)| *at == place && *was == node) {
            known.1 = into;
        }
    }

    pub(crate) fn set_id(&mut self, node: u32, id: InodeId) {
        self.nodes[node as usize].id = Some(key(id));
        self.ids.insert(key(id), node);
    }

    /// A call tells the size of a file.
    pub(crate) fn learn_size(&mut self, node: u32, size: u64) {
        let node = &mut self.nodes[node as usize];
        if node.is_initial && !node.is_changed && !node.is_size_known {
            (node.size, node.first_size, node.is_size_known) = (size, size, true);
        }
    }

    /// A read found data up to here.
    pub(crate) fn learn_least_size(&mut self, node: u32, least: u64) {
        let node = &mut self.nodes[node as usize];
        if node.is_initial && !node.is_changed && !node.is_size_known {
            (node.size, node.first_size) = (node.size.max(least), node.size.max(least));
        }
    }

    pub(crate) fn set_size(&mut self, node: u32, size: u64) {
        let node = &mut self.nodes[node as usize];
        (node.size, node.is_changed) = (size, true);
    }

    /// A name goes, and maybe its file.
    pub(crate) fn remove(&mut self, place: FilePlace) {
        let node = self.detach(place);
        self.may_be_gone(node);
    }

    /// A name goes. Returns its file.
    fn detach(&mut self, place: FilePlace) -> u32 {
        let node = self.entry(place).map_or(NOTHING, |known| known.node);
        if node != NOTHING {
            self.set_entry(place, NOTHING);
            let file = &mut self.nodes[node as usize];
            file.names = file.names.saturating_sub(1);
            if let Some(id) = file.id.filter(|_| file.names == 0) {
                self.ids.remove(&id);
            }
        }
        node
    }

    pub(crate) fn rename(&mut self, from: FilePlace, to: FilePlace, exchanges: bool) {
        let at = |place| self.entry(place).map_or(NOTHING, |known| known.node);
        // Of two names of one file both stay.
        if at(from) == NOTHING || at(from) == at(to) {
            return;
        }
        let (node, replaced) = (self.detach(from), self.detach(to));
        self.attach(to, node);
        self.move_below(node);
        if exchanges && replaced != NOTHING {
            self.attach(from, replaced);
            self.move_below(replaced);
        }
        for node in [node, replaced] {
            let file = self.nodes.get(node as usize).filter(|file| file.names > 0);
            if let Some(id) = file.and_then(|file| file.id) {
                self.ids.insert(id, node);
            }
            self.may_be_gone(node);
        }
    }

    /// The paths below a directory have become others.
    fn move_below(&mut self, node: u32) {
        let mut moved = vec![node];
        while let Some(dir) = moved.pop() {
            let Some(entries) = self.dirs.get(self.nodes[dir as usize].entries as usize) else { continue };
            let below: Vec<(NameId, u32)> =
                entries.iter().filter(|(_, e)| e.node != NOTHING).map(|(name, e)| (*name, e.node)).collect();
            for (name, node) in below {
                if self.add_paths(FilePlace { dir, name }, node) {
                    moved.push(node);
                }
            }
        }
    }

    pub(crate) fn link(&mut self, node: u32, place: FilePlace) {
        let old = self.nodes[node as usize].place;
        let is_first = self.nodes[node as usize].names == 0;
        self.attach(place, node);
        if !is_first {
            self.nodes[node as usize].place = old;
        }
    }

    /// The number of the descriptor of a directory.
    pub(crate) fn handle(&mut self, dir: u32) -> u32 {
        let node = &mut self.nodes[dir as usize];
        if node.handle == NOTHING {
            node.handle = self.handles.len() as u32;
            self.handles.push(dir);
        }
        node.handle
    }

    /// The names that exist now, below a directory: paths from the root with their files.
    pub(crate) fn at_end(&self) -> Vec<(Vec<u8>, u32)> {
        let mut found = Vec::new();
        let mut open = vec![(Vec::new(), ROOT)];
        while let Some((above, dir)) = open.pop() {
            let Some(entries) = self.dirs.get(self.nodes[dir as usize].entries as usize) else { continue };
            for (name, entry) in entries.iter().filter(|(_, entry)| entry.node != NOTHING) {
                let path: Vec<u8> = [above.as_slice(), b"/", self.names.get(*name).to_bytes()].concat();
                if self.nodes[entry.node as usize].kind == FileKind::Directory {
                    open.push((path.clone(), entry.node));
                }
                found.push((path, entry.node));
            }
        }
        found.sort();
        found
    }
}

/// What identifies a file while it exists.
fn key(id: InodeId) -> (u64, u64) {
    (id.device, id.inode)
}
