//! Direct I/O is aligned as the file system wants it, or refused before anything is made.
//!
//! What file systems want is asked of the kernel (`STATX_DIOALIGN`). Where that does not say, nothing is refused: buffers begin at
//! pages, and whether a size will do shows in the run.

use crate::diag::{Code, Diagnostic};
use crate::os::fd::{DirectAlignment, direct_alignment};
use crate::plan::{self, Plan};
use std::path::Path;

/// Buffers begin at multiples of this.
const PAGE: u64 = 4096;

/// Direct I/O of a plan whose sizes or offsets the file system would refuse.
pub(crate) fn unaligned(plan: &Plan) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for io in plan::direct_io(plan) {
        let root = plan.filesets[io.set].root();
        let Some(wanted) = alignment(&root) else { continue };
        let info = &plan.flowops[io.flowop];
        if wanted.memory > PAGE {
            let what =
                format!("flowop `{}`: direct I/O in {} wants buffers at multiples of", info.name, root.display());
            let help = "leave `directio` out: buffers begin at multiples of 4096 bytes";
            let what = format!("{what} {} bytes", wanted.memory);
            found.push(Diagnostic::error(Code::Unaligned, info.span, what).help(help));
        }
        for (unit, from) in io.units.iter().filter(|(unit, _)| unit % wanted.offset != 0) {
            let what = format!(
                "flowop `{}`: direct I/O in {} goes by multiples of {} bytes, and {from}",
                info.name,
                root.display(),
                wanted.offset
            );
            let help = if *unit == 1 {
                format!(
                    "give sizes that are multiples of {} (`round=` of a random variable), or leave `directio` out",
                    wanted.offset
                )
            } else {
                format!("make it a multiple of {}, or leave `directio` out", wanted.offset)
            };
            found.push(Diagnostic::error(Code::Unaligned, info.span, what).help(help));
        }
    }
    found
}

/// What the file system wants that a file set is on, or is going to be.
fn alignment(root: &Path) -> Option<DirectAlignment> {
    let there = root.ancestors().find(|dir| dir.is_dir());
    direct_alignment(there.unwrap_or(Path::new(".")))
}
