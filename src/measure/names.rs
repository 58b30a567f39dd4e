//! Names of flowops, and of the files that they work on, in messages and results.

use crate::plan::Plan;

/// Returns the qualified name of a flowop: `process/thread/name`.
pub(crate) fn qualified_name(plan: &Plan, flowop: usize) -> String {
    let info = &plan.flowops[flowop];
    let process = &plan.processes[info.process];
    format!("{}/{}/{}", process.name, process.threads[info.thread].name, info.name)
}

/// Returns a text with the roots of a flowop's file sets. For a flowop without file sets, these are the roots of its
/// thread, which may be closing a file.
pub(crate) fn roots_text(plan: &Plan, flowop: usize) -> String {
    let Some(info) = plan.flowops.get(flowop) else { return "a file".to_owned() };
    let of_thread = &plan.processes[info.process].threads[info.thread].effects.sets;
    let sets = if info.sets.is_empty() { of_thread } else { &info.sets };
    // Each instance of a process has its own set.
    let all = sets.iter().flat_map(|named| (*named..plan.filesets.len()).take_while(|set| plan.named(*set) == *named));
    let roots = all.map(|set| plan.filesets[set].root().display().to_string());
    let roots: Vec<String> = roots.collect();
    if roots.is_empty() { "a file".to_owned() } else { format!("a file of {}", roots.join(" or ")) }
}
