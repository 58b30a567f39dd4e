//! Checks the alignment of direct I/O. Direct I/O that a file system would reject is an error before any file is
//! created.
//!
//! The required alignment is read from the kernel (`STATX_DIOALIGN`). Where the kernel does not report it, nothing is
//! refused: buffers are page aligned, and a wrong size is an error during the run.

use crate::diag::{Code, Diagnostic};
use crate::os::fd::{DirectAlignment, direct_alignment};
use crate::plan::{self, Plan};
use std::path::Path;

/// The alignment of buffers in bytes.
const PAGE: u64 = 4096;

/// Returns an error for each flowop of a plan whose buffers, sizes or offsets the file system would reject.
pub(crate) fn unaligned(plan: &Plan) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for io in plan::direct_io(plan) {
        let root = plan.filesets[io.set].root();
        let Some(required) = alignment(&root) else { continue };
        let info = &plan.flowops[io.flowop];
        if required.memory > PAGE {
            let what = format!("flowop `{}`: direct I/O in {} requires buffers aligned to", info.name, root.display());
            let help = "remove `directio`: buffers are aligned to 4096 bytes";
            let what = format!("{what} {} bytes", required.memory);
            found.push(Diagnostic::error(Code::Unaligned, info.span, what).help(help));
        }
        for (unit, from) in io.units.iter().filter(|(unit, _)| unit % required.offset != 0) {
            let what = format!(
                "flowop `{}`: direct I/O in {} requires multiples of {} bytes, but {from}",
                info.name,
                root.display(),
                required.offset
            );
            let help = if *unit == 1 {
                format!(
                    "give sizes that are multiples of {} (`round=` of a random variable), or remove `directio`",
                    required.offset
                )
            } else {
                format!("make it a multiple of {}, or remove `directio`", required.offset)
            };
            found.push(Diagnostic::error(Code::Unaligned, info.span, what).help(help));
        }
    }
    found
}

/// Returns the alignment that the file system of an existing or future file set requires.
fn alignment(root: &Path) -> Option<DirectAlignment> {
    let existing = root.ancestors().find(|dir| dir.is_dir());
    direct_alignment(existing.unwrap_or(Path::new(".")))
}
