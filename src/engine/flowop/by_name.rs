//! Calls on the name of a file, and on the file in a slot if there is one.

use super::args::Args;
use super::transfer::FileUse;
use crate::exec::slots::FileRef;
use crate::exec::{OpCx, Stop};
use crate::fileset::{Name, Want};
use crate::io_engine::{self, Handle};
use std::ffi::CStr;
use wml_language::diag::{Code, Diagnostic};
use wml_os::fd::{Fd, Result as OsResult};

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

/// Makes a call on the name of a file that is held, and releases it.
pub(super) fn call_on(
    file: FileRef,
    cx: &mut OpCx<'_>,
    failure: &str,
    call: impl FnOnce(Fd, &CStr) -> OsResult<u64>,
) -> Result<(), Stop> {
    let mut name = Name::default();
    let outcome = cx.locate_fast(file, &mut name).and_then(|dir| {
        cx.begin();
        match io_engine::call(dir, |dir| call(dir, name.as_c())) {
            Ok(_) => cx.end(0),
            Err(errno) => Err(cx.failed(failure, errno, Some(file))),
        }
    });
    if cx.release(file) {
        cx.restamp();
    }
    outcome
}

/// Picks an existing file of the set and makes a call on its name; other threads cannot change the file meanwhile. The
/// call returns the number of system calls beyond the first. With `CHANGES` it is first checked that the file belongs to
/// the set.
#[inline]
pub(super) fn call_by_name<const CHANGES: bool>(
    file: &FileUse,
    cx: &mut OpCx<'_>,
    failure: &str,
    call: impl FnOnce(Fd, &CStr) -> OsResult<u64>,
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
            match io_engine::call(dir, |dir| call(dir, name.as_c())) {
                Ok(further) => {
                    let ended = cx.end_fast(0);
                    if CHANGES && further > 0 {
                        cx.cell().add_calls(further);
                    }
                    ended
                }
                Err(errno) => Err(cx.failed(failure, errno, Some(file))),
            }
        }
    };
    // It may wake threads, whose time is not that of the next operation.
    if cx.release(file) {
        cx.restamp();
    }
    outcome
}
