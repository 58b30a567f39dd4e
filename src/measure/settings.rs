//! Options of the command line that apply to a whole session.
//!
//! To add an option of a run: a field of `WorkloadArgs` (`cli/args.rs`) with its help, a field of [`Settings`] with its
//! default, and a line in `workload_settings` (`cli/mod.rs`). `repeat`, `ab` and the like pass it on as text and keep it
//! for `--resume`. Help, completion, manual pages and the table of docs/options.md come from `cli/args.rs`; add it to
//! the topics of that page. One that names a path has a row in `tests/it/places.rs`.

use super::Required;
use crate::engine::Engine;
use crate::ranks::{Ranks, SingleRank};
use crate::spec::{Dialect, Division, Sharing};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The default limit on the time in which preparation makes no progress: long enough for the restart of a server.
const PREPARE_TIMEOUT: Duration = Duration::from_mins(10);

/// The length of the warm-up of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarmupLength {
    /// This long; no warm-up if zero.
    Fixed(Duration),
    /// Until the steady part is at least as long as the part before it, and at least ten intervals. At most as long as
    /// the measurement, or ten minutes if that has no time limit.
    UntilSteady,
}

/// The limit on a warm-up that does not become steady, if the measurement has no time limit.
const MAX_WARMUP: Duration = Duration::from_mins(10);

impl WarmupLength {
    /// No warm-up.
    pub const NONE: Self = Self::Fixed(Duration::ZERO);

    /// Returns the longest warm-up before a measurement of `length`.
    pub(crate) fn longest(self, length: Option<Duration>) -> Duration {
        match self {
            Self::Fixed(time) => time,
            Self::UntilSteady => length.unwrap_or(MAX_WARMUP),
        }
    }
}

/// The options of a session after their evaluation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The processes that make the runs together.
    pub ranks: Arc<dyn Ranks>,
    /// The ranks that share the trees of file sets for which the script does not say it.
    pub share: Sharing,
    /// What each of the ranks runs.
    pub division: Division,
    /// Overrides the run time of every run.
    pub runtime: Option<Duration>,
    /// The values of `--set NAME=VALUE` in order. `--dir D` is `dir=D`.
    pub sets: Vec<(String, String)>,
    /// The directory below which the paths of file sets are.
    pub below: Option<PathBuf>,
    /// The run seed.
    pub seed: u64,
    /// The seed of trees and file sizes.
    pub layout_seed: u64,
    /// The warm-up of each run.
    pub warmup: WarmupLength,
    /// The interval of the time series.
    pub interval: Duration,
    /// Overrides the dialect of the scripts.
    pub dialect: Option<Dialect>,
    /// The engine that makes the calls.
    pub engine: &'static dyn Engine,
    /// The number of threads that create files.
    pub populate_threads: usize,
    /// Bind threads to processors.
    pub pin: bool,
    /// Drop the caches before each run.
    pub cold: bool,
    /// Wait until the disks are idle after files were created.
    pub quiesce: bool,
    /// Create the directory of the command line if it does not exist.
    pub mkdir: bool,
    /// The file systems on which a run is allowed.
    pub required: Required,
    /// Start every run with the existing files.
    pub as_is: bool,
    /// The limit on the time in which preparation makes no progress. `None` for no limit.
    pub prepare_timeout: Option<Duration>,
    /// Keep the fresh directory.
    pub keep: bool,
    /// Remove the trees in a directory that the user named.
    pub clean: bool,
    /// Use trees that wmlrun did not create.
    pub adopt: bool,
    /// Count errors of operations and continue the run.
    pub count_errors: bool,
    /// Allow `system` to run commands.
    pub allow_system: bool,
    /// The number of operations of each thread that are hashed for the digest, from the first on.
    pub digest: Option<u64>,
    /// The trace file, and the number of operations of each thread that are written to it, from the first on.
    pub trace: Option<(PathBuf, usize)>,
    /// The result file.
    pub json: Option<PathBuf>,
    /// The name of the workload, if it is one of a profile.
    pub workload: Option<String>,
    /// The file of the joined result of a batch of which this is one workload. The batch writes it.
    pub joined: Option<PathBuf>,
    /// The table to which each run is appended.
    pub append: Option<PathBuf>,
    /// The file of the live stream, which the front end writes.
    pub live: Option<PathBuf>,
    /// Replace files of the result and the trace that this program has not written.
    pub force: bool,
    /// The label of the result.
    pub label: Option<String>,
    /// The remark on the result.
    pub note: Option<String>,
    /// Include values of environment variables that a script reads in the result.
    pub record_env: bool,
    /// Redact the result: host name, mounts, paths, the command line.
    pub redact: bool,
    /// The results directory: the directory of all files that scripts write.
    pub results: PathBuf,
    /// Files and directories elsewhere that scripts may write.
    pub allow_write: Vec<PathBuf>,
    /// Allow `fsflush` to drop the caches of the whole machine.
    pub allow_drop_caches: bool,
    /// The arguments of the command line, for the result.
    pub command_line: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ranks: Arc::new(SingleRank::new()),
            share: Sharing::default(),
            division: Division::default(),
            runtime: None,
            sets: Vec::new(),
            below: None,
            seed: 0,
            layout_seed: crate::fileset::DEFAULT_LAYOUT_SEED,
            warmup: WarmupLength::NONE,
            interval: Duration::from_secs(1),
            dialect: None,
            engine: crate::engine::DEFAULT,
            populate_threads: crate::os::limits::processors(),
            pin: false,
            cold: false,
            quiesce: true,
            mkdir: false,
            required: Required::default(),
            as_is: false,
            prepare_timeout: Some(PREPARE_TIMEOUT),
            keep: false,
            clean: false,
            adopt: false,
            count_errors: false,
            allow_system: false,
            digest: None,
            trace: None,
            json: None,
            workload: None,
            joined: None,
            append: None,
            live: None,
            force: false,
            label: None,
            note: None,
            record_env: false,
            redact: false,
            results: PathBuf::from("."),
            allow_write: Vec::new(),
            allow_drop_caches: false,
            command_line: Vec::new(),
        }
    }
}
