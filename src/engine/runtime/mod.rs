//! The threads that execute a plan.
//!
//! Input: a plan, its prepared file sets, an engine and seeds. Output: [`Running`], a handle on running processes:
//! sample and reset counters, change the event rate, wait, stop. Progress is data; its display is not known here.
//! Deliberately absent: the behaviour of flowops, the presentation of results, scripts.
//!
//! A WML process is a leader thread with a separate descriptor table. It opens the process's directories and starts the
//! threads of its instance. No value that owns a descriptor moves from one table to another.

mod space_watch;
mod stop_detector;
mod hang;
mod iterations;
mod meeting;
mod options;
mod pace;
mod phase_clock;
mod phases;
mod process;
mod running;
mod shared;
mod steps;
mod thread_io;
mod unfinished;
mod worker;

pub use meeting::{Meeting, MeetingPlace, MeetingPoint};
pub use options::Options;
pub use pace::{ArrivalProgress, PacedThread};
pub use phases::PhaseTicks;
pub use running::{Ended, Running, Sample, ThreadStream, Tick, Waited};
pub use shared::{Fault, FaultKind};
pub use unfinished::{StuckThread, UnfinishedThread};

use crate::disk::Fileset;
use crate::plan::Plan;
use shared::Shared;
use std::sync::Arc;
use wml_os::futex;

/// Starts the processes of a plan. Their threads wait at the gate until [`Running::open`]. `Err` when a thread cannot
/// be started.
pub fn start(plan: Arc<Plan>, sets: &[Arc<Fileset>], options: Options) -> Result<Running, Fault> {
    let shared = Arc::new(Shared::new(plan, sets, options)?);
    futex::expect_sleepers(shared.thread_slots.len());
    let phase_clock = phase_clock::start(&shared)?;
    let mut leaders = Vec::new();
    for (p, process) in shared.plan.processes.iter().enumerate() {
        for instance in 0..process.instances as usize {
            let leader_shared = Arc::clone(&shared);
            let leader = std::thread::Builder::new()
                .name(shared::kernel_name(&process.name))
                .stack_size(process::STACK)
                .spawn(move || process::process_main(&leader_shared, p, instance));
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
                    Running::new(shared, leaders, phase_clock).abandon();
                    return Err(fault);
                }
            }
        }
    }
    Ok(Running::new(shared, leaders, phase_clock))
}
