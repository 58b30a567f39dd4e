//! From a trace to what each thread does: calls with numbers in place of names, and what each waits for.

use crate::descriptors::ReplayDescriptors;
use crate::lookout::Lookout;
use crate::names::NameId;
use crate::order::{OpPlace, ReplayOrder, ResourceId};
use crate::tree::{FileKind, FoundPath, NOTHING, ReplayTree};
use crate::wish::{ReplaySpeed, ReplayWish};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek};
use wml_trace::{CallClass, KindId, PathId, PathTable, TraceError, TraceEvent, TraceHeader, TraceReader, TracedCall};

/// What a call does in the replay. In words of what its numbers are: `a` is a descriptor, or that of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ReplayAction {
    /// Only waits for others.
    Nothing,
    /// `x`: the name, and the number of the file. `flags`.
    Open,
    /// Opens a file that the program had open before the trace. `y`: its position.
    Attach,
    Close,
    /// Closes a descriptor of which there is another one.
    CloseCopy,
    /// Closes what a program that ended has left open.
    Drop,
    /// `x`: the offset; `y`: the length.
    Read,
    ReadAt,
    Write,
    WriteAt,
    /// `x`: the operand, `y`: what it returned, `flags`: whence.
    Seek,
    List,
    Fstat,
    Fsync,
    Fdatasync,
    SyncFs,
    SyncRange,
    SetSize,
    Allocate,
    SetModeOpen,
    SetOwnerOpen,
    SetTimesOpen,
    GetXattrOpen,
    SetXattrOpen,
    /// `flags`: the operation of `flock`.
    LockFile,
    LockRange,
    TestLock,
    Advise,
    StatFsOpen,
    Copy,
    GetFlags,
    /// From `a` at `x` to the file `flags` at `y`.
    CopyRange,
    SendFile,
    /// `x`: the name.
    Stat,
    Access,
    ReadLink,
    StatFs,
    Enter,
    GetXattr,
    SetXattr,
    SetMode,
    SetOwner,
    SetTimes,
    /// `y`: the size.
    Truncate,
    Unlink,
    /// `y`: the number of the directory.
    RemoveDir,
    MakeDir,
    MakeFile,
    /// `x`: both names of directories, `y`: the new name.
    Rename,
    Link,
    LinkOpen,
    /// `y`: the length of its text.
    SymLink,
}

impl ReplayAction {
    /// True if what the program gave the call is in no trace.
    pub(crate) fn has_own_values(self) -> bool {
        use ReplayAction::{GetXattr, GetXattrOpen, LockRange, SetMode, SetModeOpen, SetOwner, SetOwnerOpen};
        use ReplayAction::{SetTimes, SetTimesOpen, SetXattr, SetXattrOpen, TestLock};
        matches!(self, GetXattr | GetXattrOpen | SetXattr | SetXattrOpen | LockRange | TestLock)
            || matches!(self, SetMode | SetModeOpen | SetOwner | SetOwnerOpen | SetTimes | SetTimesOpen)
    }
}

/// Another thread waits for it.
pub(crate) const AWAITED: u8 = 1;
/// It is no call of the program.
pub(crate) const OWN: u8 = 2;
/// Only whether it fails is compared.
pub(crate) const SIGN_ONLY: u8 = 4;
/// Its result says nothing here.
pub(crate) const ANY_RESULT: u8 = 8;

/// `mknod` makes a pipe: later calls say so.
pub(crate) const MAKES_PIPE: u32 = 1;

/// A call of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayOp {
    pub(crate) kind: KindId,
    pub(crate) action: ReplayAction,
    pub(crate) bits: u8,
    /// Where in the waits of its thread those of the call end: they begin where those of the call before end.
    pub(crate) waits_end: u32,
    pub(crate) a: u32,
    pub(crate) path: PathId,
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) expected: i32,
    pub(crate) flags: u32,
    /// Nanoseconds that it took when it was recorded.
    pub(crate) duration: u64,
}

/// What a thread does.
#[derive(Debug, Default)]
pub(crate) struct ReplayThread {
    process: u32,
    pub(crate) ops: Vec<ReplayOp>,
    pub(crate) waits: Vec<OpPlace>,
    /// When each begins, or with the time of threads left out, how long its thread sleeps before it.
    pub(crate) due: Vec<u64>,
    pub(crate) largest: u64,
    /// What began it.
    begun_by: Option<OpPlace>,
    has_ended: bool,
    /// Sleep that another traced thread ended.
    awaited: u64,
}

/// All that is to be done.
#[derive(Debug)]
pub(crate) struct ReplayPlan {
    pub(crate) header: TraceHeader,
    pub(crate) missing: Vec<String>,
    pub(crate) threads: Vec<ReplayThread>,
    pub(crate) tree: ReplayTree,
    pub(crate) paths: PathTable,
    pub(crate) files: u32,
    /// The most files that are open at a time.
    pub(crate) most_open: usize,
    /// Calls that are not replayed, by name.
    pub(crate) not_replayed: BTreeMap<&'static str, u64>,
    /// Operations of `io_uring`, which are plain calls here.
    pub(crate) as_plain: u64,
    /// The first calls on descriptors that no call had opened, and how many there are.
    pub(crate) unopened: (Vec<(KindId, PathId)>, u64),
    /// The first calls that found a name which neither the tree at the beginning has nor a call made.
    pub(crate) unexplained: (Vec<(KindId, PathId)>, u64),
    pub(crate) calls: u64,
    /// The length of the first write in a file that exists at the beginning.
    pub(crate) writes: HashMap<u32, u64>,
    /// How long the calls that are replayed were without a processor.
    pub(crate) runnable: Option<u64>,
    /// The end of the last call, since the beginning of the first.
    pub(crate) span: u64,
}

/// Makes a plan.
#[derive(Debug)]
pub(crate) struct PlanBuilder<'a> {
    pub(crate) wish: &'a ReplayWish,
    pub(crate) tree: ReplayTree,
    pub(crate) order: ReplayOrder,
    pub(crate) descriptors: ReplayDescriptors,
    pub(crate) threads: Vec<ReplayThread>,
    /// The threads that have not ended, by the number that the kernel gave them.
    alive: BTreeMap<u32, u32>,
    /// How many threads of a process have not ended.
    processes: HashMap<u32, u32>,
    pub(crate) not_replayed: BTreeMap<&'static str, u64>,
    pub(crate) as_plain: u64,
    pub(crate) unopened: (Vec<(KindId, PathId)>, u64),
    /// The first calls that found a name which neither the tree at the beginning has nor a call made.
    pub(crate) unexplained: (Vec<(KindId, PathId)>, u64),
    pub(crate) writes: HashMap<u32, u64>,
    calls: u64,
    runnable: Option<u64>,
    first: Option<u64>,
    last: u64,
}

/// The first calls of a kind that are named.
pub(crate) const NAMED: usize = 10;

/// A call that is being planned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewOp {
    pub(crate) action: ReplayAction,
    pub(crate) bits: u8,
    pub(crate) a: u32,
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) flags: u32,
}

impl NewOp {
    pub(crate) fn new(action: ReplayAction, a: u32) -> Self {
        Self { action, bits: 0, a, x: 0, y: 0, flags: 0 }
    }
}

impl ReplayPlan {
    /// Reads a trace twice.
    pub(crate) fn read(mut input: impl Read + Seek, wish: &ReplayWish) -> Result<Self, TraceError> {
        let mut reader = TraceReader::new(&mut input)?;
        let lookout = Lookout::read(&mut reader)?;
        let has_tree = !reader.tree().is_empty();
        let mut tree = ReplayTree::new(lookout, reader.paths(), has_tree);
        for entry in reader.tree() {
            tree.add_initial(entry.path, entry.mode, entry.size, reader.paths());
        }
        drop(reader);
        input.rewind()?;
        let mut reader = TraceReader::new(&mut input)?;
        let order = ReplayOrder::new(wish.is_by_thread);
        let mut builder = PlanBuilder {
            wish,
            tree,
            order,
            descriptors: ReplayDescriptors::default(),
            threads: Vec::new(),
            alive: BTreeMap::new(),
            processes: HashMap::new(),
            not_replayed: BTreeMap::new(),
            as_plain: 0,
            unopened: (Vec::new(), 0),
            unexplained: (Vec::new(), 0),
            writes: HashMap::new(),
            calls: 0,
            runnable: None,
            first: None,
            last: 0,
        };
        reader.for_each(|event, paths| builder.event(event, paths))?;
        for node in builder.tree.nodes.iter().filter(|node| node.kind == FileKind::Pipe && !node.is_initial) {
            if let Some((thread, op)) = node.made_by {
                builder.threads[thread as usize].ops[op as usize].flags = MAKES_PIPE;
            }
        }
        let (header, missing) = (reader.header().clone(), reader.missing());
        let begin = builder.first.unwrap_or(0);
        for due in builder.threads.iter_mut().flat_map(|thread| &mut thread.due).filter(|_| !wish.leaves_out_thinking) {
            *due = due.saturating_sub(begin);
        }
        Ok(Self {
            header,
            missing,
            threads: builder.threads,
            tree: builder.tree,
            paths: reader.into_paths(),
            files: builder.descriptors.count,
            most_open: builder.descriptors.most,
            not_replayed: builder.not_replayed,
            as_plain: builder.as_plain,
            unopened: builder.unopened,
            unexplained: builder.unexplained,
            calls: builder.calls,
            writes: builder.writes,
            runnable: builder.runnable,
            span: builder.last.saturating_sub(begin),
        })
    }
}

impl PlanBuilder<'_> {
    fn event(&mut self, event: &TraceEvent, paths: &PathTable) {
        match event {
            TraceEvent::Call(call) => {
                self.calls += 1;
                self.first = Some(self.first.unwrap_or(u64::MAX).min(call.start));
                self.last = self.last.max(call.end());
                self.thread(call.thread, call.process);
                self.call(call, paths);
            }
            TraceEvent::Wait(wait) => {
                if wait.woken_by.is_some()
                    && let Some(thread) = self.alive.get(&wait.thread)
                {
                    self.threads[*thread as usize].awaited += wait.duration;
                }
            }
            TraceEvent::Fork { parent, thread, process, .. } => {
                let begun_by = self.alive.get(parent).copied();
                let of = begun_by.map(|parent| self.threads[parent as usize].process);
                if let Some(parent) = of.filter(|parent| parent != process) {
                    self.descriptors.fork(parent, *process);
                }
                let new = self.thread(*thread, *process);
                self.threads[new as usize].begun_by = begun_by.and_then(|parent| self.last_of(parent));
            }
            TraceEvent::Exec { process, .. } => {
                if let Some(thread) = self.thread_of(*process) {
                    self.leave(thread, *process, false);
                }
            }
            TraceEvent::Exit { thread, .. } => {
                let Some(thread) = self.alive.remove(thread) else { return };
                let process = self.threads[thread as usize].process;
                let left = self.processes.entry(process).or_insert(1);
                *left -= 1;
                if *left == 0 {
                    self.processes.remove(&process);
                    self.leave(thread, process, true);
                }
                self.threads[thread as usize].has_ended = true;
            }
        }
    }

    /// The last call of a thread, or what began it.
    fn last_of(&self, thread: u32) -> Option<OpPlace> {
        let found = &self.threads[thread as usize];
        match found.ops.len() {
            0 => found.begun_by,
            n => Some(OpPlace { thread, op: n as u32 - 1 }),
        }
    }

    /// The number of a thread.
    fn thread(&mut self, id: u32, process: u32) -> u32 {
        if let Some(known) = self.alive.get(&id) {
            return *known;
        }
        let new = self.threads.len() as u32;
        self.threads.push(ReplayThread { process, ..ReplayThread::default() });
        self.alive.insert(id, new);
        *self.processes.entry(process).or_insert(0) += 1;
        new
    }

    fn thread_of(&self, process: u32) -> Option<u32> {
        let of = |thread: &&u32| self.threads[**thread as usize].process == process;
        self.alive.get(&process).or_else(|| self.alive.values().find(of)).copied()
    }

    /// A process executes another program, or ends.
    fn leave(&mut self, thread: u32, process: u32, is_end: bool) {
        for file in self.descriptors.leave(process, is_end) {
            let me = self.me(thread);
            self.close_last(me, file);
            // Without computing time it is the sleep before the call, which was slept already.
            let due = self.threads[thread as usize].due.last().copied().filter(|_| !self.wish.leaves_out_thinking);
            self.push(thread, NewOp { bits: OWN, ..NewOp::new(ReplayAction::Drop, file) }, None, due.unwrap_or(0));
        }
    }

    /// The place of the next call of a thread.
    pub(crate) fn me(&self, thread: u32) -> OpPlace {
        OpPlace { thread, op: self.threads[thread as usize].ops.len() as u32 }
    }

    /// The place of a call.
    pub(crate) fn me_of(&self, call: &TracedCall) -> OpPlace {
        self.me(self.alive.get(&call.thread).copied().unwrap_or(0))
    }

    /// Nobody has a file open any more.
    pub(crate) fn close_last(&mut self, me: OpPlace, file: u32) {
        if let Some(open) = self.descriptors.files.remove(&file) {
            self.order.changes(me, open.descriptor);
            if self.tree.node(open.node).locks != ResourceId::NONE {
                let locks = self.tree.node(open.node).locks;
                self.order.changes(me, locks);
            }
            self.tree.is_closed(open.node);
        }
    }

    /// Adds what a call does to its thread.
    pub(crate) fn add(&mut self, call: &TracedCall, new: NewOp) {
        let thread = self.alive.get(&call.thread).copied().unwrap_or(0);
        let due = match self.wish.leaves_out_thinking {
            _ if self.wish.speed == ReplaySpeed::Fast => 0,
            false => call.start,
            // The call itself comes next.
            true if new.action == ReplayAction::Attach => 0,
            true => {
                let awaited = std::mem::take(&mut self.threads[thread as usize].awaited);
                call.between.map_or(0, |between| between.blocked.saturating_sub(awaited))
            }
        };
        if let Some(runnable) = call.runnable.filter(|_| new.bits & OWN == 0) {
            self.runnable = Some(self.runnable.unwrap_or(0).saturating_add(runnable));
        }
        self.push(thread, new, Some(call), due);
    }

    fn push(&mut self, thread: u32, new: NewOp, call: Option<&TracedCall>, due: u64) {
        let me = self.me(thread);
        if let (0, Some(begun_by)) = (me.op, self.threads[thread as usize].begun_by) {
            self.order.wait(me, begun_by);
        }
        for other in &self.order.awaited {
            if let Some(op) = self.threads[other.thread as usize].ops.get_mut(other.op as usize) {
                op.bits |= AWAITED;
            }
        }
        self.order.is_known = false;
        let own = &mut self.threads[thread as usize];
        own.waits.append(&mut self.order.awaited);
        let is_own = new.bits & OWN != 0;
        // Where a copy fails is mostly where it goes to.
        let written = |call: &TracedCall| call.second_path.filter(|_| call.kind.get().class == CallClass::Copy);
        own.ops.push(ReplayOp {
            kind: call.map_or(KindId::default(), |call| call.kind),
            action: new.action,
            bits: new.bits,
            waits_end: own.waits.len() as u32,
            a: new.a,
            path: call.and_then(|call| written(call).or(call.path)).unwrap_or(PathId::ROOT),
            x: new.x,
            y: new.y,
            expected: call.map_or(0, |call| call.result.clamp(i32::MIN.into(), i32::MAX.into()) as i32),
            flags: new.flags,
            duration: call.filter(|_| !is_own).map_or(0, |call| call.duration),
        });
        if self.wish.speed != ReplaySpeed::Fast {
            own.due.push(due);
        }
    }

    /// Where a path of a call leads, and what it waits for on the way.
    pub(crate) fn find(&mut self, call: &TracedCall, path: PathId, follows: bool, paths: &PathTable) -> FoundPath {
        let found = self.tree.find(path, call, follows, paths, &mut self.order);
        if std::mem::take(&mut self.tree.is_unexplained) {
            self.unexplained.1 += 1;
            if self.unexplained.0.len() < NAMED {
                self.unexplained.0.push((call.kind, path));
            }
        }
        let me = self.me_of(call);
        for passed in std::mem::take(&mut self.tree.passed) {
            self.order.uses(me, passed);
        }
        let node = match found.node {
            NOTHING => NOTHING,
            _ if call.result >= 0 && call.path == Some(path) => self.tree.learn(found, call),
            node => node,
        };
        if node != NOTHING && self.tree.node(node).kind != FileKind::Directory && call.result >= 0 {
            // The text of a link has a length; a recorder that does not know it says 0.
            let is_link = self.tree.node(node).kind == FileKind::Link;
            self.learn_size(node, call.stat_size.or(call.size).filter(|size| !is_link || *size > 0));
        }
        FoundPath { node, ..found }
    }

    /// Takes the size that a call tells. The text of a link that the trace made gets its length.
    pub(crate) fn learn_size(&mut self, node: u32, size: Option<u64>) {
        let Some(size) = size else { return };
        let file = self.tree.node(node);
        if file.kind == FileKind::Link && !file.is_initial && !file.is_size_known {
            (file.size, file.is_size_known) = (size, true);
            if let Some((thread, op)) = file.made_by {
                self.threads[thread as usize].ops[op as usize].y = size;
            }
        }
        self.tree.learn_size(node, size);
    }

    /// The directory and the name of a place, as numbers; the call uses the name, or changes what it stands for.
    pub(crate) fn place(&mut self, call: &TracedCall, found: FoundPath, changes: bool) -> (u32, NameId) {
        let me = self.me_of(call);
        let resource = self.tree.resource(found.place, &mut self.order);
        match changes {
            true => self.order.changes(me, resource),
            false => self.order.uses(me, resource),
        }
        let handle = self.handle(found.place.dir);
        (handle, found.name)
    }

    /// The number of the descriptor of a directory. A call that makes the directory opens it.
    pub(crate) fn handle(&mut self, dir: u32) -> u32 {
        let is_new = self.tree.node(dir).handle == NOTHING;
        let handle = self.tree.handle(dir);
        if let Some((thread, op)) = self.tree.node(dir).made_by.filter(|_| is_new) {
            self.threads[thread as usize].ops[op as usize].y = u64::from(handle);
        }
        handle
    }

    /// A call that is not replayed.
    pub(crate) fn leave_out(&mut self, call: &TracedCall) {
        *self.not_replayed.entry(call.kind.get().name).or_insert(0) += 1;
        // What it waited for, later calls of the thread count on; and others may wait for it.
        if self.order.is_known {
            self.add(call, NewOp { bits: OWN, ..NewOp::new(ReplayAction::Nothing, NOTHING) });
        }
    }

    /// A call on a descriptor that no call had opened.
    pub(crate) fn is_unopened(&mut self, call: &TracedCall) {
        self.unopened.1 += 1;
        if let Some(path) = call.path.filter(|_| self.unopened.0.len() < NAMED) {
            self.unopened.0.push((call.kind, path));
        }
    }

    pub(crate) fn is_largest(&mut self, call: &TracedCall, length: u64) {
        let thread = self.me_of(call).thread;
        let own = &mut self.threads[thread as usize];
        own.largest = own.largest.max(length);
    }
}
