//! `access`, `setattr`, `statfs`, `setxattr`, `getxattr`: questions about files, and what is noted of them.

use super::args::Args;
use super::meta::{by_name, named_file, open_slot};
use super::read::small_buffer;
use super::transfer::{FileUse, exactly, largest};
use super::{Build, BuiltOp, Effects, FlowopEntry, Stateless};
use crate::exec::{OpCx, Stop};
use crate::os::Errno;
use crate::random::Quantity;
use crate::spec::{Class, Flowop, Origin, Role, Way};
use std::ffi::CStr;
use std::sync::Arc;

const NAMED: &[&str] = &["filesetname", "indexed"];
const SLOT: &[&str] = &["filesetname", "fd", "iosize", "opennext", "indexed"];

/// The extended attribute that is set and read.
const XATTR: &CStr = c"user.wmlrun";

/// Bytes of an extended attribute whose flowop gives no `iosize`.
const XATTR_SIZE: u64 = 64;

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
        "access",
        &[Role::NeedsFile],
        Access::build,
        NAMED,
        "asks whether a file of the set may be read (`faccessat`)",
        "flowop access name=ac,filesetname=data",
    ),
    ours(
        "setattr",
        &[Role::NeedsFile],
        SetAttr::build,
        &["filesetname", "fd", "indexed"],
        "sets a file's times to now: of the open file in the slot, else of a file of the set (`utimensat`)",
        "flowop setattr name=sa,filesetname=data",
    ),
    ours(
        "statfs",
        &[],
        StatFs::build,
        &["filesetname"],
        "asks for the room on the set's file system",
        "flowop statfs name=fs,filesetname=data",
    ),
    ours(
        "setxattr",
        &[Role::UsesSlot, Role::NeedsFile],
        |args| Xattr::build(args, true),
        SLOT,
        "sets the extended attribute `user.wmlrun` of the file in the slot to `iosize` bytes, 64 if it is not given",
        "flowop setxattr name=sx,filesetname=data,iosize=100",
    ),
    ours(
        "getxattr",
        &[Role::UsesSlot, Role::NeedsFile],
        |args| Xattr::build(args, false),
        SLOT,
        "reads the extended attribute `user.wmlrun` of the file in the slot; that there is none counts as an answer",
        "flowop setxattr name=sx,filesetname=data\nflowop getxattr name=gx,filesetname=data",
    ),
];

impl Access {
    fn build(args: &Args<'_>) -> BuiltOp {
        args.need_fileset()?;
        Ok(Arc::new(Self { file: FileUse::new(args, false)? }))
    }
}

impl SetAttr {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self { file: named_file(args)? }))
    }
}

impl StatFs {
    fn build(args: &Args<'_>) -> BuiltOp {
        let set = args.need_fileset()?;
        Ok(Arc::new(Self { set: set.id, name: set.name }))
    }
}

impl Xattr {
    fn build(args: &Args<'_>, set: bool) -> BuiltOp {
        let size = args.quantity_or("iosize", XATTR_SIZE)?;
        Ok(Arc::new(Self { file: FileUse::new(args, true)?, size, set }))
    }
}

#[derive(Debug)]
struct Access {
    file: FileUse,
}

impl Stateless for Access {
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
        by_name::<false>(&self.file, cx, "access failed", |engine, dir, name| match engine.access(dir, name) {
            // That it may not is an answer too.
            Ok(()) | Err(Errno::ACCESS) => Ok(0),
            Err(errno) => Err(errno),
        })
    }
}

#[derive(Debug)]
struct SetAttr {
    file: FileUse,
}

impl Stateless for SetAttr {
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
        if let Some((handle, file)) = open_slot(&self.file, cx) {
            cx.begin();
            return match cx.env.engine.touch_open(&handle) {
                Ok(()) => cx.end(0),
                Err(errno) => Err(cx.failed("setting the times failed", errno, file)),
            };
        }
        by_name::<true>(&self.file, cx, "setting the times failed", |engine, dir, name| {
            engine.touch(dir, name).map(|()| 0)
        })
    }
}

#[derive(Debug)]
struct StatFs {
    set: usize,
    name: String,
}

impl Stateless for StatFs {
    fn describe(&self) -> String {
        format!(" {}", self.name)
    }

    fn preserves(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects { sets: vec![self.set], ..Effects::default() }
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let set = cx.any_part(self.set);
        let result = cx.dir(set, 0).and_then(|root| {
            cx.begin();
            cx.env.engine.statfs(root)
        });
        match result {
            Ok(()) => cx.end(0),
            Err(errno) => Err(cx.failed("statfs failed", errno, None)),
        }
    }
}

#[derive(Debug)]
struct Xattr {
    file: FileUse,
    size: Quantity,
    set: bool,
}

impl Stateless for Xattr {
    fn describe(&self) -> String {
        format!("{} iosize={}", self.file.describe(), self.size)
    }

    fn preserves(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects { buffer: largest(&self.size), exact_buffer: exactly(&self.size), ..self.file.effects() }
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let slot = self.file.ensure(cx)?;
        let len = self.size.draw(&mut cx.rng);
        let range = if self.set { cx.io.buffer.data(len) } else { cx.io.buffer.place(len) };
        let Some(range) = range else { return Err(small_buffer(cx, len)) };
        let Some(handle) = cx.handle(slot).copied() else { return Err(Stop::over()) };
        cx.begin();
        let result = if self.set {
            cx.env.engine.set_xattr(&handle, XATTR, cx.io.buffer.get(range)).map(|()| 0)
        } else {
            cx.env.engine.get_xattr(&handle, XATTR, cx.io.buffer.get_mut(range))
        };
        match result {
            // Nor is it an error that there is none, or that the one there is does not fit.
            Ok(_) => cx.end(0),
            Err(Errno::NODATA | Errno::RANGE) if !self.set => cx.end(0),
            Err(errno) => {
                let file = cx.io.slots.get(slot).file;
                Err(cx.failed(if self.set { "setxattr failed" } else { "getxattr failed" }, errno, file))
            }
        }
    }
}
