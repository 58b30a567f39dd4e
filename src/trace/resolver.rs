//! From what a source saw to the calls of a trace: names become absolute, descriptors files, positions offsets.

use super::call::{InodeId, TimeBetween, TraceEvent, TracedCall, TracedWait};
use super::kind::{CallArg, CallClass, CallKind, KindId};
use super::own_links::{follows, own_descriptor};
use super::paths::{PathId, PathTable};
use super::raw::{FdFacts, RawCall};
use super::scope::TraceScope;
use super::tables::{OpenFile, Processes, SharedFile, TracedThread};
use super::view::ProcessView;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::rc::Rc;

/// What receives the events of a trace.
pub type EventSink<'a> = Box<dyn FnMut(&TraceEvent, &PathTable) -> io::Result<()> + 'a>;

/// The flags of an `open` that makes a file without a name.
const UNNAMED: u32 = libc::O_TMPFILE as u32;
/// Calls that are lost: no other reason tells of them.
const UNREADABLE: &str = "name not readable";
/// The most files whose sizes are followed.
const MOST_SIZES: usize = 1 << 20;

/// Makes the calls of a trace from those of a source.
pub struct TraceResolver<'a> {
    begin: u64,
    scope: TraceScope,
    view: Box<dyn ProcessView + 'a>,
    sink: EventSink<'a>,
    paths: PathTable,
    processes: Processes,
    /// Sizes that calls told, for sources that do not know the size before a call.
    sizes: HashMap<InodeId, u64>,
    /// Names by identity, for descriptors that came in ways that are not seen: passed, or of a ring's own table.
    names: HashMap<InodeId, PathId>,
    /// Files whose names were looked for in vain.
    unnamed: HashSet<InodeId>,
    left_out: BTreeMap<&'static str, u64>,
    /// Calls whose name could not be read.
    unreadable: u64,
}

/// The files and names of a call.
#[derive(Default)]
struct FoundFiles {
    file: Option<SharedFile>,
    second: Option<SharedFile>,
    path: Option<PathId>,
    second_path: Option<PathId>,
    /// Why the call is left out.
    outside: Option<&'static str>,
}

impl<'a> TraceResolver<'a> {
    /// A resolver of a trace that begins at `begin`, by the clock of its calls.
    pub fn new(begin: u64, scope: TraceScope, view: Box<dyn ProcessView + 'a>, sink: EventSink<'a>) -> Self {
        Self {
            begin,
            scope,
            view,
            sink,
            paths: PathTable::new(),
            processes: Processes::default(),
            sizes: HashMap::new(),
            names: HashMap::new(),
            unnamed: HashSet::new(),
            left_out: BTreeMap::new(),
            unreadable: 0,
        }
    }

    /// How many calls were left out, by why.
    pub fn left_out(&self) -> &BTreeMap<&'static str, u64> {
        &self.left_out
    }

    /// How many calls have a name that could not be read: they are lost.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    pub fn paths(&self) -> &PathTable {
        &self.paths
    }

    /// An absolute path of the table.
    pub fn path(&mut self, path: &[u8]) -> PathId {
        self.paths.resolve(PathId::ROOT, path)
    }

    /// How many threads have not ended.
    pub fn threads(&self) -> usize {
        self.processes.count()
    }

    fn time(&self, at: u64) -> u64 {
        at.saturating_sub(self.begin)
    }

    fn send(&mut self, event: &TraceEvent) -> io::Result<()> {
        (self.sink)(event, &self.paths)
    }

    /// A thread or process began. A thread shares the descriptors and the working directory.
    pub fn fork(&mut self, time: u64, parent: u32, thread: u32, process: u32, shares: (bool, bool)) -> io::Result<()> {
        let is_new = !self.processes.has(parent);
        self.processes.fork(parent, thread, process, shares.0, shares.1);
        if is_new {
            self.inherit(parent, thread, process);
        }
        let time = self.time(time);
        self.send(&TraceEvent::Fork { time, parent, thread, process })
    }

    /// Gives a child what it has of a parent that is not followed, such as the recorder: the child may have ended by now.
    fn inherit(&mut self, parent: u32, thread: u32, process: u32) {
        const STANDARD: i32 = 3;
        let cwd = self.view.cwd(parent).map(|path| self.paths.resolve(PathId::ROOT, &path));
        let files: Vec<(i32, FdFacts)> =
            (0..STANDARD).filter_map(|fd| Some((fd, self.view.descriptor(parent, fd)?))).collect();
        let files: Vec<(i32, OpenFile)> =
            files.iter().map(|(fd, facts)| (*fd, self.open_file(Some(facts), None))).collect();
        let own = self.processes.thread(thread, process);
        let mut known = own.cwd.borrow_mut();
        *known = known.or(cwd);
        let fds = &mut own.table.borrow_mut().fds;
        for (fd, file) in files {
            fds.entry(fd).or_insert_with(|| (Rc::new(RefCell::new(file)), false));
        }
    }

    /// A process executes a program, after its other threads have ended. `id`: the program's file, if it is known.
    pub fn exec(
        &mut self,
        time: u64,
        thread: u32,
        process: u32,
        name: Option<&[u8]>,
        id: Option<InodeId>,
    ) -> io::Result<()> {
        let cwd = self.cwd(thread, process);
        let path = name.map(|name| self.paths.resolve(cwd, name));
        // Not `/dev/fd/3`, nor a link in /proc.
        if name.is_some_and(|name| !name.starts_with(b"/dev/") && !name.starts_with(b"/proc/")) {
            self.name_file(&OpenFile { path, id, ..OpenFile::default() });
        }
        self.processes.exec(thread, process);
        let time = self.time(time);
        self.send(&TraceEvent::Exec { time, process, path })
    }

    pub fn exit(&mut self, time: u64, thread: u32) -> io::Result<()> {
        self.processes.exit(thread);
        let time = self.time(time);
        self.send(&TraceEvent::Exit { time, thread })
    }

    /// A thread slept between two calls.
    pub fn wait(&mut self, start: u64, end: u64, thread: u32, woken_by: Option<u32>) -> io::Result<()> {
        // It may have begun before the recording.
        let (start, end) = (self.time(start), self.time(end));
        let wait = TracedWait { start, duration: end.saturating_sub(start), thread, woken_by };
        self.send(&TraceEvent::Wait(wait))
    }

    /// The tables of the process become its own: `unshare`.
    pub fn unshare(&mut self, thread: u32, process: u32, files: bool, cwd: bool) {
        let thread = self.processes.thread(thread, process);
        if files {
            let own = thread.table.borrow().clone();
            thread.table = Rc::new(RefCell::new(own));
        }
        if cwd {
            let own = *thread.cwd.borrow();
            thread.cwd = Rc::new(RefCell::new(own));
        }
    }

    /// True if the file of a descriptor is known.
    pub fn knows(&self, thread: u32, process: u32, fd: i32) -> bool {
        self.processes.find(thread, process).is_some_and(|found| found.table.borrow().fds.contains_key(&fd))
    }

    fn tables(&mut self, raw: &RawCall) -> &mut TracedThread {
        self.processes.thread(raw.thread, raw.process)
    }

    fn cwd(&mut self, thread: u32, process: u32) -> PathId {
        let cwd = Rc::clone(&self.processes.thread(thread, process).cwd);
        let known = *cwd.borrow();
        known.unwrap_or_else(|| {
            let found = self.view.cwd(process).map(|path| self.paths.resolve(PathId::ROOT, &path));
            *cwd.borrow_mut().insert(found.unwrap_or(PathId::UNKNOWN))
        })
    }

    /// The source tells the working directory of a process.
    pub(crate) fn cwd_is(&mut self, thread: u32, process: u32, path: &[u8]) {
        let path = self.paths.resolve(PathId::ROOT, path);
        *self.processes.thread(thread, process).cwd.borrow_mut() = Some(path);
    }

    fn open_file(&mut self, facts: Option<&FdFacts>, path: Option<PathId>) -> OpenFile {
        let own = facts.and_then(|facts| facts.path.as_ref()).map(|path| self.paths.resolve(PathId::ROOT, path));
        let path = path.or(own);
        let is_inside = path.is_some_and(|path| self.scope.has(&self.paths.path(path)));
        let mut file = OpenFile { path, is_inside, ..OpenFile::default() };
        facts.into_iter().for_each(|facts| file.learn(facts));
        file.is_inside &= file.may_be_recorded();
        file
    }

    /// The name of a file that a process has mapped: the kernel maps a program, and what was mapped before is not seen.
    fn mapped_name(&mut self, process: u32, id: InodeId) -> Option<PathId> {
        if self.unnamed.contains(&id) {
            return None;
        }
        let Some(name) = self.view.mapped(process, id) else {
            if self.unnamed.len() > MOST_SIZES {
                self.unnamed.clear();
            }
            self.unnamed.insert(id);
            return None;
        };
        let path = self.paths.resolve(PathId::ROOT, &name);
        self.name_file(&OpenFile { path: Some(path), id: Some(id), ..OpenFile::default() });
        Some(path)
    }

    /// The file of a descriptor: as it was opened, or as the view has it.
    fn descriptor(&mut self, raw: &RawCall, fd: i32, facts: Option<&FdFacts>) -> Option<SharedFile> {
        let id = facts.and_then(|facts| facts.id);
        let name = id.and_then(|id| self.names.get(&id).copied());
        if fd < 0 {
            let name = name.or_else(|| self.mapped_name(raw.process, id?));
            id?;
            return Some(Rc::new(RefCell::new(self.open_file(facts, name))));
        }
        let table = Rc::clone(&self.tables(raw).table);
        let known = table.borrow().fds.get(&fd).map(|(file, _)| Rc::clone(file));
        // The descriptor may be another file's by now, or a pipe's.
        let is_it = |known: Option<InodeId>, mode: Option<u32>| {
            let type_of = |mode: u32| mode & libc::S_IFMT;
            let types = mode.map(type_of).zip(facts.and_then(|facts| facts.mode).map(type_of));
            same_file(known, id) && types.is_none_or(|(known, given)| known == given)
        };
        if let Some(file) = known.filter(|file| is_it(file.borrow().id, file.borrow().mode)) {
            facts.into_iter().for_each(|facts| file.borrow_mut().learn(facts));
            return Some(file);
        }
        let mut found = if name.is_none() { self.view.descriptor(raw.process, fd) } else { None };
        if let Some(known) = facts {
            let seen = found.take().filter(|seen| is_it(seen.id, seen.mode));
            let or = |of: fn(&FdFacts) -> Option<u32>| of(known).or_else(|| seen.as_ref().and_then(of));
            let path = known.path.clone().or_else(|| seen.as_ref().and_then(|seen| seen.path.clone()));
            let closes_on_exec = known.closes_on_exec || seen.as_ref().is_some_and(|seen| seen.closes_on_exec);
            found = Some(FdFacts {
                mode: or(|facts| facts.mode),
                flags: or(|facts| facts.flags),
                path,
                closes_on_exec,
                ..known.clone()
            });
        }
        let file = self.open_file(found.as_ref(), name);
        self.name_file(&file);
        let file = Rc::new(RefCell::new(file));
        let closes = found.is_some_and(|found| found.closes_on_exec);
        table.borrow_mut().fds.insert(fd, (Rc::clone(&file), closes));
        Some(file)
    }

    /// The name in an argument, absolute. An empty name is the directory itself.
    fn name(&mut self, raw: &RawCall, kind: &CallKind, arg: CallArg, n: usize) -> Option<(PathId, Option<SharedFile>)> {
        let at = kind.arg(arg)?;
        let name = raw.names[n].as_ref()?;
        let own = own_descriptor(name, raw.process);
        let own = own.filter(|(_, below)| !below.is_empty() || follows(kind, given_flags(raw, kind)));
        if let Some((path, below)) = own.and_then(|(fd, below)| Some((self.tables(raw).path(fd)?, below))) {
            return Some((self.paths.resolve(path, below), None));
        }
        let dir = kind.dir_of(at).map(|dir| raw.fd(dir)).filter(|fd| *fd != libc::AT_FDCWD);
        let facts = raw.files[n].as_ref().filter(|_| name.is_empty() && kind.class != CallClass::Open);
        let dir = dir.filter(|_| name.first() != Some(&b'/')).map(|fd| self.descriptor(raw, fd, facts));
        let base = match &dir {
            None => self.cwd(raw.thread, raw.process),
            Some(file) => file.as_ref().and_then(|file| file.borrow().path).unwrap_or(PathId::UNKNOWN),
        };
        Some((self.paths.resolve(base, name), dir.flatten().filter(|_| name.is_empty())))
    }

    fn find(&mut self, raw: &RawCall, kind: &CallKind) -> FoundFiles {
        let mut found = FoundFiles::default();
        let opens = kind.class == CallClass::Open;
        if let Some(at) = kind.arg(CallArg::Fd) {
            found.file = self.descriptor(raw, raw.fd(at), raw.files[0].as_ref());
        } else if let Some(why) = raw.without_name() {
            found.outside = Some(why);
        } else if let Some((path, file)) = self.name(raw, kind, CallArg::Path, 0) {
            (found.path, found.file) = (Some(path), file);
        } else if kind.arg(CallArg::Path).is_some() {
            found.outside = Some(UNREADABLE);
        } else if matches!(kind.name, "munmap" | "msync") {
            found.file = self.tables(raw).table.borrow().mapped(raw.args[0]);
        }
        if let Some(at) = kind.arg(CallArg::Fd2).filter(|_| kind.class == CallClass::Copy) {
            found.second = self.descriptor(raw, raw.fd(at), raw.files[1].as_ref());
            found.second_path = found.second.as_ref().and_then(|file| file.borrow().path);
        } else if let Some((path, _)) = self.name(raw, kind, CallArg::Path2, 1) {
            found.second_path = Some(path);
        }
        if opens && raw.result >= 0 && given_flags(raw, kind).is_some_and(|flags| flags & UNNAMED == UNNAMED) {
            found.path = found.path.map(|dir| self.unnamed_file(raw, dir));
        }
        found.path = found.path.or_else(|| found.file.as_ref()?.borrow().path);
        let files = [&found.file, &found.second];
        let is_inside = files.into_iter().flatten().any(|file| file.borrow().is_inside)
            || found.file.is_none() && self.is_inside(found.path)
            || kind.arg(CallArg::Path2).is_some() && self.is_inside(found.second_path);
        // A device or pipe by its name.
        let special = raw.files[0]
            .as_ref()
            .filter(|_| opens)
            .and_then(|facts| facts.mode)
            .is_some_and(|mode| !matches!(mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR));
        // Which files a call of an unknown kind is on is not known; `sync` is on all.
        let is_on_any = kind.class == CallClass::Other || kind.name == "sync";
        if found.outside.is_none() && (!is_inside || special) && !is_on_any {
            let mode =
                found.file.as_ref().and_then(|file| file.borrow().mode).or(raw.files[0].as_ref().and_then(|f| f.mode));
            found.outside = Some(match mode.map(|mode| mode & libc::S_IFMT) {
                Some(libc::S_IFSOCK) => "socket",
                Some(libc::S_IFIFO) => "pipe",
                Some(libc::S_IFCHR | libc::S_IFBLK) => "device",
                _ if found.path.is_some() => "outside of the directories",
                _ if kind.class == CallClass::Map => "memory without a file",
                Some(libc::S_IFREG | libc::S_IFDIR) => "file without a name",
                _ => "other descriptor",
            });
        }
        found
    }

    /// The file that `O_TMPFILE` made in a directory: as the kernel names it, by its inode.
    fn unnamed_file(&mut self, raw: &RawCall, dir: PathId) -> PathId {
        let Some(facts) = &raw.files[0] else { return self.paths.entry(dir, b"#") };
        let number = || facts.id.map_or(String::new(), |id| id.inode.to_string());
        let name = facts.path.clone().unwrap_or_else(|| format!("#{}", number()).into_bytes());
        self.paths.resolve(dir, &name)
    }

    fn is_inside(&self, path: Option<PathId>) -> bool {
        path.is_some_and(|path| self.scope.has(&self.paths.path(path)))
    }

    /// A call that ended.
    pub fn call(&mut self, raw: &RawCall) -> io::Result<()> {
        let id = raw.exact_kind();
        let kind = id.get();
        let found = self.find(raw, kind);
        let call = self.traced(raw, id, &found);
        self.apply(raw, kind, &found, call.offset);
        let own = self.tables(raw);
        if let Some(why) = found.outside {
            own.between = [raw.between, raw.within, own.between].into_iter().flatten().reduce(TimeBetween::plus);
            *if why == UNREADABLE { &mut self.unreadable } else { self.left_out.entry(why).or_default() } += 1;
            return Ok(());
        }
        own.between = None;
        self.send(&TraceEvent::Call(call))
    }

    fn traced(&mut self, raw: &RawCall, id: KindId, found: &FoundFiles) -> TracedCall {
        let kind = id.get();
        let file = found.file.as_ref().map(|file| file.borrow());
        let facts = raw.files[0].as_ref();
        let value = |arg| kind.arg(arg).map(|at| raw.args[at]);
        let file_id = file.as_ref().and_then(|file| file.id).or_else(|| facts?.id).or_else(|| raw.stat?.id);
        let size = facts.filter(|_| kind.class != CallClass::Open).and_then(|facts| facts.size);
        // A name may be another file's that has the inode again.
        let size = size.or_else(|| self.sizes.get(&file.as_ref()?.id?).copied());
        let position = file.as_ref().and_then(|file| file.position);
        let moves = kind.class.moves_data();
        let offset = match kind.class {
            CallClass::Read | CallClass::Write | CallClass::Copy | CallClass::Seek => {
                let explicit = value(CallArg::Offset).filter(|offset| *offset != u64::MAX).or(raw.offset);
                let appends = kind.class == CallClass::Write && file.as_ref().is_some_and(|file| file.appends());
                explicit.filter(|_| !appends).or(if appends { size } else { position })
            }
            _ => value(CallArg::Offset),
        };
        let flags = given_flags(raw, kind).or(match kind.name {
            "creat" => Some((libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u32),
            _ if moves => file.as_ref().and_then(|file| file.flags),
            "lseek" => value(CallArg::Whence).map(|whence| whence as u32),
            _ => value(CallArg::Command).map(|command| command as u32),
        });
        let pending = self.processes.thread(raw.thread, raw.process).between.unwrap_or_default();
        TracedCall {
            start: raw.start.saturating_sub(self.begin),
            duration: raw.end.saturating_sub(raw.start),
            thread: raw.thread,
            process: raw.process,
            kind: id,
            result: raw.result,
            // A number of io_uring may be one of its own table.
            descriptor: kind
                .arg(CallArg::Fd)
                .filter(|_| !kind.name.starts_with("uring_"))
                .and_then(|at| u32::try_from(raw.fd(at)).ok()),
            path: found.path,
            second_path: found.second_path,
            file: file_id,
            offset,
            size,
            flags,
            wanted: raw.wanted.or(value(CallArg::Size)),
            stat_size: raw.stat.map(|stat| stat.size),
            mode: raw.stat.map(|stat| stat.mode).or_else(|| facts?.mode).or_else(|| file.as_ref()?.mode),
            between: raw.between.map(|own| own.plus(pending)),
            runnable: raw.within.map(|within| within.runnable),
        }
    }

    fn set_size(&mut self, id: Option<InodeId>, change: impl FnOnce(u64) -> u64) {
        let Some(id) = id else { return };
        if self.sizes.len() > MOST_SIZES {
            self.sizes.clear();
        }
        let size = self.sizes.get(&id).copied().unwrap_or(0);
        self.sizes.insert(id, change(size));
    }

    /// Keeps the name of a file whose identity is certain.
    fn name_file(&mut self, file: &OpenFile) {
        if let (Some(id @ InodeId { generation: Some(_), .. }), Some(path)) = (file.id, file.path) {
            if self.names.len() > MOST_SIZES {
                self.names.clear();
            }
            self.names.insert(id, path);
        }
    }

    /// What the call changed: descriptors, positions, sizes, the working directory.
    fn apply(&mut self, raw: &RawCall, kind: &CallKind, found: &FoundFiles, offset: Option<u64>) {
        let table = Rc::clone(&self.tables(raw).table);
        let value = |arg| kind.arg(arg).map(|at| raw.args[at]);
        let result = raw.result;
        let file_id = found.file.as_ref().and_then(|file| file.borrow().id);
        if let Some(stat) = raw.stat.filter(|_| result >= 0) {
            self.set_size(file_id.or(stat.id), |_| stat.size);
        }
        match kind.class {
            // A descriptor is closed whatever `close` returns.
            CallClass::Close if kind.name == "close_range" && result == 0 => {
                let (first, last) = (raw.fd(0), i32::try_from(raw.args[1] as u32).unwrap_or(i32::MAX));
                let flags = raw.args[2] as u32;
                if flags & libc::CLOSE_RANGE_UNSHARE != 0 {
                    self.unshare(raw.thread, raw.process, true, false);
                }
                let table = Rc::clone(&self.tables(raw).table);
                let fds = &mut table.borrow_mut().fds;
                if flags & libc::CLOSE_RANGE_CLOEXEC != 0 {
                    fds.iter_mut()
                        .filter(|(fd, _)| (first..=last).contains(fd))
                        .for_each(|(_, (_, closes))| *closes = true);
                } else {
                    fds.retain(|fd, _| !(first..=last).contains(fd));
                }
            }
            CallClass::Close => {
                if let Some(at) = kind.arg(CallArg::Fd) {
                    table.borrow_mut().fds.remove(&raw.fd(at));
                }
            }
            CallClass::Open if result >= 0 => {
                let given = given_flags(raw, kind);
                let closes = given.is_some_and(|flags| flags & libc::O_CLOEXEC as u32 != 0);
                let mut file = self.open_file(raw.files[0].as_ref(), found.path);
                file.flags = file.flags.or(given.map(|flags| flags & !(libc::O_CLOEXEC as u32)));
                file.position = file.position.or(Some(0));
                if let Some(size) = raw.files[0].as_ref().and_then(|facts| facts.size) {
                    self.set_size(file.id, |_| size);
                }
                self.name_file(&file);
                table.borrow_mut().fds.insert(result as i32, (Rc::new(RefCell::new(file)), closes));
            }
            CallClass::Dup if result >= 0 => self.duplicate(raw, kind, found),
            CallClass::Chdir if result == 0 => {
                *self.tables(raw).cwd.borrow_mut() = Some(found.path.unwrap_or(PathId::UNKNOWN));
            }
            CallClass::Seek if result >= 0 => {
                found.file.iter().for_each(|file| file.borrow_mut().position = Some(result as u64));
            }
            CallClass::Read | CallClass::Write if result >= 0 => {
                let end = offset.map(|offset| offset.saturating_add(result as u64));
                let explicit = value(CallArg::Offset).is_some_and(|offset| offset != u64::MAX);
                if let Some(file) = found.file.as_ref().filter(|_| !explicit) {
                    file.borrow_mut().position = end;
                }
                if let Some(end) = end.filter(|_| kind.class == CallClass::Write) {
                    self.set_size(file_id, |size| size.max(end));
                }
            }
            CallClass::Copy if result > 0 => {
                let moved = |file: &Option<SharedFile>| {
                    let mut file = file.as_ref()?.borrow_mut();
                    file.position = file.position.map(|position| position.saturating_add(result as u64));
                    Some((file.id, file.position?))
                };
                if raw.offset.is_none() {
                    moved(&found.file);
                }
                // The offset of the destination is not known to be the position's.
                let has_own = kind.arg(CallArg::Fd2) == Some(2) && raw.args[3] != 0;
                if let Some((id, end)) = moved(&found.second).filter(|_| !has_own) {
                    self.set_size(id, |size| size.max(end));
                }
            }
            CallClass::Truncate if result == 0 => {
                if let Some(size) = value(CallArg::Size) {
                    self.set_size(file_id, |_| size);
                }
            }
            CallClass::Map if kind.name == "mmap" && result > 0 => {
                if let Some(file) = found.file.as_ref().filter(|file| file.borrow().is_inside) {
                    table.borrow_mut().maps.insert(result as u64, (raw.args[1], Rc::clone(file)));
                }
            }
            CallClass::Map if kind.name == "munmap" => {
                table.borrow_mut().maps.remove(&raw.args[0]);
            }
            _ => {}
        }
    }

    fn duplicate(&mut self, raw: &RawCall, kind: &CallKind, found: &FoundFiles) {
        let command = kind.arg(CallArg::Command).map(|at| raw.args[at] as i32);
        let table = Rc::clone(&self.tables(raw).table);
        let fds = &mut table.borrow_mut().fds;
        if command == Some(libc::F_SETFD) {
            if let Some((_, closes)) = fds.get_mut(&raw.fd(0)) {
                *closes = raw.args[2] as i32 & libc::FD_CLOEXEC != 0;
            }
        } else if command == Some(libc::F_SETFL) {
            found.file.iter().for_each(|file| file.borrow_mut().flags = Some(raw.args[2] as u32));
        } else if command.is_none_or(|command| matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC)) {
            let new = raw.result as i32;
            let closes = command == Some(libc::F_DUPFD_CLOEXEC)
                || kind.name == "dup3" && raw.args[2] as i32 & libc::O_CLOEXEC != 0;
            match &found.file {
                Some(file) if new != raw.fd(0) => drop(fds.insert(new, (Rc::clone(file), closes))),
                Some(_) => {}
                None => drop(fds.remove(&new)),
            }
        }
    }
}

/// The flags that a call has as an argument, where they are known.
fn given_flags(raw: &RawCall, kind: &CallKind) -> Option<u32> {
    let given = kind.arg(CallArg::Flags).map(|at| raw.args[at]).filter(|flags| *flags != u64::MAX);
    raw.how_flags.or(given.map(|flags| flags as u32))
}

/// True if both may be the same file.
fn same_file(a: Option<InodeId>, b: Option<InodeId>) -> bool {
    match (a, b) {
        // `stat` and the kernel have different devices for a file on btrfs: none of them has a major number.
        (Some(a), Some(b)) => {
            let devices = [a.device, b.device];
            let is_one = a.device == b.device || devices.iter().all(|device| libc::major(*device) == 0);
            let generations = a.generation.zip(b.generation);
            a.inode == b.inode && is_one && generations.is_none_or(|(a, b)| a == b)
        }
        _ => true,
    }
}

#[cfg(test)]
#[path = "resolver_tests.rs"]
mod tests;
