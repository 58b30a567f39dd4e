//! A plan that is ready to run, and one that runs while commands go on.

use super::cache::Cache;
use super::cpu::CpuReading;
use super::environment;
use super::series::RunTimeline;
use crate::disk::Fileset;
use crate::disk::prepare::Prepared;
use crate::exec::messages::MessageReader;
use crate::plan::Plan;
use crate::result::{Environment, Interval, RunEnvironment};
use crate::runtime::{Running, Waited};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A plan whose file sets are on the disk.
pub(crate) struct Ready {
    pub(crate) plan: Arc<Plan>,
    /// The line of each flowop in its text.
    pub(crate) lines: Vec<u64>,
    pub(crate) sets: Vec<Arc<Fileset>>,
    /// Of those that were made for this run.
    pub(crate) prepared: Vec<Option<Prepared>>,
    /// The run goes on from the files that are there.
    pub(crate) as_is: bool,
    pub(crate) dirty_before: u64,
    pub(crate) cache: Cache,
    pub(crate) place: FlowopPlace,
}

/// Where a run takes place, looked at before its threads start: afterwards nobody asks the file systems any more.
pub(crate) struct FlowopPlace {
    pub(crate) environment: Environment,
    pub(crate) run: RunEnvironment,
    /// The absolute root of each set.
    pub(crate) roots: Vec<PathBuf>,
}

impl FlowopPlace {
    /// The machine, and the mounts of these roots.
    pub(crate) fn of(roots: &[PathBuf]) -> Self {
        let absolute = roots.iter().map(|root| environment::absolute(root)).collect();
        Self { environment: environment::environment(), run: environment::of_run(roots), roots: absolute }
    }
}

/// Live processes.
pub(crate) struct Live {
    pub(crate) running: Running,
    pub(crate) ready: Ready,
    pub(crate) heard: MessageReader,
    /// `stats clear` was said: the next `sleep` is measured time.
    pub(crate) measuring: bool,
    pub(crate) cpu: CpuReading,
    pub(crate) started_at: String,
    pub(crate) requested: Option<Duration>,
    pub(crate) timeline: RunTimeline,
    /// The newest intervals, for the live view.
    pub(crate) recent: Vec<Interval>,
    /// What ended the processes while a command waited.
    pub(crate) ended: Option<Waited>,
}
