//! Reads a table of runs, such as `--append` writes (`report::csv_runs`). Each row is an observation.

use super::{MAX_OBSERVATIONS, Observation, TOO_MANY, columns, numbered};
use crate::report::metrics::{COLUMNS, COLUMNS_BEHIND};
use crate::result::RunState;
use crate::util::timestamp::seconds_of;
use std::collections::BTreeMap;
use std::path::Path;

/// The first heading of the columns of a run, and those that come before it in a table of the runs of experiments.
const FIRST: &str = "started_at,label,note,script,";
const PLACE: &str = "experiment,arm,experiment_run,";

/// The columns that are conditions, with their names. That of the kernel has less than the condition `kernel`.
const CONDITIONS: [(&str, &str); 5] = [
    ("label", "label"),
    ("note", "note"),
    ("engine", "engine"),
    ("cache_state", "cache"),
    ("kernel", "kernel release"),
];

/// True if a text begins with the headings of such a table.
pub(super) fn is_table(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.strip_prefix(PLACE).unwrap_or(text).starts_with(FIRST)
}

/// Reads the rows.
pub(super) fn observations(text: &str, source: &str) -> Result<Vec<Observation>, String> {
    let mut rows = columns::table_rows(text)?.into_iter();
    let headings = rows.next().unwrap_or_default();
    let (all, rows) = (rows.len(), rows.enumerate());
    if all > MAX_OBSERVATIONS {
        return Err(TOO_MANY.to_owned());
    }
    if all == 0 {
        return Err("it has no run".to_owned());
    }
    let of_row = |(n, cells): (usize, Vec<String>)| {
        let row: BTreeMap<&str, &str> =
            headings.iter().map(String::as_str).zip(cells.iter().map(String::as_str)).collect();
        observation(&row, numbered(source, n, all))
    };
    Ok(rows.map(of_row).collect())
}

fn observation(row: &BTreeMap<&str, &str>, source: String) -> Observation {
    let cell = |name: &str| row.get(name).copied().unwrap_or_default();
    let number = |name: &str| cell(name).parse::<f64>().ok().filter(|value| value.is_finite());
    let percentile =
        |name: &&str| Some(format!("latency.{}", name.strip_suffix("_ns")?)).filter(|_| name.starts_with('p'));
    let of_percentile = |name: &&str| Some((percentile(name)?, number(name)?));
    let columns = COLUMNS.iter().chain(COLUMNS_BEHIND);
    let named = columns.filter_map(|column| Some((column.metric?.to_owned(), number(column.key)?)));
    let named_conditions = CONDITIONS.iter().map(|(column, name)| ((*name).to_owned(), cell(column).to_owned()));
    let script = ("script".to_owned(), cell("script_sha256").chars().take(12).collect());
    let tool = match cell("version").split_once(' ') {
        Some((version, commit)) => format!("wmlrun {version} ({commit})"),
        None => format!("wmlrun {}", cell("version")),
    };
    let path = Path::new(cell("script"));
    Observation {
        source,
        workload: path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
        arm: cell("arm").to_owned(),
        machine: cell("host").to_owned(),
        figures: named.chain(row.keys().filter_map(of_percentile)).collect(),
        operations: number("ops").map(|ops| (String::new(), ops)).into_iter().collect(),
        conditions: named_conditions
            .chain([script, ("tool".to_owned(), tool)])
            .filter(|(_, value)| !value.is_empty())
            .collect(),
        started: seconds_of(cell("started_at")),
        failure: (cell("state") != RunState::Complete.name()).then(|| format!("it is `{}`", cell("state"))),
        file_is_complete: true,
        ..Observation::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::report::csv_runs::{ExperimentRun, experiment_header, experiment_row, header_line};
    use crate::result::fixture::fixture;

    #[test]
    fn a_row_has_the_figures_of_its_run() {
        let document = fixture();
        let of_json = super::super::of_run(&document, &document.runs[0], "");
        let mut row = Vec::new();
        let of = ExperimentRun { experiment: "mail", arm: "fs=ext4,n=1", number: 7 };
        experiment_row(of, &document, 0, &mut row).unwrap();
        let text = format!("{}{}", experiment_header(), String::from_utf8(row).unwrap());
        assert!(is_table(&text) && is_table(&header_line()) && !is_table("a,b\n1,2\n"));
        let found = &observations(&text, "t.csv").unwrap()[0];
        assert!(found.figures.len() > 6);
        for (name, value) in &found.figures {
            assert_eq!(of_json.figures.get(name), Some(value), "{name}");
        }
        for name in ["script", "tool", "engine", "cache"] {
            assert_eq!(found.conditions.get(name), of_json.conditions.get(name), "{name}");
        }
        assert_eq!((found.started, &found.workload, &*found.arm), (of_json.started, &of_json.workload, "fs=ext4,n=1"));
        assert_eq!((&found.failure, found.source.as_str()), (&of_json.failure, "t.csv"));
        assert!(observations(&header_line(), "t.csv").is_err());
    }
}
