//! The comparison in the header of a script, as comments.

use super::rows::Fidelity;
use wml_text::table::{Align, Table};
use wml_text::wrap::fill;

/// The first words of the part of a header.
pub(super) const BEGINS: &str = "# Fidelity: ";
/// What scales a learned script: the threads of a loop, and factors.
const SCALES: [&str; 3] = ["clients", "files", "scale"];
/// How its other lines begin.
const GOES_ON: &str = "#   ";
/// What a script that was only learned says instead.
pub(crate) const NOT_COMPARED: &str = "# Fidelity: not compared with the program yet, by `wmlrun fidelity`.";

/// What follows the values of the variables with which it was compared.
const OTHERS: &str = "; other values were not compared.";

/// The variables of a script that its comparison names, with the values that they had.
pub fn compared_values(script: &str) -> Vec<(String, String)> {
    let text = fidelity_in(script).unwrap_or_default().replace('\n', " ");
    let values = text.split_once(OTHERS).and_then(|(before, _)| before.rsplit_once(" With "));
    let all = values.into_iter().flat_map(|(_, values)| values.split(", "));
    let all = all.filter_map(|value| value.strip_prefix('$')?.split_once('='));
    all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// What a learned script lets a person change, and what else was set, as it was compared.
fn values(script: &str, sets: &[String]) -> String {
    let given = |name: &str| sets.iter().rev().find_map(|set| set.strip_prefix(name)?.strip_prefix('='));
    let own = |name: &str| script.lines().find_map(|line| line.strip_prefix(&format!("set ${name}=")));
    let value = |name| given(name).or_else(|| own(name));
    let known = SCALES.iter().filter_map(|name| Some(format!("${name}={}", value(name)?.trim())));
    let is_other = |set: &&String| !SCALES.iter().any(|name| set.split('=').next() == Some(name));
    let others = sets.iter().filter(is_other).map(|set| format!("${set}"));
    match known.chain(others).collect::<Vec<_>>().join(", ") {
        known if known.is_empty() => String::new(),
        known => format!(" With {known}{OTHERS}"),
    }
}

/// Whether a line belongs to the comparison in a header, whose lines before it say whether it is `inside`.
fn is_part(line: &str, inside: bool) -> bool {
    line.starts_with(BEGINS) || inside && line.starts_with(GOES_ON)
}

/// The comparison in the header of a script, as text; `None` if there is none.
pub fn fidelity_in(script: &str) -> Option<String> {
    let begun = script.lines().skip_while(|line| !line.starts_with(BEGINS) || *line == NOT_COMPARED);
    let lines = begun.enumerate().take_while(|(n, line)| is_part(line, *n > 0));
    let text = |line: &str| line.strip_prefix(BEGINS).or(line.strip_prefix(GOES_ON)).map(str::to_owned);
    let lines: Vec<String> = lines.filter_map(|(_, line)| text(line)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

impl Fidelity {
    /// The script with this comparison in its header, in the place of an earlier one. `of` says where and when it was made; `sets` are
    /// the variables that it was given.
    pub fn in_header(&self, script: &str, of: &str, sets: &[String]) -> String {
        let (mut before, mut after, mut inside, mut found) = (Vec::new(), Vec::new(), false, false);
        for line in script.lines() {
            inside = is_part(line, inside);
            found |= inside;
            match (inside, found) {
                (true, _) => {}
                (_, false) => before.push(line),
                (_, true) => after.push(line),
            }
        }
        if !found {
            // Behind the header, which ends with the first line that is no comment.
            let end = before.iter().position(|line| !line.starts_with('#')).unwrap_or(before.len());
            after = before.split_off(end);
            if end > 0 {
                before.push("#");
            }
        }
        let part = self.header_lines(&format!("{of}{}", values(script, sets)));
        let mut text = String::new();
        for line in before.into_iter().chain(part.iter().map(String::as_str)).chain(after) {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    fn header_lines(&self, of: &str) -> Vec<String> {
        let mut table = Table::new([
            ("row", Align::Left),
            ("program", Align::Right),
            ("script", Align::Right),
            ("difference", Align::Right),
            ("limit", Align::Right),
            ("", Align::Left),
        ]);
        self.rows.iter().for_each(|row| _ = table.row(row.cells()));
        let result = format!("{} {of}", self.result());
        let mut lines = Vec::new();
        for (n, line) in fill(&result, 100, "").lines().enumerate() {
            lines.push(format!("{}{line}", if n == 0 { BEGINS } else { GOES_ON }));
        }
        lines.extend(table.render().lines().map(|line| format!("{GOES_ON}{line}").trim_end().to_owned()));
        lines
    }
}
