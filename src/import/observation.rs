//! Observations: the figures of runs by name, with their conditions.

use super::metric::Metric;
use crate::report::metrics::VALUE;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The maximum number of observations of a side.
pub(super) const MAX_OBSERVATIONS: usize = 100_000;

/// The reason for an error of a side that has more than [`MAX_OBSERVATIONS`].
pub(super) const TOO_MANY: &str = "it has more than 100,000 observations";

/// A run, measured by this program or another one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The source: a file, and the number of the run if the file has several.
    pub source: String,
    /// The name of the script, without its directory and ending; empty in results of other programs.
    pub workload: String,
    /// The title of its arm, for a run of an experiment with several arms. Otherwise empty.
    pub arm: String,
    /// The name of the machine; empty in results of other programs.
    pub machine: String,
    /// Figures by metric: `ops` (operations per second), `mib` (MiB/s), `latency.mean`, `latency.p50`, `latency.p99`
    /// (nanoseconds). The same figures of a flowop have the prefix `NAME.`.
    pub figures: BTreeMap<String, f64>,
    /// Figures that may explain a change of a metric.
    pub causes: BTreeMap<&'static str, f64>,
    /// The names of its I/O flowops.
    pub steps: Vec<String>,
    /// Those of them that wait until data are on the storage, such as an fsync.
    pub syncs: BTreeSet<String>,
    /// The conditions of the run: kernel, mounts, script, variables, cache state.
    pub conditions: BTreeMap<String, String>,
    /// The start of the run in seconds since 1970, for fio its end; `None` when it is unknown.
    pub started: Option<i64>,
    /// Whether other programs used the processors or the devices during the run, as the warnings `processor_bound` and
    /// `shared_devices` of its result say.
    pub disturbed: bool,
    /// Whether the rate changed during the run, as the warnings `unsteady` and `not_steady` of its result say.
    pub unsteady: bool,
    /// The codes of the other warnings of its result, except those about a short run: an experiment has several runs.
    pub warnings: Vec<String>,
    /// Whether another program printed the figures as text, which may be rounded.
    pub is_rounded: bool,
    /// The numbers of operations on which the figures are based, by the prefix of the figures: empty for the whole run,
    /// `NAME.` for a flowop. They are absent in results of other programs.
    pub operations: BTreeMap<String, f64>,
    /// The reason why the run failed; `None` when it is complete.
    pub failure: Option<String>,
    /// Whether its file is complete: the script made no run after the last one in it. `false` for results of other
    /// programs and of earlier versions, which do not say so.
    pub file_is_complete: bool,
    /// The number of runs of the script, of which this one is the last, for a run of an experiment. Otherwise 0.
    pub script_runs: usize,
    /// Whether it replayed a trace, which takes as long as its calls.
    pub is_replay: bool,
    /// The mean speed of the negative control before and after a run of an experiment, in units of work per second;
    /// `None` without a control.
    pub control: Option<f64>,
}

impl Observation {
    /// Returns the last of the runs in a result: if a script makes several, an experiment is about the last of them.
    pub(crate) fn last_of(mut runs: Vec<Self>) -> Option<Self> {
        let script_runs = runs.len();
        runs.pop().map(|run| Self { script_runs, ..run })
    }
}

/// The observations of one side of a comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImportedSide {
    /// The observations, in the order of time.
    pub runs: Vec<Observation>,
    /// Notes about runs that are not among them.
    pub notes: Vec<String>,
    /// The metrics of the experiment, if they are of a results folder.
    pub metrics: Vec<Metric>,
    /// The command line of their arm, if they are of one arm of a results folder.
    pub words: Vec<String>,
    /// Their blocks, if they are the runs of one arm of an experiment whose arms alternated in blocks.
    pub blocks: Option<SideBlocks>,
}

/// The blocks of the runs of an arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SideBlocks {
    /// The results folder.
    pub folder: PathBuf,
    /// The index of the arm.
    pub arm: usize,
    /// For each run, the number of its block, from 0.
    pub of_runs: Vec<usize>,
}

impl ImportedSide {
    /// True if the observations are the numbers of a column, which have no name.
    pub(crate) fn is_column(&self) -> bool {
        self.runs.iter().any(|run| run.figures.contains_key(VALUE))
    }

    /// Makes the numbers of a column the figures of a metric.
    pub(crate) fn name_column(&mut self, metric: &Metric) {
        for figures in self.runs.iter_mut().map(|run| &mut run.figures) {
            if let Some(value) = figures.remove(VALUE) {
                figures.insert(metric.to_string(), value);
            }
        }
    }
}

/// Returns the number of a run in its file, if that has several. The number is at the end of its source.
pub(crate) fn number_in_file(run: &Observation) -> Option<usize> {
    run.source.rsplit_once(", run ")?.1.parse().ok()
}

/// Returns the name of observation `n`, counted from 0, of a source with `all` observations. It has a number if there
/// are several.
pub(super) fn numbered(source: &str, n: usize, all: usize) -> String {
    if all == 1 { source.to_owned() } else { format!("{source}, run {}", n + 1) }
}
