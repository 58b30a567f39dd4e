//! The figures of a document for programs, from which CSV, benchstat and Bencher are written.

/// The figures of a document.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The name of the result.
    pub name: String,
    /// The names of what differs between the series, such as factors.
    pub factors: Vec<String>,
    /// The series, in the order of the document.
    pub series: Vec<Series>,
    /// Whether one place may have several metrics, so that the name of a line needs them.
    pub has_metrics: bool,
    /// Whether the factors are sides that are compared with each other, and no part of a name.
    pub has_sides: bool,
    /// The lines of CSV as finished cells, the headings first, if they are not the observations.
    pub points: Vec<Vec<String>>,
}

/// The observations of a metric at one place.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The level of each factor.
    pub levels: Vec<String>,
    /// The name of the place; may be empty.
    pub label: String,
    pub metric: String,
    /// The unit in the lines of Go's benchmarks.
    pub unit: &'static str,
    /// Whether more is better: `higher`, or `lower`.
    pub better: &'static str,
    /// The estimate; `None` without an observation.
    pub value: Option<f64>,
    /// The ends of its interval; `None` without one.
    pub ends: Option<(f64, f64)>,
    /// The observations, in their order.
    pub values: Vec<f64>,
}
