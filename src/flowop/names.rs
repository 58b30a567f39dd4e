//! `rename`, `link`, `symlink`, `readlink`: names that move, and names that stand for others.
//!
//! A file set's names are fixed; what changes is which of them exist. `rename` moves a file to a name that is free, or with
//! `over` to one that is taken, `link` and
//! `symlink` take a free name. Which names are links is not remembered: a set of links is a set of its own, whose entries only
//! `symlink` makes, and `deletefile` removes links like files. A symbolic link holds the name after its own in the same
//! directory, so that a link in a tree of ours can be told from a stranger's; nothing here ever follows one.

use super::args::Args;
use super::expected::{ExpectedError, NamedCall};
use super::meta::by_name;
use super::transfer::FileUse;
use super::{Build, BuiltOp, Effects, FlowopEntry, Stateless};
use crate::exec::PickBy;
use crate::exec::slots::FileRef;
use crate::exec::{OpCx, Stop, UnitKind};
use crate::fileset::Want;
use crate::os::Errno;
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const fn ours(
    name: &'static str,
    roles: &'static [Role],
    build: Build,
    uses: &'static [&'static str],
    doc: &'static str,
    example: &'static str,
) -> FlowopEntry {
    let spec = Flowop {
        name,
        class: Class::Io,
        direction: IoDirection::None,
        roles,
        uses,
        origin: Origin::Wmlrun,
        doc,
        example,
    };
    FlowopEntry { spec, build }
}

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    ours(
        "rename",
        &[Role::NeedsFile],
        |args| {
            let (over, recycle) = (args.flag("over")?, args.flag("recycle")?);
            Move::build(
                args,
                if over {
                    MoveKind::Over
                } else if recycle {
                    MoveKind::Recycle
                } else {
                    MoveKind::Rename
                },
            )
        },
        &["filesetname", "over", "recycle"],
        "gives an existing file of the set the name of one that does not exist",
        "flowop rename name=mv,filesetname=spare",
    ),
    ours(
        "link",
        &[Role::MakesFile, Role::NeedsFile],
        |args| Move::build(args, MoveKind::Link),
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
        &["filesetname", "indexed", "uniform", "shuffle", "missing", "expect"],
        "reads a symbolic link of the set; on a file the call says EINVAL, which counts as an answer",
        "flowop symlink name=ln,filesetname=links\nflowop readlink name=rl,filesetname=links\nflowop deletefile name=rm,filesetname=links",
    ),
];

impl Move {
    fn build(args: &Args<'_>, kind: MoveKind) -> BuiltOp {
        let set = args.need_fileset()?;
        Ok(Arc::new(Self { set: set.id, name: set.name, kind, renames: AtomicU64::new(0) }))
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
        if let Some(op) = ExpectedError::of(args, NamedCall::ReadLink)? {
            return Ok(op);
        }
        args.need_fileset()?;
        Ok(Arc::new(Self { file: FileUse::new(args, false)? }))
    }
}

/// What becomes of a name and another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MoveKind {
    /// The file gets a free name instead of its own.
    Rename,
    /// The same of the file that has had its name for longest, to the free name behind the others.
    Recycle,
    /// The file gets the name of another one, which is replaced.
    Over,
    /// The file gets a free name besides its own.
    Link,
}

/// `rename` and `link`.
#[derive(Debug)]
struct Move {
    set: usize,
    name: String,
    kind: MoveKind,
    /// Of the recycled files, so far.
    renames: AtomicU64,
}

impl Stateless for Move {
    fn describe(&self) -> String {
        let kind = match self.kind {
            MoveKind::Rename | MoveKind::Link => "",
            MoveKind::Recycle => " recycle",
            MoveKind::Over => " over",
        };
        format!(" {}{kind}", self.name)
    }

    fn effects(&self) -> Effects {
        let (makes, links) = match self.kind {
            MoveKind::Rename | MoveKind::Recycle => (Vec::new(), Vec::new()),
            MoveKind::Over => (vec![(self.set, Want::Absent, UnitKind::File)], Vec::new()),
            MoveKind::Link => (vec![(self.set, Want::Existing, UnitKind::File)], vec![self.set]),
        };
        Effects { makes, links, moves: vec![self.set], sets: vec![self.set], ..Effects::default() }
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let (to, from) = match self.kind {
            MoveKind::Rename | MoveKind::Link => cx.pick_pair(self.set, Want::Absent, None)?,
            MoveKind::Over => cx.pick_pair(self.set, Want::Existing, None)?,
            MoveKind::Recycle => {
                cx.pick_pair(self.set, Want::Absent, Some(self.renames.fetch_add(1, Ordering::Relaxed)))?
            }
        };
        let done = self.call(cx, from, to);
        let state = &cx.files.views[to.set].set.state;
        if done.is_ok() {
            state.set_exists(to.index, true);
        } else {
            state.release(to.index);
        }
        if done.is_ok() && self.kind != MoveKind::Link {
            state.set_exists(from.index, false);
        } else {
            state.release(from.index);
        }
        cx.restamp();
        done?
    }
}

impl Move {
    /// `Ok` if the names have changed.
    fn call(&self, cx: &mut OpCx<'_>, from: FileRef, to: FileRef) -> Result<Result<(), Stop>, Stop> {
        let set = from.set;
        let tree = &cx.files.views[set].set.tree;
        let (old, new) = (tree.name(from.index), tree.name(to.index));
        let (old_dir, new_dir) = (tree.dir_of(from.index), tree.dir_of(to.index));
        let dirs = cx.dir_pair(set, old_dir, new_dir);
        let dirs = dirs.map_err(|errno| cx.failed("opening the directory", errno, Some(from)))?;
        let own = cx.verify_name(from, dirs.0, old.as_c()).and_then(|()| match self.kind {
            MoveKind::Link => Ok(()),
            MoveKind::Over => cx.verify_name(to, dirs.1, new.as_c()),
            MoveKind::Rename | MoveKind::Recycle => cx.verify_free_name(to, dirs.1, new.as_c()),
        });
        if let Err(stop) = own {
            cx.close_pair(set, dirs);
            return Err(stop);
        }
        cx.begin();
        let engine = cx.env.engine;
        let (what, done) = if self.kind == MoveKind::Link {
            ("link failed", engine.link(dirs.0, old.as_c(), dirs.1, new.as_c()))
        } else {
            ("rename failed", engine.rename(dirs.0, old.as_c(), dirs.1, new.as_c()))
        };
        let done = done.map(|()| cx.end(0));
        cx.close_pair(set, dirs);
        done.map_err(|errno| cx.failed(what, errno, Some(from)))
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
        let text = tree.name(tree.next_sibling(index));
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
