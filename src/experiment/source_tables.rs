//! The tables of published measurements: shipped experiments with planted runs, and what is printed of them.
//!
//! A case is a file `tests/cases/source/NAME.csv`. `# experiment: NAME`, `# sides: A, B`, `# over: B` and `# method: sfs3`
//! say what is run, `# metrics: A, B` what `report --metric` shows, and `# condition: NAME=VALUE` is a condition of all
//! runs; `# machine: NAME` is that on which they were made. `# file: NAME.toml` is an experiment that is not shipped, in the
//! same folder. The first line without `#` has the factors and the figures of a run; a `;` in a level is a comma. A cell with
//! one line has three runs, of which two differ from the first by 0.1 %, unless the experiment makes one. Cells without a
//! line are not part of the table.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]
use super::{FileLevel, read_file, suite};
use crate::analysis::{RepeatState, ResponseMethod};
use crate::comparison::{FactorLevels, Factorial, FactorialDesign, find_format};
use crate::import::{Metric, Observation};
use crate::source::{SourceMap, Spanned};
use std::collections::BTreeMap;
use std::path::Path;

/// The value of a comment `# KEY: VALUE`.
fn said<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(": "))
}

fn names(text: Option<&str>) -> Vec<String> {
    text.into_iter().flat_map(|text| text.split(", ")).map(str::to_owned).collect()
}

/// Runs with these figures: as they are and, if a cell has several, less 0.1 % and more.
fn runs(
    lines: &[BTreeMap<String, f64>],
    machine: &str,
    conditions: &BTreeMap<String, String>,
    repeats: u64,
) -> Vec<Observation> {
    let scaled = |figures: &BTreeMap<String, f64>, factor: f64| Observation {
        machine: machine.to_owned(),
        conditions: conditions.clone(),
        figures: figures.iter().map(|(name, value)| (name.clone(), value * factor)).collect(),
        warnings: figures
            .get("overloaded")
            .filter(|is| **is > 0.0)
            .map(|_| "unstable".to_owned())
            .into_iter()
            .collect(),
        ..Observation::default()
    };
    match lines {
        [one] if repeats > 1 => [1.0, 0.999, 1.001].map(|factor| scaled(one, factor)).to_vec(),
        lines => lines.iter().map(|figures| scaled(figures, 1.0)).collect(),
    }
}

fn table(text: &str, dir: &Path) -> Factorial {
    let own = said(text, "file").map(|name| (name, std::fs::read_to_string(dir.join(name)).unwrap()));
    let shipped = || suite(said(text, "experiment").unwrap()).unwrap();
    let (name, content) = own.as_ref().map_or_else(shipped, |(name, content)| (name, content));
    let mut map = SourceMap::new();
    let id = map.add(name, content);
    let mut file = read_file(&map, id).unwrap();
    let sides: Vec<String> = names(said(text, "sides")).iter().map(|side| format!("{side}=--dir {side}")).collect();
    file.add_sides(&mut map, &sides, &names(said(text, "over"))).unwrap_or_else(|failure| panic!("{failure:?}"));
    file.tables.method = said(text, "method").and_then(ResponseMethod::find).or(file.tables.method);
    let metrics = names(said(text, "metrics"));
    if !metrics.is_empty() {
        let metrics = metrics.iter().map(|name| Spanned { node: name.parse().unwrap(), span: file.metrics[0].span });
        file.metrics = metrics.collect();
    }
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    let (levels, figures) = heads.split_at(file.factors.len());
    assert!(levels.iter().eq(file.factors.iter().map(|factor| &factor.name.node)), "{levels:?}");
    let mut planted: BTreeMap<Vec<String>, Vec<BTreeMap<String, f64>>> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let (levels, values) = cells.split_at(file.factors.len());
        let values = figures.iter().zip(values).filter(|(_, value)| **value != "-");
        let values = values.map(|(name, value)| ((*name).to_owned(), value.parse().unwrap()));
        let values: BTreeMap<String, f64> = values.collect();
        let runs = planted.entry(levels.iter().map(|level| level.replace(';', ",")).collect()).or_default();
        // A cell without figures has no run.
        runs.extend((!values.is_empty()).then_some(values));
    }
    let is_used = |n: usize, level: &FileLevel| planted.keys().any(|levels| levels[n] == level.name.node);
    for (n, factor) in file.factors.iter_mut().enumerate() {
        factor.levels.retain(|level| is_used(n, level));
    }
    let mut cells: Vec<(Vec<String>, Option<Metric>)> = vec![(Vec::new(), None)];
    for factor in &file.factors {
        let with = |(names, own): (Vec<String>, Option<Metric>)| {
            factor.levels.iter().map(move |level| {
                let own = own.clone().or_else(|| level.metric.as_ref().map(|metric| metric.node.clone()));
                (names.iter().cloned().chain([level.name.node.clone()]).collect(), own)
            })
        };
        cells = cells.into_iter().flat_map(with).collect();
    }
    assert!(planted.keys().all(|levels| cells.iter().any(|(cell, _)| cell == levels)), "a level that does not exist");
    let factors: Vec<FactorLevels> = file
        .factors
        .iter()
        .map(|factor| FactorLevels {
            name: factor.name.node.clone(),
            levels: factor.levels.iter().map(|level| level.name.node.clone()).collect(),
        })
        .collect();
    let conditions = text.lines().filter_map(|line| line.strip_prefix("# condition: ")?.split_once('='));
    let conditions = conditions.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let machine = said(text, "machine").unwrap_or_default();
    let metrics: Vec<Metric> = file.metrics.iter().map(|metric| metric.node.clone()).collect();
    let own: Vec<Option<Metric>> = cells.iter().map(|(_, own)| own.clone()).collect();
    let runs: Vec<(String, Vec<Observation>)> = cells
        .iter()
        .map(|(levels, _)| {
            (
                levels.join(","),
                planted.get(levels).map_or_else(Vec::new, |lines| runs(lines, machine, &conditions, file.repeats.1)),
            )
        })
        .collect();
    let design = FactorialDesign {
        name,
        factors: &factors,
        metrics: &metrics,
        own: &own,
        target: None,
        stop: file.stop,
        planned_runs: None,
        in_order: !file.order.has_blocks(),
        in_blocks: false,
        tables: &file.tables,
    };
    design.result(RepeatState::Complete, &runs)
}

#[test]
fn the_tables_are_those_of_the_sources() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/source");
    let mut cases: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.extension().is_some_and(|ending| ending == "csv"));
    cases.sort();
    assert!(!cases.is_empty());
    for path in cases {
        let text = std::fs::read_to_string(&path).unwrap();
        let shown = find_format("text").unwrap().write(&table(&text, &dir));
        let mut settings = insta::Settings::new();
        settings.set_snapshot_path(&dir);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(path.file_stem().unwrap().to_string_lossy().into_owned(), shown));
    }
}
