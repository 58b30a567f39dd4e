//! The table in which each level of a factor is a group of columns, with its metrics, so that each combination of the other
//! levels is one line.

use super::factorial::{CellGroup, cell_groups};
use super::numbers::{figure, half_width};
use super::{CellMetric, Factorial, FactorialCell, Pivot};
use crate::analysis::Estimate;
use crate::import::{Metric, Observation};
use crate::sheet::{Media, SheetColumn, SheetTable};
use crate::util::count::{dash, grouped};
use crate::util::{csv, size};

/// The request of an experiment for the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupTable {
    /// The factor whose levels are the groups.
    factor: String,
    /// The machine of the runs, the name of the line if there is no other factor.
    machine: String,
}

impl GroupTable {
    pub(super) fn of(factor: &str, runs: &[&[Observation]]) -> Self {
        let machine = runs.iter().copied().flatten().map(|run| run.machine.clone()).next().unwrap_or_default();
        Self { factor: factor.to_owned(), machine }
    }
}

/// A line of the table: its name, and the cell of each group.
struct Line<'a> {
    keys: Vec<&'a str>,
    cells: Vec<Option<&'a FactorialCell>>,
}

/// The files of the runs of a cell: their size, or if they are empty or several, their number.
fn files_of(cell: Option<&FactorialCell>) -> String {
    match cell.and_then(|cell| cell.files) {
        None => dash(),
        Some([1, bytes]) => size::format(bytes),
        Some([number, 0]) => grouped(number),
        Some([number, bytes]) => format!("{}, {}", grouped(number), size::format(bytes)),
    }
}

/// The heading of a metric in a group.
fn heading(metric: &str) -> String {
    metric.parse::<Metric>().map_or_else(|_| metric.to_owned(), |metric| metric.heading().to_owned())
}

/// Divides so many columns into parts that fit, of at least one each.
pub(super) fn parts_that_fit(columns: usize, fits: impl Fn(&[usize]) -> bool) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = vec![Vec::new()];
    for n in 0..columns {
        let Some(last) = parts.last_mut() else { break };
        last.push(n);
        if last.len() > 1 && !fits(last) {
            last.pop();
            parts.push(vec![n]);
        }
    }
    parts
}

/// The levels of the groups, and the lines.
struct LevelGroups<'a> {
    result: &'a Factorial,
    factor: &'a str,
    keys: Vec<&'a str>,
    levels: &'a [String],
    lines: Vec<Line<'a>>,
    /// The table of the first metric over the levels of the lines, which says which of them is best.
    best: Option<&'a Pivot>,
}

impl<'a> LevelGroups<'a> {
    fn of(result: &'a Factorial) -> Option<Self> {
        let GroupTable { factor, machine } = result.groups.as_deref()?;
        let found = cell_groups(&result.factors, factor);
        let levels = &found.first()?.factor.levels;
        let is_single = found.first()?.others.is_empty();
        let best = result.pivots.first().filter(|pivot| {
            let [(name, _)] = found[0].others[..] else { return false };
            pivot.factor == name && pivot.columns.len() > 1
        });
        let keys = match is_single {
            true => vec!["machine"],
            false => found[0].others.iter().map(|(name, _)| *name).collect(),
        };
        let line = |group: &CellGroup<'a>| Line {
            keys: match is_single {
                true => vec![machine.as_str()],
                false => group.others.iter().map(|(_, level)| *level).collect(),
            },
            cells: group.cells.iter().map(|n| result.cells.get(*n)).collect(),
        };
        Some(Self { result, factor, keys, levels, lines: found.iter().map(line).collect(), best })
    }

    /// The files of each line in a group.
    fn files(&self, group: usize) -> Vec<String> {
        self.lines.iter().map(|line| files_of(line.cells[group])).collect()
    }

    /// The metrics of a group: those of its first cell.
    fn metrics(&self, group: usize) -> &'a [CellMetric] {
        self.lines.iter().find_map(|line| line.cells[group]).map_or(&[], |cell| &cell.metrics)
    }

    /// The table of these groups. What files the runs have stands before the first group, and before each one that has
    /// other files than that before it.
    fn table(&self, groups: &[usize], media: Media) -> SheetTable {
        let is_known = |files: &[String]| files.iter().any(|of| *of != dash());
        let is_new = |at: usize| {
            let files = self.files(groups[at]);
            is_known(&files) && (at == 0 || files != self.files(groups[at - 1]))
        };
        let mut columns: Vec<SheetColumn> = self.keys.iter().map(|name| SheetColumn::words(name)).collect();
        for (at, group) in groups.iter().enumerate() {
            if is_new(at) {
                let is_single = |line: &Line<'_>| {
                    line.cells[*group].and_then(|cell| cell.files).is_none_or(|[number, _]| number == 1)
                };
                let is_size = self.lines.iter().all(is_single);
                columns.push(SheetColumn::numbers(if is_size { "size" } else { "files" }));
            }
            let level = &self.levels[*group];
            let of_group = |metric: &CellMetric| SheetColumn::numbers(&heading(&metric.metric)).below(level);
            columns.extend(self.metrics(*group).iter().map(of_group));
        }
        let caption = format!("{}: a line for each {}", self.factor, self.keys.join(", "));
        let mut table = SheetTable { media, is_compact: true, ..SheetTable::of(&caption, columns) };
        for (n, line) in self.lines.iter().enumerate() {
            let mut row: Vec<String> = line.keys.iter().map(|key| (*key).to_owned()).collect();
            for (at, group) in groups.iter().enumerate() {
                row.extend(is_new(at).then(|| self.files(*group).swap_remove(n)));
                let metrics = line.cells[*group].map_or(&[][..], |cell| &cell.metrics);
                let shown = |found: &CellMetric| Some(figure(&found.metric, found.estimate?.value));
                row.extend(
                    (0..self.metrics(*group).len()).map(|n| metrics.get(n).and_then(shown).unwrap_or_else(dash)),
                );
            }
            table.row(row);
        }
        for (n, name) in ["best", "factor"].into_iter().enumerate().filter(|_| self.best.is_some()) {
            let mut row = vec![String::new(); self.keys.len()];
            row[0] = name.to_owned();
            for (at, group) in groups.iter().enumerate() {
                row.extend(is_new(at).then(String::new));
                let found = self.best.and_then(|best| Some(best.outcome_cells(best.rows.get(*group)?)[n].clone()));
                let others = self.metrics(*group).len().saturating_sub(1);
                row.extend(std::iter::once(found.unwrap_or_else(dash)).chain(vec![String::new(); others]));
            }
            table.sum(row);
        }
        table
    }

    /// The lines of CSV: one for each line of the table and each run.
    fn points(&self) -> Vec<Vec<String>> {
        let columns: Vec<(usize, usize)> = (0..self.levels.len())
            .flat_map(|group| (0..self.metrics(group).len()).map(move |metric| (group, metric)))
            .collect();
        let heading = |(group, metric): &(usize, usize)| {
            format!("{} {}", self.levels[*group], self.metrics(*group)[*metric].metric)
        };
        let places = ["name"].into_iter().chain(self.keys.iter().copied()).chain(["run"]).map(str::to_owned);
        let mut lines: Vec<Vec<String>> =
            vec![places.chain(columns.iter().map(heading)).map(|text| csv::cell(&text)).collect()];
        for line in &self.lines {
            let values = |(group, metric): &(usize, usize)| -> &[f64] {
                line.cells[*group].and_then(|cell| cell.metrics.get(*metric)).map_or(&[], |found| &found.values)
            };
            let runs = columns.iter().map(|column| values(column).len()).max().unwrap_or(0);
            let place = std::iter::once(self.result.name.as_str()).chain(line.keys.iter().copied());
            let place: Vec<String> = place.map(csv::cell).collect();
            lines.extend((0..runs).map(|run| {
                let value = |column| values(column).get(run).map_or_else(String::new, f64::to_string);
                place.iter().cloned().chain([(run + 1).to_string()]).chain(columns.iter().map(value)).collect()
            }));
        }
        lines
    }

    /// The parts of the table that fit a terminal, of whole groups.
    fn parts(&self) -> Vec<Vec<usize>> {
        parts_that_fit(self.levels.len(), |part| self.table(part, Media::LINES).fits())
    }

    /// What the headings stand for, and the widest interval.
    fn below(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for metric in (0..self.levels.len()).flat_map(|group| self.metrics(group)) {
            let Ok(found) = metric.metric.parse::<Metric>() else { continue };
            let line = format!("{}: {}", found.heading(), found.about());
            if found.unit().is_empty() && !lines.contains(&line) {
                lines.push(line);
            }
        }
        let half = |metric: &CellMetric| metric.estimate.map(Estimate::relative).filter(|half| half.is_finite());
        let all = self.result.cells.iter().flat_map(|cell| cell.metrics.iter().map(move |metric| (cell, metric)));
        let known = all.filter_map(|(cell, metric)| Some((half(metric)?, cell, metric)));
        lines.extend(known.max_by(|(a, ..), (b, ..)| a.total_cmp(b)).map(|(half, cell, metric)| {
            format!("widest 95 % interval: ± {} ({} of {})", half_width(half), metric.metric, cell.levels.join(", "))
        }));
        lines
    }
}

impl Factorial {
    /// The lines of CSV, if they are those of the table; else none.
    pub(super) fn group_points(&self) -> Vec<Vec<String>> {
        LevelGroups::of(self).map_or_else(Vec::new, |groups| groups.points())
    }

    /// The table whose groups of columns are the levels of a factor, in parts where lines have no room, and the whole one
    /// on a page; none unless the experiment requests it.
    pub(super) fn group_tables(&self) -> Vec<SheetTable> {
        let Some(groups) = LevelGroups::of(self) else { return Vec::new() };
        let all: Vec<usize> = (0..groups.levels.len()).collect();
        let parts = groups.parts();
        let parts = parts.iter().map(|part| groups.table(part, Media::LINES));
        let mut tables: Vec<SheetTable> = parts.chain([groups.table(&all, Media::PAGE)]).collect();
        // The last of the parts, and the page.
        tables.iter_mut().rev().take(2).for_each(|table| table.below = groups.below());
        tables
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::formats::shown::{csv, latex, markdown, text};
    use super::super::{FactorLevels, FactorialDesign, FactorialTables};
    use super::*;
    use crate::analysis::{PrecisionRule, RepeatState};
    use crate::import::Observation;

    /// Two tests on two file systems, of which the second has no complete run of `copy`.
    fn result(groups: &str, columns: Option<&str>) -> Factorial {
        let factor = |name: &str, levels: [&str; 2]| FactorLevels {
            name: name.to_owned(),
            levels: levels.map(str::to_owned).to_vec(),
        };
        let factors = [factor("test", ["read, all", "copy"]), factor("fs", ["ext4", "xfs"])];
        let run = |files: f64, kib: f64, max: f64| {
            let figures = [("kib", kib), ("latency.max", max), ("defined.files", files), ("defined.bytes", 4096.0)];
            let figures = figures.map(|(name, value)| (name.to_owned(), value)).into();
            Observation { machine: "bench".to_owned(), figures, ..Observation::default() }
        };
        let cells = [
            vec![run(1.0, 100.0, 1e6), run(1.0, 100.0, 1e6)],
            vec![run(1.0, 200.0, 2e6)],
            vec![run(9.0, 7.0, 3e6)],
            vec![],
        ];
        let cells: Vec<(String, Vec<Observation>)> = cells.map(|runs| (String::new(), runs)).to_vec();
        let tables = FactorialTables {
            groups: Some(groups.to_owned()),
            columns: columns.map(str::to_owned),
            ..FactorialTables::default()
        };
        let design = FactorialDesign {
            name: "tests",
            factors: &factors,
            metrics: &["kib", "latency.max"].map(|name| name.parse().unwrap()),
            own: &[],
            target: None,
            stop: PrecisionRule::Corrected,
            planned_runs: None,
            in_order: false,
            in_blocks: false,
            tables: &tables,
        };
        design.result(RepeatState::Complete, &cells)
    }

    #[test]
    fn each_level_is_a_group_of_columns() {
        let shown = text(&result("test", Some("fs")));
        let lines: Vec<String> =
            shown.lines().skip(2).take(7).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "─ read, all ── ──── copy ────",
                "fs size KiB/s max files KiB/s max",
                "ext4 4.0 KiB 100.0 1.00 ms 9, 4.0 KiB 7.00 3.00 ms",
                "xfs 4.0 KiB 200.0 2.00 ms - - -",
                "best xfs? -",
                "factor 2.00 -",
                "max: latency of the slowest operation, a single event",
            ],
            "{shown}"
        );
        assert!(!text(&result("test", None)).contains("\nbest "));
    }

    #[test]
    fn other_formats_have_the_same_groups() {
        let found = result("test", Some("fs"));
        assert!(
            markdown(&found)
                .contains("| fs | size | read, all KiB/s | read, all max | files | copy KiB/s | copy max |")
        );
        let shown = latex(&found);
        let expected = " &  & \\multicolumn{2}{c}{read, all} &  & \\multicolumn{2}{c}{copy} \\\\\n\
            \\cmidrule(lr){3-4}\n\\cmidrule(lr){6-7}\nfs & size & KiB/s & max & files & KiB/s & max \\\\\n";
        assert!(shown.contains(expected), "{shown}");
        let lines = "name,fs,run,\"read, all kib\",\"read, all latency.max\",copy kib,copy latency.max\n\
            tests,ext4,1,100,1000000,7,3000000\ntests,ext4,2,100,1000000,,\ntests,xfs,1,200,2000000,,\n";
        assert_eq!(csv(&found), lines);
    }

    /// Without other factors the line is that of the machine.
    #[test]
    fn the_only_line_is_named_by_the_machine() {
        let mut found = result("test", None);
        found.factors.truncate(1);
        found.cells = vec![found.cells[0].clone(), found.cells[2].clone()];
        let shown = text(&found);
        assert!(shown.contains("\nmachine     size  KiB/s      max"), "{shown}");
        assert!(shown.contains("\nbench    4.0 KiB  100.0  1.00 ms"), "{shown}");
    }
}
