//! File attributes: `access`, `setattr`, `utimens`, `chmod`, `chown`, `statfs`, `setxattr`, `getxattr`, `listxattr`.

use super::args::Args;
use super::expected::{ExpectedError, NamedCall};
use super::meta::{call_by_name, named_file, open_handle};
use super::transfer::{FileUse, constant_size, max_size};
use super::{BuiltOp, Effects, FILE_CALL, FlowopEntry, Stateless, lost_file};
use crate::diag::{Code, Diagnostic};
use crate::exec::{OpCx, Stop};
use crate::os::Errno;
use crate::os::inode::InodeChange;
use crate::random::Quantity;
use crate::spec::{Flowop, Role};
use std::ffi::CStr;
use std::sync::Arc;

const NAMED: &[&str] = &["filesetname", "indexed", "uniform", "recent", "shuffle", "missing", "expect"];
const NAMED_OR_OPEN: &[&str] = &["filesetname", "fd", "indexed", "uniform", "recent", "shuffle"];
const SLOT: &[&str] = &["filesetname", "fd", "iosize", "opennext", "indexed", "uniform", "recent"];

/// Name of the extended attribute that is set and read.
const XATTR: &CStr = c"user.wmlrun";

/// Default buffer size of `listxattr` in bytes: what programs try first.
const XATTR_NAMES: u64 = 256;

/// The time that `utimens` sets, in seconds since 1970: 9 September 2001.
const FIXED_TIME: i64 = 1_000_000_000;

/// Default size of an extended attribute in bytes.
const XATTR_SIZE: u64 = 64;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "access",
            uses: NAMED,
            roles: &[Role::NeedsFile],
            doc: "checks whether a file of the set can be read (`faccessat`); denied access (EACCES) is not an error",
            example: "flowop access name=ac,filesetname=data",
            ..FILE_CALL
        },
        build: Access::build,
    },
    FlowopEntry {
        spec: Flowop {
            name: "setattr",
            uses: NAMED_OR_OPEN,
            roles: &[Role::NeedsFile],
            doc: "sets access and modification time to now (`utimensat`), of the open file in the slot, else of a file \
                  of the set",
            example: "flowop setattr name=sa,filesetname=data",
            ..FILE_CALL
        },
        build: |args| SetAttr::build(args, "setting the times failed", InodeChange::TimesNow),
    },
    FlowopEntry {
        spec: Flowop {
            name: "utimens",
            uses: NAMED_OR_OPEN,
            roles: &[Role::NeedsFile],
            doc: "as `setattr`, but sets the times to 9 September 2001, as a copy that preserves the times of its \
                  source (`utimensat`)",
            example: "flowop utimens name=ut,filesetname=data",
            ..FILE_CALL
        },
        build: |args| SetAttr::build(args, "setting the times failed", InodeChange::Times(FIXED_TIME)),
    },
    FlowopEntry {
        spec: Flowop {
            name: "chmod",
            uses: &["filesetname", "fd", "indexed", "uniform", "recent", "shuffle", "mode"],
            roles: &[Role::NeedsFile],
            doc: "sets the permission bits to `mode`, of the open file in the slot (`fchmod`), else of a file of the \
                  set (`fchmodat2`; before Linux 6.6 an open, `fstat`, `chmod` and a close)",
            example: "flowop chmod name=cm,filesetname=data,mode=600",
            ..FILE_CALL
        },
        build: |args| SetAttr::build(args, "chmod failed", InodeChange::Mode(mode(args)?)),
    },
    FlowopEntry {
        spec: Flowop {
            name: "chown",
            uses: NAMED_OR_OPEN,
            roles: &[Role::NeedsFile],
            doc: "sets owner and group to those of the run, of the open file in the slot, else of a file of the set",
            example: "flowop chown name=co,filesetname=data",
            ..FILE_CALL
        },
        build: |args| SetAttr::build(args, "chown failed", InodeChange::own()),
    },
    FlowopEntry {
        spec: Flowop {
            name: "statfs",
            uses: &["filesetname"],
            doc: "queries the statistics of the set's file system (`statfs`)",
            example: "flowop statfs name=fs,filesetname=data",
            ..FILE_CALL
        },
        build: StatFs::build,
    },
    FlowopEntry {
        spec: Flowop {
            name: "setxattr",
            uses: SLOT,
            roles: &[Role::UsesSlot, Role::NeedsFile, Role::TakesSpace],
            doc: "sets the extended attribute `user.wmlrun` of the file in the slot to `iosize` bytes, default 64",
            example: "flowop setxattr name=sx,filesetname=data,iosize=100",
            ..FILE_CALL
        },
        build: |args| Xattr::build(args, XattrCall::Set),
    },
    FlowopEntry {
        spec: Flowop {
            name: "getxattr",
            uses: SLOT,
            roles: &[Role::UsesSlot, Role::NeedsFile],
            doc: "reads the extended attribute `user.wmlrun` of the file in the slot into a buffer of `iosize` bytes, \
                  default 64; it is no error if the attribute is missing or larger",
            example: "flowop setxattr name=sx,filesetname=data\nflowop getxattr name=gx,filesetname=data",
            ..FILE_CALL
        },
        build: |args| Xattr::build(args, XattrCall::Get),
    },
    FlowopEntry {
        spec: Flowop {
            name: "listxattr",
            uses: SLOT,
            roles: &[Role::UsesSlot, Role::NeedsFile],
            doc: "reads the names of the extended attributes of the file in the slot into a buffer of `iosize` bytes, \
                  default 256; it is no error if they are longer",
            example: "flowop setxattr name=sx,filesetname=data\nflowop listxattr name=lx,filesetname=data",
            ..FILE_CALL
        },
        build: |args| Xattr::build(args, XattrCall::List),
    },
];

impl Access {
    fn build(args: &Args<'_>) -> BuiltOp {
        if let Some(op) = ExpectedError::from_args(args, NamedCall::Access)? {
            return Ok(op);
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

/// Returns the permission bits of `chmod`; the decimal digits of `mode=` are octal digits. `Err` when the owner could
/// no longer read and write the file, which later flowops of the run need.
fn mode(args: &Args<'_>) -> Result<u32, Diagnostic> {
    let written = args.int("mode", 644)?;
    match u32::from_str_radix(&written.to_string(), 8) {
        Ok(mode) if mode <= 0o777 && mode & 0o600 == 0o600 => Ok(mode),
        _ => {
            let message = format!("`mode` of flowop `{}` is {written}", args.name);
            Err(Diagnostic::error(Code::OutOfRange, args.span_of("mode"), message)
                .help("give three octal digits, the first of them 6 or 7, such as `mode=640`"))
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
        call_by_name::<false>(&self.file, cx, "access failed", |engine, dir, name| match engine.access(dir, name) {
            // The operation is the check, whatever its result.
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
        if let Some((handle, file)) = open_handle(&self.file, cx) {
            cx.begin();
            return match cx.env.engine.change_open(&handle, &self.change) {
                Ok(()) => cx.end(0),
                Err(errno) => Err(cx.failed(self.failure, errno, file)),
            };
        }
        let mut further = 0;
        let outcome = call_by_name::<true>(&self.file, cx, self.failure, |engine, dir, name| {
            further = engine.change(dir, name, &self.change)?;
            Ok(0)
        });
        if further > 0 {
            cx.cell().add_calls(further);
        }
        outcome
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

/// A call on extended attributes.
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
        Effects { buffer: max_size(&self.size), exact_buffer: constant_size(&self.size), ..self.file.effects() }
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let slot = self.file.ensure_open(cx)?;
        let len = self.size.draw(&mut cx.rng);
        let set = self.call == XattrCall::Set;
        let range = if set { cx.data(slot, len)? } else { cx.place(len)? };
        let Some(handle) = cx.handle(slot).copied() else { return Err(lost_file(cx, slot)) };
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
            // No such attribute, or one larger than the buffer, is a valid result of a read.
            Ok(_) => cx.end(0),
            Err(Errno::NODATA | Errno::RANGE) if !set => cx.end(0),
            Err(errno) => Err(cx.failed_in_slot(what, errno, slot)),
        }
    }
}
