//! Threads that run a plan.
//!
//! In: a plan, its file sets (prepared), an engine, seeds. Out: [`Running`], a handle on live processes: look, clear, change
//! the event rate, wait, stop. Progress is data; who draws it is not known here.
//! Deliberately absent: what any flowop does, how results look, scripts.
//!
//! A WML process is a leader thread with a descriptor table of its own; it opens its directories and starts the threads of
//! its instance. Nothing that owns a descriptor crosses from one table to another.

mod guard;
mod hang;
mod pace;
mod phases;
mod process;
mod running;
mod shared;
mod worker;

pub use pace::ArrivalProgress;
pub use phases::PhaseTicks;
pub use running::{Ended, Running, Sample, StuckThread, ThreadStream, Tick, Waited};
pub use shared::{Fault, FaultKind};

use crate::disk::Fileset;
use crate::engine::{Asynchronous, Engine};
use crate::exec::messages::Messages;
use crate::exec::trace::WantedStream;
use crate::os::futex;
use crate::plan::Plan;
use shared::Shared;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// What a run is started with, besides its plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// Makes the calls.
    pub engine: &'static dyn Engine,
    /// How asynchronous operations run, resolved.
    pub asynchronous: Asynchronous,
    /// Of all random streams.
    pub seed: u64,
    /// Errors of operations are counted, and the run goes on.
    pub count_errors: bool,
    /// Threads are bound to processors, in turn.
    pub pin: bool,
    /// Where `print` goes.
    pub messages: Option<Messages>,
    /// What every thread is to remember of its operations.
    pub stream: Option<WantedStream>,
    /// Raised by a signal: its number, then a second one. Looked at while waiting.
    pub interrupt: Arc<AtomicUsize>,
}

/// Starts the processes of a plan. They wait at the gate until [`Running::open`].
pub fn start(plan: Arc<Plan>, sets: &[Arc<Fileset>], options: Options) -> Result<Running, Fault> {
    let shared = Arc::new(Shared::new(plan, sets, options)?);
    futex::expect_sleepers(shared.thread_slots.len());
    let mut leaders = Vec::new();
    for (p, process) in shared.plan.processes.iter().enumerate() {
        for instance in 0..process.instances as usize {
            let theirs = Arc::clone(&shared);
            let leader = std::thread::Builder::new()
                .name(shared::kernel_name(&process.name))
                .stack_size(process::STACK)
                .spawn(move || process::process_main(&theirs, p, instance));
            match leader {
                Ok(handle) => leaders.push(handle),
                Err(error) => {
                    let fault = Fault::plain(
                        FaultKind::Setup,
                        format!(
                            "process {} of {} can't be started: {error}",
                            leaders.len() + 1,
                            shared.plan.n_processes()
                        ),
                        "raise the limits on threads (`ulimit -u`, the control group's `pids.max`), or start fewer",
                    );
                    Running::new(shared, leaders).abandon();
                    return Err(fault);
                }
            }
        }
    }
    Ok(Running::new(shared, leaders))
}
