//! `truncate` and `copyrange`: changes of file size, and copies inside the kernel.

use super::args::Args;
use super::sync::on_handle;
use super::transfer::{FileUse, OffsetSource, Offsets, UnsizedEnd};
use super::working_set::WorkingSet;
use super::{BuiltOp, Effects, FILE_CALL, FlowopEntry, Op, Stateless, Step, StepInit, lost_file};
use crate::diag::{Code, Diagnostic};
use crate::exec::{OpCx, Stop};
use crate::random::Quantity;
use crate::spec::{Flowop, IoDirection, Role};
use std::sync::Arc;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "truncate",
            uses: &["filesetname", "fd", "value", "opennext", "indexed", "uniform", "recent"],
            // Only on file systems without sparse files.
            roles: &[Role::UsesSlot, Role::NeedsFile, Role::TakesSpace],
            doc: "sets the size of the file in the slot to `value` bytes, default 0 (`ftruncate`)",
            example: "flowop truncate name=tr,filesetname=data,fd=1,value=16k\nflowop closefile name=cl,fd=1",
            ..FILE_CALL
        },
        build: Truncate::build,
    },
    FlowopEntry {
        spec: Flowop {
            name: "copyrange",
            direction: IoDirection::Write,
            uses: &[
                "filesetname",
                "fd",
                "srcfd",
                "iosize",
                "random",
                "shuffle",
                "workingset",
                "opennext",
                "align",
                "stride",
                "offset",
                "backward",
                "reoffset",
            ],
            roles: &[Role::UsesSlot, Role::NeedsFile],
            doc: "copies `iosize` bytes, default all, of the file in slot `srcfd` to the same offset of the file in \
                  slot `fd`, inside the kernel (`copy_file_range`)",
            example: "flowop openfile name=op,filesetname=data,fd=1\nflowop copyrange \
                      name=cp,srcfd=1,filesetname=big,fd=2\nflowop closefile name=c1,fd=1\nflowop closefile \
                      name=c2,fd=2",
            ..FILE_CALL
        },
        build: CopyRange::build,
    },
];

impl Truncate {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self { file: FileUse::new(args, true)?, size: args.quantity_or("value", 0)? }))
    }
}

impl CopyRange {
    fn build(args: &Args<'_>) -> BuiltOp {
        let file = FileUse::new(args, true)?;
        let source = args.slot_number("srcfd")?;
        if source == 0 || source == file.slot.fd {
            let message = format!("flowop `{}` has no `srcfd=` that differs from its `fd=`", args.name);
            return Err(Diagnostic::error(Code::MissingAttribute, args.span_of("srcfd"), message)
                .help("give the slot of the source with `srcfd=`, and another slot with `fd=`"));
        }
        Ok(Arc::new(Self {
            file,
            source,
            size: args.quantity_or("iosize", 0)?,
            offset_source: OffsetSource::with_offset(args)?,
            workingset: WorkingSet::new(args)?,
        }))
    }
}

#[derive(Debug)]
struct Truncate {
    file: FileUse,
    size: Quantity,
}

impl Stateless for Truncate {
    fn describe(&self) -> String {
        format!("{} value={}", self.file.describe(), self.size)
    }

    fn effects(&self) -> Effects {
        self.file.effects()
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let slot = self.file.ensure_open(cx)?;
        let size = self.size.draw(&mut cx.rng);
        on_handle(cx, slot, "truncate failed", |engine, handle| engine.truncate(handle, size).map(|()| 0))
    }
}

#[derive(Debug)]
struct CopyRange {
    file: FileUse,
    source: usize,
    size: Quantity,
    offset_source: OffsetSource,
    workingset: WorkingSet,
}

impl Op for CopyRange {
    fn instantiate<'r>(&'r self, init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        let workingset = self.workingset.draw(init);
        Box::new(CopyStep {
            op: self,
            offsets: Offsets::new(self.offset_source.clone(), workingset, UnsizedEnd::Defined),
        })
    }

    fn describe(&self) -> String {
        format!("{} srcfd={} iosize={}{}", self.file.describe(), self.source, self.size, self.offset_source.describe())
    }

    fn effects(&self) -> Effects {
        let effects = self.file.effects();
        Effects { max_fd: effects.max_fd.max(self.source), ..effects }
    }
}

struct CopyStep<'r> {
    op: &'r CopyRange,
    offsets: Offsets,
}

impl Step for CopyStep<'_> {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let source = *cx.io.slots.get(self.op.source);
        let Some(from) = source.handle else {
            let what = || format!("slot {} (`srcfd`) is closed", self.op.source);
            return Err(cx.misuse(what, "open a file there first"));
        };
        let slot = self.op.file.ensure_open(cx)?;
        let (offset, len) = match self.op.size.draw(&mut cx.rng) {
            0 => (0, cx.file_size(self.op.source)?),
            len => (self.offsets.next(cx, self.op.source, len)?.unwrap_or(0), len),
        };
        let engine = cx.env.engine;
        cx.begin();
        let (mut done, mut calls) = (0, 0);
        while done < len {
            let Some(to) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
            match engine.copy_range(&from, offset + done, to, offset + done, len - done) {
                Ok(n) => {
                    calls += 1;
                    done += n;
                    // The source ends before the range.
                    if n == 0 {
                        break;
                    }
                }
                Err(errno) => {
                    cx.cell().add_calls(calls);
                    cx.moved(done);
                    return Err(cx.failed("copying a range failed", errno, source.file));
                }
            }
            if done < len && cx.expired() {
                break;
            }
        }
        if calls > 1 {
            cx.cell().add_calls(calls - 1);
        }
        cx.end(done)
    }
}
