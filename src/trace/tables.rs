//! What the processes of a trace have open.

use super::call::{InodeId, TimeBetween};
use super::paths::PathId;
use super::raw::FdFacts;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// An open file description: descriptors that were copied or inherited share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenFile {
    pub path: Option<PathId>,
    pub id: Option<InodeId>,
    pub mode: Option<u32>,
    pub position: Option<u64>,
    pub flags: Option<u32>,
    /// True if the trace is about it.
    pub is_inside: bool,
}

impl OpenFile {
    /// True if it is a regular file or a directory, or may be one.
    pub(crate) fn may_be_recorded(&self) -> bool {
        self.mode.is_none_or(|mode| matches!(mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR | 0))
    }

    pub(crate) fn appends(&self) -> bool {
        self.flags.is_some_and(|flags| flags & libc::O_APPEND as u32 != 0)
    }

    /// Takes what the source knows better.
    pub(crate) fn learn(&mut self, facts: &FdFacts) {
        self.id = facts.id.or(self.id);
        self.mode = facts.mode.or(self.mode);
        self.position = facts.position.or(self.position);
        self.flags = facts.flags.or(self.flags);
    }
}

pub(crate) type SharedFile = Rc<RefCell<OpenFile>>;

/// The descriptors of a process, and its mappings.
#[derive(Clone, Debug, Default)]
pub(crate) struct FdTable {
    /// The files, each with whether `exec` closes the descriptor.
    pub fds: HashMap<i32, (SharedFile, bool)>,
    /// Mappings by their first address, each with its length.
    pub maps: BTreeMap<u64, (u64, SharedFile)>,
}

impl FdTable {
    pub(crate) fn exec(&mut self) {
        self.fds.retain(|_, (_, closes)| !*closes);
        self.maps.clear();
    }

    /// The file that is mapped at an address.
    pub(crate) fn mapped(&self, address: u64) -> Option<SharedFile> {
        let (start, (length, file)) = self.maps.range(..=address).next_back()?;
        (address < start.saturating_add(*length)).then(|| Rc::clone(file))
    }
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct TracedThread {
    pub process: u32,
    pub table: Rc<RefCell<FdTable>>,
    pub cwd: Rc<RefCell<Option<PathId>>>,
    /// The time of calls that were left out, which is time between those that are recorded.
    pub between: Option<TimeBetween>,
}

impl TracedThread {
    /// The path of an open file.
    pub(crate) fn path(&self, fd: i32) -> Option<PathId> {
        self.table.borrow().fds.get(&fd).and_then(|(file, _)| file.borrow().path)
    }
}

/// All threads.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    threads: HashMap<u32, TracedThread>,
}

impl Processes {
    /// The thread, or else another one of its process.
    pub(crate) fn find(&self, thread: u32, process: u32) -> Option<&TracedThread> {
        let of_process = || self.threads.values().find(|other| other.process == process);
        self.threads.get(&thread).or_else(|| self.threads.get(&process)).or_else(of_process)
    }

    /// The thread. One that is not known has the tables of its process.
    pub(crate) fn thread(&mut self, thread: u32, process: u32) -> &mut TracedThread {
        if !self.threads.contains_key(&thread) {
            let found = self.find(thread, process);
            let new = found.map_or_else(TracedThread::default, |found| TracedThread { between: None, ..found.clone() });
            self.threads.insert(thread, TracedThread { process, ..new });
        }
        self.threads.entry(thread).or_default()
    }

    /// A child, with tables of its own or with those of its parent.
    pub(crate) fn fork(&mut self, parent: u32, thread: u32, process: u32, shares_files: bool, shares_cwd: bool) {
        let Some(parent) = self.threads.get(&parent).cloned() else {
            self.thread(thread, process);
            return;
        };
        let table = if shares_files { parent.table } else { Rc::new(RefCell::new(parent.table.borrow().clone())) };
        let cwd = if shares_cwd { parent.cwd } else { Rc::new(RefCell::new(*parent.cwd.borrow())) };
        self.threads.insert(thread, TracedThread { process, table, cwd, between: None });
    }

    /// The other threads of the process end, and its tables become its own.
    pub(crate) fn exec(&mut self, thread: u32, process: u32) {
        let mut own = self.thread(thread, process).clone();
        self.threads.retain(|_, other| other.process != process);
        let mut table = own.table.borrow().clone();
        table.exec();
        own.table = Rc::new(RefCell::new(table));
        self.threads.insert(process, own);
    }

    pub(crate) fn has(&self, thread: u32) -> bool {
        self.threads.contains_key(&thread)
    }

    pub(crate) fn exit(&mut self, thread: u32) {
        self.threads.remove(&thread);
    }

    pub(crate) fn count(&self) -> usize {
        self.threads.len()
    }
}
