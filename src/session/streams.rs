//! What the threads of a run did, operation by operation: its digest, and the trace file.

use super::live::Ready;
use super::publish::without_environment;
use super::{Front, Session};
use crate::disk::Fileset;
use crate::flowop::slots::FileRef;
use crate::flowop::stream::{Entry, Wanted};
use crate::os::limits;
use crate::plan::FlowopInfo;
use crate::random;
use crate::result::Digest;
use crate::runtime::{Running, ThreadStream};
use crate::util::{count, printable};
use std::io::Write;
use std::sync::Arc;

impl Session {
    /// What every thread is to remember, if anything.
    pub(super) fn stream_wanted(&self) -> Option<Wanted> {
        let (hashed, kept) = (self.settings.digest, self.settings.trace.as_ref().map(|(_, n)| *n));
        let kept = kept.map(|kept| kept.min(self.most_traced));
        (hashed.is_some() || kept.is_some()).then(|| Wanted { hashed: hashed.unwrap_or(0), kept: kept.unwrap_or(0) })
    }

    /// Before a run of so many threads: a trace takes at most a quarter of the memory that can be had.
    pub(super) fn bound_trace(&mut self, threads: u64, front: &mut dyn Front) {
        let Some((path, wanted)) = &self.settings.trace else { return };
        let (_, free) = limits::memory();
        // A list that grows is there twice for a moment.
        let entry = 2 * size_of::<Entry>() as u64;
        let most = if free == 0 { u64::MAX } else { (free / 4 / entry / threads.max(1)).max(1) };
        self.most_traced = usize::try_from(most).unwrap_or(usize::MAX);
        if *wanted > self.most_traced {
            let (wanted, most) = (count::grouped(*wanted as u64), count::grouped(most));
            front.note(&format!(
                "{} gets at most {most} operations of each thread: there is no memory for {wanted}",
                path.display()
            ));
        }
    }

    /// Takes the streams of threads that have ended: writes the trace, and returns the digest of all.
    pub(super) fn keep_streams(&mut self, ready: &Ready, running: &Running, front: &mut dyn Front) -> Option<Digest> {
        self.stream_wanted()?;
        let streams = running.take_streams();
        let missing = running.n_threads() - streams.len();
        if missing > 0 {
            front
                .note(&format!("{missing} threads have not come back: their operations are in no digest and no trace"));
        }
        let secrets = self.secrets();
        if let Some(out) = &mut self.trace {
            let number = self.traced + 1;
            let written = out.append(&mut |out| {
                if number > 1 {
                    writeln!(out, "# run {number}")?;
                }
                streams.iter().try_for_each(|s| trace(s, ready, &secrets, out))
            });
            self.traced += 1;
            if let Err(e) = written {
                self.trace_lost(&e, front);
            }
        }
        let operations = self.settings.digest?;
        let mut short_threads = missing as u64;
        let mut hash = 0;
        for s in &streams {
            let sum = s.stream.sum();
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
        Some(Digest { value, operations, short_threads })
    }
}

/// The operations of one thread, a line each, parted by tabs.
fn trace(thread: &ThreadStream, ready: &Ready, secrets: &[String], out: &mut dyn Write) -> std::io::Result<()> {
    let process = &ready.plan.processes[thread.process];
    let program = &process.threads[thread.thread];
    // Of names and paths nothing is shown that is the environment's, or that ends a line or a column.
    let shown = |text: &str| printable::line(&without_environment(text, secrets, false)).into_owned();
    for entry in thread.stream.entries() {
        let flowop = &ready.plan.flowops[program.first + entry.flowop];
        let file = entry.file.map_or("-".to_owned(), |file| shown(&path(&ready.sets, flowop, file)));
        let offset = entry.offset.map_or("-".to_owned(), |o| o.to_string());
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
    }
    Ok(())
}

/// The path of what a flowop worked on: for those on empty directories, a directory.
fn path(sets: &[Arc<Fileset>], flowop: &FlowopInfo, file: FileRef) -> String {
    let set = &sets[file.set];
    if !matches!(flowop.kind, "makedir" | "removedir") {
        return set.path_of(file.index).display().to_string();
    }
    let (above, name) = (set.tree.dir_of_leafdir(file.index), set.tree.leafdir_name(file.index));
    set.spec
        .root()
        .join(set.tree.dir_rel_path(above))
        .join(name.as_c().to_string_lossy().as_ref())
        .display()
        .to_string()
}
