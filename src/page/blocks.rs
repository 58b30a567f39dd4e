//! The parts of a page as data: tables, pictures, lists and texts. The template turns them into HTML.
//!
//! All texts are plain: the template escapes them. A picture always has a table with the same values.

use super::drawing::Drawing;
use serde::Serialize;

/// A part of a page.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum PageBlock {
    /// A heading below the heading of the section.
    Heading {
        /// The heading.
        text: String,
    },
    /// A paragraph.
    Text {
        /// The text.
        text: String,
    },
    /// The result in one sentence.
    Banner {
        /// Whether it is good, bad or neither: `good`, `bad`, `neutral`.
        tone: &'static str,
        /// The sentence.
        text: String,
    },
    /// Names with their values.
    Facts {
        /// The pairs.
        pairs: Vec<(String, String)>,
    },
    /// Warnings, each with its advice, which may be empty.
    Warnings {
        /// `Warning`, or `Note`.
        label: &'static str,
        /// The pairs of a message and its advice.
        items: Vec<(String, String)>,
    },
    /// A table.
    Table(PageTable),
    /// A picture.
    Picture(Picture),
    /// Small pictures of the same figure, side by side.
    Multiples {
        /// The title of all.
        title: String,
        /// The pictures.
        pictures: Vec<Picture>,
    },
    /// A text of many lines, which is shown on demand.
    Source {
        /// The title.
        title: String,
        /// The lines.
        lines: Vec<String>,
    },
}

impl PageBlock {
    /// Creates the parts with failures and with notes, if there are any.
    pub(super) fn notes(failures: Vec<String>, notes: &[String]) -> impl Iterator<Item = Self> {
        let part = |label, texts: Vec<String>| {
            let items: Vec<_> = texts.into_iter().map(|text| (text, String::new())).collect();
            (!items.is_empty()).then_some(Self::Warnings { label, items })
        };
        [part("Warning", failures), part("Note", notes.to_vec())].into_iter().flatten()
    }
}

/// A table. The first cell of a row is its heading.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct PageTable {
    /// The caption.
    pub(super) caption: String,
    /// The headings of the columns.
    pub(super) columns: Vec<String>,
    /// The rows.
    pub(super) rows: Vec<Vec<String>>,
    /// Whether the cells after the first are text, which is aligned to the left.
    pub(super) is_text: bool,
    /// Whether it is shown on demand only.
    pub(super) is_folded: bool,
    /// The numbers of the rows, from 0, that are sums of others.
    pub(super) sums: Vec<usize>,
}

impl PageTable {
    /// Creates a table of numbers without rows.
    pub(super) fn new<'a>(caption: &str, columns: impl IntoIterator<Item = &'a str>) -> Self {
        let columns = columns.into_iter().map(str::to_owned).collect();
        Self { caption: caption.to_owned(), columns, ..Self::default() }
    }

    /// Makes it a table of texts.
    pub(super) fn of_text(mut self) -> Self {
        self.is_text = true;
        self
    }

    /// Makes it one that is shown on demand.
    pub(super) fn folded(mut self) -> Self {
        self.is_folded = true;
        self
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a row that is the sum of others.
    pub(super) fn sum(&mut self, cells: impl IntoIterator<Item = String>) {
        self.sums.push(self.rows.len());
        self.row(cells);
    }

    /// Returns the table as a part of a page, or `None` if it has no row.
    pub(super) fn block(self) -> Option<PageBlock> {
        (!self.rows.is_empty()).then_some(PageBlock::Table(self))
    }
}

/// A picture with its legend and its table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Picture {
    /// The title.
    pub(super) title: String,
    /// How to read it; may be empty.
    pub(super) note: String,
    /// The legend: classes and names of series.
    pub(super) legend: Vec<(&'static str, String)>,
    /// The drawing, which is markup in the page.
    pub(super) drawing: Box<Drawing>,
    /// The same values as a table.
    pub(super) table: PageTable,
}
