//! The answer of a sheet alone, for a mail or a message: nothing else is in it, and no line is wider than 72 columns.

use super::Sheet;
use wml_text::printable;
use wml_text::wrap::cell_lines;

const COLUMNS: usize = 72;

pub fn write(sheet: &Sheet) -> String {
    let answer = &sheet.answer;
    let subject = if answer.subject.is_empty() { &sheet.title } else { &answer.subject };
    let title = format!("{subject}: {}", answer.about);
    let title = format!("{} {}", title.trim_end().trim_end_matches(':'), answer.figures);
    let result = format!("{} {}", answer.result, answer.rest());
    let mut text = paragraph(title.trim_end(), "") + "\n" + &paragraph(result.trim_end(), "");
    if !answer.conditions.is_empty() {
        text.push('\n');
    }
    answer.conditions.iter().for_each(|line| text += &paragraph(line, "  "));
    text
}

/// A text in lines of its own. A word that is too long, such as a path, is broken.
fn paragraph(text: &str, under: &str) -> String {
    let lines = super::answer::paragraph(text, COLUMNS, under);
    let is_too_wide = |line: &str| line.chars().map(printable::columns).sum::<usize>() > COLUMNS;
    let broken = lines.lines().flat_map(|line| match is_too_wide(line) {
        true => cell_lines(line, COLUMNS),
        false => vec![line.to_owned()],
    });
    broken.fold(String::new(), |text, line| text + line.trim_end() + "\n")
}
