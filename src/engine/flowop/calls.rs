//! Flowops of one system call on one file: a row each, with the call as a function.
//!
//! To add one, add a row, which ends in one of the forms below the table: [`on_slot`], [`on_range`], [`on_name`] and so
//! on say where the file comes from and what is drawn before the call. Each form is compiled for each of its calls, so
//! that the call is direct.

use super::args::Args;
use super::by_name::{call_by_name, call_on, named_file, open_handle};
use super::op::{BuiltOp, Effects, FlowopEntry, entry, lost_file, stateful, stateless};
use super::transfer::{FileUse, OffsetSource, Offsets, UnsizedEnd, constant_size, max_size};
use super::working_set::WorkingSet;
use crate::exec::{OpCx, Stop};
use crate::io_engine::{self, Handle};
use crate::random::Quantity;
use std::ffi::CStr;
use std::time::Duration;
use wml_language::diag::{Code, Diagnostic};
use wml_language::spec::{Origin, Role};
use wml_os::fd::{self, Fd, Result as OsResult};
use wml_os::inode::{self, InodeChange};
use wml_os::range::{self, Lock};
use wml_os::{Advice, Errno, FileType, SeekFrom};

/// The attributes of a call on a range.
macro_rules! range {
    ($($own:literal),*) => {
        placed!("align", "stride", "offset", "backward", "reoffset" $(, $own)*)
    };
}

const NAMED: &[&str] = &["filesetname", "indexed", "uniform", "recent", "shuffle", "missing", "expect"];
const OPEN_OR_NAMED: &[&str] = &["filesetname", "fd", "indexed", "uniform", "recent", "shuffle"];
const BUFFER: &[&str] = &["filesetname", "fd", "iosize", "opennext", "indexed", "uniform", "recent"];
const IN_SLOT: &[Role] = &[Role::UsesSlot, Role::NeedsFile];

/// Name of the extended attribute that is set and read.
const XATTR: &CStr = c"user.wmlrun";

/// The time that `utimens` sets, in seconds since 1970: 9 September 2001.
const FIXED_TIME: i64 = 1_000_000_000;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("fsync", |args| on_open_slot(args, "fsync failed", fd::fsync))
        .origin(Origin::Both)
        .uses(&["filesetname", "fd"])
        .roles(&[Role::NeedsSlot])
        .doc("flushes data and metadata of the open file in the slot to the device")
        .example("flowop write name=wr,filename=data,iosize=4k,random\nflowop fsync name=fs,filename=data"),
    entry("fdatasync", |args| on_open_slot(args, "fdatasync failed", fd::fdatasync))
        .uses(&["filesetname", "fd"])
        .roles(&[Role::NeedsSlot])
        .doc("as `fsync`, without metadata that is not needed to read the data, such as times")
        .example("flowop write name=wr,filename=data,iosize=4k,random\nflowop fdatasync name=fs,filename=data"),
    entry("syncfs", |args| on_slot(args, "syncfs failed", fd::syncfs))
        .uses(&["filesetname", "fd"])
        .roles(IN_SLOT)
        .doc(
            "flushes the whole file system of the file in the slot to the device; if the slot is closed, opens a file \
             of the set first",
        )
        .example("flowop write name=wr,filename=data,iosize=4k,random\nflowop syncfs name=sy,filename=data"),
    entry("statfile", stat_file)
        .origin(Origin::Both)
        .uses(&["filesetname", "fd", "by", "opennext", "indexed", "uniform", "recent", "shuffle", "missing", "expect"])
        .roles(&[Role::NeedsFile])
        .doc("reads the attributes of the open file in the slot (`fstat`), else of a file of the set (`stat`)")
        .example("flowop statfile name=st,filesetname=data"),
    entry("access", |args| on_name(args, "access failed", access))
        .uses(NAMED)
        .roles(&[Role::NeedsFile])
        .doc("checks whether a file of the set can be read (`faccessat`); denied access (EACCES) is not an error")
        .example("flowop access name=ac,filesetname=data"),
    entry("setattr", |args| change(args, "setting the times failed", InodeChange::TimesNow))
        .uses(OPEN_OR_NAMED)
        .roles(&[Role::NeedsFile])
        .doc(
            "sets access and modification time to now (`utimensat`), of the open file in the slot, else of a file of \
             the set",
        )
        .example("flowop setattr name=sa,filesetname=data"),
    entry("utimens", |args| change(args, "setting the times failed", InodeChange::Times(FIXED_TIME)))
        .uses(OPEN_OR_NAMED)
        .roles(&[Role::NeedsFile])
        .doc(
            "as `setattr`, but sets the times to 9 September 2001, as a copy that preserves the times of its source \
             (`utimensat`)",
        )
        .example("flowop utimens name=ut,filesetname=data"),
    entry("chmod", |args| change(args, "chmod failed", InodeChange::Mode(mode(args)?)))
        .uses(&["filesetname", "fd", "indexed", "uniform", "recent", "shuffle", "mode"])
        .roles(&[Role::NeedsFile])
        .doc(
            "sets the permission bits to `mode`, of the open file in the slot (`fchmod`), else of a file of the set \
             (`fchmodat2`; before Linux 6.6 an open, `fstat`, `chmod` and a close)",
        )
        .example("flowop chmod name=cm,filesetname=data,mode=600"),
    entry("chown", |args| change(args, "chown failed", InodeChange::own()))
        .uses(OPEN_OR_NAMED)
        .roles(&[Role::NeedsFile])
        .doc("sets owner and group to those of the run, of the open file in the slot, else of a file of the set")
        .example("flowop chown name=co,filesetname=data"),
    entry("setxattr", |args| {
        on_buffer::<true>(args, 64, "setxattr failed", |fd, value| inode::set_xattr(fd, XATTR, value))
    })
    .uses(BUFFER)
    .roles(&[Role::UsesSlot, Role::NeedsFile, Role::TakesSpace])
    .doc("sets the extended attribute `user.wmlrun` of the file in the slot to `iosize` bytes, default 64")
    .example("flowop setxattr name=sx,filesetname=data,iosize=100"),
    entry("getxattr", |args| {
        on_buffer::<false>(args, 64, "getxattr failed", |fd, buf| may_lack(inode::get_xattr(fd, XATTR, buf)))
    })
    .uses(BUFFER)
    .roles(IN_SLOT)
    .doc(
        "reads the extended attribute `user.wmlrun` of the file in the slot into a buffer of `iosize` bytes, default \
         64; it is no error if the attribute is missing or larger",
    )
    .example("flowop setxattr name=sx,filesetname=data\nflowop getxattr name=gx,filesetname=data"),
    // By default the buffer has the size that programs try first.
    entry("listxattr", |args| {
        on_buffer::<false>(args, 256, "listxattr failed", |fd, buf| may_lack(inode::list_xattrs(fd, buf)))
    })
    .uses(BUFFER)
    .roles(IN_SLOT)
    .doc(
        "reads the names of the extended attributes of the file in the slot into a buffer of `iosize` bytes, default \
         256; it is no error if they are longer",
    )
    .example("flowop setxattr name=sx,filesetname=data\nflowop listxattr name=lx,filesetname=data"),
    entry("readlink", read_link)
        .uses(NAMED)
        .roles(&[Role::NeedsFile])
        .doc("reads the target of a symbolic link of the set; EINVAL, the result for a regular file, is not an error")
        .example(
            "flowop symlink name=ln,filesetname=links\nflowop readlink name=rl,filesetname=links\nflowop deletefile \
             name=rm,filesetname=links",
        ),
    entry("truncate", truncate)
        .uses(&["filesetname", "fd", "value", "opennext", "indexed", "uniform", "recent"])
        // Space only on file systems without sparse files.
        .roles(&[Role::UsesSlot, Role::NeedsFile, Role::TakesSpace])
        .doc("sets the size of the file in the slot to `value` bytes, default 0 (`ftruncate`)")
        .example("flowop truncate name=tr,filesetname=data,fd=1,value=16k\nflowop closefile name=cl,fd=1"),
    entry("lseek", seek)
        .uses(&["filesetname", "fd", "whence", "value", "opennext", "indexed", "uniform", "recent"])
        .roles(IN_SLOT)
        .doc("moves the position of the file in the slot by `value` bytes from `whence`: its start, position or end")
        .example("flowop lseek name=end,filename=data,whence=end"),
    entry("fallocate", |args| {
        let keep_size = args.flag("keepsize")?;
        let (what, details) = if keep_size { (RangeCall::BehindEnd, " keepsize") } else { (RangeCall::Extends, "") };
        on_range(args, args.need_iosize()?, what, details, "fallocate failed", move |fd, offset, len| {
            range::allocate(fd, offset, len, keep_size)
        })
    })
    .uses(range!("keepsize"))
    .roles(&[Role::UsesSlot, Role::NeedsFile, Role::TakesSpace])
    .doc(
        "allocates disk space for `iosize` bytes of the file in the slot; extends the file unless `keepsize` is given \
         (`fallocate`)",
    )
    .example("flowop fallocate name=al,filesetname=data,iosize=16k"),
    entry("punchhole", |args| {
        on_range(args, args.need_iosize()?, RangeCall::Changes, "", "punching a hole failed", range::punch_hole)
    })
    .uses(range!())
    .roles(IN_SLOT)
    .doc(
        "deallocates `iosize` bytes of the file in the slot, which then read as zeros; its size does not change \
         (FALLOC_FL_PUNCH_HOLE)",
    )
    .example("flowop punchhole name=ph,filename=data,iosize=4k,random"),
    entry("readahead", |args| advise(args, args.need_iosize()?, "", Advice::WillNeed))
        .uses(range!())
        .roles(IN_SLOT)
        .doc(
            "starts reading `iosize` bytes of the file in the slot into the page cache, and does not wait for them \
             (POSIX_FADV_WILLNEED)",
        )
        .example("flowop readahead name=ra,filename=data,iosize=64k"),
    entry("fadvise", |args| {
        let (word, advice) = advice(args)?;
        advise(args, args.quantity_or("iosize", 0)?, &format!(" advice={word}"), advice)
    })
    .uses(range!("advice"))
    .roles(IN_SLOT)
    .doc(
        "gives the kernel the advice `advice=` on `iosize` bytes of the file in the slot, default all \
         (`posix_fadvise`)",
    )
    .example("flowop fadvise name=ad,filename=data,advice=dontneed"),
    entry("syncrange", |args| {
        let wait = args.flag("wait")?;
        let (size, details) = (args.quantity_or("iosize", 0)?, if wait { " wait" } else { "" });
        on_range(args, size, RangeCall::Preserves, details, "sync_file_range failed", move |fd, offset, len| {
            range::sync_range(fd, offset, len, wait)
        })
    })
    .uses(range!("wait"))
    .roles(IN_SLOT)
    .doc(
        "starts writeback of `iosize` bytes of the file in the slot, default all; flushes neither metadata nor the \
         device's cache (`sync_file_range`)",
    )
    .example(
        "flowop write name=wr,filename=data,iosize=64k\nflowop syncrange name=sr,filename=data,iosize=64k,reoffset",
    ),
    entry("lock", |args| {
        let (kind, details) = lock_kind(args)?;
        let size = args.quantity_or("iosize", 0)?;
        on_range(args, size, RangeCall::Waits, details, "locking failed", move |fd, offset, len| {
            range::lock(fd, offset, len, Some(kind))
        })
    })
    .uses(range!("shared"))
    .roles(IN_SLOT)
    .doc(
        "locks `iosize` bytes of the file in the slot, default all, against other slots and threads (F_OFD_SETLK). If \
         another one holds the lock, it retries after 20 µs, then after twice the time before, at most 1 ms",
    )
    .example("flowop lock name=lk,filename=data,iosize=4k,random\nflowop unlock name=ul,filename=data"),
    entry("getlk", |args| {
        let (kind, details) = lock_kind(args)?;
        let size = args.quantity_or("iosize", 0)?;
        on_range(args, size, RangeCall::Preserves, details, "testing a lock failed", move |fd, offset, len| {
            range::test_lock(fd, offset, len, kind)
        })
    })
    .uses(range!("shared"))
    .roles(IN_SLOT)
    .doc("asks whether `lock` would have to wait, and takes no lock (F_OFD_GETLK)")
    .example("flowop getlk name=gl,filename=data,at=1g,iosize=1"),
    entry("unlock", |args| {
        let size = args.quantity_or("iosize", 0)?;
        on_range(args, size, RangeCall::Preserves, "", "unlocking failed", |fd, offset, len| {
            range::lock(fd, offset, len, None)
        })
    })
    .uses(range!())
    .roles(IN_SLOT)
    .doc("releases the locks on `iosize` bytes of the file in the slot, default all")
    .example("flowop lock name=lk,filename=data\nflowop unlock name=ul,filename=data"),
];

/// A call on the open file in the slot. It is an error if the slot is closed.
fn on_open_slot(
    args: &Args<'_>,
    failure: &'static str,
    call: impl Fn(Fd) -> OsResult<()> + Send + Sync + 'static,
) -> BuiltOp {
    let (file, name) = (FileUse::new(args, false)?, args.spec.name);
    Ok(stateless(file.describe(), Effects { preserves: true, ..file.effects() }, move |cx| {
        let slot = cx.io.slots.choose(&file.slot);
        cx.begin();
        let Some(handle) = cx.handle(slot) else {
            return Err(cx.misuse(|| format!("{name} of slot {slot}, which is closed"), "open or write the file first"));
        };
        match io_engine::call(handle.fd, &call) {
            Ok(()) => cx.end(0),
            Err(errno) => Err(cx.failed_in_slot(failure, errno, slot)),
        }
    }))
}

/// A call on the file in the slot. If the slot is closed, a file of the set is opened there first.
fn on_slot(
    args: &Args<'_>,
    failure: &'static str,
    call: impl Fn(Fd) -> OsResult<()> + Send + Sync + 'static,
) -> BuiltOp {
    let file = FileUse::new(args, false)?;
    Ok(stateless(file.describe(), Effects { preserves: true, ..file.effects() }, move |cx| {
        let slot = file.ensure_open(cx)?;
        on_handle(cx, slot, failure, |handle| io_engine::call(handle.fd, &call))
    }))
}

/// Makes a call on the open file of a slot, as one operation.
#[inline]
fn on_handle(
    cx: &mut OpCx<'_>,
    slot: usize,
    failure: &str,
    call: impl FnOnce(&mut Handle) -> OsResult<()>,
) -> Result<(), Stop> {
    cx.begin();
    let Some(handle) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
    match call(handle) {
        Ok(()) => cx.end(0),
        Err(errno) => Err(cx.failed_in_slot(failure, errno, slot)),
    }
}

fn truncate(args: &Args<'_>) -> BuiltOp {
    let (file, size) = (FileUse::new(args, true)?, args.quantity_or("value", 0)?);
    Ok(stateless(format!("{} value={size}", file.describe()), file.effects(), move |cx| {
        let slot = file.ensure_open(cx)?;
        let size = size.draw(&mut cx.rng);
        on_handle(cx, slot, "truncate failed", |handle| handle.truncate(size))
    }))
}

fn seek(args: &Args<'_>) -> BuiltOp {
    let (file, by) = (FileUse::new(args, true)?, args.quantity_or("value", 0)?);
    let whence = args.text("whence").filter(|word| !word.is_empty()).unwrap_or_else(|| "set".to_owned());
    let described = format!("{} whence={whence} value={by}", file.describe());
    let to: fn(u64) -> SeekFrom = match whence.as_str() {
        "cur" => |by| SeekFrom::Current(by as i64),
        "end" => |by| SeekFrom::End(by as i64),
        _ => SeekFrom::Start,
    };
    Ok(stateless(described, Effects { preserves: true, ..file.effects() }, move |cx| {
        let slot = file.ensure_open(cx)?;
        let to = to(by.draw(&mut cx.rng));
        on_handle(cx, slot, "lseek failed", |handle| handle.seek_to(to))
    }))
}

/// A call on the file in the slot with `iosize` bytes of the buffer; with `WRITES` the buffer has data for it.
fn on_buffer<const WRITES: bool>(
    args: &Args<'_>,
    default_size: u64,
    failure: &'static str,
    call: impl Fn(Fd, &mut [u8]) -> OsResult<()> + Send + Sync + 'static,
) -> BuiltOp {
    let (file, size) = (FileUse::new(args, true)?, args.quantity_or("iosize", default_size)?);
    let (buffer, exact_buffer) = (max_size(&size), constant_size(&size));
    let effects = Effects { buffer, exact_buffer, preserves: true, ..file.effects() };
    Ok(stateless(format!("{} iosize={size}", file.describe()), effects, move |cx| {
        let slot = file.ensure_open(cx)?;
        let len = size.draw(&mut cx.rng);
        let range = if WRITES { cx.data(slot, len)? } else { cx.place(len)? };
        let Some(&mut Handle { fd, .. }) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
        cx.begin();
        match io_engine::call(fd, |fd| call(fd, cx.io.buffer.get_mut(range))) {
            Ok(()) => cx.end(0),
            Err(errno) => Err(cx.failed_in_slot(failure, errno, slot)),
        }
    }))
}

/// The result of a read of extended attributes: that there is none, or a larger one than the buffer, is a valid one.
fn may_lack(read: OsResult<usize>) -> OsResult<()> {
    match read {
        Ok(_) | Err(Errno::NODATA | Errno::RANGE) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// A call on the open file in the slot, else on the name of a file of the set, which returns the number of system calls
/// beyond the first. With `CHANGES` it is first checked that the file of that name belongs to the set.
fn on_open_or_name<const CHANGES: bool>(
    args: &Args<'_>,
    details: &str,
    failures: [&'static str; 2],
    open: impl Fn(Fd) -> OsResult<()> + Send + Sync + 'static,
    named: impl Fn(Fd, &CStr) -> OsResult<u64> + Send + Sync + 'static,
) -> BuiltOp {
    let file = named_file(args)?;
    Ok(stateless(file.describe() + details, Effects { preserves: true, ..file.effects() }, move |cx| {
        let Some((handle, held)) = open_handle(&file, cx) else {
            return call_by_name::<CHANGES>(&file, cx, failures[1], &named);
        };
        cx.begin();
        match io_engine::call(handle.fd, &open) {
            Ok(()) => cx.end(0),
            Err(errno) => Err(cx.failed(failures[0], errno, held)),
        }
    }))
}

fn stat_file(args: &Args<'_>) -> BuiltOp {
    match args.text("by").as_deref() {
        Some("slot") => on_open_slot(args, "fstat failed", stat_open),
        Some("path") => {
            let file = named_file(args)?;
            let described = file.describe() + " by=path";
            Ok(stateless(described, Effects { preserves: true, ..file.effects() }, move |cx| {
                match cx.io.slots.get(file.slot.fd).file.filter(|_| file.slot.fd > 0) {
                    Some(open) if cx.hold_existing(open)? => call_on(open, cx, "stat failed", stat),
                    // Another thread has removed its name.
                    Some(_) => cx.skip(),
                    None => call_by_name::<false>(&file, cx, "stat failed", stat),
                }
            }))
        }
        _ => on_open_or_name::<false>(args, "", ["fstat failed", "stat failed"], stat_open, stat),
    }
}

fn stat_open(file: Fd) -> OsResult<()> {
    fd::fstat(file).map(drop)
}

fn stat(dir: Fd, name: &CStr) -> OsResult<u64> {
    match fd::stat_at(dir, name)?.kind {
        FileType::RegularFile | FileType::Symlink => Ok(0),
        // The handler of the error inspects the name and reports anything that is not a file of the set.
        _ => Err(Errno::OPNOTSUPP),
    }
}

fn change(args: &Args<'_>, failure: &'static str, change: InodeChange) -> BuiltOp {
    let details = if let InodeChange::Mode(mode) = change { format!(" mode={mode:o}") } else { String::new() };
    on_open_or_name::<true>(
        args,
        &details,
        [failure, failure],
        move |fd| inode::change(fd, &change),
        move |dir, name| inode::change_at(dir, name, &change),
    )
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

/// A call on the name of a file of the set. It returns the number of system calls beyond the first.
fn on_name(
    args: &Args<'_>,
    failure: &'static str,
    call: impl Fn(Fd, &CStr) -> OsResult<u64> + Send + Sync + 'static,
) -> BuiltOp {
    args.need_fileset()?;
    let file = FileUse::new(args, false)?;
    Ok(stateless(file.describe(), Effects { preserves: true, ..file.effects() }, move |cx| {
        call_by_name::<false>(&file, cx, failure, &call)
    }))
}

fn access(dir: Fd, name: &CStr) -> OsResult<u64> {
    match inode::access_at(dir, name) {
        // The operation is the check, whatever its result.
        Ok(()) | Err(Errno::ACCESS) => Ok(0),
        Err(errno) => Err(errno),
    }
}

fn read_link(args: &Args<'_>) -> BuiltOp {
    args.need_fileset()?;
    let file = FileUse::new(args, false)?;
    Ok(stateless(file.describe(), Effects { preserves: true, ..file.effects() }, move |cx| {
        // Targets of wmlrun's links are shorter than this. A longer one is truncated, as for any reader with a small
        // buffer.
        let mut text = [0; 256];
        call_by_name::<false>(&file, cx, "readlink failed", |dir, name| match fd::read_link_at(dir, name, &mut text) {
            Ok(_) | Err(Errno::INVAL) => Ok(0),
            Err(errno) => Err(errno),
        })
    }))
}

/// What a call on a range does with the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RangeCall {
    /// Neither size nor contents change.
    Preserves,
    /// It takes a lock, and is repeated until it has it.
    Waits,
    /// Contents change.
    Changes,
    /// Size and contents change.
    Extends,
    /// It takes space for later appends, behind the end of the file.
    BehindEnd,
}

/// A call on `size` bytes of the file in the slot, with 0 on all of it. `details` follow in the plan.
fn on_range(
    args: &Args<'_>,
    size: Quantity,
    what: RangeCall,
    details: &str,
    failure: &'static str,
    call: impl Fn(Fd, u64, u64) -> OsResult<()> + Send + Sync + 'static,
) -> BuiltOp {
    let file = FileUse::new(args, true)?;
    let (source, workingset) = (OffsetSource::with_offset(args)?, WorkingSet::new(args)?);
    let described = format!("{} iosize={size}{}{details}", file.describe(), source.describe());
    let preserves = matches!(what, RangeCall::Preserves | RangeCall::Waits);
    let is_placed = matches!(source, OffsetSource::At(_));
    Ok(stateful(
        described,
        Effects { preserves, ..file.effects() },
        move |init| Offsets::new(source.clone(), workingset.draw(init), UnsizedEnd::Defined),
        move |offsets, cx| {
            let slot = file.ensure_open(cx)?;
            let len = size.draw(&mut cx.rng);
            let offset = match what {
                // With a length of 0: from there to the end of the file.
                _ if is_placed => offsets.next(cx, slot, len)?.unwrap_or(0),
                RangeCall::BehindEnd => cx.file_size(slot)?,
                _ if len == 0 => 0,
                _ => offsets.next(cx, slot, len)?.unwrap_or(0),
            };
            let mut wait = MIN_LOCK_WAIT;
            cx.begin();
            loop {
                let Some(handle) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
                match io_engine::call(handle.fd, |fd| call(fd, offset, len)) {
                    Ok(()) => {
                        if what == RangeCall::Extends {
                            handle.size = handle.size.max(offset + len);
                        }
                        return cx.end(0);
                    }
                    Err(Errno::AGAIN | Errno::ACCESS) if what == RangeCall::Waits => wait_for_lock(cx, &mut wait)?,
                    Err(errno) => return Err(cx.failed_in_slot(failure, errno, slot)),
                }
            }
        },
    ))
}

fn advise(args: &Args<'_>, size: Quantity, details: &str, advice: Advice) -> BuiltOp {
    on_range(args, size, RangeCall::Preserves, details, "posix_fadvise failed", move |fd, offset, len| {
        range::advise(fd, offset, len, advice)
    })
}

/// The kind of the lock, and its part of a description in a plan.
fn lock_kind(args: &Args<'_>) -> Result<(Lock, &'static str), Diagnostic> {
    Ok(if args.flag("shared")? { (Lock::Shared, " shared") } else { (Lock::Exclusive, "") })
}

/// The values of `advice=`.
const ADVICES: [(&str, Advice); 6] = [
    ("normal", Advice::Normal),
    ("sequential", Advice::Sequential),
    ("random", Advice::Random),
    ("willneed", Advice::WillNeed),
    ("dontneed", Advice::DontNeed),
    ("noreuse", Advice::NoReuse),
];

/// Returns the advice of `fadvise`. `Err` when `advice=` is not given.
fn advice(args: &Args<'_>) -> Result<(&'static str, Advice), Diagnostic> {
    let text = args.text("advice").unwrap_or_default();
    ADVICES.into_iter().find(|(word, _)| *word == text).ok_or_else(|| {
        let message = format!("flowop `{}` of type `{}` has no `advice=`", args.name, args.spec.name);
        Diagnostic::error(Code::MissingAttribute, args.span_of("advice"), message)
            .help("add `advice=…`, such as `advice=dontneed`")
    })
}

/// First wait before a lock is tried again.
const MIN_LOCK_WAIT: Duration = Duration::from_micros(20);

/// Longest wait before a lock is tried again. The alternative, a call that waits in the kernel, would not return at the
/// end of the run if threads deadlock.
const MAX_LOCK_WAIT: Duration = Duration::from_millis(1);

/// Sleeps for `wait` and doubles it. `Err` when the run ends meanwhile.
#[cold]
fn wait_for_lock(cx: &OpCx<'_>, wait: &mut Duration) -> Result<(), Stop> {
    let clock = cx.env.clock;
    let until = clock.raw().saturating_add(clock.ticks(wait.as_nanos() as u64));
    *wait = (*wait * 2).min(MAX_LOCK_WAIT);
    if cx.env.gate.sleep_until(clock, until) { Err(Stop::over()) } else { Ok(()) }
}
