//! Sheets as one HTML page without scripts, which requests nothing.

use super::{SheetBlock, answer_length};
use minijinja::value::{Serde, Value};
use minijinja::{Environment, HtmlEscape, context};
use serde::Serialize;
use wml_text::printable;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
/// The style of the pictures, in pages and in files of their own.
pub(super) const PICTURE_STYLE: &str = include_str!("picture.css");

/// The least and the greatest number of headings of a page with a table of contents.
const MIN_CONTENTS: usize = 6;
const MAX_CONTENTS: usize = 40;

#[derive(Debug)]
pub struct PageSection {
    /// The heading.
    pub title: String,
    /// The source; may be empty.
    pub about: String,
    /// The parts.
    pub blocks: Vec<SheetBlock>,
}

/// The page of these sections.
pub fn write(title: &str, sections: &[PageSection]) -> Result<String, String> {
    render(title, sections).map_err(|e| e.to_string())
}

/// A section in the form of the template.
#[derive(Serialize)]
struct SectionView<'a> {
    title: &'a str,
    about: &'a str,
    /// The blocks with the answer.
    answer: &'a [SheetBlock],
    /// The number of each block with a heading, counted from the first behind the answer, and the heading; none of a page
    /// that is short or has several sections.
    contents: Vec<(usize, &'a str)>,
    blocks: &'a [SheetBlock],
}

impl<'a> SectionView<'a> {
    fn of(section: &'a PageSection, is_only: bool) -> Self {
        let (answer, blocks) = section.blocks.split_at(answer_length(&section.blocks));
        let mut contents: Vec<(usize, &str)> =
            (1..).zip(blocks).filter_map(|(n, block)| Some((n, heading(block)?))).collect();
        if contents.len() > MAX_CONTENTS {
            contents.retain(|(n, _)| matches!(blocks[n - 1], SheetBlock::Heading { .. }));
        }
        if !is_only || !(MIN_CONTENTS..=MAX_CONTENTS).contains(&contents.len()) {
            contents.clear();
        }
        Self { title: &section.title, about: &section.about, answer, contents, blocks }
    }
}

/// The heading of a block that the table of contents has.
fn heading(block: &SheetBlock) -> Option<&str> {
    match block {
        SheetBlock::Heading { text } => Some(text),
        SheetBlock::Picture(picture) => Some(&picture.title),
        SheetBlock::Multiples { title, is_folded: false, .. } => Some(title),
        SheetBlock::Table(table) if !table.is_folded => Some(&table.caption),
        _ => None,
    }
}

/// A text as markup, with its parts between backticks as code.
fn code(text: &str) -> Value {
    let line = printable::line(text);
    let parts: Vec<&str> = line.split('`').collect();
    let mut markup = String::with_capacity(line.len());
    for (n, part) in parts.iter().enumerate() {
        let part = HtmlEscape(part);
        markup += &match (n % 2 == 1, n + 1 < parts.len()) {
            (true, true) => format!("<code>{part}</code>"),
            // The last one of an odd number.
            (true, false) => format!("`{part}"),
            (false, _) => part.to_string(),
        };
    }
    Value::from_safe_string(markup)
}

fn render(title: &str, sections: &[PageSection]) -> Result<String, minijinja::Error> {
    let sections: Vec<SectionView> =
        sections.iter().map(|section| SectionView::of(section, sections.len() == 1)).collect();
    let mut environment = Environment::new();
    environment.add_filter("code", code);
    // The name ends in `.html`, which enables the escaping of markup. Control characters are escaped in addition, since
    // a browser may drop or obey them.
    environment.set_formatter(|out, state, value| match value.as_str().filter(|_| !value.is_safe()) {
        Some(text) => minijinja::escape_formatter(out, state, &Value::from(printable::line(text).into_owned())),
        None => minijinja::escape_formatter(out, state, value),
    });
    environment.add_template("page.html", TEMPLATE)?;
    let version = env!("CARGO_PKG_VERSION");
    let style = format!("{PICTURE_STYLE}{STYLE}");
    let values = context! { title, sections => Value::from(Serde(sections)), style, version };
    environment.get_template("page.html")?.render(values).map(|text| text + "\n")
}
