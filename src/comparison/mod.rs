//! A comparison of B with A as a document, `wmlrun.comparison/1`, and the estimates of repeats, `wmlrun.repeats/1`.
//!
//! In: observations in their order. Out: plain data, and its texts for people and programs. Deliberately absent: how the runs were
//! made, and the statistics themselves (`analysis`).

mod build;
mod differences;
mod formats;
mod repeats;
mod sweep;
mod sweep_formats;

pub use build::{Comparer, ComparisonMethod, DEFAULT_TOLERANCE, Runs};
pub use differences::{Difference, DifferenceKind, differences};
pub use formats::{ComparisonFormat, FORMATS, find_format, repeats_text};
pub use repeats::{RepeatedMetric, Repeats, repeats};
pub use sweep::{Sweep, SweepPoint, sweep};

use crate::analysis::{Change, ComparisonVerdict, Estimate, NoiseFloor, Point, SampleSummary, StudyTest};
use serde::{Deserialize, Serialize};

/// The name and version of the form.
pub const SCHEMA: &str = "wmlrun.comparison/1";

/// What is said of B against A. Figures that could not be worked out are null. Latencies are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was compared: a script, or the names of both sides.
    pub name: String,
    /// The metric on which the verdict stands.
    pub metric: String,
    /// Which way that is good.
    pub higher_is_better: bool,
    /// Whether runs of A and B took turns, so that a drift of the machine cancels.
    pub interleaved: bool,
    /// The observations of A.
    pub a: ComparedSide,
    /// Those of B.
    pub b: ComparedSide,
    /// B over A with its 95 % interval; of geometric means.
    pub ratio: Estimate,
    /// B less A, of arithmetic means, with its 95 % interval by Welch.
    pub difference: Estimate,
    /// What the interval of the ratio comes from.
    pub test: NamedTest,
    /// The interval of the ratio by signs of pairs; null if runs did not take turns, or were too few.
    pub sign: Option<Estimate>,
    /// The verdict on B.
    pub verdict: ComparisonVerdict,
    /// The relative change that is too small to matter.
    pub tolerance: f64,
    /// The smallest loss that this comparison would call *worse* in four of five cases; null if there is none.
    pub could_have_seen: Option<f64>,
    /// Runs in all with which two equal sides would be called *not worse* in four of five cases; null if a thousand are too few.
    pub runs_needed: Option<u64>,
    /// The negative control; null without one.
    pub control: Option<ControlResult>,
    /// How far results of this workload in this place differ although nothing was changed; null if that is not known.
    pub floor: Option<NoiseFloor>,
    /// Of a sequential comparison: after how many blocks it ended, and with which probability of error on each side.
    pub look: Option<EndingLook>,
    /// What differs between A and B besides the metric.
    pub differs: Vec<Difference>,
    /// What moved with the verdict, the greatest change first.
    pub causes: Vec<Change>,
    /// Other metrics; their probabilities are corrected for their number (Holm). They describe, and carry no verdict.
    pub others: Vec<OtherMetric>,
    /// The tests of the study's method, if asked for.
    pub study: Option<StudyTest>,
    /// The shapes of both samples, with the study's method.
    pub shapes: Option<Shapes>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparedSide {
    /// What it is: the options of the arm, or a path.
    pub name: String,
    /// The observations in figures.
    #[serde(flatten)]
    pub sample: SampleSummary,
    /// The observations, in their order.
    pub values: Vec<f64>,
}

/// A test by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedTest {
    /// `t on blocks`, `Welch`.
    pub name: String,
    /// Its statistic.
    pub t: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Two-sided.
    pub p: f64,
}

/// A fixed piece of work that A and B can't touch, done beside every run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlResult {
    /// Whether it moved by more than the tolerance, at 0.1 %: then the machine changed with the arms.
    pub moved: bool,
    /// Its speed beside B over that beside A, with a 99.9 % interval.
    pub ratio: Estimate,
    /// Two-sided.
    pub p: f64,
}

/// Where a sequential comparison ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndingLook {
    /// Blocks.
    pub blocks: u64,
    /// Probability of error on each side.
    pub one_sided: f64,
}

/// A metric beside the primary one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherMetric {
    /// Its name.
    pub metric: String,
    /// B over A.
    pub ratio: Estimate,
    /// Two-sided, corrected.
    pub p: f64,
}

/// Shapes as points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shapes {
    /// The empirical distribution function of A.
    pub ecdf_a: Vec<Point>,
    /// That of B.
    pub ecdf_b: Vec<Point>,
    /// Quantiles of B (upward) against those of A.
    pub qq: Vec<Point>,
}
