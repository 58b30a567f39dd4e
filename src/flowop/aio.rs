//! `aiowrite`, `aioread`, `aiowait`: I/O that runs on while the thread goes on.
//!
//! Each process has a few workers that share its descriptors. An operation's latency runs from its submission to its
//! completion, and it is counted when its thread takes notice, by the time at which it completed. Each one that is out has a
//! buffer of its own.

use super::args::Args;
use super::slots::FileRef;
use super::transfer::{FileUse, Offsets, Place, exactly, largest, workingset};
use super::{At, Effects, Family, Op, OpCx, Outcome, Step};
use crate::diag::Diagnostic;
use crate::engine::{Engine, Handle};
use crate::fileset::content::{self, Stamper};
use crate::random::{self, Quantity};
use crate::spec::{Class, Flowop, Origin, Way};
use crate::sys::{Clock, Errno};
use crossbeam::channel::{Receiver, Sender, unbounded};
use std::sync::Arc;

const IO: &[&str] =
    &["filesetname", "fd", "iosize", "random", "workingset", "opennext", "indexed", "directio", "dsync", "iodepth"];

pub(super) const FAMILY: Family = Family {
    specs: &[
        Flowop {
            name: "aiowrite",
            class: Class::Aio,
            way: Way::Write,
            uses: IO,
            origin: Origin::Both,
            doc: "starts a write; its time runs to its completion",
            example: "flowop aiowrite name=wr,filename=data,iosize=4k,random\nflowop aiowait name=wait",
        },
        Flowop {
            name: "aioread",
            class: Class::Aio,
            way: Way::Read,
            uses: IO,
            origin: Origin::Ours,
            doc: "starts a read; its time runs to its completion",
            example: "flowop aioread name=rd,filename=data,iosize=4k,random\nflowop aiowait name=wait",
        },
        Flowop {
            name: "aiowait",
            class: Class::Aio,
            way: Way::None,
            uses: &[],
            origin: Origin::Both,
            doc: "waits for half of the asynchronous operations that are out",
            example: "flowop aiowrite name=wr,filename=data,iosize=4k,random\nflowop aiowait name=wait",
        },
    ],
    lower: lower_aio,
};

fn lower_aio(args: &Args<'_>) -> Result<Arc<dyn Op>, Diagnostic> {
    if args.spec.name == "aiowait" {
        return Ok(Arc::new(Wait));
    }
    Ok(Arc::new(Submit {
        file: FileUse::new(args, true)?,
        iosize: args.need_iosize()?,
        place: Place::new(args)?,
        workingset: workingset(args)?,
        write: args.spec.name == "aiowrite",
        depth: args.int("iodepth", 0)?,
    }))
}

/// An operation that is out.
#[derive(Debug)]
struct Job {
    file: Handle,
    /// The same, for errors.
    of: Option<FileRef>,
    buf: Vec<u8>,
    offset: u64,
    write: bool,
    /// The counters of the flowop that submitted it.
    cell: usize,
    submitted: u64,
    /// The intended start of its round and how late that began, in an open loop; else 0.
    intended: (u64, u64),
    done: Sender<Done>,
}

/// An operation that has completed.
#[derive(Debug)]
pub(super) struct Done {
    buf: Vec<u8>,
    cell: usize,
    /// The file, for errors.
    of: Option<FileRef>,
    write: bool,
    submitted: u64,
    intended: (u64, u64),
    completed: u64,
    result: Result<usize, Errno>,
}

/// The workers of one process instance.
#[derive(Debug)]
pub struct Pool {
    jobs: Sender<Job>,
}

/// Workers of each process: as many operations of it can be in the kernel at once.
const WORKERS: usize = 8;

impl Pool {
    /// Starts the workers, in the descriptor table of the calling thread. They end when the pool and all that is out is gone.
    pub fn start(engine: &'static dyn Engine) -> std::io::Result<Self> {
        let (jobs, queue) = unbounded::<Job>();
        for _ in 0..WORKERS {
            let queue = queue.clone();
            std::thread::Builder::new()
                .name("aio".to_owned())
                .stack_size(64 << 10)
                .spawn(move || work(engine, &queue))?;
        }
        Ok(Self { jobs })
    }
}

fn work(engine: &'static dyn Engine, queue: &Receiver<Job>) {
    let clock = Clock::get();
    while let Ok(mut job) = queue.recv() {
        let result = if job.write {
            engine.pwrite(&mut job.file, &job.buf, job.offset)
        } else {
            engine.pread(&mut job.file, &mut job.buf, job.offset)
        };
        let Job { buf, cell, of, write, submitted, intended, done: sender, .. } = job;
        let done = Done { buf, cell, of, write, submitted, intended, completed: clock.raw(), result };
        // A thread that has gone needs no notice.
        let _ = sender.send(done);
    }
}

/// What a thread has out.
#[derive(Debug)]
pub struct Outstanding {
    pool: Arc<Pool>,
    sender: Sender<Done>,
    receiver: Receiver<Done>,
    out: u64,
    spare: Vec<Vec<u8>>,
    stamper: Stamper,
    seed: u64,
}

impl Outstanding {
    /// Nothing out yet.
    pub fn new(pool: Arc<Pool>, stamper: Stamper, seed: u64) -> Self {
        let (sender, receiver) = unbounded();
        Self { pool, sender, receiver, out: 0, spare: Vec::new(), stamper, seed }
    }

    /// Takes notice of one completion, waiting for it or not. False if there was none. An error is the failure of the flowop
    /// that submitted the operation, whoever takes notice.
    fn reap(&mut self, cx: &mut OpCx<'_>, wait: bool) -> Result<bool, Outcome> {
        if self.out == 0 {
            return Ok(false);
        }
        let done = if wait { self.receiver.recv().ok() } else { self.receiver.try_recv().ok() };
        let Some(done) = done else { return Ok(false) };
        self.out -= 1;
        let cell = cx.stats.cell(done.cell);
        let result = match done.result {
            Ok(n) if done.completed <= cx.gate.deadline() => {
                cell.record(cx.clock.ns(done.submitted, done.completed), n as u64);
                let (intended, lateness) = done.intended;
                if intended > 0 {
                    cell.record_response(cx.clock.ns(intended, done.completed), lateness);
                }
                Ok(true)
            }
            Ok(n) => {
                cell.record_late(n as u64);
                Ok(true)
            }
            Err(errno) => {
                let what = if done.write { "asynchronous write failed" } else { "asynchronous read failed" };
                Err(cx.failed_of(done.cell, what, errno, done.of))
            }
        };
        self.spare.push(done.buf);
        result
    }

    /// Waits for all that is out. The first failure, if there was one; each is counted.
    fn drain(&mut self, cx: &mut OpCx<'_>) -> Result<(), Outcome> {
        let mut first = Ok(());
        while self.out > 0 {
            if let Err(outcome) = self.reap(cx, true) {
                first = first.and(Err(outcome));
            }
        }
        first
    }
}

/// Waits for all that a thread has out: before it closes a file that an operation may still be on its way to, and at its end.
pub(super) fn drain(cx: &mut OpCx<'_>) -> Result<(), Outcome> {
    let Some(mut aio) = cx.aio.take() else { return Ok(()) };
    let drained = aio.drain(cx);
    cx.aio = Some(aio);
    drained
}

/// Without `iodepth=`, so many operations of a thread may be out, and so many bytes of them: what is more waits in memory that
/// the run was not asked for, and its latency would be the queue's.
const MOST: u64 = 4096;
const MOST_BYTES: u64 = 256 << 20;

#[derive(Clone, Debug)]
struct Submit {
    file: FileUse,
    iosize: Quantity,
    place: Place,
    workingset: Quantity,
    write: bool,
    depth: u64,
}

impl Op for Submit {
    fn instantiate(&self, at: &At<'_>) -> Box<dyn Step> {
        let workingset = self.workingset.draw(&mut random::stream(at.seed, &[at.ordinal as u64]));
        Box::new(SubmitStep { op: self.clone(), offsets: Offsets::new(self.place.clone(), workingset) })
    }

    fn describe(&self) -> String {
        let depth = if self.depth > 0 { format!(" iodepth={}", self.depth) } else { String::new() };
        format!("{} iosize={}{}{depth}", self.file.describe(), self.iosize, self.place.describe())
    }

    fn effects(&self) -> Effects {
        Effects { aio: true, buffer: largest(&self.iosize), exact_buffer: exactly(&self.iosize), ..self.file.effects() }
    }
}

struct SubmitStep {
    op: Submit,
    offsets: Offsets,
}

impl Step for SubmitStep {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Outcome {
        let slot = match self.op.file.ensure(cx) {
            Ok(slot) => slot,
            Err(outcome) => return outcome,
        };
        let len = self.op.iosize.draw(&mut cx.rng);
        let offset = match self.offsets.next(cx, slot, len) {
            Ok(offset) => offset,
            Err(outcome) => return outcome,
        };
        let Some(mut aio) = cx.aio.take() else { return Outcome::Over };
        let outcome = self.submit(cx, &mut aio, slot, len, offset);
        cx.aio = Some(aio);
        outcome
    }
}

impl SubmitStep {
    fn submit(&self, cx: &mut OpCx<'_>, aio: &mut Outstanding, slot: usize, len: u64, offset: Option<u64>) -> Outcome {
        cx.digress();
        // What has completed meanwhile makes room; the next one waits until there is some.
        let depth = if self.op.depth > 0 { self.op.depth } else { (MOST_BYTES / len.max(1)).clamp(1, MOST) };
        loop {
            let full = aio.out >= depth;
            match aio.reap(cx, full) {
                Ok(true) => {}
                Ok(false) => break,
                Err(outcome) => return outcome,
            }
        }
        let mut buf = aio.spare.pop().unwrap_or_default();
        if buf.len() != len as usize {
            buf.resize(len as usize, 0);
            content::fill(&mut buf, aio.seed, 0.0);
        }
        if self.op.write {
            aio.stamper.stamp(&mut buf);
        }
        let of = cx.slots.get(slot).file;
        let Some(handle) = cx.handle(slot) else { return Outcome::Over };
        let offset = offset.unwrap_or(handle.cursor);
        handle.cursor = offset + len;
        let file = *handle;
        cx.last_offset = offset;
        if cx.stream.is_some() {
            cx.note(len);
        }
        let (cell, submitted, intended) = (cx.current, cx.clock.raw(), (cx.intended, cx.lateness));
        let job =
            Job { file, of, buf, offset, write: self.op.write, cell, submitted, intended, done: aio.sender.clone() };
        aio.out += 1;
        if aio.pool.jobs.send(job).is_err() {
            return cx.misuse("the asynchronous workers have gone", "this is a bug in wmlrun");
        }
        cx.skip()
    }
}

#[derive(Clone, Debug)]
struct Wait;

impl Op for Wait {
    fn instantiate(&self, _at: &At<'_>) -> Box<dyn Step> {
        Box::new(self.clone())
    }

    fn describe(&self) -> String {
        String::new()
    }

    fn effects(&self) -> Effects {
        Effects { aio: true, ..Effects::default() }
    }
}

impl Step for Wait {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Outcome {
        cx.begin();
        let Some(mut aio) = cx.aio.take() else { return Outcome::Over };
        let wanted = aio.out.div_ceil(2);
        let reaped = (0..wanted).try_for_each(|_| aio.reap(cx, true).map(drop));
        cx.aio = Some(aio);
        match reaped {
            Ok(()) => cx.end(0),
            Err(outcome) => outcome,
        }
    }
}
