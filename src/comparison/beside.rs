//! Published figures beside those of an experiment: a table whose lines are those of the published one.
//!
//! To add figures: `published/NAME.csv`. The first line is a comment that names the source, the second has the headings. A
//! column with the name of a factor has its levels; the others are printed as they are.

use super::numbers::{dash, figure};
use super::{CellMetric, Factorial, FactorialCell};
use crate::import;
use crate::sheet::{SheetColumn, SheetTable};

/// Name and text of all shipped figures, by name.
pub static PUBLISHED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/published.rs"));

/// A published table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its source.
    title: String,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Published {
    /// Reads a table. The error says what is wrong with the text.
    pub fn read(text: &str) -> Result<Self, String> {
        let comment = text.lines().find(|line| line.starts_with('#'));
        let title = comment.map_or("published figures", |line| line.trim_start_matches(['#', ' ']));
        let mut rows = import::table_rows(text)?;
        if rows.len() < 2 {
            return Err("it has no line below the headings".to_owned());
        }
        let headings = rows.remove(0);
        match rows.iter().position(|row| row.len() != headings.len()) {
            Some(n) => Err(format!("line {} has {} cells, not {}", n + 2, rows[n].len(), headings.len())),
            None => Ok(Self { title: title.to_owned(), headings, rows }),
        }
    }

    /// True if a heading is the name of a factor.
    pub fn has_factor_of(&self, result: &Factorial) -> bool {
        result.factors.iter().any(|factor| self.headings.contains(&factor.name))
    }

    /// The table with the figures of an experiment; `None` if no heading is one of its factors.
    pub(super) fn table(&self, result: &Factorial) -> Option<SheetTable> {
        let position = |name: &String| result.factors.iter().position(|factor| factor.name == *name);
        let keys: Vec<Option<usize>> = self.headings.iter().map(position).collect();
        keys.iter().flatten().next()?;
        let others: Vec<usize> = (0..result.factors.len()).filter(|n| !keys.contains(&Some(*n))).collect();
        let of_others = |cell: &FactorialCell| others.iter().map(|n| cell.levels[*n].clone()).collect::<Vec<_>>();
        let mut groups: Vec<Vec<String>> = Vec::new();
        for group in result.cells.iter().map(of_others) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        let ours = |row: &[String], group: &[String], n: usize| {
            let is_at = |cell: &&FactorialCell| {
                let mut named = keys.iter().zip(row).filter_map(|(key, level)| Some((key.as_ref()?, level)));
                named.all(|(key, level)| result.full_name(cell, *key) == level) && of_others(cell) == group
            };
            let found = result.cells.iter().find(is_at).and_then(|cell| cell.metrics.get(n));
            let shown = |of: &CellMetric| Some(figure(&of.metric, of.estimate?.value));
            found.and_then(shown).unwrap_or_else(dash)
        };
        let columns: Vec<(&Vec<String>, usize)> =
            groups.iter().flat_map(|group| (0..result.metrics.len()).map(move |n| (group, n))).collect();
        let heading = |(group, n): &(&Vec<String>, usize)| {
            group.iter().chain([&result.metrics[*n]]).map(String::as_str).collect::<Vec<_>>().join(" ")
        };
        let is_key = |n: &usize| keys[*n].is_some();
        let all = || 0..self.headings.len();
        let key_columns = all().filter(is_key).map(|n| SheetColumn::words(&self.headings[n]));
        let theirs = all().filter(|n| !is_key(n)).map(|n| SheetColumn::numbers(&self.headings[n]));
        let own = columns.iter().map(|column| SheetColumn::numbers(&heading(column)));
        let line = |row: &Vec<String>| {
            let keys = all().filter(is_key).map(|n| row[n].clone());
            let own = columns.iter().map(|(group, n)| ours(row, group, *n));
            keys.chain(own).chain(all().filter(|n| !is_key(n)).map(|n| row[n].clone())).collect()
        };
        let title = format!("beside {}", self.title);
        Some(SheetTable {
            title: title.clone(),
            rows: self.rows.iter().map(line).collect(),
            ..SheetTable::of(&title, key_columns.chain(own).chain(theirs))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{FactorLevels, FactorialDesign, FactorialTables};
    use super::*;
    use crate::analysis::{PrecisionRule, RepeatState};
    use crate::import::Observation;

    #[test]
    fn lines_of_a_table_need_as_many_cells_as_it_has_headings() {
        assert_eq!(Published::read("# x\na,b\n"), Err("it has no line below the headings".to_owned()));
        assert_eq!(Published::read("a,b\n1,2\n3\n"), Err("line 3 has 1 cells, not 2".to_owned()));
        assert!(PUBLISHED.iter().all(|(_, text)| Published::read(text).is_ok()));
    }

    #[test]
    fn published_figures_stand_beside_those_of_the_same_levels() {
        let factor = |name: &str, levels: [&str; 2]| FactorLevels {
            name: name.to_owned(),
            levels: levels.map(str::to_owned).to_vec(),
        };
        let factors = [factor("test", ["1", "2"]), factor("fs", ["ext4", "btrfs"])];
        let cell = |value: f64| {
            let figures = [("mib".to_owned(), value)].into();
            (String::new(), vec![Observation { figures, ..Observation::default() }])
        };
        let design = FactorialDesign {
            name: "x",
            factors: &factors,
            metrics: &["mib".parse().unwrap()],
            own: &[],
            target: None,
            stop: PrecisionRule::Corrected,
            planned_runs: None,
            in_order: false,
            in_blocks: true,
            tables: &FactorialTables::default(),
        };
        let result = design.result(RepeatState::Complete, &[10.0, 20.0, 30.0, 40.0].map(cell));
        let read = |text| Published::read(text).unwrap().table(&result);
        assert!(read("other,UFS\n1,2\n").is_none());
        let table = crate::sheet::text::table(&read("# a report\ntest,UFS\n2,0.87\n3,-\n").unwrap()).unwrap();
        let lines: Vec<String> =
            table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            ["beside a report", "", "test ext4 mib btrfs mib UFS", "2 30.0 40.0 0.87", "3 - - -"],
            "{table}"
        );
    }
}
