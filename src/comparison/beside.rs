//! Published figures beside those of an experiment: a table whose lines are those of the published one.
//!
//! To add figures: `published/NAME.csv`. The first line is a comment that names the source, the second has the headings. A
//! column with the name of a factor has its levels, `metric` the metric of each line, and `unit` the unit of its figures, by
//! default that of the metric; the others are printed as they are.

use super::numbers::{factor, figure, measured_signed};
use super::units::FigureUnit;
use super::{CellMetric, FactorLevels, Factorial, FactorialCell};
use crate::import::{self, Metric};
use crate::sheet::{SheetColumn, SheetTable};
use crate::util::count::{dash, or_dash};
use indexmap::IndexSet;

/// The heading of the metrics of lines.
const METRIC: &str = "metric";

/// The heading of their units.
const UNIT: &str = "unit";

/// True if two metrics are throughputs of the same operations, in MiB and in KiB.
fn are_throughputs(a: &str, b: &str) -> bool {
    let of = |name: &str| {
        let (of, unit) = name.rsplit_once('.').unwrap_or(("", name));
        ["mib", "kib"].contains(&unit).then(|| of.to_owned())
    };
    of(a).is_some_and(|of_a| Some(of_a) == of(b))
}

/// True for a metric whose figures have a unit of time in reports.
fn is_time(metric: &str) -> bool {
    metric.parse::<Metric>().is_ok_and(|metric| metric.nanoseconds().is_some())
}

/// How our figure of a line relates to a published one.
enum Conversion {
    /// Ours is multiplied by it.
    By(f64),
    /// There is none, for this reason.
    None(String),
}

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

    /// The metrics of its lines that are not among these, nor the same throughputs in another unit.
    pub(crate) fn metrics_besides(&self, known: &[String]) -> Vec<Metric> {
        let at = self.headings.iter().position(|heading| heading == METRIC);
        let named: IndexSet<&String> =
            at.into_iter().flat_map(|at| self.rows.iter().map(move |row| &row[at])).collect();
        let is_new = |name: &&String| !known.iter().any(|of| of == *name || are_throughputs(of, name));
        named.into_iter().filter(is_new).filter_map(|name| name.parse().ok()).collect()
    }

    /// True if a heading is the name of a factor.
    pub(crate) fn has_factor_of(&self, result: &Factorial) -> bool {
        result.factors.iter().any(|factor| self.headings.contains(&factor.name))
    }

    /// The table with the figures of an experiment; `None` if no heading is one of its factors.
    pub(super) fn table(&self, result: &Factorial) -> Option<SheetTable> {
        let position = |name: &String| result.factors.iter().position(|factor| factor.name == *name);
        let keys: Vec<Option<usize>> = self.headings.iter().map(position).collect();
        keys.iter().flatten().next()?;
        let at = |heading: &str| (0..self.headings.len()).find(|n| keys[*n].is_none() && self.headings[*n] == heading);
        let metric_at = at(METRIC);
        let unit_at = at(UNIT).filter(|_| metric_at.is_some());
        let others: Vec<usize> = (0..result.factors.len()).filter(|n| !keys.contains(&Some(*n))).collect();
        let of_others = |cell: &FactorialCell| others.iter().map(|n| cell.levels[*n].clone()).collect::<Vec<_>>();
        let groups: IndexSet<Vec<String>> = result.cells.iter().map(of_others).collect();
        // Without the metric of each line, each group has a column for each metric.
        let metrics = if metric_at.is_some() { 0..1 } else { 0..result.metrics.len() };
        let columns: Vec<(&Vec<String>, usize)> =
            groups.iter().flat_map(|group| metrics.clone().map(move |n| (group, n))).collect();
        let levels = |row: &[String]| -> Vec<(usize, String)> {
            keys.iter().zip(row).filter_map(|(key, level)| Some(((*key)?, level.clone()))).collect()
        };
        let is_at = |cell: &FactorialCell, row: &[String]| {
            levels(row).iter().all(|(key, level)| result.full_name(cell, *key) == level)
        };
        let ours = |row: &[String], (group, n): &(&Vec<String>, usize)| -> Option<&CellMetric> {
            let mut at = result.cells.iter().filter(|cell| is_at(cell, row));
            let found = &at.find(|cell| of_others(cell) == **group)?.metrics;
            match metric_at {
                Some(at) => found
                    .iter()
                    .find(|metric| metric.metric == row[at])
                    .or_else(|| found.iter().find(|metric| are_throughputs(&metric.metric, &row[at]))),
                None => found.get(*n),
            }
        };
        let heading = |(group, n): &(&Vec<String>, usize)| {
            let metric = if metric_at.is_some() { None } else { Some(&result.metrics[*n]) };
            let words: Vec<&str> = group.iter().chain(metric).map(String::as_str).collect();
            if words.is_empty() { "ours".to_owned() } else { words.join(" ") }
        };
        let own: Vec<String> = columns.iter().map(heading).collect();
        let is_key = |n: &usize| keys[*n].is_some() || [metric_at, unit_at].contains(&Some(*n));
        let (key_at, theirs): (Vec<usize>, Vec<usize>) = (0..self.headings.len()).partition(is_key);
        // Machines of different years compare by their ratios. Two of ours are sides only if the experiment compares them.
        let compares = |n: &usize| result.pivots.iter().any(|pivot| pivot.factor == result.factors[*n].name);
        let pairs = match (own.len(), theirs.len()) {
            _ if metric_at.is_none() => Vec::new(),
            (1, n) => (1..=n).map(|of| [0, of]).collect(),
            (2, 2) if others.iter().all(compares) => vec![[0, 1], [2, 3]],
            _ => Vec::new(),
        };
        let names: Vec<&String> = own.iter().chain(theirs.iter().map(|n| &self.headings[*n])).collect();
        let ratios = pairs.iter().map(|[a, b]| format!("{} / {}", names[*a], names[*b]));
        let numbers: Vec<String> = names.iter().map(|name| (*name).clone()).chain(ratios).collect();
        // A figure with the metric of each line is shown in its unit.
        let conversion = |row: &[String], of: &CellMetric| {
            let Some(metric) = metric_at.map(|at| &row[at]) else { return Conversion::By(1.0) };
            let named = unit_at.map(|at| row[at].as_str()).filter(|text| !text.is_empty());
            let (ours, theirs) = (
                FigureUnit::of_metric(&of.metric),
                named.map_or_else(|| FigureUnit::of_metric(metric), FigureUnit::of),
            );
            match (named, ours, theirs) {
                (_, Some(ours), Some(theirs)) => ours.in_unit(theirs).map_or_else(
                    || {
                        let [ours, theirs] = [ours, theirs].map(FigureUnit::measures);
                        Conversion::None(format!(
                            "no ratio: `{}` is {ours}, the published figure is {theirs}",
                            of.metric
                        ))
                    },
                    Conversion::By,
                ),
                (Some(text), _, None) => Conversion::None(format!("no ratio: the unit `{text}` is not known")),
                _ => Conversion::By(1.0),
            }
        };
        let mut below: Vec<String> = Vec::new();
        let (mut levels_missing, mut metrics_missing) = (IndexSet::<String>::new(), IndexSet::<String>::new());
        let mut line = |row: &Vec<String>| {
            let keys = key_at.iter().map(|n| row[*n].clone());
            let own: Vec<Option<&CellMetric>> = columns.iter().map(|column| ours(row, column)).collect();
            let conversions: Vec<Option<Conversion>> = own.iter().map(|of| Some(conversion(row, (*of)?))).collect();
            if own.iter().all(Option::is_none) {
                let is_known = result.cells.iter().any(|cell| is_at(cell, row));
                match metric_at.filter(|_| is_known) {
                    Some(at) => metrics_missing.insert(format!("`{}`", row[at])),
                    None => {
                        let names: Vec<String> = levels(row).into_iter().map(|(_, level)| level).collect();
                        levels_missing.insert(format!("`{}`", names.join(", ")))
                    }
                };
            }
            for conversion in conversions.iter().flatten() {
                if let Conversion::None(why) = conversion
                    && !below.contains(why)
                {
                    below.push(why.clone());
                }
            }
            let by = |n: usize| match conversions.get(n) {
                Some(Some(Conversion::By(factor))) => Some(*factor),
                _ => None,
            };
            // A figure in another unit than that of the line is none of it.
            let measured = own.iter().enumerate().map(|(n, of)| Some(of.as_ref()?.estimate?.value * by(n)?));
            let values: Vec<Option<f64>> = measured.chain(theirs.iter().map(|n| row[*n].parse().ok())).collect();
            let shown = |(n, of): (usize, Option<&CellMetric>)| {
                // Times have their unit.
                let text = of.and_then(|of| match is_time(&of.metric) {
                    true => Some(figure(&of.metric, of.estimate?.value)),
                    false => Some(measured_signed(values[n].filter(|value| value.is_finite())?)),
                });
                text.unwrap_or_else(dash)
            };
            let ratio = |[a, b]: &[usize; 2]| {
                or_dash(values[*a].zip(values[*b]).filter(|(_, b)| *b != 0.0), |(a, b)| factor(a / b))
            };
            let published = theirs.iter().map(|n| row[*n].clone());
            let own_cells = own.iter().copied().enumerate().map(shown);
            keys.chain(own_cells).chain(published).chain(pairs.iter().map(ratio)).collect::<Vec<String>>()
        };
        let rows: Vec<Vec<String>> = self.rows.iter().map(&mut line).collect();
        let title = format!("beside {}", self.title);
        for (missing, what) in [(metrics_missing, "metric"), (levels_missing, "level")] {
            let named: Vec<String> = missing.into_iter().collect();
            below.extend((!named.is_empty()).then(|| format!("ours have no {what} {}", import::shortened(&named))));
        }
        let is_full = |(factor, full): (&FactorLevels, &Vec<String>)| factor.levels == *full;
        let is_scaled = !result.factors.iter().zip(&result.full_names).all(is_full);
        below.extend(
            is_scaled.then(|| "lines have the names of the full size; ours were made at a smaller one".to_owned()),
        );
        let key_columns = key_at.iter().map(|n| SheetColumn::words(&self.headings[*n]));
        Some(SheetTable {
            title: title.clone(),
            rows,
            below,
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
            tables: &FactorialTables { columns: Some("fs".to_owned()), ..FactorialTables::default() },
        };
        let result = design.result(RepeatState::Complete, &[10.0, 20.0, 30.0, 40.0].map(cell));
        let read = |text| Published::read(text).unwrap().table(&result);
        assert!(read("other,UFS\n1,2\n").is_none());
        let table = crate::sheet::text::table(&read("# a report\ntest,UFS\n2,0.87\n3,-\n").unwrap()).unwrap();
        let lines: Vec<String> =
            table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "beside a report",
                "",
                "test ext4 mib btrfs mib UFS",
                "2 30.0 40.0 0.87",
                "3 - - -",
                "ours have no level `3`"
            ],
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
                "3 mib - - 1 1 - 1.00",
                "ours have no metric `ops`",
                "ours have no level `3`",
            ],
            "{table}"
        );
        // Ways of I/O are no file systems.
        let other = Factorial { pivots: Vec::new(), ..result.clone() };
        let table = Published::read("test,metric,ZFS,UFS\n1,mib,4,2\n").unwrap().table(&other).unwrap();
        assert_eq!(table.rows[0].join(" "), "1 mib 10.0 20.0 4 2");
    }

    #[test]
    fn metrics_that_the_figures_have_besides() {
        let published =
            Published::read("test,metric,UFS\n1,mib,1\n2,ops,1\n3,ops,2\n4,no such,1\n5,x.mib,0\n").unwrap();
        let besides = |known: &[&str]| -> Vec<String> {
            let known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
            published.metrics_besides(&known).iter().map(Metric::to_string).collect()
        };
        assert_eq!(
            (besides(&["kib"]), besides(&["mib", "ops"])),
            (vec!["ops".to_owned(), "x.mib".to_owned()], vec!["x.mib".to_owned()])
        );
        assert!(Published::read("test,UFS\n1,2\n").unwrap().metrics_besides(&[]).is_empty());
    }

    /// A line has the unit of its published figure, also if it is another one than that of our metric.
    #[test]
    fn figures_are_compared_in_one_unit() {
        let levels = ["1", "2", "3", "4", "5", "6"].map(str::to_owned).to_vec();
        let factors = [FactorLevels { name: "test".to_owned(), levels }];
        let figures = [("mib", 2.0), ("r.latency.mean", 5e6), ("transactions", 3.0), ("read.mib", 0.5)];
        let figures = figures.map(|(name, value)| (name.to_owned(), value));
        let cell = (String::new(), vec![Observation { figures: figures.into(), ..Observation::default() }]);
        let metrics = ["mib", "r.latency.mean", "transactions", "read.mib"].map(|name| name.parse().unwrap());
        let design = FactorialDesign {
            name: "x",
            factors: &factors,
            metrics: &metrics,
            own: &[],
            target: None,
            stop: PrecisionRule::Corrected,
            planned_runs: None,
            in_order: false,
            in_blocks: true,
            tables: &FactorialTables::default(),
        };
        let result = design.result(RepeatState::Complete, &vec![cell; 6]);
        let lines = |text: &str| -> Vec<String> {
            let table = crate::sheet::text::table(&Published::read(text).unwrap().table(&result).unwrap()).unwrap();
            table.lines().skip(2).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        let text = "# a report\ntest,metric,unit,UFS\n1,mib,K/s,1024\n2,r.latency.mean,ms,10\n\
            3,transactions,per minute,90\n4,mib,,4\n5,mib,ms,1\n6,mib,Mb/s,1\n";
        assert_eq!(
            lines(text),
            [
                "test metric unit ours UFS ours / UFS",
                "1 mib K/s 2,048 1024 2.00",
                "2 r.latency.mean ms 5.00 ms 10 0.50",
                "3 transactions per minute 180.0 90 2.00",
                "4 mib 2.00 4 0.50",
                "5 mib ms - 1 -",
                "6 mib Mb/s - 1 -",
                "no ratio: `mib` is bytes per second, the published figure is a time",
                "no ratio: the unit `Mb/s` is not known",
            ]
        );
        let text = "test,metric,UFS\n1,kib,4096\n2,read.kib,256\n3,kib,-\n";
        assert_eq!(
            lines(text),
            [
                "test metric ours UFS ours / UFS",
                "1 kib 2,048 4096 0.50",
                "2 read.kib 512.0 256 2.00",
                "3 kib 2,048 - -",
            ]
        );
    }
}
