//! Columns of numbers: one observation a line.

use super::Observation;
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
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let Some((_, first)) = lines().next() else { return Err("it has no lines".to_owned()) };
    let separator = [',', ';', '\t'].into_iter().find(|c| first.contains(*c));
    let cell = |line: &'_ str| -> Option<String> {
        let cell = match separator {
            Some(separator) => line.split(separator).nth(column - 1),
            None => line.split_whitespace().nth(column - 1),
        };
        cell.map(|cell| cell.trim().trim_matches('"').to_owned())
    };
    let mut found = Vec::new();
    for (place, (n, line)) in lines().enumerate() {
        let cell = cell(line).ok_or_else(|| format!("line {} has no column {column}", n + 1))?;
        match cell.parse::<f64>() {
            Ok(value) if value.is_finite() => found.push(Observation {
                source: format!("{source}, line {}", n + 1),
                figures: BTreeMap::from([("value".to_owned(), value)]),
                ..Observation::default()
            }),
            _ if place == 0 => {}
            _ => return Err(format!("line {}: `{cell}` is no number", n + 1)),
        }
    }
    if found.is_empty() { Err(format!("column {column} has no numbers")) } else { Ok(found) }
}
