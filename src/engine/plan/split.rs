//! The part of a plan that a rank runs with `--ranks split`: process instances are dealt out to the ranks.
//!
//! In: the plan of the whole workload, which is the same on all ranks. Out: the same plan with fewer process instances.
//! Definitions and flowops stay, so that the results of the ranks can be added by position. Deliberately absent: the
//! files, of which each rank has its part anyway (see `spec::Sharing`).

use super::{Plan, PlanStep};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use wml_text::count::count;

/// The share of the event generator's events that a rank has in a phase. Of `all` threads that claim events in it, at
/// least 1, `own` are on this rank, and `before` on the ranks with lower numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventShare {
    before: u64,
    own: u64,
    all: u64,
}

impl Default for EventShare {
    fn default() -> Self {
        Self { before: 0, own: 1, all: 1 }
    }
}

impl EventShare {
    /// Returns this rank's part of a rate. The parts of all ranks add up to it, unless some would be 0: these are 1.
    pub fn of(self, rate: u64) -> u64 {
        let upto = |threads: u64| u128::from(rate) * u128::from(threads) / u128::from(self.all);
        let part = upto(self.before + self.own) - upto(self.before);
        u64::try_from(part).unwrap_or(u64::MAX).max(u64::from(rate > 0))
    }
}

/// The reason for which a plan can't be split.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SplitFault {
    /// There are fewer parts than ranks.
    #[error("{ranks} ranks can't divide a workload of {}", count(*parts as u64, "part"))]
    TooFew {
        ranks: usize,
        /// The number of process instances, those that must stay together counted as one.
        parts: usize,
        /// Processes that must stay together, if any.
        connected: Vec<String>,
    },
    /// A file set has a tree for each process instance.
    #[error("file set `{0}` has a tree for each process instance (`perinstance`), which ranks can't divide")]
    OwnSets(String),
}

impl SplitFault {
    /// Returns a line of help.
    pub fn help(&self) -> String {
        match self {
            Self::TooFew { connected, .. } if connected.is_empty() => {
                "start fewer ranks, or give a process more `instances=`; with `--ranks copy` every rank runs the whole \
                 workload"
                    .to_owned()
            }
            Self::TooFew { connected, .. } => format!(
                "all instances of {} stay on one rank, because semaphores or wakeups connect their threads; with \
                 `--ranks copy` every rank runs the whole workload",
                connected.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            ),
            Self::OwnSets(_) => "leave out `perinstance`, or run with `--ranks copy`".to_owned(),
        }
    }
}

/// Process instances that run on the same rank.
struct PlanPart {
    /// Indices of processes, with their numbers of instances.
    instances: Vec<(usize, u32)>,
    threads: u64,
    /// The first phase of its processes.
    phase: u32,
}

/// Returns the part of `plan` that rank `rank` of `ranks` runs. Each instance goes to the rank with the fewest threads
/// in its phase so far, then in all, the largest first. Instances of processes whose threads post semaphores of each
/// other, or wake each other up, stay together.
pub fn split(mut plan: Plan, rank: usize, ranks: usize) -> Result<Plan, SplitFault> {
    if ranks < 2 {
        return Ok(plan);
    }
    if let Some(own) = plan.filesets.iter().find(|spec| spec.instance.is_some_and(|instance| instance > 0)) {
        return Err(SplitFault::OwnSets(own.name.clone()));
    }
    let together = connected(&plan);
    let mut parts = parts_of(&plan, &together);
    if parts.len() < ranks {
        let connected = together.values().flatten().map(|process| plan.processes[*process].name.clone()).collect();
        return Err(SplitFault::TooFew { ranks, parts: parts.len(), connected });
    }
    parts.sort_by_key(|part| (part.phase, Reverse(part.threads)));
    let claiming = claiming(&plan);
    let mut own = vec![0; plan.processes.len()];
    // The threads that claim events, by phase and rank.
    let mut claims: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let mut all_threads = vec![0; ranks];
    for phase in parts.chunk_by(|one, other| one.phase == other.phase) {
        // For each rank, its threads in this phase and in all.
        let idle = all_threads.iter().enumerate().map(|(rank, threads)| Reverse((0, *threads, rank)));
        let mut next: BinaryHeap<Reverse<(u64, u64, usize)>> = idle.collect();
        for part in phase {
            let Some(Reverse((threads, _, to))) = next.pop() else { break };
            all_threads[to] += part.threads;
            next.push(Reverse((threads + part.threads, all_threads[to], to)));
            for (process, instances) in &part.instances {
                let of_phase = claims.entry(plan.processes[*process].phase).or_insert_with(|| vec![0; ranks]);
                of_phase[to] += u64::from(*instances) * claiming[*process];
                if to == rank {
                    own[*process] += instances;
                }
            }
        }
    }
    let share = |of: Vec<u64>| EventShare {
        before: of[..rank].iter().sum(),
        own: of[rank],
        all: of.iter().sum::<u64>().max(1),
    };
    plan.event_shares = claims.into_iter().map(|(phase, of)| (phase, share(of))).collect();
    plan.processes.iter_mut().zip(own).for_each(|(process, own)| process.instances = own);
    Ok(plan)
}

/// Returns the number of threads of one instance of each process that claim events.
fn claiming(plan: &Plan) -> Vec<u64> {
    let mut found = vec![0; plan.processes.len()];
    for (p, process) in plan.processes.iter().enumerate() {
        let own = process.threads.iter().filter(|thread| {
            plan.flowops[thread.first..thread.first + thread.count].iter().any(|flowop| flowop.claims_events)
        });
        found[p] = own.map(|thread| u64::from(thread.instances)).sum();
    }
    found
}

/// Returns the groups of processes whose threads wait for each other, by the first process of each. A process whose
/// instances wait for each other is a group, too.
fn connected(plan: &Plan) -> BTreeMap<usize, Vec<usize>> {
    let mut group: Vec<usize> = (0..plan.processes.len()).collect();
    let mut is_bound = vec![false; group.len()];
    for (p, process) in plan.processes.iter().enumerate() {
        for step in process.threads.iter().flat_map(|thread| &thread.steps) {
            // All instances share the executions of a `group`.
            is_bound[p] |= matches!(step, PlanStep::Gather { .. });
            let PlanStep::Op { op, .. } = step else { continue };
            for woken in op.effects().wakes {
                let other = plan.flowops[woken].process;
                is_bound[p] = true;
                is_bound[other] = true;
                let (from, to) = (group[p].max(group[other]), group[p].min(group[other]));
                group.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
            }
        }
    }
    let mut groups = BTreeMap::<usize, Vec<usize>>::new();
    for (p, first) in group.into_iter().enumerate().filter(|(p, _)| is_bound[*p]) {
        groups.entry(first).or_default().push(p);
    }
    groups
}

/// Returns the parts to deal out, in the order of definition.
fn parts_of(plan: &Plan, together: &BTreeMap<usize, Vec<usize>>) -> Vec<PlanPart> {
    let threads_of =
        |process: usize| plan.processes[process].threads.iter().map(|thread| u64::from(thread.instances)).sum::<u64>();
    let mut parts = Vec::new();
    for (p, process) in plan.processes.iter().enumerate() {
        match together.get(&p) {
            Some(group) => {
                let instances: Vec<_> = group.iter().map(|p| (*p, plan.processes[*p].instances)).collect();
                let threads = instances.iter().map(|(p, n)| u64::from(*n) * threads_of(*p)).sum();
                let phase = group.iter().map(|p| plan.processes[*p].phase).min().unwrap_or_default();
                parts.push(PlanPart { instances, threads, phase });
            }
            None if together.values().any(|group| group.contains(&p)) => {}
            None => {
                let single = |_| PlanPart { instances: vec![(p, 1)], threads: threads_of(p), phase: process.phase };
                parts.extend((0..process.instances).map(single));
            }
        }
    }
    parts.retain(|part| part.threads > 0);
    parts
}
