//! Improvements: by how much the columns of a table are better than its reference columns.

use super::numbers::factor;
use super::{Pivot, PivotRow};
use crate::analysis::{Direction, Estimate, improvement};
use crate::sheet::{SheetColumn, SheetTable};
use crate::util::count::{dash, fixed, measured};
use crate::util::printable;
use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

crate::util::named! {
    /// The form of an improvement.
    #[derive(Default)]
    pub serde enum ImprovementForm {
        #[default]
        Percent = "percent", "per cent: 50 % for 150 operations per second instead of 100, or for 2 seconds instead of 3";
        Factor = "factor", "the factor, 1.50 in both cases";
        Both = "both", "per cent and the factor";
    }
}

impl ImprovementForm {
    /// The cells of an improvement.
    fn cells(self, found: Option<&Improvement>) -> Vec<String> {
        let shown = |text: &dyn Fn(f64) -> String| match found.and_then(|found| Some((found.factor?, found))) {
            Some((factor, found)) => text(factor) + if found.may_be_chance { "?" } else { "" },
            None => dash(),
        };
        // The sum has no negative zero.
        let whole = |percent: f64| if percent < 1000.0 { fixed(percent + 0.0, 0) } else { measured(percent) };
        let percent = || shown(&|factor| format!("{} %", whole(((factor - 1.0) * 100.0).round())));
        let factor = || shown(&factor);
        match self {
            Self::Percent => vec![percent()],
            Self::Factor => vec![factor()],
            Self::Both => vec![percent(), factor()],
        }
    }
}

/// The improvement of a column over another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Improvement {
    /// The column that is compared.
    pub of: String,
    /// The column with which it is compared.
    pub over: String,
    /// The ratio of rates, or the inverse of that of times; above 1 for a gain. Null if it is unknown or infinite.
    pub factor: Option<f64>,
    /// Whether it may be none: the 95 % interval of the ratio of the runs contains 1, or is unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_be_chance: bool,
}

/// The improvements of the columns that are not in `over` over each one that is. `ratio` returns the ratio of the runs of
/// the second column to those of the first; without it none is marked as possible chance.
pub(super) fn improvements(
    columns: &[String],
    over: &[String],
    values: &[Option<f64>],
    direction: Direction,
    ratio: Option<&dyn Fn([usize; 2]) -> Option<Estimate>>,
) -> Vec<Improvement> {
    let position = |name: &String| columns.iter().position(|column| column == name);
    let compared = (0..columns.len()).filter(|n| !over.contains(&columns[*n]));
    let pairs = compared.flat_map(|x| over.iter().filter_map(position).map(move |y| [x, y]));
    let of_pair = |[x, y]: [usize; 2]| {
        let factor = values[x].zip(values[y]).and_then(|(x, y)| improvement(x, y, direction));
        let shows = |factor: f64, found: Estimate| if factor > 1.0 { found.low > 1.0 } else { found.high < 1.0 };
        let is_shown =
            |factor, found: Option<Estimate>| found.is_some_and(|found| shows(factor, direction.goodness(found)));
        let may_be_chance = factor.zip(ratio).is_some_and(|(factor, ratio)| !is_shown(factor, ratio([y, x])));
        Improvement { of: columns[x].clone(), over: columns[y].clone(), factor, may_be_chance }
    };
    pairs.map(of_pair).collect()
}

impl Pivot {
    /// The table of improvements, if any is known.
    pub(super) fn improvement_table(&self) -> Option<SheetTable> {
        let is_known = self.rows.iter().flat_map(|row| &row.improvements).any(|found| found.factor.is_some());
        is_known.then(|| {
            let narrow = (!self.beside.is_empty()).then(|| Box::new(self.improvements_beside(&[])));
            SheetTable { narrow, ..self.improvements_beside(&self.beside) }
        })
    }

    /// Says that none of the improvements is known, which have no table.
    pub(super) fn unknown_improvements(&self) -> Option<String> {
        let all = || self.rows.iter().flat_map(|row| &row.improvements);
        let over: Vec<&str> = all().map(|found| found.over.as_str()).collect::<IndexSet<_>>().into_iter().collect();
        let are_unknown = !over.is_empty() && all().all(|found| found.factor.is_none());
        let over = printable::line(&over.join(", ")).into_owned();
        are_unknown.then(|| format!("no improvement over {over} is known: figures are 0 or missing"))
    }

    /// The table whose columns are repeated for the levels of the factors in `beside`.
    fn improvements_beside(&self, beside: &[String]) -> SheetTable {
        let levels = |row: &PivotRow, is_beside: bool| -> Vec<String> {
            let of_row = self.others.iter().zip(&row.levels);
            of_row.filter(|(name, _)| beside.contains(name) == is_beside).map(|(_, level)| level.clone()).collect()
        };
        let different = |is_beside| {
            let mut found: Vec<Vec<String>> = Vec::new();
            for levels in self.rows.iter().map(|row| levels(row, is_beside)) {
                if !found.contains(&levels) {
                    found.push(levels);
                }
            }
            found
        };
        let groups = different(true);
        let pairs = || self.rows.first().into_iter().flat_map(|row| &row.improvements);
        let first = pairs().next();
        let is_single = pairs().all(|pair| first.is_none_or(|first| first.of == pair.of));
        let of = |name: &str| if is_single { String::new() } else { format!("{name} ") };
        let others = self.others.iter().filter(|name| !beside.contains(name)).map(|name| SheetColumn::words(name));
        let mut columns: Vec<SheetColumn> = others.collect();
        for group in &groups {
            for pair in pairs() {
                let heading = format!("{} {}over {}", group.join(", "), of(&pair.of), pair.over);
                columns.push(SheetColumn::numbers(heading.trim_start()));
                columns.extend((self.form == ImprovementForm::Both).then(|| SheetColumn::numbers("factor")));
            }
        }
        let line = |line: Vec<String>| {
            let row = |group: &Vec<String>| {
                self.rows.iter().find(|row| levels(row, false) == line && levels(row, true) == *group)
            };
            let cell =
                |(group, n): (&Vec<String>, usize)| self.form.cells(row(group).and_then(|row| row.improvements.get(n)));
            let cells = groups.iter().flat_map(|group| (0..pairs().count()).map(move |n| (group, n))).flat_map(cell);
            line.iter().cloned().chain(cells).collect()
        };
        let of =
            if is_single { first.map_or_else(String::new, |first| format!(" of {}", first.of)) } else { String::new() };
        let what = if self.title().is_empty() { String::new() } else { format!(" in {}", self.title()) };
        let title = format!("improvement{of}{what}");
        let marked = self.rows.iter().flat_map(|row| &row.improvements).any(|found| found.may_be_chance);
        let chance = marked.then(|| "?: may be chance (95 % interval of the ratio)".to_owned());
        SheetTable {
            title: title.clone(),
            rows: different(false).into_iter().map(line).collect(),
            below: chance.into_iter().collect(),
            ..SheetTable::of(&title, columns)
        }
    }
}
