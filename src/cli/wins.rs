//! `wmlrun wins`: which of two sides is better in each of several tests whose figures are in a file.

use super::choices::FigureFormat;
use super::console;
use super::experiments::print_text;
use crate::analysis::{Direction, TestOutcome, Wins, outcome, wins as count_wins};
use crate::comparison::{outcome_cells, wins_line};
use crate::import::{self, TestFigures};
use crate::util::printable;
use crate::util::table::{Align, Table};
use serde::Serialize;
use std::path::Path;

/// The output of `wmlrun wins --format json`.
#[derive(Serialize)]
struct WinsDocument<'a> {
    a: &'a str,
    b: &'a str,
    tests: Vec<TestLine<'a>>,
    wins: Wins,
}

/// A test with its figures.
#[derive(Serialize)]
struct TestLine<'a> {
    name: &'a str,
    a: Option<f64>,
    b: Option<f64>,
    outcome: Option<TestOutcome>,
}

/// Prints the outcomes of the tests in a file. Returns the exit status.
pub(super) fn wins(file: &Path, lower_is_better: bool, format: FigureFormat) -> u8 {
    let found = match import::test_figures(file) {
        Ok(found) => found,
        Err(e) => {
            let help = "the file needs one line per test: its name and two figures, `-` for one that is unknown";
            console::error(&e.to_string(), Some(help));
            return 2;
        }
    };
    let direction = if lower_is_better { Direction::LowerIsBetter } else { Direction::HigherIsBetter };
    let document = document(&found, direction);
    let text = match format {
        FigureFormat::Json => serde_json::to_string_pretty(&document).unwrap_or_default() + "\n",
        FigureFormat::Text => text(&document),
    };
    print_text(&text);
    0
}

fn document(found: &TestFigures, direction: Direction) -> WinsDocument<'_> {
    let lines: Vec<TestLine<'_>> = found
        .tests
        .iter()
        .map(|(name, [a, b])| {
            let outcome = a.zip(*b).and_then(|(a, b)| outcome(a, b, direction));
            TestLine { name, a: *a, b: *b, outcome }
        })
        .collect();
    let outcomes: Vec<Option<TestOutcome>> = lines.iter().map(|line| line.outcome).collect();
    WinsDocument { a: &found.sides[0], b: &found.sides[1], wins: count_wins(&outcomes), tests: lines }
}

fn text(document: &WinsDocument<'_>) -> String {
    let dash = || "-".to_owned();
    let mut table = Table::new([
        ("test", Align::Left),
        (document.a, Align::Right),
        (document.b, Align::Right),
        ("better", Align::Left),
        ("factor", Align::Right),
    ]);
    for test in &document.tests {
        let number = |value: Option<f64>| value.map_or_else(dash, |value| value.to_string());
        let [better, factor] = outcome_cells(test.outcome, document.a, document.b);
        table.row([test.name.to_owned(), number(test.a), number(test.b), better, factor]);
    }
    let ending = wins_line(document.a, document.b, document.wins);
    format!("{}\n{}\n", printable::lines(&table.render()), ending)
}
