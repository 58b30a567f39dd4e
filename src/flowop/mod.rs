//! One file for each family of flowops, and the table of them all.
//!
//! A family file holds an entry for each of its flowops ([`FlowopEntry`]: descriptor and constructor), and the operations
//! themselves. A new flowop is an entry in its family's file; a new family is one line in `FAMILIES` more.
//! Deliberately absent: threads, and how flowops follow one another. An operation meets its thread in
//! [`OpCx`].
//!
//! Nothing in `run` allocates, locks, formats or looks up a name; the first error may.

pub mod args;

/// The attributes that say which place of which file, and those that a flowop has besides.
macro_rules! placed {
    ($($own:literal),*) => {
        &["filesetname", "fd", "iosize", "random", "shuffle", "workingset", "opennext", "indexed", "uniform" $(, $own)*]
    };
}

mod aio;
mod attr;
mod buffered;
mod command;
mod cpu;
mod dir;
mod expected;
mod finish;
mod ipc;
mod limit;
mod mapped;
mod meta;
mod names;
mod open;
mod range;
mod read;
mod space;
mod sync;
mod transaction;
mod transfer;
mod whole;
mod write;

pub use args::{Args, SetInfo, TargetInfo, World};
pub use transaction::TRANSACTION;

use crate::diag::{Code, Diagnostic};
use crate::exec::{Aio, OpCx, Stop, UnitKind};
use crate::fileset::Want;
use crate::random::Quantity;
use crate::spec::{Flowop, SpecTable};
use crate::stats::recorder::ThreadStats;
use crate::sync::{Latch, Semaphore};
use std::sync::Arc;

/// One flowop: what it is, and how an operation is made of its attributes.
#[derive(Clone, Copy, Debug)]
pub struct FlowopEntry {
    /// What it is: all that checks, lints, completion and the manual know of it.
    pub spec: Flowop,
    /// Its constructor.
    pub build: Build,
}

/// Checked attributes to an operation.
pub type Build = fn(&Args<'_>) -> BuiltOp;

/// An operation, or why there is none.
pub type BuiltOp = Result<Arc<dyn Op>, Diagnostic>;

/// All families.
const FAMILIES: &[&[FlowopEntry]] = &[
    open::FLOWOPS,
    read::FLOWOPS,
    write::FLOWOPS,
    whole::FLOWOPS,
    buffered::FLOWOPS,
    mapped::FLOWOPS,
    aio::FLOWOPS,
    sync::FLOWOPS,
    meta::FLOWOPS,
    attr::FLOWOPS,
    names::FLOWOPS,
    space::FLOWOPS,
    range::FLOWOPS,
    dir::FLOWOPS,
    ipc::FLOWOPS,
    limit::FLOWOPS,
    finish::FLOWOPS,
    cpu::FLOWOPS,
    command::FLOWOPS,
    transaction::FLOWOPS,
];

/// All flowops, family by family.
pub fn entries() -> impl Iterator<Item = &'static FlowopEntry> {
    FAMILIES.iter().copied().flatten()
}

/// The descriptors of all flowops.
pub fn spec_table() -> SpecTable {
    SpecTable { flowops: entries().map(|entry| &entry.spec).collect() }
}

/// The operation that a flowop with these attributes is. Its descriptor is one of [`spec_table`].
pub fn build(args: &Args<'_>) -> BuiltOp {
    match entries().find(|entry| entry.spec.name == args.spec.name) {
        Some(entry) => (entry.build)(args),
        None => {
            let message = format!("flowop type `{}` has no constructor", args.spec.name);
            Err(Diagnostic::error(Code::Internal, args.span, message))
        }
    }
}

/// An operation as the plan holds it: parameters, no state.
pub trait Op: Send + Sync + std::fmt::Debug {
    /// The operation of one thread: the state that it needs there, and on this for all that threads have in common.
    fn instantiate<'r>(&'r self, at: &At<'_>) -> Box<dyn Step + 'r>;
    /// What it does, stably: what `wmlrun plan` prints after its name.
    fn describe(&self) -> String;
    /// What it needs and does to file sets.
    fn effects(&self) -> Effects {
        Effects::default()
    }
    /// Whether it never takes long but where it waits for asynchronous operations: a thread of such operations only is there to
    /// see what completes.
    fn non_blocking(&self) -> bool {
        false
    }
    /// Whether it leaves every file and directory as it is: there, of its kind, with its size.
    fn preserves(&self) -> bool {
        false
    }
}

/// An operation in a thread.
pub trait Step: Send {
    /// Does it once.
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop>;
}

/// An operation that keeps nothing from one time to the next: all threads do the one of the plan, so that its parameters are in
/// a processor's cache once, and not once a thread.
pub trait Stateless: Send + Sync + std::fmt::Debug {
    /// See [`Op::describe`].
    fn describe(&self) -> String;
    /// See [`Op::effects`].
    fn effects(&self) -> Effects {
        Effects::default()
    }
    /// See [`Op::non_blocking`].
    fn non_blocking(&self) -> bool {
        false
    }
    /// See [`Op::preserves`].
    fn preserves(&self) -> bool {
        false
    }
    /// Does it once.
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop>;
}

impl<T: Stateless> Op for T {
    fn instantiate<'r>(&'r self, _at: &At<'_>) -> Box<dyn Step + 'r> {
        Box::new(self)
    }

    fn describe(&self) -> String {
        Stateless::describe(self)
    }

    fn effects(&self) -> Effects {
        Stateless::effects(self)
    }

    fn non_blocking(&self) -> bool {
        Stateless::non_blocking(self)
    }

    fn preserves(&self) -> bool {
        Stateless::preserves(self)
    }
}

impl<T: Stateless> Step for &T {
    #[inline]
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        Stateless::run(*self, cx)
    }
}

/// What a thread's threads-to-be must know when a step is made for it.
#[derive(Debug)]
pub struct At<'a> {
    /// Which of the flowop's runtime instances this is: instance of the process × threads + instance of the thread.
    pub ordinal: usize,
    /// The semaphores of each `semblock`, by the flowop's number.
    pub semaphores: &'a [Vec<Arc<SemPair>>],
    /// The latches of each `block`, by the flowop's number.
    pub latches: &'a [Vec<Arc<Latch>>],
    /// The counters of the process instance's threads, for limits on totals.
    pub peers: &'a [Peer],
    /// The seed of this thread's data.
    pub seed: u64,
}

/// The counters of one thread of the same process instance.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its counters.
    pub stats: Arc<ThreadStats>,
    /// Which of them are of reads and writes.
    pub io: Arc<[usize]>,
}

/// What one instance of `semblock` waits at.
#[derive(Debug)]
pub struct SemPair {
    /// Posts that have come.
    pub low: Semaphore,
    /// Posts that may still come before blocking ones wait.
    pub high: Semaphore,
}

/// What a step needs from its thread, and what it does to file sets.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// States of files that it brings about: `Existing` for a createfile, `Absent` for a deletefile.
    pub makes: Vec<(usize, Want, UnitKind)>,
    /// The state that it brings about for whatever file is in its slot, when it names no file set.
    pub makes_in_slot: Option<(Want, UnitKind)>,
    /// File sets that it works on.
    pub sets: Vec<usize>,
    /// File sets whose files it moves about without there being more or fewer of them.
    pub moves: Vec<usize>,
    /// File sets whose files it gives a second name.
    pub links: Vec<usize>,
    /// The largest buffer that it may need, in bytes, where that is known.
    pub buffer: u64,
    /// The largest buffer that it is sure to need, in bytes; the one above may be a guess at a random size.
    pub exact_buffer: u64,
    /// The highest slot that it names.
    pub max_fd: usize,
    /// It takes slot after slot.
    pub opennext: bool,
    /// It opens files with `O_DIRECT`: buffers are aligned.
    pub direct: bool,
    /// What the sizes and offsets of its I/O are multiples of: direct I/O must be aligned.
    pub units: Vec<Unit>,
    /// What it has out, if it does asynchronous I/O.
    pub aio: Option<Aio>,
    /// It looks at the totals of the process.
    pub totals: bool,
    /// It waits at semaphores of its own: the number of posts that may run ahead.
    pub highwater: Option<u32>,
    /// It waits at a latch of its own.
    pub latch: bool,
}

/// What a size or an offset of an I/O is a multiple of.
#[derive(Clone, Debug)]
pub enum Unit {
    /// The value of this attribute.
    Attribute(&'static str, Quantity),
    /// The size of the file.
    FileSize,
    /// Nothing: it is any number of bytes.
    Byte,
}
