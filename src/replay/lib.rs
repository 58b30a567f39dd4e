//! Replay: the calls of a trace are made again, below a directory.
//!
//! What existed at the beginning is found out from the calls, and made first (`lookout`, `tree`, `root`). Each traced thread is
//! a thread here. It makes its calls (`call`) in their order, and waits for those of other threads on the same names and files
//! (`order`); `plan` and `actions` work all this out beforehand, so that a thread only compares counters (`run`). Descriptors
//! are those that the program had (`descriptors`). `outcome` says what came out differently.
//!
//! A call reaches a name by the descriptor of its directory and one component. Links are followed in the plan and in no call.
//!
//! Not here: the recorder, the format of traces, and what programs mean by their calls.

mod actions;
mod call;
mod descriptors;
mod lookout;
mod names;
mod order;
mod outcome;
mod outcome_sheet;
mod plan;
mod root;
mod run;
mod tree;
mod wish;

pub use outcome::{OtherCall, OtherName, ReplayOutcome, ReplayedClass};
pub use wish::{ReplaySpeed, ReplayStop, ReplayWish};

use plan::ReplayPlan;
use root::ReplayRoot;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Replays a trace below a directory.
///
/// # Errors
/// If the trace can't be read, or the directory holds something else.
pub fn replay(
    input: impl Read + Seek,
    dir: &Path,
    wish: &ReplayWish,
    stop: &AtomicBool,
) -> Result<ReplayOutcome, ReplayStop> {
    let mut plan = ReplayPlan::read(input, wish)?;
    if !plan.missing.is_empty() && !wish.takes_incomplete {
        return Err(ReplayStop::Incomplete(plan.missing));
    }
    if plan.threads.iter().all(|thread| thread.ops.is_empty()) {
        return Err(ReplayStop::Nothing);
    }
    let (root, above) = ReplayRoot::take(dir)?;
    let dirs = root.fill(&above, &mut plan)?;
    let done = run::run(&plan, &root.dir, &dirs, wish, stop)?;
    let found = root::found_below(&root.dir)?;
    Ok(ReplayOutcome::of(&plan, &done, &found))
}
