//! `access`, `setattr`, `utimens`, `chmod`, `chown`, `statfs`, `setxattr`, `getxattr`, `listxattr`: questions about files, and what
//! is noted of them.

use super::args::Args;
use super::expected::{ExpectedError, NamedCall};
use super::meta::{by_name, named_file, open_slot};
use super::read::small_buffer;
use super::transfer::{FileUse, exactly, largest};
use super::{Build, BuiltOp, Effects, FlowopEntry, Stateless};
use crate::diag::{Code, Diagnostic};
use crate::exec::{OpCx, Stop};
use crate::os::Errno;
use crate::os::inode::InodeChange;
use crate::random::Quantity;
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::ffi::CStr;
use std::sync::Arc;

const NAMED: &[&str] = &["filesetname", "indexed", "uniform", "shuffle", "missing", "expect"];
const NAMED_OR_OPEN: &[&str] = &["filesetname", "fd", "indexed", "uniform", "shuffle"];
const SLOT: &[&str] = &["filesetname", "fd", "iosize", "opennext", "indexed", "uniform"];

/// The extended attribute that is set and read.
const XATTR: &CStr = c"user.wmlrun";

/// Bytes for the names of extended attributes, as programs try first.
const XATTR_NAMES: u64 = 256;

/// The time that `utimens` sets: seconds since 1970, in September 2001.
const LONG_AGO: i64 = 1_000_000_000;

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
        |args| SetAttr::build(args, "setting the times failed", InodeChange::TimesNow),
        NAMED_OR_OPEN,
        "sets a file's times to now: of the open file in the slot, else of a file of the set (`utimensat`)",
        "flowop setattr name=sa,filesetname=data",
    ),
    ours(
        "utimens",
        &[Role::NeedsFile],
        |args| SetAttr::build(args, "setting the times failed", InodeChange::Times(LONG_AGO)),
        NAMED_OR_OPEN,
        "sets a file's times to a day in 2001, as a copy keeps the times of its source (`utimensat`)",
        "flowop utimens name=ut,filesetname=data",
    ),
    ours(
        "chmod",
        &[Role::NeedsFile],
        |args| SetAttr::build(args, "chmod failed", InodeChange::Mode(mode(args)?)),
        &["filesetname", "fd", "indexed", "uniform", "shuffle", "mode"],
        "sets a file's permission bits to `mode`: of the open file in the slot, else of a file of the set",
        "flowop chmod name=cm,filesetname=data,mode=600",
    ),
    ours(
        "chown",
        &[Role::NeedsFile],
        |args| SetAttr::build(args, "chown failed", InodeChange::own()),
        NAMED_OR_OPEN,
        "sets a file's user and group to those of the run: of the open file in the slot, else of a file of the set",
        "flowop chown name=co,filesetname=data",
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
        |args| Xattr::build(args, XattrCall::Set),
        SLOT,
        "sets the extended attribute `user.wmlrun` of the file in the slot to `iosize` bytes, 64 if it is not given",
        "flowop setxattr name=sx,filesetname=data,iosize=100",
    ),
    ours(
        "getxattr",
        &[Role::UsesSlot, Role::NeedsFile],
        |args| Xattr::build(args, XattrCall::Get),
        SLOT,
        "reads the extended attribute `user.wmlrun` of the file in the slot; that there is none counts as an answer",
        "flowop setxattr name=sx,filesetname=data\nflowop getxattr name=gx,filesetname=data",
    ),
    ours(
        "listxattr",
        &[Role::UsesSlot, Role::NeedsFile],
        |args| Xattr::build(args, XattrCall::List),
        SLOT,
        "reads the names of the extended attributes of the file in the slot, up to `iosize` bytes of them",
        "flowop setxattr name=sx,filesetname=data\nflowop listxattr name=lx,filesetname=data",
    ),
];

impl Access {
    fn build(args: &Args<'_>) -> BuiltOp {
        if let Some(probe) = ExpectedError::of(args, NamedCall::Access)? {
            return Ok(probe);
        }
        args.need_fileset()?;
        Ok(Arc::new(Self { file: FileUse::new(args, false)? }))
    }
}

impl SetAttr {
    fn build(args: &Args<'_>, failure: &'static str, change: InodeChange) -> BuiltOp {
        Ok(Arc::new(Self { file: named_file(args)?, failure, change }))
    }
}

/// The permission bits of `chmod`: their decimal digits are octal ones. A file of the set stays one that its owner can use.
fn mode(args: &Args<'_>) -> Result<u32, Diagnostic> {
    let written = args.int("mode", 644)?;
    match u32::from_str_radix(&written.to_string(), 8) {
        Ok(mode) if mode <= 0o777 && mode & 0o600 == 0o600 => Ok(mode),
        _ => {
            let message = format!("`mode` of flowop `{}` can't be {written}", args.name);
            Err(Diagnostic::error(Code::OutOfRange, args.at("mode"), message)
                .help("give three octal digits, of which the first is 6 or 7, such as `mode=640`"))
        }
    }
}

impl StatFs {
    fn build(args: &Args<'_>) -> BuiltOp {
        let set = args.need_fileset()?;
        Ok(Arc::new(Self { set: set.id, name: set.name }))
    }
}

impl Xattr {
    fn build(args: &Args<'_>, call: XattrCall) -> BuiltOp {
        let size = args.quantity_or("iosize", if call == XattrCall::List { XATTR_NAMES } else { XATTR_SIZE })?;
        Ok(Arc::new(Self { file: FileUse::new(args, true)?, size, call }))
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
    failure: &'static str,
    change: InodeChange,
}

impl Stateless for SetAttr {
    fn describe(&self) -> String {
        match self.change {
            InodeChange::Mode(mode) => format!("{} mode={mode:o}", self.file.describe()),
            _ => self.file.describe(),
        }
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
            return match cx.env.engine.change_open(&handle, &self.change) {
                Ok(()) => cx.end(0),
                Err(errno) => Err(cx.failed(self.failure, errno, file)),
            };
        }
        by_name::<true>(&self.file, cx, self.failure, |engine, dir, name| {
            engine.change(dir, name, &self.change).map(|()| 0)
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

/// What is done with extended attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum XattrCall {
    Set,
    Get,
    List,
}

#[derive(Debug)]
struct Xattr {
    file: FileUse,
    size: Quantity,
    call: XattrCall,
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
        let set = self.call == XattrCall::Set;
        let range = if set { cx.io.buffer.data(len) } else { cx.io.buffer.place(len) };
        let Some(range) = range else { return Err(small_buffer(cx, len)) };
        let Some(handle) = cx.handle(slot).copied() else { return Err(Stop::over()) };
        let engine = cx.env.engine;
        cx.begin();
        let (what, result) = match self.call {
            XattrCall::Set => {
                ("setxattr failed", engine.set_xattr(&handle, XATTR, cx.io.buffer.get(range)).map(|()| 0))
            }
            XattrCall::Get => ("getxattr failed", engine.get_xattr(&handle, XATTR, cx.io.buffer.get_mut(range))),
            XattrCall::List => ("listxattr failed", engine.list_xattrs(&handle, cx.io.buffer.get_mut(range))),
        };
        match result {
            // Nor is it an error that there is none, or that what is there does not fit.
            Ok(_) => cx.end(0),
            Err(Errno::NODATA | Errno::RANGE) if !set => cx.end(0),
            Err(errno) => {
                let file = cx.io.slots.get(slot).file;
                Err(cx.failed(what, errno, file))
            }
        }
    }
}
