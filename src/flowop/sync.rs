//! Flushes to the device: `fsync`, `fdatasync`, `fsyncset`, `syncfs`, `fsyncdir`.

use super::args::Args;
use super::meta::named_file;
use super::transfer::FileUse;
use super::{BuiltOp, Effects, FlowopEntry, Stateless, lost_file};
use crate::engine::{Engine, Handle};
use crate::exec::{OpCx, Stop};
use crate::os::Errno;
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::sync::Arc;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "fsync",
            class: Class::Io,
            direction: IoDirection::None,
            uses: &["filesetname", "fd"],
            roles: &[Role::NeedsSlot],
            origin: Origin::Both,
            doc: "flushes data and metadata of the open file in the slot to the device",
            example: "flowop write name=wr,filename=data,iosize=4k,random\nflowop fsync name=fs,filename=data",
        },
        build: |args| Sync::build(args, SyncKind::All),
    },
    FlowopEntry {
        spec: Flowop {
            name: "fdatasync",
            class: Class::Io,
            direction: IoDirection::None,
            uses: &["filesetname", "fd"],
            roles: &[Role::NeedsSlot],
            origin: Origin::Wmlrun,
            doc: "as `fsync`, without metadata that is not needed to read the data, such as times",
            example: "flowop write name=wr,filename=data,iosize=4k,random\nflowop fdatasync name=fs,filename=data",
        },
        build: |args| Sync::build(args, SyncKind::Data),
    },
    FlowopEntry {
        spec: Flowop {
            name: "fsyncset",
            class: Class::Io,
            direction: IoDirection::None,
            uses: &["filesetname"],
            roles: &[],
            origin: Origin::Both,
            doc: "calls fsync for every file of the set that the thread has open; each call is one operation",
            example: "flowop write name=wr,filename=data,iosize=4k,random\nflowop fsyncset name=fs,filesetname=data",
        },
        build: FsyncSet::build,
    },
    FlowopEntry {
        spec: Flowop {
            name: "syncfs",
            class: Class::Io,
            direction: IoDirection::None,
            uses: &["filesetname", "fd"],
            roles: &[Role::UsesSlot, Role::NeedsFile],
            origin: Origin::Wmlrun,
            doc: "flushes the whole file system of the file in the slot to the device; if the slot is closed, opens a \
                  file of the set first",
            example: "flowop write name=wr,filename=data,iosize=4k,random\nflowop syncfs name=sy,filename=data",
        },
        build: SyncFs::build,
    },
    FlowopEntry {
        spec: Flowop {
            name: "fsyncdir",
            class: Class::Io,
            direction: IoDirection::None,
            uses: &["filesetname", "fd"],
            roles: &[],
            origin: Origin::Wmlrun,
            doc: "flushes a directory to the device (open, `fsync`, close), so that a name created or renamed in it \
                  outlives a crash: the directory of the file that is or was open in the slot, else the next directory \
                  of the set",
            example: "flowop createfile name=cr,filesetname=spare,fd=1\nflowop closefile name=cl,fd=1\nflowop \
                      fsyncdir name=fd,fd=1\nflowop deletefile name=rm,fd=1",
        },
        build: SyncDir::build,
    },
];

impl SyncDir {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self { file: named_file(args)? }))
    }
}

impl Sync {
    fn build(args: &Args<'_>, kind: SyncKind) -> BuiltOp {
        Ok(Arc::new(Self { file: FileUse::new(args, false)?, kind }))
    }
}

impl SyncFs {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self { file: FileUse::new(args, false)? }))
    }
}

impl FsyncSet {
    fn build(args: &Args<'_>) -> BuiltOp {
        let set = args.need_fileset()?;
        Ok(Arc::new(Self { set: set.id, name: set.name }))
    }
}

/// What is flushed.
#[derive(Clone, Copy, Debug)]
enum SyncKind {
    All,
    Data,
}

#[derive(Debug)]
struct Sync {
    file: FileUse,
    kind: SyncKind,
}

impl Stateless for Sync {
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
        let engine = cx.env.engine;
        cx.begin();
        let Some(handle) = cx.handle(slot) else {
            return Err(cx.misuse(|| format!("fsync of slot {slot}, which is closed"), "open or write the file first"));
        };
        let result = match self.kind {
            SyncKind::All => engine.fsync(handle),
            SyncKind::Data => engine.fdatasync(handle),
        };
        match result {
            Ok(()) => cx.end(0),
            Err(errno) => {
                let what = if matches!(self.kind, SyncKind::All) { "fsync failed" } else { "fdatasync failed" };
                Err(cx.failed_in_slot(what, errno, slot))
            }
        }
    }
}

#[derive(Debug)]
struct SyncFs {
    file: FileUse,
}

impl Stateless for SyncFs {
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
        let slot = self.file.ensure_open(cx)?;
        on_handle(cx, slot, "syncfs failed", |engine, handle| engine.syncfs(handle).map(|()| 0))
    }
}

#[derive(Debug)]
struct SyncDir {
    file: FileUse,
}

impl Stateless for SyncDir {
    fn describe(&self) -> String {
        self.file.describe()
    }

    fn preserves(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        self.file.effects()
    }

    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        cx.restamp();
        let fd = self.file.slot.fd;
        let held = if fd > 0 { cx.io.slots.get(fd).file } else { None };
        let (set, dir) = match (held, &self.file.set) {
            (Some(file), _) => (file.set, cx.files.views[file.set].set.tree.dir_of(file.index)),
            (None, Some(set)) => {
                let set = cx.any_part(set.id);
                (set, cx.files.views[set].set.state.next_dir())
            }
            (None, None) => {
                let what = || format!("slot {fd} has no file whose directory could be flushed");
                return Err(cx.misuse(what, "open a file there first, or add `filesetname=`"));
            }
        };
        let done = cx.dir(set, dir).and_then(|fd| {
            cx.begin();
            cx.env.engine.fsync_dir(fd)
        });
        match done {
            Ok(()) => {
                // Open and close.
                cx.cell().add_calls(2);
                cx.end(0)
            }
            Err(errno) => Err(cx.failed("fsync of a directory failed", errno, held)),
        }
    }
}

/// Makes a call on the open file of a slot, as one operation. The call returns the bytes that it transferred.
#[inline]
pub(super) fn on_handle(
    cx: &mut OpCx<'_>,
    slot: usize,
    what: &str,
    call: impl FnOnce(&dyn Engine, &mut Handle) -> Result<u64, Errno>,
) -> Result<(), Stop> {
    let engine = cx.env.engine;
    cx.begin();
    let Some(handle) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
    match call(engine, handle) {
        Ok(bytes) => cx.end(bytes),
        Err(errno) => Err(cx.failed_in_slot(what, errno, slot)),
    }
}

#[derive(Debug)]
struct FsyncSet {
    set: usize,
    name: String,
}

impl Stateless for FsyncSet {
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
        let engine = cx.env.engine;
        let mut any = false;
        for slot in 0..cx.io.slots.len() {
            let state = *cx.io.slots.get(slot);
            if state.handle.is_none() || state.file.is_none_or(|f| cx.io.slots.set_of(f) != self.set) {
                continue;
            }
            any = true;
            cx.io.slots.set_last(slot);
            cx.begin();
            let Some(handle) = cx.handle(slot) else { continue };
            match engine.fsync(handle) {
                Ok(()) => cx.end(0)?,
                Err(errno) => return Err(cx.failed("fsync failed", errno, state.file)),
            }
        }
        if any { Ok(()) } else { cx.skip() }
    }
}
