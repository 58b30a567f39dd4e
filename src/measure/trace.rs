//! The file of `--trace`: the operations of the threads of each run. Their lines are made in `streams`.

use super::Front;
use super::streams::write_thread;
use super::time_limit::{FINAL_TIMEOUT, NO_ANSWER, answer_timeout, with_step_timeout};
use crate::diag::Failure;
use crate::disk::Fileset;
use crate::exec::trace::Entry;
use crate::os::held_dir::HeldDir;
use crate::os::limits;
use crate::output::{Appender, FileIdentity, Target};
use crate::plan::Plan;
use crate::runtime::ThreadStream;
use crate::util::count;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

/// The trace of a session.
pub(super) struct TraceFile {
    path: PathBuf,
    /// The number of operations per thread that are wanted, and the largest number that memory suffices for.
    wanted: usize,
    most: usize,
    /// The file while it is open.
    file: Option<Appender>,
    /// The number of runs in it.
    runs: usize,
}

impl TraceFile {
    /// A trace whose file is not open yet.
    pub(super) fn new((path, wanted): (PathBuf, usize)) -> Self {
        Self { path, wanted, most: usize::MAX, file: None, runs: 0 }
    }

    /// Opens the file. `read` are files that the program reads; only with `force` another program's file is replaced.
    pub(super) fn open(&mut self, read: &[FileIdentity], force: bool) -> io::Result<()> {
        let target = Target::open(&self.path, read)?.recognizing(is_trace).unless_foreign(force)?;
        self.file = Some(Appender::new(target));
        Ok(())
    }

    /// Closes the file without writing to it.
    pub(super) fn close(&mut self) {
        self.file = None;
    }

    pub(super) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// The directory of the open file.
    pub(super) fn directory(&self) -> Option<&HeldDir> {
        self.file.as_ref()?.directory()
    }

    /// The identity of the open file.
    pub(super) fn id(&self) -> Option<FileIdentity> {
        self.file.as_ref()?.id()
    }

    /// The number of operations that each thread keeps.
    pub(super) fn kept(&self) -> usize {
        self.wanted.min(self.most)
    }

    /// Limits the trace before a run of `threads` threads: it uses at most a quarter of the available memory.
    pub(super) fn limit(&mut self, threads: u64, front: &mut dyn Front) {
        let (_, free) = limits::memory();
        // A growing vector exists twice for a moment.
        let entry = 2 * size_of::<Entry>() as u64;
        let most = if free == 0 { u64::MAX } else { (free / 4 / entry / threads.max(1)).max(1) };
        self.most = usize::try_from(most).unwrap_or(usize::MAX);
        if self.wanted > self.most {
            let (wanted, most) = (count::grouped(self.wanted as u64), count::grouped(most));
            front.note(&format!(
                "{} gets at most {most} operations of each thread: memory does not suffice for {wanted}",
                self.path.display()
            ));
        }
    }

    /// Writes the operations of a run. `held`: threads are still in a call.
    pub(super) fn write(
        &mut self,
        (plan, sets): (&Arc<Plan>, &[Arc<Fileset>]),
        streams: Vec<ThreadStream>,
        secrets: &[String],
        held: bool,
        front: &mut dyn Front,
    ) -> Result<(), Failure> {
        let Some(mut out) = self.file.take() else { return Ok(()) };
        self.runs += 1;
        let (number, secrets) = (self.runs, secrets.to_vec());
        let (plan, sets) = (Arc::clone(plan), sets.to_vec());
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
        let why = match written {
            Some((out, written)) => {
                self.file = Some(out);
                match written {
                    Ok(()) => return Ok(()),
                    Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                        front.note("the trace was not read to its end");
                        return Ok(());
                    }
                    Err(e) => e.to_string(),
                }
            }
            None if is_file => NO_ANSWER.to_owned(),
            None => "no process reads from it".to_owned(),
        };
        let text = format!("can't write the trace {}: {why}", self.path.display());
        Err(Failure::failed(text, "free some space, or give `--trace` another path"))
    }
}

/// True if a file's first bytes are those of a trace: eight columns, three of them numbers.
fn is_trace(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let columns: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
    let is_number = |column: &[u8]| !column.is_empty() && column.iter().all(u8::is_ascii_digit);
    columns.len() == 8 && [1, 3, 7].into_iter().all(|n| is_number(columns[n]))
}
