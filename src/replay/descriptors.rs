//! What the processes of a trace have open. A trace says of a call on a descriptor which file it is on, by the name with which
//! it was opened: of several open files of that name, the one with its number is taken, or without numbers one that fits.

use crate::order::ResourceId;
use std::collections::{BTreeMap, HashMap};
use wml_trace::{InodeId, PathId, flags as numbers};

/// An open file: descriptors that were copied or inherited share it. In a replay it has one descriptor.
#[derive(Debug)]
pub(crate) struct ReplayOpenFile {
    pub(crate) node: u32,
    id: Option<InodeId>,
    /// That of the descriptor in the replay.
    pub(crate) position: u64,
    pub(crate) flags: u32,
    /// How many descriptors the program has of it.
    copies: u32,
    /// Its descriptor.
    pub(crate) descriptor: ResourceId,
    pub(crate) place: ResourceId,
}

/// What a call tells of the open file that it is on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SoughtFile {
    /// The number of the descriptor.
    pub(crate) number: Option<u32>,
    pub(crate) id: Option<InodeId>,
    pub(crate) position: Option<u64>,
    pub(crate) flags: Option<u32>,
}

/// A descriptor of a process.
#[derive(Clone, Copy, Debug)]
struct ProcessFd {
    file: u32,
    number: Option<u32>,
    closes_on_exec: bool,
}

/// All processes.
#[derive(Debug, Default)]
pub(crate) struct ReplayDescriptors {
    pub(crate) files: HashMap<u32, ReplayOpenFile>,
    tables: BTreeMap<u32, HashMap<PathId, Vec<ProcessFd>>>,
    /// How many files were opened in all, and the most at a time.
    pub(crate) count: u32,
    pub(crate) most: usize,
}

impl ReplayDescriptors {
    /// A process opens a file. Returns its number.
    pub(crate) fn open(
        &mut self,
        process: u32,
        path: PathId,
        node: u32,
        of: SoughtFile,
        [descriptor, place]: [ResourceId; 2],
    ) -> u32 {
        let file = self.count;
        self.count += 1;
        let (flags, position) = (of.flags.unwrap_or(0), of.position.unwrap_or(0));
        let open = ReplayOpenFile { node, id: of.id, position, flags, copies: 1, descriptor, place };
        self.files.insert(file, open);
        self.most = self.most.max(self.files.len());
        let closes_on_exec = flags as i32 & numbers::O_CLOEXEC != 0;
        self.tables.entry(process).or_default().entry(path).or_default().push(ProcessFd {
            file,
            number: of.number,
            closes_on_exec,
        });
        file
    }

    /// The open file of a call on a descriptor.
    pub(crate) fn find(&self, process: u32, path: PathId, sought: SoughtFile) -> Option<u32> {
        let all = self.tables.get(&process)?.get(&path)?;
        if let [one] = all.as_slice() {
            return Some(one.file);
        }
        let fits = |one: &&ProcessFd| {
            let Some(open) = self.files.get(&one.file) else { return 0 };
            let same = |a: Option<bool>| u32::from(a.unwrap_or(true));
            // Another file that had the name is worse than another position.
            let is_file = same(sought.id.zip(open.id).map(|(a, b)| a.inode == b.inode));
            let access = numbers::O_ACCMODE as u32;
            let is_access = same(sought.flags.map(|flags| flags & access == open.flags & access));
            let is_number = same(sought.number.zip(one.number).map(|(a, b)| a == b));
            let is_there = same(sought.position.map(|position| position == open.position));
            is_number * 8 + is_file * 4 + is_access * 2 + is_there
        };
        // Of those that fit as well the last.
        all.iter().max_by_key(fits).map(|one| one.file)
    }

    /// Any process has this file open: its descriptor was passed.
    pub(crate) fn find_anywhere(&mut self, process: u32, path: PathId, of: SoughtFile) -> Option<u32> {
        let others: Vec<u32> = self.tables.keys().copied().collect();
        let sought = SoughtFile { id: of.id, ..SoughtFile::default() };
        let file = others.into_iter().find_map(|other| self.find(other, path, sought))?;
        self.copy(process, path, file, of.number, false);
        Some(file)
    }

    /// Another descriptor of an open file.
    pub(crate) fn copy(&mut self, process: u32, path: PathId, file: u32, number: Option<u32>, closes_on_exec: bool) {
        if let Some(open) = self.files.get_mut(&file) {
            open.copies += 1;
            let new = ProcessFd { file, number, closes_on_exec };
            self.tables.entry(process).or_default().entry(path).or_default().push(new);
        }
    }

    /// A process closes a descriptor of a file. Returns true if it was the last one.
    pub(crate) fn close(&mut self, process: u32, path: PathId, file: u32, number: Option<u32>) -> bool {
        if let Some(table) = self.tables.get_mut(&process)
            && let Some(all) = table.get_mut(&path)
        {
            let is_it = |one: &ProcessFd| one.file == file && one.number == number;
            let at = all.iter().rposition(is_it).or_else(|| all.iter().rposition(|one| one.file == file));
            if let Some(at) = at {
                all.remove(at);
            }
            if all.is_empty() {
                table.remove(&path);
            }
        }
        self.drop_copy(file)
    }

    fn drop_copy(&mut self, file: u32) -> bool {
        let Some(open) = self.files.get_mut(&file) else { return false };
        open.copies = open.copies.saturating_sub(1);
        open.copies == 0
    }

    /// A child has what its parent has.
    pub(crate) fn fork(&mut self, parent: u32, child: u32) {
        let table = self.tables.get(&parent).cloned().unwrap_or_default();
        for one in table.values().flatten() {
            if let Some(open) = self.files.get_mut(&one.file) {
                open.copies += 1;
            }
        }
        self.tables.insert(child, table);
    }

    /// A process executes another program, or ends: returns the files that nobody has open any more.
    pub(crate) fn leave(&mut self, process: u32, is_end: bool) -> Vec<u32> {
        let Some(mut table) = self.tables.remove(&process) else { return Vec::new() };
        let mut gone = Vec::new();
        table.retain(|_, all| {
            all.retain(|one| {
                let stays = !is_end && !one.closes_on_exec;
                if !stays && self.drop_copy(one.file) {
                    gone.push(one.file);
                }
                stays
            });
            !all.is_empty()
        });
        if !is_end {
            self.tables.insert(process, table);
        }
        gone.sort_unstable();
        gone
    }
}
