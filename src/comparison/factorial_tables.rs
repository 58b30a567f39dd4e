//! The tables that an experiment requests besides that of its cells, and what a level that is a bound is left out of.

use super::{DrawRule, FactorLevels, FactorialCell, FactorialDesign, ImprovementForm};
use crate::analysis::ResponseMethod;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The tables that an experiment requests besides that of its cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactorialTables {
    /// The factors whose effects are computed. `None`: all of an experiment with several factors and no other table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<String>>,
    /// The factor whose levels are the columns of a table of each metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<String>,
    /// The factors whose levels stand side by side in the table of improvements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// The columns over which the others improve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<String>,
    /// The column that is a bound of the others, as a raw device is. It is shown, and no level is compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// The form of the improvements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub improvement: Option<ImprovementForm>,
    /// Whether the lines of the tables of columns are the metrics.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lines_are_metrics: bool,
    /// The factor whose levels are groups of columns, with their metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<String>,
    /// Which lines are draws.
    #[serde(default, skip_serializing_if = "DrawRule::is_default")]
    pub draw: DrawRule,
    /// The factor whose levels are tested against its first level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<String>,
    /// The factor whose levels are the loads of a curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<String>,
    /// The extrapolation of the curve below its first point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<ResponseMethod>,
    /// Whether the variation between runs and within them is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub variation: bool,
}

impl FactorialTables {
    /// True if the experiment says nothing about its tables.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// True if no table is requested that takes the place of the effects.
    pub(super) fn is_empty(&self) -> bool {
        let Self { lines_are_metrics, draw, variation, .. } = *self;
        *self == Self { lines_are_metrics, draw, variation, groups: self.groups.clone(), ..Self::default() }
    }
}

impl FactorialDesign<'_> {
    /// The factors and cells without the level that is a bound.
    pub(super) fn without_bound<'a>(
        &'a self,
        cells: &'a [FactorialCell],
    ) -> (Cow<'a, [FactorLevels]>, Cow<'a, [FactorialCell]>) {
        let FactorialTables { bound: Some(bound), columns: Some(columns), .. } = self.tables else {
            return (self.factors.into(), cells.into());
        };
        let is_bound = |(factor, level): (&FactorLevels, &String)| factor.name == *columns && level == bound;
        let mut factors = self.factors.to_vec();
        factors
            .iter_mut()
            .filter(|factor| factor.name == *columns)
            .for_each(|f| f.levels.retain(|level| level != bound));
        let others = cells.iter().filter(|cell| !self.factors.iter().zip(&cell.levels).any(is_bound));
        (factors.into(), others.cloned().collect())
    }
}
