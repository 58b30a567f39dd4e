//! What the command line decides for a whole session.

use crate::engine::Engine;
use crate::spec::Dialect;
use std::path::PathBuf;
use std::time::Duration;

/// For how long preparation may stand still by default: a server that is started again is waited for, a dead one is not for ever.
const PREPARE_TIMEOUT: Duration = Duration::from_mins(10);

/// How long a run is warmed up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarmupLength {
    /// For so long; not at all if it is zero.
    Fixed(Duration),
    /// Until the steady part is at least as long as what went before it, and ten intervals. At most as long as the measurement, or
    /// ten minutes if that has no end.
    UntilSteady,
}

/// A warm-up that does not become steady ends after this, if the measurement has no time of its own.
const LONGEST: Duration = Duration::from_mins(10);

impl WarmupLength {
    /// No warm-up.
    pub const NONE: Self = Self::Fixed(Duration::ZERO);

    /// The longest time that it takes before a measurement of `length`.
    pub(crate) fn longest(self, length: Option<Duration>) -> Duration {
        match self {
            Self::Fixed(time) => time,
            Self::UntilSteady => length.unwrap_or(LONGEST),
        }
    }
}

/// Options of a run, resolved.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Replaces the time of every run.
    pub runtime: Option<Duration>,
    /// `--set NAME=VALUE`, in order; `--dir D` is `dir=D`.
    pub sets: Vec<(String, String)>,
    /// The run seed.
    pub seed: u64,
    /// The seed of trees and sizes.
    pub layout_seed: u64,
    /// Each run is warmed up for so long.
    pub warmup: WarmupLength,
    /// The timeline's step.
    pub interval: Duration,
    /// Overrides what the scripts say.
    pub dialect: Option<Dialect>,
    /// Makes the calls.
    pub engine: &'static dyn Engine,
    /// Threads that make files.
    pub populate_threads: usize,
    /// Bind threads to processors.
    pub pin: bool,
    /// Drop the caches before each run.
    pub cold: bool,
    /// Wait until the disks are idle after population.
    pub quiesce: bool,
    /// The directory of the command line is made if it is not there.
    pub mkdir: bool,
    /// Every run goes on from the files that are there.
    pub as_is: bool,
    /// For how long preparation may stand still, where there is a bound.
    pub prepare_timeout: Option<Duration>,
    /// Keep the fresh directory.
    pub keep: bool,
    /// Remove the trees in a directory that the user named.
    pub clean: bool,
    /// Take over trees that others made.
    pub adopt: bool,
    /// Errors of operations are counted, and the run goes on.
    pub count_errors: bool,
    /// `system` may run commands.
    pub allow_system: bool,
    /// Block devices that may be overwritten.
    pub allow_device: Vec<PathBuf>,
    /// The first operations of each thread are hashed, so many.
    pub digest: Option<u64>,
    /// The first operations of each thread are written to this file, so many.
    pub trace: Option<(PathBuf, usize)>,
    /// The result file.
    pub json: Option<PathBuf>,
    /// Values of the environment that a script reads stand in the result.
    pub record_env: bool,
    /// The result leaves out what it says of the machine: its name, mounts, paths, the command line.
    pub redact: bool,
    /// Where everything lies that scripts write.
    pub results: PathBuf,
    /// Files and directories elsewhere that scripts may write.
    pub allow_write: Vec<PathBuf>,
    /// `fsflush` may drop the caches of the whole machine.
    pub allow_drop_caches: bool,
    /// The words of the command line, for the result.
    pub command_line: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            runtime: None,
            sets: Vec::new(),
            seed: 0,
            layout_seed: 1,
            warmup: WarmupLength::NONE,
            interval: Duration::from_secs(1),
            dialect: None,
            engine: crate::engine::DEFAULT,
            populate_threads: crate::os::limits::processors(),
            pin: false,
            cold: false,
            quiesce: true,
            mkdir: false,
            as_is: false,
            prepare_timeout: Some(PREPARE_TIMEOUT),
            keep: false,
            clean: false,
            adopt: false,
            count_errors: false,
            allow_system: false,
            allow_device: Vec::new(),
            digest: None,
            trace: None,
            json: None,
            record_env: false,
            redact: false,
            results: PathBuf::from("."),
            allow_write: Vec::new(),
            allow_drop_caches: false,
            command_line: Vec::new(),
        }
    }
}
