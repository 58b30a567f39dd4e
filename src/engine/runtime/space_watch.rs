//! The space watch: a thread that checks the free space of the file systems as long as processes run.
//!
//! It ends the run before the free space falls below the minimum, in any state of the run: warm-up, measurement, or
//! between two commands that control it. Deliberately absent: the minimum, which the file sets define.

use super::shared::{Fault, FaultKind, Shared};
use crate::disk::space::{STACK, SpaceWatch};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

/// Starts the thread if the plan writes to a real file system. `None` otherwise. A run ends if the thread cannot be
/// started, because it could fill the file system.
pub(super) fn start(shared: &Arc<Shared>) -> Option<JoinHandle<()>> {
    if !shared.options.engine.real() || !shared.plan.writes() {
        return None;
    }
    let of_thread = Arc::clone(shared);
    let builder = std::thread::Builder::new().name("space".to_owned()).stack_size(STACK);
    match builder.spawn(move || watch(&of_thread)) {
        Ok(thread) => Some(thread),
        Err(error) => {
            shared.fail(Fault::plain(
                FaultKind::Setup,
                format!("the thread that watches the free space can't be started: {error}"),
                "raise `ulimit -u` or the control group's `pids.max`, or start fewer threads",
            ));
            None
        }
    }
}

/// Checks the free space at intervals until the run stops or the space is too low.
fn watch(shared: &Shared) {
    // A file system may never respond to the query. Only this thread makes it, and publishes its start for others to
    // see.
    let set_query_start = |tick: u64| shared.space_query_since.store(tick, Relaxed);
    set_query_start(shared.clock.raw());
    let space_watch = SpaceWatch::new(shared.views.iter().map(|view| view.set.spec.root()));
    loop {
        set_query_start(shared.clock.raw());
        let space = space_watch.check();
        set_query_start(0);
        if let Some(low) = space.low {
            shared.fail(Fault::plain(
                FaultKind::LowSpace,
                low.to_string(),
                "free some space, make the file sets smaller, or run for a shorter time",
            ));
            return;
        }
        let next = shared.clock.raw().saturating_add(shared.clock.ticks(space.wait.as_nanos() as u64));
        if shared.gate.sleep_until(shared.clock, next) {
            return;
        }
    }
}
