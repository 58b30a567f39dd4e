//! The phase clock: a thread that ends the phases with a length, wherever their threads wait.
//!
//! It exists only if a phase has a length. When an operation ends, its thread itself finds that the time is over, so that
//! this thread may be late.

use super::shared::{Fault, FaultKind, Shared};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Stack size in bytes. Small, since the thread only sleeps and wakes others.
const STACK: usize = 64 << 10;

/// The longest sleep while no phase has a time that is running. Each change ends the sleep.
const IDLE: Duration = Duration::from_hours(1);

/// Starts the thread, before the run begins. `None` if no phase has a length.
pub(super) fn start(shared: &Arc<Shared>) -> Result<Option<JoinHandle<()>>, Fault> {
    if !shared.phases.has_lengths() {
        return Ok(None);
    }
    let of_thread = Arc::clone(shared);
    let builder = std::thread::Builder::new().name("phases".to_owned()).stack_size(STACK);
    builder.spawn(move || end_phases(&of_thread)).map(Some).map_err(|error| {
        Fault::plain(
            FaultKind::Setup,
            format!("the thread that ends the phases can't be started: {error}"),
            "raise `ulimit -u` or the control group's `pids.max`, or start fewer threads",
        )
    })
}

/// Ends each phase when its time is over, until the run stops.
fn end_phases(shared: &Shared) {
    let (phases, clock) = (&shared.phases, shared.clock);
    while !shared.gate.is_stopped() {
        let changes = phases.changes();
        match phases.next_end() {
            // Looked at again: the run may have stopped before the number of changes was read.
            _ if shared.gate.is_stopped() => return,
            None => phases.wait_change(changes, IDLE),
            Some((number, end)) => match clock.ns(clock.raw().min(end), end) {
                0 => shared.end_phase(number, end),
                left_ns => phases.wait_change(changes, Duration::from_nanos(left_ns)),
            },
        }
    }
}
