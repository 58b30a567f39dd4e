//! Figures as comma-separated values: a line for each observation, or for each point of a curve.

use super::{Figures, Series};
use wml_text::csv::cell;

/// The lines, the headings first.
pub fn write(figures: &Figures) -> String {
    let line = |cells: &Vec<String>| cells.join(",") + "\n";
    if !figures.points.is_empty() {
        return figures.points.iter().map(line).collect();
    }
    let factors = figures.factors.iter().map(|name| cell(name));
    let head = std::iter::once("name".to_owned()).chain(factors).chain(["run", "metric", "value"].map(str::to_owned));
    let of_series = |series: &Series| {
        let place: Vec<String> = std::iter::once(&figures.name).chain(&series.levels).map(|text| cell(text)).collect();
        let of_value = |(run, value): (usize, &f64)| {
            let rest = [(run + 1).to_string(), cell(&series.metric), value.to_string()];
            line(&place.iter().cloned().chain(rest).collect())
        };
        series.values.iter().enumerate().map(of_value).collect::<String>()
    };
    line(&head.collect()) + &figures.series.iter().map(of_series).collect::<String>()
}
