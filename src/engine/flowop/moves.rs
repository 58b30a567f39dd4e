//! `rename` of the file in a slot, of a file picked by a rule, and from one file set to another.
//!
//! The file leaves the members of one set and joins those of the other: the old name becomes free, the new one exists.
//! A slot that has the file keeps it, under its new name.

use super::args::{Args, SetInfo};
use super::op::{BuiltOp, Effects, stateless};
use super::transfer::FileUse;
use crate::exec::slots::FileRef;
use crate::exec::{MoveSource, NameUpdate, OpCx, Renamed, Stop, UnitKind};
use crate::fileset::Want;
use std::sync::Arc;
use wml_language::diag::{Code, Diagnostic};
use wml_os::Errno;

/// The attributes with which `rename` is a [`Move`].
const ATTRIBUTES: [&str; 6] = ["fd", "toset", "indexed", "uniform", "shuffle", "recent"];

/// `rename` of a certain file, or to another set.
pub(super) struct Move {
    file: FileUse,
    from: SetInfo,
    to: SetInfo,
    /// Whether the target is the name of an existing file, which is replaced.
    over: bool,
}

impl Move {
    /// Makes the operation. `None` when no attribute requires it: then `rename` moves the next file within its set.
    pub(super) fn from_args(args: &Args<'_>) -> Result<Option<Arc<dyn super::Op>>, Diagnostic> {
        if ATTRIBUTES.iter().all(|attr| args.value(attr).is_none()) {
            return Ok(None);
        }
        Self::build(args).map(Some)
    }

    fn build(args: &Args<'_>) -> BuiltOp {
        let from = args.need_fileset()?;
        let to = match args.value("toset") {
            None => from.clone(),
            Some((value, span)) => args.fileset_called(&value.print(), span)?,
        };
        let refuse = |attr: &str, message: String, help: &str| {
            Err(Diagnostic::error(Code::OutOfRange, args.span_of(attr), message).help(help))
        };
        let (name, over) = (args.name, args.flag("over")?);
        if args.flag("recycle")? {
            let message = format!("flowop `{name}` has `recycle`, and an attribute that chooses the file");
            return refuse("recycle", message, "leave one out: `recycle` takes the files in order, within their set");
        }
        if over && from.id == to.id {
            let message = format!("flowop `{name}` has `over`, and an attribute that chooses the file");
            return refuse("over", message, "add `toset=…`, the set with the files to replace, or leave one out");
        }
        if from.parts != to.parts {
            let message = format!("`{}` has {} directories, and `{}` has {}", from.name, from.parts, to.name, to.parts);
            return refuse(
                "toset",
                message,
                "give both file sets a `path` with the same directories, in the same order",
            );
        }
        let op = Self { file: FileUse::new(args, false)?, from, to, over };
        Ok(stateless(op.describe(), op.effects(), move |cx| op.run(cx)))
    }

    /// Returns the file to move: the one in the slot, if it belongs to the set, else any of the set.
    fn source(&self, cx: &mut OpCx<'_>) -> Result<MoveSource, Stop> {
        let fd = self.file.slot.fd;
        if fd > 0 {
            let slot = *cx.io.slots.get(fd);
            cx.io.slots.set_last(fd);
            match slot.file {
                Some(file) if cx.io.slots.set_of(file) == self.from.id => return Ok(MoveSource::File(file)),
                Some(_) if slot.handle.is_some() => return Err(self.file.conflict(cx, fd)),
                _ => {}
            }
        }
        Ok(MoveSource::Any(self.from.id, self.file.pick.draw(cx)))
    }

    fn call(&self, cx: &mut OpCx<'_>, from: FileRef, to: FileRef) -> Renamed {
        let change = if self.over { NameUpdate::Replace } else { NameUpdate::Rename };
        cx.rename_verified(change, from, to, |cx, errno| match errno {
            Errno::XDEV if from.set != to.set => {
                let what =
                    || format!("rename failed: `{}` and `{}` are on different mounts", self.from.name, self.to.name);
                cx.failed_as(errno, what, "give both file sets a `path` on one file system")
            }
            errno => cx.failed("rename failed", errno, Some(from)),
        })
    }
}

impl Move {
    fn describe(&self) -> String {
        let to = if self.from.id == self.to.id { String::new() } else { format!(" toset={}", self.to.name) };
        format!("{}{to}{}", self.file.describe(), if self.over { " over" } else { "" })
    }

    fn effects(&self) -> Effects {
        let (from, to) = (self.from.id, self.to.id);
        let base = self.file.effects();
        if from == to {
            return Effects { moves: vec![from], ..base };
        }
        let mut makes = vec![(from, Want::Absent, UnitKind::File)];
        if !self.over {
            makes.push((to, Want::Existing, UnitKind::File));
        }
        Effects {
            makes,
            sets: vec![from, to],
            moves: vec![from, to],
            moved: vec![(from, to)],
            left_in_slot: vec![to],
            ..base
        }
    }

    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let source = self.source(cx)?;
        let fd = self.file.slot.fd;
        let want = if self.over { Want::Existing } else { Want::Absent };
        let Some((from, to)) = cx.pick_move(source, self.to.id, want)? else {
            // Another thread has moved or removed the file: there is nothing to do, and no other file must be moved
            // instead.
            cx.io.slots.get_mut(fd).file = None;
            return Ok(());
        };
        let Renamed { is_changed, ended } = self.call(cx, from, to);
        let views = cx.files.views;
        if is_changed {
            views[to.set].set.state.set_exists(to.index, true);
            views[from.set].set.state.set_exists(from.index, false);
            if fd > 0 {
                cx.io.slots.get_mut(fd).file = Some(to);
            }
        } else {
            cx.release(to);
            cx.release(from);
        }
        cx.restamp();
        ended
    }
}
