//! The table of a sheet. Its columns say where they are shown, so that it is written once for all formats.

use super::SheetBlock;
use serde::Serialize;
use wml_text::printable;
use wml_text::table::{Align, Table};
use wml_text::wrap::WIDTH;

/// Where a column or a table is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Media(u8);

impl Media {
    pub const TEXT: Self = Self(1);
    pub(crate) const MARKDOWN: Self = Self(2);
    /// HTML, which has room for more columns.
    pub const PAGE: Self = Self(4);
    /// Text and Markdown.
    pub const LINES: Self = Self(3);
    /// Markdown and HTML.
    pub const RICH: Self = Self(6);
    /// All formats.
    pub const ALL: Self = Self(7);

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct SheetColumn {
    pub heading: String,
    /// The heading above that of columns side by side; may be empty.
    #[serde(skip)]
    pub(super) group: String,
    #[serde(skip)]
    pub(super) align: Align,
    #[serde(skip)]
    media: Media,
    /// The most characters of a cell in text and Markdown.
    #[serde(skip)]
    most: Option<usize>,
}

impl SheetColumn {
    /// A column aligned to the left.
    pub fn words(heading: &str) -> Self {
        Self::aligned(heading, Align::Left)
    }

    /// A column aligned to the right.
    pub fn numbers(heading: &str) -> Self {
        Self::aligned(heading, Align::Right)
    }

    /// A column with this alignment.
    pub fn aligned(heading: &str, align: Align) -> Self {
        Self { heading: heading.to_owned(), group: String::new(), align, media: Media::ALL, most: None }
    }

    /// Shows the column there only.
    #[must_use]
    pub fn only(self, media: Media) -> Self {
        Self { media, ..self }
    }

    /// Puts it below a heading that it shares with columns beside it.
    #[must_use]
    pub fn below(self, group: &str) -> Self {
        Self { group: group.to_owned(), ..self }
    }

    /// The heading with that above it.
    pub(super) fn full_heading(&self) -> String {
        if self.group.is_empty() { self.heading.clone() } else { format!("{} {}", self.group, self.heading) }
    }

    /// Shortens the cells in text and Markdown.
    #[must_use]
    pub fn at_most(self, characters: usize) -> Self {
        Self { most: Some(characters), ..self }
    }
}

/// The headings that columns side by side share, each with the number of its columns. Columns without one are groups of
/// their own.
pub(super) fn groups<'a>(columns: impl Iterator<Item = &'a SheetColumn>) -> Vec<(&'a str, usize)> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for heading in columns.map(|column| column.group.as_str()) {
        match found.last_mut() {
            Some((last, columns)) if !heading.is_empty() && *last == heading => *columns += 1,
            _ => found.push((heading, 1)),
        }
    }
    found
}

/// A table. In HTML the first cell of a row is its heading.
#[derive(Clone, Debug, Serialize)]
pub struct SheetTable {
    /// The caption in HTML.
    pub caption: String,
    /// The heading above the table in text and Markdown; may be empty.
    #[serde(skip)]
    pub title: String,
    pub columns: Vec<SheetColumn>,
    /// The headings that columns of a page share, each with the number of its columns.
    pub groups: Vec<(String, usize)>,
    /// The cells of each row, one for each column.
    pub rows: Vec<Vec<String>>,
    /// The lines below the table.
    #[serde(skip)]
    pub below: Vec<String>,
    /// Where it is shown.
    #[serde(skip)]
    pub media: Media,
    /// Whether HTML shows it on demand only.
    pub is_folded: bool,
    /// Whether text separates the columns by one space where the table would be too wide otherwise.
    #[serde(skip)]
    pub is_compact: bool,
    /// The numbers of the rows, from 0, that are sums of others.
    pub sums: Vec<usize>,
    /// Whether all columns are aligned to the left.
    pub is_text: bool,
    /// The same figures in another form, for text if this one is too wide.
    #[serde(skip)]
    pub narrow: Option<Box<SheetTable>>,
}

impl SheetTable {
    /// A table of numbers, whose first column has words.
    pub fn new<'a>(caption: &str, headings: impl IntoIterator<Item = &'a str>) -> Self {
        let column = |(n, heading)| if n == 0 { SheetColumn::words(heading) } else { SheetColumn::numbers(heading) };
        Self::of(caption, headings.into_iter().enumerate().map(column))
    }

    /// A table with these columns.
    pub fn of(caption: &str, columns: impl IntoIterator<Item = SheetColumn>) -> Self {
        let columns: Vec<SheetColumn> = columns.into_iter().collect();
        Self {
            caption: caption.to_owned(),
            title: String::new(),
            is_text: columns.iter().all(|column| column.align == Align::Left),
            columns,
            groups: Vec::new(),
            rows: Vec::new(),
            below: Vec::new(),
            media: Media::ALL,
            is_folded: false,
            is_compact: false,
            sums: Vec::new(),
            narrow: None,
        }
    }

    /// Aligns all columns to the left.
    #[must_use]
    pub fn of_text(mut self) -> Self {
        self.columns.iter_mut().for_each(|column| column.align = Align::Left);
        self.is_text = true;
        self
    }

    /// Makes it one that HTML shows on demand.
    #[must_use]
    pub fn folded(self) -> Self {
        Self { is_folded: true, ..self }
    }

    /// Shows the table there only.
    #[must_use]
    pub fn only(self, media: Media) -> Self {
        Self { media, ..self }
    }

    /// Adds columns of numbers.
    pub fn add_columns(&mut self, headings: impl IntoIterator<Item = String>) {
        self.columns.extend(headings.into_iter().map(|heading| SheetColumn::numbers(&heading)));
        self.is_text = false;
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a row that is the sum of others.
    pub fn sum(&mut self, cells: impl IntoIterator<Item = String>) {
        self.sums.push(self.rows.len());
        self.row(cells);
    }

    /// The table as a part of a sheet; `None` if it has no row.
    pub fn block(self) -> Option<SheetBlock> {
        (!self.rows.is_empty()).then_some(SheetBlock::Table(self))
    }

    /// The headings of the columns.
    pub fn headings(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.heading.as_str()).collect()
    }

    /// The columns that are shown there.
    fn shown(&self, media: Media) -> Vec<usize> {
        // A column of remarks without a heading may have none.
        let has_text = |n: usize| self.rows.iter().any(|row| row.get(n).is_some_and(|cell| !cell.is_empty()));
        let is_shown = |n: &usize| {
            let column = &self.columns[*n];
            column.media.has(media) && (!column.heading.is_empty() || has_text(*n))
        };
        (0..self.columns.len()).filter(is_shown).collect()
    }

    /// The columns and the rows of their cells for a format of lines; `None` if the table is not shown there.
    pub(super) fn cells(&self, media: Media) -> Option<(Vec<&SheetColumn>, Vec<Vec<String>>)> {
        if !self.media.has(media) {
            return None;
        }
        let shown = self.shown(media);
        let cell = |row: &Vec<String>, n: usize| match (row.get(n), self.columns[n].most) {
            (Some(cell), Some(most)) => printable::short(cell, most).into_owned(),
            (cell, _) => cell.cloned().unwrap_or_default(),
        };
        let rows = self.rows.iter().map(|row| shown.iter().map(|n| cell(row, *n)).collect()).collect();
        Some((shown.iter().map(|n| &self.columns[*n]).collect(), rows))
    }

    /// True if columns share a heading.
    pub(super) fn has_groups(&self) -> bool {
        self.columns.iter().any(|column| !column.group.is_empty())
    }

    /// The table for text, with the headings that columns share above theirs; `None` if it is not shown there.
    pub(super) fn grouped_lines(&self) -> Option<Table> {
        let (columns, rows) = self.cells(Media::TEXT)?;
        let mut table = Table::new(columns.iter().map(|column| (column.heading.as_str(), column.align)));
        table.group(columns.iter().map(|column| column.group.as_str()));
        rows.into_iter().for_each(|row| _ = table.row(row));
        Some(table)
    }

    /// The table for text or Markdown, with one line of headings; `None` if it is not shown there.
    pub(super) fn lines(&self, media: Media) -> Option<Table> {
        let (columns, rows) = self.cells(media)?;
        let headings: Vec<String> = columns.iter().map(|column| column.full_heading()).collect();
        let mut table =
            Table::new(headings.iter().zip(&columns).map(|(heading, column)| (heading.as_str(), column.align)));
        rows.into_iter().for_each(|row| _ = table.row(row));
        Some(table)
    }

    /// True if text has room for its columns. The last one may be wider than its heading.
    pub fn fits(&self) -> bool {
        let Some(found) = self.grouped_lines() else { return true };
        let text = if self.is_compact { found.render_compact(WIDTH) } else { found.render() };
        !self.is_wide(&text)
    }

    /// True if the headings of this text are wider than a terminal: they are as wide as the columns of figures.
    pub(super) fn is_wide(&self, text: &str) -> bool {
        let headings = 1 + usize::from(self.has_groups());
        text.lines().take(headings).any(|line| line.chars().count() > WIDTH)
    }

    /// The table with the columns of a page, and the lines below it.
    pub(super) fn into_page(mut self) -> Vec<SheetBlock> {
        if self.rows.is_empty() || !self.media.has(Media::PAGE) {
            return Vec::new();
        }
        let shown = self.shown(Media::PAGE);
        let keep = |row: &Vec<String>| shown.iter().filter_map(|n| row.get(*n).cloned()).collect();
        self.rows = self.rows.iter().map(keep).collect();
        self.columns = shown.iter().map(|n| self.columns[*n].clone()).collect();
        if self.has_groups() {
            let chunks = groups(self.columns.iter());
            self.groups = chunks.into_iter().map(|(heading, columns)| (heading.to_owned(), columns)).collect();
        }
        let below = std::mem::take(&mut self.below);
        std::iter::once(SheetBlock::Table(self))
            .chain(below.into_iter().map(|text| SheetBlock::Text { text }))
            .collect()
    }
}
