//! Reads columns of numbers, with one observation on each line.

use super::{MAX_OBSERVATIONS, Observation, TOO_MANY, shortened};
use crate::analysis::LoadPoint;
use crate::report::metrics::VALUE;
use crate::util::printable;
use std::borrow::Cow;
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

/// Splits `FILE:HEADING` into the file, which must exist, and the heading of a column. Returns `None` when the path has
/// another form, or when a file with the whole name exists.
pub(super) fn split_heading(path: &Path) -> Option<(PathBuf, String)> {
    if path.exists() {
        return None;
    }
    let (file, heading) = path.to_str()?.rsplit_once(':')?;
    let file = PathBuf::from(file);
    (file.is_file() && !heading.is_empty()).then(|| (file, heading.to_owned()))
}

/// Returns the number of the column with a heading in the first line, counted from 1. Returns an error when there is
/// none.
pub(super) fn column_of(text: &str, heading: &str) -> Result<usize, String> {
    let cells = rows(text)?.next().map(|(_, cells)| cells.collect::<Vec<_>>()).unwrap_or_default();
    cells.iter().position(|cell| cell == heading).map(|index| index + 1).ok_or_else(|| {
        let names: Vec<String> = cells.iter().map(|cell| shown(cell).into_owned()).collect();
        format!("no column has the heading `{}`; its first line is {}", shown(heading), shortened(&names))
    })
}

/// True if each line has one number and nothing else, except for a heading. Such a file needs no number of its column.
pub(super) fn is_one_column(text: &str) -> bool {
    let Ok(rows) = rows(text) else { return false };
    let mut has_number = false;
    let mut is_part = |(index, (_, mut cells)): (usize, (usize, Cells<'_>))| {
        let is_number = cells.next().is_some_and(|cell| cell.parse::<f64>().is_ok());
        has_number |= is_number;
        if is_number { cells.all(|cell| cell.is_empty()) } else { index == 0 }
    };
    rows.enumerate().all(&mut is_part) && has_number
}

/// Reads the numbers of a column. The columns are separated by semicolons, tabs, commas or white space, whichever
/// occurs first in this list and in the first line. A cell in double quotes may contain separators. Empty lines and
/// lines that start with `#` are ignored. A first line whose cell in the column is not a number is a heading. Returns
/// an error when the column is missing in a line, has a cell that is not a finite number, has no numbers, or has more
/// than [`MAX_OBSERVATIONS`], and when the commas of all lines may be those between groups of digits.
pub(super) fn observations(text: &str, column: usize, source: &str) -> Result<Vec<Observation>, String> {
    if has_grouped_digits(text) {
        let text = "the commas may separate columns or groups of digits, as in `9,120`";
        return Err(format!("{text}; add a heading, separate columns by semicolons, or write numbers without commas"));
    }
    let mut found = Vec::new();
    for (index, (n, mut cells)) in rows(text)?.enumerate() {
        let cell = cells.nth(column - 1).ok_or_else(|| format!("line {n} has no column {column}"))?;
        match cell.parse::<f64>() {
            Ok(_) if found.len() == MAX_OBSERVATIONS => return Err(TOO_MANY.to_owned()),
            Ok(value) if value.is_finite() => found.push(Observation {
                source: format!("{source}, line {n}"),
                figures: BTreeMap::from([(VALUE.to_owned(), value)]),
                is_rounded: true,
                ..Observation::default()
            }),
            Err(_) if index == 0 => {}
            _ => return Err(format!("line {n}: `{}` is not a finite number", shown(&cell))),
        }
    }
    if found.is_empty() { Err(format!("column {column} has no numbers")) } else { Ok(found) }
}

/// Returns the lines that are neither empty nor comments, each with its index.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // Spreadsheets put a byte order mark before the first cell.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

/// True if every line is one number, of which those from 1,000 on have commas between groups of three digits. Such
/// a file can't be told from one with several columns.
fn has_grouped_digits(text: &str) -> bool {
    let is_grouped = |line: &str, least: usize| {
        let mut groups = line.trim().split(',');
        let first = groups.next().unwrap_or("");
        let are_digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
        let others: Vec<&str> = groups.collect();
        (1..=3).contains(&first.len())
            && are_digits(first)
            && !first.starts_with('0')
            && others.len() >= least
            && others.into_iter().all(|group| group.len() == 3 && are_digits(group))
    };
    lines(text).any(|(_, line)| is_grouped(line, 1)) && lines(text).all(|(_, line)| is_grouped(line, 0))
}

/// Returns the lines that are neither empty nor comments, each with its number, counted from 1, and its cells.
fn rows(text: &str) -> Result<impl Iterator<Item = (usize, Cells<'_>)>, String> {
    let (_, first) = lines(text).next().ok_or("the file has no lines")?;
    // A comma beside one of the others may be part of a number.
    let separator = [';', '\t', ','].into_iter().find(|c| first.split('"').step_by(2).any(|part| part.contains(*c)));
    Ok(lines(text).map(move |(n, line)| (n + 1, Cells { rest: Some(line), separator })))
}

/// Returns the cells of each line of a table with headings.
pub(crate) fn table_rows(text: &str) -> Result<Vec<Vec<String>>, String> {
    Ok(rows(text)?.map(|(_, cells)| cells.map(Cow::into_owned).collect()).collect())
}

/// The cells of a line. A cell that starts with a double quote ends at the next single one; two of them are a quote in
/// the cell.
struct Cells<'a> {
    /// The line from the next cell on; `None` after the last cell.
    rest: Option<&'a str>,
    /// The character between two cells; `None` for white space.
    separator: Option<char>,
}

impl<'a> Iterator for Cells<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Cow<'a, str>> {
        let ends = |c: char| self.separator.map_or_else(|| c.is_whitespace(), |separator| c == separator);
        let is_padding = |c: char| c.is_whitespace() && Some(c) != self.separator;
        let cell = self.rest?.trim_start_matches(is_padding);
        if self.separator.is_none() && cell.is_empty() {
            self.rest = None;
            return None;
        }
        let (quoted, after) = match cell.strip_prefix('"') {
            Some(quoted) => {
                let end = closing_quote(quoted);
                let content = quoted[..end].replace("\"\"", "\"");
                (Some(Cow::Owned(content)), quoted.get(end + 1..).unwrap_or(""))
            }
            None => (None, cell),
        };
        let end = after.find(ends);
        let content = quoted.unwrap_or_else(|| after[..end.unwrap_or(after.len())].trim().into());
        // A separator is one byte. White space of any length stays for the next call.
        let skipped = usize::from(self.separator.is_some());
        self.rest = end.map(|end| &after[end + skipped..]);
        Some(content)
    }
}

/// Returns the position of the quote that ends a quoted cell, or the length of the text without one.
fn closing_quote(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'"', Some(b'"')) => at += 2,
            (b'"', _) => return at,
            _ => at += 1,
        }
    }
    at
}

/// Returns an error when line `n` has cells that are not empty after the first `known` ones, of which `expected` says
/// what they are. The commas of such a line may be those between groups of digits, as in `9,120`, and the known cells
/// parts of numbers.
fn refuse_further(cells: Cells<'_>, n: usize, known: usize, expected: &str) -> Result<(), String> {
    match cells.enumerate().filter(|(_, cell)| !cell.is_empty()).last() {
        Some((last, _)) => Err(format!("line {n} has {} columns; expected {expected}", known + last + 1)),
        None => Ok(()),
    }
}

/// Shortens a cell for a message.
fn shown(cell: &str) -> Cow<'_, str> {
    printable::short(cell, 40)
}

/// The figures of several tests of two or more sides.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TestFigures {
    /// The names of the sides.
    pub sides: Vec<String>,
    /// The name of each test with the figure of each side; `None` if it is unknown.
    pub tests: Vec<(String, Vec<Option<f64>>)>,
}

/// How figures are written, for a cell that may be one in another form, such as `1,234.5` or `1,5`.
fn form_of_figures(cell: &str) -> &'static str {
    let is_part = |c: char| c.is_ascii_digit() || c.is_whitespace() || ".,'’_".contains(c);
    let is_percent = cell.strip_suffix('%').is_some_and(|number| number.trim_end().parse::<f64>().is_ok());
    match cell.chars().all(is_part) {
        true => ": figures have a decimal point, and nothing between groups of digits",
        false if is_percent => ": figures have no unit; omit the `%`",
        false => "",
    }
}

/// The most sides of tests.
pub(crate) const MAX_SIDES: usize = 26;

/// Returns the names of sides that have none: A, B and so on.
pub(crate) fn letters(sides: usize) -> Vec<String> {
    ('A'..='Z').take(sides).map(String::from).collect()
}

/// Reads the figures of tests, one test on each line: its name and the figure of each side, `-` or nothing if unknown. A
/// heading in the first line names the sides; without it there are two. Returns an error when a line is malformed or has
/// further columns, when two sides have one name, or when there are no tests or more than 100,000.
pub(super) fn test_figures(text: &str) -> Result<TestFigures, String> {
    let number = |cell: &str| cell.parse::<f64>().ok().filter(|value| value.is_finite());
    let is_figure = |cell: &str| cell == "-" || number(cell).is_some();
    let mut found = TestFigures { sides: letters(2), tests: Vec::new() };
    for (index, (n, mut cells)) in rows(text)?.enumerate() {
        let name = cells.next().unwrap_or_default();
        let mut cells: Vec<Cow<'_, str>> = cells.collect();
        // Separators at the end of a line are no columns, unless a side lacks its figure.
        let known = cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
        let is_heading = index == 0 && known > 1 && !cells.iter().any(|cell| is_figure(cell));
        cells.truncate(if is_heading || known == 0 { known } else { known.max(found.sides.len()) });
        match cells.len() {
            0 | 1 => return Err(format!("line {n} has fewer than three columns")),
            sides if is_heading && sides > MAX_SIDES => {
                return Err(format!("line {n} has more than {MAX_SIDES} sides"));
            }
            _ if is_heading => {
                if let Some(twice) = (1..cells.len()).find(|n| cells[..*n].contains(&cells[*n])) {
                    return Err(format!("line {n}: two sides are named `{}`", shown(&cells[twice])));
                }
                found.sides = cells.into_iter().map(Cow::into_owned).collect();
            }
            // The commas may be those between groups of digits, as in `9,120`.
            sides if sides != found.sides.len() => {
                let expected = if found.sides.len() == 2 { "two".to_owned() } else { found.sides.len().to_string() };
                return Err(format!("line {n} has {} columns; expected a name and {expected} figures", sides + 1));
            }
            _ if found.tests.len() == MAX_OBSERVATIONS => return Err(TOO_MANY.to_owned()),
            _ => match cells.iter().find(|cell| !cell.is_empty() && !is_figure(cell)) {
                Some(cell) => {
                    return Err(format!("line {n}: `{}` is not a figure{}", shown(cell), form_of_figures(cell)));
                }
                None => found.tests.push((name.into_owned(), cells.iter().map(|cell| number(cell)).collect())),
            },
        }
    }
    if found.tests.is_empty() { Err("the file has no tests".to_owned()) } else { Ok(found) }
}

/// Reads the points of a load curve, one on each line in the order of their load: the rate, and the mean response time,
/// which is `-` or nothing if it is unknown. A heading in the first line is ignored. Returns an error when a line is
/// malformed or has further columns, or when there are no points or more than 100,000.
pub(crate) fn load_points(text: &str) -> Result<Vec<LoadPoint>, String> {
    let number = |cell: &str| cell.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    let mut found = Vec::new();
    for (index, (n, mut cells)) in rows(text)?.enumerate() {
        let (Some(rate), Some(response)) = (cells.next(), cells.next()) else {
            return Err(format!("line {n} has fewer than two columns"));
        };
        refuse_further(cells, n, 2, "a rate and a response time")?;
        if found.len() == MAX_OBSERVATIONS {
            return Err(TOO_MANY.to_owned());
        }
        match (number(&rate), number(&response), response == "-" || response.is_empty()) {
            (Some(rate), Some(response), _) => found.push(LoadPoint { rate, response: Some(response) }),
            (Some(rate), None, true) => found.push(LoadPoint { rate, response: None }),
            _ if index == 0 && rate.parse::<f64>().is_err() => {}
            _ => {
                let (rate, response) = (shown(&rate), shown(&response));
                return Err(format!("line {n}: `{rate}` and `{response}` are not a rate and a response time"));
            }
        }
    }
    if found.is_empty() { Err("the file has no points".to_owned()) } else { Ok(found) }
}
