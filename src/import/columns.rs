//! Reads columns of numbers, with one observation on each line.

use super::Observation;
use crate::analysis::LoadPoint;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Splits `FILE:N` into the file and the column, counted from 1. Returns `None` when the path has another form, or when
/// a file with the whole name exists.
pub(super) fn split(path: &Path) -> Option<(PathBuf, usize)> {
    if path.exists() {
        return None;
    }
    let (file, column) = path.to_str()?.rsplit_once(':')?;
    let column = column.parse().ok().filter(|n| *n > 0)?;
    Some((PathBuf::from(file), column))
}

/// Reads the numbers of a column. The columns are separated by commas, semicolons, tabs or white space, whichever
/// occurs first in this list and in the first line. Empty lines and lines that start with `#` are ignored. A first line
/// without a number in the column is a heading. Returns an error when the column is missing in a line, has a cell that
/// is not a finite number, or has no numbers.
pub(super) fn observations(text: &str, column: usize, source: &str) -> Result<Vec<Observation>, String> {
    let mut found = Vec::new();
    for (index, (n, cells)) in rows(text)?.into_iter().enumerate() {
        let cell = cells.get(column - 1).ok_or_else(|| format!("line {n} has no column {column}"))?;
        match cell.parse::<f64>() {
            Ok(value) if value.is_finite() => found.push(Observation {
                source: format!("{source}, line {n}"),
                figures: BTreeMap::from([("value".to_owned(), value)]),
                ..Observation::default()
            }),
            _ if index == 0 => {}
            _ => return Err(format!("line {n}: `{cell}` is not a number")),
        }
    }
    if found.is_empty() { Err(format!("column {column} has no numbers")) } else { Ok(found) }
}

/// Returns the lines that are neither empty nor comments, each with its number, counted from 1, and its cells.
fn rows(text: &str) -> Result<Vec<(usize, Vec<&str>)>, String> {
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let Some((_, first)) = lines().next() else { return Err("the file has no lines".to_owned()) };
    let separator = [',', ';', '\t'].into_iter().find(|c| first.contains(*c));
    let cells = |(n, line)| {
        let parts: Vec<&str> = match separator {
            Some(separator) => str::split(line, separator).map(|cell| cell.trim().trim_matches('"')).collect(),
            None => line.split_whitespace().collect(),
        };
        (n + 1, parts)
    };
    Ok(lines().map(cells).collect())
}

/// Reads the points of a load curve, one on each line in the order of their load: the rate, and the mean response time,
/// which is `-` if it is unknown. Further columns are ignored, and so is a heading in the first line. Returns an error
/// when a line is malformed or there are no points.
pub fn load_points(text: &str) -> Result<Vec<LoadPoint>, String> {
    let number = |cell: &str| cell.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    let mut found = Vec::new();
    for (index, (n, cells)) in rows(text)?.into_iter().enumerate() {
        let [rate, response, ..] = cells[..] else { return Err(format!("line {n} has fewer than two columns")) };
        match (number(rate), number(response), response == "-") {
            (Some(rate), Some(response), _) => found.push(LoadPoint { rate, response: Some(response) }),
            (Some(rate), None, true) => found.push(LoadPoint { rate, response: None }),
            (None, None, false) if index == 0 => {}
            _ => return Err(format!("line {n}: `{rate}` and `{response}` are not a rate and a response time")),
        }
    }
    if found.is_empty() { Err("the file has no points".to_owned()) } else { Ok(found) }
}
