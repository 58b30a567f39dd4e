//! Sheets as Markdown for a pull request. Pictures and sources are left out.

use super::{Media, NoteLabel, Sheet, SheetBlock, SheetTable};
use wml_text::markdown::{literal, message};

/// A sheet as Markdown. Its first line is the result.
pub fn write(sheet: &Sheet) -> String {
    let answer = &sheet.answer;
    let text = format!("**{}** {}\n", literal(&sheet.title), message(&answer.result));
    let paragraphs = [answer.rest(), answer.about.clone()].into_iter().filter(|text| !text.is_empty());
    let text = paragraphs.fold(text, |text, paragraph| text + &format!("\n{}\n", message(&paragraph)));
    let line = |text: String, line: &String| text + &format!("- {}\n", literal(line));
    let conditions = answer.conditions.iter().fold(String::new(), line);
    let text = if conditions.is_empty() { text } else { text + "\n" + &conditions };
    sheet.blocks.iter().filter_map(part).fold(text, |text, part| text + "\n" + &part)
}

fn part(block: &SheetBlock) -> Option<String> {
    match block {
        SheetBlock::Text { text } => Some(literal(text) + "\n"),
        SheetBlock::Facts { pairs, .. } => {
            let line = |(name, value): &(String, String)| format!("| {} | {} |\n", literal(name), literal(value));
            Some("| | |\n|---|---|\n".to_owned() + &pairs.iter().map(line).collect::<String>())
        }
        SheetBlock::Warnings { label, items } => {
            let paragraph = |(text, _): &(String, String)| match label {
                NoteLabel::Note => format!("Note: {}\n", message(text)),
                NoteLabel::Warning => literal(text) + "\n",
            };
            Some(items.iter().map(paragraph).collect::<Vec<_>>().join("\n"))
        }
        SheetBlock::Table(found) => table(found),
        SheetBlock::Part(sheet) => Some(write(sheet)),
        _ => None,
    }
}

/// A table, with the lines above and below it.
fn table(table: &SheetTable) -> Option<String> {
    let rows = table.lines(Media::MARKDOWN)?.markdown();
    let title = if table.title.is_empty() { String::new() } else { format!("**{}**\n\n", literal(&table.title)) };
    Some(table.below.iter().fold(title + &rows, |text, line| text + &format!("\n{}\n", literal(line))))
}
