//! What all flowops have in common: the entry in a table, the operation of a plan and its step in a thread, and what an
//! operation says of itself.
//!
//! Deliberately absent: each flowop.
//!
//! `run` is on the path of every operation: it allocates no memory, takes no lock, formats no text and looks up no
//! name. Only the handling of a thread's first error does.

use super::args::Args;
use crate::exec::{Aio, BUG, OpCx, Stop, UnitKind};
use crate::fileset::Want;
use crate::random::Quantity;
use crate::stats::recorder::ThreadStats;
use crate::sync::{Latch, Semaphore};
use std::fmt;
use std::sync::Arc;
use wml_language::diag::Diagnostic;
use wml_language::spec::{Class, Flowop, IoDirection, Origin, Role};

/// One flowop: its descriptor and its constructor.
#[derive(Clone, Copy, Debug)]
pub struct FlowopEntry {
    /// Descriptor, for checks, lints, completion and the manual.
    pub spec: Flowop,
    /// Constructor of its operation.
    pub build: Build,
}

/// An entry without attributes, roles and texts, of an extension of wmlrun that does I/O and moves no data through the
/// program. The methods below say what is different.
pub(super) const fn entry(name: &'static str, build: Build) -> FlowopEntry {
    let (class, direction, origin) = (Class::Io, IoDirection::None, Origin::Wmlrun);
    FlowopEntry { spec: Flowop { name, class, direction, uses: &[], roles: &[], origin, doc: "", example: "" }, build }
}

impl FlowopEntry {
    pub(super) const fn class(mut self, class: Class) -> Self {
        self.spec.class = class;
        self
    }

    pub(super) const fn direction(mut self, direction: IoDirection) -> Self {
        self.spec.direction = direction;
        self
    }

    pub(super) const fn origin(mut self, origin: Origin) -> Self {
        self.spec.origin = origin;
        self
    }

    pub(super) const fn uses(mut self, attributes: &'static [&'static str]) -> Self {
        self.spec.uses = attributes;
        self
    }

    pub(super) const fn roles(mut self, roles: &'static [Role]) -> Self {
        self.spec.roles = roles;
        self
    }

    pub(super) const fn doc(mut self, doc: &'static str) -> Self {
        self.spec.doc = doc;
        self
    }

    pub(super) const fn example(mut self, example: &'static str) -> Self {
        self.spec.example = example;
        self
    }
}

/// A function that makes an operation from checked attributes.
pub type Build = fn(&Args<'_>) -> BuiltOp;

/// An operation, or the error in its attributes.
pub type BuiltOp = Result<Arc<dyn Op>, Diagnostic>;

/// Returns the failure of an operation whose slot is closed although it has a file open there. That never happens, and
/// if it did, the thread must not seem to have ended with the run.
#[cold]
pub(super) fn lost_file(cx: &mut OpCx<'_>, slot: usize) -> Stop {
    cx.misuse(|| format!("slot {slot} has lost its open file"), BUG)
}

/// Returns the failure of an asynchronous operation in a thread that is not prepared for it. As [`lost_file`], it never
/// happens.
#[cold]
pub(super) fn lost_aio(cx: &mut OpCx<'_>) -> Stop {
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
}

/// An operation in one thread.
pub trait Step: Send {
    /// Executes the operation once. `Ok` when it is counted or skipped; `Err` when it failed, ended after the deadline,
    /// or ends its thread.
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop>;
}

/// Makes an operation of a function, without state.
pub fn stateless(
    described: String,
    effects: Effects,
    run: impl Fn(&mut OpCx<'_>) -> Result<(), Stop> + Send + Sync + 'static,
) -> Arc<dyn Op> {
    Arc::new(FnOp {
        described,
        effects,
        make: |_: &StepInit<'_>| (),
        run: move |(): &mut (), cx: &mut OpCx<'_>| run(cx),
    })
}

/// Makes an operation of two functions: `make` makes the state of one thread, `run` executes the operation. What `run`
/// captures, all threads share: a processor's cache then holds it once, instead of once for each thread.
pub(super) fn stateful<S: Send + 'static>(
    described: String,
    effects: Effects,
    make: impl Fn(&StepInit<'_>) -> S + Send + Sync + 'static,
    run: impl Fn(&mut S, &mut OpCx<'_>) -> Result<(), Stop> + Send + Sync + 'static,
) -> Arc<dyn Op> {
    Arc::new(FnOp { described, effects, make, run })
}

struct FnOp<M, R> {
    described: String,
    effects: Effects,
    make: M,
    run: R,
}

impl<M, R> fmt::Debug for FnOp<M, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.described)
    }
}

impl<S, M, R> Op for FnOp<M, R>
where
    S: Send + 'static,
    M: Fn(&StepInit<'_>) -> S + Send + Sync,
    R: Fn(&mut S, &mut OpCx<'_>) -> Result<(), Stop> + Send + Sync,
{
    fn instantiate<'r>(&'r self, init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        Box::new(FnStep { state: (self.make)(init), run: &self.run })
    }

    fn describe(&self) -> String {
        self.described.clone()
    }

    fn effects(&self) -> Effects {
        self.effects.clone()
    }
}

struct FnStep<'r, S, R> {
    state: S,
    run: &'r R,
}

impl<S, R> Step for FnStep<'_, S, R>
where
    S: Send,
    R: Fn(&mut S, &mut OpCx<'_>) -> Result<(), Stop> + Sync,
{
    #[inline]
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        (self.run)(&mut self.state, cx)
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
    /// Whether it changes neither existence, type nor size of any file or directory.
    pub preserves: bool,
    /// Whether it never blocks, except on completions of asynchronous operations. A thread that has only such operations
    /// collects completions itself; any other thread of asynchronous operations needs a helper thread for that.
    pub non_blocking: bool,
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

impl Effects {
    /// The effects of an operation on a set that changes nothing in it.
    pub(super) fn preserving(set: usize) -> Self {
        Self { sets: vec![set], preserves: true, ..Self::default() }
    }
}

/// A unit of sizes or offsets: they are multiples of it.
#[derive(Clone, Debug)]
pub enum Unit {
    /// The value of the attribute of this name.
    Attribute(&'static str, Quantity),
    FileSize,
    /// The value of `iosize`, or the size of the file if that is smaller.
    Chunk(Quantity),
    /// One byte: sizes are arbitrary.
    Byte,
}
