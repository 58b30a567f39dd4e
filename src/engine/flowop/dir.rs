//! Directories and whole sets: `makedir`, `removedir`, `opendir`, `closedir`, `listdir`, `listdirplus`, `fsyncdir`,
//! `fsyncset`, `statfs`.

use super::args::Args;
use super::by_name::named_file;
use super::op::{BuiltOp, Effects, FlowopEntry, Op, entry, stateful, stateless};
use super::open::open_next_dir;
use super::pick_rule::PickRule;
use crate::exec::slots::FileRef;
use crate::exec::{OpCx, Stop, UnitKind};
use crate::fileset::Want;
use crate::io_engine;
use std::sync::Arc;
use wml_language::diag::{Code, Diagnostic};
use wml_language::spec::{Origin, Role};
use wml_os::fd::{self, Fd, Result as OsResult};
use wml_os::{Mode, OFlags};
use wml_result::FlowopCounter;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("makedir", |args| change_leaf(args, true))
        .origin(Origin::Both)
        .uses(&["filesetname", "indexed", "expect"])
        .roles(&[Role::MakesDirectory])
        .doc("creates one of the `leafdirs` of the set that does not exist")
        .example("flowop makedir name=mk,filesetname=leaves\nflowop removedir name=rm,filesetname=leaves"),
    entry("removedir", |args| change_leaf(args, false))
        .origin(Origin::Both)
        .uses(&["filesetname", "indexed"])
        .roles(&[Role::RemovesDirectory])
        .doc("removes one of the existing `leafdirs` of the set")
        .example("flowop makedir name=mk,filesetname=leaves\nflowop removedir name=rm,filesetname=leaves"),
    entry("listdir", |args| list(args, false))
        .origin(Origin::Both)
        .uses(&["filesetname", "fd"])
        .doc(
            "reads all names in a directory of the set, each time in the next directory; with `fd` and no set, in the \
             directory that `opendir` opened there",
        )
        .example("flowop listdir name=ls,filesetname=data"),
    entry("opendir", open_dir)
        .uses(&["filesetname", "fd"])
        .roles(&[Role::OpensSlot])
        .doc("opens a directory of the set in the slot, each time the next one")
        .example(
            "flowop opendir name=od,filesetname=data,fd=1\nflowop listdir name=ls,fd=1\nflowop closedir name=cd,fd=1",
        ),
    entry("closedir", close_dir)
        .uses(&["fd"])
        .roles(&[Role::ClosesSlot])
        .doc("closes the directory in the slot")
        .example("flowop opendir name=od,filesetname=data,fd=1\nflowop closedir name=cd,fd=1"),
    entry("listdirplus", |args| list(args, true))
        .uses(&["filesetname"])
        .doc("as `listdir`, and reads the attributes of each name, as `ls -l` and READDIRPLUS of NFS do")
        .example("flowop listdirplus name=ll,filesetname=data"),
    entry("fsyncdir", fsync_dir)
        .uses(&["filesetname", "fd", "data"])
        .doc(
            "flushes a directory to the device (open, `fsync`, close), so that a name created or renamed in it \
             outlives a crash: the directory of the file that is or was open in the slot, else the next directory of \
             the set",
        )
        .example(
            "flowop createfile name=cr,filesetname=spare,fd=1\nflowop closefile name=cl,fd=1\n\
             flowop fsyncdir name=fd,fd=1\nflowop deletefile name=rm,fd=1",
        ),
    entry("fsyncset", fsync_set)
        .origin(Origin::Both)
        .uses(&["filesetname"])
        .doc("calls fsync for every file of the set that the thread has open; each call is one operation")
        .example("flowop write name=wr,filename=data,iosize=4k,random\nflowop fsyncset name=fs,filesetname=data"),
    entry("statfs", statfs)
        .uses(&["filesetname"])
        .doc("queries the statistics of the set's file system (`statfs`)")
        .example("flowop statfs name=fs,filesetname=data"),
];

fn change_leaf(args: &Args<'_>, make: bool) -> BuiltOp {
    let set = args.need_fileset()?;
    let pick = PickRule::of_leafdirs(args, &set)?;
    let (want, made) = if make { (Want::Absent, Want::Existing) } else { (Want::Existing, Want::Absent) };
    let makes = vec![(set.id, made, UnitKind::LeafDir)];
    let effects = Effects { makes, sets: vec![set.id], ..Effects::default() };
    Ok(stateless(format!(" {}{}", set.name, pick.describe()), effects, move |cx| {
        let by = pick.draw(cx);
        let leaf @ FileRef { set, index } = cx.pick_leaf(set.id, want, by)?;
        let tree = &cx.files.views[set].set.tree;
        let name = tree.leafdir_name(index);
        let above = tree.dir_of_leafdir(index);
        let result = cx.dir(set, above).and_then(|dir| {
            cx.begin();
            io_engine::call(dir, |dir| match make {
                true => fd::mkdir_at(dir, name.as_c(), Mode::from_raw_mode(0o755)),
                false => fd::rmdir_at(dir, name.as_c()),
            })
        });
        match result {
            Ok(()) => {
                let outcome = cx.end(0);
                cx.files.views[set].set.state.leafdirs.set_exists(index, make);
                cx.restamp();
                outcome
            }
            Err(errno) => {
                cx.files.views[set].set.state.leafdirs.release(index);
                Err(cx.leaf_failed(if make { "mkdir failed" } else { "rmdir failed" }, errno, leaf))
            }
        }
    }))
}

/// Buffer size of one `getdents64` call in bytes, as in `readdir` of the C library.
const ENTRIES: u64 = 32 << 10;

fn list(args: &Args<'_>, plus: bool) -> BuiltOp {
    let fd = args.slot_number("fd")?;
    if fd > 0 && !plus && args.value("filesetname").is_none() {
        return Ok(list_open(fd));
    }
    let set = args.need_fileset()?;
    let described = format!(" {}", set.name);
    Ok(stateful(
        described,
        Effects::preserving(set.id),
        |_| vec![0; ENTRIES as usize],
        move |buf: &mut Vec<u8>, cx| {
            cx.restamp();
            let set = cx.any_part(set.id);
            let dir = cx.files.views[set].set.state.next_dir();
            let result = cx.dir(set, dir).and_then(|fd| {
                cx.begin();
                // A listing of millions of names that the end of the run interrupts is late.
                let may_go_on = || !cx.expired();
                if plus {
                    cx.env.engine.list_plus(fd, c".", buf, &may_go_on)
                } else {
                    cx.env.engine.list(fd, c".", buf, &may_go_on)
                }
            });
            end_listing(cx, result)
        },
    ))
}

/// Ends a listing, of which the bytes of its entries and the number of its calls are known.
fn end_listing(cx: &mut OpCx<'_>, listed: OsResult<(u64, u64)>) -> Result<(), Stop> {
    match listed {
        Ok((bytes, calls)) => {
            cx.cell().add_calls(calls.saturating_sub(1));
            let ended = cx.end(0);
            if ended.is_ok() {
                cx.cell().add(FlowopCounter::ListedBytes, bytes);
            }
            ended
        }
        Err(errno) => Err(cx.failed("reading a directory failed", errno, None)),
    }
}

/// Lists the directory that is open in a slot. After the first time from its start again, as after `rewinddir`.
fn list_open(slot: usize) -> Arc<dyn Op> {
    let effects = Effects { preserves: true, slot, max_fd: slot, ..Effects::default() };
    stateful(
        format!(" fd={slot}"),
        effects,
        |_| vec![0; ENTRIES as usize],
        move |buf: &mut Vec<u8>, cx| {
            cx.begin();
            let Some(handle) = cx.handle(slot) else {
                return Err(cx.misuse(|| format!("listdir of slot {slot}, which is closed"), "open it with `opendir`"));
            };
            let again = handle.position > 0;
            let mut bytes = 0;
            let listed = if again { handle.seek(0) } else { Ok(()) }.and_then(|()| {
                io_engine::call(handle.fd, |dir| {
                    fd::list_dir(dir, buf, |name, _| {
                        bytes += io_engine::entry_size(name);
                        true
                    })
                })
            });
            handle.position = 1;
            end_listing(cx, listed.map(|calls| (bytes, calls + u64::from(again))))
        },
    )
}

/// The slot of a flowop that works on an open directory. `Err` when it names none.
fn dir_slot(args: &Args<'_>) -> Result<usize, Diagnostic> {
    match args.slot_number("fd")? {
        0 => {
            let message = format!("flowop `{}` of type `{}` has no `fd=`", args.name, args.spec.name);
            Err(Diagnostic::error(Code::MissingAttribute, args.span, message).help("add `fd=…`, such as `fd=1`"))
        }
        slot => Ok(slot),
    }
}

fn open_dir(args: &Args<'_>) -> BuiltOp {
    let (set, slot) = (args.need_fileset()?, dir_slot(args)?);
    let effects = Effects { slot, max_fd: slot, ..Effects::preserving(set.id) };
    Ok(stateless(format!(" {} fd={slot}", set.name), effects, move |cx| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        open_next_dir(cx, set.id, slot, flags, "opening a directory failed")
    }))
}

fn close_dir(args: &Args<'_>) -> BuiltOp {
    let slot = dir_slot(args)?;
    let effects = Effects { preserves: true, slot, max_fd: slot, ..Effects::default() };
    Ok(stateless(format!(" fd={slot}"), effects, move |cx| {
        if cx.io.slots.get(slot).file.is_some() {
            return Err(cx.misuse(|| format!("slot {slot} has a file"), "close it with `closefile`"));
        }
        cx.begin();
        let Some(handle) = cx.io.slots.get_mut(slot).handle.take() else {
            return Err(cx.misuse(|| format!("slot {slot} is already closed"), "open it first with `opendir`"));
        };
        match cx.env.engine.close(handle) {
            Ok(()) => cx.end(0),
            Err(errno) => Err(cx.failed_in_slot("close failed", errno, slot)),
        }
    }))
}

fn fsync_dir(args: &Args<'_>) -> BuiltOp {
    let (file, data) = (named_file(args)?, args.flag("data")?);
    let described = file.describe() + if data { " data" } else { "" };
    let flush = if data { fd::fdatasync } else { fd::fsync };
    Ok(stateless(described, Effects { preserves: true, ..file.effects() }, move |cx| {
        cx.restamp();
        let fd = file.slot.fd;
        let held = if fd > 0 { cx.io.slots.get(fd).file } else { None };
        let (set, dir) = match (held, &file.set) {
            (Some(file), _) => (file.set, cx.files.views[file.set].set.tree.dir_of(file.index)),
            (None, Some(set)) => {
                let set = cx.any_part(set.id);
                (set, cx.files.views[set].set.state.next_dir())
            }
            (None, None) => {
                let what = || format!("slot {fd} has no file whose directory could be flushed");
                return Err(cx.misuse(what, "open a file there first, or add `filesetname=`"));
            }
        };
        let done = cx.dir(set, dir).and_then(|dir| {
            cx.begin();
            io_engine::call(dir, |dir| open_and_flush(dir, flush))
        });
        match done {
            Ok(()) => {
                // Open and close.
                cx.cell().add_calls(2);
                cx.end(0)
            }
            Err(errno) => Err(cx.failed("fsync of a directory failed", errno, held)),
        }
    }))
}

fn open_and_flush(dir: Fd, flush: fn(Fd) -> OsResult<()>) -> OsResult<()> {
    // The descriptors for `*at` calls allow nothing else.
    let opened = fd::open_at(dir, c".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    let done = flush(opened);
    fd::close(opened);
    done
}

fn fsync_set(args: &Args<'_>) -> BuiltOp {
    let set = args.need_fileset()?;
    Ok(stateless(format!(" {}", set.name), Effects::preserving(set.id), move |cx| {
        let mut any = false;
        for slot in 0..cx.io.slots.len() {
            let state = *cx.io.slots.get(slot);
            let Some(handle) = state.handle else { continue };
            if state.file.is_none_or(|f| cx.io.slots.set_of(f) != set.id) {
                continue;
            }
            any = true;
            cx.io.slots.set_last(slot);
            cx.begin();
            match io_engine::call(handle.fd, fd::fsync) {
                Ok(()) => cx.end(0)?,
                Err(errno) => return Err(cx.failed("fsync failed", errno, state.file)),
            }
        }
        if any { Ok(()) } else { cx.skip() }
    }))
}

fn statfs(args: &Args<'_>) -> BuiltOp {
    let set = args.need_fileset()?;
    Ok(stateless(format!(" {}", set.name), Effects::preserving(set.id), move |cx| {
        let part = cx.any_part(set.id);
        let result = cx.dir(part, 0).and_then(|root| {
            cx.begin();
            io_engine::call(root, |root| fd::file_system_kind(root).map(drop))
        });
        match result {
            Ok(()) => cx.end(0),
            Err(errno) => Err(cx.failed("statfs failed", errno, None)),
        }
    }))
}
