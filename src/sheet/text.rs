//! Sheets as text for a terminal of 80 columns. Pictures and sources are left out.

use super::answer::paragraph;
use super::{Media, NoteLabel, Sheet, SheetBlock, SheetTable};
use wml_text::printable;
use wml_text::table::{Align, Table};
use wml_text::wrap::{WIDTH, wrapped};

/// A sheet as text. Its last lines are the answer.
pub fn write(sheet: &Sheet) -> String {
    let mut text = format!("{}\n", printable::line(&sheet.title));
    let mut follows_text = false;
    for block in &sheet.blocks {
        let Some(part) = part(block) else { continue };
        let is_text = matches!(block, SheetBlock::Text { .. });
        // Sentences are one paragraph.
        if !(is_text && follows_text) {
            text.push('\n');
        }
        text += &part;
        follows_text = is_text;
    }
    let answer = &sheet.answer;
    let result = format!("{} {}", answer.result, answer.rest());
    let lines = [answer.about.as_str(), result.trim_end()].into_iter().filter(|text| !text.is_empty());
    let lines = lines.chain(answer.conditions.iter().map(String::as_str));
    lines.fold(text + "\n", |text, line| text + &paragraph(line, WIDTH, "  ") + "\n")
}

fn part(block: &SheetBlock) -> Option<String> {
    match block {
        SheetBlock::Text { text } => Some(line(text)),
        SheetBlock::Facts { pairs, is_wrapped } => Some(facts(pairs, *is_wrapped)),
        SheetBlock::Warnings { label, items } => {
            let prefix = if *label == NoteLabel::Note { "note: " } else { "" };
            Some(items.iter().map(|(text, _)| line(&format!("{prefix}{text}"))).collect())
        }
        SheetBlock::Table(found) => table(found),
        SheetBlock::Part(sheet) => Some(write(sheet)),
        _ => None,
    }
}

/// A text as one wrapped line.
fn line(text: &str) -> String {
    wrapped(&printable::line(text), "  ") + "\n"
}

/// Pairs, each on a line.
fn facts(pairs: &[(String, String)], is_wrapped: bool) -> String {
    let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
    pairs.iter().for_each(|(name, value)| _ = table.row([name, value]));
    let lines = if is_wrapped { table.render_wrapped(WIDTH) } else { table.render() };
    lines.trim_start_matches('\n').to_owned()
}

/// A table as text, with the lines above and below it.
pub fn table(table: &SheetTable) -> Option<String> {
    let render = |of: &SheetTable| {
        let found = of.grouped_lines()?;
        Some(if of.is_compact { found.render_compact(WIDTH) } else { found.render() })
    };
    let (mut shown, mut text) = (table, render(table)?);
    if let Some(narrow) = table.narrow.as_ref().filter(|_| table.is_wide(&text)) {
        (shown, text) = (narrow, render(narrow)?);
    }
    if shown.is_wide(&text) {
        let fitted = shown.lines(Media::TEXT)?.render_fitted(Some(WIDTH));
        let has_room = fitted.lines().all(|line| line.chars().count() <= WIDTH);
        text = if has_room { fitted } else { unfolded(shown)?.render_fitted(Some(WIDTH)) };
    }
    let title = if table.title.is_empty() { String::new() } else { line(&table.title) + "\n" };
    Some(table.below.iter().fold(title + &text, |text, below| text + &line(below)))
}

/// A table with too many columns for a terminal: a line for each cell, beside the words at the beginning of its row.
fn unfolded(table: &SheetTable) -> Option<Table> {
    let (columns, rows) = table.cells(Media::TEXT)?;
    let words = columns.iter().take_while(|column| column.align == Align::Left).count();
    let keys = if words == columns.len() { 1 } else { words.max(1) };
    let headings = columns.iter().take(keys).map(|column| (column.heading.as_str(), Align::Left));
    let mut found = Table::new(headings.chain([("", Align::Left), ("", Align::Right)]));
    for mut row in rows {
        for (column, cell) in columns.iter().zip(row.clone()).skip(keys).filter(|(_, cell)| !cell.is_empty()) {
            // They are in the first of the lines.
            let first = row.iter_mut().take(keys).map(std::mem::take);
            found.row(first.chain([column.full_heading(), cell]));
        }
    }
    Some(found)
}
