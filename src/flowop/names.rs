//! `rename`, `link`, `symlink`, `readlink`: names that move, and names that stand for others.
//!
//! A file set's names are fixed; what changes is which of them exist. `rename` moves a file to a name that is free, `link` and
//! `symlink` take a free name. Which names are links is not remembered: a set of links is a set of its own, whose entries only
//! `symlink` makes, and `deletefile` removes links like files. A symbolic link holds the name after its own in the same
//! directory, so that a link in a tree of ours can be told from a stranger's; nothing here ever follows one.

use super::args::Args;
use super::meta::by_name;
use super::transfer::FileUse;
use super::{Build, BuiltOp, Effects, FlowopEntry, Stateless};
use crate::exec::PickBy;
use crate::exec::slots::FileRef;
use crate::exec::{OpCx, Stop, UnitKind};
use crate::fileset::Want;
use crate::os::Errno;
use crate::spec::{Class, Flowop, Origin, Role, Way};
use std::sync::Arc;

const fn ours(
    name: &'static str,
    roles: &'static [Role],
    build: Build,
    uses: &'static [&'static str],
    doc: &'static str,
    example: &'static str,
) -> FlowopEntry {
    let spec = Flowop { name, class: Class::Io, way: Way::None, roles, uses, origin: Origin::Ours, doc, example };
    FlowopEntry { spec, build }
}

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    ours(
        "rename",
        &[Role::NeedsFile],
        |args| Move::build(args, false),
        &["filesetname"],
        "gives an existing file of the set the name of one that does not exist",
        "flowop rename name=mv,filesetname=spare",
    ),
    ours(
        "link",
        &[Role::MakesFile, Role::NeedsFile],
        |args| Move::build(args, true),
        &["filesetname"],
        "makes a file of the set that does not exist a hard link to one that does, with that one's size",
        "flowop link name=ln,filesetname=spare\nflowop deletefile name=rm,filesetname=spare",
    ),
    ours(
        "symlink",
        &[Role::MakesFile],
        Symlink::build,
        &["filesetname"],
        "makes a file of the set that does not exist a symbolic link",
        "flowop symlink name=ln,filesetname=links\nflowop deletefile name=rm,filesetname=links",
    ),
    ours(
        "readlink",
        &[Role::NeedsFile],
        ReadLink::build,
        &["filesetname", "indexed"],
        "reads a symbolic link of the set; on a file the call says EINVAL, which counts as an answer",
        "flowop symlink name=ln,filesetname=links\nflowop readlink name=rl,filesetname=links\nflowop deletefile name=rm,filesetname=links",
    ),
];

impl Move {
    fn build(args: &Args<'_>, link: bool) -> BuiltOp {
        let set = args.need_fileset()?;
        Ok(Arc::new(Self { set: set.id, name: set.name, link }))
    }
}

impl Symlink {
    fn build(args: &Args<'_>) -> BuiltOp {
        let set = args.need_fileset()?;
        Ok(Arc::new(Self { set: set.id, name: set.name }))
    }
}

impl ReadLink {
    fn build(args: &Args<'_>) -> BuiltOp {
        args.need_fileset()?;
        Ok(Arc::new(Self { file: FileUse::new(args, false)? }))
    }
}

/// `rename` and `link`: a free name and one that is taken.
#[derive(Debug)]
struct Move {
    set: usize,
    name: String,
    link: bool,
}

impl Stateless for Move {
    fn describe(&self) -> String {
        format!(" {}", self.name)
    }

    fn effects(&self) -> Effects {
        let makes = if self.link { vec![(self.set, Want::Existing, UnitKind::File)] } else { Vec::new() };
        let links = if self.link { vec![self.set] } else { Vec::new() };
        Effects { makes, links, moves: vec![self.set], sets: vec![self.set], ..Effects::default() }
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let (free, taken) = cx.pick_both(self.set)?;
        let done = self.call(cx, taken, free);
        let state = &cx.files.views[free.set].set.state;
        if done.is_ok() {
            state.set_exists(free.index, true);
        } else {
            state.release(free.index);
        }
        if done.is_ok() && !self.link {
            state.set_exists(taken.index, false);
        } else {
            state.release(taken.index);
        }
        cx.restamp();
        done?
    }
}

impl Move {
    /// `Ok` if the names have changed.
    fn call(&self, cx: &mut OpCx<'_>, taken: FileRef, free: FileRef) -> Result<Result<(), Stop>, Stop> {
        let set = taken.set;
        let tree = &cx.files.views[set].set.tree;
        let (old, new) = (tree.name(taken.index), tree.name(free.index));
        let (old_dir, new_dir) = (tree.dir_of(taken.index), tree.dir_of(free.index));
        let dirs = cx.dir_pair(set, old_dir, new_dir);
        let (from, to) = dirs.map_err(|errno| cx.failed("opening the directory", errno, Some(taken)))?;
        let own = cx.own_name(taken, from, old.as_c());
        let own = own.and_then(|()| if self.link { Ok(()) } else { cx.free_name(free, to, new.as_c()) });
        if let Err(stop) = own {
            cx.close_pair(set, (from, to));
            return Err(stop);
        }
        cx.begin();
        let engine = cx.env.engine;
        let done = if self.link {
            engine.link(from, old.as_c(), to, new.as_c())
        } else {
            engine.rename(from, old.as_c(), to, new.as_c())
        };
        let done = done.map(|()| cx.end(0));
        cx.close_pair(set, (from, to));
        match done {
            Ok(outcome) => Ok(outcome),
            Err(errno) => Err(cx.failed(if self.link { "link failed" } else { "rename failed" }, errno, Some(taken))),
        }
    }
}

#[derive(Debug)]
struct Symlink {
    set: usize,
    name: String,
}

impl Stateless for Symlink {
    fn describe(&self) -> String {
        format!(" {}", self.name)
    }

    fn effects(&self) -> Effects {
        Effects { makes: vec![(self.set, Want::Existing, UnitKind::File)], sets: vec![self.set], ..Effects::default() }
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let file @ FileRef { set, index } = cx.pick(self.set, Want::Absent, PickBy::Rotate, true)?;
        let tree = &cx.files.views[set].set.tree;
        let text = tree.name(tree.next_beside(index));
        let (dir, name) = match cx.locate(file) {
            Ok(found) => found,
            Err(stop) => {
                cx.files.views[set].set.state.release(index);
                return Err(stop);
            }
        };
        cx.begin();
        let outcome = match cx.env.engine.symlink(text.as_c(), dir, name.as_c()) {
            Ok(()) => {
                let outcome = cx.end(0);
                cx.files.views[set].set.state.set_exists(index, true);
                outcome
            }
            Err(errno) => {
                cx.files.views[set].set.state.release(index);
                Err(cx.failed("symlink failed", errno, Some(file)))
            }
        };
        cx.restamp();
        outcome
    }
}

#[derive(Debug)]
struct ReadLink {
    file: FileUse,
}

impl Stateless for ReadLink {
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
        // Our links hold one name; a longer one is cut off, as by any reader with a small buffer.
        let mut text = [0; 256];
        by_name::<false>(&self.file, cx, "readlink failed", |engine, dir, name| {
            match engine.read_link(dir, name, &mut text) {
                Ok(_) | Err(Errno::INVAL) => Ok(0),
                Err(errno) => Err(errno),
            }
        })
    }
}
