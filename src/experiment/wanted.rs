//! The complete description of an experiment, `experiment.toml`.

use super::hooks::{HookTime, Hooks};
use super::identity::Identity;
use super::order::StudyOrder;
use super::scopes::ScopeHook;
use super::stop::StoppingRule;
use crate::analysis::{DEFAULT_PRECISION, PrecisionRule, RepeatRule, ResponseMethod, RunRange, Tolerance};
use crate::comparison::{FactorialTables, level_indices};
use crate::import::{Metric, Observation};
use crate::util::printable;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub(super) use crate::import::folder::EXPERIMENT_SCHEMA as SCHEMA;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The largest number of times that a disturbed run is made again.
pub const MAX_RETRIES: u64 = 100;

/// The note on a comparison of equal arms.
pub const EQUAL_ARMS: &str =
    "A and B have the same options: this is a comparison of equal arms (see `wmlrun repeat --floor`)";

/// The test that gives the verdict of a comparison.
pub const VERDICT: &str = "signed rank";

/// The note on a comparison that was started by an earlier version, with another verdict.
pub(super) const OTHER_VERDICT: &str = "started by an earlier version, whose verdict was that of a t-test on blocks: this one \
    is that of the signed-rank test on pairs of runs";

/// The description of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// `wmlrun.experiment/1`.
    pub schema: String,
    /// The experiment file, as it was named; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The name of the experiment: the script.
    pub name: String,
    /// The time of its start, RFC 3339.
    pub created: String,
    /// The working directory: relative paths and the commands depend on it.
    pub directory: String,
    /// The maximum duration of a command before or after a run, in seconds.
    pub command_timeout: f64,
    /// The time in which all runs should end, in seconds; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
    /// The seed from which the order of the runs and the seed of each run are derived.
    pub seed: u64,
    /// Words that are put before the program's command line, such as `mpirun -n 8`.
    pub launch: Vec<String>,
    /// The metrics. The verdict of a comparison is based on the first.
    pub metrics: Vec<String>,
    /// The limits that each arm must keep (`--fail-if`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// The commands of which the output is kept after each run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<String>,
    /// Whether the used space of the file systems is recorded before and after each run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub record_space: bool,
    /// The factor of `--scale`, and what it has made smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<(f64, Vec<String>)>,
    /// The names of the levels of each factor in results, if it has changed what they say. Hooks get those of the rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaled_names: Vec<Vec<String>>,
    /// The maximum number of times that a run is made again if other programs disturbed it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_disturbed: u64,
    /// The test that gave the verdict when it was started; empty in experiments of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verdict: String,
    /// The rule that decides on the number of runs.
    pub rule: RuleWanted,
    /// The arms: one, or A and B, or one for each level of a factor, or one for each combination of the levels of
    /// several factors.
    pub arms: Vec<Arm>,
    /// The commands between runs.
    pub hooks: Hooks,
    /// The commands of an experiment file, from the outer scopes to the inner ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<ScopeHook>,
    /// The conditions at its start, which must be the same when it is resumed.
    pub identity: Identity,
}

/// An arm of an experiment: one way of running the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// The name in results: its options.
    pub name: String,
    /// The words of its command line, without those that the runner adds.
    pub words: Vec<String>,
    /// The metric of its runs instead of the first one of the experiment; absent if it is that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentKind {
    /// Repeated runs of one arm.
    Repeat,
    /// A comparison of two arms with interleaved runs.
    Ab,
    /// A load curve, with an arm for each level of a factor.
    Sweep,
    /// A factorial experiment, with an arm for each combination of the levels of its factors.
    Factorial,
}

impl ExperimentKind {
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::Ab => "ab",
            Self::Sweep => "sweep",
            Self::Factorial => "experiment",
        }
    }
}

/// The rule that decides on the number of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RuleWanted {
    /// The rule for repeated runs of one arm.
    Repeat {
        /// The minimum number of runs.
        min_runs: u64,
        /// The maximum number of runs.
        max_runs: u64,
        /// The relative half-width of the interval that is precise enough; absent if the number of runs is fixed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ci: Option<f64>,
    },
    /// The rule for a comparison of two arms.
    Ab {
        /// The largest relative change that does not matter.
        tolerance: f64,
        /// The rule for the number of blocks.
        blocks: Blocks,
    },
    /// The rule for a load curve.
    Sweep {
        /// The variable that is the factor.
        factor: String,
        /// The value of the variable in each arm.
        levels: Vec<String>,
        /// The number of runs of each arm.
        repeats: u64,
        /// Whether the runs are in the order of the levels instead of a random one.
        in_order: bool,
        /// The method of the overall response time; absent in experiments of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        method: Option<ResponseMethod>,
        /// The search that decides on levels and runs; absent if they are fixed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        search: Option<CapacityWanted>,
    },
    /// The rule for a factorial experiment. Its arms are the cells, of which the level of the last factor changes first.
    Factorial {
        factors: Vec<WantedFactor>,
        /// The minimum number of runs of each cell.
        min_runs: u64,
        /// The maximum number of runs of each cell.
        max_runs: u64,
        /// The relative half-width of the interval that is precise enough; absent if the number of runs is fixed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ci: Option<f64>,
        /// When the intervals are narrow enough.
        #[serde(default, skip_serializing_if = "PrecisionRule::is_default")]
        stop: PrecisionRule,
        /// The order of the runs.
        #[serde(rename = "in_order")]
        order: StudyOrder,
        /// The tables of the result besides that of the cells.
        #[serde(default, skip_serializing_if = "FactorialTables::is_default")]
        tables: FactorialTables,
    },
}

impl RuleWanted {
    /// True if it is the rule of a comparison of two arms.
    pub(crate) fn is_comparison(&self) -> bool {
        matches!(self, Self::Ab { .. })
    }

    /// The order of the runs.
    pub(crate) fn order(&self) -> StudyOrder {
        match self {
            Self::Ab { .. } => StudyOrder::Pairs,
            // The results decide on the next load.
            Self::Sweep { search: Some(_), .. } => StudyOrder::Cells,
            Self::Repeat { .. } | Self::Sweep { in_order: false, .. } => StudyOrder::Blocks,
            Self::Sweep { in_order: true, .. } => StudyOrder::Sequence,
            Self::Factorial { order, .. } => *order,
        }
    }

    /// When the experiment ends.
    pub(crate) fn stop(&self) -> StoppingRule {
        let stop = PrecisionRule::Corrected;
        let rule = |min, max, target| RepeatRule { runs: RunRange { min, max }, target, level: 0.95, stop };
        match *self {
            Self::Repeat { min_runs, max_runs, until_ci } => StoppingRule::Series(rule(min_runs, max_runs, until_ci)),
            Self::Ab { tolerance, blocks } => StoppingRule::Verdict { tolerance: Tolerance(tolerance), blocks },
            Self::Sweep { search: Some(_), .. } => StoppingRule::Capacity,
            Self::Sweep { repeats, .. } => StoppingRule::Cells(rule(repeats, repeats, None)),
            Self::Factorial { min_runs, max_runs, until_ci, stop, .. } => {
                StoppingRule::Cells(RepeatRule { stop, ..rule(min_runs, max_runs, until_ci) })
            }
        }
    }

    /// Changes the number of runs of each arm: exactly so many, or a range that ends when the intervals are narrow enough.
    /// Returns the reason if the rule has no such number, or if further runs would not be in its order.
    pub(super) fn set_runs(&mut self, (min, max): (u64, u64)) -> Result<(), &'static str> {
        match self {
            Self::Ab { .. } => Err("a comparison of two sides has blocks"),
            Self::Factorial { order, .. } if !order.has_blocks() => {
                Err("all runs of a cell are made before those of the next, so that none can be added")
            }
            Self::Sweep { search: Some(_), .. } => Err("a search decides on its runs itself"),
            Self::Sweep { .. } if min != max => Err("a sweep has a fixed number of runs of each value"),
            Self::Sweep { repeats, .. } => {
                *repeats = max;
                Ok(())
            }
            Self::Repeat { min_runs, max_runs, until_ci } | Self::Factorial { min_runs, max_runs, until_ci, .. } => {
                (*min_runs, *max_runs) = (min, max);
                *until_ci = precision((min, max), *until_ci);
                Ok(())
            }
        }
    }
}

/// Returns the precision at which a range of runs ends; `None` for a fixed number.
pub fn precision((min, max): (u64, u64), wanted: Option<f64>) -> Option<f64> {
    (min < max).then(|| wanted.unwrap_or(DEFAULT_PRECISION))
}

/// What a sweep searches for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityWanted {
    /// The limit that is to be kept.
    pub limit: String,
    /// Whether the variable has whole numbers only.
    pub is_whole: bool,
    /// The time in seconds than which no run is shorter.
    pub least: f64,
}

/// The same words with another value of the variable.
pub(super) fn with_value(words: &[String], factor: &str, level: &str, value: &str) -> Vec<String> {
    let set = format!("{factor}={level}");
    let replaced = |word: &String| match word.strip_suffix(&set) {
        Some(option @ ("" | "--set=")) => format!("{option}{factor}={value}"),
        _ => word.clone(),
    };
    words.iter().map(replaced).collect()
}

/// A factor of a factorial experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedFactor {
    pub name: String,
    /// The names of its levels.
    pub levels: Vec<String>,
}

/// The rule for the number of blocks of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocks {
    /// A fixed number.
    Exactly(u64),
    /// The number that a pilot of four blocks predicts for the verdict *not worse* on equal arms.
    Pilot,
    /// Sequential: until the verdict is not *unclear*, with interim looks after 6, 12 and 24 blocks.
    UntilClear,
}

impl Experiment {
    pub(crate) fn kind(&self) -> ExperimentKind {
        match self.rule {
            RuleWanted::Repeat { .. } => ExperimentKind::Repeat,
            RuleWanted::Ab { .. } => ExperimentKind::Ab,
            RuleWanted::Sweep { .. } => ExperimentKind::Sweep,
            RuleWanted::Factorial { .. } => ExperimentKind::Factorial,
        }
    }

    /// Checks what the other methods rely on: there are metrics, and as many arms as the kind of the experiment has: one for
    /// each level of a sweep, and for each combination of levels of a factorial experiment. Returns the reason if it does not
    /// hold.
    pub(super) fn check_shape(&self) -> Result<(), &'static str> {
        if self.metrics().is_empty() || self.arms.is_empty() {
            return Err("it has no metric or no arm");
        }
        let arms = match &self.rule {
            RuleWanted::Repeat { .. } => Some(1),
            RuleWanted::Ab { .. } => Some(2),
            RuleWanted::Sweep { levels, .. } => Some(levels.len()),
            RuleWanted::Factorial { factors, .. } => {
                factors.iter().map(|factor| factor.levels.len()).try_fold(1, usize::checked_mul)
            }
        };
        if arms != Some(self.arms.len()) {
            return Err("the number of its arms is not that of its levels");
        }
        Ok(())
    }

    /// The results folder if none is named, `wmlrun-results/NAME-TIME`. It may exist.
    pub(crate) fn default_folder(&self) -> PathBuf {
        let stem = Path::new(&self.name).file_stem().map_or_else(|| "script".into(), |stem| stem.to_string_lossy());
        let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
        let name: String = stem.chars().map(plain).collect();
        let time = self.created.replace([':', '-'], "");
        Path::new("wmlrun-results").join(format!("{name}-{time}"))
    }

    /// Returns the names of the first two arms for people. An arm without options has the name of its own command before
    /// a run, if there is one.
    pub(crate) fn arm_names(&self) -> [String; 2] {
        [0, 1].map(|n: usize| {
            if let Some(arm) = self.arms.get(n).filter(|arm| !arm.name.is_empty()) {
                return arm.name.clone();
            }
            let others = self.hooks.of(HookTime::Before, 1 - n);
            let own = self.hooks.of(HookTime::Before, n);
            let command = own.iter().map(|(_, text)| *text).find(|text| !others.iter().any(|(_, other)| other == text));
            command.map_or_else(
                || "no options of its own".to_owned(),
                |text| format!("after `{}`", printable::short(text, 60)),
            )
        })
    }

    /// True if there are two arms that differ neither in their options nor in their commands.
    pub(crate) fn has_equal_arms(&self) -> bool {
        let [a, b] = &self.arms[..] else { return false };
        let has_equal_commands = |time| self.hooks.of(time, 0) == self.hooks.of(time, 1);
        a.words == b.words && HookTime::ALL.into_iter().all(has_equal_commands)
    }

    /// Returns the metrics. Names in the file that are not metrics are ignored.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        self.metrics.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// Returns the name by which an arm is known in results, as in `DIR:ARM`: `a`, `FACTOR=LEVEL` or that of its cell.
    /// Returns an empty text for a single arm.
    pub(crate) fn arm_label(&self, arm: usize) -> String {
        match &self.rule {
            RuleWanted::Repeat { .. } => String::new(),
            RuleWanted::Ab { .. } => if arm == 0 { "a" } else { "b" }.to_owned(),
            RuleWanted::Sweep { factor, levels, .. } => {
                format!("{factor}={}", levels.get(arm).map_or("", String::as_str))
            }
            RuleWanted::Factorial { .. } => self.arms.get(arm).map_or_else(String::new, |arm| arm.name.clone()),
        }
    }

    /// Returns ` (ARM)`, for the number of a run; an empty text for a single arm.
    pub(crate) fn arm_suffix(&self, arm: usize) -> String {
        if self.arms.len() > 1 { format!(" ({})", self.arm_title(arm)) } else { String::new() }
    }

    /// Returns an observation of an arm, which says so if there are several.
    pub(super) fn in_arm(&self, arm: usize, observation: Observation) -> Observation {
        let arm = if self.arms.len() > 1 { self.arm_title(arm) } else { String::new() };
        Observation { arm, ..observation }
    }

    /// Returns the title of an arm in texts: its label, for a comparison A or B, for repeats the name of the script.
    pub(crate) fn arm_title(&self, arm: usize) -> String {
        match self.kind() {
            ExperimentKind::Repeat => self.arms.get(arm).map_or_else(String::new, |arm| arm.name.clone()),
            ExperimentKind::Ab => self.arm_label(arm).to_uppercase(),
            ExperimentKind::Sweep | ExperimentKind::Factorial => self.arm_label(arm),
        }
    }

    /// Returns the metrics of an arm: those of the experiment, of which the arm may replace the first by its own.
    pub(crate) fn metrics_of(&self, arm: usize) -> Vec<Metric> {
        let mut metrics = self.metrics();
        let own = self.arms.get(arm).and_then(|arm| arm.metric.as_ref()?.parse().ok());
        if let (Some(own), Some(first)) = (own, metrics.first_mut()) {
            *first = own;
        }
        metrics
    }

    /// True if an arm has a metric of its own.
    pub(crate) fn has_own_metrics(&self) -> bool {
        self.arms.iter().any(|arm| arm.metric.is_some())
    }

    /// Returns the values of the metrics in a run of an arm, or `None` when the run failed or lacks one. In a factorial
    /// experiment, whose cells may have different scripts, those that it lacks are NaN.
    pub(super) fn values_of(&self, arm: usize, run: &Observation) -> Option<Vec<f64>> {
        if run.failure.is_some() {
            return None;
        }
        let values: Vec<Option<f64>> = self.metrics_of(arm).iter().map(|metric| metric.of(run)).collect();
        match self.kind() {
            ExperimentKind::Factorial if values.iter().any(Option::is_some) => {
                Some(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
            }
            _ => values.into_iter().collect(),
        }
    }

    /// True if commands are executed between runs, which may mount file systems.
    pub(crate) fn has_commands(&self) -> bool {
        !self.hooks.0.is_empty() || !self.scopes.is_empty()
    }

    /// True if a failed run is a result of its arm, and the experiment continues. A search ends instead: the failure may
    /// have nothing to do with the limit.
    pub(crate) fn keeps_failures(&self) -> bool {
        match &self.rule {
            RuleWanted::Sweep { search, .. } => search.is_none(),
            _ => self.kind() == ExperimentKind::Factorial,
        }
    }

    /// A metric that a run lacks although the experiment can't go on without it.
    pub(super) fn lacking(&self, arm: usize, run: &Observation) -> Option<Metric> {
        let needed = match &self.rule {
            // The first is that of the limit.
            RuleWanted::Sweep { search: Some(_), .. } => 1,
            _ if self.keeps_failures() => 0,
            _ => usize::MAX,
        };
        self.metrics_of(arm).into_iter().take(needed).find(|metric| metric.of(run).is_none())
    }

    /// Returns the index of an arm's level of each factor. Empty unless the experiment is factorial.
    pub(crate) fn levels_of(&self, arm: usize) -> Vec<usize> {
        let RuleWanted::Factorial { factors, .. } = &self.rule else { return Vec::new() };
        level_indices(factors.iter().map(|factor| factor.levels.len()), arm)
    }

    /// The rule for the runs of each cell; `None` for a comparison.
    pub(crate) fn repeat_rule(&self) -> Option<RepeatRule> {
        match self.rule.stop() {
            StoppingRule::Series(rule) | StoppingRule::Cells(rule) => Some(rule),
            StoppingRule::Verdict { .. } | StoppingRule::Capacity => None,
        }
    }

    /// The number of runs without which there is no result: three for an interval, two blocks for a verdict, one run of
    /// each cell, unless they follow one another.
    pub(super) fn least_runs(&self) -> usize {
        match self.rule.stop() {
            StoppingRule::Series(_) => 3,
            StoppingRule::Verdict { .. } => 8,
            StoppingRule::Cells(_) | StoppingRule::Capacity => self.rule.order().block_len(self.arms.len()),
        }
    }

    /// The arm of a run, which is counted from 0, if the journal does not have it. Without blocks each cell before it is
    /// taken to have as many runs as it may have.
    pub(super) fn arm_of_run(&self, run: usize) -> usize {
        let (order, arms) = (self.rule.order(), self.arms.len());
        let len = order.block_len(arms);
        let most = self.repeat_rule().map_or(1, |rule| rule.runs.max.max(1));
        let of_block = order.block(arms, self.seed, run / len).get(run % len).copied();
        of_block.unwrap_or_else(|| (run / usize::try_from(most).unwrap_or(usize::MAX)).min(arms - 1))
    }
}
