//! A chart as typed SVG: axes, lines, and marks with their values in `data-x` and `data-y`.
//!
//! Horizontal positions are percentages of the width, vertical ones are pixels. So a chart fills any width while its
//! text and its marks keep their size. Colours come from the classes, which `picture.css` defines. Not in here: the meaning
//! of the values, and the document around the drawing ([`Drawing`]).

use super::axis::ChartAxis;
use super::drawing::{Drawing, Margins};
use svg::node::Node;
use svg::node::element::path::Data;
use svg::node::element::{Circle, Group, Line, Path, Rectangle, SVG, Text, Title};
use wml_text::printable;

/// The height of the area of a chart with a numeric vertical axis, in pixels.
const HEIGHT: f64 = 200.0;
/// The height of a category of a vertical axis, in pixels: its label, and the line of its marks.
const ROW_HEIGHT: f64 = 40.0;
/// The position of the marks in a category, in pixels from its top.
const ROW_LINE: f64 = 26.0;
/// Half of the height of a cell, in pixels.
const CELL_HALF: f64 = 9.0;
/// Pixels above the area, for the title of the vertical axis.
const TOP: f64 = 26.0;
/// Pixels below the area, for the labels and the title of the horizontal axis.
const BOTTOM: f64 = 44.0;
/// Pixels to the right of the area, for the half of a label.
const RIGHT: f64 = 26.0;
/// The largest number of characters of the label of a category, which must fit into a width of 300 pixels.
const MAX_ROW_LABEL: usize = 42;
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
    symbols: Group,
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
        };
        chart.draw_grid();
        chart
    }

    fn draw_grid(&mut self) {
        let mut grid = Group::new().set("class", "grid");
        let mut labels = std::mem::take(&mut self.labels);
        let every_other = |n: usize| if n % 2 == 1 { "alt" } else { "" };
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
                let label = text(&printable::short(&tick.label, MAX_ROW_LABEL));
                let label = label.set("x", 0).set("y", rounded(at - ROW_LINE + 13.0));
                labels = labels.add(label.set("class", "row"));
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
        let rectangle = |width: f64, height: f64| {
            // A length in pixels can't be subtracted from a percentage, so the centre is moved by a transformation.
            let shift = format!("translate({},{})", -width / 2.0, -height / 2.0);
            Rectangle::new()
                .set("x", cx.as_str())
                .set("y", cy)
                .set("width", width)
                .set("height", height)
                .set("transform", shift)
        };
        let title = title(&point.title);
        let (x, class) = (point.x.to_string(), point.class);
        macro_rules! add {
            ($element:expr) => {
                self.symbols.append($element.set("class", class).set("data-x", x).set("data-y", y).add(title))
            };
        }
        match symbol {
            Symbol::Circle => add!(Circle::new().set("cx", cx).set("cy", cy).set("r", 4.5)),
            Symbol::Dot => add!(Circle::new().set("cx", cx).set("cy", cy).set("r", 2)),
            Symbol::Square => add!(rectangle(8.0, 8.0)),
            Symbol::Stroke => add!(rectangle(3.0, 14.0)),
        }
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
        let longest = |ticks: &[super::axis::AxisTick]| ticks.iter().map(|tick| tick.label.chars().count()).max();
        let start = match self.y.count() {
            Some(_) => 4.0,
            None => longest(&self.y.ticks).unwrap_or(0) as f64 * CHARACTER_WIDTH + 12.0,
        };
        let mut content = Group::new();
        if !self.y.title.is_empty() {
            content = content.add(text(&self.y.title).set("x", -start).set("y", 13.0 - TOP).set("class", "axis"));
        }
        Box::new(Drawing {
            name: printable::line(name).into_owned(),
            height: self.height,
            margins: Margins { top: TOP, end: RIGHT, bottom: BOTTOM, start },
            content: content.add(self.under).add(self.labels).add(self.lines).add(self.symbols),
        })
    }
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
