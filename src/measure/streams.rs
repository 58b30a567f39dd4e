//! The operations of a run's threads one by one: the digest and the lines of the trace.

use super::Front;
use crate::disk::Fileset;
use crate::plan::{FlowopInfo, Plan};
use crate::random;
use crate::result::Digest;
use crate::runtime::{Running, ThreadStream};
use crate::util::count::or_dash;
use crate::util::printable;
use crate::util::secrets::without_environment;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Returns the streams of threads that have ended.
pub(crate) fn take(running: &Running, front: &mut dyn Front) -> Vec<ThreadStream> {
    // Counted first: a thread that ends meanwhile is missing in the streams. One that ended before the gate opened has
    // none.
    let missing = running.n_remaining();
    let streams = running.take_streams();
    if missing > 0 {
        front.note(&format!(
            "{missing} threads are still in a system call: digest and trace do not include their operations"
        ));
    }
    streams
}

/// Returns the digest of all streams if it was requested.
pub(crate) fn digest(operations: u64, streams: &[ThreadStream], running: &Running, front: &mut dyn Front) -> Digest {
    let missing = running.n_threads() - streams.len();
    let mut short_threads = missing as u64;
    let mut hash = 0;
    for s in streams {
        let sum = s.stream.digest();
        short_threads += u64::from(sum.hashed < operations);
        for part in [s.process as u64, s.instance as u64, s.thread as u64, s.number as u64, sum.hashed, sum.hash] {
            hash = random::mix(hash, part);
        }
    }
    let value = format!("{hash:016x}");
    front.note(&match short_threads {
        0 => format!("digest of the first {operations} operations of each thread: {value}"),
        n => format!("digest of the first {operations} operations of each thread, of which {n} did fewer: {value}"),
    });
    Digest { value, operations, short_threads }
}

/// Writes the operations of one thread, one per line, with tabs between the columns.
pub(crate) fn write_thread(
    thread: &ThreadStream,
    plan: &Plan,
    sets: &[Arc<Fileset>],
    secrets: &[String],
    steps: &AtomicU64,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let process = &plan.processes[thread.process];
    let program = &process.threads[thread.thread];
    // Names and paths are written without values of environment variables, and without characters that end a line or a
    // column.
    let shown = |text: &str| printable::line(&without_environment(text, secrets, false)).into_owned();
    for entry in thread.stream.entries() {
        let flowop = &plan.flowops[program.first + entry.flowop];
        let file = or_dash(entry.file, |file| {
            let set = plan.set_of(file.set, thread.instance);
            shown(&path(&sets[set], flowop, file.index))
        });
        let offset = or_dash(entry.offset, |o| o.to_string());
        writeln!(
            out,
            "{}\t{}\t{}\t{}\t{}\t{file}\t{offset}\t{}",
            shown(&process.name),
            thread.instance + 1,
            shown(&program.name),
            thread.number + 1,
            shown(&flowop.name),
            entry.size
        )?;
        steps.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Returns the path that a flowop worked on. For flowops on empty directories this is a directory.
fn path(set: &Fileset, flowop: &FlowopInfo, index: u64) -> String {
    if !matches!(flowop.kind, "makedir" | "removedir") {
        return set.path_of(index).display().to_string();
    }
    let (parent, name) = (set.tree.dir_of_leafdir(index), set.tree.leafdir_name(index));
    set.spec
        .root()
        .join(set.tree.dir_rel_path(parent))
        .join(name.as_c().to_string_lossy().as_ref())
        .display()
        .to_string()
}
