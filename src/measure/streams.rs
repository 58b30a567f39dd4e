//! The operations of a run's threads one by one: the digest and the trace file.

use super::ready::Ready;
use super::results::{FINAL_TIMEOUT, NO_ANSWER, answer_timeout};
use super::time_limit::with_step_timeout;
use super::{Front, Runner};
use crate::disk::Fileset;
use crate::exec::trace::{Entry, WantedStream};
use crate::os::limits;
use crate::plan::{FlowopInfo, Plan};
use crate::random;
use crate::result::Digest;
use crate::runtime::{Running, ThreadStream};
use crate::util::secrets::without_environment;
use crate::util::{count, printable};
use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

impl Runner {
    /// Returns what each thread is to record. `None` without digest and trace.
    pub(crate) fn requested_stream(&self) -> Option<WantedStream> {
        let (hashed, kept) = (self.settings.digest, self.settings.trace.as_ref().map(|(_, n)| *n));
        let kept = kept.map(|kept| kept.min(self.outputs.max_traced));
        (hashed.is_some() || kept.is_some())
            .then(|| WantedStream { hashed: hashed.unwrap_or(0), kept: kept.unwrap_or(0) })
    }

    /// Limits the trace before a run of `threads` threads: it uses at most a quarter of the available memory.
    pub(crate) fn limit_trace(&mut self, threads: u64, front: &mut dyn Front) {
        let Some((path, wanted)) = &self.settings.trace else { return };
        let (_, free) = limits::memory();
        // A growing vector exists twice for a moment.
        let entry = 2 * size_of::<Entry>() as u64;
        let most = if free == 0 { u64::MAX } else { (free / 4 / entry / threads.max(1)).max(1) };
        self.outputs.max_traced = usize::try_from(most).unwrap_or(usize::MAX);
        if *wanted > self.outputs.max_traced {
            let (wanted, most) = (count::grouped(*wanted as u64), count::grouped(most));
            front.note(&format!(
                "{} gets at most {most} operations of each thread: memory does not suffice for {wanted}",
                path.display()
            ));
        }
    }

    /// Returns the streams of threads that have ended.
    pub(crate) fn take_streams(&self, running: &Running, front: &mut dyn Front) -> Vec<ThreadStream> {
        if self.requested_stream().is_none() {
            return Vec::new();
        }
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

    /// Writes the trace. Called after the report because its file system may not answer. `held`: threads are still in a
    /// call.
    pub(crate) fn write_trace(
        &mut self,
        ready: &Ready,
        streams: Vec<ThreadStream>,
        secrets: &[String],
        held: bool,
        front: &mut dyn Front,
    ) {
        let Some(mut out) = self.outputs.trace.take() else { return };
        self.outputs.traced += 1;
        let (number, secrets) = (self.outputs.traced, secrets.to_vec());
        let (plan, sets) = (Arc::clone(&ready.plan), ready.sets.clone());
        let is_file = out.is_file();
        let written = with_step_timeout(if is_file { answer_timeout(held) } else { FINAL_TIMEOUT }, move |steps| {
            let written = out.append(&mut |out| {
                if number > 1 {
                    writeln!(out, "# run {number}")?;
                }
                streams.iter().try_for_each(|thread| write_thread(thread, &plan, &sets, &secrets, steps, out))
            });
            (out, written)
        });
        match written {
            Some((out, written)) => {
                self.outputs.trace = Some(out);
                if let Err(e) = written {
                    self.report_trace_failure(&e.to_string(), e.kind(), front);
                }
            }
            None if is_file => self.report_trace_failure(NO_ANSWER, ErrorKind::TimedOut, front),
            None => self.report_trace_failure("no process reads from it", ErrorKind::TimedOut, front),
        }
    }

    /// Returns the digest of all streams if it was requested.
    pub(crate) fn digest(&self, streams: &[ThreadStream], running: &Running, front: &mut dyn Front) -> Option<Digest> {
        let missing = running.n_threads() - streams.len();
        let operations = self.settings.digest?;
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
        Some(Digest { value, operations, short_threads })
    }
}

/// Writes the operations of one thread, one per line, with tabs between the columns.
fn write_thread(
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
        let file = entry.file.map_or("-".to_owned(), |file| {
            let set = plan.set_of(file.set, thread.instance);
            shown(&path(&sets[set], flowop, file.index))
        });
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
