//! The documents of experiments and their sheets: a comparison of B with A (`wmlrun.comparison/1`), repeats
//! (`wmlrun.repeats/1`), a sweep (`wmlrun.sweep/1`) and a factorial experiment (`wmlrun.factorial/1`).
//!
//! Input: observations in the order of time. Output: plain data, its sheet for people and its figures for programs. Not
//! in here: the execution of the runs (`experiment`), and the statistics (`statistics`).

mod advice;
#[cfg(test)]
mod answer_tests;
mod beside;
mod build;
#[cfg(test)]
mod calibration_tests;
mod cautions;
#[cfg(test)]
mod causes_tests;
mod comparison_answer;
mod comparison_sheet;
mod conditions;
mod curve;
mod differences;
mod draw;
mod effects;
mod factorial;
mod factorial_sheet;
mod factorial_tables;
mod findings;
mod formats;
mod improvement;
#[cfg(test)]
mod improvement_tests;
mod level_findings;
mod level_groups;
mod level_tests;
mod limits;
mod notes;
mod numbers;
mod pairs;
mod phrases;
mod pivot;
mod repeats;
mod repeats_sheet;
mod sfs;
mod steps;
mod study_document;
mod suite;
mod sweep;
mod sweep_sheet;
mod tested;
mod units;
mod unlike;
mod variation;
mod verdict_notes;
mod wins;

pub use beside::{PUBLISHED, Published};
pub use build::{Comparer, ComparisonMethod, DEFAULT_TOLERANCE, measured};
pub use cautions::{Caution, Validity};
pub use comparison_sheet::{differs_text, shapiro_wilk};
pub use conditions::lines as condition_lines;
pub use curve::CurveDocument;
pub use differences::{ANNOTATIONS, Difference, DifferenceKind, differences, different_workloads};
pub use draw::DrawRule;
pub use effects::{FactorEffects, LevelEffect};
pub use factorial::{CellGroup, cell_groups, level_indices};
pub use factorial::{CellMetric, FactorLevels, Factorial, FactorialCell, FactorialDesign};
pub use factorial_tables::FactorialTables;
pub use formats::{AsJson, ComparisonFormat, FORMATS, ResultDocument, find_format};
pub(crate) use formats::{OF_FIGURES, OF_TABLES, OF_VERDICTS};
pub use improvement::{Improvement, ImprovementForm};
pub use level_groups::GroupTable;
pub use level_tests::{LevelTests, TestedLevel};
pub use limits::limit_table;
pub use notes::{disturbed_note, outlying};
pub use numbers::{confidence, figure, interval_text, percent, probability, ratio, with_direction, with_level};
pub use pivot::{Pivot, PivotRow};
pub use repeats::{RepeatedMetric, Repeats, repeats};
pub use sfs::SfsSheet;
pub use steps::TestedStep;
pub use study_document::StudyDocument;
pub use suite::{SuiteComparison, SuiteTest};
pub use sweep::{LoadLimit, Sweep, SweepPoint, sweep};
pub use tested::{RunOrder, Runs};
pub use variation::{CellSpread, Variation, VariationRow};
pub use wins::{WinsDocument, WinsMethod, condition_notes, several_runs_note};

use crate::analysis::{
    Change, ComparisonVerdict, Estimate, NoiseFloor, NormalPlot, Point, SampleSummary, ShapiroWilk, StudyTest,
    Tolerance, classify,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The name and version of the schema.
pub const SCHEMA: &str = "wmlrun.comparison/1";

/// A comparison of B with A. Figures that could not be computed are null. Latencies are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// The name of the comparison: a script, or the names of both sides.
    pub name: String,
    /// The workload of both sides, if `name` is not that and they have one.
    #[serde(skip)]
    pub workload: String,
    /// The metric on which the verdict is based.
    pub metric: String,
    /// Whether a higher value of the metric is better.
    pub higher_is_better: bool,
    /// Whether the runs of A and B were interleaved, so that a drift of the machine cancels.
    pub interleaved: bool,
    /// The observations of A.
    pub a: ComparedSide,
    /// The observations of B.
    pub b: ComparedSide,
    /// The confidence level of the intervals of the ratio, the difference and the sign test. It is 0.95, or that of the
    /// look at which a sequential comparison ended: its looks share the error of 5 %.
    pub level: f64,
    /// The ratio of B to A (of geometric means) as measured, also if less is better, with its interval.
    pub ratio: Estimate,
    /// The same, widened by the noise floor on both sides: the interval on which the verdict is based, for runs of
    /// different days; null for others.
    pub ratio_with_floor: Option<Estimate>,
    /// The difference of the arithmetic means, B minus A, with its interval from Welch's t-test.
    pub difference: Estimate,
    /// The test that gives the interval of the ratio, from the logarithms of the values.
    pub test: NamedTest,
    /// The sign-test interval of the ratio; null if the runs were not interleaved or were too few.
    pub sign: Option<Estimate>,
    /// The verdict on B.
    pub verdict: ComparisonVerdict,
    /// The largest relative change that does not matter.
    pub tolerance: f64,
    /// The detectable loss: the smallest loss for which the verdict would be *worse* with a probability of 80 %; null
    /// if it is more than 99.9 %, or unknown. The noise floor is part of it for runs of different days.
    pub could_have_seen: Option<f64>,
    /// The total number of runs for which the verdict on equal sides would be *not worse* with a probability of 80 %,
    /// at the level of the intervals; null if a thousand are too few, or unknown.
    pub runs_needed: Option<u64>,
    /// The negative control; null without one.
    pub control: Option<ControlResult>,
    /// The noise floor of this workload on this machine and device; null if it is unknown.
    pub floor: Option<NoiseFloor>,
    /// The interim look at which a sequential comparison ended; null for other comparisons.
    pub look: Option<EndingLook>,
    /// The label and the note, if all runs have the same.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Conditions that differ between A and B.
    pub differs: Vec<Difference>,
    /// Figures that changed together with the metric, in the order in which they explain each other.
    pub causes: Vec<Change>,
    /// Other metrics, without a verdict. Their p-values are corrected for their number (Holm).
    pub others: Vec<OtherMetric>,
    /// The tests of the study's method, if this was requested.
    pub study: Option<StudyTest>,
    /// The plots of both samples, with the study's method.
    pub shapes: Option<Shapes>,
    /// Notes on the validity of the comparison.
    pub notes: Vec<String>,
    /// The reason why the interval gives no verdict, of which `notes` has the text.
    #[serde(skip)]
    pub doubt: Option<IntervalDoubt>,
    /// The steps of the workload, the one that changed most first.
    #[serde(skip)]
    pub steps: Vec<TestedStep>,
    /// What would give a verdict.
    #[serde(skip)]
    pub advice: Option<String>,
    #[serde(flatten)]
    pub validity: Validity,
}

/// The reason why an interval gives no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalDoubt {
    /// The runs are of different days, and the difference between days is unknown.
    UnknownFloor,
    /// The values of a side are equal, so that their variation is unknown.
    EqualValues,
    /// Other programs disturbed runs, and may be the reason of the difference.
    Disturbed,
}

impl Comparison {
    /// True if the verdict depends on a machine that did not change, and the control can't show that. Runs that
    /// were not interleaved may be equal because a change of the machine hides another one.
    fn lacks_control(&self) -> bool {
        let claims = match self.verdict {
            ComparisonVerdict::Better | ComparisonVerdict::Worse => true,
            ComparisonVerdict::Same | ComparisonVerdict::NotWorse => !self.interleaved,
            ComparisonVerdict::Unclear | ComparisonVerdict::Invalid => false,
        };
        claims && self.control.is_some_and(|control| control.is_unknown(self.tolerance))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComparedSide {
    /// The name: the options of the arm, or a path.
    pub name: String,
    /// The options of the runs that those of the other side do not have, if `name` does not have them.
    #[serde(skip)]
    pub options: String,
    /// What was measured, where and when, as far as it is known: `varmail on ext4 (/dev/sdb), 2026-11-20`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub measured: String,
    /// The number of the runs that other programs disturbed.
    pub disturbed: u64,
    /// The summary of the observations.
    #[serde(flatten)]
    pub sample: SampleSummary,
    /// The values of the observations, in their order.
    pub values: Vec<f64>,
}

/// The result of the test that gives the interval of the ratio.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedTest {
    /// The name of the test: `signed rank`, or `t on blocks` of few blocks; `ranks and trend`, or `Welch and trend` of few runs,
    /// for runs that were not interleaved, without the trend for those of different days; `none`.
    pub name: String,
    /// The t statistic of `t on blocks`; null for others.
    pub t: f64,
    /// The degrees of freedom of `t on blocks`; null for others.
    pub df: f64,
    /// The two-sided p-value; with a trend the larger one of both tests.
    pub p: f64,
}

/// The result of the negative control: a fixed amount of work before and after every run, which the options of A and B
/// cannot affect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ControlResult {
    /// Whether its speed changed significantly (at 0.1 %) and by more than the tolerance. Then the machine changed
    /// between the arms.
    pub moved: bool,
    /// The ratio of its speed at runs of B to that at runs of A, with a 99.9 % interval.
    pub ratio: Estimate,
    /// The two-sided p-value.
    pub p: f64,
    /// The total number of runs for which the interval would be as narrow as ± the tolerance; null if so many have been made,
    /// or if two thousand are too few.
    pub runs_needed: Option<u64>,
}

impl ControlResult {
    /// True if a change of the machine may be the reason of a verdict on runs that were not interleaved: the speed
    /// of the control changed in the direction of the verdict, and with twice this change, in logarithms, taken off, the
    /// interval `goodness` gives another verdict. Other programs may slow I/O down more than computation.
    fn may_explain(&self, verdict: ComparisonVerdict, goodness: Estimate, tolerance: Tolerance) -> bool {
        let change = match verdict {
            ComparisonVerdict::Better if self.ratio.value > 1.0 => self.ratio.high,
            ComparisonVerdict::Worse if self.ratio.value < 1.0 => self.ratio.low,
            _ => return false,
        };
        self.moved && classify(goodness.map(|ratio| ratio / change.powi(2)), tolerance) != verdict
    }

    /// True if the interval is too wide to show a change of the machine by the tolerance.
    fn is_unknown(&self, tolerance: f64) -> bool {
        let half = (self.ratio.high - self.ratio.low) / 2.0;
        !self.moved && (half.is_nan() || half > tolerance)
    }
}

/// The interim look at which a sequential comparison ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EndingLook {
    /// The number of blocks.
    pub blocks: u64,
    /// The one-sided error probability of the look.
    pub one_sided: f64,
}

/// The comparison of a metric other than the primary one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherMetric {
    /// The name of the metric.
    pub metric: String,
    /// The ratio of B to A with its interval, at the same level as that of the metric of the verdict.
    pub ratio: Estimate,
    /// The two-sided p-value, corrected for the number of metrics.
    pub p: f64,
}

/// The plots of two samples, as points.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shapes {
    /// The empirical distribution function of A.
    pub ecdf_a: Vec<Point>,
    /// The empirical distribution function of B.
    pub ecdf_b: Vec<Point>,
    /// The Q–Q plot: quantiles of B (vertical) against those of A.
    pub qq: Vec<Point>,
    /// The normal Q–Q plot of A; null for a single run.
    pub normal_a: Option<NormalPlot>,
    /// The normal Q–Q plot of B.
    pub normal_b: Option<NormalPlot>,
    /// The test of Shapiro and Wilk of A; null for fewer than three runs, and for equal values.
    pub shapiro_wilk_a: Option<ShapiroWilk>,
    /// The test of Shapiro and Wilk of B.
    pub shapiro_wilk_b: Option<ShapiroWilk>,
}
