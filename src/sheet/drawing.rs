//! A finished drawing: the markup of a page, or an SVG file of its own.
//!
//! In a page the style and the heading are those of the page. A file has its own: the style, the title, the legend, and a
//! background, in a fixed width. Not in here: the marks of the drawing (`chart`).

use super::chart::{CHARACTER_WIDTH, text};
use super::html::PICTURE_STYLE;
use serde::{Serialize, Serializer};
use std::fmt;
use svg::node::element::{Circle, Group, Rectangle, SVG, Style};

/// The width of a file, in pixels.
const WIDTH: f64 = 760.0;
/// Space around the drawing in a file, in pixels.
const EDGE: f64 = 16.0;
/// The height of a line of the heading, in pixels.
const LINE: f64 = 22.0;
/// The name and the value of the attribute that marks a file of this program.
const GENERATOR: (&str, &str) = ("data-generator", "wmlrun");

/// Space around the area of a drawing for its labels, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margins {
    pub(super) top: f64,
    pub(super) end: f64,
    pub(super) bottom: f64,
    pub(super) start: f64,
}

/// A finished drawing. Its text is the markup for a page.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// The name for screen readers.
    pub(super) name: String,
    /// The height of the area, in pixels.
    pub(super) height: f64,
    /// The space around the area.
    pub(super) margins: Margins,
    /// Whether it has categories with labels beside them. A page that is too narrow has them above.
    pub(super) has_rows: bool,
    /// Whether the keyboard reaches its marks.
    pub(super) is_reachable: bool,
    /// The elements. Horizontal positions are percentages of the width of the area.
    pub(super) content: Group,
}

impl Drawing {
    /// Returns an SVG file with this title, the name of its source, and this legend of classes and names.
    pub fn file(&self, title: &str, source: &str, legend: &[(&'static str, String)]) -> String {
        let (keys, legend_height) = keys(legend);
        let Margins { top, end, bottom, start } = self.margins;
        let above = EDGE + 2.0 * LINE + legend_height + top;
        let area = SVG::new()
            .set("x", EDGE + start)
            .set("y", above)
            .set("width", WIDTH - 2.0 * EDGE - start - end)
            .set("height", self.height)
            .set("overflow", "visible");
        let height = above + self.height + bottom + EDGE / 2.0;
        self.root()
            .set(GENERATOR.0, GENERATOR.1)
            .set("viewBox", (0.0, 0.0, WIDTH, height))
            .set("width", WIDTH)
            .set("height", height)
            .add(Style::new(PICTURE_STYLE))
            .add(Rectangle::new().set("class", "paper").set("width", "100%").set("height", "100%"))
            .add(text(title).set("class", "title").set("x", EDGE).set("y", EDGE + 14.0))
            .add(text(source).set("x", EDGE).set("y", EDGE + LINE + 12.0))
            .add(keys.set("transform", format!("translate({EDGE},{})", EDGE + 2.0 * LINE)))
            .add(area.add(self.content.clone()))
            .to_string()
            + "\n"
    }

    fn root(&self) -> SVG {
        // What is inside an image is not told.
        let role = if self.is_reachable { "group" } else { "img" };
        SVG::new().set("role", role).set("aria-label", self.name.as_str())
    }
}

/// Draws a legend. Returns it with its height in pixels.
fn keys(legend: &[(&'static str, String)]) -> (Group, f64) {
    let (mut keys, mut x, mut lines) = (Group::new(), 0.0, u16::from(!legend.is_empty()));
    for (class, name) in legend {
        let width = 34.0 + name.chars().count() as f64 * CHARACTER_WIDTH;
        if x > 0.0 && x + width > WIDTH - 2.0 * EDGE {
            (x, lines) = (0.0, lines + 1);
        }
        let middle = f64::from(lines - 1) * LINE + LINE / 2.0;
        let bar = |width: f64, height: f64| {
            let bar = Rectangle::new().set("x", x).set("y", middle - height / 2.0);
            bar.set("width", width).set("height", height)
        };
        // The shapes of the page's legend.
        let has = |word: &str| class.split(' ').any(|found| found == word);
        keys = match () {
            () if has("box") => keys.add(bar(12.0, 12.0).set("class", "band")),
            () if has("line") => keys.add(bar(12.0, 3.0).set("class", *class)),
            () if has("f") => keys.add(bar(3.0, 12.0).set("class", *class)),
            () if has("a") || has("c") || has("d") || has("e") => {
                keys.add(Circle::new().set("cx", x + 6.0).set("cy", middle).set("r", 5).set("class", *class))
            }
            () => keys.add(bar(12.0, 12.0).set("class", *class)),
        };
        keys = keys.add(text(name).set("x", x + 18.0).set("y", middle + 4.0));
        x += width;
    }
    (keys, f64::from(lines) * LINE)
}

/// The markup for a page, whose style cuts off what is wider than the page. The labels are in the padding.
impl fmt::Display for Drawing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Margins { top, end, bottom, start } = self.margins;
        let root = self
            .root()
            .set("class", if self.has_rows { "chart rows" } else { "chart" })
            .set("width", "100%")
            .set("height", self.height + top + bottom)
            .set("style", format!("padding:{top}px {end}px {bottom}px {start}px"));
        root.add(self.content.clone()).fmt(f)
    }
}

impl Serialize for Drawing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// True if a file's first bytes match a picture that this program wrote.
pub fn is_picture(head: &[u8]) -> bool {
    let (name, value) = GENERATOR;
    let tag = head.split(|byte| *byte == b'>').next().unwrap_or_default();
    let tag = String::from_utf8_lossy(tag);
    tag.starts_with("<svg ") && tag.contains(&format!(" {name}=\"{value}\""))
}
