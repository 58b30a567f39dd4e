//! Statistics of whole runs: computes estimates and verdicts from observations.
//!
//! An observation is one figure of one whole run, never of an interval or of an operation. All functions are pure. Not
//! in here: the order in which runs are made (`experiment`), the source of the figures (`import`), and the format of
//! estimates (`comparison`).

mod blocks;
mod capacity;
mod change_points;
mod columns;
mod disturbed;
mod distributions;
mod explain;
mod floor;
mod nights;
mod power;
mod precision;
mod rank_intervals;
mod response_time;
mod sample;
mod shape;
mod shapiro_wilk;
#[cfg(test)]
mod simulation_tests;
mod steady;
mod step_fit;
mod study;
mod two_samples;
mod verdict;
mod wins;

pub use blocks::{
    BlockAnalysis, InterimLook, RunBlock, SEQUENTIAL, StudentTest, analyse, analyse_paired, control_change,
};
pub use capacity::{Capacity, CapacitySearch, CapacityStep, LoadProbe, SEARCH_RUNS};
pub use change_points::change_points;
pub use columns::{OrderedRatio, positions, ratio_in_order};
pub use disturbed::{Disturbance, DisturbanceCheck, STRICT_LEVEL};
pub use explain::{Change, cause_rank, rank_changes};
pub use floor::{FloorSample, MIN_SESSION_GAP, NoiseFloor};
pub use nights::{NightState, NightVerdict, judge_nights};
pub use power::{Power, needed_for_width};
pub use precision::{
    DEFAULT_PRECISION, MeanEstimate, Precision, PrecisionRule, RepeatRule, RepeatState, RunRange, Trend,
    independent_mean, mean_interval, trend,
};
pub use rank_intervals::{fewest_on_each_side, fewest_pairs};
pub use response_time::{LoadPoint, NoKnee, OverallResponse, ResponseMethod, knee, overall_response};
pub use sample::{Estimate, SampleSummary, median, outliers};
pub use shape::{NormalPlot, Point, ecdf, normal_plot, quantile_pairs};
pub use shapiro_wilk::{ShapiroWilk, shapiro_wilk};
pub use steady::SteadyState;
pub use study::{FTest, StudyTest, TTest, TTestKind, study};
pub use two_samples::{
    TwoSampleTest, equal_ratios, holm, mean_ratio, paired_ratio, ratio_in_blocks, welch, welch_ratio,
};
pub use verdict::{ComparisonVerdict, Direction, Tolerance, classify};
pub use wins::{DRAW, TestOutcome, TestWinner, Wins, WonTests, improvement, outcome, wins};
