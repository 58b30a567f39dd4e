//! The end of a run: its outcome if a file system does not answer, and its threads.
//!
//! From the opening of the gate to the end of the report, the session makes no call on a measured file system: such a
//! call might never return, and the report would be lost.

use super::Front;
use super::names::{qualified_name, roots_text};
use crate::diag::Failure;
use crate::plan::Plan;
use crate::runtime::{Ended, Running, Waited};
use std::time::Duration;

/// The time limit for threads in a system call to return after the report.
pub(crate) const JOIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The same if they are known to be blocked, and have been waited for before the report.
pub(crate) const STUCK_JOIN_TIMEOUT: Duration = Duration::from_secs(1);

/// How many more times that limit is waited for if the threads are not in a system call: then the machine is busy with others.
const BUSY_WAITS: u32 = 6;

/// Returns the final end of a run: a thread may have panicked, or calls may not have returned before the end.
pub(crate) fn final_end(running: &Running, waited: Waited) -> Waited {
    if let Some(panic) = running.panic() {
        return Waited { ended: Ended::Fault(panic), ..waited };
    }
    match (&waited.ended, running.stuck(waited.tick)) {
        (ended, Some(stuck)) if ended.is_good() => Waited { ended: Ended::Fault(stuck), ..waited },
        _ => waited,
    }
}

/// Waits for threads that are still in a system call, and abandons them at the time limit `limit`. True if all
/// have returned.
pub(crate) fn join_or_abandon(running: Running, plan: &Plan, limit: Duration, front: &mut dyn Front) -> bool {
    let mut remaining = running.join_within(limit);
    for _ in 0..BUSY_WAITS {
        if remaining > 0 && !running.is_held() {
            remaining = running.join_within(JOIN_TIMEOUT);
        }
    }
    if remaining == 0 {
        running.join(JOIN_TIMEOUT);
        return true;
    }
    for thread in running.stragglers().iter().take(5) {
        let flowop = qualified_name(plan, thread.flowop);
        let path = thread.path.clone().unwrap_or_else(|| roots_text(plan, thread.flowop));
        let text = format!("{flowop} (thread {}) is still in a system call on {path}; it is left behind", thread.tid);
        front.failed(&Failure::failed(text, ""));
    }
    running.join(Duration::ZERO);
    false
}
