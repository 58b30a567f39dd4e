//! A chart as typed SVG: axes, lines, and marks with their values in `data-x` and `data-y`.
//!
//! Horizontal positions are percentages of the width, vertical ones are pixels. So a chart fills any width while its
//! text and its marks keep their size. Colours come from the classes, which `picture.css` defines. Not in here: the meaning
//! of the values, and the document around the drawing ([`Drawing`]).

use super::axis::{AxisTick, ChartAxis};
use super::drawing::{Drawing, Margins};
use svg::node::Node;
use svg::node::element::path::Data;
use svg::node::element::{Element, Group, Line, Path, Rectangle, SVG, Text, Title};
use wml_text::printable;

/// The height of the area of a chart with a numeric vertical axis, in pixels.
const HEIGHT: f64 = 200.0;
/// The height of a category of a vertical axis, in pixels: the line of its marks, and above it the label if there is no
/// room beside it.
const ROW_HEIGHT: f64 = 34.0;
/// The position of the marks in a category, in pixels from its top.
const ROW_LINE: f64 = 24.0;
/// The distance of the labels of categories from the area, in pixels.
const ROW_GAP: f64 = 10.0;
/// Half of the height of a cell, in pixels.
const CELL_HALF: f64 = 9.0;
/// Pixels above the area, for the title of the vertical axis.
const TOP: f64 = 26.0;
/// Pixels below the area, for the labels and the title of the horizontal axis.
const BOTTOM: f64 = 44.0;
/// Pixels to the right of the area, for the half of a label.
const RIGHT: f64 = 26.0;
/// The largest number of characters of the label of a category, which must fit into a width of 300 pixels.
const MAX_ROW_LABEL: usize = 40;
/// The width of an area with room for the labels of its horizontal axis in the narrowest pages, in pixels. Of wider labels
/// every other one is left out there.
const NARROWEST: f64 = 280.0;
/// The least distance of these labels, in pixels.
const LABEL_GAP: f64 = 8.0;
/// The largest number of marks that the keyboard reaches one by one. The values of more are in the table.
const MAX_REACHABLE: usize = 48;
/// The largest number of characters of the value beside a mark.
const MAX_TIP: usize = 28;
/// The distance of this value from the middle of the mark, in pixels.
const TIP_DISTANCE: f64 = 9.0;
/// The width of a character of a label, in pixels.
pub(super) const CHARACTER_WIDTH: f64 = 7.0;
/// Units of the coordinates of paths, along each axis.
const PATH_UNITS: f64 = 1000.0;

/// The symbol of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A filled circle.
    Circle,
    /// A square, for a second series.
    Square,
    /// A small dot, for a point of a line.
    Dot,
    /// A vertical stroke.
    Stroke,
}

/// A point that is drawn.
#[derive(Clone, Debug)]
pub struct ChartPoint<'a> {
    /// The value on the horizontal axis.
    pub x: f64,
    /// The value on the vertical axis.
    pub y: f64,
    /// The class, which is the series.
    pub class: &'a str,
    /// The text that the mark shows when it is pointed at.
    pub title: String,
}

/// A mark that is drawn above all else.
struct ChartMark {
    shape: Element,
    label: String,
    /// Its position.
    fraction: f64,
    height: f64,
}

impl ChartMark {
    /// The mark with a label that shows when it is pointed at.
    fn labelled(mut self) -> Element {
        self.shape.append(title(&self.label));
        self.shape
    }

    /// The mark as one that the keyboard reaches. Its value, which is the end of its label, is beside it while it is pointed
    /// at or has the focus.
    fn reachable(self) -> Group {
        let (anchor, shift) = match self.fraction {
            low if low < 0.35 => ("start", 8),
            high if high > 0.65 => ("end", -8),
            _ => ("middle", 0),
        };
        let value = self.label.rsplit_once(": ").map_or(self.label.as_str(), |(_, value)| value);
        let tip = text(&printable::within(value, MAX_TIP)).set("x", percent(self.fraction)).set("dx", shift);
        let tip = tip.set("y", rounded(self.height - TIP_DISTANCE)).set("text-anchor", anchor).set("class", "tip");
        let group = Group::new().set("class", "mark").set("tabindex", 0).set("role", "img");
        group.set("aria-label", self.label.as_str()).add(self.labelled()).add(tip)
    }
}

/// A chart that is being drawn.
pub struct Chart {
    x: ChartAxis,
    y: ChartAxis,
    height: f64,
    /// Areas and grid lines, below all others.
    under: Group,
    /// Labels, above the areas.
    labels: Group,
    /// Lines, in coordinates that are stretched with the width.
    lines: SVG,
    /// Intervals and cells.
    symbols: Group,
    points: Vec<ChartMark>,
    /// The width of the texts behind the categories, in pixels.
    values_width: f64,
}

impl Chart {
    /// Creates a chart with its grid and the labels of its axes.
    pub fn new(x: ChartAxis, y: ChartAxis) -> Self {
        let height = y.count().map_or(HEIGHT, |rows| rows as f64 * ROW_HEIGHT);
        let lines = SVG::new()
            .set("viewBox", (0.0, 0.0, PATH_UNITS, PATH_UNITS))
            .set("preserveAspectRatio", "none")
            .set("width", "100%")
            .set("height", height)
            .set("overflow", "visible");
        let mut chart = Self {
            x,
            y,
            height,
            under: Group::new(),
            labels: Group::new().set("class", "label"),
            lines,
            symbols: Group::new(),
            points: Vec::new(),
            values_width: 0.0,
        };
        chart.draw_grid();
        chart
    }

    fn draw_grid(&mut self) {
        let mut grid = Group::new().set("class", "grid");
        let mut labels = std::mem::take(&mut self.labels);
        let width = |tick: &AxisTick| tick.label.chars().count() as f64 * CHARACTER_WIDTH + LABEL_GAP;
        let is_wide = self.x.ticks.iter().map(width).sum::<f64>() > NARROWEST;
        let every_other = |n: usize| if is_wide && n % 2 == 1 { "alt" } else { "" };
        for (n, tick) in self.x.ticks.iter().enumerate() {
            let fraction = self.x.fraction(tick.value);
            let at = percent(fraction);
            grid = grid.add(line((&at, 0.0), (&at, self.height)));
            // There is room for half of a short label at the end of the axis, and at its start beside other labels.
            let is_long = tick.label.chars().count() > 6;
            let anchor = match fraction {
                f if f < 0.02 && (is_long || self.y.count().is_some()) => "start",
                f if f > 0.98 && is_long => "end",
                _ => "middle",
            };
            let label = text(&tick.label).set("x", at).set("y", self.height + 17.0).set("text-anchor", anchor);
            labels = labels.add(label.set("class", every_other(n)));
        }
        let title = text(&self.x.title).set("x", "100%").set("y", self.height + 36.0).set("text-anchor", "end");
        labels = labels.add(title.set("class", "axis"));
        for tick in &self.y.ticks {
            let at = self.height_of(tick.value);
            if self.y.count().is_some() {
                let label = text(&row_label(tick)).set("x", -ROW_GAP).set("y", rounded(at + 4.0));
                labels = labels.add(label.set("text-anchor", "end").set("class", "row"));
            } else {
                grid = grid.add(line(("0", at), ("100%", at)));
                let label = text(&tick.label).set("x", -8).set("y", rounded(at + 4.0)).set("text-anchor", "end");
                labels = labels.add(label);
            }
        }
        self.under.append(grid);
        self.labels = labels;
    }

    /// Returns the vertical position of a value in pixels.
    fn height_of(&self, y: f64) -> f64 {
        rounded(match self.y.count() {
            Some(_) => y * ROW_HEIGHT + ROW_LINE,
            None => self.height * (1.0 - self.y.fraction(y)),
        })
    }

    /// Returns the horizontal position of a value as a percentage.
    fn width_of(&self, x: f64) -> String {
        percent(self.x.fraction(x))
    }

    /// Draws a mark. A point that is not finite has none.
    pub fn plot(&mut self, symbol: Symbol, point: &ChartPoint<'_>) {
        self.plot_as(symbol, point, point.y.to_string());
    }

    /// Draws a mark whose vertical position is a category; `y` is its value or its name.
    pub fn plot_as(&mut self, symbol: Symbol, point: &ChartPoint<'_>, y: String) {
        if !point.x.is_finite() || !point.y.is_finite() {
            return;
        }
        let (cx, cy) = (self.width_of(point.x), self.height_of(point.y));
        let circle = |radius: f64| {
            let mut circle = Element::new("circle");
            circle.assign("cx", cx.as_str());
            circle.assign("cy", cy);
            circle.assign("r", radius);
            circle
        };
        let rectangle = |width: f64, height: f64| {
            let mut rectangle = Element::new("rect");
            rectangle.assign("x", cx.as_str());
            rectangle.assign("y", cy);
            rectangle.assign("width", width);
            rectangle.assign("height", height);
            // A length in pixels can't be subtracted from a percentage, so the centre is moved by a transformation.
            rectangle.assign("transform", format!("translate({},{})", -width / 2.0, -height / 2.0));
            rectangle
        };
        let mut shape = match symbol {
            Symbol::Circle => circle(4.5),
            Symbol::Dot => circle(2.0),
            Symbol::Square => rectangle(8.0, 8.0),
            Symbol::Stroke => rectangle(3.0, 14.0),
        };
        shape.assign("class", point.class);
        shape.assign("data-x", point.x.to_string());
        shape.assign("data-y", y);
        let label = printable::line(&point.title).into_owned();
        self.points.push(ChartMark { shape, label, fraction: self.x.fraction(point.x), height: cy });
    }

    /// Draws a cell of a category from `from` to `to`, with the value `value`.
    pub fn cell(&mut self, (from, to): (f64, f64), row: f64, value: f64, class: &str, label: &str) {
        let (low, high) = (self.x.fraction(from), self.x.fraction(to));
        let cell = Rectangle::new()
            .set("x", percent(low))
            .set("width", percent(high - low))
            .set("y", self.height_of(row) - CELL_HALF)
            .set("height", 2.0 * CELL_HALF)
            .set("class", class)
            .set("data-x", from.to_string())
            .set("data-y", value.to_string());
        self.symbols.append(cell.add(title(label)));
    }

    /// Draws the interval from `low` to `high` of a value at `x`. An infinite end is drawn at the end of the axis.
    pub fn vertical_interval(&mut self, x: f64, (low, high): (f64, f64), class: &str) {
        if !x.is_finite() || low.is_nan() || high.is_nan() {
            return;
        }
        let at = self.width_of(x);
        let interval = line((&at, self.height_of(low)), (&at, self.height_of(high)));
        self.symbols.append(data(interval, class).set("data-low", low.to_string()).set("data-high", high.to_string()));
    }

    /// Draws the interval from `low` to `high` of a value in a category.
    pub fn horizontal_interval(&mut self, row: f64, (low, high): (f64, f64), class: &str) {
        if low.is_nan() || high.is_nan() {
            return;
        }
        let at = self.height_of(row);
        let interval = line((&self.width_of(low), at), (&self.width_of(high), at));
        self.symbols.append(data(interval, class).set("data-low", low.to_string()).set("data-high", high.to_string()));
    }

    /// Writes a value behind a category, if there is room.
    pub fn row_value(&mut self, row: f64, value: &str) {
        let label = text(value).set("x", "100%").set("dx", ROW_GAP).set("y", rounded(self.height_of(row) + 4.0));
        self.labels.append(label.set("class", "value"));
        self.values_width = self.values_width.max(ROW_GAP + value.chars().count() as f64 * CHARACTER_WIDTH);
    }

    /// Fills the area between two values of the horizontal axis.
    pub fn vertical_band(&mut self, (from, to): (f64, f64), class: &str, label: &str) {
        let (low, high) = (self.x.fraction(from), self.x.fraction(to));
        let band = Rectangle::new()
            .set("x", percent(low))
            .set("width", percent(high - low))
            .set("y", 0)
            .set("height", self.height)
            .set("class", class);
        self.under.append(band.add(title(label)));
    }

    /// Fills the area between two values of the vertical axis.
    pub fn horizontal_band(&mut self, (from, to): (f64, f64), class: &str, label: &str) {
        let (low, high) = (self.height_of(from), self.height_of(to));
        let band = Rectangle::new()
            .set("x", 0)
            .set("width", "100%")
            .set("y", high)
            .set("height", rounded(low - high))
            .set("class", class);
        self.under.append(band.add(title(label)));
    }

    /// Draws a vertical line with a label at a value of the horizontal axis.
    pub fn vertical_line(&mut self, x: f64, class: &str, label: &str) {
        let (fraction, at) = (self.x.fraction(x), self.width_of(x));
        let (anchor, shift) = if fraction > 0.6 { ("end", "-5") } else { ("start", "5") };
        self.under.append(line((&at, 0.0), (&at, self.height)).set("class", class));
        // The first category has its label at the top, a numeric axis its title above.
        let y = if self.y.count().is_some() { -6 } else { 12 };
        let label = text(label).set("x", at).set("dx", shift).set("y", y).set("text-anchor", anchor);
        self.labels.append(label.set("class", "note"));
    }

    /// Draws a horizontal line at a value of the vertical axis.
    pub fn horizontal_line(&mut self, y: f64, class: &str) {
        let at = self.height_of(y);
        self.under.append(line(("0", at), ("100%", at)).set("class", class));
    }

    /// Fills the area between the low and the high end of intervals, each with its place on the horizontal axis.
    pub fn area(&mut self, intervals: &[(f64, f64, f64)], class: &str) {
        if intervals.is_empty() {
            return;
        }
        let above = intervals.iter().map(|(x, _, high)| (*x, *high));
        let below = intervals.iter().rev().map(|(x, low, _)| (*x, *low));
        self.path(above.chain(below), &format!("{class} area"), false);
    }

    /// Joins points by a line. A point that is not finite is a gap.
    pub fn join(&mut self, points: impl IntoIterator<Item = (f64, f64)>, class: &str) {
        self.path(points, class, false);
    }

    /// Joins points by steps: the value of a point holds until the next one.
    pub fn steps(&mut self, points: impl IntoIterator<Item = (f64, f64)>, class: &str) {
        self.path(points, class, true);
    }

    fn path(&mut self, points: impl IntoIterator<Item = (f64, f64)>, class: &str, steps: bool) {
        let mut found = Data::new();
        let mut last: Option<(f32, f32)> = None;
        for (x, y) in points {
            if !x.is_finite() || !y.is_finite() {
                last = None;
                continue;
            }
            let unit = |fraction: f64| ((fraction * PATH_UNITS * 10.0).round() / 10.0) as f32;
            let to = (unit(self.x.fraction(x)), unit(self.height_of(y) / self.height));
            found = match last {
                None => found.move_to(to),
                Some((_, y)) if steps => found.line_to((to.0, y)).line_to(to),
                Some(_) => found.line_to(to),
            };
            last = Some(to);
        }
        let lines = std::mem::replace(&mut self.lines, SVG::new());
        self.lines = lines.add(Path::new().set("d", found).set("class", class));
    }

    /// Returns the finished drawing. `name` is its name for screen readers.
    pub fn drawing(self, name: &str) -> Box<Drawing> {
        let has_rows = self.y.count().is_some();
        let label = |tick: &AxisTick| if has_rows { row_label(tick) } else { tick.label.clone() };
        let longest = self.y.ticks.iter().map(|tick| label(tick).chars().count()).max().unwrap_or(0);
        let start = longest as f64 * CHARACTER_WIDTH + 12.0;
        let mut content = Group::new();
        if !self.y.title.is_empty() {
            content = content.add(text(&self.y.title).set("x", -start).set("y", 13.0 - TOP).set("class", "axis"));
        }
        let is_reachable = !self.points.is_empty() && self.points.len() <= MAX_REACHABLE;
        let mut marks = Group::new().set("class", "marks");
        for mark in self.points {
            match is_reachable {
                true => marks.append(mark.reachable()),
                false => marks.append(mark.labelled()),
            }
        }
        Box::new(Drawing {
            name: printable::line(name).into_owned(),
            height: self.height,
            margins: Margins { top: TOP, end: RIGHT.max(self.values_width), bottom: BOTTOM, start },
            has_rows,
            is_reachable,
            content: content.add(self.under).add(self.labels).add(self.lines).add(self.symbols).add(marks),
        })
    }
}

/// The label of a category. A long one loses its middle.
fn row_label(tick: &AxisTick) -> String {
    printable::within(&tick.label, MAX_ROW_LABEL).into_owned()
}

/// Creates a line between two points, each a percentage and a number of pixels.
fn line(from: (&str, f64), to: (&str, f64)) -> Line {
    Line::new().set("x1", from.0).set("y1", from.1).set("x2", to.0).set("y2", to.1)
}

/// Adds the class of an interval.
fn data(interval: Line, class: &str) -> Line {
    interval.set("class", format!("interval {class}"))
}

/// Creates a text without control characters. The `svg` crate escapes markup.
pub(super) fn text(content: &str) -> Text {
    Text::new(printable::line(content))
}

fn title(content: &str) -> Title {
    Title::new(printable::line(content))
}

/// Formats a fraction as a percentage that is precise to a tenth of a pixel.
fn percent(fraction: f64) -> String {
    format!("{}%", rounded(fraction * 100.0))
}

/// Rounds to two decimals.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
