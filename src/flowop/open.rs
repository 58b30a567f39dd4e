//! Opening and closing of file slots: `openfile`, `createfile`, `closefile`.

use super::args::Args;
use super::expected::{ExpectedError, NamedCall};
use super::transfer::FileUse;
use super::{BuiltOp, Effects, FlowopEntry, Stateless};
use crate::exec::{OpCx, Stop, UnitKind};
use crate::fileset::Want;
use crate::os::{Errno, OFlags};
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::sync::Arc;

/// The common attributes of `openfile` and `createfile`, followed by those that only one of them has.
macro_rules! uses {
    ($($own:literal),*) => {
        &["filesetname", "fd", "opennext", "indexed", "uniform", "shuffle", "directio", "dsync", "noreadahead", $($own),*]
    };
}

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "openfile",
            class: Class::Io,
            direction: IoDirection::None,
            uses: uses!("recent", "missing", "expect"),
            roles: &[Role::OpensSlot, Role::NeedsFile],
            origin: Origin::Both,
            doc: "opens an existing file of the set in the slot",
            example: "flowop openfile name=op,filesetname=data,fd=1\nflowop closefile name=cl,fd=1",
        },
        build: |args| OpenOp::build(args, false),
    },
    FlowopEntry {
        spec: Flowop {
            name: "createfile",
            class: Class::Io,
            direction: IoDirection::None,
            uses: uses!("expect"),
            roles: &[Role::OpensSlot, Role::MakesFile],
            origin: Origin::Both,
            doc: "creates a file of the set that does not exist, and opens it in the slot",
            example: "flowop createfile name=cr,filesetname=spare,fd=1\nflowop closefile name=cl,fd=1\nflowop deletefile name=rm,filesetname=spare",
        },
        build: |args| OpenOp::build(args, true),
    },
    FlowopEntry {
        spec: Flowop {
            name: "closefile",
            class: Class::Io,
            direction: IoDirection::None,
            uses: &["filesetname", "fd"],
            roles: &[Role::ClosesSlot],
            origin: Origin::Both,
            doc: "closes the file in the slot",
            example: "flowop openfile name=op,filesetname=data,fd=1\nflowop closefile name=cl,fd=1",
        },
        build: Close::build,
    },
];

impl OpenOp {
    fn build(args: &Args<'_>, create: bool) -> BuiltOp {
        let call = if create { NamedCall::Create } else { NamedCall::Open };
        if let Some(op) = ExpectedError::from_args(args, call)? {
            return Ok(op);
        }
        let set = args.need_fileset()?.id;
        Ok(Arc::new(Self { file: FileUse::new(args, !create)?, set, create }))
    }
}

impl Close {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self { file: FileUse::new(args, false)? }))
    }
}

#[derive(Debug)]
struct OpenOp {
    file: FileUse,
    set: usize,
    create: bool,
}

impl Stateless for OpenOp {
    fn describe(&self) -> String {
        self.file.describe()
    }

    fn preserves(&self) -> bool {
        !self.create && !self.file.flags.intersects(OFlags::CREATE | OFlags::TRUNC)
    }

    fn effects(&self) -> Effects {
        let makes = if self.create { vec![(self.set, Want::Existing, UnitKind::File)] } else { Vec::new() };
        Effects { makes, ..self.file.effects() }
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let slot = cx.io.slots.choose(&self.file.slot);
        if cx.io.slots.get(slot).handle.is_some() {
            return Err(cx.misuse(|| format!("slot {slot} is already open"), "close it first, or use another `fd=`"));
        }
        let by = self.file.pick.draw(cx);
        let (want, flags) = if self.create {
            // `EXCL`: an existing file of that name is inspected first, as it may belong to another program.
            (Want::Absent, self.file.flags | OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC)
        } else {
            (Want::Existing, self.file.flags)
        };
        let file = cx.pick(self.set, want, by, true)?;
        let opened = cx.open(slot, file, flags, self.file.readahead);
        let outcome = match opened {
            Ok(()) => cx.end(0),
            Err(stop) => {
                cx.release(file);
                return Err(stop);
            }
        };
        let state = &cx.files.views[file.set].set.state;
        if self.create {
            state.set_exists(file.index, true);
            cx.restamp();
        } else if cx.release(file) {
            cx.restamp();
        }
        outcome
    }
}

#[derive(Debug)]
struct Close {
    file: FileUse,
}

impl Stateless for Close {
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
        let slot = cx.io.slots.choose(&self.file.slot);
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
    }
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
