//! `copyrange`: copies inside the kernel.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, StepInit, entry, lost_file, stateful};
use super::transfer::{FileUse, OffsetSource, Offsets, UnsizedEnd};
use super::working_set::WorkingSet;
use wml_language::diag::{Code, Diagnostic};
use wml_language::spec::{IoDirection, Role};

pub(super) const FLOWOPS: &[FlowopEntry] = &[entry("copyrange", copy_range)
    .direction(IoDirection::Write)
    .uses(&[
        "filesetname",
        "fd",
        "srcfd",
        "iosize",
        "random",
        "at",
        "shuffle",
        "workingset",
        "opennext",
        "align",
        "stride",
        "offset",
        "backward",
        "reoffset",
    ])
    .roles(&[Role::UsesSlot, Role::NeedsFile])
    .doc(
        "copies `iosize` bytes, default all, of the file in slot `srcfd` to the same offset of the file in slot `fd`, \
         inside the kernel (`copy_file_range`)",
    )
    .example(
        "flowop openfile name=op,filesetname=data,fd=1\nflowop copyrange name=cp,srcfd=1,filesetname=big,fd=2\n\
         flowop closefile name=c1,fd=1\nflowop closefile name=c2,fd=2",
    )];

fn copy_range(args: &Args<'_>) -> BuiltOp {
    let (file, source) = (FileUse::new(args, true)?, args.slot_number("srcfd")?);
    if source == 0 || source == file.slot.fd {
        let message = format!("flowop `{}` has no `srcfd=` that differs from its `fd=`", args.name);
        return Err(Diagnostic::error(Code::MissingAttribute, args.span_of("srcfd"), message)
            .help("give the slot of the source with `srcfd=`, and another slot with `fd=`"));
    }
    let size = args.quantity_or("iosize", 0)?;
    let (offset_source, workingset) = (OffsetSource::with_offset(args)?, WorkingSet::new(args)?);
    let described = format!("{} srcfd={source} iosize={size}{}", file.describe(), offset_source.describe());
    let effects = file.effects();
    let effects = Effects { max_fd: effects.max_fd.max(source), ..effects };
    let make =
        move |init: &StepInit<'_>| Offsets::new(offset_source.clone(), workingset.draw(init), UnsizedEnd::Defined);
    Ok(stateful(described, effects, make, move |offsets, cx| {
        let from = *cx.io.slots.get(source);
        let Some(handle) = from.handle else {
            let what = || format!("slot {source} (`srcfd`) is closed");
            return Err(cx.misuse(what, "open a file there first"));
        };
        let slot = file.ensure_open(cx)?;
        let (offset, len) = match size.draw(&mut cx.rng) {
            0 => (0, cx.file_size(source)?),
            len => (offsets.next(cx, source, len)?.unwrap_or(0), len),
        };
        let engine = cx.env.engine;
        cx.begin();
        let (mut done, mut calls) = (0, 0);
        while done < len {
            let Some(to) = cx.handle(slot) else { return Err(lost_file(cx, slot)) };
            match engine.copy_range(&handle, offset + done, to, offset + done, len - done) {
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
                    return Err(cx.failed("copying a range failed", errno, from.file));
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
    }))
}
