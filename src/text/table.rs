//! Tables of text with aligned columns, also as Markdown. Every character counts as one column wide; colours are not
//! supported.

use super::markdown::literal;
use super::wrap;
use std::collections::BTreeSet;

/// The alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Left-aligned, for words.
    Left,
    /// Right-aligned, for numbers.
    Right,
}

/// A heading and rows. Two spaces separate the columns; lines have no trailing spaces.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    /// The columns, from and to before, below a heading that they share.
    groups: Vec<(usize, usize, String)>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
enum Row {
    Cells(Vec<String>),
    /// A horizontal line.
    Rule,
}

impl Table {
    /// Creates an empty table with these headings.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        Self {
            columns: columns.into_iter().map(|(name, align)| (cell_text(name.to_owned()), align)).collect(),
            groups: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Puts a heading above those of columns side by side that have the same one here. The heading of a column may be
    /// empty.
    pub fn group<'a>(&mut self, headings: impl IntoIterator<Item = &'a str>) -> &mut Self {
        self.groups.clear();
        let mut before = "";
        for (n, heading) in headings.into_iter().take(self.columns.len()).enumerate() {
            match self.groups.last_mut() {
                Some((_, end, _)) if !heading.is_empty() && heading == before => *end = n + 1,
                _ if heading.is_empty() => {}
                _ => self.groups.push((n, n + 1, cell_text(heading.to_owned()))),
            }
            before = heading;
        }
        self
    }

    /// Adds a row. Control characters are escaped, so that a cell cannot start a new line. Missing cells are empty;
    /// cells beyond the last heading are dropped.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) -> &mut Self {
        self.rows
            .push(Row::Cells(cells.into_iter().map(|cell| cell_text(cell.into())).take(self.columns.len()).collect()));
        self
    }

    /// Adds a horizontal line across the table, for example before totals.
    pub fn rule(&mut self) -> &mut Self {
        self.rows.push(Row::Rule);
        self
    }

    /// True if the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the table as text; every line ends with a newline.
    pub fn render(&self) -> String {
        self.lines(&self.widths(), "  ")
    }

    /// Returns the table as text of at most `most` columns: where it would be wider, one space separates the columns, and
    /// the cells of the first column lose their middle, as far as they stay different. Numbers are not shortened.
    pub fn render_within(&self, most: usize) -> String {
        let widths = self.widths();
        if total(&widths, "  ") <= most {
            return self.lines(&widths, "  ");
        }
        let excess = total(&widths, " ").saturating_sub(most);
        let mut table = self.clone();
        if let (Some(widest), Some((heading, _))) = (widths.first(), self.columns.first()) {
            let mut most = widest.saturating_sub(excess).max(width(heading));
            let names = || {
                self.rows.iter().filter_map(|row| match row {
                    Row::Cells(cells) => cells.first(),
                    Row::Rule => None,
                })
            };
            let shown =
                |most: usize| names().map(|name| super::printable::within(name, most)).collect::<BTreeSet<_>>().len();
            // Names that differ must not look alike.
            while most < *widest && shown(most) < shown(*widest) {
                most += 1;
            }
            let rows = table.rows.iter_mut().filter_map(|row| match row {
                Row::Cells(cells) => cells.first_mut(),
                Row::Rule => None,
            });
            rows.for_each(|name| *name = super::printable::within(name, most).into_owned());
        }
        table.lines(&table.widths(), " ")
    }

    /// Returns the table as text, with one space between the columns if it would be wider than `most` columns.
    pub fn render_compact(&self, most: usize) -> String {
        let widths = self.widths();
        self.lines(&widths, if total(&widths, "  ") <= most { "  " } else { " " })
    }

    /// Returns the table as text of at most `most` columns: the cells of the last column continue on further lines, under
    /// their beginning. Where fewer than 20 columns are left for it, they stand below the other cells of their row.
    pub fn render_wrapped(&self, most: usize) -> String {
        const LEAST: usize = 20;
        const INDENT: &str = "    ";
        let widths = self.widths();
        let start = total(&widths, "  ") - widths.last().copied().unwrap_or(0);
        if start + LEAST > most {
            let below = |row: &Row| match row {
                Row::Cells(cells) => {
                    let (last, others) = cells.split_last().map_or(("", cells.as_slice()), |(last, rest)| (last, rest));
                    let others: Vec<&str> = others.iter().map(String::as_str).filter(|cell| !cell.is_empty()).collect();
                    let last = wrap::fill(&format!("{INDENT}{last}"), most, INDENT);
                    format!("{}\n{last}\n", wrap::fill(&others.join("  "), most, INDENT))
                }
                Row::Rule => String::new(),
            };
            return self.rows.iter().map(below).collect();
        }
        let under = " ".repeat(start);
        let lines = self.lines(&widths, "  ");
        lines.lines().map(|line| wrap::fill(line, most, &under) + "\n").collect()
    }

    /// Returns the table as text for a terminal of this width, if it is known: where it would be wider, the widest columns
    /// become narrower, and their cells continue on further lines. Of columns of numbers only the headings do.
    pub fn render_fitted(&self, columns: Option<usize>) -> String {
        const LEAST: usize = 10;
        let mut widths = self.widths();
        let most = columns.unwrap_or(usize::MAX);
        if total(&widths, "  ") <= most {
            return self.lines(&widths, "  ");
        }
        let least: Vec<usize> = (0..widths.len())
            .map(|i| if self.columns[i].1 == Align::Right { self.cells_width(i).max(LEAST) } else { LEAST })
            .collect();
        while total(&widths, " ") > most {
            let breakable = widths.iter_mut().zip(&least).filter(|(width, least)| **width > **least);
            let Some((widest, _)) = breakable.max_by_key(|(width, _)| **width) else { break };
            *widest -= 1;
        }
        let broken = |cells: &[String]| -> Vec<Vec<String>> {
            let parts: Vec<Vec<String>> =
                cells.iter().zip(&widths).map(|(cell, width)| wrap::cell_lines(cell, *width)).collect();
            let height = parts.iter().map(Vec::len).max().unwrap_or(1);
            (0..height).map(|n| parts.iter().map(|part| part.get(n).cloned().unwrap_or_default()).collect()).collect()
        };
        let mut out = String::new();
        let headings: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let rows = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Rule => None,
        });
        for cells in std::iter::once(&headings).chain(rows) {
            broken(cells).iter().for_each(|cells| self.line(&mut out, cells, &widths, " "));
        }
        out
    }

    /// Returns the width of each column.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.columns.iter().enumerate().map(|(i, (name, _))| self.cells_width(i).max(width(name))).collect();
        for (start, end, heading) in &self.groups {
            let missing = width(heading).saturating_sub(total(&widths[*start..*end], " "));
            widths[*start] += missing;
        }
        widths
    }

    /// Returns the width of the widest cell of a column.
    fn cells_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => cells.get(column).map(|cell| width(cell)),
            Row::Rule => None,
        });
        cells.max().unwrap_or(0)
    }

    /// Returns all lines, with a gap between the columns.
    fn lines(&self, widths: &[usize], gap: &str) -> String {
        let mut out = self.group_line(widths, gap);
        let headings: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        self.line(&mut out, &headings, widths, gap);
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.line(&mut out, cells, widths, gap),
                Row::Rule => {
                    out.push_str(&"─".repeat(total(widths, gap)));
                    out.push('\n');
                }
            }
        }
        out
    }

    /// The line with the headings of groups, each in the middle of a rule over its columns; empty if there are none.
    fn group_line(&self, widths: &[usize], gap: &str) -> String {
        let mut line = String::new();
        for (start, end, heading) in &self.groups {
            let begin = total(&widths[..*start], gap) + if *start > 0 { gap.len() } else { 0 };
            let room = total(&widths[*start..*end], gap);
            let shown = if width(heading) + 4 <= room { format!(" {heading} ") } else { heading.clone() };
            let fill = if shown == *heading { " " } else { "─" };
            let left = (room - width(&shown)) / 2;
            line += &" ".repeat(begin - width(&line));
            line += &fill.repeat(left);
            line += &shown;
            line += &fill.repeat(room - left - width(&shown));
        }
        if line.is_empty() { line } else { line.trim_end().to_owned() + "\n" }
    }

    /// Returns the table as Markdown, without its rules; every line ends with a newline.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let headings = self.columns.iter().map(|(name, _)| literal(name)).collect();
        let align = |(_, align): &(String, Align)| if *align == Align::Right { "--:|" } else { "---|" };
        let rows = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(line(cells.iter().map(|cell| literal(cell)).collect())),
            Row::Rule => None,
        });
        let (headings, rule, rows) =
            (line(headings), self.columns.iter().map(align).collect::<String>(), rows.collect::<String>());
        format!("{headings}|{rule}\n{rows}")
    }

    /// Appends one line of padded cells to `out`.
    fn line(&self, out: &mut String, cells: &[String], widths: &[usize], gap: &str) {
        let mut line = String::new();
        for (i, ((_, align), wide)) in self.columns.iter().zip(widths).enumerate() {
            let cell = cells.get(i).map_or("", String::as_str);
            if i > 0 {
                line.push_str(gap);
            }
            let fill = " ".repeat(wide - width(cell));
            match align {
                Align::Left => line.extend([cell, &fill]),
                Align::Right => line.extend([fill.as_str(), cell]),
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

fn total(widths: &[usize], gap: &str) -> usize {
    widths.iter().sum::<usize>() + gap.len() * widths.len().saturating_sub(1)
}

/// Escapes the control characters of a cell.
fn cell_text(text: String) -> String {
    match super::printable::line(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(escaped) => escaped,
    }
}

/// Returns the width of a text in characters.
fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::{Align, Table};

    #[test]
    fn cells_of_wide_columns_continue_on_further_lines() {
        let mut table = Table::new([("name", Align::Left), ("value", Align::Left), ("ops", Align::Right)]);
        table.row(["$dir", "/a/long/path/to/files", "12"]).row(["$sizes", "one two three four", "7"]);
        assert_eq!(table.render_fitted(Some(80)), table.render());
        let expect = "name   value         ops\n\
                      $dir   /a/long/path/  12\n       to/files\n\
                      $sizes one two three   7\n       four\n";
        assert_eq!(table.render_fitted(Some(24)), expect);
        assert_eq!(table.render_fitted(None), table.render());
        let mut table = Table::new([("test", Align::Left), ("a heading of words", Align::Right)]);
        table.row(["a long name", "1,000,000,000,000"]);
        assert_eq!(
            table.render_fitted(Some(29)),
            "test             a heading of\n                        words\na long name 1,000,000,000,000\n"
        );
    }

    #[test]
    fn columns_are_aligned_without_trailing_spaces() {
        let mut table = Table::new([("flowop", Align::Left), ("mean", Align::Right), ("", Align::Left)]);
        assert!(table.is_empty());
        table.row(["read", "1.2 µs"]).rule().row(["a-long-name", "12 ns", "note", "dropped"]);
        let expect = "flowop         mean\n\
                      read         1.2 µs\n\
                      ─────────────────────────\n\
                      a-long-name   12 ns  note\n";
        assert_eq!(table.render(), expect);
    }

    #[test]
    fn a_table_that_is_too_wide_is_made_narrower() {
        let mut table = Table::new([("flowop", Align::Left), ("mean", Align::Right)]);
        table.row(["a-long-name.create", "1.2 µs"]).rule().row(["read", "12 ns"]);
        assert_eq!(table.render_within(26), table.render());
        let expect = "flowop               mean\n\
                      a-long-name.create 1.2 µs\n\
                      ─────────────────────────\n\
                      read                12 ns\n";
        assert_eq!((table.render_within(25), table.render_compact(9)), (expect.to_owned(), expect.to_owned()));
        assert_eq!(table.render_compact(26), table.render());
        assert!(table.render_within(20).contains("\na-long-n…eate 1.2 µs\n"), "{}", table.render_within(20));
        assert!(table.render_within(0).contains("\na-l…te 1.2 µs\n"), "{}", table.render_within(0));
    }

    #[test]
    fn names_that_differ_do_not_look_alike() {
        let mut table = Table::new([("name", Align::Left), ("time", Align::Right)]);
        for n in 1..=3 {
            table.row([format!("a-long-name-of-step-{n}-that-ends-alike"), "1.2 µs".to_owned()]);
        }
        let shown = table.render_within(20);
        assert!((1..=3).all(|n| shown.contains(&format!("-{n}"))), "{shown}");
    }

    #[test]
    fn the_last_column_continues_under_its_beginning() {
        let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
        table.row(["read", "reads `iosize` bytes at the position of the file"]).row(["fsync", "flushes a file"]);
        let shown = table.render_wrapped(32);
        assert_eq!(
            shown.lines().skip(1).collect::<Vec<_>>(),
            ["read   reads `iosize` bytes at", "       the position of the file", "fsync  flushes a file"]
        );
        assert_eq!(table.render_wrapped(200), table.render());
        table.row(["define fileset name=NAME", "defines a file set"]);
        let shown = table.render_wrapped(32);
        let below = ["    flushes a file", "define fileset name=NAME", "    defines a file set"];
        assert_eq!(shown.lines().collect::<Vec<_>>()[4..], below, "{shown}");
    }

    #[test]
    fn columns_side_by_side_share_a_heading() {
        let mut table = Table::new([
            ("name", Align::Left),
            ("K/s", Align::Right),
            ("%CPU", Align::Right),
            ("a", Align::Right),
            ("n", Align::Right),
        ]);
        table.group(["", "read block", "read block", "a long heading", ""]);
        table.row(["ext4", "1,048,576", "12", "7", "1"]);
        let expect = "      ─ read block ──  a long heading\n\
                      name        K/s  %CPU               a  n\n\
                      ext4  1,048,576    12               7  1\n";
        assert_eq!(table.render(), expect);
        table.group(["", "one", "one", "one", "two"]);
        assert!(
            table.render_compact(20).starts_with("     ───── one ────── two\nname "),
            "{}",
            table.render_compact(20)
        );
    }

    #[test]
    fn markdown_has_the_same_cells() {
        let mut table = Table::new([("a|b", Align::Left), ("mean", Align::Right), ("", Align::Left)]);
        table.row(["read", "1.2 µs", ""]).rule().row(["x\n*y*", "-", "note"]);
        let expect = "| a\\|b | mean |  |\n\
                      |---|--:|---|\n\
                      | read | 1.2 µs |  |\n\
                      | x\\\\n\\*y\\* | - | note |\n";
        assert_eq!(table.markdown(), expect);
    }

    #[test]
    fn control_characters_in_cells_are_escaped() {
        let mut table = Table::new([("name", Align::Left)]);
        table.row(["a\nerror: b\x1b[2J"]);
        assert_eq!(table.render(), "name\na\\nerror: b\\x1b[2J\n");
    }
}
