//! `deletefile`, `statfile`, and helpers for calls on files by name.

use super::args::Args;
use super::expected::{ExpectedError, NamedCall};
use super::transfer::FileUse;
use super::{BuiltOp, Effects, FlowopEntry, Stateless};
use crate::diag::{Code, Diagnostic};
use crate::engine::{Engine, Handle};
use crate::exec::slots::FileRef;
use crate::exec::{OpCx, Stop, UnitKind};
use crate::fileset::{Name, Want};
use crate::os::FileType;
use crate::os::{Errno, Fd};
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::ffi::CStr;
use std::sync::Arc;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "deletefile",
            class: Class::Io,
            direction: IoDirection::None,
            uses: &["filesetname", "fd", "opennext", "indexed", "uniform", "recent", "shuffle", "expect"],
            roles: &[Role::RemovesFile, Role::FreesSlot],
            origin: Origin::Both,
            doc: "removes the file that is or was open in the slot, else a file of the set; slots that have it open \
                  can still use it",
            example: "flowop deletefile name=rm,filesetname=spare\nflowop createfile name=cr,filesetname=spare,fd=1\nflowop closefile name=cl,fd=1",
        },
        build: Delete::build,
    },
    FlowopEntry {
        spec: Flowop {
            name: "statfile",
            class: Class::Io,
            direction: IoDirection::None,
            uses: &["filesetname", "fd", "opennext", "indexed", "uniform", "recent", "shuffle", "missing", "expect"],
            roles: &[Role::NeedsFile],
            origin: Origin::Both,
            doc: "reads the attributes of the open file in the slot (`fstat`), else of a file of the set (`stat`)",
            example: "flowop statfile name=st,filesetname=data",
        },
        build: StatFile::build,
    },
];

impl Delete {
    fn build(args: &Args<'_>) -> BuiltOp {
        if let Some(op) = ExpectedError::from_args(args, NamedCall::Unlink)? {
            return Ok(op);
        }
        Ok(Arc::new(Self { file: named_file(args)? }))
    }
}

impl StatFile {
    fn build(args: &Args<'_>) -> BuiltOp {
        if let Some(op) = ExpectedError::from_args(args, NamedCall::Stat)? {
            return Ok(op);
        }
        Ok(Arc::new(Self { file: named_file(args)? }))
    }
}

/// Returns the file of a flowop that works on the file in a slot or on one of a set. `Err` when the flowop names
/// neither.
pub(super) fn named_file(args: &Args<'_>) -> Result<FileUse, Diagnostic> {
    let file = FileUse::new(args, false)?;
    if file.set.is_none() && file.slot.fd == 0 {
        let message = format!("flowop `{}` has neither `filesetname=` nor `fd=`", args.name);
        return Err(Diagnostic::error(Code::MissingAttribute, args.span, message).help("add `filesetname=…` or `fd=…`"));
    }
    Ok(file)
}

/// Returns the open file in the slot that a flowop names or rotates to. `None` when there is none or the slot is closed.
///
/// Split for speed: most flowops that use this have no slot, which is one comparison. A `statfile` takes 317
/// instructions; with the slot looked up in any case it took 325.
#[inline]
pub(super) fn open_handle(file: &FileUse, cx: &mut OpCx<'_>) -> Option<(Handle, Option<FileRef>)> {
    if file.slot.fd | file.slot.rotate == 0 {
        cx.io.slots.set_last(0);
        return None;
    }
    handle_in_slot(file, cx)
}

/// The part of [`open_handle`] for flowops with a slot.
#[inline(never)]
fn handle_in_slot(file: &FileUse, cx: &mut OpCx<'_>) -> Option<(Handle, Option<FileRef>)> {
    let number = file.slot_or_none(cx);
    cx.io.slots.set_last(number);
    let slot = cx.io.slots.get(number);
    slot.handle.filter(|_| number > 0).map(|handle| (handle, slot.file))
}

/// Picks an existing file of the set and makes a call on its name; other threads cannot change the file meanwhile. The
/// call returns the bytes that it transferred. With `CHANGES` it is first checked that the file belongs to the set.
pub(super) fn call_by_name<const CHANGES: bool>(
    file: &FileUse,
    cx: &mut OpCx<'_>,
    what: &str,
    call: impl FnOnce(&dyn Engine, Fd, &CStr) -> Result<u64, Errno>,
) -> Result<(), Stop> {
    let Some(set) = &file.set else {
        let what = || format!("slot {} is closed", file.slot.fd);
        return Err(cx.misuse(what, "open a file there first, or add `filesetname=`"));
    };
    let by = file.pick.draw(cx);
    let file = cx.pick(set.id, Want::Existing, by, true)?;
    let mut name = Name::default();
    let outcome = match cx.locate_fast(file, &mut name) {
        Err(stop) => Err(stop),
        Ok(dir) => {
            if CHANGES && let Err(stop) = cx.verify_name(file, dir, name.as_c()) {
                cx.release(file);
                return Err(stop);
            }
            cx.begin();
            match call(cx.env.engine, dir, name.as_c()) {
                Ok(bytes) => cx.end_fast(bytes),
                Err(errno) => Err(cx.failed(what, errno, Some(file))),
            }
        }
    };
    // It may wake threads, whose time is not that of the next operation.
    if cx.release(file) {
        cx.restamp();
    }
    outcome
}

#[derive(Debug)]
struct Delete {
    file: FileUse,
}

impl Stateless for Delete {
    fn describe(&self) -> String {
        self.file.describe()
    }

    fn effects(&self) -> Effects {
        let effects = self.file.effects();
        let makes = effects.sets.iter().map(|set| (*set, Want::Absent, UnitKind::File)).collect();
        let has_slot = self.file.slot.fd > 0 || self.file.slot.rotate > 0;
        let makes_in_slot = has_slot.then_some((Want::Absent, UnitKind::File));
        Effects { makes, makes_in_slot, ..effects }
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        // A slot remembers its file after it is closed. As in Filebench, that file is removed whatever its set is.
        let slot = self.file.slot_or_none(cx);
        let named = if slot > 0 { cx.io.slots.get(slot).file } else { None };
        let held = match named.map(|f| cx.hold_existing(f)) {
            None => None,
            Some(Ok(true)) => named,
            Some(Ok(false)) => {
                // Another thread has removed it: there is nothing to do, and no other file must be removed instead.
                cx.io.slots.get_mut(slot).file = None;
                return Ok(());
            }
            Some(Err(stop)) => return Err(stop),
        };
        let file = if let Some(file) = held {
            cx.restamp();
            cx.io.slots.get_mut(slot).file = None;
            file
        } else {
            let Some(set) = &self.file.set else {
                let what = || format!("slot {slot} has no file to remove");
                return Err(cx.misuse(what, "open a file there first, or add `filesetname=`"));
            };
            let by = self.file.pick.draw(cx);
            cx.pick(set.id, Want::Existing, by, true)?
        };
        let mut name = Name::default();
        let dir = match cx.locate_fast(file, &mut name) {
            Ok(dir) => dir,
            Err(stop) => {
                cx.release(file);
                return Err(stop);
            }
        };
        if let Err(stop) = cx.verify_name(file, dir, name.as_c()) {
            cx.release(file);
            return Err(stop);
        }
        cx.begin();
        match cx.env.engine.unlink(dir, name.as_c()) {
            Ok(()) => {
                let outcome = cx.end(0);
                cx.files.views[file.set].set.state.set_exists(file.index, false);
                cx.restamp();
                outcome
            }
            Err(errno) => {
                cx.release(file);
                Err(cx.failed("unlink failed", errno, Some(file)))
            }
        }
    }
}

#[derive(Debug)]
struct StatFile {
    file: FileUse,
}

impl Stateless for StatFile {
    fn describe(&self) -> String {
        self.file.describe()
    }

    fn preserves(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        self.file.effects()
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        if let Some((handle, file)) = open_handle(&self.file, cx) {
            cx.begin();
            return match cx.env.engine.stat_open(&handle) {
                Ok(_) => cx.end(0),
                Err(errno) => Err(cx.failed("fstat failed", errno, file)),
            };
        }
        call_by_name::<false>(&self.file, cx, "stat failed", |engine, dir, name| match engine.stat(dir, name)? {
            FileType::RegularFile | FileType::Symlink => Ok(0),
            // The handler of the error inspects the name and reports anything that is not a file of the set.
            _ => Err(Errno::OPNOTSUPP),
        })
    }
}
