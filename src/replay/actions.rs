//! What each call of a trace does in the replay: one match over the classes of calls.

use crate::descriptors::SoughtFile;
use crate::plan::{ANY_RESULT, NewOp, OWN, PlanBuilder, ReplayAction, SIGN_ONLY};
use crate::tree::{FileKind, FilePlace, FoundPath, LINK_LENGTH, NOTHING};
use wml_trace::{CallArg, CallClass, PathId, PathTable, TracedCall, flags as numbers};

/// The flag of `unlinkat` for directories.
const REMOVE_DIR: i32 = 0x200;
/// The flag of `fallocate` for space beyond the end.
const KEEP_SIZE: i32 = 1;
/// Its flags that take space away.
const PUNCH_HOLE: i32 = 2;
const COLLAPSE: i32 = 8;

/// Two numbers of an operation in one.
fn both(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Errors whose cause is not in a trace.
const NOT_KNOWN: [i32; 6] =
    [numbers::EBADF, numbers::EACCES, numbers::EINTR, numbers::EPERM, numbers::EROFS, numbers::EXDEV];

impl PlanBuilder<'_> {
    /// Plans a call.
    pub(crate) fn call(&mut self, call: &TracedCall, paths: &PathTable) {
        let kind = call.kind.get();
        if kind.name.starts_with("uring_") {
            self.as_plain += 1;
        }
        match kind.class {
            // It is on none of the open files, or failed for want of rights or by a signal: that is not known.
            _ if NOT_KNOWN.iter().any(|error| call.result == -i64::from(*error)) => self.leave_out(call),
            CallClass::Map | CallClass::Fault | CallClass::Control | CallClass::Other => self.leave_out(call),
            _ if matches!(kind.name, "msync" | "splice" | "uring_splice") => self.leave_out(call),
            CallClass::SyncAll if kind.name == "sync" => self.add(call, NewOp::new(ReplayAction::SyncFs, NOTHING)),
            _ => {
                let Some(path) = call.path else { return self.leave_out(call) };
                match kind.arg(CallArg::Path).is_some() {
                    true => self.by_name(call, path, paths),
                    false => self.by_descriptor(call, path, paths),
                }
            }
        }
    }

    /// The open file of a call on a descriptor. One that no call has opened is opened before the call.
    fn file(&mut self, call: &TracedCall, path: PathId, paths: &PathTable) -> Option<u32> {
        let flags = call.flags.filter(|_| call.kind.get().class.moves_data());
        let sought = SoughtFile { number: call.descriptor, id: call.file, position: call.offset, flags };
        let found = self.descriptors.find(call.process, path, sought);
        if let Some(file) = found.or_else(|| self.descriptors.find_anywhere(call.process, path, sought)) {
            let me = self.me_of(call);
            let open = self.descriptors.files.get(&file)?;
            let (descriptor, node) = (open.descriptor, open.node);
            self.order.uses(me, descriptor);
            if let Some(kind) = call.mode.and_then(FileKind::of_mode) {
                self.tree.set_kind(node, kind);
            }
            if self.tree.node(node).kind != FileKind::Directory {
                self.learn_size(node, call.stat_size.or(call.size));
            }
            return Some(file);
        }
        self.is_unopened(call);
        let found = self.find(call, path, true, paths);
        if found.node == NOTHING || found.is_cut {
            self.leave_out(call);
            return None;
        }
        let (dir, name) = self.place(call, found, false);
        let (one, two) = (self.order.add(), self.order.add());
        let file = self.descriptors.open(call.process, path, found.node, sought, [one, two]);
        self.tree.space.is_opened(found.node);
        let me = self.me_of(call);
        self.order.changes(me, one);
        let x = both(name.0, file);
        let new = NewOp { bits: OWN, x, y: call.offset.unwrap_or(0), ..NewOp::new(ReplayAction::Attach, dir) };
        self.add(call, NewOp { flags: flags.unwrap_or(u32::MAX), ..new });
        Some(file)
    }

    /// A call on a descriptor.
    fn by_descriptor(&mut self, call: &TracedCall, path: PathId, paths: &PathTable) {
        use ReplayAction as Do;
        let kind = call.kind.get();
        if kind.name == "sendfile" && call.second_path.is_none() {
            return self.leave_out(call);
        }
        let Some(file) = self.file(call, path, paths) else { return };
        let me = self.me_of(call);
        let Some(open) = self.descriptors.files.get(&file) else { return };
        let (node, place, position) = (open.node, open.place, open.position);
        let appends = open.flags as i32 & numbers::O_APPEND != 0;
        let (offset, wanted) = (call.offset.unwrap_or(0), call.wanted.unwrap_or(0));
        let flags = call.flags.unwrap_or(0);
        let command = flags as i32;
        let simple = |action| NewOp::new(action, file);
        let data = self.order.at(&mut self.tree.node(node).data);
        let permissions = self.permissions(node);
        match kind.class {
            CallClass::Close => {
                let is_last = self.descriptors.close(call.process, path, file, call.descriptor);
                if is_last {
                    self.close_last(me, file);
                }
                self.add(call, simple(if is_last { Do::Close } else { Do::CloseCopy }));
            }
            CallClass::Read | CallClass::Write => {
                let is_at = kind.arg(CallArg::Offset).is_some();
                let writes = kind.class == CallClass::Write;
                let moves = !is_at && (position == offset || writes && appends || call.offset.is_none());
                let done = u64::try_from(call.result).unwrap_or(0);
                // An append begins at the end, whatever the position is.
                let start = if writes && appends && !is_at { self.tree.node(node).size } else { offset };
                let end = start.saturating_add(done);
                if moves {
                    self.order.changes(me, place);
                    if let Some(open) = self.descriptors.files.get_mut(&file) {
                        open.position = end;
                    }
                }
                if writes && end > self.tree.node(node).size && done > 0 {
                    self.order.changes(me, data);
                    self.tree.set_size(node, end);
                } else {
                    self.order.uses(me, data);
                }
                if writes {
                    self.tree.adds(node, done);
                }
                if !writes && done > 0 {
                    self.tree.learn_least_size(node, end);
                }
                self.is_largest(call, wanted);
                if writes && done > 0 && self.tree.node(node).is_initial {
                    self.writes.entry(node).or_insert(done);
                }
                let action = match (writes, moves) {
                    (false, true) => Do::Read,
                    (false, false) => Do::ReadAt,
                    (true, true) => Do::Write,
                    (true, false) => Do::WriteAt,
                };
                self.add(call, NewOp { x: offset, y: wanted, ..simple(action) });
            }
            CallClass::Seek => self.seek(call, file),
            CallClass::List => {
                self.tree.set_kind(node, FileKind::Directory);
                self.order.changes(me, place);
                self.is_largest(call, wanted);
                self.add(call, NewOp { bits: SIGN_ONLY, y: wanted, ..simple(Do::List) });
            }
            CallClass::Copy => {
                let Some(to) = call.second_path else { return self.leave_out(call) };
                let Some(other) = self.descriptors.find(call.process, to, SoughtFile::default()) else {
                    self.is_unopened(call);
                    return self.leave_out(call);
                };
                self.copy(call, file, other);
            }
            CallClass::Fstat => self.add(call, simple(Do::Fstat)),
            CallClass::Fsync => self.add(call, simple(Do::Fsync)),
            CallClass::Fdatasync => self.add(call, simple(Do::Fdatasync)),
            CallClass::SyncAll => self.add(call, simple(Do::SyncFs)),
            CallClass::SyncRange => {
                self.add(call, NewOp { x: offset, y: wanted, flags, ..simple(Do::SyncRange) });
            }
            CallClass::Truncate => {
                self.order.changes(me, data);
                if call.result >= 0 {
                    self.tree.cuts(node, wanted);
                }
                self.add(call, NewOp { y: wanted, ..simple(Do::SetSize) });
            }
            CallClass::Allocate => {
                self.order.changes(me, data);
                let end = offset.saturating_add(wanted);
                if call.result >= 0 && command & KEEP_SIZE == 0 && end > self.tree.node(node).size {
                    self.tree.set_size(node, end);
                }
                if call.result >= 0 && command & (PUNCH_HOLE | COLLAPSE) == 0 {
                    self.tree.allocates(node, end, wanted);
                }
                self.add(call, NewOp { x: offset, y: wanted, flags, ..simple(Do::Allocate) });
            }
            CallClass::Chmod => self.add(call, NewOp { flags: permissions, ..simple(Do::SetModeOpen) }),
            CallClass::Chown => self.add(call, simple(Do::SetOwnerOpen)),
            CallClass::Utimes => self.add(call, simple(Do::SetTimesOpen)),
            CallClass::GetXattr => self.add(call, NewOp { bits: ANY_RESULT, ..simple(Do::GetXattrOpen) }),
            CallClass::SetXattr => self.add(call, NewOp { bits: ANY_RESULT, ..simple(Do::SetXattrOpen) }),
            CallClass::Lock => {
                let locks = self.order.at(&mut self.tree.node(node).locks);
                self.order.changes(me, locks);
                let new = match kind.name {
                    "flock" => NewOp { flags, ..simple(Do::LockFile) },
                    _ if command == numbers::F_GETLK || command == numbers::F_OFD_GETLK => simple(Do::TestLock),
                    // Of a lock by `fcntl` neither its range nor its kind is recorded.
                    _ => simple(Do::LockRange),
                };
                let bits = if new.action == Do::LockFile { SIGN_ONLY } else { ANY_RESULT };
                self.add(call, NewOp { bits, ..new });
            }
            CallClass::Advise => self.add(call, NewOp { x: offset, y: wanted, flags, ..simple(Do::Advise) }),
            CallClass::Statfs => self.add(call, simple(Do::StatFsOpen)),
            CallClass::Dup => {
                let is_command = kind.arg(CallArg::Command).is_some();
                if !call.is_copy_of_descriptor() {
                    return self.add(call, NewOp { bits: ANY_RESULT, ..simple(Do::GetFlags) });
                }
                if call.result >= 0 {
                    let closes = is_command && command == numbers::F_DUPFD_CLOEXEC
                        || kind.name == "dup3" && command & numbers::O_CLOEXEC != 0;
                    let number = u32::try_from(call.result).ok();
                    self.descriptors.copy(call.process, path, file, number, closes);
                }
                self.add(call, NewOp { bits: SIGN_ONLY, ..simple(Do::Copy) });
            }
            // `fchdir`: names are absolute here.
            CallClass::Chdir => self.add(call, simple(Do::Fstat)),
            _ => {
                self.leave_out(call);
            }
        }
    }

    fn seek(&mut self, call: &TracedCall, file: u32) {
        let me = self.me_of(call);
        let Some(open) = self.descriptors.files.get_mut(&file) else { return };
        let (node, place, position) = (open.node, open.place, open.position);
        if call.result >= 0 {
            open.position = call.result as u64;
        }
        self.order.changes(me, place);
        let data = self.order.at(&mut self.tree.node(node).data);
        self.order.uses(me, data);
        let whence = call.flags.unwrap_or(0) as i32;
        let operand = match whence {
            numbers::SEEK_CUR => call.result.saturating_sub(position as i64),
            numbers::SEEK_END => call.result.saturating_sub(self.tree.node(node).size as i64),
            // Where it looked for data or a hole is not recorded.
            numbers::SEEK_DATA | numbers::SEEK_HOLE => position as i64,
            _ => call.result,
        };
        // Of a call that failed, an operand that fails.
        let operand = if call.result < 0 { i64::MIN } else { operand };
        let looks = matches!(whence, numbers::SEEK_DATA | numbers::SEEK_HOLE);
        let bits = if looks { ANY_RESULT } else { 0 };
        let new = NewOp { bits, x: operand as u64, y: call.result as u64, ..NewOp::new(ReplayAction::Seek, file) };
        self.add(call, NewOp { flags: whence as u32, ..new });
    }

    /// Copies in the kernel, from one open file to another.
    fn copy(&mut self, call: &TracedCall, from: u32, to: u32) {
        let me = self.me_of(call);
        let Some(open) = self.descriptors.files.get_mut(&to) else { return };
        let (node, descriptor, place, at) = (open.node, open.descriptor, open.place, open.position);
        let done = u64::try_from(call.result).unwrap_or(0);
        let is_send = call.kind.get().name == "sendfile";
        open.position += done;
        self.order.uses(me, descriptor);
        self.order.changes(me, place);
        let data = self.order.at(&mut self.tree.node(node).data);
        self.order.changes(me, data);
        let end = at.saturating_add(done);
        if end > self.tree.node(node).size {
            self.tree.set_size(node, end);
        }
        self.tree.adds(node, done);
        let source = self.descriptors.files.get(&from).map_or(NOTHING, |open| open.node);
        let offset = call.offset.unwrap_or(0);
        if source != NOTHING {
            let data = self.order.at(&mut self.tree.node(source).data);
            self.order.uses(me, data);
            self.tree.learn_least_size(source, offset.saturating_add(done));
        }
        let action = if is_send { ReplayAction::SendFile } else { ReplayAction::CopyRange };
        self.add(call, NewOp { x: offset, y: at, flags: to, ..NewOp::new(action, from) });
    }

    fn permissions(&self, node: u32) -> u32 {
        let is_dir = node != NOTHING && self.tree.nodes[node as usize].kind == FileKind::Directory;
        if is_dir { 0o755 } else { 0o644 }
    }

    /// A call on a name.
    fn by_name(&mut self, call: &TracedCall, path: PathId, paths: &PathTable) {
        use ReplayAction as Do;
        let kind = call.kind.get();
        let flags = call.flags.unwrap_or(0) as i32;
        let ok = call.result >= 0;
        match kind.class {
            CallClass::Open => return self.open(call, path, paths),
            CallClass::Rename | CallClass::Link => return self.two_names(call, path, paths),
            _ => {}
        }
        let found = self.find(call, path, call.follows_links(), paths);
        let exists = found.node != NOTHING && !found.is_cut;
        if !exists && ok && self.by_open_file(call, path) {
            return;
        }
        let removes_dir = kind.class == CallClass::Rmdir || kind.class == CallClass::Unlink && flags & REMOVE_DIR != 0;
        let makes = matches!(kind.class, CallClass::Mkdir | CallClass::Mknod | CallClass::Symlink);
        // A directory is not removed while something is in it: that waits for what empties it, and what fills it.
        let changes = (makes || kind.class == CallClass::Unlink) && ok || removes_dir;
        if makes && !ok {
            self.tree.may_make(&found);
        }
        let (dir, name) = self.place(call, found, changes);
        let simple = |action| NewOp { x: u64::from(name.0), ..NewOp::new(action, dir) };
        let (me, permissions) = (self.me_of(call), self.permissions(found.node));
        match kind.class {
            CallClass::Stat => self.add(call, simple(Do::Stat)),
            CallClass::Access => {
                // Which permission was asked for is not recorded.
                let is_missing = [numbers::ENOENT, numbers::ENOTDIR].map(i64::from).contains(&-call.result);
                let bits = if ok || is_missing { 0 } else { ANY_RESULT };
                self.add(call, NewOp { bits, ..simple(Do::Access) });
            }
            CallClass::Readlink => {
                if exists && ok {
                    self.tree.set_kind(found.node, FileKind::Link);
                    self.learn_size(found.node, Some(call.result as u64));
                }
                self.add(call, simple(Do::ReadLink));
            }
            CallClass::Statfs => self.add(call, simple(Do::StatFs)),
            CallClass::Chdir => {
                if exists && ok {
                    self.tree.set_kind(found.node, FileKind::Directory);
                }
                self.add(call, simple(Do::Enter));
            }
            CallClass::GetXattr => self.add(call, NewOp { bits: ANY_RESULT, ..simple(Do::GetXattr) }),
            CallClass::SetXattr => self.add(call, NewOp { bits: ANY_RESULT, ..simple(Do::SetXattr) }),
            CallClass::Chmod => self.add(call, NewOp { flags: permissions, ..simple(Do::SetMode) }),
            CallClass::Chown => self.add(call, simple(Do::SetOwner)),
            CallClass::Utimes => self.add(call, simple(Do::SetTimes)),
            CallClass::Truncate => {
                let wanted = call.wanted.unwrap_or(0);
                if exists {
                    let data = self.order.at(&mut self.tree.node(found.node).data);
                    self.order.changes(me, data);
                    if ok {
                        self.tree.cuts(found.node, wanted);
                    }
                }
                self.add(call, NewOp { y: wanted, ..simple(Do::Truncate) });
            }
            _ if removes_dir => {
                let mut handle = NOTHING;
                if exists && ok {
                    self.tree.set_kind(found.node, FileKind::Directory);
                    self.tree.remove(found.place);
                    handle = self.tree.node(found.node).handle;
                }
                self.add(call, NewOp { y: u64::from(handle), ..simple(Do::RemoveDir) });
            }
            CallClass::Unlink => {
                if exists && ok {
                    self.tree.set_kind(found.node, FileKind::File);
                    self.tree.remove(found.place);
                }
                self.add(call, simple(Do::Unlink));
            }
            CallClass::Mkdir => {
                if ok && !exists && !found.is_cut {
                    let node = self.tree.create(found.place, FileKind::Directory);
                    self.tree.node(node).made_by = Some((me.thread, me.op));
                }
                self.add(call, NewOp { y: u64::from(NOTHING), ..simple(Do::MakeDir) });
            }
            CallClass::Mknod => {
                if ok && !exists && !found.is_cut {
                    let node = self.tree.create(found.place, FileKind::Unknown);
                    self.tree.node(node).made_by = Some((me.thread, me.op));
                }
                self.add(call, simple(Do::MakeFile));
            }
            CallClass::Symlink => {
                if ok && !exists && !found.is_cut {
                    let node = self.tree.create(found.place, FileKind::Link);
                    let node = self.tree.node(node);
                    (node.made_by, node.is_size_known) = (Some((me.thread, me.op)), false);
                    node.size = LINK_LENGTH;
                }
                self.add(call, NewOp { y: LINK_LENGTH, ..simple(Do::SymLink) });
            }
            _ => {
                self.leave_out(call);
            }
        }
    }

    /// A call on the name of an open file that has none any more, or another one. Returns false if none is open.
    fn by_open_file(&mut self, call: &TracedCall, path: PathId) -> bool {
        let action = match call.kind.get().class {
            CallClass::Stat => ReplayAction::Fstat,
            CallClass::Chmod => ReplayAction::SetModeOpen,
            CallClass::Chown => ReplayAction::SetOwnerOpen,
            CallClass::Utimes => ReplayAction::SetTimesOpen,
            _ => return false,
        };
        let sought = SoughtFile { id: call.file, ..SoughtFile::default() };
        let Some(file) = self.descriptors.find(call.process, path, sought) else { return false };
        let Some((node, descriptor)) = self.descriptors.files.get(&file).map(|open| (open.node, open.descriptor))
        else {
            return false;
        };
        let (me, permissions) = (self.me_of(call), self.permissions(node));
        self.order.uses(me, descriptor);
        self.add(call, NewOp { flags: permissions, ..NewOp::new(action, file) });
        true
    }

    fn open(&mut self, call: &TracedCall, path: PathId, paths: &PathTable) {
        let given = call.flags.unwrap_or(0);
        let flags = given as i32;
        let ok = call.result >= 0;
        let creates = flags & numbers::O_CREAT != 0;
        let is_unnamed = flags & numbers::O_TMPFILE == numbers::O_TMPFILE;
        let at = if is_unnamed && ok { paths.parent(path) } else { path };
        let is_exclusive = creates && flags & numbers::O_EXCL != 0;
        let found = self.find(call, at, call.follows_links() && !is_exclusive, paths);
        if creates && !ok {
            self.tree.may_make(&found);
        }
        let is_new = creates && ok && found.node == NOTHING && !found.is_cut && !is_unnamed;
        let (dir, name) = match is_unnamed && ok && found.node != NOTHING {
            true => {
                self.tree.set_kind(found.node, FileKind::Directory);
                let here = self.tree.names.number(b".");
                let place = FilePlace { dir: found.node, name: here };
                self.place(call, FoundPath { place, name: here, ..found }, false)
            }
            false => self.place(call, found, is_new),
        };
        let me = self.me_of(call);
        let mut node = found.node;
        if is_new {
            node = self.tree.create(found.place, FileKind::File);
        } else if is_unnamed && ok {
            node = self.tree.create_unnamed(found.node);
        }
        if is_new && let Some(id) = call.file {
            self.tree.set_id(node, id);
        }
        let mut file = NOTHING;
        if ok && node != NOTHING {
            if flags & numbers::O_DIRECTORY != 0 && !is_unnamed {
                self.tree.set_kind(node, FileKind::Directory);
            }
            let truncates = flags & numbers::O_TRUNC != 0 && flags & numbers::O_ACCMODE != 0 && !is_new;
            if truncates {
                let data = self.order.at(&mut self.tree.node(node).data);
                self.order.changes(me, data);
                self.tree.cuts(node, 0);
            }
            let resources = [self.order.add(), self.order.add()];
            self.order.changes(me, resources[0]);
            let number = u32::try_from(call.result).ok();
            let of = SoughtFile { number, id: call.file, position: None, flags: Some(given) };
            file = self.descriptors.open(call.process, path, node, of, resources);
            self.tree.space.is_opened(node);
        }
        let x = both(name.0, file);
        self.add(call, NewOp { bits: SIGN_ONLY, x, flags: given, ..NewOp::new(ReplayAction::Open, dir) });
    }

    /// `rename` and `link`.
    fn two_names(&mut self, call: &TracedCall, path: PathId, paths: &PathTable) {
        let Some(to) = call.second_path else { return self.leave_out(call) };
        let is_link = call.kind.get().class == CallClass::Link;
        let ok = call.result >= 0;
        let from = self.find(call, path, is_link && call.follows_links(), paths);
        let me = self.me_of(call);
        let unnamed = match is_link && ok && from.node == NOTHING {
            true => {
                let sought = SoughtFile { id: call.file, ..SoughtFile::default() };
                self.descriptors.find(call.process, path, sought)
            }
            false => None,
        };
        let second = self.find(call, to, false, paths);
        if !ok {
            self.tree.may_make(&second);
        }
        let (to_dir, to_name) = self.place(call, second, ok);
        if let Some(file) = unnamed
            && let Some(open) = self.descriptors.files.get(&file)
        {
            let (node, descriptor) = (open.node, open.descriptor);
            self.order.uses(me, descriptor);
            self.tree.link(node, second.place);
            let x = both(0, to_dir);
            return self.add(call, NewOp { x, y: u64::from(to_name.0), ..NewOp::new(ReplayAction::LinkOpen, file) });
        }
        let (dir, name) = self.place(call, from, ok && !is_link);
        let flags = call.flags.unwrap_or(0);
        if ok && from.node != NOTHING && !from.is_cut && !second.is_cut {
            match is_link {
                true => self.tree.link(from.node, second.place),
                false => {
                    let exchanges = flags & numbers::RENAME_EXCHANGE != 0;
                    self.tree.rename(from.place, second.place, exchanges);
                }
            }
        }
        let action = if is_link { ReplayAction::Link } else { ReplayAction::Rename };
        let x = both(name.0, to_dir);
        self.add(call, NewOp { x, y: u64::from(to_name.0), flags, ..NewOp::new(action, dir) });
    }
}
