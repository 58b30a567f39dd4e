//! The files of the tests' file system, and how each call is answered: first by the rule of the test, then as memory does.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuser::{
    CopyFileRangeFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::{Act, Kind, State, THREADS, locked};

/// How long the kernel keeps the names of files.
const KEPT: Duration = Duration::from_hours(1);
/// `O_TRUNC`.
const TRUNCATE: i32 = 0o1000;

/// A file, link or directory. Gone when it has no name, and nobody has it open.
pub(super) struct Node {
    body: Body,
    /// The name it was made with, for rules.
    name: OsString,
    names: u32,
    opens: u32,
    mode: u16,
    attributes: BTreeMap<OsString, Vec<u8>>,
}

enum Body {
    Directory,
    File(Vec<u8>),
    Link(PathBuf),
}

/// All nodes, and the names by which directories have them.
pub(super) struct Tree {
    nodes: BTreeMap<u64, Node>,
    names: BTreeMap<(u64, OsString), u64>,
    next: u64,
}

impl Tree {
    /// Nothing but a root.
    pub(super) fn new() -> Self {
        let root = Node {
            body: Body::Directory,
            name: OsString::new(),
            names: 1,
            opens: 0,
            mode: 0o755,
            attributes: BTreeMap::new(),
        };
        Self { nodes: BTreeMap::from([(1, root)]), names: BTreeMap::new(), next: 2 }
    }

    fn find(&self, parent: INodeNo, name: &OsStr) -> Result<u64, Errno> {
        self.names.get(&(parent.0, name.to_owned())).copied().ok_or(Errno::ENOENT)
    }

    fn attr(&self, ino: u64) -> Result<FileAttr, Errno> {
        let node = self.nodes.get(&ino).ok_or(Errno::ENOENT)?;
        let (size, kind) = match &node.body {
            Body::Directory => (0, FileType::Directory),
            Body::File(data) => (data.len() as u64, FileType::RegularFile),
            Body::Link(target) => (target.as_os_str().len() as u64, FileType::Symlink),
        };
        let at = UNIX_EPOCH;
        Ok(FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: size.div_ceil(512),
            atime: at,
            mtime: at,
            ctime: at,
            crtime: at,
            kind,
            perm: node.mode,
            nlink: if kind == FileType::Directory { 2 } else { node.names },
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn make(&mut self, parent: INodeNo, name: &OsStr, body: Body, mode: u32) -> Result<FileAttr, Errno> {
        if self.find(parent, name).is_ok() {
            return Err(Errno::EEXIST);
        }
        let ino = self.next;
        self.next += 1;
        let mode = (mode & 0o7777) as u16;
        let node = Node { body, name: name.to_owned(), names: 1, opens: 0, mode, attributes: BTreeMap::new() };
        self.nodes.insert(ino, node);
        self.names.insert((parent.0, name.to_owned()), ino);
        self.attr(ino)
    }

    fn is_empty(&self, ino: u64) -> bool {
        self.names.range((ino, OsString::new())..(ino + 1, OsString::new())).next().is_none()
    }

    /// Takes a name away, and its node if that was the last and nobody has it open.
    fn remove(&mut self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let ino = self.find(parent, name)?;
        if !self.is_empty(ino) {
            return Err(Errno::ENOTEMPTY);
        }
        self.names.remove(&(parent.0, name.to_owned()));
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.names -= 1;
        }
        self.forget(ino);
        Ok(())
    }

    fn forget(&mut self, ino: u64) {
        if self.nodes.get(&ino).is_some_and(|node| node.names == 0 && node.opens == 0) {
            self.nodes.remove(&ino);
        }
    }

    fn rename(
        &mut self,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let ino = self.find(parent, name)?;
        match self.find(new_parent, new_name) {
            Ok(_) if flags.contains(RenameFlags::RENAME_NOREPLACE) => return Err(Errno::EEXIST),
            Ok(other) if other == ino => return Ok(()),
            Ok(_) => self.remove(new_parent, new_name)?,
            Err(_) => {}
        }
        self.names.remove(&(parent.0, name.to_owned()));
        self.names.insert((new_parent.0, new_name.to_owned()), ino);
        if let Some(node) = self.nodes.get_mut(&ino) {
            new_name.clone_into(&mut node.name);
        }
        Ok(())
    }

    fn data(&mut self, ino: INodeNo) -> Result<&mut Vec<u8>, Errno> {
        match self.nodes.get_mut(&ino.0).map(|node| &mut node.body) {
            Some(Body::File(data)) => Ok(data),
            Some(_) => Err(Errno::EISDIR),
            None => Err(Errno::ENOENT),
        }
    }
}

pub(super) struct Memory(pub(super) Arc<State>);

impl Memory {
    fn tree(&self) -> MutexGuard<'_, Tree> {
        locked(&self.0.tree)
    }

    /// Lets the rule have its way with a call on a node.
    fn held(&self, kind: Kind, ino: INodeNo) -> Result<Option<Act>, Errno> {
        let name = self.tree().nodes.get(&ino.0).map_or_else(OsString::new, |node| node.name.clone());
        self.held_by_name(kind, &name)
    }

    /// The same by the last name; what the rule says beyond time and errors is for the call to do.
    fn held_by_name(&self, kind: Kind, name: &OsStr) -> Result<Option<Act>, Errno> {
        let bytes = name.as_encoded_bytes();
        let special = bytes.starts_with(b".") || bytes.ends_with(b".wml") || bytes.ends_with(b".json");
        if special && !self.0.all {
            // Markers, scripts and results are no part of what is tested.
            return Ok(None);
        }
        let number = {
            let mut tallies = locked(&self.0.tallies);
            let tally = tallies.entry(kind).or_default();
            (tally.calls, tally.now) = (tally.calls + 1, tally.now + 1);
            tally.most = tally.most.max(tally.now);
            tally.calls
        };
        let rule = locked(&self.0.rule).clone();
        let start = Instant::now();
        let act = rule.map(|rule| rule(kind, name, number));
        let result = match act {
            Some(Act::After(time)) => {
                if !time.is_zero() {
                    std::thread::sleep(time);
                }
                Ok(None)
            }
            Some(Act::Fail(errno)) => Err(errno),
            Some(Act::Hang) => {
                self.hang();
                Ok(None)
            }
            other => Ok(other),
        };
        let mut tallies = locked(&self.0.tallies);
        let tally = tallies.entry(kind).or_default();
        (tally.held, tally.now) = (tally.held + start.elapsed(), tally.now - 1);
        result
    }

    fn hang(&self) {
        let mut hanging = locked(&self.0.hanging);
        hanging.0 += 1;
        self.0.changed.notify_all();
        let waited = self.0.changed.wait_while(hanging, |(_, released)| !*released);
        waited.unwrap_or_else(PoisonError::into_inner).0 -= 1;
    }

    fn opened(&self, ino: INodeNo) -> FileHandle {
        if let Some(node) = self.tree().nodes.get_mut(&ino.0) {
            node.opens += 1;
        }
        FileHandle(self.0.handle.fetch_add(1, Ordering::Relaxed))
    }

    fn attr_at(&self, parent: INodeNo, name: &OsStr, act: Option<Act>) -> Result<FileAttr, Errno> {
        let ino = self.tree().find(parent, name)?;
        self.attr(ino, act)
    }

    /// Attributes, of the size that the rule says.
    fn attr(&self, ino: u64, act: Option<Act>) -> Result<FileAttr, Errno> {
        let attr = self.tree().attr(ino)?;
        Ok(match act {
            Some(Act::Size(size)) => FileAttr { size, ..attr },
            _ => attr,
        })
    }
}

/// Bytes that a transfer may move.
fn at_most(act: Option<Act>, size: usize) -> usize {
    if let Some(Act::Short(most)) = act { size.min(most) } else { size }
}

fn entry(made: Result<FileAttr, Errno>, reply: ReplyEntry) {
    match made {
        Ok(attr) => reply.entry(&Duration::ZERO, &attr, Generation(0)),
        Err(errno) => reply.error(errno),
    }
}

fn empty<T>(done: Result<T, Errno>, reply: ReplyEmpty) {
    match done.map(drop) {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for Memory {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Direct I/O that nobody waits for goes on while it is held here, as much of it as is asked for.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_background(THREADS as u16);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.tree().find(parent, name);
        let is_dir = |ino: u64| self.tree().attr(ino).is_ok_and(|attr| attr.kind == FileType::Directory);
        let kind = if found.is_ok_and(is_dir) { Kind::Walk } else { Kind::Lookup };
        let found = self.held_by_name(kind, name).and_then(|act| self.attr_at(parent, name, act));
        match found {
            // A file's name may be kept; what is said of it, and where directories are, is asked each time.
            Ok(attr) => {
                let kept = if attr.kind == FileType::Directory { Duration::ZERO } else { KEPT };
                reply.entry_with_ttls(&Duration::ZERO, &kept, &attr, Generation(0));
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let is_dir = self.tree().attr(ino.0).is_ok_and(|attr| attr.kind == FileType::Directory);
        let kind = if is_dir { Kind::StatDir } else { Kind::Stat };
        match self.held(kind, ino).and_then(|act| self.attr(ino.0, act)) {
            Ok(attr) => reply.attr(&Duration::ZERO, &attr),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let done = self.held(Kind::Setattr, ino).and_then(|act| {
            if let Some(size) = size {
                self.tree().data(ino)?.resize(size as usize, 0);
            }
            if let (Some(mode), Some(node)) = (mode, self.tree().nodes.get_mut(&ino.0)) {
                node.mode = (mode & 0o7777) as u16;
            }
            self.attr(ino.0, act)
        });
        match done {
            Ok(attr) => reply.attr(&Duration::ZERO, &attr),
            Err(errno) => reply.error(errno),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        let held = self.held(Kind::Readlink, ino);
        match (held, self.tree().nodes.get(&ino.0).map(|node| &node.body)) {
            (Ok(_), Some(Body::Link(target))) => reply.data(target.as_os_str().as_encoded_bytes()),
            (Ok(_), _) => reply.error(Errno::EINVAL),
            (Err(errno), _) => reply.error(errno),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        let made = self.held_by_name(Kind::Mkdir, name);
        entry(made.and_then(|_| self.tree().make(parent, name, Body::Directory, mode)), reply);
    }

    fn symlink(&self, _: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let made = self.held_by_name(Kind::Symlink, name);
        entry(made.and_then(|_| self.tree().make(parent, name, Body::Link(target.to_owned()), 0o777)), reply);
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let made = self.held_by_name(Kind::Link, name).and_then(|_| {
            let mut tree = self.tree();
            if tree.find(parent, name).is_ok() {
                return Err(Errno::EEXIST);
            }
            tree.nodes.get_mut(&ino.0).ok_or(Errno::ENOENT)?.names += 1;
            tree.names.insert((parent.0, name.to_owned()), ino.0);
            tree.attr(ino.0)
        });
        entry(made, reply);
    }

    fn create(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, _: i32, reply: ReplyCreate) {
        let made = self.held_by_name(Kind::Create, name);
        match made.and_then(|_| self.tree().make(parent, name, Body::File(Vec::new()), mode)) {
            Ok(attr) => {
                let handle = self.opened(attr.ino);
                reply.created(&Duration::ZERO, &attr, Generation(0), handle, FopenFlags::FOPEN_DIRECT_IO);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.held(Kind::Open, ino) {
            Ok(_) => {
                if flags.0 & TRUNCATE != 0
                    && let Ok(data) = self.tree().data(ino)
                {
                    data.clear();
                }
                // Nothing is cached, and writers do not wait for one another.
                let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
                reply.opened(self.opened(ino), flags);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let data = self.held(Kind::Read, ino).and_then(|act| {
            let mut tree = self.tree();
            let data = tree.data(ino)?;
            let start = (offset as usize).min(data.len());
            Ok(data[start..(start + at_most(act, size as usize)).min(data.len())].to_vec())
        });
        match data {
            Ok(data) => reply.data(&data),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        new: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.held(Kind::Write, ino).and_then(|act| {
            let new = &new[..at_most(act, new.len())];
            let mut tree = self.tree();
            let data = tree.data(ino)?;
            let end = offset as usize + new.len();
            data.resize(data.len().max(end), 0);
            data[offset as usize..end].copy_from_slice(new);
            Ok(new.len())
        });
        match written {
            Ok(size) => reply.written(size as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, ino: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        empty(self.held(Kind::Flush, ino), reply);
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let held = self.held(Kind::Release, ino);
        let mut tree = self.tree();
        if let Some(node) = tree.nodes.get_mut(&ino.0) {
            node.opens = node.opens.saturating_sub(1);
        }
        tree.forget(ino.0);
        empty(held, reply);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(self.held(Kind::Fsync, ino), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.held_by_name(Kind::Unlink, name).and_then(|_| self.tree().remove(parent, name)), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.held_by_name(Kind::Rmdir, name).and_then(|_| self.tree().remove(parent, name)), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let held = self.held_by_name(Kind::Rename, name);
        empty(held.and_then(|_| self.tree().rename(parent, name, new_parent, new_name, flags)), reply);
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.held(Kind::Opendir, ino) {
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if let Err(errno) = self.held(Kind::Readdir, ino) {
            return reply.error(errno);
        }
        let tree = self.tree();
        let inside = tree.names.range((ino.0, OsString::new())..(ino.0 + 1, OsString::new()));
        let mut inside: Vec<_> = inside.map(|((_, name), at)| (*at, name)).collect();
        // By number, which no removal changes.
        inside.sort();
        for (at, name) in inside.into_iter().filter(|(at, _)| *at > offset) {
            let kind = tree.attr(at).map_or(FileType::RegularFile, |attr| attr.kind);
            if reply.add(INodeNo(at), at, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(self.held(Kind::Fsyncdir, ino), reply);
    }

    fn statfs(&self, _: &Request, ino: INodeNo, reply: ReplyStatfs) {
        const BLOCKS: u64 = 1 << 24;
        match self.held(Kind::Statfs, ino) {
            Ok(_) => reply.statfs(BLOCKS, BLOCKS, BLOCKS, BLOCKS, BLOCKS, 4096, 255, 4096),
            Err(errno) => reply.error(errno),
        }
    }

    fn setxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, value: &[u8], _: i32, _: u32, reply: ReplyEmpty) {
        let set = self.held(Kind::Setxattr, ino).and_then(|_| {
            let mut tree = self.tree();
            let node = tree.nodes.get_mut(&ino.0).ok_or(Errno::ENOENT)?;
            node.attributes.insert(name.to_owned(), value.to_owned());
            Ok(())
        });
        empty(set, reply);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let value = self.held(Kind::Getxattr, ino).and_then(|_| {
            let tree = self.tree();
            let node = tree.nodes.get(&ino.0).ok_or(Errno::ENOENT)?;
            node.attributes.get(name).cloned().ok_or(Errno::ENODATA)
        });
        match value {
            Ok(value) if size == 0 => reply.size(value.len() as u32),
            Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
            Ok(value) => reply.data(&value),
            Err(errno) => reply.error(errno),
        }
    }

    fn fallocate(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, n: u64, mode: i32, reply: ReplyEmpty) {
        const KEEP_SIZE: i32 = 1;
        let done = self.held(Kind::Fallocate, ino).and_then(|_| {
            let mut tree = self.tree();
            let data = tree.data(ino)?;
            if mode & KEEP_SIZE == 0 {
                data.resize(data.len().max((offset + n) as usize), 0);
            }
            Ok(())
        });
        empty(done, reply);
    }

    fn lseek(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        const DATA: i32 = 3;
        let found = self.held(Kind::Lseek, ino).and_then(|_| {
            let length = self.tree().data(ino)?.len() as i64;
            // All of it is data.
            if offset >= length { Err(Errno::ENXIO) } else { Ok(if whence == DATA { offset } else { length }) }
        });
        match found {
            Ok(at) => reply.offset(at),
            Err(errno) => reply.error(errno),
        }
    }

    fn copy_file_range(
        &self,
        _: &Request,
        from: INodeNo,
        _: FileHandle,
        offset: u64,
        to: INodeNo,
        _: FileHandle,
        to_offset: u64,
        size: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let copied = self.held(Kind::CopyRange, to).and_then(|act| {
            let mut tree = self.tree();
            let source = tree.data(from)?;
            let start = (offset as usize).min(source.len());
            let part = source[start..(start + at_most(act, size as usize)).min(source.len())].to_vec();
            let (data, end) = (tree.data(to)?, to_offset as usize + part.len());
            data.resize(data.len().max(end), 0);
            data[to_offset as usize..end].copy_from_slice(&part);
            Ok(part.len())
        });
        match copied {
            Ok(size) => reply.written(size as u32),
            Err(errno) => reply.error(errno),
        }
    }
}
