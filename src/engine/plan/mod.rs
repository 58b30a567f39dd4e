//! The plan of a run: flowop programs as flat steps, file sets, totals.
//!
//! In: definitions, and the variables at the start of a run. Out: a [`Plan`], or all errors in values. The same
//! definitions and variables always give the same plan. Deliberately absent: threads, the disk, the clock.

mod compile;
mod direct;
mod dump;
mod filesets;
mod length;
mod lower;
mod memory;
mod outline;
mod pace;
mod path_list;
mod phases;
mod program;
mod split;
mod stonewall;
mod values;

pub use compile::{CompileOptions, Definitions, compile};
pub use direct::{DirectIo, direct_io};
pub use dump::{dump, totals};
pub use filesets::{parts_of, spec as fileset_spec};
pub use length::{how_long, never_ended};
pub use outline::outline;
pub use pace::{OwnRates, Pace};
pub use path_list::{left_to_shell, listed_directories};
pub use phases::{PhaseTimes, never_begun};
pub use split::{EventShare, SplitFault, split};
pub use values::{ExactValue, evaluate};

use crate::fileset::{FilesetSpec, Redundancy};
use crate::flowop::{Effects, MEASURE, Op};
use crate::random::Quantity;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wml_language::model::QuitMode;
use wml_language::source::Span;
use wml_language::spec::{Class, Dialect, IoDirection};

/// Placeholder of the session's temporary directory, the default of `$dir`, until that is created.
pub const FRESH: &str = "(fresh directory)";

/// Descriptors besides those of threads and file sets: standard streams, outputs, signals, and the path to a file during
/// population.
const OWN_DESCRIPTORS: u64 = 24;

/// Descriptors of a file set: its root and its marker in the program's table, its root in a process's.
const SET_DESCRIPTORS: u64 = 3;

/// Everything that a run does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In the order of definition.
    pub filesets: Vec<FilesetSpec>,
    /// In the order of definition.
    pub processes: Vec<Process>,
    /// All flowops with counters, in the order of definition. Each thread refers to a range of them.
    pub flowops: Vec<FlowopInfo>,
    /// What ends the run before its time.
    pub mode: QuitMode,
    /// Events a second of the event generator, on all ranks that divide the workload.
    pub event_rate: Option<u64>,
    /// This rank's share of those events in each phase.
    pub event_shares: BTreeMap<u32, EventShare>,
    /// For each rank, the iterations a second by phase that `totalrate=` asks of its threads, which nobody makes if the
    /// rank is lost.
    pub rank_rates: Vec<BTreeMap<u32, f64>>,
    /// The attributes that are exact, and would have another value in whole numbers.
    pub exact: Vec<ExactValue>,
    /// The phases of the workload, in order. A rank that has a part of it may have no threads in some of them.
    pub phases: Vec<u32>,
}

/// A flowop with a separate line in the results.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowopInfo {
    /// Index of its process.
    pub process: usize,
    /// Index of its thread in the process.
    pub thread: usize,
    /// Its index in the thread.
    pub index: usize,
    /// Its name; `outer.inner` in a composite.
    pub name: String,
    /// The names of the uses of composites that it is in, the outermost first.
    pub composites: Vec<String>,
    /// Its type.
    pub kind: &'static str,
    pub class: Class,
    /// The direction in which it moves data.
    pub direction: IoDirection,
    /// File sets that it works on: those that it names, else those of the flowop before it that opens its slot. Of the
    /// sets of process instances, only the first is listed.
    pub sets: Vec<usize>,
    /// Whether each of its operations is, or ends, a transaction.
    pub transaction: bool,
    /// Whether waiting for a file is part of the workload (`maystarve`).
    pub may_starve: bool,
    /// Whether it starts programs.
    pub runs_command: bool,
    /// Whether it uses space on the file system, although it neither writes nor creates a file.
    pub takes_space: bool,
    /// Whether its data goes through the buffer of its slot.
    pub is_buffered: bool,
    /// Whether it claims events of the event generator.
    pub claims_events: bool,
    /// Whether it ends its thread, or the run, after some operations or bytes.
    pub finishes: bool,
    /// The place of its definition.
    pub span: Span,
}

impl FlowopInfo {
    /// True if its operations have a response time in an open loop.
    pub fn has_response(&self) -> bool {
        self.class.is_io() || self.kind == MEASURE.name
    }
}

/// A process definition.
#[derive(Clone, Debug)]
pub struct Process {
    pub name: String,
    /// Number of instances.
    pub instances: u32,
    /// Increment of their niceness.
    pub nice: i32,
    /// Its phase: it starts when all threads of the phase before have ended.
    pub phase: u32,
    /// The times that its definition gives for the phase.
    pub times: PhaseTimes,
    /// The dialect of its definition.
    pub dialect: Dialect,
    pub threads: Vec<Thread>,
}

/// A thread definition.
#[derive(Clone, Debug)]
pub struct Thread {
    pub name: String,
    /// Number of instances in each process.
    pub instances: u32,
    /// Bytes of the I/O buffer; 0: as many as its flowops need.
    pub memsize: u64,
    /// Best-effort I/O priority, if it is to be set.
    pub ioprio: Option<u8>,
    /// The starts of its iterations in an open loop. `None` for a closed loop.
    pub pace: Option<Pace>,
    /// Whether it has a `rate=` or `totalrate=`, which may be 0 in this run only.
    pub has_rate: bool,
    /// The time after the start of its phase at which its threads only catch up with the fastest of all ranks. `None`
    /// for no such time.
    pub stonewall: Option<Duration>,
    /// The index, among all thread definitions, of the one whose number of iterations is its own. `None` for no limit.
    pub iterations_of: Option<usize>,
    /// The program of its loop.
    pub steps: Vec<PlanStep>,
    /// Index of its first flowop in [`Plan::flowops`].
    pub first: usize,
    /// Number of its flowops.
    pub count: usize,
    /// What its flowops need together.
    pub effects: Effects,
}

/// One step of a thread's program.
#[derive(Clone, Debug)]
pub enum PlanStep {
    /// A flowop.
    Op {
        /// Its index among the thread's flowops.
        local: usize,
        /// Executions before the next step.
        iters: Quantity,
        op: Arc<dyn Op>,
    },
    /// Start of a composite. Its body is executed `iters` times; for 0, it is skipped up to `leave`.
    Enter {
        /// The name of the use of the composite. `None` if the composite itself repeats its body.
        name: Option<String>,
        /// Executions of the body.
        iters: Quantity,
        /// Index of the matching [`PlanStep::Leave`].
        leave: usize,
    },
    /// End of a composite: goes back to the step after `enter`, or on.
    Leave {
        /// Index of the matching [`PlanStep::Enter`].
        enter: usize,
    },
    /// A mix: executes one of several alternatives, drawn by weight, then goes on at `end`.
    Choose {
        /// Cumulative weights of the alternatives; the last one is the sum.
        upto: Vec<f64>,
        /// Index of the first step of each alternative.
        starts: Vec<usize>,
        /// Index of the step after the mix.
        end: usize,
        /// Whether alternatives are drawn without replacement. The weights are whole then.
        shuffled: bool,
    },
    /// End of an alternative of [`PlanStep::Choose`].
    Jump(usize),
    /// Start of the shared part of a composite with `group`: executes it, or waits for a thread that does and goes on
    /// after `release`.
    Gather {
        /// Its number among all of the plan.
        group: usize,
        /// Index of the matching [`PlanStep::Release`].
        release: usize,
    },
    /// End of the shared part.
    Release,
}

impl Process {
    /// The file sets that its threads work on, in the order of definition. Of the sets of process instances, only the
    /// first.
    pub fn sets(&self) -> Vec<usize> {
        let mut sets: Vec<usize> = self.threads.iter().flat_map(|t| t.effects.sets.iter().copied()).collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// Descriptors that its threads may have open at once.
    pub(crate) fn thread_descriptors(&self) -> u64 {
        let each = self.threads.iter().map(|t| u64::from(t.instances).saturating_mul(t.descriptors()));
        each.fold(0, u64::saturating_add)
    }

    /// Descriptors that it may have open at once, without those of directories, of which fewer are kept if the limit is
    /// low.
    pub fn descriptors(&self) -> u64 {
        let sets = SET_DESCRIPTORS.saturating_mul(self.sets().len() as u64);
        self.thread_descriptors().saturating_add(OWN_DESCRIPTORS + sets)
    }
}

impl Thread {
    /// Descriptors that one of them may keep open at once: its slots, its ring, and the receiver of `sendfile`.
    fn descriptors(&self) -> u64 {
        // A flowop keeps one file open, unless it rotates through slots.
        let slots = self.count.min(self.effects.max_fd + 1) + self.effects.rotating;
        slots as u64 + u64::from(self.effects.aio.is_some()) + u64::from(self.effects.sends)
    }
}

impl Plan {
    /// Returns the plan with its file sets in the directory that stands for [`FRESH`]. `None` if something else in it has
    /// the placeholder, such as the text of a command.
    #[must_use]
    pub fn in_fresh_dir(mut self, dir: &Path) -> Option<Self> {
        for set in &mut self.filesets {
            let rest = set.path.strip_prefix(FRESH).ok().map(Path::to_owned);
            set.path = match rest {
                Some(rest) if rest.as_os_str().is_empty() => dir.to_owned(),
                Some(rest) => dir.join(rest),
                None => continue,
            };
        }
        let is_placed = !format!("{self:?}").contains(FRESH);
        is_placed.then_some(self)
    }

    /// Total number of threads.
    pub fn n_threads(&self) -> u64 {
        self.processes
            .iter()
            .map(|p| u64::from(p.instances) * p.threads.iter().map(|t| u64::from(t.instances)).sum::<u64>())
            .sum()
    }

    /// The phases in which it has threads, in order. There is one, unless processes wait for others to end.
    pub(crate) fn own_phases(&self) -> Vec<u32> {
        let threads = |p: &&Process| p.instances > 0 && !p.threads.is_empty();
        let mut phases: Vec<u32> = self.processes.iter().filter(threads).map(|p| p.phase).collect();
        phases.sort_unstable();
        phases.dedup();
        phases
    }

    /// The times of each phase. All processes of a phase that give one give the same.
    pub(crate) fn phase_times(&self) -> HashMap<u32, PhaseTimes> {
        let mut all: HashMap<u32, PhaseTimes> = HashMap::new();
        for process in &self.processes {
            let times = all.entry(process.phase).or_default();
            times.length = times.length.or(process.times.length);
            times.start = times.start.or(process.times.start);
        }
        let given = |time: Option<Duration>| time.filter(|time| !time.is_zero());
        for times in all.values_mut() {
            *times = PhaseTimes { length: given(times.length), start: given(times.start) };
        }
        all
    }

    /// Returns this rank's share of the events in a phase.
    pub fn event_share(&self, phase: u32) -> EventShare {
        self.event_shares.get(&phase).copied().unwrap_or_default()
    }

    /// Total number of process instances.
    pub fn n_processes(&self) -> u64 {
        self.processes.iter().map(|p| u64::from(p.instances)).sum()
    }

    /// All thread definitions with their processes.
    pub fn threads(&self) -> impl Iterator<Item = (&Process, &Thread)> {
        self.processes.iter().flat_map(|p| p.threads.iter().map(move |t| (p, t)))
    }

    /// Whether any flowop uses space on a file system.
    pub fn writes(&self) -> bool {
        self.flowops.iter().any(|f| f.direction == IoDirection::Write || f.takes_space)
            || self.threads().any(|(_, t)| !t.effects.makes.is_empty())
    }

    /// For each file set, whether the run can create, remove, rename or resize its files.
    pub fn changed_sets(&self) -> Vec<bool> {
        // A shell command may change any set.
        let mut changed = vec![self.flowops.iter().any(|flowop| flowop.runs_command); self.filesets.len()];
        for (_, thread) in self.threads() {
            for step in &thread.steps {
                let PlanStep::Op { local, op, .. } = step else { continue };
                if op.effects().preserves {
                    continue;
                }
                let own = &self.flowops[thread.first + local].sets;
                // If the flowop that opens the slot is unknown, the slot may hold any file of the thread's sets.
                let sets = if own.is_empty() && op.effects().max_fd > 0 { &thread.effects.sets } else { own };
                sets.iter().for_each(|set| changed[*set] = true);
            }
            // Changes of the file in a slot are known for the thread only.
            thread.effects.makes.iter().for_each(|(set, ..)| changed[*set] = true);
            thread.effects.moves.iter().for_each(|set| changed[*set] = true);
        }
        (0..changed.len()).map(|set| changed[self.named(set)]).collect()
    }

    /// One file set for each kind of data that a thread writes, if each kind needs a part of its own in the thread's
    /// buffer: the sets that it works on differ in `compress=` or `dedupe=`, or they have such a value and the thread
    /// also reads. What it reads may be more or less redundant. Empty if one part suffices.
    pub(crate) fn separate_data(&self, thread: &Thread) -> Vec<usize> {
        let redundancy = |set: &usize| self.filesets[*set].redundancy();
        let mut all = thread.effects.sets.iter().map(redundancy);
        let first = all.next();
        let flowops = &self.flowops[thread.first..thread.first + thread.count];
        let reads = || flowops.iter().any(|flowop| flowop.direction == IoDirection::Read);
        let one_suffices = first.is_none_or(|first| first == Redundancy::default() || !reads());
        if one_suffices && all.all(|other| Some(other) == first) {
            return Vec::new();
        }
        let mut separate: Vec<usize> = Vec::new();
        for flowop in flowops.iter().filter(|flowop| flowop.direction == IoDirection::Write) {
            // If the flowop that opens the slot is unknown, the slot may hold any file of the thread's sets.
            let own = if flowop.sets.is_empty() { &thread.effects.sets } else { &flowop.sets };
            for set in own {
                if separate.iter().all(|other| redundancy(other) != redundancy(set)) {
                    separate.push(*set);
                }
            }
        }
        separate
    }

    /// The first flowop that creates, removes or renames files or leaf directories of a set. `None` if there is none.
    pub fn changer(&self, set: usize) -> Option<&FlowopInfo> {
        let named = self.named(set) - self.filesets[set].part as usize;
        self.threads().find_map(|(_, thread)| {
            thread.steps.iter().find_map(|step| {
                let PlanStep::Op { local, op, .. } = step else { return None };
                let (info, effects) = (&self.flowops[thread.first + local], op.effects());
                let makes = effects.makes.iter().any(|(set, ..)| *set == named)
                    || effects.moves.contains(&named)
                    || (effects.makes_in_slot.is_some() && info.sets.contains(&named));
                makes.then_some(info)
            })
        })
    }

    /// The file sets whose files may have several names: those that flowops link, and those that such files are moved
    /// to.
    pub fn linked_sets(&self) -> HashSet<usize> {
        let mut linked: HashSet<usize> = self.threads().flat_map(|(_, thread)| thread.effects.links.clone()).collect();
        loop {
            let moved = self.threads().flat_map(|(_, thread)| &thread.effects.moved);
            let further: Vec<usize> =
                moved.filter(|(from, to)| linked.contains(from) && !linked.contains(to)).map(|(_, to)| *to).collect();
            if further.is_empty() {
                return linked;
            }
            linked.extend(further);
        }
    }

    /// The file set of a process instance, given the one that its flowops name.
    pub fn set_of(&self, named: usize, instance: usize) -> usize {
        if self.filesets[named].instance.is_some() { named + instance } else { named }
    }

    /// The file set that flowops name, given the one of a process instance.
    pub fn named(&self, set: usize) -> usize {
        set - self.filesets[set].instance.unwrap_or(0) as usize
    }

    pub fn instances(&self, flowop: usize) -> usize {
        let info = &self.flowops[flowop];
        let process = &self.processes[info.process];
        process.instances as usize * process.threads[info.thread].instances as usize
    }
}
