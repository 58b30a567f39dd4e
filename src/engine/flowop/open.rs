//! Opening and closing of file slots: `openfile`, `createfile`, `closefile`.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, entry, stateless};
use super::transfer::FileUse;
use crate::exec::{OpCx, Stop, UnitKind};
use crate::fileset::Want;
use crate::io_engine::{self, Handle};
use wml_language::spec::{Origin, Role};
use wml_os::{Errno, Mode, OFlags, fd};

/// The common attributes of `openfile` and `createfile`, followed by those that only one of them has.
macro_rules! uses {
    ($($own:literal),*) => {
        &["filesetname", "fd", "opennext", "indexed", "uniform", "shuffle", "directio", "dsync", "noreadahead", $($own),*]
    };
}

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("openfile", |args| open(args, false))
        .origin(Origin::Both)
        .uses(uses!("recent", "missing", "expect"))
        .roles(&[Role::OpensSlot, Role::NeedsFile])
        .doc("opens an existing file of the set in the slot")
        .example("flowop openfile name=op,filesetname=data,fd=1\nflowop closefile name=cl,fd=1"),
    entry("createfile", |args| open(args, true))
        .origin(Origin::Both)
        .uses(uses!("expect", "tmpfile"))
        .roles(&[Role::OpensSlot, Role::MakesFile])
        .doc("creates a file of the set that does not exist, and opens it in the slot")
        .example("flowop createfile name=cr,filesetname=spare,fd=1\nflowop closefile name=cl,fd=1\nflowop deletefile name=rm,filesetname=spare"),
    entry("closefile", close)
        .origin(Origin::Both)
        .uses(&["filesetname", "fd"])
        .roles(&[Role::ClosesSlot])
        .doc("closes the file in the slot")
        .example("flowop openfile name=op,filesetname=data,fd=1\nflowop closefile name=cl,fd=1"),
];

fn open(args: &Args<'_>, create: bool) -> BuiltOp {
    if create && args.flag("tmpfile")? {
        return open_nameless(args);
    }
    let (set, file) = (args.need_fileset()?.id, FileUse::new(args, !create)?);
    let makes = if create { vec![(set, Want::Existing, UnitKind::File)] } else { Vec::new() };
    let preserves = !create && !file.flags.intersects(OFlags::CREATE | OFlags::TRUNC);
    Ok(stateless(file.describe(), Effects { preserves, makes, ..file.effects() }, move |cx| {
        let slot = cx.io.slots.choose(&file.slot);
        is_closed(cx, slot)?;
        let by = file.pick.draw(cx);
        let (want, flags) = if create {
            // `EXCL`: an existing file of that name is inspected first, as it may belong to another program.
            (Want::Absent, file.flags | OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC)
        } else {
            (Want::Existing, file.flags)
        };
        let picked = cx.pick(set, want, by, true)?;
        let opened = cx.open(slot, picked, flags, file.readahead);
        let outcome = match opened {
            Ok(()) => cx.end(0),
            Err(stop) => {
                cx.release(picked);
                return Err(stop);
            }
        };
        let state = &cx.files.views[picked.set].set.state;
        if create {
            state.set_exists(picked.index, true);
            cx.restamp();
        } else if cx.release(picked) {
            cx.restamp();
        }
        outcome
    }))
}

/// Opens a file without a name in the next directory of the set.
fn open_nameless(args: &Args<'_>) -> BuiltOp {
    let (set, file) = (args.need_fileset()?.id, FileUse::new(args, false)?);
    // Also for a set whose files are opened for one direction: the kernel makes none that can't be written.
    let flags = (file.flags - OFlags::WRONLY - OFlags::RDONLY) | OFlags::RDWR | OFlags::TMPFILE;
    Ok(stateless(file.describe() + " tmpfile", Effects { preserves: true, ..file.effects() }, move |cx| {
        let slot = cx.io.slots.choose(&file.slot);
        open_next_dir(cx, set, slot, flags, "creating a file without a name failed")
    }))
}

/// Opens the next directory of a set, or with `TMPFILE` a file without a name in it.
pub(super) fn open_next_dir(
    cx: &mut OpCx<'_>,
    set: usize,
    slot: usize,
    flags: OFlags,
    failure: &str,
) -> Result<(), Stop> {
    cx.restamp();
    is_closed(cx, slot)?;
    let part = cx.any_part(set);
    let dir = cx.files.views[part].set.state.next_dir();
    let opened = cx.dir(part, dir).and_then(|dir| {
        cx.begin();
        io_engine::call(dir, |dir| fd::open_at(dir, c".", flags, Mode::from_raw_mode(0o600)).map(Some))
    });
    match opened {
        Ok(fd) => {
            let handle = Handle { fd: fd.unwrap_or(fd::NONE), position: 0, cursor: 0, size: 0 };
            cx.io.slots.fill_nameless(slot, handle);
            cx.end(0)
        }
        Err(errno) => Err(cx.failed(failure, errno, None)),
    }
}

/// `Err` when a slot is open.
fn is_closed(cx: &mut OpCx<'_>, slot: usize) -> Result<(), Stop> {
    match cx.io.slots.get(slot).handle {
        None => Ok(()),
        Some(_) => Err(cx.misuse(|| format!("slot {slot} is already open"), "close it first, or use another `fd=`")),
    }
}

fn close(args: &Args<'_>) -> BuiltOp {
    let file = FileUse::new(args, false)?;
    Ok(stateless(file.describe(), Effects { preserves: true, ..file.effects() }, move |cx| {
        let slot = cx.io.slots.choose(&file.slot);
        let mut drained = Ok(());
        if cx.io.aio.is_some() {
            // Asynchronous operations on the descriptor must complete before it is closed. If one has failed, the slot
            // is closed all the same.
            cx.restamp();
            drained = crate::exec::aio::release_file(cx, slot);
        }
        cx.begin();
        if let Err(errno) = cx.flush_buffer(slot) {
            return Err(close_unwritten(cx, slot, errno));
        }
        let Some(handle) = cx.io.slots.get_mut(slot).handle.take() else {
            return Err(cx.misuse(
                || format!("slot {slot} is already closed"),
                "open it first: a `closefile` needs an `openfile` or `createfile` before it",
            ));
        };
        if let Err(errno) = cx.env.engine.close(handle) {
            return Err(cx.failed_in_slot("close failed", errno, slot));
        }
        let closed = cx.end(0);
        drained.and(closed)
    }))
}

/// Closes the file in a slot although its buffered data could not be written, as `fclose` does. Returns the failure of
/// the write.
#[cold]
fn close_unwritten(cx: &mut OpCx<'_>, slot: usize, errno: Errno) -> Stop {
    let held = cx.io.slots.get_mut(slot);
    let file = held.file;
    if let Some(handle) = held.handle.take() {
        // The operation has one result, which is that of the write.
        let _ = cx.env.engine.close(handle);
        cx.cell().add_calls(1);
    }
    cx.failed("write failed", errno, file)
}
