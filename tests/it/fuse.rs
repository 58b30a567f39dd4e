//! A file system in memory whose calls take as long, or fail, as a test says.
//!
//! Needs root and `/dev/fuse`; [`available`] says whether they are there. What it was asked to do, and how long it took to, it
//! tells afterwards.
//! Deliberately absent: what runs on it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::cmd::{scratch, skip};

/// Calls that are served at the same time.
const THREADS: usize = 40;
/// How long the kernel keeps the names of files.
const KEPT: Duration = Duration::from_hours(1);

/// Whether such file systems can be mounted here. If not, says so for `test`, or fails it where all must be there.
pub(crate) fn available(test: &str) -> bool {
    let why = if !rustix::process::geteuid().is_root() {
        "only root can mount file systems"
    } else if std::fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        "/dev/fuse can't be opened"
    } else {
        return true;
    };
    skip(test, why);
    false
}

/// A kind of call that a test can have a say in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// The attributes of a file that is no directory.
    Stat,
    /// Finding a directory by its name.
    Walk,
    Read,
    Write,
}

/// What is to happen in a call, by its kind, the name of its file and the how-manieth of its kind it is.
type Rule = dyn Fn(Kind, &OsStr, u64) -> Act + Send + Sync;

/// What happens in a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// What is asked for, after so long.
    After(Duration),
    /// This error.
    Fail(Errno),
}

/// What the calls of one kind came to.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    /// How many there were.
    pub(crate) calls: u64,
    /// How long they were held, all together.
    pub(crate) held: Duration,
    now: u64,
    /// The most that were held at one time.
    pub(crate) most: u64,
}

struct Node {
    name: OsString,
    parent: u64,
    /// A file's data; none for a directory.
    data: Option<Vec<u8>>,
}

struct State {
    nodes: Mutex<BTreeMap<u64, Node>>,
    tallies: Mutex<BTreeMap<Kind, Tally>>,
    /// The rule counts from when it is set.
    rule: Mutex<Option<Arc<Rule>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A mounted one. Dropped, also by a panic, it is unmounted.
pub(crate) struct Slow {
    dir: PathBuf,
    state: Arc<State>,
    session: Option<BackgroundSession>,
}

impl Slow {
    pub(crate) fn new(rule: impl Fn(Kind, &OsStr, u64) -> Act + Send + Sync + 'static) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("fuse-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let dir = scratch().join(name);
        std::fs::create_dir(&dir).unwrap();
        let root = Node { name: OsString::new(), parent: 1, data: None };
        let state = Arc::new(State {
            nodes: Mutex::new(BTreeMap::from([(1, root)])),
            tallies: Mutex::default(),
            rule: Mutex::new(Some(Arc::new(rule))),
        });
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("wmlrun-test".to_owned())];
        config.n_threads = Some(THREADS);
        let session = fuser::spawn_mount(Memory(Arc::clone(&state)), &dir, &config).unwrap();
        Self { dir, state, session: Some(session) }
    }

    /// Where it is mounted.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the calls of a kind have come to.
    pub(crate) fn tally(&self, kind: Kind) -> Tally {
        locked(&self.state.tallies).get(&kind).copied().unwrap_or_default()
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        // Calls that are still held are let go.
        *locked(&self.state.rule) = None;
        if let Some(session) = self.session.take()
            && session.umount_and_join().is_err()
        {
            // Whoever looks at all mounts just now keeps it busy; detached it is gone from here all the same.
            let _ = Command::new("umount").arg("--lazy").arg(&self.dir).output();
        }
        let _ = std::fs::remove_dir(&self.dir);
    }
}

struct Memory(Arc<State>);

impl Memory {
    /// Lets the rule have its way with a call.
    fn held(&self, kind: Kind, ino: INodeNo) -> Result<(), Errno> {
        let name = locked(&self.0.nodes).get(&ino.0).map_or_else(OsString::new, |node| node.name.clone());
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(b".") || bytes.ends_with(b".wml") || bytes.ends_with(b".json") {
            // Markers, scripts and results are no part of what is tested.
            return Ok(());
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
        let result = match rule.map(|rule| rule(kind, &name, number)) {
            Some(Act::After(time)) => {
                if !time.is_zero() {
                    std::thread::sleep(time);
                }
                Ok(())
            }
            Some(Act::Fail(errno)) => Err(errno),
            None => Ok(()),
        };
        let mut tallies = locked(&self.0.tallies);
        let tally = tallies.entry(kind).or_default();
        (tally.held, tally.now) = (tally.held + start.elapsed(), tally.now - 1);
        result
    }

    fn attr(&self, ino: u64) -> Result<FileAttr, Errno> {
        let nodes = locked(&self.0.nodes);
        let node = nodes.get(&ino).ok_or(Errno::ENOENT)?;
        let size = node.data.as_ref().map_or(0, Vec::len) as u64;
        let kind = if node.data.is_some() { FileType::RegularFile } else { FileType::Directory };
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
            perm: if node.data.is_some() { 0o644 } else { 0o755 },
            nlink: if node.data.is_some() { 1 } else { 2 },
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn find(&self, parent: INodeNo, name: &OsStr) -> Result<u64, Errno> {
        let nodes = locked(&self.0.nodes);
        let found = nodes.iter().find(|(ino, node)| **ino != 1 && node.parent == parent.0 && node.name == name);
        found.map(|(ino, _)| *ino).ok_or(Errno::ENOENT)
    }

    fn make(&self, parent: INodeNo, name: &OsStr, data: Option<Vec<u8>>) -> Result<FileAttr, Errno> {
        if self.find(parent, name).is_ok() {
            return Err(Errno::EEXIST);
        }
        let ino = {
            let mut nodes = locked(&self.0.nodes);
            let ino = nodes.keys().next_back().unwrap() + 1;
            nodes.insert(ino, Node { name: name.to_owned(), parent: parent.0, data });
            ino
        };
        self.attr(ino)
    }

    fn remove(&self, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match self.find(parent, name) {
            Ok(ino) if locked(&self.0.nodes).values().any(|node| node.parent == ino) => reply.error(Errno::ENOTEMPTY),
            Ok(ino) => {
                locked(&self.0.nodes).remove(&ino);
                reply.ok();
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn with_data<T>(&self, ino: INodeNo, work: impl FnOnce(&mut Vec<u8>) -> T) -> Result<T, Errno> {
        let mut nodes = locked(&self.0.nodes);
        nodes.get_mut(&ino.0).and_then(|node| node.data.as_mut()).map(work).ok_or(Errno::EISDIR)
    }
}

fn entry(made: Result<FileAttr, Errno>, reply: ReplyEntry) {
    match made {
        Ok(attr) => reply.entry(&Duration::ZERO, &attr, Generation(0)),
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
        let found = self.find(parent, name).and_then(|ino| self.attr(ino));
        let file = found.as_ref().is_ok_and(|attr| attr.kind == FileType::RegularFile);
        let found = found.and_then(|attr| if file { Ok(attr) } else { self.held(Kind::Walk, attr.ino).map(|()| attr) });
        match found {
            // A file's name may be kept; what is said of it, and where directories are, is asked each time.
            Ok(attr) => {
                let kept = if file { KEPT } else { Duration::ZERO };
                reply.entry_with_ttls(&Duration::ZERO, &kept, &attr, Generation(0));
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let attr = self.attr(ino.0).and_then(|attr| {
            let file = attr.kind == FileType::RegularFile;
            if file { self.held(Kind::Stat, ino).map(|()| attr) } else { Ok(attr) }
        });
        match attr {
            Ok(attr) => reply.attr(&Duration::ZERO, &attr),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _: Option<u32>,
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
        if let Some(size) = size {
            let _ = self.with_data(ino, |data| data.resize(size as usize, 0));
        }
        match self.attr(ino.0) {
            Ok(attr) => reply.attr(&Duration::ZERO, &attr),
            Err(errno) => reply.error(errno),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        entry(self.make(parent, name, None), reply);
    }

    fn create(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, _: i32, reply: ReplyCreate) {
        match self.make(parent, name, Some(Vec::new())) {
            Ok(attr) => {
                reply.created(&Duration::ZERO, &attr, Generation(0), FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // Nothing is cached, and writers do not wait for one another.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
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
        let data = self.held(Kind::Read, ino).and_then(|()| {
            self.with_data(ino, |data| {
                let start = (offset as usize).min(data.len());
                data[start..(start + size as usize).min(data.len())].to_vec()
            })
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
        let written = self.held(Kind::Write, ino).and_then(|()| {
            self.with_data(ino, |data| {
                let end = offset as usize + new.len();
                data.resize(data.len().max(end), 0);
                data[offset as usize..end].copy_from_slice(new);
            })
        });
        match written {
            Ok(()) => reply.written(new.len() as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(parent, name, reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(parent, name, reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let replaced = self.find(new_parent, new_name);
        match self.find(parent, name) {
            Ok(ino) => {
                let mut nodes = locked(&self.0.nodes);
                if let Ok(old) = replaced {
                    nodes.remove(&old);
                }
                if let Some(node) = nodes.get_mut(&ino) {
                    (node.parent, node.name) = (new_parent.0, new_name.to_owned());
                }
                reply.ok();
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let nodes = locked(&self.0.nodes);
        let kind = |node: &Node| if node.data.is_some() { FileType::RegularFile } else { FileType::Directory };
        let inside = nodes.iter().filter(|(at, node)| **at != 1 && node.parent == ino.0);
        for (at, node) in inside.filter(|(at, _)| **at > offset) {
            if reply.add(INodeNo(*at), *at, kind(node), &node.name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        const BLOCKS: u64 = 1 << 24;
        reply.statfs(BLOCKS, BLOCKS, BLOCKS, BLOCKS, BLOCKS, 4096, 255, 4096);
    }
}

#[test]
fn it_holds_what_is_written_and_does_as_told() {
    if !available("it_holds_what_is_written_and_does_as_told") {
        return;
    }
    let slow = Slow::new(|kind, name, _| match kind {
        Kind::Read if name == "bad" => Act::Fail(Errno::EIO),
        _ => Act::After(Duration::ZERO),
    });
    let dir = slow.dir().join("a");
    std::fs::create_dir(&dir).unwrap();
    for name in ["good", "bad"] {
        std::fs::write(dir.join(name), name).unwrap();
    }
    assert_eq!(std::fs::read_to_string(dir.join("good")).unwrap(), "good");
    let error = std::fs::read(dir.join("bad")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
    assert!(std::fs::remove_dir(&dir).is_err(), "it is not empty");
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(slow.tally(Kind::Write).calls, 2);
    let at = slow.dir().to_owned();
    drop(slow);
    assert!(!at.exists());
}
