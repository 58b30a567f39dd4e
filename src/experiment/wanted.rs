//! What was asked for, complete: `experiment.toml`.

use super::hooks::Hooks;
use super::identity::Identity;
use crate::analysis::{RepeatRule, RunRange, Tolerance};
use crate::import::Metric;
use serde::{Deserialize, Serialize};

/// The name and version of the form.
pub(super) const SCHEMA: &str = "wmlrun.experiment/1";

/// An experiment as it was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// `wmlrun.experiment/1`.
    pub schema: String,
    /// What it is called: the script.
    pub name: String,
    /// When it was begun, RFC 3339.
    pub created: String,
    /// From which the order of runs and the seed of each run come.
    pub seed: u64,
    /// Words that come before the program's own command line, such as `mpirun -n 8`.
    pub launch: Vec<String>,
    /// The metrics; the verdict of a comparison stands on the first.
    pub metrics: Vec<String>,
    /// When it ends.
    pub rule: RuleWanted,
    /// What is run; one arm, or A and B.
    pub arms: Vec<Arm>,
    /// Commands between runs.
    pub hooks: Hooks,
    /// What it was begun with, and has to be resumed with.
    pub identity: Identity,
}

/// One way of running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// What it is called in results: its options.
    pub name: String,
    /// The words of its command line, without those that this program adds.
    pub words: Vec<String>,
}

/// What kind of experiment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentKind {
    /// One arm.
    Repeat,
    /// Two arms that take turns.
    Ab,
    /// An arm for each level of a factor.
    Sweep,
}

impl ExperimentKind {
    /// The command that makes it.
    pub fn command(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::Ab => "ab",
            Self::Sweep => "sweep",
        }
    }
}

/// When an experiment ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RuleWanted {
    /// Repeats of one arm.
    Repeat {
        /// At least so many runs.
        min_runs: u64,
        /// At most so many.
        max_runs: u64,
        /// Half-width over the mean that is enough; absent: the number decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ci: Option<f64>,
    },
    /// A comparison of two arms.
    Ab {
        /// The relative change that is too small to matter.
        tolerance: f64,
        /// How many blocks.
        blocks: Blocks,
    },
    /// The levels of a factor.
    Sweep {
        /// The variable.
        factor: String,
        /// Its value in each arm.
        levels: Vec<String>,
        /// Runs of each arm.
        repeats: u64,
        /// In the order of the levels, not shuffled.
        in_order: bool,
    },
}

/// How many blocks a comparison takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocks {
    /// So many.
    Exactly(u64),
    /// As many as a pilot of four says are needed to call equal arms not worse.
    Pilot,
    /// Until it is clear, with looks after 6, 12 and 24.
    UntilClear,
}

impl Experiment {
    /// What kind it is.
    pub fn kind(&self) -> ExperimentKind {
        match self.rule {
            RuleWanted::Repeat { .. } => ExperimentKind::Repeat,
            RuleWanted::Ab { .. } => ExperimentKind::Ab,
            RuleWanted::Sweep { .. } => ExperimentKind::Sweep,
        }
    }

    /// Its metrics; those that were read from a file and are none are left out.
    pub fn metrics(&self) -> Vec<Metric> {
        self.metrics.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// The rule of repeats.
    pub fn repeat_rule(&self) -> Option<RepeatRule> {
        match self.rule {
            RuleWanted::Repeat { min_runs, max_runs, until_ci } => {
                Some(RepeatRule { runs: RunRange { min: min_runs, max: max_runs }, target: until_ci, level: 0.95 })
            }
            RuleWanted::Ab { .. } | RuleWanted::Sweep { .. } => None,
        }
    }

    /// The tolerance of a comparison.
    pub fn tolerance(&self) -> Option<Tolerance> {
        match self.rule {
            RuleWanted::Ab { tolerance, .. } => Some(Tolerance(tolerance)),
            RuleWanted::Repeat { .. } | RuleWanted::Sweep { .. } => None,
        }
    }
}
