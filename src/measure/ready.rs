//! A plan that is ready to run.

use super::cache::Cache;
use super::outputs::Outputs;
use super::run_ranks::RunRanks;
use super::{Settings, environment, machine, record};
use crate::diag::Failure;
use crate::disk::Fileset;
use crate::disk::prepare::Prepared;
use crate::exec::messages::{self, MessageReader};
use crate::os::path;
use crate::plan::Plan;
use crate::result::{Environment, RunEnvironment};
use crate::runtime::{self, Running};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

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

impl Ready {
    /// Starts the threads. Returns the handle of the run and the receiver of `print` messages.
    pub(crate) fn start(
        &self,
        settings: &Settings,
        ranks: &RunRanks,
        outputs: &Outputs,
        interrupt: Arc<AtomicUsize>,
    ) -> Result<(Running, MessageReader), Failure> {
        let (sender, printed) = messages::queue();
        let options = runtime::Options {
            engine: settings.engine,
            asynchronous: machine::asynchronous(settings)?,
            seed: ranks.stream_seed(),
            run_seed: settings.seed,
            count_errors: settings.count_errors,
            pin: settings.pin,
            messages: Some(sender),
            stream: outputs.requested_stream(),
            interrupt,
            devices: self.cache.devices(),
            meetings: settings.together.meeting_place(),
        };
        if settings.engine.real() && self.plan.flowops.iter().any(|flowop| flowop.runs_command) {
            crate::os::child::prepare();
        }
        // Calibrate now, before threads of the run disturb it.
        record::overhead();
        let started = runtime::start(Arc::clone(&self.plan), &self.sets, options);
        let running = started.map_err(|fault| Failure::refused(fault.what, fault.help))?;
        Ok((running, printed))
    }
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
