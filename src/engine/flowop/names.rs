//! Names and links: `deletefile`, `rename`, `link`, `symlink`.
//!
//! The names of a file set are fixed; only which of them exist changes. `rename` gives a file a name that does not
//! exist, or with `over` one that does; a rename of a certain file, or to another set, is in `moves`. `link` and
//! `symlink` use a name that does not exist.
//!
//! The state of a file set does not record which names are links. Symbolic links therefore need a separate file set,
//! whose entries only `symlink` creates; `deletefile` removes links as it removes files. The target of a symbolic link
//! is the next name in the same directory, which distinguishes the links of wmlrun from those of other programs. No
//! call follows a link.

use super::args::Args;
use super::by_name::named_file;
use super::moves::Move;
use super::op::{BuiltOp, Effects, FlowopEntry, entry, stateless};
use crate::exec::slots::FileRef;
use crate::exec::{NameUpdate, PickBy, Renamed, UnitKind};
use crate::fileset::{Name, Want};
use crate::io_engine;
use std::sync::atomic::{AtomicU64, Ordering};
use wml_language::spec::{Origin, Role};
use wml_os::fd;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("deletefile", delete)
        .origin(Origin::Both)
        .uses(&["filesetname", "fd", "opennext", "indexed", "uniform", "recent", "shuffle", "expect"])
        .roles(&[Role::RemovesFile, Role::FreesSlot])
        .doc(
            "removes the file that is or was open in the slot, else a file of the set; slots that have it open can \
             still use it",
        )
        .example(
            "flowop deletefile name=rm,filesetname=spare\nflowop createfile name=cr,filesetname=spare,fd=1\n\
             flowop closefile name=cl,fd=1",
        ),
    entry("rename", |args| match Move::from_args(args)? {
        Some(op) => Ok(op),
        None if args.flag("over")? => change_name(args, NameChange::Over),
        None if args.flag("recycle")? => change_name(args, NameChange::Recycle),
        None => change_name(args, NameChange::Rename),
    })
    .uses(&["filesetname", "fd", "toset", "indexed", "uniform", "recent", "shuffle", "over", "recycle"])
    .roles(&[Role::NeedsFile, Role::MovesFile])
    .doc(
        "renames the file that is or was open in the slot, else a file of the set, to a name of the set, or of \
         `toset`, that does not exist; the slot keeps the file",
    )
    .example("flowop rename name=mv,filesetname=spare"),
    entry("link", |args| change_name(args, NameChange::Link))
        .uses(&["filesetname"])
        .roles(&[Role::MakesFile, Role::NeedsFile])
        .doc("creates a file of the set as a hard link to an existing one; it has the size of that file")
        .example("flowop link name=ln,filesetname=spare\nflowop deletefile name=rm,filesetname=spare"),
    entry("symlink", symlink)
        .uses(&["filesetname"])
        .roles(&[Role::MakesFile])
        .doc("creates a file of the set as a symbolic link to the next name in its directory")
        .example("flowop symlink name=ln,filesetname=links\nflowop deletefile name=rm,filesetname=links"),
];

fn delete(args: &Args<'_>) -> BuiltOp {
    let file = named_file(args)?;
    let effects = file.effects();
    let makes = effects.sets.iter().map(|set| (*set, Want::Absent, UnitKind::File)).collect();
    let has_slot = file.slot.fd > 0 || file.slot.rotate > 0;
    let makes_in_slot = has_slot.then_some((Want::Absent, UnitKind::File));
    Ok(stateless(file.describe(), Effects { makes, makes_in_slot, ..effects }, move |cx| {
        // A slot remembers its file after it is closed. As in Filebench, that file is removed whatever its set is.
        let slot = file.slot_or_none(cx);
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
            let Some(set) = &file.set else {
                let what = || format!("slot {slot} has no file to remove");
                return Err(cx.misuse(what, "open a file there first, or add `filesetname=`"));
            };
            let by = file.pick.draw(cx);
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
        match io_engine::call(dir, |dir| fd::unlink_at(dir, name.as_c())) {
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
    }))
}

/// The variants of `rename`, and `link`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NameChange {
    /// Renames a file to a name that does not exist.
    Rename,
    /// Renames the file that has had its name for the longest time to the name behind all existing files.
    Recycle,
    /// Renames a file to the name of another existing one, which is replaced.
    Over,
    /// Gives a file a further name that did not exist.
    Link,
}

fn change_name(args: &Args<'_>, kind: NameChange) -> BuiltOp {
    let set = args.need_fileset()?;
    let (id, file) = (set.id, UnitKind::File);
    let (details, makes, links) = match kind {
        NameChange::Rename => ("", vec![], vec![]),
        NameChange::Recycle => (" recycle", vec![], vec![]),
        NameChange::Over => (" over", vec![(id, Want::Absent, file)], vec![]),
        NameChange::Link => ("", vec![(id, Want::Existing, file)], vec![id]),
    };
    let (update, failure) = match kind {
        NameChange::Link => (NameUpdate::Link, "link failed"),
        NameChange::Rename | NameChange::Recycle => (NameUpdate::Rename, "rename failed"),
        NameChange::Over => (NameUpdate::Replace, "rename failed"),
    };
    // Number of files recycled so far, by all threads.
    let renames = AtomicU64::new(0);
    let effects = Effects { makes, links, moves: vec![id], sets: vec![id], ..Effects::default() };
    Ok(stateless(format!(" {}{details}", set.name), effects, move |cx| {
        let (to, from) = match kind {
            NameChange::Rename | NameChange::Link => cx.pick_pair(id, Want::Absent, None)?,
            NameChange::Over => cx.pick_pair(id, Want::Existing, None)?,
            NameChange::Recycle => cx.pick_pair(id, Want::Absent, Some(renames.fetch_add(1, Ordering::Relaxed)))?,
        };
        let Renamed { is_changed, ended } =
            cx.rename_verified(update, from, to, |cx, errno| cx.failed(failure, errno, Some(from)));
        let state = &cx.files.views[to.set].set.state;
        if is_changed {
            state.set_exists(to.index, true);
        } else {
            cx.release(to);
        }
        if is_changed && kind != NameChange::Link {
            state.set_exists(from.index, false);
        } else {
            cx.release(from);
        }
        cx.restamp();
        ended
    }))
}

fn symlink(args: &Args<'_>) -> BuiltOp {
    let set = args.need_fileset()?;
    let (id, makes) = (set.id, vec![(set.id, Want::Existing, UnitKind::File)]);
    let effects = Effects { makes, sets: vec![id], ..Effects::default() };
    Ok(stateless(format!(" {}", set.name), effects, move |cx| {
        let file @ FileRef { set, index } = cx.pick(id, Want::Absent, PickBy::Rotate, true)?;
        let tree = &cx.files.views[set].set.tree;
        let text = tree.next_name(index);
        let (dir, name) = match cx.locate(file) {
            Ok(found) => found,
            Err(stop) => {
                cx.release(file);
                return Err(stop);
            }
        };
        cx.begin();
        let outcome = match io_engine::call(dir, |dir| fd::symlink_at(text.as_c(), dir, name.as_c())) {
            Ok(()) => {
                let outcome = cx.end(0);
                cx.files.views[set].set.state.set_exists(index, true);
                outcome
            }
            Err(errno) => {
                cx.release(file);
                Err(cx.failed("symlink failed", errno, Some(file)))
            }
        };
        cx.restamp();
        outcome
    }))
}
