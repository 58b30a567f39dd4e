//! Model to plan: everything that a run does, decided. Flowop programs as flat steps, file sets, totals.
//!
//! In: definitions, and the variables as they are when a run starts. Out: a [`Plan`], or all that is wrong with the values.
//! Deliberately absent: threads, the disk, the clock. The same definitions and variables always give the same plan.

mod compile;
mod direct;
mod dump;
mod filesets;
mod lower;
mod program;
mod values;

pub use compile::{CompileOptions, Definitions, compile};
pub use direct::{DirectIo, direct_io};
pub use dump::{dump, totals};
pub use filesets::{parts_of, spec as fileset_spec};
pub use values::{Evaluated, evaluate};

use crate::fileset::FilesetSpec;
use crate::flowop::{Effects, Op};
use crate::model::QuitMode;
use crate::random::Quantity;
use crate::source::Span;
use crate::spec::{Class, Dialect, IoDirection};
use std::sync::Arc;

/// What stands for the session's own directory, the value of `$dir` as long as nothing gives another, until it is made.
pub const FRESH: &str = "(fresh directory)";

/// Descriptors besides those of threads and file sets: standard streams, outputs, signals, and a path to a file while files
/// are made.
const OWN_DESCRIPTORS: u64 = 24;

/// Descriptors of a file set: its root and its marker in the program's table, its root in a process's.
const SET_DESCRIPTORS: u64 = 3;

/// All that a run does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In the order of definition.
    pub filesets: Vec<FilesetSpec>,
    /// In the order of definition.
    pub processes: Vec<Process>,
    /// All flowops that count, in the order of definition; threads refer to stretches of it.
    pub flowops: Vec<FlowopInfo>,
    /// What ends the run besides its time.
    pub mode: QuitMode,
    /// Events a second of the event generator.
    pub event_rate: Option<u64>,
}

/// A flowop with a line of its own in the results.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowopInfo {
    /// Of which process.
    pub process: usize,
    /// Of which of its threads.
    pub thread: usize,
    /// Its place in the thread.
    pub index: usize,
    /// Its name; `outer.inner` in a composite.
    pub name: String,
    /// Its type.
    pub kind: &'static str,
    /// What it counts as.
    pub class: Class,
    /// Which way it moves data.
    pub direction: IoDirection,
    /// File sets that it works on, of those of process instances the first: those it names, else those of the flowop before it that opens its slot.
    pub sets: Vec<usize>,
    /// Each of its operations is, or ends, a transaction.
    pub transaction: bool,
    /// It starts programs of its own.
    pub runs_command: bool,
    /// Where it was written.
    pub span: Span,
}

/// A kind of process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// How many.
    pub instances: u32,
    /// Added to their niceness.
    pub nice: i32,
    /// Its phase: it starts when all threads of the phase before have ended.
    pub phase: u32,
    /// The dialect of its definition.
    pub dialect: Dialect,
    /// Its threads.
    pub threads: Vec<Thread>,
}

/// A kind of thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// How many in each process.
    pub instances: u32,
    /// Bytes of the I/O buffer; 0: as much as its flowops need.
    pub memsize: u64,
    /// Best-effort I/O priority, if it is to be set.
    pub ioprio: Option<u8>,
    /// When its iterations start, if not each when the one before has ended.
    pub pace: Option<Pace>,
    /// Its loop.
    pub steps: Vec<PlanStep>,
    /// Where its flowops begin in [`Plan::flowops`].
    pub first: usize,
    /// How many they are.
    pub count: usize,
    /// What its flowops need, together.
    pub effects: Effects,
}

/// An open loop: iterations start by the clock, and one that is late does not put off the next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pace {
    /// Iterations a second of each thread; above 0.
    pub rate: f64,
    /// Starts are a Poisson process; else they are evenly spaced.
    pub poisson: bool,
}

/// One step of a thread's program.
#[derive(Clone, Debug)]
pub enum PlanStep {
    /// A flowop.
    Op {
        /// Its place among the thread's flowops.
        local: usize,
        /// How often before the next step.
        iters: Quantity,
        /// What it does.
        op: Arc<dyn Op>,
    },
    /// A composite begins: its body is done so often, or, for 0, skipped up to `leave`.
    Enter {
        /// How often.
        iters: Quantity,
        /// Where the matching [`PlanStep::Leave`] is.
        leave: usize,
    },
    /// A composite ends: back to the step after `enter`, or on.
    Leave {
        /// Where the matching [`PlanStep::Enter`] is.
        enter: usize,
    },
    /// One of these stretches is done, drawn by weight, then on to `end`: a thread with `mix`.
    Choose {
        /// Weight of each stretch, added up; the last is the sum.
        upto: Vec<f64>,
        /// Where each stretch begins.
        starts: Vec<usize>,
        /// Where the program goes on.
        end: usize,
        /// Drawn without replacement; the weights are whole.
        shuffled: bool,
    },
    /// The end of a stretch of [`PlanStep::Choose`].
    Jump(usize),
}

impl Process {
    /// The file sets that its threads work on, in the order of definition; of those of process instances the first.
    pub fn sets(&self) -> Vec<usize> {
        let mut sets: Vec<usize> = self.threads.iter().flat_map(|t| t.effects.sets.iter().copied()).collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// Descriptors that its threads may keep open at once.
    pub fn thread_descriptors(&self) -> u64 {
        let each = self.threads.iter().map(|t| u64::from(t.instances).saturating_mul(t.descriptors()));
        each.fold(0, u64::saturating_add)
    }

    /// Descriptors that it may keep open at once, without those of directories, which are fewer where the limit is low.
    pub fn descriptors(&self) -> u64 {
        let sets = SET_DESCRIPTORS.saturating_mul(self.sets().len() as u64);
        self.thread_descriptors().saturating_add(OWN_DESCRIPTORS + sets)
    }
}

impl Thread {
    /// Descriptors that one of them may keep open at once: its slots, its ring, and the receiver of `sendfile`.
    fn descriptors(&self) -> u64 {
        // A flowop keeps one file open, unless it goes from slot to slot.
        let slots = self.effects.max_fd + 1;
        let slots = if self.effects.opennext { slots } else { self.count.min(slots) };
        slots as u64 + u64::from(self.effects.aio.is_some()) + u64::from(self.effects.sends)
    }
}

impl Plan {
    /// Threads in all.
    pub fn n_threads(&self) -> u64 {
        self.processes
            .iter()
            .map(|p| u64::from(p.instances) * p.threads.iter().map(|t| u64::from(t.instances)).sum::<u64>())
            .sum()
    }

    /// The phases of its processes, in order: one, unless processes wait for others to end.
    pub fn phases(&self) -> Vec<u32> {
        let threads = |p: &&Process| p.instances > 0 && !p.threads.is_empty();
        let mut phases: Vec<u32> = self.processes.iter().filter(threads).map(|p| p.phase).collect();
        phases.sort_unstable();
        phases.dedup();
        phases
    }

    /// Process instances in all.
    pub fn n_processes(&self) -> u64 {
        self.processes.iter().map(|p| u64::from(p.instances)).sum()
    }

    /// The threads' kinds, with their processes.
    pub fn threads(&self) -> impl Iterator<Item = (&Process, &Thread)> {
        self.processes.iter().flat_map(|p| p.threads.iter().map(move |t| (p, t)))
    }

    /// Whether anything that it does takes room on a file system.
    pub fn writes(&self) -> bool {
        self.flowops.iter().any(|f| f.direction == IoDirection::Write)
            || self.threads().any(|(_, t)| !t.effects.makes.is_empty())
    }

    /// For each file set, whether the run can make, remove, rename or resize files of it.
    pub fn changed_sets(&self) -> Vec<bool> {
        // A command may do anything.
        let mut changed = vec![self.flowops.iter().any(|flowop| flowop.runs_command); self.filesets.len()];
        for (_, thread) in self.threads() {
            for step in &thread.steps {
                let PlanStep::Op { local, op, .. } = step else { continue };
                if op.preserves() {
                    continue;
                }
                let own = &self.flowops[thread.first + local].sets;
                // Of a slot whose opener is not found it could be any file of the thread's.
                let sets = if own.is_empty() && op.effects().max_fd > 0 { &thread.effects.sets } else { own };
                sets.iter().for_each(|set| changed[*set] = true);
            }
            // What a flowop makes of the file in its slot is known of the thread only.
            thread.effects.makes.iter().for_each(|(set, ..)| changed[*set] = true);
            thread.effects.moves.iter().for_each(|set| changed[*set] = true);
        }
        (0..changed.len()).map(|set| changed[self.named(set)]).collect()
    }

    /// The file set that an instance of a process works on, given the one that its flowops name.
    pub fn set_of(&self, named: usize, instance: usize) -> usize {
        if self.filesets[named].instance.is_some() { named + instance } else { named }
    }

    /// The file set that flowops name where a process instance works on this one.
    pub fn named(&self, set: usize) -> usize {
        set - self.filesets[set].instance.unwrap_or(0) as usize
    }

    /// How many instances of a flowop there are.
    pub fn instances(&self, flowop: usize) -> usize {
        let info = &self.flowops[flowop];
        let process = &self.processes[info.process];
        process.instances as usize * process.threads[info.thread].instances as usize
    }
}
