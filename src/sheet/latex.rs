//! The tables of a sheet in LaTeX, with the rules of the package `booktabs`. Sentences become comments, so that a paper
//! can `\input` the file. Pictures and sources are left out.

use super::table::groups;
use super::{Media, Sheet, SheetBlock, SheetColumn, SheetTable};
use wml_text::printable;
use wml_text::table::Align;

/// The tables of a sheet.
pub fn write(sheet: &Sheet) -> String {
    format!("% \\usepackage{{booktabs}}\n{}", parts(sheet))
}

fn parts(sheet: &Sheet) -> String {
    let answer = &sheet.answer;
    let sentences = [sheet.title.clone(), answer.result.clone(), answer.rest(), answer.about.clone()];
    let head: String = sentences.iter().chain(&answer.conditions).map(|text| comment(text)).collect();
    sheet.blocks.iter().filter_map(|block| part(block, &sheet.title)).fold(head, |text, part| text + "\n" + &part)
}

fn part(block: &SheetBlock, title: &str) -> Option<String> {
    match block {
        SheetBlock::Text { text } => Some(comment(text)),
        SheetBlock::Warnings { items, .. } => Some(items.iter().map(|(text, _)| comment(text)).collect()),
        SheetBlock::Facts { pairs, .. } => {
            let rows = pairs.iter().map(|(name, value)| row([name.as_str(), value]));
            Some(float(title, "ll", &rows.collect::<String>(), &[]))
        }
        SheetBlock::Table(found) => table(found),
        SheetBlock::Part(sheet) => Some(parts(sheet)),
        _ => None,
    }
}

/// A table, with the lines below it.
pub fn table(table: &SheetTable) -> Option<String> {
    let (columns, rows) = table.cells(Media::MARKDOWN)?;
    let align = |align: Align| if align == Align::Right { 'r' } else { 'l' };
    let aligned: String = columns.iter().map(|column| align(column.align)).collect();
    let headings = group_row(&columns) + &row(columns.iter().map(|column| column.heading.as_str()));
    let rows: String = rows.iter().map(|cells| row(cells.iter().map(String::as_str))).collect();
    Some(float(&table.caption, &aligned, &format!("{headings}\\midrule\n{rows}"), &table.below))
}

/// The row of the headings that columns share, with a rule below each; none if no columns do.
fn group_row(columns: &[&SheetColumn]) -> String {
    let groups = groups(columns.iter().copied());
    if groups.iter().all(|(heading, _)| heading.is_empty()) {
        return String::new();
    }
    let (mut cells, mut rules, mut at) = (Vec::new(), String::new(), 0);
    for (heading, columns) in groups {
        let (from, to) = (at + 1, at + columns);
        if heading.is_empty() {
            cells.push(String::new());
        } else {
            cells.push(format!("\\multicolumn{{{columns}}}{{c}}{{{}}}", escaped(heading)));
            rules += &format!("\\cmidrule(lr){{{from}-{to}}}\n");
        }
        at = to;
    }
    cells.join(" & ") + " \\\\\n" + &rules
}

fn float(caption: &str, columns: &str, rows: &str, below: &[String]) -> String {
    let small = |line: &String| format!("\\par\\smallskip\\footnotesize {}\n", escaped(line));
    let below: String = below.iter().map(small).collect();
    format!(
        "\\begin{{table}}\n\\caption{{{}}}\n\\centering\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{rows}\\bottomrule\n\
         \\end{{tabular}}\n{below}\\end{{table}}\n",
        escaped(caption)
    )
}

fn row<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    cells.into_iter().map(escaped).collect::<Vec<_>>().join(" & ") + " \\\\\n"
}

/// A line that LaTeX ignores; none for an empty text.
fn comment(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("% {}\n", printable::line(text)) }
}

/// A text that LaTeX shows as it is.
fn escaped(text: &str) -> String {
    printable::line(text).chars().fold(String::new(), |mut shown, letter| {
        match letter {
            '\\' => shown += "\\textbackslash{}",
            '~' => shown += "\\textasciitilde{}",
            '^' => shown += "\\textasciicircum{}",
            '`' => shown += "\\textasciigrave{}",
            '<' => shown += "\\textless{}",
            '>' => shown += "\\textgreater{}",
            '|' => shown += "\\textbar{}",
            // The quotation mark of the default fonts is curved.
            '"' => shown += "{\\ttfamily\\char34}",
            '−' => shown += "$-$",
            '±' => shown += "$\\pm$",
            '×' => shown += "$\\times$",
            '→' => shown += "$\\to$",
            '≤' => shown += "$\\le$",
            '≥' => shown += "$\\ge$",
            'µ' => shown += "\\textmu{}",
            '#' | '$' | '%' | '&' | '_' | '{' | '}' => shown.extend(['\\', letter]),
            // After `\\` these are its argument.
            '[' | ']' | '*' => shown.extend(['{', letter, '}']),
            // Two of them are one character.
            '-' | '\'' | ',' if shown.ends_with(letter) => shown.extend(['{', '}', letter]),
            _ => shown.push(letter),
        }
        shown
    })
}
