//! What a trace says of each name: whether it existed at the beginning, its size, and what happened to it.

use crate::action::Before;
use wml_trace::{CallClass, PathId, TracedCall, TreeEntry, flags as numbers};

/// What is known of a name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileFacts {
    pub(crate) calls: u32,
    pub(crate) opens: u32,
    /// What is done with it: reads, writes, syncs, looks, all else.
    pub(crate) does: [u32; 5],
    /// Whether it existed at the beginning; `None` as long as no call said so.
    pub(crate) existed: Option<bool>,
    pub(crate) exists: bool,
    pub(crate) is_dir: bool,
    pub(crate) first_size: Option<u64>,
    pub(crate) most_size: u64,
    /// The size with which a file that was made was closed first.
    pub(crate) made_size: Option<u64>,
    pub(crate) created: u32,
    pub(crate) removed: u32,
    /// It was made in the trace and renamed to this: a temporary name, if that is elsewhere.
    pub(crate) became: Option<PathId>,
}

impl FileFacts {
    /// How often a program comes to the file: to open it, or else to look at it or change its name. Each call on one that
    /// was open before is a visit.
    pub(crate) fn visits(&self) -> u32 {
        let [reads, writes, syncs, looks, _] = self.does;
        match self.opens {
            0 if reads + writes + syncs > 0 => self.calls,
            0 => looks.max(1),
            opens => opens,
        }
    }
}

/// All names, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Files {
    facts: Vec<FileFacts>,
    /// True if the trace has the tree at its beginning: a name that is not in it did not exist.
    has_tree: bool,
}

impl Files {
    pub(crate) fn new(has_tree: bool) -> Self {
        Self { has_tree, ..Self::default() }
    }

    pub(crate) fn get(&self, path: PathId) -> FileFacts {
        self.facts.get(path.0 as usize).copied().unwrap_or_default()
    }

    fn at(&mut self, path: PathId) -> &mut FileFacts {
        let n = path.0 as usize;
        if self.facts.len() <= n {
            self.facts.resize(n + 1, FileFacts::default());
        }
        &mut self.facts[n]
    }

    /// True if the trace has the tree at its beginning.
    pub(crate) fn has_tree(&self) -> bool {
        self.has_tree
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (PathId, &FileFacts)> {
        self.facts.iter().enumerate().map(|(n, facts)| (PathId(n as u32), facts))
    }

    /// The tree at the beginning.
    pub(crate) fn add_tree(&mut self, tree: &[TreeEntry]) {
        for entry in tree {
            let facts = self.at(entry.path);
            facts.existed = Some(true);
            facts.exists = true;
            facts.is_dir = entry.mode & numbers::S_IFMT == numbers::S_IFDIR;
            facts.first_size = Some(entry.size);
            facts.most_size = entry.size;
        }
    }

    /// Everything is as at the beginning, for a second look at the calls.
    pub(crate) fn rewind(&mut self) {
        for facts in &mut self.facts {
            facts.exists = facts.existed == Some(true);
        }
    }

    /// Whether the name of a call exists before it.
    fn exists(&mut self, path: PathId, call: &TracedCall) -> bool {
        let has_tree = self.has_tree;
        let facts = self.at(path);
        if facts.existed.is_some() {
            return facts.exists;
        }
        let existed = call.existed_before(path, has_tree);
        facts.existed = Some(existed);
        facts.exists = existed;
        if existed {
            facts.first_size = facts.first_size.or(call.size).or(call.stat_size);
        }
        existed
    }

    /// What is known before a call.
    pub(crate) fn before(&mut self, call: &TracedCall) -> Before {
        let is_dir_now = call.mode.is_some_and(|mode| mode & numbers::S_IFMT == numbers::S_IFDIR)
            || call.kind.get().class == CallClass::List;
        let mut before = Before::default();
        if let Some(path) = call.path {
            before.exists = self.exists(path, call);
            let facts = self.at(path);
            facts.is_dir |= is_dir_now;
            before.is_dir = facts.is_dir;
        }
        if let Some(second) = call.second_path {
            before.second_exists = self.exists(second, call);
        }
        before
    }

    /// Counts a call, and follows what it changes.
    pub(crate) fn apply(&mut self, call: &TracedCall, before: Before) {
        let class = call.kind.get().class;
        let Some(path) = call.path else { return };
        let facts = self.at(path);
        facts.calls += 1;
        let what = match class {
            CallClass::Read | CallClass::List => 0,
            CallClass::Write | CallClass::Copy | CallClass::Truncate => 1,
            CallClass::Fsync | CallClass::Fdatasync | CallClass::SyncRange => 2,
            CallClass::Stat | CallClass::Fstat | CallClass::Access => 3,
            _ => 4,
        };
        facts.does[what] += 1;
        let seen = call.size.unwrap_or(0).max(call.stat_size.unwrap_or(0));
        facts.most_size = facts.most_size.max(seen);
        if facts.existed == Some(true) && facts.first_size.is_none() && facts.created == 0 {
            facts.first_size = call.size.or(call.stat_size);
        }
        if call.result < 0 {
            return;
        }
        match class {
            CallClass::Open => {
                facts.opens += 1;
                if !facts.exists {
                    facts.exists = true;
                    facts.created += 1;
                }
            }
            CallClass::Close if facts.created > 0 => facts.made_size = facts.made_size.or(call.size),
            CallClass::Read | CallClass::Write => {
                let end = call.offset.unwrap_or(0).saturating_add(call.result as u64);
                facts.most_size = facts.most_size.max(end);
            }
            CallClass::Mkdir | CallClass::Symlink => {
                facts.is_dir |= class == CallClass::Mkdir;
                facts.exists = true;
                facts.created += 1;
            }
            CallClass::Unlink | CallClass::Rmdir => {
                facts.exists = false;
                facts.removed += 1;
            }
            CallClass::Rename => {
                facts.exists = false;
                facts.removed += 1;
                if facts.existed != Some(true) {
                    facts.became = call.second_path;
                }
                let (size, made) = (facts.most_size, facts.made_size.or(facts.first_size));
                let is_dir = facts.is_dir;
                if let Some(second) = call.second_path {
                    let second = self.at(second);
                    second.removed += u32::from(before.second_exists);
                    second.created += 1;
                    second.exists = true;
                    second.is_dir |= is_dir;
                    second.most_size = second.most_size.max(size);
                    second.made_size = second.made_size.or(made);
                }
            }
            CallClass::Link => {
                let (size, made) = (facts.most_size, facts.made_size.or(facts.first_size));
                if let Some(second) = call.second_path {
                    let second = self.at(second);
                    second.created += 1;
                    second.exists = true;
                    second.most_size = second.most_size.max(size);
                    second.made_size = second.made_size.or(made);
                }
            }
            _ => {}
        }
    }
}
