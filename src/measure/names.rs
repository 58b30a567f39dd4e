//! How messages and results name a flowop and the files that it works on.

use crate::plan::Plan;

/// A flowop by its place: `process/thread/name`.
pub(crate) fn place(plan: &Plan, flowop: usize) -> String {
    let info = &plan.flowops[flowop];
    let process = &plan.processes[info.process];
    format!("{}/{}/{}", process.name, process.threads[info.thread].name, info.name)
}

/// The roots of the file sets of a flowop; of one that has none, those of its thread, which may be closing a file.
pub(crate) fn roots(plan: &Plan, flowop: usize) -> String {
    let Some(info) = plan.flowops.get(flowop) else { return "a file".to_owned() };
    let of_thread = &plan.processes[info.process].threads[info.thread].effects.sets;
    let sets = if info.sets.is_empty() { of_thread } else { &info.sets };
    // Of process instances each has its own.
    let all = sets.iter().flat_map(|named| (*named..plan.filesets.len()).take_while(|set| plan.named(*set) == *named));
    let roots = all.map(|set| plan.filesets[set].root().display().to_string());
    let roots: Vec<String> = roots.collect();
    if roots.is_empty() { "a file".to_owned() } else { format!("a file of {}", roots.join(" or ")) }
}
