//! Published figures beside those of an experiment: a table whose lines are those of the published one.
//!
//! To add figures: `published/NAME.csv`. The first line is a comment that names the source, the second has the headings. A
//! column with the name of a factor has its levels, `metric` the metric of each line; the others are printed as they are.

use super::numbers::{dash, factor, figure};
use super::{CellMetric, FactorLevels, Factorial, FactorialCell};
use crate::import;
use crate::sheet::{SheetColumn, SheetTable};
use indexmap::IndexSet;

/// The heading of the metrics of lines.
const METRIC: &str = "metric";

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
        let metric_at = (0..self.headings.len()).find(|n| keys[*n].is_none() && self.headings[*n] == METRIC);
        let others: Vec<usize> = (0..result.factors.len()).filter(|n| !keys.contains(&Some(*n))).collect();
        let of_others = |cell: &FactorialCell| others.iter().map(|n| cell.levels[*n].clone()).collect::<Vec<_>>();
        let groups: IndexSet<Vec<String>> = result.cells.iter().map(of_others).collect();
        // Without the metric of each line, each group has a column for each metric.
        let metrics = if metric_at.is_some() { 0..1 } else { 0..result.metrics.len() };
        let columns: Vec<(&Vec<String>, usize)> =
            groups.iter().flat_map(|group| metrics.clone().map(move |n| (group, n))).collect();
        let ours = |row: &[String], (group, n): &(&Vec<String>, usize)| -> Option<&CellMetric> {
            let is_at = |cell: &&FactorialCell| {
                let mut named = keys.iter().zip(row).filter_map(|(key, level)| Some((key.as_ref()?, level)));
                named.all(|(key, level)| result.full_name(cell, *key) == level) && of_others(cell) == **group
            };
            let found = &result.cells.iter().find(is_at)?.metrics;
            match metric_at {
                Some(at) => found.iter().find(|metric| metric.metric == row[at]),
                None => found.get(*n),
            }
        };
        let heading = |(group, n): &(&Vec<String>, usize)| {
            let metric = if metric_at.is_some() { None } else { Some(&result.metrics[*n]) };
            let words: Vec<&str> = group.iter().chain(metric).map(String::as_str).collect();
            if words.is_empty() { "ours".to_owned() } else { words.join(" ") }
        };
        let own: Vec<String> = columns.iter().map(heading).collect();
        let is_key = |n: &usize| keys[*n].is_some() || metric_at == Some(*n);
        let (key_at, theirs): (Vec<usize>, Vec<usize>) = (0..self.headings.len()).partition(is_key);
        // Machines of different years compare by their ratios.
        let pairs = match (own.len(), theirs.len()) {
            _ if metric_at.is_none() => Vec::new(),
            (1, n) => (1..=n).map(|of| [0, of]).collect(),
            (2, 2) => vec![[0, 1], [2, 3]],
            _ => Vec::new(),
        };
        let names: Vec<&String> = own.iter().chain(theirs.iter().map(|n| &self.headings[*n])).collect();
        let ratios = pairs.iter().map(|[a, b]| format!("{} / {}", names[*a], names[*b]));
        let numbers: Vec<String> = names.iter().map(|name| (*name).clone()).chain(ratios).collect();
        let line = |row: &Vec<String>| {
            let keys = key_at.iter().map(|n| row[*n].clone());
            let own: Vec<Option<&CellMetric>> = columns.iter().map(|column| ours(row, column)).collect();
            let values = own.iter().map(|of| Some(of.as_ref()?.estimate?.value));
            let values: Vec<Option<f64>> = values.chain(theirs.iter().map(|n| row[*n].parse().ok())).collect();
            let shown = |of: Option<&CellMetric>| {
                of.and_then(|of| Some(figure(&of.metric, of.estimate?.value))).unwrap_or_else(dash)
            };
            let ratio = |[a, b]: &[usize; 2]| values[*a].zip(values[*b]).map_or_else(dash, |(a, b)| factor(a / b));
            let published = theirs.iter().map(|n| row[*n].clone());
            keys.chain(own.iter().copied().map(shown)).chain(published).chain(pairs.iter().map(ratio)).collect()
        };
        let title = format!("beside {}", self.title);
        let is_full = |(factor, full): (&FactorLevels, &Vec<String>)| factor.levels == *full;
        let is_scaled = !result.factors.iter().zip(&result.full_names).all(is_full);
        let below =
            is_scaled.then(|| "lines have the names of the full size; ours were made at a smaller one".to_owned());
        let key_columns = key_at.iter().map(|n| SheetColumn::words(&self.headings[*n]));
        Some(SheetTable {
            title: title.clone(),
            rows: self.rows.iter().map(line).collect(),
            below: below.into_iter().collect(),
            is_compact: true,
            ..SheetTable::of(&title, key_columns.chain(numbers.iter().map(|name| SheetColumn::numbers(name))))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{FactorialDesign, FactorialTables};
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
        let full_names = vec![vec!["1 GB".to_owned(), "2 GB".to_owned()], factors[1].levels.clone()];
        let scaled = Factorial { full_names, ..result.clone() };
        let table = Published::read("test,UFS\n2 GB,7\n").unwrap().table(&scaled).unwrap();
        assert_eq!((table.rows[0].join(" "), table.below.len()), ("2 GB 30.0 40.0 7".to_owned(), 1));
        let of_metrics = read("# a report\ntest,metric,ZFS,UFS\n1,mib,4,2\n2,ops,3,-\n3,mib,1,1\n").unwrap();
        let table = crate::sheet::text::table(&of_metrics).unwrap();
        let lines: Vec<String> =
            table.lines().skip(2).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "test metric ext4 btrfs ZFS UFS ext4 / btrfs ZFS / UFS",
                "1 mib 10.0 20.0 4 2 0.50 2.00",
                "2 ops - - 3 - - -",
                "3 mib - - 1 1 - 1.00"
            ],
            "{table}"
        );
    }
}
