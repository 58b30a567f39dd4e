//! Sheets as one HTML page without scripts, which requests nothing.

use super::SheetBlock;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use serde::Serialize;
use wml_text::printable;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
/// The style of the pictures, in pages and in files of their own.
pub(super) const PICTURE_STYLE: &str = include_str!("picture.css");

#[derive(Debug, Serialize)]
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

fn render(title: &str, sections: &[PageSection]) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
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
