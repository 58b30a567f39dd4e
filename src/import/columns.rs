//! Columns of numbers: one observation a line.

use super::Observation;
use crate::analysis::LoadPoint;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `FILE:N`, if no file has that whole name.
pub(super) fn split(path: &Path) -> Option<(PathBuf, usize)> {
    if path.exists() {
        return None;
    }
    let (file, column) = path.to_str()?.rsplit_once(':')?;
    let column = column.parse().ok().filter(|n| *n > 0)?;
    Some((PathBuf::from(file), column))
}

/// The numbers in a column. Commas, semicolons, tabs or blanks part the columns, whichever of them the first line has, in this order. Lines
/// that are empty or begin with `#` are passed over; so is the first one if there is no number in the column, which then is its head.
pub(super) fn observations(text: &str, column: usize, source: &str) -> Result<Vec<Observation>, String> {
    let mut found = Vec::new();
    for (place, (n, cells)) in rows(text)?.into_iter().enumerate() {
        let cell = cells.get(column - 1).ok_or_else(|| format!("line {n} has no column {column}"))?;
        match cell.parse::<f64>() {
            Ok(value) if value.is_finite() => found.push(Observation {
                source: format!("{source}, line {n}"),
                figures: BTreeMap::from([("value".to_owned(), value)]),
                ..Observation::default()
            }),
            _ if place == 0 => {}
            _ => return Err(format!("line {n}: `{cell}` is no number")),
        }
    }
    if found.is_empty() { Err(format!("column {column} has no numbers")) } else { Ok(found) }
}

/// The lines that have something, each with its number from 1 and its cells.
fn rows(text: &str) -> Result<Vec<(usize, Vec<&str>)>, String> {
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let Some((_, first)) = lines().next() else { return Err("it has no lines".to_owned()) };
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

/// The points of a load curve, one a line in the order of their load: the rate, and the mean response time, which is `-` where it is
/// missing. Further columns are passed over; so is a first line that is the columns' head.
pub fn load_points(text: &str) -> Result<Vec<LoadPoint>, String> {
    let number = |cell: &str| cell.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    let mut found = Vec::new();
    for (place, (n, cells)) in rows(text)?.into_iter().enumerate() {
        let [rate, response, ..] = cells[..] else { return Err(format!("line {n} has fewer than two columns")) };
        match (number(rate), number(response), response == "-") {
            (Some(rate), Some(response), _) => found.push(LoadPoint { rate, response: Some(response) }),
            (Some(rate), None, true) => found.push(LoadPoint { rate, response: None }),
            (None, None, false) if place == 0 => {}
            _ => return Err(format!("line {n}: `{rate}` and `{response}` are no rate and response time")),
        }
    }
    if found.is_empty() { Err("it has no points".to_owned()) } else { Ok(found) }
}
