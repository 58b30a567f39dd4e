//! Names and links: `rename`, `link`, `symlink`, `readlink`.
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
use super::expected::{ExpectedError, NamedCall};
use super::meta::call_by_name;
use super::moves::Move;
use super::transfer::FileUse;
use super::{BuiltOp, Effects, FILE_CALL, FlowopEntry, Stateless};
use crate::exec::PickBy;
use crate::exec::slots::FileRef;
use crate::exec::{NameUpdate, OpCx, Renamed, Stop, UnitKind};
use crate::fileset::Want;
use crate::os::Errno;
use crate::spec::{Flowop, Role};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "rename",
            uses: &["filesetname", "fd", "toset", "indexed", "uniform", "recent", "shuffle", "over", "recycle"],
            roles: &[Role::NeedsFile, Role::MovesFile],
            doc: "renames the file that is or was open in the slot, else a file of the set, to a name of the set, or \
                  of `toset`, that does not exist; the slot keeps the file",
            example: "flowop rename name=mv,filesetname=spare",
            ..FILE_CALL
        },
        build: |args| {
            if let Some(op) = Move::from_args(args)? {
                return Ok(op);
            }
            let (over, recycle) = (args.flag("over")?, args.flag("recycle")?);
            NameChange::build(
                args,
                if over {
                    NameChangeKind::Over
                } else if recycle {
                    NameChangeKind::Recycle
                } else {
                    NameChangeKind::Rename
                },
            )
        },
    },
    FlowopEntry {
        spec: Flowop {
            name: "link",
            uses: &["filesetname"],
            roles: &[Role::MakesFile, Role::NeedsFile],
            doc: "creates a file of the set as a hard link to an existing one; it has the size of that file",
            example: "flowop link name=ln,filesetname=spare\nflowop deletefile name=rm,filesetname=spare",
            ..FILE_CALL
        },
        build: |args| NameChange::build(args, NameChangeKind::Link),
    },
    FlowopEntry {
        spec: Flowop {
            name: "symlink",
            uses: &["filesetname"],
            roles: &[Role::MakesFile],
            doc: "creates a file of the set as a symbolic link to the next name in its directory",
            example: "flowop symlink name=ln,filesetname=links\nflowop deletefile name=rm,filesetname=links",
            ..FILE_CALL
        },
        build: Symlink::build,
    },
    FlowopEntry {
        spec: Flowop {
            name: "readlink",
            uses: &["filesetname", "indexed", "uniform", "recent", "shuffle", "missing", "expect"],
            roles: &[Role::NeedsFile],
            doc: "reads the target of a symbolic link of the set; EINVAL, the result for a regular file, is not an \
                  error",
            example: "flowop symlink name=ln,filesetname=links\nflowop readlink name=rl,filesetname=links\nflowop \
                      deletefile name=rm,filesetname=links",
            ..FILE_CALL
        },
        build: ReadLink::build,
    },
];

impl NameChange {
    fn build(args: &Args<'_>, kind: NameChangeKind) -> BuiltOp {
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
        if let Some(op) = ExpectedError::from_args(args, NamedCall::ReadLink)? {
            return Ok(op);
        }
        args.need_fileset()?;
        Ok(Arc::new(Self { file: FileUse::new(args, false)? }))
    }
}

/// The variants of `rename`, and `link`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NameChangeKind {
    /// Renames a file to a name that does not exist.
    Rename,
    /// Renames the file that has had its name for the longest time to the name behind all existing files.
    Recycle,
    /// Renames a file to the name of another existing one, which is replaced.
    Over,
    /// Gives a file a further name that did not exist.
    Link,
}

/// `rename` and `link`.
#[derive(Debug)]
struct NameChange {
    set: usize,
    name: String,
    kind: NameChangeKind,
    /// Number of files recycled so far, by all threads.
    renames: AtomicU64,
}

impl Stateless for NameChange {
    fn describe(&self) -> String {
        let kind = match self.kind {
            NameChangeKind::Rename | NameChangeKind::Link => "",
            NameChangeKind::Recycle => " recycle",
            NameChangeKind::Over => " over",
        };
        format!(" {}{kind}", self.name)
    }

    fn effects(&self) -> Effects {
        let (makes, links) = match self.kind {
            NameChangeKind::Rename | NameChangeKind::Recycle => (Vec::new(), Vec::new()),
            NameChangeKind::Over => (vec![(self.set, Want::Absent, UnitKind::File)], Vec::new()),
            NameChangeKind::Link => (vec![(self.set, Want::Existing, UnitKind::File)], vec![self.set]),
        };
        Effects { makes, links, moves: vec![self.set], sets: vec![self.set], ..Effects::default() }
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let (to, from) = match self.kind {
            NameChangeKind::Rename | NameChangeKind::Link => cx.pick_pair(self.set, Want::Absent, None)?,
            NameChangeKind::Over => cx.pick_pair(self.set, Want::Existing, None)?,
            NameChangeKind::Recycle => {
                cx.pick_pair(self.set, Want::Absent, Some(self.renames.fetch_add(1, Ordering::Relaxed)))?
            }
        };
        let Renamed { is_changed, ended } = self.call(cx, from, to);
        let state = &cx.files.views[to.set].set.state;
        if is_changed {
            state.set_exists(to.index, true);
        } else {
            cx.release(to);
        }
        if is_changed && self.kind != NameChangeKind::Link {
            state.set_exists(from.index, false);
        } else {
            cx.release(from);
        }
        cx.restamp();
        ended
    }
}

impl NameChange {
    /// Makes the call.
    fn call(&self, cx: &mut OpCx<'_>, from: FileRef, to: FileRef) -> Renamed {
        let (change, what) = match self.kind {
            NameChangeKind::Link => (NameUpdate::Link, "link failed"),
            NameChangeKind::Rename | NameChangeKind::Recycle => (NameUpdate::Rename, "rename failed"),
            NameChangeKind::Over => (NameUpdate::Replace, "rename failed"),
        };
        cx.rename_verified(change, from, to, |cx, errno| cx.failed(what, errno, Some(from)))
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
        let text = tree.next_name(index);
        let (dir, name) = match cx.locate(file) {
            Ok(found) => found,
            Err(stop) => {
                cx.release(file);
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
                cx.release(file);
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
        // Targets of wmlrun's links are shorter than this. A longer one is truncated, as for any reader with a small
        // buffer.
        let mut text = [0; 256];
        call_by_name::<false>(&self.file, cx, "readlink failed", |engine, dir, name| {
            match engine.read_link(dir, name, &mut text) {
                Ok(_) | Err(Errno::INVAL) => Ok(0),
                Err(errno) => Err(errno),
            }
        })
    }
}
