//! The flowops: one file for each family, and the table of all families.
//!
//! A family file has an entry for each of its flowops ([`FlowopEntry`]: descriptor and constructor) and implements the
//! operations. To add a flowop, add an entry to its family's file; to add a family, also add a line to `FAMILIES`.
//!
//! A flowop has two stages: [`Op`] holds its parameters and is part of the plan, [`Step`] holds its state in one
//! thread. A step accesses its thread through [`OpCx`].
//!
//! Deliberately absent: threads, and the order in which flowops run.
//!
//! `run` is on the path of every operation: it allocates no memory, takes no lock, formats no text and looks up no
//! name. Only the handling of a thread's first error does.

pub mod args;

/// The attributes that select a file and an offset in it, followed by those that only this flowop has.
macro_rules! placed {
    ($($own:literal),*) => {
        &["filesetname", "fd", "iosize", "random", "shuffle", "workingset", "opennext", "indexed", "uniform", "recent" $(, $own)*]
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
mod measure;
mod meta;
mod moves;
mod names;
mod open;
mod pick_rule;
mod range;
mod read;
mod space;
mod sync;
mod transaction;
mod transfer;
mod whole;
mod working_set;
mod write;

pub use args::{Args, Resolver, SetInfo, TargetInfo};
pub use measure::{MEASURE, measure_start};
pub use transaction::TRANSACTION;

use crate::diag::{Code, Diagnostic};
use crate::exec::{Aio, BUG, OpCx, Stop, UnitKind};
use crate::fileset::Want;
use crate::model::commands;
use crate::random::Quantity;
use crate::spec::{Class, Flowop, IoDirection, Origin, SpecTable};
use crate::stats::recorder::ThreadStats;
use crate::sync::{Latch, Semaphore};
use std::sync::Arc;

/// One flowop: its descriptor and its constructor.
#[derive(Clone, Copy, Debug)]
pub struct FlowopEntry {
    /// Descriptor, for checks, lints, completion and the manual.
    pub spec: Flowop,
    /// Constructor of its operation.
    pub build: Build,
}

/// The common part of the descriptors of flowops that Filebench does not have. It is for flowops that act on a file and
/// move no data through the program.
const FILE_CALL: Flowop = Flowop {
    name: "",
    class: Class::Io,
    direction: IoDirection::None,
    uses: &[],
    roles: &[],
    origin: Origin::Wmlrun,
    doc: "",
    example: "",
};

/// A function that makes an operation from checked attributes.
pub type Build = fn(&Args<'_>) -> BuiltOp;

/// An operation, or the error in its attributes.
pub type BuiltOp = Result<Arc<dyn Op>, Diagnostic>;

/// All families, in the order of the manual.
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

/// Returns the entries of all flowops, family by family.
pub fn entries() -> impl Iterator<Item = &'static FlowopEntry> {
    FAMILIES.iter().copied().flatten()
}

/// Returns the descriptors of all flowops and commands.
pub fn spec_table() -> SpecTable {
    SpecTable { flowops: entries().map(|entry| &entry.spec).collect(), commands: commands::specs().collect() }
}

/// Makes the operation of a flowop with these attributes. Returns an error if an attribute is missing or out of range.
/// `args.spec` must be a descriptor of [`spec_table`], or [`MEASURE`].
pub fn build(args: &Args<'_>) -> BuiltOp {
    match entries().chain([&measure::ENTRY]).find(|entry| entry.spec.name == args.spec.name) {
        Some(entry) => (entry.build)(args),
        None => {
            let message = format!("flowop type `{}` has no constructor", args.spec.name);
            Err(Diagnostic::error(Code::Internal, args.span, message))
        }
    }
}

/// Returns the failure of an operation whose slot is closed although it has a file open there. That never happens, and
/// if it did, the thread must not seem to have ended with the run.
#[cold]
fn lost_file(cx: &mut OpCx<'_>, slot: usize) -> Stop {
    cx.misuse(|| format!("slot {slot} has lost its open file"), BUG)
}

/// Returns the failure of an asynchronous operation in a thread that is not prepared for it. As [`lost_file`], it never
/// happens.
#[cold]
fn lost_aio(cx: &mut OpCx<'_>) -> Stop {
    cx.misuse(|| "the thread has lost its asynchronous I/O".to_owned(), BUG)
}

/// An operation of the plan: parameters without state.
pub trait Op: Send + Sync + std::fmt::Debug {
    /// Makes the step of one thread: the state of that thread, with a reference to the parameters shared by all
    /// threads.
    fn instantiate<'r>(&'r self, init: &StepInit<'_>) -> Box<dyn Step + 'r>;
    /// Returns its parameters as `wmlrun plan` prints them after its name. The format is stable.
    fn describe(&self) -> String;
    /// Returns its requirements on the thread and its effects on file sets.
    fn effects(&self) -> Effects {
        Effects::default()
    }
    /// Returns whether it never blocks, except on completions of asynchronous operations. A thread that has only such
    /// operations collects completions itself; any other thread of asynchronous operations needs a helper thread for
    /// that.
    fn non_blocking(&self) -> bool {
        false
    }
    /// Returns whether it changes neither existence, type nor size of any file or directory.
    fn preserves(&self) -> bool {
        false
    }
}

/// An operation in one thread.
pub trait Step: Send {
    /// Executes the operation once. `Ok` when it is counted or skipped; `Err` when it failed, ended after the deadline,
    /// or ends its thread.
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop>;
}

/// An operation that keeps no state between executions. All threads share the one of the plan: a processor's cache then
/// holds its parameters once, instead of once for each thread.
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
    /// Executes the operation once. `Ok` when it is counted or skipped; `Err` when it failed, ended after the deadline,
    /// or ends its thread.
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop>;
}

impl<T: Stateless> Op for T {
    fn instantiate<'r>(&'r self, _init: &StepInit<'_>) -> Box<dyn Step + 'r> {
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

/// The properties of a thread that [`Op::instantiate`] needs.
#[derive(Debug)]
pub struct StepInit<'a> {
    /// Number of this instance of the flowop: instance of the process × thread instances in a process + instance of the
    /// thread.
    pub ordinal: usize,
    /// Semaphores of each `semblock`, one pair for each instance, by the flowop's number.
    pub semaphores: &'a [Vec<Arc<SemPair>>],
    /// Latches of each `block`, one for each instance, by the flowop's number.
    pub latches: &'a [Vec<Arc<Latch>>],
    /// Counters of all threads of the process instance, for limits on the totals of the process.
    pub peers: &'a Arc<[Peer]>,
    /// Seed of this thread's data and of draws made once for the thread.
    pub seed: u64,
}

/// One thread of the same process instance.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its counters.
    pub stats: Arc<ThreadStats>,
    /// Indices of the counters of reads and writes.
    pub io: Arc<[usize]>,
}

/// The semaphores of one instance of a `semblock`.
#[derive(Debug)]
pub struct SemPair {
    /// Posts made and not yet taken by the `semblock`.
    pub low: Semaphore,
    /// Posts that can still be made before a blocking `sempost` waits.
    pub high: Semaphore,
}

impl SemPair {
    /// Ends all present and future waits.
    pub fn close(&self) {
        self.low.close();
        self.high.close();
    }
}

/// Requirements of an operation on its thread, and its effects on file sets. Sets are given by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// The states that it gives to files or directories: `Existing` for a `createfile`, `Absent` for a `deletefile`.
    pub makes: Vec<(usize, Want, UnitKind)>,
    /// The state that it gives to the file in its slot, which may be of another set than the one that it names.
    pub makes_in_slot: Option<(Want, UnitKind)>,
    /// The file sets that it works on.
    pub sets: Vec<usize>,
    /// The file sets whose files it renames: which files exist changes, their number does not.
    pub moves: Vec<usize>,
    /// The pairs of file sets of which it moves files from the first to the second.
    pub moved: Vec<(usize, usize)>,
    /// The file set of the file that is in its slot afterwards, if it is not one that the flowop works on at first.
    pub left_in_slot: Vec<usize>,
    /// The file sets whose files it picks by their age.
    pub by_age: Vec<usize>,
    /// The file sets whose files it gives further names.
    pub links: Vec<usize>,
    /// Largest buffer in bytes that it may need; for an unbounded random size an estimate.
    pub buffer: u64,
    /// Largest buffer in bytes that it certainly needs; 0 for a random size.
    pub exact_buffer: u64,
    /// Whether its calls transfer whole files, so that its buffer grows to their size.
    pub whole_files: bool,
    /// The slot that it works on; 0: none named.
    pub slot: usize,
    /// Highest slot that it uses; 0: none named.
    pub max_fd: usize,
    /// The number of slots that it uses one after another (`opennext`); 0: it does not.
    pub rotating: usize,
    /// Whether it opens files with `O_DIRECT`, which needs aligned buffers.
    pub direct: bool,
    /// Units of the sizes and offsets of its I/O. Direct I/O needs all of them aligned.
    pub units: Vec<Unit>,
    /// Its asynchronous I/O in flight, if it does any.
    pub aio: Option<Aio>,
    /// Whether it sends data to `/dev/null`, which the thread then opens.
    pub sends: bool,
    /// Whether it measures the time of several steps, whose starts the thread keeps.
    pub measures: bool,
    /// Whether it reads the totals of the process.
    pub totals: bool,
    /// The number of posts that can be ahead of it, if it is a `semblock`.
    pub highwater: Option<u32>,
    /// Whether it is a `block`, which needs a latch.
    pub latch: bool,
    /// The flowops that it wakes up, or whose semaphores it posts, by their indices among all.
    pub wakes: Vec<usize>,
}

/// A unit of sizes or offsets: they are multiples of it.
#[derive(Clone, Debug)]
pub enum Unit {
    /// The value of the attribute of this name.
    Attribute(&'static str, Quantity),
    /// The size of the file.
    FileSize,
    /// The value of `iosize`, or the size of the file if that is smaller.
    Chunk(Quantity),
    /// One byte: sizes are arbitrary.
    Byte,
}

#[cfg(test)]
mod context_tests;

#[cfg(test)]
mod tests {
    #[test]
    fn every_flowop_has_a_name_a_description_and_an_example() {
        let incomplete = |spec: &super::Flowop| [spec.name, spec.doc, spec.example].contains(&"");
        let found: Vec<_> = super::entries().map(|entry| &entry.spec).filter(|spec| incomplete(spec)).collect();
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn calls_that_extend_a_file_take_space() {
        let takes_space = |name: &str| {
            super::entries().any(|entry| entry.spec.name == name && entry.spec.is(crate::spec::Role::TakesSpace))
        };
        assert!(takes_space("fallocate") && takes_space("truncate") && !takes_space("statfile"));
    }
}
