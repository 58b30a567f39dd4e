//! Sheets: results as headings, facts, tables, notes and pictures, written once and shown as text, Markdown, LaTeX or HTML.
//!
//! A document makes its [`Sheet`] for people and its [`Figures`] for programs. A format is a file here that writes one of
//! them, and a line in the table of its users (`comparison::FORMATS`). Sheets know words, numbers and pictures, and no
//! document. Texts are plain: a format escapes them.

mod answer;
mod axis;
pub mod bencher;
pub mod benchstat;
mod chart;
mod check;
pub mod csv;
mod drawing;
mod figures;
pub mod github;
pub mod html;
pub mod junit;
pub mod latex;
pub mod mail;
pub mod markdown;
mod table;
pub mod text;

pub use answer::{Answer, Usability};
pub use axis::{AxisUnit, ChartAxis};
pub use chart::{Chart, ChartPoint, Symbol};
pub use check::{CheckOutcome, SheetCheck};
pub use drawing::{Drawing, is_picture};
pub use figures::{Figures, Series};
pub use table::{Media, SheetColumn, SheetTable};

use serde::Serialize;

/// What a document shows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sheet {
    /// The name of the result.
    pub title: String,
    /// What it has in common with the results of other days, if the title has a date: servers follow its checks by that.
    #[serde(skip)]
    pub class: String,
    /// What happened: at the end of text, and at the beginning of Markdown and HTML.
    pub answer: Answer,
    /// Whether the result is good.
    pub tone: Tone,
    /// The parts, in the order of text.
    pub blocks: Vec<SheetBlock>,
    /// What passed and what did not.
    #[serde(skip)]
    pub checks: Vec<SheetCheck>,
}

/// Whether a result is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// As wanted.
    Good,
    /// Neither good nor bad.
    #[default]
    Neutral,
    /// A loss, or a result that can't be used.
    Bad,
}

/// A part of a sheet.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SheetBlock {
    /// A heading below that of the sheet.
    Heading {
        /// The words.
        text: String,
    },
    /// A paragraph.
    Text {
        /// The sentences.
        text: String,
    },
    /// Lines in small print, in HTML only.
    SmallPrint {
        lines: Vec<String>,
    },
    /// The result in one sentence.
    Banner {
        /// Whether it is good.
        tone: Tone,
        /// The sentence.
        text: String,
    },
    /// Names with their values.
    Facts {
        pairs: Vec<(String, String)>,
        /// Whether text breaks lines that are too long.
        is_wrapped: bool,
    },
    /// Warnings or notes, each with its advice, which may be empty.
    Warnings {
        /// What they are.
        label: NoteLabel,
        /// The pairs of a message and its advice.
        items: Vec<(String, String)>,
    },
    Table(SheetTable),
    /// A picture, in HTML only.
    Picture(Picture),
    /// Small pictures of the same figure, side by side.
    Multiples {
        title: String,
        pictures: Vec<Picture>,
        /// Whether HTML shows them on demand only.
        is_folded: bool,
    },
    /// A text of many lines, which HTML shows on demand.
    Source {
        title: String,
        lines: Vec<String>,
    },
    Part(Sheet),
}

/// What a list of messages is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum NoteLabel {
    /// Something went wrong.
    Warning,
    /// How to understand the result.
    Note,
}

/// A picture with its legend and its table.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    pub title: String,
    /// How to read it; may be empty.
    pub note: String,
    /// The legend: classes and names of series.
    pub legend: Vec<(&'static str, String)>,
    /// The drawing, which is markup in the page.
    pub drawing: Box<Drawing>,
    /// The same values as a table.
    pub table: SheetTable,
}

impl SheetBlock {
    /// Messages without advice; `None` if there are none.
    pub fn messages(label: NoteLabel, texts: &[String]) -> Option<Self> {
        let items = texts.iter().map(|text| (text.clone(), String::new())).collect();
        (!texts.is_empty()).then_some(Self::Warnings { label, items })
    }

    /// Small pictures; `None` if there are none.
    pub fn multiples(title: &str, pictures: Vec<Picture>, is_folded: bool) -> Option<Self> {
        (!pictures.is_empty()).then_some(Self::Multiples { title: title.to_owned(), pictures, is_folded })
    }
}

/// The number of blocks with the answer, at the beginning of those of a result.
pub fn answer_length(blocks: &[SheetBlock]) -> usize {
    use SheetBlock::{Banner, SmallPrint, Text};
    let is_answer = |block: &&SheetBlock| matches!(block, Banner { .. } | Text { .. } | SmallPrint { .. });
    blocks.iter().take_while(is_answer).count()
}

impl Sheet {
    /// Adds blocks behind the table with this caption.
    pub fn add_after(&mut self, caption: &str, more: impl IntoIterator<Item = SheetBlock>) {
        let is_it = |block: &SheetBlock| matches!(block, SheetBlock::Table(table) if table.caption == caption);
        let at = self.blocks.iter().position(is_it).map_or(self.blocks.len(), |at| at + 1);
        self.blocks.splice(at..at, more);
    }

    /// The parts, in their order.
    pub fn parts(&mut self) -> impl Iterator<Item = &mut Self> {
        self.blocks.iter_mut().filter_map(|block| match block {
            SheetBlock::Part(part) => Some(part),
            _ => None,
        })
    }

    /// The blocks of a page: the answer is first, then what leads to the tables, and what was unusual.
    pub fn into_page(self) -> Vec<SheetBlock> {
        let rest = [self.answer.rest(), self.answer.about].into_iter().filter(|text| !text.is_empty());
        // What must not be used looks it, whatever the verdict is.
        let tone = match (self.tone, self.answer.usability) {
            (Tone::Good, Some(Usability::Unusable)) => Tone::Bad,
            (tone, _) => tone,
        };
        let mut found = vec![SheetBlock::Banner { tone, text: self.answer.result }];
        found.extend(rest.map(|text| SheetBlock::Text { text }));
        let lines = self.answer.conditions;
        found.extend((!lines.is_empty()).then_some(SheetBlock::SmallPrint { lines }));
        let leads = self.blocks.iter().take_while(|block| matches!(block, SheetBlock::Text { .. })).count();
        let mut blocks = self.blocks;
        let rest = blocks.split_off(leads);
        found.append(&mut blocks);
        let (notes, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|block| matches!(block, SheetBlock::Warnings { .. }));
        found.extend(notes);
        for block in others {
            match block {
                SheetBlock::Table(table) => found.extend(table.into_page()),
                SheetBlock::Part(part) => {
                    found.push(SheetBlock::Heading { text: part.title.clone() });
                    found.extend(part.into_page());
                }
                other => found.push(other),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
