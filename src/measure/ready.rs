//! A plan that is ready to run, and one that runs while commands go on.

use super::cache::Cache;
use super::cpu::CpuReading;
use super::environment;
use super::rank_start::RankStart;
use super::rank_ticks::RankTicks;
use super::series::RunTimeline;
use crate::disk::Fileset;
use crate::disk::prepare::Prepared;
use crate::exec::messages::MessageReader;
use crate::os::path;
use crate::plan::Plan;
use crate::result::{Environment, Interval, RunEnvironment};
use crate::runtime::{Running, Waited};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A plan whose file sets are on disk.
pub(crate) struct Ready {
    pub(crate) plan: Arc<Plan>,
    /// The line of each flowop in its script.
    pub(crate) lines: Vec<u64>,
    pub(crate) sets: Vec<Arc<Fileset>>,
    /// How each set was prepared; `None` without an engine that accesses files.
    pub(crate) prepared: Vec<Option<Prepared>>,
    /// The run starts with the existing files.
    pub(crate) as_is: bool,
    pub(crate) dirty_before: u64,
    pub(crate) cache: Cache,
    pub(crate) location: RunLocation,
}

/// The environment of a run. It is read before the threads start, because no file system is accessed after that.
pub(crate) struct RunLocation {
    pub(crate) environment: Environment,
    pub(crate) run: RunEnvironment,
    /// The absolute root of each set, without links.
    pub(crate) roots: Vec<PathBuf>,
}

impl RunLocation {
    /// Reads the environment, with the mounts of these roots.
    pub(crate) fn of(roots: &[PathBuf]) -> Self {
        let resolved = roots.iter().map(|root| path::resolve(root)).collect();
        Self { environment: environment::environment(), run: environment::of_run(roots), roots: resolved }
    }
}

/// Running processes.
pub(crate) struct Live {
    pub(crate) running: Running,
    pub(crate) ready: Ready,
    pub(crate) printed: MessageReader,
    /// `stats clear` was executed: the next `sleep` is measured time.
    pub(crate) measuring: bool,
    /// No command has waited for the processes or cleared their counters since they were started.
    pub(crate) is_new: bool,
    pub(crate) cpu: CpuReading,
    pub(crate) started_at: String,
    pub(crate) requested: Option<Duration>,
    pub(crate) timeline: RunTimeline,
    /// The newest intervals, for the live view.
    pub(crate) recent: Vec<Interval>,
    /// The end of the processes during a command's wait.
    pub(crate) ended: Option<Waited>,
    /// The start of the processes, compared to that of the other ranks.
    pub(crate) start: RankStart,
    /// The reports of one of several ranks, while processes are measured.
    pub(crate) reports: Option<RankTicks>,
}
